-- Consistency conditions 1 to 4 of TPC-C clause 3.3.2: how many warehouses or districts break each.
SELECT 1 AS condition, 'W_YTD = sum(D_YTD)' AS rule, count(*) FROM warehouse
    LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS total FROM district GROUP BY 1) AS d ON d_w_id = w_id
    WHERE total IS DISTINCT FROM w_ytd
UNION ALL
SELECT 2, 'D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)', count(*) FROM district
    LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM orders GROUP BY 1, 2) AS o
        ON (o_w_id, o_d_id) = (d_w_id, d_id)
    LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last FROM new_order GROUP BY 1, 2) AS n
        ON (no_w_id, no_d_id) = (d_w_id, d_id)
    WHERE o.last IS DISTINCT FROM d_next_o_id - 1
        -- A district whose orders are all delivered has no new order to compare.
        OR n.last <> d_next_o_id - 1
UNION ALL
SELECT 3, 'max(NO_O_ID) - min(NO_O_ID) + 1 = count(NEW-ORDER)', count(*) FROM (
    SELECT 1 FROM new_order GROUP BY no_w_id, no_d_id
    HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) AS broken
UNION ALL
SELECT 4, 'sum(O_OL_CNT) = count(ORDER-LINE)', count(*) FROM (
    SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS stated FROM orders GROUP BY 1, 2) AS o
    FULL JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found FROM order_line GROUP BY 1, 2) AS l
        ON (ol_w_id, ol_d_id) = (o_w_id, o_d_id)
    WHERE stated IS DISTINCT FROM found
ORDER BY 1;
