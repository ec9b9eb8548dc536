-- The tables that were asked for by name or schema.name, a JSON array, and the partitions of those
-- that are partitioned. Anyone: catalogs only.
WITH RECURSIVE named AS (
    SELECT c.oid, c.relkind, wanted.name
    FROM jsonb_array_elements_text(:'names'::jsonb) AS wanted (name)
    JOIN pg_class c ON c.relkind IN ('r', 'p')
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE wanted.name IN (c.relname, n.nspname || '.' || c.relname)
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
), chosen AS (
    SELECT oid, relkind FROM named
    UNION
    SELECT c.oid, c.relkind
    FROM chosen
    JOIN pg_inherits i ON i.inhparent = chosen.oid AND chosen.relkind = 'p'
    JOIN pg_class c ON c.oid = i.inhrelid
)
SELECT (SELECT coalesce(string_agg(DISTINCT oid::text, ','), '0') FROM chosen) AS tables,
       (SELECT jsonb_agg(DISTINCT name) FROM named) AS names
