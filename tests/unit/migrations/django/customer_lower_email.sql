BEGIN;
--
-- Create constraint customers_email on model customer
--
CREATE UNIQUE INDEX "customers_email" ON "customers" ((LOWER("email")));
COMMIT;
