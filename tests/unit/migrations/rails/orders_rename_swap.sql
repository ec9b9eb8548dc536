ALTER TABLE "orders" RENAME COLUMN "placed_at" TO "old_placed_at";
ALTER TABLE "orders" RENAME COLUMN "updated_at" TO "placed_at";
CREATE INDEX "index_orders_on_placed_at" ON "orders" ("placed_at");
