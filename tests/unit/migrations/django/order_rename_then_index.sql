BEGIN;
--
-- Rename field updated_at on order to touched_at
--
ALTER TABLE "orders" RENAME COLUMN "updated_at" TO "touched_at";
--
-- Create index orders_touched on field(s) touched_at of model order
--
CREATE INDEX "orders_touched" ON "orders" ("touched_at");
COMMIT;
