"""Answers of the book's experiments: what is told of is fixed, and nothing beyond the verdicts."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic_lab import comparison, result

from showing import answer as sentence

READ = {"method": "insert", "step": "first-read", "wal_log_hints": "off", "repetitions": 1}


def _reads(predicted: int = 10_090_155) -> dict[str, Any]:
    def cell(checksums: str, found: int, foreseen: int) -> dict[str, Any]:
        counts = {"pages_dirtied": 1235, "predicted_pages_dirtied": 1235}
        return READ | counts | {
            "checksums": checksums, "wal_bytes": found, "predicted_wal_bytes": foreseen,
        }  # fmt: skip

    names = ("pages_dirtied", "predicted_pages_dirtied", "wal_bytes", "predicted_wal_bytes")
    return result(
        "read-writes",
        {"method": ["insert"], "checksums": ["on", "off"], "wal_log_hints": ["off"]},
        measures=[{"name": name, "description": name} for name in names],
        cells=[cell("on", 10_090_155, predicted), cell("off", 0, 0)],
    )


def test_exact_counts_need_no_five_repetitions() -> None:
    """The first read's pages and WAL, by settings, and how many counts are as predicted."""
    said = sentence(_reads())
    assert said is not None
    assert "after insert" in said
    assert "1,235 pages and 10,090,155 bytes of WAL with checksums on" in said
    assert "1,235 pages and 0 bytes of WAL with checksums off" in said
    assert "all 4 counts are exactly as predicted, in 1 repetition" in said
    missed = sentence(_reads(predicted=1))
    assert missed is not None
    assert "3 of 4 counts are exactly as predicted and 1 are not" in missed


def _rates(pairs: int) -> dict[str, Any]:
    one = {"method": "values", "rows": 1}
    return result(
        "insert-rate",
        {"method": ["values"], "rows": [1, 10, 1000]},
        cells=[
            {"method": "values", "rows": rows, "wal_bytes_per_row": size, "repetitions": 5}
            for rows, size in ((1, 190.4), (10, 159.8), (1000, 156.4))
        ],
        comparisons=[
            comparison("rows_per_s", {"rows": 10}, one, (7.0, 8.0, 9.0), "higher", pairs=pairs),
            comparison("rows_per_s", {"rows": 1000}, one, (90.0, 99.0, 110.0), "higher",
                       pairs=pairs),
        ],
    )  # fmt: skip


def test_the_most_rows_are_told_of() -> None:
    """Not the clearest comparison, but the one with the most rows; WAL stands beside it."""
    said = sentence(_rates(5))
    assert said is not None
    assert "rows 1000 against rows 1 is 99 times [90, 110]" in said
    assert "156.4 bytes of WAL at rows 1000 and 190.4 at rows 1" in said
    few = sentence(_rates(3))
    assert few is not None
    assert "undecided (3 interleaved pairs; a verdict needs at least 5)" in few


def test_counters_alone_say_how_few_repetitions() -> None:
    """Without a throughput window the WAL is what there is, undecided below five repetitions."""
    counted = _rates(5) | {"comparisons": []}
    for cell in counted["cells"]:
        cell["repetitions"] = 2
    said = sentence(counted)
    assert said is not None
    assert said.startswith("Undecided (2 repetitions")


@pytest.mark.parametrize("name", ["load-methods", "commit-cost"])
def test_nothing_compared_is_left_to_the_generic_sentence(name: str) -> None:
    """A result without comparisons is no error."""
    assert sentence(result(name, {"clients": [1]}, cells=[], comparisons=[])) is None


def test_commits_in_company_and_without_waiting() -> None:
    """The most clients against one, how many share a sync, then synchronous_commit off."""
    one = {"synchronous_commit": "on", "clients": 1}
    said = sentence(
        result(
            "commit-cost",
            {"synchronous_commit": ["on", "off"], "clients": [1, 2, 8]},
            cells=[one | {"clients": 8, "commits_per_sync": 3.42}],
            comparisons=[
                comparison("tps", {"clients": 2}, one, (0.9, 1.1, 1.3), "no difference shown"),
                comparison("tps", {"clients": 8}, one, (3.0, 4.0, 5.0), "higher"),
                comparison("tps", {"synchronous_commit": "off"}, one, (9.0, 10.0, 11.0), "higher"),
            ],
        )
    )
    assert said is not None
    assert "clients 8 against clients 1" in said
    assert "3.42 commits share a sync there" in said
    assert "synchronous_commit off against synchronous_commit on" in said
    assert "10.0 times [9.0, 11.0]" in said
