    SELECT oid, nspname, relname, relnatts, reltoastrelid, pages, since, updated,
           CASE WHEN pages <= :sample_pages THEN 100
                ELSE round((:sample_pages - 5 * sqrt(:sample_pages))::numeric * 100 / pages, 6)
           END AS percent
    FROM (
        SELECT c.oid, n.nspname, c.relname, c.relnatts, c.reltoastrelid,
               pg_relation_size(c.oid) / 8192 AS pages,
               greatest(pg_snapshot_xmax(pg_current_snapshot())::text::int8 - :start_xid, 0)
                 AS since,
               pg_stat_get_tuples_updated(c.oid) AS updated
\ir heaps.sql
          AND has_table_privilege(c.oid, 'SELECT') AND NOT row_security_active(c.oid)
          AND has_schema_privilege(n.oid, 'USAGE')
    ) AS heaps WHERE pages > 0
