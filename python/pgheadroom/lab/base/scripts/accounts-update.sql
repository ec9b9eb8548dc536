-- The accounts UPDATE of pgbench's TPC-B-like transaction and nothing else.
\set aid random(1, 100000 * :scale)
\set delta random(-5000, 5000)
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
