BEGIN;
--
-- Create constraint orders_qty on model order
--
ALTER TABLE "orders" ADD CONSTRAINT "orders_qty" CHECK ("qty" > 0);
COMMIT;
