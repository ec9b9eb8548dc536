"""The pure parts of a prediction: cells of a curve, durations, intervals, what is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgheadroom.errors import InputError, ServerNotFound
from pgheadroom.outcome import KEYS, Outcome, put_together
from pgheadroom.predict import Given, make_cells, minor_version, predict, version
from pgheadroom.predict.cells import fillfactor_of, updated_tables
from pgheadroom.predict.chance import LEVEL
from pgheadroom.predict.run_plan import as_given, transactions_of
from pgheadroom.predict.spread import OfSamples, spread
from pgheadroom.predict.uncertain_rows import beside_maintenance, upserted_of
from pgheadroom.profile import Profile, parse_profile, read_profile
from pgheadroom.prove import needs_the_run
from pgheadroom.types import Interval, PgVersion

Json = dict[str, Any]


def _profile(run: Json | None = None, server: Json | None = None, **changes: Any) -> Profile:
    """Two tables, one of which is only inserted into."""
    columns = [{"name": "id", "type": "int4"}, {"name": "n", "type": "int4"}]
    tables = [
        {
            "name": name,
            "rows": 100,
            "columns": columns,
            "indexes": [{"name": f"{name}_pkey", "columns": ["id"], "unique": True}],
        }
        for name in ("jobs", "log")
    ]
    operations = [
        {"table": "jobs", "kind": "update", "sets": ["n"]},
        {"table": "log", "kind": "insert"},
    ]
    data = {
        "schema_version": 1,
        "server": server or {},
        "table": tables,
        "operation": operations,
        "run": run or {"operations": 10},
    }
    return parse_profile(data | changes)


def _pgbench(builtin: str) -> Profile:
    return parse_profile(
        {
            "schema_version": 1,
            "pgbench": {"builtin": builtin, "scale": 1},
            "run": {"operations": 10},
        }
    )


def test_without_fillfactors_there_is_one_cell() -> None:
    """The profile as it is; its fillfactor is a number when all tables share it."""
    (cell,) = make_cells(_profile())
    assert cell.fillfactor == 100
    assert cell.profile == _profile()


def test_fillfactors_go_to_tables_with_updates() -> None:
    """In the order given; the other tables keep theirs, so cells name them all."""
    cells = make_cells(_profile(), [70, 100])
    assert [cell.fillfactor for cell in cells] == [{"jobs": 70, "log": 100}, 100]
    assert cells[0].profile.table("jobs").fillfactor == 70
    assert cells[0].profile.table("log").fillfactor == 100


def test_a_named_table_is_varied_alone() -> None:
    """`--table` wins over the choice by updates."""
    (cell,) = make_cells(_profile(), [50], "log")
    assert cell.fillfactor == {"jobs": 100, "log": 50}


@pytest.mark.parametrize(
    ("builtin", "names"),
    [
        ("tpcb-like", ("pgbench_accounts", "pgbench_branches", "pgbench_tellers")),
        ("simple-update", ("pgbench_accounts",)),
        ("select-only", ()),
    ],
)
def test_which_of_pgbenchs_tables_have_updates(builtin: str, names: tuple[str, ...]) -> None:
    """As its scripts say; its history only grows."""
    assert updated_tables(_pgbench(builtin)) == names


def test_pgbenchs_tables_can_be_varied() -> None:
    """The history keeps 100, so a varied cell names all four."""
    (cell,) = make_cells(_pgbench("tpcb-like"), [80])
    assert cell.fillfactor == {
        "pgbench_accounts": 80,
        "pgbench_branches": 80,
        "pgbench_tellers": 80,
        "pgbench_history": 100,
    }
    assert fillfactor_of(_pgbench("tpcb-like")) == 100


@pytest.mark.parametrize(
    ("fillfactors", "table", "message"),
    [
        ([9], None, "from 10 to 100"),
        ([101], None, "from 10 to 100"),
        ([80, 80], None, "80 is given twice"),
        ([], None, "is empty"),
        ([80], "job", "no such table, expected one of jobs, log"),
        (None, "jobs", "give both"),
    ],
)
def test_cells_that_cannot_be(
    fillfactors: list[int] | None, table: str | None, message: str
) -> None:
    """Refused with what is expected, before anything runs."""
    with pytest.raises(InputError, match=message):
        make_cells(_profile(), fillfactors, table)


def test_nothing_to_vary_is_said() -> None:
    """A profile that never updates has no table that --fillfactor means by default."""
    with pytest.raises(InputError, match="no table of the profile has updates"):
        make_cells(_pgbench("select-only"), [80])
    assert len(make_cells(_pgbench("select-only"), [80], "pgbench_accounts")) == 1


def test_a_stated_minor_needs_no_server() -> None:
    """The twin follows what is asked for; that --server won is noted."""
    asked = minor_version(_profile(), "15.3")
    assert asked.version == PgVersion(15, 3)
    assert asked.assumed == {"server.version": "15.3, as asked for"}
    assert minor_version(_profile(server={"version": "17.11"})).version == PgVersion(17, 11)


def test_a_major_without_a_server_is_a_recorded_minor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prediction needs no server; which minor was taken stands under assumed."""

    def nothing(spec: str) -> None:
        raise ServerNotFound(f"no {spec}")

    monkeypatch.setattr(version, "find_programs", nothing)
    found = minor_version(_profile(server={"version": "17"}))
    assert found.version == PgVersion(17, 10)
    assert found.assumed == {"server.version": "17.10, no server of 17 is at hand"}
    assert str(minor_version(_profile(server={"version": "19"})).version) == "19rc1"
    with pytest.raises(ServerNotFound):
        minor_version(_profile(), "/no/such/folder")


