BEGIN;
--
-- Alter field placed_at on order
--
CREATE INDEX "orders_placed_at_c74013ff" ON "orders" ("placed_at");
COMMIT;
