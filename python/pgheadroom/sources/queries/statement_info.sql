-- Whether pg_stat_statements forgot or was reset. Needs pg_stat_statements.
SELECT dealloc, extract(epoch FROM stats_reset)::float8 AS stats_reset_epoch_s
FROM :pgss_schema.pg_stat_statements_info
