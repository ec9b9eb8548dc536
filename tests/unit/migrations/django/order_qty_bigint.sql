BEGIN;
--
-- Alter field qty on order
--
ALTER TABLE "orders" ALTER COLUMN "qty" TYPE bigint USING "qty"::bigint;
COMMIT;
