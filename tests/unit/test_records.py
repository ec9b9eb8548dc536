"""The records that come with the project, and the tables of pages that are made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import showing
from pgheadroom.lab.record import Record

TABLES = ("stock", "order_line", "customer", "orders", "district")
ROOT = Path(__file__).parents[2]
RECORDS = sorted(path.parent for path in (ROOT / "experiments" / "record").glob("*/request.json"))


def _result(name: str) -> Mapping[str, Any]:
    return Record.open(ROOT / "experiments" / "record" / name).read_result()


def _page(name: str) -> str:
    return (ROOT / "docs" / "method" / name).read_text(encoding="utf-8")


def _table(page: str, heading: str) -> list[list[str]]:
    """Rows of the first table behind a text of a page, without its head."""
    text = _page(page).partition(heading)[2]
    lines = re.findall(r"^\|(.+)\|$", text.partition("\n\n|")[2].partition("\n\n")[0], re.MULTILINE)
    return [[part.strip() for part in line.split("|")] for line in lines if "---" not in line]


@pytest.mark.parametrize("folder", RECORDS, ids=lambda path: path.name)
def test_a_record_is_whole(folder: Path) -> None:
    """It opens, is complete, answers its question, and says nothing of the place it was made at."""
    record = Record.open(folder)
    result = record.read_result()
    assert result["complete"] is True
    assert showing.answer(result)
    assert result["environment"]["settings"]
    for name in ("request.json", "environment.json", "result.json"):
        assert not re.search(r"/(home|root|tmp|work|var)/", (folder / name).read_text("utf-8")), (
            name
        )


@pytest.mark.parametrize("folder", RECORDS, ids=lambda path: path.name)
def test_a_time_has_a_verdict_beside_a_control_only(folder: Path) -> None:
    """What nobody measured the noise of is undecided, however clear its interval looks."""
    result = Record.open(folder).read_result()
    times = {item["name"] for item in result["measures"] if item["unit"] in ("ms", "1/s", "1/min")}
    controlled = {item["measure"] for item in result["controls"]}
    for item in result["comparisons"]:
        if item["measure"] in times - controlled:
            assert item["verdict"] == "undecided", item


def test_the_sources_are_reproduced() -> None:
    """S0, S1, S2 and S4 have a record each."""
    names = {_result(folder.name)["name"] for folder in RECORDS}
    assert names >= {"fillfactor", "update-cost", "cluster-decay", "tprocc"}


def test_a_page_has_the_records_cost_of_an_update() -> None:
    """Cell by cell, as `lab run update-cost --scale 100` wrote it."""
    cells = {
        (cell["filler_length"], cell["fillfactor"], cell["update_bid"]): cell
        for cell in _result("update-cost")["cells"]
    }
    rows = _table("experiments.md", "What a single `UPDATE` costs, to the byte")
    assert len(rows) == 6
    for label, *figures in rows:
        found = re.fullmatch(r"char\((\d+)\), (\d+), (one|two)", label)
        assert found is not None
        cell = cells[int(found[1]), int(found[2]), int(found[3] == "two")]
        names = ("pages_dirtied", "wal_records", "wal_bytes")
        assert figures == [f"{cell[name]:,}" for name in names], label


def test_a_page_has_the_records_matrix() -> None:
    """HOT shares, WAL and size of the TPC-C-derived workload, level by level, at the most users."""
    result = _result("tprocc")
    most = max(cell["users"] for cell in result["cells"])
    cells = {str(cell["fillfactor"]): cell for cell in result["cells"] if cell["users"] == most}
    rows = _table("tprocc.md", "## Fillfactors, table by table")
    assert [row[0] for row in rows] == list(cells)
    base = cells["100"]
    for level, *figures in rows:
        cell = cells[level]
        shares = ("hot_frac", *(f"{table}_hot_frac" for table in TABLES))
        wanted = [f"{cell[name] * 100:.1f}" for name in shares]
        wanted += [
            f"{cell['wal_nonfpi_bytes_per_tx']:,.0f}",
            f"{cell['data_bytes'] / 1024**2:,.0f} MB",
            f"{(cell['data_bytes'] / base['data_bytes'] - 1) * 100:+.1f} %",
            f"{(cell['predicted_data_bytes'] / base['predicted_data_bytes'] - 1) * 100:+.1f} %",
        ]
        assert figures == wanted, level


def test_a_page_has_the_records_throughput() -> None:
    """The sentence of new orders per minute is that of the record made for it."""
    (sentence,) = [
        line
        for line in _page("tprocc.md").splitlines()
        if line.startswith("New orders per minute, with four users")
    ]
    ratios = [
        item["ratio"]
        for item in _result("tprocc-throughput")["comparisons"]
        if item["measure"] == "nopm"
    ]
    assert [
        tuple(map(float, found))
        for found in re.findall(r"([\d.]+) \[([\d.]+), ([\d.]+)\]", sentence)
    ] == [tuple(round(ratio[end], 2) for end in ("mid", "low", "high")) for ratio in ratios]