def test_a_connection_is_no_version() -> None:
    """What another command takes is named as what it is."""
    with pytest.raises(InputError, match="not a connection"):
        minor_version(_profile(), "host=localhost")


def test_a_duration_needs_a_rate_or_a_run() -> None:
    """How many transactions a second hold depends on the machine; the twin does not guess."""
    profile = _profile({"duration_s": 10})
    with pytest.raises(InputError, match=r"run\.duration_s"):
        transactions_of(profile, Given(), 0, 8)
    assert transactions_of(profile, Given(operations=1235), 0, 8) == 1235
    assert transactions_of(_profile(), Given(), 3, 8) is None


@pytest.mark.parametrize(
    ("seed", "rate_per_s", "duration_s", "played"),
    [(1, 300.0, 5.0, (1519, 1519)), (7, 545.4, 4.0, (2096, 2095))],
)
def test_a_rate_gives_pgbenchs_numbers(
    seed: int, rate_per_s: float, duration_s: float, played: tuple[int, int]
) -> None:
    """As many as 18.4 and 16.14 began of this seed, late by at most 40 ms at the end."""
    profile = _profile({"duration_s": duration_s, "rate_per_s": rate_per_s, "seed": seed})
    counts = [transactions_of(profile, Given(), number, 9) or 0 for number in range(9)]
    assert counts[1:] == sorted(counts[1:], reverse=True)
    assert counts[1] - counts[-1] < 0.05 * rate_per_s
    assert all(counts[-1] <= found <= counts[1] for found in played)


def test_snapshots_are_those_that_were_held() -> None:
    """When one really began and ended, which is late by what a query takes; none at all too."""
    profile = _profile({"operations": 10, "snapshot": [{"start_frac": 0.2, "length_frac": 0.5}]})
    held = as_given(profile, Given(snapshots=((0.25, 0.75),))).workload.run.snapshots
    assert [(item.start_frac, item.length_frac) for item in held] == [(0.25, 0.5)]
    assert as_given(profile, Given()) == profile
    assert as_given(profile, Given(snapshots=())).workload.run.snapshots == ()


def test_holds_are_drawn_within_what_is_known() -> None:
    """Each seed draws a moment of its range; the end of one that begins the next is one moment."""
    known = Given(snapshots=(), holds=(((0.1, 0.2), (0.3, 0.31)), ((0.3, 0.31), (0.5, 0.5))))
    drawn = [as_given(_profile(), known, seed).workload.run.snapshots for seed in range(50)]
    begins = [first.start_frac for first, _ in drawn]
    assert min(begins) < 0.12
    assert max(begins) > 0.18
    for first, second in drawn:
        assert 0.1 <= first.start_frac <= 0.2
        assert first.start_frac + first.length_frac == pytest.approx(second.start_frac)
        assert 0.3 <= second.start_frac <= 0.31
        assert second.start_frac + second.length_frac == pytest.approx(0.5)
    assert as_given(_profile(), known, 3) == as_given(_profile(), known, 3)


