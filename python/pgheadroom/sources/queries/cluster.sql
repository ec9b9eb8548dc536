-- The cluster's own number, by which a database is known again. Anyone, where nobody took it away.
SELECT system_identifier::text AS system_identifier FROM pg_control_system()
