INSERT INTO item
SELECT i,
    tprocc_number(i, 1, 1, 10000),
    tprocc_text(i, 2, 14, 24),
    tprocc_number(i, 3, 100, 10000) / 100.0,
    tprocc_item_data(i, 4)
FROM generate_series(1, 100000) AS i;
