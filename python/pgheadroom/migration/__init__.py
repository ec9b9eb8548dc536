"""
Migrations: would this DDL end HOT on a table that lives from it?

    ddl.py      the statements of a file, as actions (actions.py) on tables and indexes
    catalog.py  whose tables they are, through renames
    columns.py, added_index.py  what comes into a table
    shape.py    what those look like afterwards, and what decides HOT there
    work.py     what each statement locks, rewrites and scans, by rule
    figures.py  HOT and WAL before and after, by the twin
    check.py    the verdict, by rule; said.py: in sentences
"""

from __future__ import annotations

from pgheadroom.migration.answer import MigrationCheck
from pgheadroom.migration.check import check_migration
from pgheadroom.migration.ddl import read_migration

__all__ = ["MigrationCheck", "check_migration", "read_migration"]
