"""Tables of results and how they are written: terminal, Markdown, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys
from typing import Any

import pytest
import synthetic
from rich.cells import cell_len
from rich.console import Console

import showing
from pgheadroom.errors import InputError
from pgheadroom.forms import FieldError
from pgheadroom.report import text
from pgheadroom.report.table import Column, Table
from pgheadroom.types import Interval


def printed(result: dict[str, Any], width: int = 120, **options: Any) -> str:
    out = io.StringIO()
    text.print_tables(showing.tables(result), Console(file=out, width=width, **options))
    return out.getvalue()


def titled(result: dict[str, Any], title: str) -> Table:
    return next(table for table in showing.tables(result) if table.title == title)


def test_update_cost_stands_beside_the_document() -> None:
    """Ours, the document's figure and the difference are in one row, exact to the byte."""
    table = titled(synthetic.update_cost(), "One UPDATE: ours beside the document's")
    keys = [column.key for column in table.columns]
    first = dict(zip(keys, table.rows[0], strict=True))
    assert len(table.rows) == 8
    assert first["document_wal_bytes"] == 2720132
    assert first["wal_bytes_difference"] == 0
    row = next(row for row in table.rows if row[:3] == (64, 80, 0))
    assert dict(zip(keys, row, strict=True))["wal_bytes_difference"] == 24
    assert "+24" in printed(synthetic.update_cost())


def test_cells_without_a_document_figure_show_none() -> None:
    """Two of the eight cells have no figure in the document: a dash, never a zero."""
    table = titled(synthetic.update_cost(), "One UPDATE: ours beside the document's")
    row = next(row for row in table.rows if row[:3] == (64, 100, 1))
    keys = [column.key for column in table.columns]
    assert dict(zip(keys, row, strict=True))["document_wal_bytes"] is None
    assert dict(zip(keys, row, strict=True))["wal_bytes_difference"] is None


def test_another_scale_shows_no_document_columns() -> None:
    """The document measured at scale 100 only; at another scale its figures would mislead."""
    tables = showing.tables(synthetic.update_cost(scale=10))
    assert tables[0].title == "One UPDATE"
    assert "scale 100" in (tables[0].note or "")
    assert not [column for column in tables[0].columns if "document" in column.key]


def test_redrock_table_is_shown_as_printed() -> None:
    """The document's second table comes through `references`, unchanged."""
    table = titled(synthetic.update_cost(), "Redrock Postgres, as the document prints it")
    assert table.rows[0] == (64, 100, 0, 10079, 10077, 1457101)


def test_fillfactor_has_the_documents_own_form() -> None:
    """Fillfactor across, memory down, update time with TPS in brackets."""
    result, _ = synthetic.fillfactor()
    table = titled(result, "Ours, in the document's form")
    assert [column.title for column in table.columns] == ["memory", "100", "90", "80", "70"]
    cell = next(c for c in result["cells"] if c["fillfactor"] == 90 and c["memory"] == "twice")
    shown = f"{cell['accounts_update_ms']:.3f} ({cell['tps']:.0f})"
    assert table.rows[1][0] == "twice"
    assert table.rows[1][2] == shown


def test_undecided_says_why() -> None:
    """A verdict of undecided without its reason would leave the reader guessing."""
    result, _ = synthetic.fillfactor()
    assert "undecided: 4 interleaved pairs, at least 5 are needed" in printed(result)


def test_evidence_is_said_of_every_table_of_numbers() -> None:
    """Each number says whether it was measured, predicted, estimated or assumed."""
    generic = {table.title: table.evidence() for table in showing.tables(synthetic.unknown())}
    assert generic["Results"] == "Measured: rate of rows; predicted: heap size."
    result, _ = synthetic.fillfactor()
    for table in showing.tables(result):
        if table.section in ("results", "comparisons", "controls"):
            assert table.evidence() or "measured" in (table.note or ""), table.title


