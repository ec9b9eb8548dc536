"""A share of a table stands for the whole: what shrinks, what does not, and how close it comes."""

from __future__ import annotations

import json
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.outcome import KEYS, Outcome
from pgheadroom.predict import Timing, predict, sampling
from pgheadroom.predict.sampling import (
    SAMPLE_PAGES,
    heap_pages,
    sample_if_big,
    sample_of,
    share_of,
)
from pgheadroom.predict.twin import whole
from pgheadroom.profile import Profile, parse_profile, to_json
from pgheadroom.types import Interval

COLUMNS = [
    {"name": "aid", "type": "int4"},
    {"name": "owner", "type": "int4", "values": {"kind": "random", "ndistinct": 12_000}},
    {"name": "n", "type": "int4"},
    {"name": "filler", "type": "bpchar(84)"},
]
INDEXES = [
    {"name": "t_pkey", "columns": ["aid"], "unique": True},
    {"name": "t_owner", "columns": ["owner"]},
]
UPDATE = {"table": "t", "kind": "update", "sets": ["n"], "pick": {"distribution": "uniform"}}
MIX = [
    UPDATE | {"weight": 3, "pick": {"distribution": "hot_set", "rows_frac": 0.2, "weight": 0.8}},
    {"table": "t", "kind": "insert"},
    {"table": "t", "kind": "delete", "pick": {"distribution": "oldest"}},
]


def _profile(operations: list[Any] | None = None, **run: Any) -> Profile:
    table = {"name": "t", "rows": 100_000, "fillfactor": 96, "columns": COLUMNS}
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"version": "18"},
            "table": [table | {"indexes": INDEXES}],
            "operation": operations or [UPDATE],
            "run": {"operations": 100_000} | run,
        }
    )


def _run(profile: Profile) -> Outcome:
    return whole(_core.simulate(json.dumps(to_json(profile)), "18.4", events=[]))


@pytest.mark.parametrize("operations", [[UPDATE], [UPDATE | {"sets": ["owner"]}], MIX])
def test_samples_give_the_whole(operations: list[Any]) -> None:
    """Eight samples of a fifth: the mean within 3 of its standard errors, and 1 % of the whole."""
    profile = _profile(operations)
    truth = _run(profile)
    sample = sample_of(profile, heap_pages(profile) // 5)
    runs = [sample.blown_up(_run(sample.with_seed(n))) for n in range(8)]
    for key in ("hot_frac", "heap_pages", "index_pages", "wal_nonfpi_bytes_per_update", "wal_fpi"):
        values = [run.value(key) for run in runs]
        error = abs(fmean(values) - truth.value(key))
        spread = 3 * stdev(values) / len(values) ** 0.5
        # An index has whole pages in the sample, and each stands for five.
        doubts = {"index_pages": sample.doubt.index_pages, "wal_fpi": sample.doubt.modified_pages}
        rounding = doubts.get(key, 0)
        assert error <= max(0.01 * truth.value(key), spread, rounding), (
            key,
            truth.value(key),
            values,
        )


@pytest.mark.parametrize("rows", [20_000, 33_000, 39_000, 60_000])
def test_steps_of_hash_indexes_are_in_the_interval(rows: int) -> None:
    """Wherever on their steps the whole and the sample are, the whole's pages are foreseen."""
    index = {"name": "t_owner", "columns": ["owner"], "method": "hash"}
    table = {"name": "t", "rows": rows, "columns": COLUMNS, "indexes": [INDEXES[0], index]}
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": {"version": "18"},
            "table": [table],
            "operation": [UPDATE | {"sets": ["owner"]}],
            "run": {"operations": rows // 3},
        }
    )
    (exact,) = predict(profile, server="18.4").cells
    (cell,) = predict(profile, server="18.4", sample_pages=90).cells
    foreseen, pages = cell.predicted.index_pages, exact.predicted.index_pages
    assert isinstance(foreseen, Interval)
    assert isinstance(pages, int)
    assert foreseen.low <= pages <= foreseen.high


