ALTER TABLE "customers" RENAME TO "clients";
ALTER TABLE "public"."customers_id_seq" RENAME TO "clients_id_seq";
ALTER INDEX "customers_pkey" RENAME TO "clients_pkey";
CREATE INDEX "index_clients_on_name" ON "clients" ("name");