def test_no_measure_is_lost() -> None:
    """Measures that a special view does not know still appear, at its end."""
    result = synthetic.update_cost()
    result["measures"].append(synthetic.measure("surprise", None, None, "new"))
    for cell in result["cells"]:
        cell["surprise"] = 7
    shown = {column.key for table in showing.tables(result) for column in table.columns}
    assert {measure["name"] for measure in result["measures"]} <= shown


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["update_cost", "fillfactor", "unknown"])
def test_fits_the_terminal(name: str, width: int) -> None:
    """No line is longer than the terminal is wide, whatever the number of columns."""
    made = getattr(synthetic, name)()
    result = made[0] if isinstance(made, tuple) else made
    lines = printed(result, width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_no_color_leaves_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR there is no colour, even on a terminal; bold and dim are not colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    out = printed(synthetic.update_cost(), force_terminal=True)
    assert "\x1b[3" not in out.replace("\x1b[0m", "")
    assert "\x1b" not in printed(synthetic.update_cost())


def test_names_cannot_reach_the_terminal() -> None:
    """Escape sequences, line separators and direction overrides in names are shown, not obeyed."""
    result, _ = synthetic.hostile()
    out = printed(result)
    assert not {"\x1b", "\x07", "\u2028", "\u202e"} & set(out)
    assert "\\x1b[31m" in out.replace("\n", "")


def test_console_markup_in_names_is_text() -> None:
    """A name such as [bold] belongs to its owner, not to the terminal library."""
    result = synthetic.update_cost()
    result["references"][0]["title"] = "[bold red]x[/] [link=http://example.org]y[/link]"
    assert "[bold red]x[/] [link=http://example.org]y[/link]" in printed(result)


DAMAGED: list[dict[str, Any]] = [
    {},
    {"name": "fillfactor"},
    {"name": "update-cost", "cells": []},
    {"name": "a", "factors": [{"name": "fillfactor"}], "cells": [{}, {"fillfactor": None}]},
    {"name": "update-cost", "cells": [{"wal_bytes": "many", "wal_bytes_interval": None}],
     "measures": [{"name": "wal_bytes"}], "factors": [{"name": "fillfactor", "levels": []}]},
    {"references": [{"title": " ", "columns": ["a"], "rows": [[1, 2], ["x"]]}]},
]  # fmt: skip
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("name", {"name": None}),
    ("cells", {"cells": None}),
    ("cells[1]", {"cells": [{}, 7]}),
    ("factors", {"factors": "x"}),
    ("factors[0].levels", {"factors": [{"name": "a", "levels": None}]}),
    ("measures", {"measures": 3}),
    ("references[0].rows[0]", {"references": [{"title": "t", "columns": ["a"], "rows": ["x"]}]}),
    (
        "references[0].rows[0][0]",
        {"references": [{"title": "t", "columns": ["a"], "rows": [[{"low": 1}]]}]},
    ),
    ("references[0].columns", {"references": [{"title": "t", "rows": [[1]]}]}),
    ("environment", {"environment": []}),
    ("environment.cores", {"environment": {"cores": "four"}}),
    ("findings", {"findings": 4}),
    ("warnings", {"warnings": None}),
    ("assumed", {"assumed": "x"}),
    ("controls", {"controls": {"a": 1}}),
    ("comparisons[0].measure", {"comparisons": [{"measure": ["x"]}]}),
    ("series[0].file", {"series": [{"cell": {}, "repetition": 1}]}),
    ("cells[0].wal_bytes", {"cells": [{"wal_bytes": math.nan}]}),
    ("cells[0].wal_bytes_interval", {"cells": [{"wal_bytes_interval": {"low": 1}}]}),
    (
        "cells[0].tps_interval",  # its middle is outside
        {"cells": [{"tps_interval": {"low": 9, "mid": 5, "high": 10, "level": 0.95}}]},
    ),
    ("cells[1].fillfactor", {"cells": [{}, {"fillfactor": []}]}),
    ("factors[0].levels[0]", {"factors": [{"name": "a", "levels": [{}]}]}),
    ("seed", {"seed": "1"}),
]


@pytest.mark.parametrize("result", DAMAGED)
def test_damaged_results_do_not_break_it(result: dict[str, Any]) -> None:
    """What is missing, or nothing in a cell, is left out."""
    tables = showing.tables(result)
    printed(result)
    text.as_markdown(tables)
    text.as_csv(showing.experiment(result))


