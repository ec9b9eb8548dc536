BEGIN;
--
-- Add field lucky to order
--
ALTER TABLE "orders" ADD COLUMN "lucky" double precision DEFAULT (RANDOM()) NOT NULL;
COMMIT;
