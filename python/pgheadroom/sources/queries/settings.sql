-- Settings of storage, WAL and vacuum; none that can hold a path or a password. Anyone.
-- Of output_plugin_libraries (17.12, 18.6 and 19rc1 have it, 18.4 has not) only whether pg_squeeze
-- is among them.
-- squeeze.max_xlock_time is there where pg_squeeze's library was loaded at the server's start.
SELECT name, unit, source,
       CASE name WHEN 'output_plugin_libraries'
       THEN coalesce(substring(setting FROM '\mpg_squeeze\M'), '') ELSE setting END AS setting
FROM pg_settings
WHERE name IN ('shared_buffers', 'full_page_writes', 'wal_level', 'wal_compression',
               'wal_log_hints', 'data_checksums', 'max_wal_size', 'min_wal_size',
               'checkpoint_timeout', 'checkpoint_completion_target', 'block_size',
               'maintenance_work_mem', 'work_mem', 'gin_pending_list_limit',
               'hot_standby_feedback', 'track_counts',
               'track_activity_query_size', 'old_snapshot_threshold',
               'default_toast_compression', 'wal_segment_size', 'log_statement',
               'log_min_duration_statement', 'pg_stat_statements.track',
               'max_replication_slots', 'max_repack_replication_slots',
               'output_plugin_libraries', 'squeeze.max_xlock_time')
   OR name LIKE 'autovacuum%' OR name LIKE 'vacuum\_%'
ORDER BY name
