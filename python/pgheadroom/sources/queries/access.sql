-- What the role may see. Anyone.
SELECT pg_has_role(current_user, 'pg_monitor', 'USAGE') AS monitors,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS reads_stats,
       pg_has_role(current_user, 'pg_read_all_data', 'USAGE') AS reads_data,
       pg_has_role(current_user, 'pg_stat_scan_tables', 'USAGE') AS scans_tables,
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_superuser,
       (SELECT rolbypassrls FROM pg_roles WHERE rolname = current_user) AS bypasses_rls
