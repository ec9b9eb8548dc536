ALTER TABLE "orders" ALTER COLUMN "note" TYPE character varying;
