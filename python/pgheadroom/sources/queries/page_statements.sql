-- Writes one statement a table, which reads the headers of up to 200 of its pages.
-- Needs pageinspect, and a superuser: what the pages really have free, at this moment.
SELECT format($statement$SELECT jsonb_build_object('query', 'page_headers', 'pass', 'end', 'rows',
  jsonb_build_array(jsonb_build_object('oid', %1$s, 'table_pages', %2$s, 'pages', sum(n),
    'rooms', jsonb_agg(jsonb_build_array(room_class, n) ORDER BY room_class))))
FROM (SELECT (h.upper - h.lower) / 128 AS room_class, count(*) AS n
      FROM generate_series(0, %2$s - 1, %5$s) AS blk,
           LATERAL %3$I.page_header(%3$I.get_raw_page(%4$L, 'main', blk)) AS h
      GROUP BY 1) AS r$statement$,
    c.oid::int8, c.pages, :'inspect_schema',
    format('%I.%I', c.nspname, c.relname),
    greatest((c.pages + 199) / 200, 1)) AS statement
FROM (
\ir parts/busiest.sql
) AS c
