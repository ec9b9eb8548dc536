BEGIN;
ALTER TABLE "orders" ADD "customer_id" bigint;
CREATE INDEX "index_orders_on_customer_id" ON "orders" ("customer_id");
ALTER TABLE "orders" ADD CONSTRAINT "fk_rails_3dad120da9" FOREIGN KEY ("customer_id") REFERENCES "customers" ("id");
COMMIT;
