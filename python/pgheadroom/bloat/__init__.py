"""
Bloat: how many bytes a rewrite of a table or an index would give back, without reading a row.

    values.py     what is known of a relation, and an estimate
    asking.py     the queries: catalogs, pg_stats, counters
    reading.py    their rows as values
    widths.py     how wide a column's values are, one by one, as far as statistics say it
    drawing.py    rows drawn from that: which columns are NULL, which values stand together
    heap.py       a table as VACUUM FULL would write it
    btree.py      a B-tree as REINDEX would build it
    toast.py      a TOAST table as VACUUM FULL of its table would write it
    measured.py   what pgstattuple_approx says, where it may be asked

What is estimated is the number of pages of a fresh rewrite, by the layout of pages; what is there
now is known. The interval is what the statistics leave open, and each cause that makes it wide has
a name.
"""
