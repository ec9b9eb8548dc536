-- Domains, and whether they or those that they are over have a CHECK or NOT NULL. Anyone: catalogs
-- only.
WITH RECURSIVE chain AS (
    SELECT t.oid AS domain, t.oid FROM pg_type t WHERE t.typtype = 'd'
    UNION ALL
    SELECT c.domain, t.typbasetype
    FROM chain c
    JOIN pg_type t ON t.oid = c.oid
    JOIN pg_type b ON b.oid = t.typbasetype AND b.typtype = 'd'
)
SELECT n.nspname AS schema, t.typname AS name,
       bool_or(b.typnotnull OR EXISTS (
         SELECT FROM pg_constraint k WHERE k.contypid = b.oid AND k.contype = 'c'
       )) AS is_constrained
FROM chain c
JOIN pg_type t ON t.oid = c.domain
JOIN pg_type b ON b.oid = c.oid
JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
GROUP BY n.nspname, t.typname
ORDER BY n.nspname, t.typname
