ALTER TABLE "orders" ADD "gross" integer GENERATED ALWAYS AS (qty * 2) STORED;
CREATE INDEX "index_orders_on_gross" ON "orders" ("gross");
