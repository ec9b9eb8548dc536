-- Writes one statement a table, which reads the free space map at up to 1,000 pages of it.
-- Needs pg_freespacemap; the map is in steps of 32 bytes and as old as the last vacuum.
SELECT format($statement$SELECT jsonb_build_object('query', 'free_space', 'pass', 'end', 'rows',
  jsonb_build_array(jsonb_build_object('oid', %1$s, 'table_pages', %2$s, 'pages', sum(n),
    'rooms', jsonb_agg(jsonb_build_array(room_class, n) ORDER BY room_class))))
FROM (SELECT %3$I.pg_freespace(%1$s, blk) / 128 AS room_class, count(*) AS n
      FROM generate_series(0, %2$s - 1, %4$s) AS blk GROUP BY 1) AS r$statement$,
    c.oid::int8, c.pages, :'fsm_schema',
    greatest((c.pages + 999) / 1000, 1)) AS statement
FROM (
\ir parts/busiest.sql
) AS c
