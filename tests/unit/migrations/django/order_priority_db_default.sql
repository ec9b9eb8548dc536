BEGIN;
--
-- Add field priority to order
--
ALTER TABLE "orders" ADD COLUMN "priority" integer DEFAULT 0 NOT NULL;
COMMIT;
