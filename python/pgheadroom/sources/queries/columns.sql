-- Columns with their physical types; domains as their base type. Anyone: catalogs only.
SELECT a.attrelid::int8 AS oid, a.attnum, a.attname AS name,
       format_type(coalesce(nullif(t.typbasetype, 0), t.oid),
                   CASE WHEN t.typbasetype <> 0 THEN t.typtypmod ELSE a.atttypmod END) AS type,
       t.typnamespace <> 'pg_catalog'::regnamespace AND t.typbasetype = 0 AS is_user_type,
       a.attlen AS typlen, a.attalign::text AS typalign, a.attstorage::text AS storage,
       a.attnotnull AS not_null, a.attisdropped AS is_dropped, a.atthasmissing AS has_missing,
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
LEFT JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND a.attnum > 0
ORDER BY a.attrelid, a.attnum
