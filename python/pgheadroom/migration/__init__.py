"""
Migrations: would this DDL end HOT on a table that lives from it?

    ddl.py        the statements of a file, as actions (actions.py) on tables and indexes
    following.py  the statements in order, and what transactions hold and take back
    catalog.py    whose tables they are, by the names that these have by then
    altering.py   what an action makes of them; indexes.py, columns.py: what comes and goes
    shape.py      what they look like afterwards, and what decides HOT there
    work.py       what each action locks, rewrites and scans, by rule
    effect.py     that as a value, and what several come to
    figures.py    HOT and WAL before and after, by the twin
    check.py      the verdict, by rule; said.py: in sentences
"""

from __future__ import annotations

from pgheadroom.migration.answer import MigrationCheck
from pgheadroom.migration.check import check_migration
from pgheadroom.migration.ddl import read_migration

__all__ = ["MigrationCheck", "check_migration", "read_migration"]
