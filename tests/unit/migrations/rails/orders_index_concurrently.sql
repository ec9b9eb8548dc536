CREATE INDEX CONCURRENTLY "index_orders_on_qty" ON "orders" ("qty");
