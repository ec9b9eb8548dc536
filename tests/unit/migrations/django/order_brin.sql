BEGIN;
--
-- Create index orders_brin on field(s) updated_at of model order
--
CREATE INDEX "orders_brin" ON "orders" USING brin ("updated_at");
COMMIT;
