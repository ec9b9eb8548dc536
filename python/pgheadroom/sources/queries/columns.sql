-- Columns with their physical types; domains, and domains over domains, as their base type, with
-- what was declared beside it. Anyone: catalogs only.
WITH RECURSIVE domains AS (
    SELECT t.oid AS domain, t.typbasetype AS oid, t.typtypmod AS typmod
    FROM pg_type t WHERE t.typtype = 'd'
    UNION ALL
    SELECT d.domain, t.typbasetype, t.typtypmod
    FROM domains d JOIN pg_type t ON t.oid = d.oid AND t.typtype = 'd'
), base AS MATERIALIZED (
    SELECT d.* FROM domains d JOIN pg_type t ON t.oid = d.oid AND t.typtype <> 'd'
)
SELECT a.attrelid::int8 AS oid, a.attnum, a.attname AS name,
       format_type(coalesce(b.oid, a.atttypid), coalesce(b.typmod, a.atttypmod)) AS type,
       t.typnamespace <> 'pg_catalog'::regnamespace AS is_user_type,
       format_type(a.atttypid, a.atttypmod) AS declared, b.oid IS NOT NULL AS is_domain,
       a.attlen AS typlen, a.attalign::text AS typalign, a.attstorage::text AS storage,
       nullif(a.attcompression::text, '') AS compression,
       a.attnotnull AS not_null, a.attisdropped AS is_dropped, a.atthasmissing AS has_missing,
       CASE WHEN t.typtype = 'e' THEN
         (SELECT jsonb_agg(e.enumlabel ORDER BY e.enumsortorder)
          FROM pg_enum e WHERE e.enumtypid = t.oid)
       END AS labels,
       CASE WHEN t.typtype = 'e' AND a.atthasdef THEN
         (SELECT e.enumlabel
          FROM pg_enum e JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
          WHERE e.enumtypid = t.oid
            AND starts_with(pg_get_expr(d.adbin, d.adrelid), quote_literal(e.enumlabel) || '::'))
       END AS label_default,
       CASE WHEN a.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype) AND a.atthasdef
                 AND a.attgenerated = '' THEN
         (SELECT pg_get_expr(d.adbin, d.adrelid) IN ('now()', 'CURRENT_TIMESTAMP', 'LOCALTIMESTAMP',
                 'clock_timestamp()', 'statement_timestamp()', 'transaction_timestamp()')
          FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum)
       END AS is_now,
       a.attgenerated::text AS generated,
       CASE WHEN a.attgenerated <> '' THEN
         (SELECT jsonb_agg(DISTINCT d.refobjsubid)
          FROM pg_attrdef e
          JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
          WHERE e.adrelid = a.attrelid AND e.adnum = a.attnum
            AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid
            AND d.refobjsubid <> a.attnum)
       END AS generated_from
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN base b ON b.domain = a.atttypid
LEFT JOIN pg_type t ON t.oid = coalesce(b.oid, a.atttypid)
WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND a.attnum > 0
ORDER BY a.attrelid, a.attnum
