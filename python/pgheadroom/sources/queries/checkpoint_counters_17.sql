-- Checkpoints of the whole server. Anyone. From 17 on they have a view of their own.
SELECT num_timed, num_requested, buffers_written, write_time AS write_ms, sync_time AS sync_ms,
       restartpoints_done, (SELECT buffers_clean FROM pg_stat_bgwriter) AS buffers_clean,
       extract(epoch FROM stats_reset)::float8 AS stats_reset_epoch_s
FROM pg_stat_checkpointer
