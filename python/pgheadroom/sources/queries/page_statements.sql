-- Writes one statement a table, which reads the headers and line pointers of up to 200 of its pages.
-- Needs pageinspect, and a superuser: what the pages really have free, at this moment, and how many
-- roots of rows are redirects, or were HOT updated and will be; others; line pointers of nothing.
SELECT format($statement$SELECT jsonb_build_object('query', 'page_headers', 'pass', 'end', 'rows',
  jsonb_build_array(jsonb_build_object('oid', %1$s, 'table_pages', %2$s, 'pages', sum(n),
    'redirects', sum(redirects), 'others', sum(others), 'unused', sum(unused),
    'rooms', jsonb_agg(jsonb_build_array(room_class, n) ORDER BY room_class))))
FROM (SELECT (h.upper - h.lower) / 128 AS room_class, count(*) AS n, sum(i.redirects) AS redirects,
             sum(i.others) AS others, sum(i.unused) AS unused
      FROM generate_series(0, %2$s - 1, %5$s) AS blk,
           LATERAL %3$I.get_raw_page(%4$L, 'main', blk) AS page,
           LATERAL %3$I.page_header(page) AS h,
           LATERAL (SELECT count(*) FILTER (WHERE lp_flags = 2  -- LP_REDIRECT; HEAP_HOT_UPDATED
                               OR lp_flags = 1 AND t_infomask2 & 49152 = 16384) AS redirects,
                           count(*) FILTER (WHERE lp_flags = 1 AND t_infomask2 & 49152 = 0) AS others,
                           count(*) FILTER (WHERE lp_flags IN (0, 3)) AS unused
                    FROM %3$I.heap_page_items(page)) AS i
      GROUP BY 1) AS r$statement$,
    c.oid::int8, c.pages, :'inspect_schema',
    format('%I.%I', c.nspname, c.relname),
    greatest((c.pages + 199) / 200, 1)) AS statement
FROM (
\ir parts/busiest.sql
) AS c
