-- Checkpoints of the whole server. Anyone. Up to 16 they stand in pg_stat_bgwriter.
SELECT checkpoints_timed AS num_timed, checkpoints_req AS num_requested,
       buffers_checkpoint AS buffers_written, checkpoint_write_time AS write_ms,
       checkpoint_sync_time AS sync_ms, buffers_backend, buffers_clean,
       extract(epoch FROM stats_reset)::float8 AS stats_reset_epoch_s
FROM pg_stat_bgwriter