def test_a_sample_keeps_what_shapes_pages() -> None:
    """Rows, operations and distinct values shrink alike; clients share them evenly."""
    profile = _profile(clients=8)
    sample = sample_of(profile, 640)
    (table,), run = sample.profile.tables, sample.profile.workload.run
    assert heap_pages(sample.profile) == pytest.approx(640, abs=1)
    assert run.operations is not None
    assert (run.operations % 8, table.rows % 8) == (0, 0)
    assert sample.share == pytest.approx(640 / heap_pages(profile), rel=0.01)
    assert table.rows / 100_000 == pytest.approx(sample.share, rel=0.001)
    assert table.column("owner").values.ndistinct == pytest.approx(12_000 * sample.share, abs=1)
    assert sample.once == {"t": 4}
    assert sample.with_seed(3).workload.run.seed == run.seed + 3


def test_a_prediction_by_samples() -> None:
    """`predict` takes them for every cell, says so, and its intervals hold the whole."""
    profile = _profile(MIX)
    found = predict(profile, [100, 90], sample_pages=400)
    assert "8 samples of 4" in found.assumed["twin.sample"]
    for cell, fillfactor in zip(found.cells, (100, 90), strict=True):
        truth = _run(profile.with_fillfactor({"t": fillfactor}))
        for key in ("hot_frac", "heap_pages", "index_pages", "wal_fpi", "pages_modified"):
            value = cell.predicted.value(key)
            assert isinstance(value, Interval)
            assert value.low <= truth.value(key) <= value.high, (
                fillfactor,
                key,
                value,
                truth.value(key),
            )
    with pytest.raises(InputError, match="`series`"):
        predict(profile, sample_pages=400, timing=Timing(windows=4))
    whole = predict(profile)
    assert whole.evidence == "exact"
    assert "twin.sample" not in whole.assumed, "small tables are simulated whole"


def test_big_tables_are_sampled_unasked() -> None:
    """From 2 GB on, where a profile can be."""
    assert sample_if_big(_profile()) is None
    profile = _profile()
    (table,) = profile.tables
    big = replace(profile, tables=(replace(table, rows=20_000_000),))
    sample = sample_if_big(big)
    assert sample is not None
    assert heap_pages(sample.profile) == pytest.approx(SAMPLE_PAGES, abs=1)
    zipfian = [UPDATE | {"pick": {"distribution": "zipfian", "theta": 1.1}}]
    assert sample_if_big(replace(big, workload=_profile(zipfian).workload)) is None


def test_a_small_table_is_its_own_sample() -> None:
    """More pages than there are: everything is simulated."""
    profile = _profile()
    assert share_of(profile, 10**6) == 1
    sample = sample_of(profile, 10**6)
    assert (sample.profile, sample.share) == (profile, 1)
    found = _run(profile)
    assert sample.blown_up(found) == found


@pytest.mark.parametrize(
    ("operation", "run", "server", "expected"),
    [
        ({"pick": {"distribution": "zipfian", "theta": 1.1}}, {}, {}, "zipfian keys"),
        ({"pick": {"distribution": "stride", "n": 7}}, {}, {}, "stride keys"),
        ({"find": "seqscan"}, {}, {}, "reads whole tables"),
        ({}, {"operations": None, "duration_s": 10}, {}, r"run\.duration_s"),
        ({}, {}, {"autovacuum": True}, "autovacuum and checkpoints"),
        ({}, {}, {"max_wal_size": "1GB"}, "autovacuum and checkpoints"),
    ],
)
def test_what_does_not_shrink(
    operation: dict[str, Any], run: dict[str, Any], server: dict[str, Any], expected: str
) -> None:
    """It is refused by name, before anything is simulated."""
    given = {"operations": 100_000} | run
    data = {
        "schema_version": 1,
        "server": {"version": "18"} | server,
        "table": [{"name": "t", "rows": 100_000, "columns": COLUMNS, "indexes": INDEXES}],
        "operation": [UPDATE | operation],
        "run": {key: value for key, value in given.items() if value is not None},
    }
    with pytest.raises(InputError, match=expected):
        sample_of(parse_profile(data), 300)


def _pgbench(builtin: str, scale: int, operations: int = 60_000, clients: int = 1) -> Profile:
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"version": "18"},
            "pgbench": {"builtin": builtin, "scale": scale},
            "run": {"operations": operations, "clients": clients},
        }
    )


