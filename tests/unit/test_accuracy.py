"""How a prediction's error is counted, and when it is too large."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import accuracy
import pytest

from pgheadroom.accuracy import Tally, beyond, error, figures
from pgheadroom.forms import write
from pgheadroom.outcome import KEYS, SUMMED, Outcome, put_together
from pgheadroom.types import Interval

Json = dict[str, Any]


def _table(**changes: int | None) -> dict[str, int | None]:
    """Figures of a table: 100 updates, 80 of them HOT."""
    plain: dict[str, int | None] = {
        "n_tup_ins": 0,
        "n_tup_upd": 100,
        "n_tup_del": 0,
        "n_tup_hot_upd": 80,
        "n_tup_newpage_upd": 15,
        "heap_pages": 40,
        "index_pages": 10,
        "wal_records": 120,
        "wal_bytes": 9000,
        "wal_fpi_bytes": 1000,
        "wal_fpi": 2,
        "pages_modified": 30,
    }
    return plain | changes


def _outcome(**changes: int | None) -> Outcome:
    return put_together({"t": _table(**changes)}, {"wal_records": 10, "wal_bytes": 340})


def test_the_whole_is_the_sum_and_quotients_are_of_sums() -> None:
    """Tables add up, Transaction records belong to none, shares are never averaged."""
    tables = {"a": _table(), "b": _table(n_tup_upd=300, n_tup_hot_upd=0)}
    whole = put_together(tables, {"wal_records": 10, "wal_bytes": 340})
    assert whole.n_tup_upd == 400
    assert whole.hot_frac == 80 / 400
    assert whole.wal_records == 2 * 120 + 10
    assert whole.wal_bytes == 2 * 9000 + 340
    assert whole.wal_bytes_per_update == (2 * 9000 + 340) / 400
    assert whole.wal_nonfpi_bytes_per_update == (2 * 8000 + 340) / 400
    assert whole.by_table["a"].wal_bytes_per_update == 90
    assert [key for key in write(whole) if key != "by_table"] == list(KEYS)


def test_a_missing_part_makes_the_sum_missing() -> None:
    """A measured 15 does not count new-page updates: null, and so is all that follows."""
    whole = put_together({"a": _table(), "b": _table(n_tup_newpage_upd=None)}, {})
    assert whole.n_tup_newpage_upd is None
    assert whole.newpage_frac is None
    assert whole.by_table["a"].newpage_frac == 0.15


def test_without_updates_there_are_no_shares() -> None:
    """Nothing divided by nothing is null, not 0."""
    whole = put_together({"a": _table(n_tup_upd=0, n_tup_hot_upd=0, n_tup_newpage_upd=0)}, {})
    for key in ("hot_frac", "newpage_frac", "wal_bytes_per_update", "wal_nonfpi_bytes_per_update"):
        assert whole.value(key) is None


def test_equal_outcomes_have_error_zero_in_every_key() -> None:
    """Zero for equal values, 0 and 0 too: what an exact proof shows."""
    found = write(error(_outcome(n_tup_ins=0), _outcome(n_tup_ins=0)))
    assert all(found[key] == 0 for key in KEYS)
    assert all(found["by_table"]["t"][key] == 0 for key in KEYS)
    assert list(found) == [*KEYS, "by_table"]


def test_shares_differ_and_the_rest_is_a_ratio() -> None:
    """Predicted minus measured for shares, predicted over measured minus 1 for the rest."""
    found = error(_outcome(n_tup_hot_upd=90, heap_pages=44), _outcome())
    assert found.hot_frac == pytest.approx(0.1)
    assert found.heap_pages == pytest.approx(0.1)
    assert found.n_tup_hot_upd == pytest.approx(0.125)
    assert found.by_table["t"].heap_pages == pytest.approx(0.1)


def test_nothing_to_compare_gives_null() -> None:
    """A measured 0 has no ratio to another prediction; null on either side stays null."""
    found = error(_outcome(n_tup_ins=1), _outcome(n_tup_ins=0))
    assert found.n_tup_ins is None
    found = error(_outcome(), _outcome(n_tup_newpage_upd=None))
    assert found.n_tup_newpage_upd is None
    assert found.newpage_frac is None


def test_an_interval_counts_with_its_middle() -> None:
    """The error of a statistical value is that of `mid`."""
    outcome = _outcome()
    interval = Interval(low=30, mid=42, high=50, level=0.9)
    spread = replace(outcome, heap_pages=interval)
    assert error(spread, outcome).heap_pages == pytest.approx(0.05)
    assert write(spread)["heap_pages"] == {"low": 30, "mid": 42, "high": 50, "level": 0.9}
    assert not spread.is_exact
    assert outcome.is_exact


@pytest.mark.parametrize("key", SUMMED)
def test_an_exact_figure_may_not_miss_at_all(key: str) -> None:
    """One unit is beyond the bounds, in the table and in the whole; a missing 0 is too."""
    value = _table()[key]
    assert value is not None
    missed = beyond(_outcome(**{key: value + 1}), _outcome())
    assert {(item.table, item.key) for item in missed} >= {(None, key), ("t", key)}
    assert beyond(_outcome(), _outcome()) == []


def test_a_statistical_figure_has_its_bounds() -> None:
    """Within one point of HOT share; interval and bound are two questions."""
    plain = _outcome()

    def hot(mid: float) -> Outcome:
        spread = Interval(low=mid - 0.05, mid=mid, high=mid + 0.05, level=0.9)
        return replace(plain, hot_frac=spread)

    assert beyond(hot(0.809), plain) == []
    (missed,) = beyond(hot(0.815), plain)
    assert (missed.table, missed.key, missed.verdict) == (None, "hot_frac", "beyond")
    assert missed.holds
    assert not next(f for f in figures(hot(0.9), plain) if f.key == "hot_frac").holds


def test_a_figure_without_a_bound_is_compared_all_the_same() -> None:
    """
    Outside its interval too; only what a side does not have is not compared.

    A figure outside its interval that has no bound was called "not compared", and shown as null
    figures are. One that a server had 0 of was not counted among those that are compared.
    """
    spread = Interval(low=100, mid=105, high=110, level=0.9)
    predicted = replace(_outcome(), wal_records=spread, wal_fpi=spread, n_tup_newpage_upd=None)
    measured = replace(_outcome(), wal_records=109, wal_fpi=0)
    found = {figure.key: figure for figure in figures(predicted, measured) if figure.table is None}
    told = {key: (found[key].verdict, found[key].holds) for key in ("wal_records", "wal_fpi")}
    assert told == {"wal_records": ("no bound", True), "wal_fpi": ("no bound", False)}
    assert found["n_tup_newpage_upd"].verdict == "not compared"
    assert not any(figure.missed for figure in found.values())
    assert Tally.of(found.values()).compared == len(KEYS) - 1


def test_what_only_a_server_has_is_not_compared() -> None:
    """BRIN pages are measured; neither the prediction nor the error names them."""
    measured = put_together({"t": _table() | {"brin_pages": 3}}, {})
    predicted = put_together({"t": _table()}, {})
    assert write(measured)["brin_pages"] == 3
    assert "brin_pages" not in write(predicted)
    assert "brin_pages" not in write(error(predicted, measured))


def test_every_miss_has_a_reason() -> None:
    """What docs/accuracy.md lists as missed names why, and the reason stands below."""
    page = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text(encoding="utf-8")
    misses = page.split("## Misses", maxsplit=1)[1].split("## ", maxsplit=1)[0]
    rows = [line for line in misses.splitlines() if line.startswith("| ") and "%" in line]
    letters = {row.rstrip("| ").rsplit("| ", maxsplit=1)[1] for row in rows}
    assert "not explained" not in letters
    explained = set(re.findall(r"^- \*\*(\w)\*\* ", misses, re.MULTILINE))
    assert letters == explained


def test_the_newest_server_comes_first_and_a_candidate_has_a_place() -> None:
    """The page was written no more once goldens of 19rc1 had come: a version is no number."""
    proof = next(proof for proof in dict(accuracy._read(accuracy.RECORD)).values())
    assert isinstance(proof, accuracy.Proof)
    found = accuracy._recorded({("a", version): proof for version in ("18.4", "19rc1", "15.20")})
    rows = [line for line in found if line.startswith(("| 1",))]
    assert [row.split()[1] for row in rows] == ["19rc1", "18.4", "15.20"]
