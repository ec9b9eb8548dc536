-- Settings of storage, WAL and vacuum; none that can hold a path or a password. Anyone.
SELECT name, setting, unit, source
FROM pg_settings
WHERE name IN ('shared_buffers', 'full_page_writes', 'wal_level', 'wal_compression',
               'wal_log_hints', 'data_checksums', 'max_wal_size', 'min_wal_size',
               'checkpoint_timeout', 'checkpoint_completion_target', 'block_size',
               'maintenance_work_mem', 'hot_standby_feedback', 'track_counts',
               'track_activity_query_size', 'old_snapshot_threshold',
               'default_toast_compression', 'wal_segment_size', 'log_statement',
               'log_min_duration_statement', 'pg_stat_statements.track')
   OR name LIKE 'autovacuum%' OR name LIKE 'vacuum\_%'
ORDER BY name