def test_a_smaller_scale_stands_for_pgbench() -> None:
    """Of simple-update: each interval holds the whole, tables that it leaves alone are exact."""
    profile = _pgbench("simple-update", 4, 100_000)
    prediction = predict(profile, sample_pages=heap_pages(profile) // 2)
    assert "of 3279 of 6558 heap pages" in prediction.assumed["twin.sample"]
    found = prediction.cells[0].predicted
    truth = _run(profile)
    for key in KEYS:
        value = found.value(key)
        low, high = (value.low, value.high) if isinstance(value, Interval) else (value, value)
        assert low is not None
        assert high is not None
        assert low - 1e-6 <= truth.value(key) <= high + 1e-6, (key, value, truth.value(key))
    for name, table in found.by_table.items():
        for key in ("heap_pages", "index_pages", "n_tup_upd"):
            value = table.value(key)
            low, high = (value.low, value.high) if isinstance(value, Interval) else (value, value)
            assert low is not None
            assert high is not None
            true = truth.by_table[name].value(key)
            assert low - 1e-6 <= true <= high + 1e-6, (name, key, value, true)


def test_a_smaller_scale_keeps_what_shapes_pages() -> None:
    """Whole scales, as many transactions for each account; sizes of what stays are the whole's."""
    profile = _pgbench("simple-update", 500, 10_000_000)
    sample = sample_if_big(profile)
    assert sample is not None
    builtin, run = sample.profile.workload.builtin, sample.profile.workload.run
    assert builtin is not None
    assert (builtin.scale, run.operations) == (2, 40_000)
    assert heap_pages(sample.profile) <= SAMPLE_PAGES < heap_pages(_pgbench("simple-update", 3))
    loaded = _run(_pgbench("simple-update", 3, 10)).by_table
    for name, sizes in sample_of(_pgbench("simple-update", 3), 1700).untouched.items():
        assert sizes == {key: loaded[name].value(key) for key in sizes}, name
    assert heap_pages(_pgbench("simple-update", 3)) == 4919  # as 18.4 loads it
    everything = sample_of(_pgbench("select-only", 3), 1700).untouched
    assert everything["pgbench_accounts"]["heap_pages"] == 4919


def test_rows_that_everybody_meets_are_there_whole() -> None:
    """Tellers of scale 20 write 107 bytes an update, of scale 5 76: `tpcb-like` plays them all."""
    profile = _pgbench("tpcb-like", 500, 10_000_000)
    sample = sample_if_big(profile)
    assert sample is not None
    assert sample.entire == {"pgbench_branches", "pgbench_tellers"}
    assert sample.of_whole == {"whole_operations": 10_000_000, "whole_scale": 500}
    small = sample_of(_pgbench("tpcb-like", 4, 8000), 1700)
    found = small.blown_up(whole(_core.simulate(small.twin_json(0), "18.4", events=[])))
    for name in small.entire:
        assert found.by_table[name].n_tup_upd == 8000, name
    assert found.by_table["pgbench_accounts"].n_tup_upd == 8000


INSERT = {"table": "t", "kind": "insert"}
DELETE = {"table": "t", "kind": "delete", "pick": {"distribution": "uniform"}}
HOT = UPDATE | {"pick": {"distribution": "hot_set", "rows_frac": 0.05, "weight": 0.9}}
TWO = [UPDATE | {"transaction": "x"}, UPDATE | {"sets": ["owner"], "transaction": "x"}]


def _many(operations: list[Any], clients: int) -> Profile:
    table = {"name": "t", "rows": 48_000, "fillfactor": 96, "columns": COLUMNS, "indexes": INDEXES}
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"version": "18"},
            "table": [table],
            "operation": operations,
            "run": {"operations": 48_000, "clients": clients},
        }
    )


