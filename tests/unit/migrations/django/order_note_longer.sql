BEGIN;
--
-- Alter field note on order
--
ALTER TABLE "orders" ALTER COLUMN "note" TYPE varchar(120);
COMMIT;
