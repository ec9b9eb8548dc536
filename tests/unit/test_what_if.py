"""Other indexes of an observed table: the baseline is the one that advice plays."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import observed_table as made
import pytest
from test_advise_parts import observed

from pgheadroom.advise.calibrate import Fitted, calibrate
from pgheadroom.advise.what_if import what_if
from pgheadroom.errors import InputError, TwinError
from pgheadroom.predict import IndexChange, predict
from pgheadroom.profile import Profile
from pgheadroom.types import Interval

WITHOUT = (IndexChange(kind="without", index="t_state"),)


def _profile() -> Profile:
    """One of four updates that assign `state` changes it, by the counters."""
    return observed(
        rows=600, indexed=True, sets="state", updates=400, hot=300, newpage=0, fillfactor=70
    )


def test_the_baseline_is_the_calibrated_one_and_the_answer_is_its_difference() -> None:
    """Played as it stands, every update would change the column: 0 % HOT, where 75 % were seen."""
    now, then = what_if(_profile(), WITHOUT, "t").cells
    assert isinstance(now.predicted.hot_frac, Interval)
    assert now.predicted.hot_frac.mid == pytest.approx(0.75, abs=0.03)
    assert now.variant is None
    assert then.variant == "without t_state"
    assert isinstance(then.predicted.hot_frac, Interval)
    assert then.predicted.hot_frac.mid > 0.97
    assert then.difference is not None
    assert (then.difference.predicted["wal_bytes_per_update"] or 0) < 0
    raw = predict(_profile()).cells[0].predicted.hot_frac
    assert (raw.mid if isinstance(raw, Interval) else raw) == pytest.approx(0.0, abs=0.05)


def test_an_update_that_fills_an_indexed_column_is_not_hot() -> None:
    """
    `updated_at` is NULL in most rows, and every update sets it.

    In a profile NULL stays NULL: the twin had 66 % HOT with the index, where 0 % was measured.
    """
    profile = observed(
        rows=600, indexed=True, sets="state", updates=400, hot=0, newpage=0, fillfactor=70
    )
    (table,) = profile.tables
    columns = tuple(replace(c, null_frac=0.8 * (c.name == "state")) for c in table.columns)
    whole = replace(profile, tables=(replace(table, columns=columns),))
    now, then = what_if(whole, WITHOUT, "t").cells
    assert isinstance(now.predicted.hot_frac, Interval)
    assert now.predicted.hot_frac.high < 0.01
    assert isinstance(then.predicted.hot_frac, Interval)
    assert then.predicted.hot_frac.mid > 0.97


def test_no_figure_is_shown_of_a_twin_that_contradicts_what_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What would be otherwise is not foreseen from what is not so: an advice says so, and this."""

    def missing(*given: Any, **named: Any) -> Fitted | None:
        found = calibrate(*given, **named)
        return None if found is None else replace(found, off=0.4)

    module = importlib.import_module("pgheadroom.advise.what_if")
    monkeypatch.setattr(module, "calibrate", missing)
    with pytest.raises(TwinError, match="t: the twin does not repeat what was measured"):
        what_if(_profile(), WITHOUT, "t")


def test_a_sample_is_blown_up_to_the_table() -> None:
    """Pages are those of the table, whichever part of its rows was played."""
    small, big = _profile(), observed(
        rows=60_000, indexed=True, sets="state", updates=40_000, hot=30_000, newpage=0,
        fillfactor=70,
    )  # fmt: skip
    # Pages are filled to 70 %; a heap that is smaller than its rows would be refused.
    (table,) = big.tables
    big = replace(
        big, tables=(replace(table, observed=made.seen_of(table, main_bytes=60_000 * 145)),)
    )
    pages = [what_if(p, WITHOUT).cells[0].predicted.value("heap_pages") for p in (small, big)]
    mids = [page.mid if isinstance(page, Interval) else page for page in pages]
    assert mids[0] is not None
    assert mids[1] == pytest.approx(100 * mids[0], rel=0.1)


@pytest.mark.parametrize(
    ("table", "index", "said"),
    [
        ("nope", "t_state", "has no such table"),
        ("t", "t_stat", "did you mean t_state"),
        (None, "t_pkey", "is the key"),
    ],
)
def test_what_is_not_there_or_cannot_go_is_refused(
    table: str | None, index: str, said: str
) -> None:
    """Before anything is calibrated where that is possible, and with what is known."""
    with pytest.raises(InputError, match=said):
        what_if(_profile(), (IndexChange(kind="without", index=index),), table)


def test_indexes_of_two_tables_are_two_questions() -> None:
    """Each table is calibrated by itself."""
    profile = _profile()
    (table,) = profile.tables
    other = replace(
        table,
        name="u",
        indexes=tuple(replace(i, name=i.name.replace("t_", "u_")) for i in table.indexes),
    )
    changes = (*WITHOUT, IndexChange(kind="without", index="u_state"))
    with pytest.raises(InputError, match="of one table"):
        what_if(replace(profile, tables=(table, other)), changes)
