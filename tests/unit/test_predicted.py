"""Predictions beside measured values: without a server, from the request alone."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pgheadroom.lab import predicted
from pgheadroom.lab.base import accounts_predicted
from pgheadroom.lab.design import Measure, Request, parse_settings
from pgheadroom.lab.experiments import get
from pgheadroom.lab.experiments.fillfactor.predicted import fill
from pgheadroom.lab.experiments.update_cost import predicted as update_cost_predicted
from pgheadroom.lab.record import TrialSample
from pgheadroom.profile import Run, ServerSettings, Snapshot
from pgheadroom.types import Interval, PgVersion

VERSION = PgVersion(18, 4)
DOCUMENT = {
    (64, 100, 0): (20142, 30003, 2720132),
    (64, 80, 0): (10006, 10000, None),
    (64, 80, 1): (10006, 10000, None),
    (128, 100, 0): (20224, 30003, 3360132),
    (128, 80, 0): (10009, 10000, None),
    (128, 80, 1): (10009, 10000, None),
}
"""Pages, records and bytes of the source document; bytes at 80 hang on what it drew."""


def _request(name: str, *settings: str, scale: int = 1, server: str = "18") -> Request:
    experiment = get(name)
    levels, options = parse_settings(
        settings, experiment.factors, experiment.options, name=experiment.name
    )
    return Request(
        experiment=name,
        server=server,
        scale=scale,
        seed=1,
        repetitions=1,
        levels=levels,
        options=options,
    )


def _samples(request: Request, measures: dict[str, float | None]) -> list[TrialSample]:
    return [
        TrialSample(
            trial=f"{number}",
            cell=dict(cell),
            repetition=1,
            arm="measured",
            started_at="2026-11-20T00:00:00+00:00",
            duration_s=1,
            measures=dict(measures),
        )
        for number, cell in enumerate(request.cells())
    ]


def test_the_documents_ten_million_rows_are_foreseen_to_the_unit() -> None:
    """
    A table of 100,000 rows stands for the document's, which has more pages of the maps.

    Bytes at fillfactor 80 are within what 10,000 random values can do: 72 or 144 or 208 each, less
    about 0.03; the document's own values are not known.
    """
    request = _request("update-cost", scale=100)
    cells: list[dict[str, Any]] = [dict(cell) for cell in request.cells()]
    assert update_cost_predicted.fill(request, VERSION, _samples(request, {}), cells) == []
    found = {
        (cell["filler_length"], cell["fillfactor"], cell["update_bid"]): cell for cell in cells
    }
    for key, (pages, records, wal_bytes) in DOCUMENT.items():
        cell = found[key]
        assert (cell["predicted_pages_dirtied"], cell["predicted_wal_records"]) == (pages, records)
        if wal_bytes is not None:
            assert cell["predicted_wal_bytes"] == wal_bytes
    for key, printed in {(64, 80, 0): 719690, (64, 80, 1): 1439716, (128, 80, 1): 2079758}.items():
        assert abs(found[key]["predicted_wal_bytes"] - printed) < 100, key


@pytest.mark.parametrize(
    ("seed", "from_ranges", "values"),
    [
        (0.001001, True, [-4342, 1524, -3702, -2884, 1377, 155]),
        (-0.75, True, [-3860, -400, 3355, 710, 3901, -3201]),
        (0.001001, False, [-4599, -1018, 4914, -4208, -3708, 3748]),
    ],
)
def test_random_values_are_the_servers(seed: float, from_ranges: bool, values: list[int]) -> None:
    """The first values after `setseed`, as 18.4 gave them from a range, 15.18 else."""
    assert update_cost_predicted.drawn(seed, 6, from_ranges=from_ranges) == values


@pytest.mark.parametrize(
    ("settings", "server", "reason"),
    [
        (["indexed_column=bid"], "18", "several values from scale 2 on"),
        (["indexed_column=abalance"], "18", "in random order"),
        (["full_page_writes=on"], "18", "more than are played"),
        ([], "postgresql://me@there/", "a borrowed server"),
    ],
)
def test_why_an_update_is_not_foreseen(settings: list[str], server: str, reason: str) -> None:
    """Null, and a sentence that says why; never a number that rests on nothing."""
    request = _request(
        "update-cost", "update_bid=1", "filler_length=64", *settings, scale=40, server=server
    )
    cells: list[dict[str, Any]] = [dict(cell) for cell in request.cells()]
    (said,) = update_cost_predicted.fill(request, VERSION, _samples(request, {}), cells)
    assert reason in said
    assert all(cell["predicted_wal_bytes"] is None for cell in cells)


@pytest.mark.parametrize(
    ("settings", "version", "reason"),
    [
        (["measure=throughput"], VERSION, "as many transactions as the machine makes of it"),
        (["autovacuum=aggressive"], VERSION, "the machine's pace"),
        (["transactions=1000000"], VERSION, "longer than autovacuum's first nap"),
        (["memory=server", "autovacuum=server"], VERSION, "a borrowed server"),
        (["script=mine.sql"], VERSION, "the script is one of your own"),
        (["script=select-only"], VERSION, "select-only changes no row"),
        ([], PgVersion(14, 2), "PostgreSQL 15 to 19, and this was 14.2"),
    ],
)
def test_why_a_counter_window_is_not_foreseen(
    settings: list[str], version: PgVersion, reason: str
) -> None:
    """As above, for pgbench."""
    request = _request("fillfactor", "fillfactor=100", *settings)
    cells: list[dict[str, Any]] = [dict(cell) for cell in request.cells()]
    (said,) = fill(request, version, _samples(request, {}), cells)
    assert reason in said
    assert all(cell["predicted_hot_frac"] is None for cell in cells)


def test_predictions_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget summarises again and again: the second time no run of the twin is needed."""
    request = _request("fillfactor", "fillfactor=100", "memory=fits", "transactions=200")
    cells: list[dict[str, Any]] = [dict(cell) for cell in request.cells()]
    fill(request, VERSION, _samples(request, {}), cells)
    first = cells[0]["predicted_hot_frac"]
    assert 0 < first < 1
    twin = sys.modules["pgheadroom.predict"]
    monkeypatch.setattr(twin, "predict_cells", lambda *_, **__: pytest.fail("ran again"))
    fill(request, VERSION, _samples(request, {}), cells)
    assert cells[0]["predicted_hot_frac"] == first


