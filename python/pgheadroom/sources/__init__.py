"""
Reading what a live database says about itself: never writing, never waiting for long.

`session.py` opens the read-only session, `columns.py` reads the shape of tables.
"""
