"""A verification in a terminal of 80 columns: nothing beside it, and no table of scraps."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from pgheadroom.report import text, verification
from pgheadroom.report.table import Column, Table
from pgheadroom.verify.values import ByPage, Verification

WRITTEN = Path(__file__).parents[1] / "unit" / "written" / "verification.json"


def _written() -> Verification:
    return Verification.from_json(json.loads(WRITTEN.read_text(encoding="utf-8")))


def _printed(tables: list[Table], width: int = 80) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    text.print_tables(tables, console)
    return out.getvalue().splitlines()


def test_a_verification_is_read_at_80_columns() -> None:
    """Sizes stood there as bytes of nine digits, in tables of three parts each."""
    found = verification.tables(_written())
    lines = _printed(found)
    assert max(map(len, lines)) <= 80
    titles = [table.title for table in found]
    assert "HOT share of the updates" in titles
    (sizes,) = (table for table in found if table.title == "Sizes")
    assert {column.unit for column in sizes.columns if not column.lead} >= {"MiB"}
    (hot,) = (table for table in found if table.title == "HOT share of the updates")
    rules = [line for line in _printed([hot]) if line.startswith("--")]
    assert len(rules) <= 2


def test_old_pages_and_new_ones_stand_where_they_were_foreseen() -> None:
    """Only of tables of which they were."""
    result = _written()
    assert all("Old pages" not in table.title for table in verification.tables(result))
    parts = ByPage(old_pages_frac=0.4, hot_old_frac=0.75, hot_new_frac=None)
    first = replace(result.tables[0], by_page=parts)
    found = verification.tables(replace(result, tables=(first, *result.tables[1:])))
    (shown,) = (table for table in found if table.title.startswith("Old pages"))
    assert len(shown.rows) == 1
    assert shown.rows[0][1:] == (0.4, 0.75, None)


def test_a_short_column_is_not_printed_alone() -> None:
    """The advice's last column was a part by itself, though the first had room for it."""
    columns = (
        Column("name", "name", style="words", lead=True),
        *(Column(f"n{n}", "x" * 20) for n in range(4)),
        Column("by", "by", style="words"),
    )
    row = ("a", *([1] * 4), "twin")
    lines = _printed([Table(title="t", columns=columns, rows=(row,))], width=60)
    rules = [line for line in lines if line.startswith("--")]
    assert len(rules) == 2
    assert max(map(len, lines)) <= 60
