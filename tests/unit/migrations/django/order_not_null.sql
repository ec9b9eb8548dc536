BEGIN;
--
-- Alter field customer on order
--
ALTER TABLE "orders" ALTER COLUMN "customer_id" SET NOT NULL;
COMMIT;
