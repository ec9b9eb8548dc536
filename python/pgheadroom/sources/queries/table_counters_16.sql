-- Counters of tables and of their TOAST tables. Anyone.
SELECT s.relid::int8 AS oid, s.n_tup_ins, s.n_tup_upd, s.n_tup_del, s.n_tup_hot_upd,
       s.n_tup_newpage_upd,
       s.n_live_tup, s.n_dead_tup, s.n_mod_since_analyze, s.n_ins_since_vacuum,
       s.seq_scan, s.seq_tup_read, s.idx_scan, s.idx_tup_fetch,
       io.heap_blks_read, io.heap_blks_hit, io.idx_blks_read, io.idx_blks_hit,
       s.vacuum_count, s.autovacuum_count, s.analyze_count, s.autoanalyze_count,
       extract(epoch FROM s.last_vacuum)::float8 AS last_vacuum_epoch_s,
       extract(epoch FROM s.last_autovacuum)::float8 AS last_autovacuum_epoch_s,
       extract(epoch FROM s.last_analyze)::float8 AS last_analyze_epoch_s,
       extract(epoch FROM s.last_autoanalyze)::float8 AS last_autoanalyze_epoch_s
FROM pg_stat_all_tables s
JOIN pg_statio_all_tables io USING (relid)
LEFT JOIN pg_class owner ON owner.reltoastrelid = s.relid
JOIN pg_namespace n
  ON n.oid = coalesce(owner.relnamespace, (SELECT relnamespace FROM pg_class WHERE oid = s.relid))
WHERE n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