def _run(**changes: int | None) -> Outcome:
    table: dict[str, int | None] = {
        "n_tup_ins": 0,
        "n_tup_upd": 1000,
        "n_tup_del": 0,
        "n_tup_hot_upd": 900,
        "n_tup_newpage_upd": 50,
        "heap_pages": 100,
        "index_pages": 0,
        "wal_records": 1500,
        "wal_bytes": 90_000,
        "wal_fpi_bytes": 0,
        "wal_fpi": 0,
        "pages_modified": 100,
    }
    clients = {"wal_records": 1000, "wal_bytes": 34_000}
    return put_together({"t": table | changes}, clients)


def test_runs_become_intervals() -> None:
    """What every run agrees on and the statements decide stays a number; the rest is a range."""
    runs = [_run(n_tup_hot_upd=900 + n, heap_pages=100 + n) for n in (-4, -2, 0, 2, 4)]
    found = spread(runs, clients=1, major=18)
    assert found.n_tup_upd == 1000
    assert found.wal_fpi == 0
    assert found.index_pages == 0
    hot = found.hot_frac
    assert isinstance(hot, Interval)
    assert hot.mid == pytest.approx(0.9)
    assert hot.level == LEVEL
    # A new run of the same kind: Student's t with 4 degrees, 2.13 times 3.16 times sqrt(1.2).
    pages = found.heap_pages
    assert isinstance(pages, Interval)
    assert pages.high - pages.mid == pytest.approx(7.40, abs=0.05)
    assert found.by_table["t"].heap_pages == pages
    assert isinstance(found.n_tup_newpage_upd, Interval), "equal runs do not make it certain"


def test_clients_leave_pages_open() -> None:
    """In samples, where nobody waits to extend: half a page a client, to 15 ten and upwards."""
    runs = [_run(heap_pages=pages, pages_modified=pages) for pages in (100, 100)]
    half = OfSamples(share=0.5)
    alone = spread(runs, clients=1, major=18, samples=half)
    four = spread(runs, clients=4, major=18, samples=half)
    for key, model in (("heap_pages", 0.5), ("pages_modified", 1.0)):
        assert alone.value(key).high == pytest.approx(100 + model)
        assert four.value(key).high == pytest.approx(100 + (model**2 + 2**2) ** 0.5, abs=0.01)
    assert spread([_run(heap_pages=0)] * 2, clients=4, major=18).heap_pages == 0
    before = spread(runs, clients=4, major=15, samples=half).heap_pages
    assert isinstance(before, Interval)
    ends = (before.mid - before.low, before.high - before.mid)
    assert ends == pytest.approx((0.5, 40.5), abs=0.01)
    kept = [_run(heap_pages=100, n_tup_hot_upd=1000, n_tup_newpage_upd=0)] * 2
    found = spread(kept, clients=4, major=15, samples=half).heap_pages
    assert isinstance(found, Interval)
    assert found.high < 101, "nothing grew"


@pytest.mark.parametrize("major", [15, 18])
def test_pages_for_others_lie_above(major: int) -> None:
    """Pages that clients add while others wait make an interval reach up, and not down."""
    runs = [_run(heap_pages=pages) for pages in (100, 100, 101, 102, 140)]
    pages = spread(runs, clients=4, major=major).heap_pages
    assert isinstance(pages, Interval)
    assert pages.mid == 101
    assert 97 < pages.low < 100
    assert 140 < pages.high < 180


