-- How often each index is read. Anyone.
SELECT s.indexrelid::int8 AS oid, s.idx_scan, s.idx_tup_read, s.idx_tup_fetch,
       io.idx_blks_read, io.idx_blks_hit
FROM pg_stat_all_indexes s
JOIN pg_statio_all_indexes io USING (indexrelid)
WHERE s.schemaname <> 'information_schema' AND s.schemaname !~ '^pg_'
