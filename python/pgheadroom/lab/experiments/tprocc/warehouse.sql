-- Everything of one warehouse; its own row comes last, in the same transaction: where it is, all
-- is. Keys of the hashes are distinct within a table.
INSERT INTO stock
SELECT i, w,
    tprocc_number(w * 100000 + i, 1, 10, 100),
    left(md5(k || 'a'), 24), left(md5(k || 'b'), 24), left(md5(k || 'c'), 24),
    left(md5(k || 'd'), 24), left(md5(k || 'e'), 24), left(md5(k || 'f'), 24),
    left(md5(k || 'g'), 24), left(md5(k || 'h'), 24), left(md5(k || 'i'), 24),
    left(md5(k || 'j'), 24),
    0, 0, 0,
    tprocc_item_data(w * 100000 + i, 2)
FROM (SELECT %(warehouse)s::bigint AS w) AS one,
    generate_series(1, 100000) AS i,
    LATERAL (SELECT (w * 100000 + i)::text AS k) AS key;

INSERT INTO district
SELECT d, w,
    tprocc_text(w * 10 + d, 1, 6, 10),
    tprocc_text(w * 10 + d, 2, 10, 20),
    tprocc_text(w * 10 + d, 3, 10, 20),
    tprocc_text(w * 10 + d, 4, 10, 20),
    upper(left(tprocc_text(w * 10 + d, 5, 10, 20), 2)),
    lpad(tprocc_number(w * 10 + d, 6, 0, 9999)::text, 4, '0') || '11111',
    tprocc_number(w * 10 + d, 7, 0, 2000) / 10000.0,
    30000.00,
    3001
FROM (SELECT %(warehouse)s::bigint AS w) AS one, generate_series(1, 10) AS d;

INSERT INTO customer
SELECT c, d, w,
    tprocc_text(k, 1, 8, 16),
    'OE',
    tprocc_last_name(CASE WHEN c <= 1000 THEN c - 1 ELSE tprocc_nurand(k, 2, 255, 173, 0, 999) END),
    tprocc_text(k, 4, 10, 20),
    tprocc_text(k, 5, 10, 20),
    tprocc_text(k, 6, 10, 20),
    upper(left(tprocc_text(k, 7, 10, 20), 2)),
    lpad(tprocc_number(k, 8, 0, 9999)::text, 4, '0') || '11111',
    left(tprocc_text(k, 9, 16, 16), 16),
    timestamptz '2026-01-01 00:00:00+00',
    CASE WHEN tprocc_number(k, 10, 1, 10) = 1 THEN 'BC' ELSE 'GC' END,
    50000.00,
    tprocc_number(k, 11, 0, 5000) / 10000.0,
    -10.00,
    10.00,
    1,
    0,
    tprocc_data(k, 12)
FROM (SELECT %(warehouse)s::bigint AS w) AS one,
    generate_series(1, 10) AS d,
    generate_series(1, 3000) AS c,
    LATERAL (SELECT (w * 10 + d) * 3000 + c AS k) AS key;

INSERT INTO history
SELECT c, d, w, d, w,
    timestamptz '2026-01-01 00:00:00+00',
    10.00,
    tprocc_text((w * 10 + d) * 3000 + c, 13, 12, 24)
FROM (SELECT %(warehouse)s::bigint AS w) AS one,
    generate_series(1, 10) AS d,
    generate_series(1, 3000) AS c;

-- Customers in a permutation of each district (clause 4.3.3.1): ranks of their hashes.
INSERT INTO orders
SELECT o, d, w, c,
    timestamptz '2026-01-01 00:00:00+00',
    CASE WHEN o <= 2100 THEN tprocc_number((w * 10 + d) * 3000 + o, 14, 1, 10) END,
    tprocc_number((w * 10 + d) * 3000 + o, 15, 5, 15),
    1
FROM (SELECT %(warehouse)s::bigint AS w) AS one,
    generate_series(1, 10) AS d,
    LATERAL (
        SELECT c, row_number() OVER (ORDER BY hashint8extended((w * 10 + d) * 3000 + c, 16)) AS o
        FROM generate_series(1, 3000) AS c
    ) AS permutation
ORDER BY d, o;

INSERT INTO new_order
SELECT o, d, w
FROM (SELECT %(warehouse)s::bigint AS w) AS one,
    generate_series(1, 10) AS d,
    generate_series(2101, 3000) AS o;

INSERT INTO order_line
SELECT o, d, w, n,
    tprocc_number(k, 1, 1, 100000),
    w,
    CASE WHEN o <= 2100 THEN timestamptz '2026-01-01 00:00:00+00' END,
    5,
    CASE WHEN o <= 2100 THEN 0.00 ELSE tprocc_number(k, 2, 1, 999999) / 100.0 END,
    left(md5(k::text), 24)
FROM (SELECT %(warehouse)s::bigint AS w) AS one,
    generate_series(1, 10) AS d,
    generate_series(1, 3000) AS o,
    generate_series(1, tprocc_number((w * 10 + d) * 3000 + o, 15, 5, 15)) AS n,
    LATERAL (SELECT ((w * 10 + d) * 3000 + o) * 16 + n AS k) AS key;

INSERT INTO warehouse
SELECT w,
    tprocc_text(w, 1, 6, 10),
    tprocc_text(w, 2, 10, 20),
    tprocc_text(w, 3, 10, 20),
    tprocc_text(w, 4, 10, 20),
    upper(left(tprocc_text(w, 5, 10, 20), 2)),
    lpad(tprocc_number(w, 6, 0, 9999)::text, 4, '0') || '11111',
    tprocc_number(w, 7, 0, 2000) / 10000.0,
    300000.00
FROM (SELECT %(warehouse)s::bigint AS w) AS one;
