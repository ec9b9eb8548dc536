"""
A workload derived from TPC-C, as HammerDB's TPROC-C is: not a TPC result, and comparable to none.

    schedules.py    which fillfactor each table has: one for all, or those that others published
    load.py         the nine tables, by warehouses side by side; goes on where it stopped
    run.py          pgbench's scripts in the standard's mix, and what its log tells
    consistency.py  the standard's conditions 1 to 4
    predicted.py    what the twin makes of the same transactions, drawn as pgbench draws them

The SQL beside them names the clauses of the standard (TPC Benchmark C, revision 5.11) that it
follows. What differs from it: no terminals, keying or think times; a warehouse is drawn for each
transaction unless users are told to stay at home; deliveries are executed at once.
"""

from __future__ import annotations
