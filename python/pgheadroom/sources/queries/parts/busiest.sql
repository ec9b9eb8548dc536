    SELECT c.oid, n.nspname, c.relname, pg_relation_size(c.oid) / 8192 AS pages
\ir heaps.sql
      AND c.relpages > 0
    ORDER BY pg_stat_get_tuples_updated(c.oid) DESC, c.relpages DESC
    LIMIT :sample_tables