def test_who_meets_a_truncate_is_not_certain() -> None:
    """Random profile 98000-14: 138,280 updates were stated, 138,310 found their row."""
    profile = parse_profile(
        {
            "schema_version": 1,
            "table": [{"name": "t", "rows": 8,
                       "columns": [{"name": name, "type": "int4"} for name in ("k", "v")],
                       "indexes": [{"name": "i", "columns": ["k"], "unique": True}]}],
            "operation": [
                {"table": "t", "kind": "update", "sets": ["v"], "rows_per_statement": 5,
                 "transaction": "both"},
                {"table": "t", "kind": "insert", "transaction": "both"},
            ],
            "run": {"operations": 100, "clients": 4,
                    "maintenance": [{"do": "truncate", "table": "t", "at_frac": 0.5}]},
        }
    )  # fmt: skip
    beside = beside_maintenance(profile)
    assert beside == {"t": 2 * 4 * 6}
    runs = [_run(n_tup_upd=1000)] * 2
    found = spread(runs, clients=4, major=18, beside=beside)
    for part in (found, found.by_table["t"]):
        changed = part.n_tup_upd
        assert isinstance(changed, Interval)
        assert (changed.low, changed.high) == pytest.approx((952, 1048), abs=0.1)
        assert part.n_tup_del == 0
    assert spread(runs, clients=4, major=18).n_tup_upd == 1000
    alone = replace(profile.workload, run=replace(profile.workload.run, clients=1))
    assert beside_maintenance(replace(profile, workload=alone)) == {}


@pytest.mark.parametrize(
    ("kinds", "rows"),
    [
        (("select", "insert"), 3 * 5),
        (("select", "update", "select"), 3 * 5),
        (("insert", "select"), 0),  # it has the stronger lock from the start
        (("select", "lock"), 0),
        (("insert",), 0),
    ],
)
def test_reindex_and_a_transaction_may_lock_each_other_out(
    kinds: tuple[str, ...], rows: int
) -> None:
    """Random profile 52000-49 stated 4,500 rows inserted; 18.4 rolled two transactions back."""
    change = {"update": {"sets": ["v"]}}
    profile = parse_profile(
        {
            "schema_version": 1,
            "table": [{"name": "t", "rows": 9,
                       "columns": [{"name": name, "type": "int4"} for name in ("k", "v")],
                       "indexes": [{"name": "i", "columns": ["k"], "unique": True}]}],
            "operation": [
                {"table": "t", "kind": kind, "rows_per_statement": 5, "transaction": "one"}
                | change.get(kind, {})
                for kind in kinds
            ],
            "run": {"operations": 99, "clients": 3,
                    "maintenance": [{"do": "reindex", "table": "t", "at_frac": 0.5}]},
        }
    )  # fmt: skip
    assert sum(beside_maintenance(profile).values()) == rows


def test_an_upsert_may_insert_what_another_has_inserted() -> None:
    """Random profile 41000-67 stated 388 rows inserted, none deleted; 15.18 had 389 and 1."""
    table = {"name": "t", "rows": 9,
             "columns": [{"name": name, "type": "int4"} for name in ("k", "v")],
             "indexes": [{"name": "i", "columns": ["k"], "unique": True}]}  # fmt: skip
    for clients, found in ((1, frozenset()), (3, {"t"})):
        profile = parse_profile(
            {
                "schema_version": 1,
                "table": [table],
                "operation": [{"table": "t", "kind": "upsert", "sets": ["v"]}],
                "run": {"operations": 99, "clients": clients},
            }
        )
        assert upserted_of(profile) == found
    runs = [_run(n_tup_ins=388)] * 8
    several = spread(runs, clients=3, major=15, upserted={"t"})
    for part in (several, several.by_table["t"]):
        assert isinstance(part.n_tup_ins, Interval)
        assert part.n_tup_ins.high > 389
        assert isinstance(part.n_tup_del, Interval)
        assert part.n_tup_del.high > 1
        assert part.n_tup_upd == 1000
    assert spread(runs, clients=3, major=15).n_tup_ins == 388


def test_a_gin_may_split_where_no_run_has_it() -> None:
    """Random profile 41000-55 stated no images; 15.18 had three of one split, and 17 pages."""
    runs = [_run(n_tup_ins=517, index_pages=12, wal_fpi=0, wal_fpi_bytes=0)] * 8
    found = spread(runs, clients=3, major=15, with_gin={"t"})
    for part in (found, found.by_table["t"]):
        for key, low, high in (("wal_fpi", 0, 3), ("wal_fpi_bytes", 0, 3 * 8192)):
            assert (part.value(key).low, part.value(key).high) == (low, high)
        assert part.value("index_pages").high == pytest.approx(15, abs=0.1)
    for clients, tables in ((1, {"t"}), (3, {"other"})):
        assert spread(runs, clients=clients, major=15, with_gin=tables).wal_fpi == 0
    split = [_run(n_tup_ins=517, wal_fpi=images) for images in (0, 3) * 4]
    wider = spread(split, clients=3, major=15, with_gin={"t"})
    assert wider == spread(split, clients=3, major=15), "the runs show it themselves"


