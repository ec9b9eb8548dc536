-- The moment: clock, next transaction, WAL position. Anyone. Assigns no transaction id.
SELECT extract(epoch FROM clock_timestamp())::float8 AS at_epoch_s,
       extract(epoch FROM pg_postmaster_start_time())::float8 AS started_epoch_s,
       pg_is_in_recovery() AS in_recovery,
       pg_snapshot_xmax(pg_current_snapshot())::text::int8 AS next_xid,
       (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
             ELSE pg_current_wal_insert_lsn() END - '0/0'::pg_lsn)::int8 AS wal_position_bytes
