DROP INDEX CONCURRENTLY IF EXISTS "index_customers_on_email";
