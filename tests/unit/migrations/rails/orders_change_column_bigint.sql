ALTER TABLE "orders" ALTER COLUMN "qty" TYPE bigint;
