"""
Reading what a live database says about itself: never writing, never waiting for long.

`session.py` opens the read-only session, `columns.py` reads the shape of tables for `layout`.
For `observe`: `queries/*.sql` are the statements, `sql.py` chooses them by version,
`observing.py` asks them over an interval or `script.py` prints them for psql, `recording.py` holds
the answers, `statements.py` parses statements and `log.py` finds them in logs and files.
"""
