BEGIN;
--
-- Add field created_at to order
--
ALTER TABLE "orders" ADD COLUMN "created_at" timestamp with time zone DEFAULT (STATEMENT_TIMESTAMP()) NOT NULL;
COMMIT;
