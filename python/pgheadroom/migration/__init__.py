"""
Migrations: would this DDL end HOT on a table that lives from it?

    ddl.py      the statements of a file, as actions (actions.py) on tables and indexes
    shape.py    whose tables they are, and what those look like afterwards
    check.py    each of them before and after by the twin, and what that costs
"""

from __future__ import annotations

from pgheadroom.migration.check import MigrationCheck, check_migration
from pgheadroom.migration.ddl import read_migration

__all__ = ["MigrationCheck", "check_migration", "read_migration"]
