BEGIN;
--
-- Create index orders_open on field(s) placed_at of model order
--
CREATE INDEX "orders_open" ON "orders" ("placed_at") WHERE "state" = 'open';
COMMIT;
