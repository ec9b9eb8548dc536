-- Who keeps row versions alive: sessions (walsenders with a standby's feedback among them),
-- slots, prepared transactions. VACUUM's own snapshot keeps nothing. Others' sessions show their horizon to pg_read_all_stats only.
SELECT 'session' AS kind, a.pid::text AS name, a.backend_type, a.application_name, a.usename,
       a.state, a.datname = current_database() AND a.query NOT LIKE 'autovacuum: VACUUM%'
           AS holds_data,
       age(a.backend_xmin) AS xmin_age_xids, age(a.backend_xid) AS xid_age_xids,
       a.backend_xmin::text AS xmin, a.backend_xid::text AS xid,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS transaction_age_s
FROM pg_stat_activity a
WHERE a.pid <> pg_backend_pid() AND a.backend_type <> 'walsender'
  AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
UNION ALL
SELECT 'standby', r.pid::text, 'walsender', r.application_name, r.usename, r.state, true,
       age(r.backend_xmin), NULL, r.backend_xmin::text, NULL, NULL
FROM pg_stat_replication r WHERE r.backend_xmin IS NOT NULL
UNION ALL
SELECT 'slot', s.slot_name, s.slot_type, NULL, NULL, CASE WHEN s.active THEN 'active'
       ELSE 'inactive' END, s.xmin IS NOT NULL, greatest(age(s.xmin), age(s.catalog_xmin)),
       NULL, coalesce(s.xmin, s.catalog_xmin)::text, NULL, NULL
FROM pg_replication_slots s WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL
UNION ALL
SELECT 'prepared', p.gid, NULL, NULL, p.owner, NULL, p.database = current_database(), NULL,
       age(p.transaction), NULL, p.transaction::text,
       extract(epoch FROM clock_timestamp() - p.prepared)::float8
FROM pg_prepared_xacts p
