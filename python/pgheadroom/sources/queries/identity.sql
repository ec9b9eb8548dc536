-- Which server and database this is. Anyone.
SELECT current_setting('server_version') AS server_version,
       current_setting('server_version_num')::int AS server_version_num,
       d.datname AS database, d.oid::int8 AS database_oid, current_user AS role,
       current_setting('application_name') AS application_name
FROM pg_database d WHERE d.datname = current_database()
