BEGIN;
--
-- Add field customer to order
--
ALTER TABLE "orders" ADD COLUMN "customer_id" bigint NULL CONSTRAINT "orders_customer_id_b7016332_fk_customers_id" REFERENCES "customers"("id") DEFERRABLE INITIALLY DEFERRED; SET CONSTRAINTS "orders_customer_id_b7016332_fk_customers_id" IMMEDIATE;
CREATE INDEX "orders_customer_id_b7016332" ON "orders" ("customer_id");
COMMIT;
