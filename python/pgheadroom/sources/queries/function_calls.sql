-- Functions and procedures that may update rows: the tables that their texts name behind UPDATE and
-- INTO, whether a trigger calls them, and how often statements that name them ran. Never texts.
-- Needs pg_stat_statements; others' statements are shown to pg_read_all_stats only.
WITH writing AS MATERIALIZED (
    SELECT p.oid, n.nspname, p.proname, p.prokind,
           coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) AS source,
           p.prorettype = 'trigger'::regtype AS is_trigger, p.prosqlbody IS NOT NULL AS is_atomic
    FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_language l ON l.oid = p.prolang
    WHERE l.lanname NOT IN ('internal', 'c') AND p.prokind IN ('f', 'p')
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
      AND coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) ~* '\m(update|merge)\M'
    ORDER BY p.oid
    LIMIT 500
), called AS MATERIALIZED (
    SELECT lower(m[1]) AS name, sum(s.calls)::int8 AS calls
    FROM (SELECT string_agg(DISTINCT regexp_replace(proname, '(\W)', '\\\1', 'g'), '|') AS names
          FROM writing WHERE NOT is_trigger) w
    CROSS JOIN :pgss_schema.pg_stat_statements(true) s
    CROSS JOIN LATERAL regexp_matches(s.query, '\m(' || w.names || ')"?\s*\(', 'gi') AS m
    WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND s.query !~* '^\s*(create|alter|drop|comment|grant|revoke)\M'
    GROUP BY lower(m[1])
)
SELECT w.nspname AS schema, w.proname AS name, w.prokind::text AS kind, w.is_trigger, w.is_atomic,
       EXISTS (SELECT FROM pg_trigger t
               WHERE t.tgfoid = w.oid AND t.tgenabled IN ('O', 'A')) AS by_trigger,
       coalesce(c.calls, 0) AS calls,
       (SELECT jsonb_agg(DISTINCT jsonb_build_array(
                 CASE WHEN m[5] IS NULL THEN NULL
                      WHEN m[3] ~ '^"' THEN btrim(m[3], '"') ELSE lower(m[3]) END,
                 CASE WHEN coalesce(m[5], m[3]) ~ '^"' THEN btrim(coalesce(m[5], m[3]), '"')
                      ELSE lower(coalesce(m[5], m[3])) END))
        FROM regexp_matches(w.source, '\m(update|into)\s+(only\s+)?("[^"]+"|[\w$]+)'
                                      '(\s*\.\s*("[^"]+"|[\w$]+))?', 'gi') AS m) AS targets
FROM writing w
LEFT JOIN called c ON c.name = lower(w.proname)
ORDER BY w.oid
