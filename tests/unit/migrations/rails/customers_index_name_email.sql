CREATE UNIQUE INDEX "index_customers_on_email_and_id" ON "customers" ("email", "id");
