-- WAL of the whole server. Anyone.
SELECT wal_records, wal_fpi, wal_bytes, wal_buffers_full,
       extract(epoch FROM stats_reset)::float8 AS stats_reset_epoch_s
FROM pg_stat_wal