def test_a_snapshot_takes_hot_away_in_its_windows() -> None:
    """Windows are matched: nothing is lost before the snapshot begins."""
    held = Snapshot(start_frac=0.5, length_frac=0.25)
    run = Run(operations=4 * 20_000, snapshots=(held,))
    server = ServerSettings(version="18.4")
    profile = accounts_predicted.accounts_update(1, 90, run, server=server)
    found = predicted.windows_of(profile, VERSION, 4)
    assert found is not None
    assert found.series is not None
    before, _, during, after = found.series.column("hot_frac", "pgbench_accounts")
    assert all(isinstance(value, Interval) for value in (before, during, after))
    assert before.mid > 0.99  # type: ignore[union-attr]
    assert after.mid > 0.9 > during.mid  # type: ignore[union-attr]


def test_the_scripts_numbers_change_more_bytes_than_one_does() -> None:
    """
    Of a first update, from 0 to -5,000 to 5,000: four bytes below 0, else one or two.

    5,000 values change four, 255 one, 4,745 two (multiples of 256 the second byte alone), 0 none.
    """
    exact = (5000 * 4 + 255 + (4745 - 19) * 2 + 19) / 10001 - 1
    (drawn,) = accounts_predicted.further_bytes(10_000_000, 20_000)
    assert drawn == pytest.approx(exact, abs=0.05)


def test_an_interval_is_put_beside_its_middle() -> None:
    """Exact values have none; a missing one is null on both."""
    cell: dict[str, Any] = {}
    predicted.put(cell, "exact", 7)
    predicted.put(cell, "drawn", Interval(low=1, mid=2, high=4, level=0.9))
    predicted.put(cell, "none", None)
    assert cell == {
        "predicted_exact": 7,
        "predicted_exact_interval": None,
        "predicted_drawn": 2,
        "predicted_drawn_interval": Interval(low=1, mid=2, high=4, level=0.9),
        "predicted_none": None,
        "predicted_none_interval": None,
    }
    (measure,) = predicted.measures_of([Measure(name="a", description="it", better="lower")], ["a"])
    assert (measure.name, measure.evidence, measure.better) == ("predicted_a", "predicted", "lower")


def test_what_repetitions_give_becomes_their_median() -> None:
    """As measured values do; of intervals end by end, an exact value counting as one."""
    span = Interval(low=1, mid=3, high=5, level=0.9)
    assert predicted.middle([3, 9, 4]) == 4
    assert predicted.middle([3, 4]) == 3.5
    assert predicted.middle([3, None]) is None
    assert predicted.middle([]) is None
    assert predicted.middle([span, 2, 4]) == Interval(low=2, mid=3, high=4, level=0.9)


def test_the_finding_says_the_largest_difference() -> None:
    """Points for shares, per cent of the measured value else, and how many intervals held."""
    span = Interval(low=90, mid=95, high=99, level=0.9)
    cells = [
        {"hot_frac": 0.5, "predicted_hot_frac": 0.52, "heap_pages": 100,
         "predicted_heap_pages": 95, "predicted_heap_pages_interval": span},
        {"hot_frac": 0.7, "predicted_hot_frac": 0.7, "heap_pages": 100,
         "predicted_heap_pages": None},
    ]  # fmt: skip
    assert predicted.findings(cells, ("hot_frac", "heap_pages", "index_pages")) == [
        "Predicted and measured differ by at most: hot_frac 2.00 points, heap_pages 5.00 %. "
        "1 of 3 values are equal; 0 of 1 predicted intervals hold the measured value."
    ]
    assert predicted.findings(cells, ("index_pages",)) == []
