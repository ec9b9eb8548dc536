-- Transactions and rows of this database. Anyone.
SELECT xact_commit, xact_rollback, blks_read, blks_hit, tup_returned, tup_fetched, tup_inserted,
       tup_updated, tup_deleted, conflicts, temp_files, temp_bytes, deadlocks,
       extract(epoch FROM stats_reset)::float8 AS stats_reset_epoch_s
FROM pg_stat_database WHERE datname = current_database()
