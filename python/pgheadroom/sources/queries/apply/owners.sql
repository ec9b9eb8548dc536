-- Whether this role may change these tables. Anyone: catalogs only.
SELECT c.oid::int8 AS oid, pg_has_role(c.relowner, 'USAGE') AS owns,
       pg_get_userbyid(c.relowner)::text AS owner
FROM pg_class c
WHERE c.oid = ANY (%(oids)s::oid[])
ORDER BY c.relname
