-- How often each statement ran. Without texts, which lie in a file. Needs pg_stat_statements.
SELECT userid::int8 AS userid, queryid::text AS queryid, toplevel, calls, rows,
       wal_records, wal_fpi, wal_bytes::int8 AS wal_bytes
FROM :pgss_schema.pg_stat_statements(false)
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
