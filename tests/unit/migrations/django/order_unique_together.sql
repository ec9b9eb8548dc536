BEGIN;
--
-- Alter unique_together for order (1 constraint(s))
--
ALTER TABLE "orders" ADD CONSTRAINT "orders_placed_at_state_3fd6b5a3_uniq" UNIQUE ("placed_at", "state");
COMMIT;
