    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_am am ON am.oid = c.relam AND am.amname = 'heap'
    WHERE c.relkind = 'r' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
      AND (:'tables' = '' OR c.oid = ANY (string_to_array(:'tables', ',')::oid[]))
      AND NOT EXISTS (SELECT FROM pg_locks l
                      WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'
                        AND l.relation IN (c.oid, c.reltoastrelid))