def test_clients_may_begin_a_free_space_map() -> None:
    """A table that several clients fill may get three map pages, logged whole with checksums."""
    filled = [_run(n_tup_ins=1000, n_tup_upd=0, n_tup_hot_upd=0, wal_fpi=0, wal_fpi_bytes=0)] * 2
    found = spread(filled, clients=4, major=18, logs_hints=True)
    for part in (found, found.by_table["t"]):
        assert part.wal_fpi == Interval(low=0, mid=0, high=3, level=LEVEL)
        assert part.wal_fpi_bytes == Interval(low=0, mid=0, high=3 * 8192, level=LEVEL)
    assert spread(filled, clients=4, major=18).wal_fpi == 0
    assert spread(filled, clients=1, major=18, logs_hints=True).wal_fpi == 0
    assert spread(filled, clients=4, major=15, logs_hints=True).wal_fpi == 0
    updated = [_run(n_tup_ins=0, wal_fpi=0, wal_fpi_bytes=0)] * 2
    assert spread(updated, clients=4, major=18, logs_hints=True).wal_fpi == 0


def test_shares_stay_shares() -> None:
    """No interval leaves what a share can be."""
    found = spread(
        [_run(n_tup_hot_upd=1000, n_tup_newpage_upd=0) for _ in range(3)], clients=2, major=18
    )
    assert isinstance(found.hot_frac, Interval)
    assert isinstance(found.newpage_frac, Interval)
    half_a_miss = pytest.approx(1.645 * 0.5**0.5 / 1000)
    assert (1 - found.hot_frac.low, found.hot_frac.high) == (half_a_miss, 1.0)
    assert (found.newpage_frac.low, found.newpage_frac.high) == (0.0, half_a_miss)


def test_seldom_misses_are_seen_by_few_runs() -> None:
    """
    A page more or less is a count by chance; of many misses the runs' own spread tells.

    With a half-width of 0.15 % of the updates instead, 100 % of the intervals of 90 % held.
    """

    def half(misses: int, key: str = "n_tup_hot_upd") -> float:
        runs = [_run(n_tup_upd=100_000, n_tup_hot_upd=100_000 - misses)] * 8
        found = spread(runs, clients=2, major=18).value(key)
        assert isinstance(found, Interval)
        return found.mid - found.low

    assert half(0) < half(2) < half(4)
    assert half(4_000) == pytest.approx(half(4), rel=1e-4)
    assert half(100_000 - 1) < half(4), "nor are those seldom that are HOT"
    assert half(4) == pytest.approx(3.29, abs=0.001)
    assert half(4, "pages_modified") > 6


def test_a_sample_and_a_clock_have_the_models_error() -> None:
    """Chance is counted in misses of the whole, and one of a sample is many; a clock has phases."""
    runs = [_run(n_tup_upd=100_000, n_tup_hot_upd=100_000)] * 8
    for asked, share in (
        ({"samples": OfSamples(share=0.01)}, 0.0015),
        ({"by_clock": True}, 0.003),
        ({}, 1.163 / 100_000),
    ):
        found = spread(runs, clients=4, major=18, **asked).hot_frac  # type: ignore[arg-type]
        assert isinstance(found, Interval)
        assert found.mid - found.low == pytest.approx(share, rel=0.001)


def test_missing_stays_missing() -> None:
    """Without updates there is no share to give a range of."""
    runs = [_run(n_tup_upd=0, n_tup_hot_upd=0, n_tup_newpage_upd=0) for _ in range(2)]
    assert spread(runs, clients=4, major=18).hot_frac is None


