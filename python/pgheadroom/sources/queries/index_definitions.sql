-- Texts of index expressions and predicates. Anyone. Tables that somebody holds or wants
-- exclusively are left out, for the text of an expression may need a lock on its table.
SELECT i.indexrelid::int8 AS oid,
       (SELECT jsonb_agg(pg_get_indexdef(i.indexrelid, k, true) ORDER BY k)
        FROM generate_series(1, i.indnkeyatts) k) AS key_texts,
       (SELECT jsonb_agg(jsonb_build_object('name', a.attname,
                                            'type', format_type(a.atttypid, a.atttypmod))
                         ORDER BY a.attnum)
        FROM pg_attribute a
        WHERE a.attrelid = i.indexrelid AND a.attnum <= i.indnkeyatts) AS keys,
       pg_get_expr(i.indpred, i.indrelid, true) AS predicate,
       -- Extensions in public whose functions and operators it calls, '' for others and for those
       -- that somebody has made here; built-in ones are pinned and have no dependency.
       (SELECT jsonb_agg(DISTINCT coalesce(x.extname, ''))
        FROM pg_depend d
        LEFT JOIN pg_depend e ON e.classid = d.refclassid AND e.objid = d.refobjid
          AND e.refclassid = 'pg_extension'::regclass AND e.deptype = 'e'
        LEFT JOIN pg_extension x ON x.oid = e.refobjid
          AND x.extnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'public')
        WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
          AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)) AS calls
FROM pg_index i
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE t.relkind = 'r' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
  AND NOT EXISTS (SELECT FROM pg_locks l
                  WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'
                    AND l.relation IN (i.indrelid, i.indexrelid))
  AND (:'tables' = '' OR i.indrelid = ANY (string_to_array(:'tables', ',')::oid[]))