BY_CLIENTS = {
    "uniform, 4": _many([UPDATE], 4),
    "uniform, 16": _many([UPDATE], 16),
    "not HOT, 4": _many([UPDATE | {"sets": ["owner"]}], 4),
    "hot set, 16": _many([HOT], 16),
    "updates and inserts, 16": _many([UPDATE, INSERT], 16),
    "updates, inserts and deletes, 4": _many([UPDATE | {"weight": 2}, INSERT, DELETE], 4),
    "two statements, 4": _many(TWO, 4),
    "tpcb-like, 1": _pgbench("tpcb-like", 2, 40_000),
    "tpcb-like, 4": _pgbench("tpcb-like", 2, 40_000, 4),
    "simple-update, 16": _pgbench("simple-update", 2, 40_000, 16),
}


@pytest.mark.parametrize("name", BY_CLIENTS)
def test_several_clients_meet_as_in_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Each whole run lies in the intervals of a prediction by samples, at their level.

    Of the same machines with other keys: of `tpcb-like` samples and whole runs have 97.07 % HOT on
    sixteen machines, and 96.8 to 97.2 % on one or another, so four of each, of different ones, say
    more of machines than of samples. All machines of the prediction are asked: one of them may lie
    outside, with all figures that follow from it.

    Without transactions elsewhere a sample of a fifth has up to ten times the new-page updates.
    """
    monkeypatch.setattr(sampling, "_PAGES_PER_CLIENT", 8)
    profile = BY_CLIENTS[name]
    share = 2 if profile.workload.builtin is not None else 5
    pages, seeds = heap_pages(profile) // share + 1, 4 if share == 2 else 16
    found = predict(profile, sample_pages=pages, seeds=seeds).cells[0].predicted
    run = profile.workload.run
    runs = [
        whole(
            _core.simulate(
                json.dumps(to_json(_seeded(profile, run.seed + 100 + n))),
                "18.4",
                interleaving=n,
                events=[],
            )
        )
        for n in range(seeds)
    ]
    missed = []
    for key in KEYS:
        value = found.value(key)
        low, high = (value.low, value.high) if isinstance(value, Interval) else (value, value)
        for one in runs:
            if one.value(key) is None:
                assert value is None
            elif not (low or 0) - 1e-6 <= one.value(key) <= (high or 0) + 1e-6:
                missed.append((key, low, high, one.value(key)))
    assert len(missed) <= 0.1 * len(KEYS) * len(runs), missed


def _seeded(profile: Profile, seed: int) -> Profile:
    run = replace(profile.workload.run, seed=seed)
    return replace(profile, workload=replace(profile.workload, run=run))


@pytest.mark.parametrize("distribution", ["newest", "oldest", "sequential"])
def test_what_several_clients_visit_together_does_not_shrink(distribution: str) -> None:
    """It would be visited more slowly; one client may, and the message says so."""
    operations = [INSERT, UPDATE | {"pick": {"distribution": distribution}}]
    with pytest.raises(InputError, match=f"picks {distribution} keys: 4 clients visit the same"):
        sample_of(_many(operations, 4), 600)
    assert sample_of(_many(operations, 1), 600).share < 1


def test_clients_need_pages_and_operations() -> None:
    """Each fills a page of its own; the number in the message is accepted."""
    profile = _many([UPDATE], 8)
    with pytest.raises(InputError, match="expected at least 64 pages for each; take 512 pages"):
        sample_of(profile, 511)
    assert sample_of(profile, 512).share < 1
    few = _pgbench("tpcb-like", 500, 1000)
    with pytest.raises(InputError, match=r"operations would be left, .* take (\d+) pages") as told:
        sample_of(few, 4096)
    pages = int(str(told.value).rpartition("take ")[2].split()[0])
    assert sample_of(few, pages).share == pytest.approx(0.2)
    assert sample_if_big(few) is None, "a fifth of 8 GB is not what nobody asked for"


def test_too_small_a_sample_names_one_that_is_not() -> None:
    """The message's number of pages is accepted."""
    profile = _profile()
    with pytest.raises(InputError, match=r"take (\d+) pages or more") as raised:
        sample_of(profile, 2)
    pages = int(str(raised.value).rpartition("take ")[2].split()[0])
    assert sample_of(profile, pages).profile.tables[0].rows >= 1000
    with pytest.raises(InputError, match="at least 1"):
        sample_of(profile, 0)
