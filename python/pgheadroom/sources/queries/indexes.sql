-- Indexes: what each holds, and each column whose change ends HOT. Anyone: catalogs only.
-- An index depends (pg_depend) on every column that its expressions and predicate name;
-- refobjsubid 0 stands for the whole row, or for an index without a plain column.
SELECT i.indexrelid::int8 AS oid, i.indrelid::int8 AS table_oid, n.nspname AS schema,
       c.relname AS name, am.amname AS method, am.amname = 'brin' AS is_summarizing,
       i.indisunique AS is_unique, i.indisprimary AS is_primary,
       i.indisexclusion AS is_exclusion, i.indnullsnotdistinct AS nulls_not_distinct,
       i.indisvalid AS is_valid, i.indisready AS is_ready, i.indislive AS is_live,
       i.indisclustered AS is_clustered, i.indisreplident AS is_replica_identity,
       NOT i.indimmediate AS is_deferrable,
       pn.nspname AS parent_schema, pc.relname AS parent_name,
       EXISTS (SELECT FROM pg_attribute a
               WHERE a.attrelid = i.indrelid AND NOT a.attnotnull
                 AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])) AS is_nullable,
       i.indnkeyatts AS key_count, i.indkey::int2[] AS attnums,
       i.indoption::int2[] AS options,
       (SELECT jsonb_agg(CASE WHEN o.opcdefault THEN '' ELSE o.opcname END ORDER BY k.n)
        FROM unnest(i.indclass::oid[]) WITH ORDINALITY k(oid, n)
        JOIN pg_opclass o ON o.oid = k.oid) AS opclasses,
       c.relfilenode::int8 AS relfilenode, c.relpages, c.reltuples::float8 AS reltuples,
       (SELECT jsonb_object_agg(o.option_name, o.option_value)
        FROM pg_options_to_table(c.reloptions) o) AS reloptions,
       i.indexprs IS NOT NULL AS has_expressions, i.indpred IS NOT NULL AS has_predicate,
       (SELECT jsonb_agg(DISTINCT d.refobjsubid) FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid
          AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)) AS depends_on
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_am am ON am.oid = c.relam
-- The topmost: an index between it and a partition of a partition cannot go alone either.
LEFT JOIN pg_class pc ON pc.oid = pg_partition_root(i.indexrelid)
LEFT JOIN pg_namespace pn ON pn.oid = pc.relnamespace
WHERE t.relkind = 'r' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
ORDER BY i.indrelid, i.indisprimary DESC, i.indisunique DESC, c.relname
