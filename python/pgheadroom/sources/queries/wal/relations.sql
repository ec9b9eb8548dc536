-- Files of the database's relations, as WAL names them. Anyone: catalogs only.
SELECT CASE WHEN c.reltablespace <> 0 THEN c.reltablespace ELSE d.dattablespace END::int8
           AS tablespace_oid,
       CASE WHEN c.relisshared THEN 0 ELSE d.oid END::int8 AS database_oid,
       pg_relation_filenode(c.oid)::int8 AS relfilenode,
       CASE WHEN c.relisshared THEN NULL ELSE d.datname END AS database,
       n.nspname AS schema, c.relname AS name, am.amname AS method,
       tn.nspname AS table_schema, t.relname AS table_name,
       c.oid::int8 AS oid, t.oid::int8 AS table_oid
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_database d ON d.datname = current_database()
LEFT JOIN pg_am am ON am.oid = c.relam
LEFT JOIN pg_index i ON i.indexrelid = c.oid
LEFT JOIN pg_class t ON t.oid = i.indrelid OR (c.relkind = 't' AND t.reltoastrelid = c.oid)
LEFT JOIN pg_namespace tn ON tn.oid = t.relnamespace
WHERE pg_relation_filenode(c.oid) IS NOT NULL AND c.relpersistence = 'p'
ORDER BY 1, 2, 3