@pytest.mark.parametrize(
    ("server", "run", "needed"),
    [
        ({}, {"operations": 10}, False),
        ({"autovacuum": True}, {"operations": 10}, True),
        ({"checkpoint_interval_s": 30}, {"operations": 10}, True),
        ({"max_wal_size": "64MB"}, {"operations": 10}, True),
        ({}, {"duration_s": 5}, True),
        ({}, {"operations": 10, "snapshot": [{"start_frac": 0, "length_frac": 1}]}, True),
        ({}, {"duration_s": 5, "rate_per_s": 10}, False),
    ],
)
def test_when_the_twin_waits_for_the_server(server: Json, run: Json, needed: bool) -> None:
    """Only where something waits for a clock is the twin told about the server's run."""
    assert needs_the_run(_profile(run, server)) is needed


def test_examples_can_be_spread() -> None:
    """Every example is one that --fillfactor takes."""
    from pgheadroom.profile import read_profile

    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.toml")):
        assert len(make_cells(read_profile(path), [90, 80])) == 2


def test_only_bytes_of_compressed_images_are_uncertain() -> None:
    """How far an image shrinks is estimated; that it is written, and all else, is known."""
    golden = Path(__file__).parents[2] / "golden" / "compressed" / "mixed.toml"
    outcome = predict(read_profile(golden), server="18.4").cells[0].predicted
    uncertain = {key for key in KEYS if isinstance(outcome.value(key), Interval)}
    assert uncertain == {"wal_bytes", "wal_fpi_bytes", "wal_bytes_per_update"}
    images, whole = outcome.wal_fpi_bytes, outcome.wal_bytes
    assert isinstance(images, Interval)
    assert isinstance(whole, Interval)
    assert images.high - images.low == pytest.approx(whole.high - whole.low)
    assert images.high == pytest.approx(1.02 * images.mid)


def _replacing(min_bytes: int) -> Profile:
    """Rows of which updates replace two values out of line; what the seed 110000 of fuzz found."""
    columns = [
        {"name": "k", "type": "date"},
        {"name": "a", "type": "jsonb"},
        {"name": "b", "type": "numeric(7,2)"},
        {"name": "e", "type": "jsonb", "storage": "external"},
    ]
    for column in columns[1::2]:
        column["width"] = {"min_bytes": min_bytes, "max_bytes": 9400}
        column["values"] = {"kind": "serial"}
    return parse_profile(
        {
            "schema_version": 1,
            "server": {"version": "15.18", "full_page_writes": False},
            "table": [
                {
                    "name": "t0",
                    "rows": 250,
                    "columns": columns,
                    "indexes": [{"name": "t0_pkey", "columns": ["k"], "unique": True}],
                    "rows_per_page": 150,
                    "pages": [
                        {"pages_frac": 0.143, "rows": 122},
                        {"pages_frac": 0.857, "rows": 131},
                    ],
                },
                {
                    "name": "t1",
                    "rows": 11,
                    "columns": [{"name": "k", "type": "int8"}, {"name": "a", "type": "int2"}],
                    "indexes": [{"name": "t1_pkey", "columns": ["k"], "unique": True}],
                    "rows_per_page": 2,
                    "pages": [
                        {"pages_frac": 0.133, "rows": 0},
                        {"pages_frac": 0.4, "rows": 1},
                        {"pages_frac": 0.467, "rows": 2},
                    ],
                },
            ],
            "operation": [
                {
                    "table": "t0",
                    "kind": "update",
                    "pick": {"distribution": "gaussian", "param": 7.29, "scatter": True},
                    "sets": {"a": {}, "b": {"changed_frac": 0.9}, "e": {"changed_frac": 0.1}},
                }
            ],
            "run": {"operations": 1156, "seed": 533358},
        }
    )


def test_pointers_may_share_a_byte_more_or_less() -> None:
    """
    ANALYZE stores long statistics out of line, which takes OIDs that nobody counts here.

    15.18 wrote 1,215,297 bytes. Where no value is short enough to be one of
    the statistics, the figure is exact.
    """
    (cell,) = predict(_replacing(400)).cells
    found = cell.predicted
    assert isinstance(found.wal_bytes, Interval)
    assert found.wal_bytes.low <= 1_215_297 <= found.wal_bytes.high
    assert found.wal_bytes.high - found.wal_bytes.low < 16
    assert (found.n_tup_hot_upd, found.wal_records) == (1092, 5028)

    (cell,) = predict(_replacing(1100)).cells
    assert isinstance(cell.predicted.wal_bytes, int)
