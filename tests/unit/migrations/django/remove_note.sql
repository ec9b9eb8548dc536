BEGIN;
--
-- Remove field note from order
--
ALTER TABLE "orders" DROP COLUMN "note" CASCADE;
COMMIT;
