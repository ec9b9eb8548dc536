CREATE INDEX CONCURRENTLY IF NOT EXISTS "index_orders_on_placed_at" ON "orders" ("placed_at") INCLUDE ("total") WHERE state = 'open';
