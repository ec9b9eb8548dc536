-- A setting of the server, and whether this role may change it. Anyone; who set it, and the file,
-- pg_read_all_settings sees.
SELECT s.setting, s.pending_restart AS is_pending,
       has_parameter_privilege(s.name, 'ALTER SYSTEM') AS may_set,
       has_function_privilege('pg_reload_conf()', 'EXECUTE') AS may_reload,
       coalesce(current_setting('allow_alter_system', true), 'on') = 'on' AS is_allowed
FROM pg_settings s
WHERE s.name = %(name)s
