ALTER TABLE "orders" SET (fillfactor = 70);