@pytest.mark.parametrize(("at", "result"), REFUSED, ids=[at for at, _ in REFUSED])
def test_what_a_result_cannot_hold_is_refused(at: str, result: dict[str, Any]) -> None:
    """Where it is read, with its place; nothing behind that looks again."""
    with pytest.raises(FieldError, match=rf"^{re.escape(at)}: .*expected"):
        showing.of(result)


def test_one_cell_keeps_its_factors() -> None:
    """With a single cell no factor varies, yet the reader must see which cell it is."""
    result = synthetic.update_cost()
    result["cells"] = result["cells"][:1]
    assert "filler_length" in [column.key for column in showing.tables(result)[0].columns]


def test_decimals_follow_the_column() -> None:
    """Whole numbers stay whole; the ends of a range bring no decimals beside whole medians."""
    column = Column("wal_bytes", "wal_bytes")
    spread = Interval(low=719685.2, mid=719714.0, high=719742.8, level=0.95)
    table = Table("t", (column,), ((2720132,), (spread,)))
    assert [[str(cell) for cell in row] for row in table.written()] == [
        ["2720132"],
        ["719714 [719685, 719743]"],
    ]


def test_shares_near_all_keep_their_misses() -> None:
    """99.99 % of buffer hits must not be shown as 100.0 %."""
    table = Table("t", (Column("buffer_hit_frac", "hit", style="share"),), ((0.9999,), (0.5,)))
    assert [str(row[0]) for row in table.written()] == ["99.99", "50.00"]


def test_brief_leaves_out_the_settings() -> None:
    """A terminal should not be flooded with every setting of a server."""
    sections = {table.section for table in showing.tables(synthetic.update_cost(), brief=True)}
    assert not sections & {"method", "place"}
    assert "results" in sections


def test_markdown_escapes_names() -> None:
    """A name cannot end a cell, begin HTML or make a link."""
    result, _ = synthetic.hostile()
    out = text.as_markdown(showing.tables(result))
    assert "<script" not in out
    assert "<img" not in out
    assert "](http" not in out
    table = text.as_markdown(showing.tables(synthetic.update_cost())[:1]).splitlines()
    bars = {line.count("|") for line in table if line.startswith("|")}
    assert bars == {13}


def test_csv_is_flat_and_complete() -> None:
    """One row a cell: factors, measures and intervals, numbers as they are."""
    result = synthetic.update_cost()
    rows = list(csv.DictReader(io.StringIO(text.as_csv(showing.experiment(result)))))
    assert len(rows) == 8
    assert rows[0]["wal_bytes"] == "2720132"
    assert float(rows[2]["wal_bytes_low"]) < 719714 < float(rows[2]["wal_bytes_high"])
    assert rows[0]["wal_bytes_level"] == "0.9785"
    assert rows[1]["document_wal_bytes"] == ""
    assert not [name for name in rows[0] if name.endswith("_interval")]


def test_csv_keeps_spreadsheets_from_running_names() -> None:
    """Text that begins like a formula is quoted with an apostrophe; numbers are not touched."""
    result, _ = synthetic.hostile()
    values = [
        value
        for row in csv.reader(io.StringIO(text.as_csv(showing.experiment(result))))
        for value in row
    ]
    assert not [value for value in values if value.startswith("=")]
    signed = {"factors": [{"name": "x"}], "cells": [{"x": -5}]}
    assert text.as_csv(showing.experiment(signed)) == "x\n-5\n"


def test_json_is_the_result() -> None:
    """JSON gives back what is in the record, names in their own letters."""
    result, _ = synthetic.hostile()
    assert json.loads(text.as_json(result)) == result
    assert "日本語" in text.as_json(result)
    assert text.as_json(result) == text.as_json(json.loads(text.as_json(result)))


def test_json_refuses_nan() -> None:
    """NaN is no JSON: other readers would fail later and farther away."""
    with pytest.raises(InputError, match="null"):
        text.as_json({"cells": [{"tps": math.nan}]})


def test_importing_is_cheap() -> None:
    """`pgheadroom --help` must not pay for charts: the slow libraries come when they are used."""
    code = """if True:
        import sys
        from pgheadroom.report import html, table, text
        print([name for name in ("altair", "vl_convert", "jinja2", "rich") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
