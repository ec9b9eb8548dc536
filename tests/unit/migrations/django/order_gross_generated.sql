BEGIN;
--
-- Add field gross to order
--
ALTER TABLE "orders" ADD COLUMN "gross" integer GENERATED ALWAYS AS (("qty" * 2)) STORED;
CREATE INDEX "orders_gross_8af9ab5d" ON "orders" ("gross");
COMMIT;
