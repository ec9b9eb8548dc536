ALTER TABLE "orders" ADD "token" uuid DEFAULT gen_random_uuid() NOT NULL;
