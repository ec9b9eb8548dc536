"""
Workloads to be advised on: profiles from a seed.

Each profile is one table and what is done to it, in the format of `pgheadroom.profile`. A family
varies one thing; `intent` says what its author expects to be the cause of missed HOT updates, or
that the setting is right. Nobody else sees it: advice gets what `observe` saw of a live table.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pgheadroom.profile import Profile, parse_profile

SEED = 20261122
"""Of the generator; another one is another benchmark."""

CYCLE_S = 30.0
"""From one checkpoint to the next, 30 s being the least that a server takes."""

NAPTIME_S = 3.0
"""How often autovacuum looks: ten times a cycle."""

Intent = Literal["room", "index", "keep"]
Section = dict[str, Any]

_FIXED_BYTES = 40  # header of a tuple with its padding 24, id 8, n 4, v 4
_PAGE_BYTES = 8192 - 24
_ROWS_MAX = 9_000
_ROWS_MIN = 3_000
_PAGES_WANTED = 1_000
_TURNS = 2.0  # updates a row in a window, as far as the transactions do
_TRANSACTIONS_MAX = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """
    A profile with its name; `settle` transactions come before the window's `run.operations`.

    `observe_s` is how long a live table of it is watched.
    """

    name: str
    family: str
    intent: Intent
    data: Mapping[str, Any]
    settle: int
    observe_s: float = 10.0

    @property
    def profile(self) -> Profile:
        """The checked profile."""
        return parse_profile(self.data)

    @property
    def window(self) -> int:
        """Transactions of the window: one checkpoint cycle."""
        found: int = self.data["run"]["operations"]
        return found

    @property
    def fillfactor(self) -> int:
        """The current one."""
        found: int = self.data["table"][0]["fillfactor"]
        return found

    @property
    def rate_per_s(self) -> float:
        """Transactions a second of the live table, at which a cycle has the window's."""
        return self.window / CYCLE_S

    @property
    def sha256(self) -> str:
        """Of everything that is played."""
        parts = [self.data, self.settle, self.observe_s]
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@cache
def workloads() -> tuple[Workload, ...]:
    """All workloads, in their order."""
    made = tuple(
        item for family in _FAMILIES for item in family(_Draw(f"{SEED} {family.__name__}"))
    )
    assert len({item.name for item in made}) == len(made), "names are unique"
    return made


def manifest() -> dict[str, Any]:
    """What is committed of them: enough to notice that the generator makes others."""
    return {
        "schema_version": 1,
        "kind": "advice_workloads",
        "seed": SEED,
        "workloads": [
            {
                "name": item.name,
                "family": item.family,
                "intent": item.intent,
                "fillfactor": item.fillfactor,
                "rows": item.data["table"][0]["rows"],
                "window_transactions": item.window,
                "settle_transactions": item.settle,
                "sha256": item.sha256,
            }
            for item in workloads()
        ],
    }


class _Draw:
    """Random choices of one family, so that a new family leaves the others as they are."""

    def __init__(self, seed: str) -> None:
        # random() of a string seed is the same in every version of Python; choice() is not.
        self._random = random.Random(seed)  # noqa: S311 - no secret

    def number(self, low: float, high: float, digits: int = 3) -> float:
        return round(low + (high - low) * self._random.random(), digits)

    def whole(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))


def _strings(draw: _Draw, row_bytes: int) -> list[Section]:
    """Columns that fill a row up to about so many bytes, header included."""
    rest = row_bytes - _FIXED_BYTES
    if rest <= 0:
        return []
    # Blanks of a long bpchar would be compressed by TOAST; hashes hardly are.
    if row_bytes < 1000 and draw.whole(0, 1):
        return [{"name": "filler", "type": f"bpchar({max(rest - 4, 1)})"}]
    spread = draw.number(0.0, 0.5)
    low, high = max(int(rest * (1 - spread)), 1), min(int(rest * (1 + spread)), 1950)
    return [{"name": "note", "type": "text", "width": {"min_bytes": low, "max_bytes": high}}]


def _table(draw: _Draw, row_bytes: int, fillfactor: int = 100, **fields: Any) -> Section:
    per_page = max(_PAGE_BYTES // (row_bytes + 4), 1)
    rows = min(max(per_page * _PAGES_WANTED, _ROWS_MIN), _ROWS_MAX) // 100 * 100
    return {
        "name": "t",
        "rows": rows,
        "fillfactor": fillfactor,
        "columns": [
            {"name": "id", "type": "int8"},
            {"name": "n", "type": "int4"},
            {"name": "v", "type": "int4"},
            *_strings(draw, row_bytes),
        ],
        "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
        **fields,
    }


def _update(pick: Section, sets: Any = ("n",), **fields: Any) -> Section:
    made = {"table": "t", "kind": "update", "sets": sets, "pick": pick, **fields}
    if not isinstance(sets, Mapping):
        made["sets"] = list(sets)
    return made


def _other(kind: str, **fields: Any) -> Section:
    return {"table": "t", "kind": kind, **fields}


_UNIFORM: Section = {"distribution": "uniform"}


def _zipfian(theta: float, *, scatter: bool) -> Section:
    return {"distribution": "zipfian", "theta": theta, "scatter": scatter}


def _hot_set(rows_frac: float, weight: float, *, scatter: bool = True) -> Section:
    return {
        "distribution": "hot_set",
        "rows_frac": rows_frac,
        "weight": weight,
        "scatter": scatter,
    }


def _workload(
    name: str,
    intent: Intent,
    table: Section,
    operations: Sequence[Section],
    *,
    turns: float = _TURNS,
    snapshots: Sequence[Section] = (),
    observe_s: float = 10.0,
) -> Workload:
    """Put a workload together; `turns` updates a row make a window, and as many settle before."""
    scripts: dict[str, Section] = {}
    for n, operation in enumerate(operations):
        scripts.setdefault(operation.get("transaction", f"#{n}"), operation)
    weight = sum(item.get("weight", 1) for item in scripts.values())
    updates = sum(
        scripts[operation.get("transaction", f"#{n}")].get("weight", 1)
        * operation.get("rows_per_statement", 1)
        for n, operation in enumerate(operations)
        if operation["kind"] in ("update", "upsert")
    )
    window = min(int(table["rows"] * turns * weight / max(updates, 1)), _TRANSACTIONS_MAX)
    run: Section = {"operations": window // 10 * 10, "seed": 1 + len(name)}
    if snapshots:
        run["snapshot"] = list(snapshots)
    data = {
        "schema_version": 1,
        "server": {
            "version": "18",
            "shared_buffers": "256MB",
            "full_page_writes": True,
            "autovacuum": True,
            "autovacuum_naptime_s": NAPTIME_S,
            "checkpoint_interval_s": CYCLE_S,
        },
        "table": [table],
        "operation": list(operations),
        "run": run,
    }
    return Workload(
        name=name,
        family=name.rpartition("-")[0],
        intent=intent,
        data=data,
        settle=window // 10 * 10,
        observe_s=observe_s,
    )


def _uniform(draw: _Draw) -> Iterator[Workload]:
    """Every row alike, pages full; from 40 bytes to what stands three times on a page."""
    for row_bytes in (40, 90, 180, 350, 700, 1250, 1900):
        width = row_bytes if row_bytes == 40 else draw.whole(row_bytes - 20, row_bytes + 20)
        yield _workload(f"uniform-{row_bytes}", "room", _table(draw, width), [_update(_UNIFORM)])


def _skewed(draw: _Draw) -> Iterator[Workload]:
    """Zipf's law, hot rows scattered or side by side."""
    for n, row_bytes in enumerate((60, 150, 500, 1500)):
        pick = _zipfian(draw.number(1.01, 1.3), scatter=n != 1)
        yield _workload(f"zipfian-{row_bytes}", "room", _table(draw, row_bytes), [_update(pick)])


def _hot(draw: _Draw) -> Iterator[Workload]:
    """Some rows take most updates, scattered over the table or at its beginning."""
    for n, row_bytes in enumerate((80, 250, 600, 1800)):
        pick = _hot_set(draw.number(0.02, 0.25), draw.number(0.8, 0.98), scatter=n != 2)
        yield _workload(f"hot-{row_bytes}", "room", _table(draw, row_bytes), [_update(pick)])


def _growing(draw: _Draw) -> Iterator[Workload]:
    """Rows get longer with every update, or with some."""
    for n, row_bytes in enumerate((120, 300, 700, 1200)):
        table = _table(draw, _FIXED_BYTES)
        low = row_bytes - _FIXED_BYTES
        width = {"min_bytes": low // 2, "max_bytes": low}
        table["columns"].append({"name": "log", "type": "text", "width": width})
        grows = {"min": 0, "max": max(low // (8 << (n % 2)), 4)}
        sets = {"n": {}, "log": {"grows_bytes": grows}}
        yield _workload(f"growing-{row_bytes}", "room", table, [_update(_UNIFORM, sets)])


def _indexed(draw: _Draw) -> Iterator[Workload]:
    """Updates change a column that an index has: no fillfactor makes them HOT."""
    by_kind: tuple[tuple[str, Section], ...] = (
        ("plain", {"columns": ["v"]}),
        ("wide", {"columns": ["v"]}),
        ("second", {"columns": ["n", "v"]}),
        ("include", {"columns": ["n"], "include": ["v"]}),
        ("partial", {"columns": ["n"], "where": "v >= 0"}),
        ("zipfian", {"columns": ["v"]}),
        ("hot", {"columns": ["v"]}),
        ("lowered", {"columns": ["v"]}),
        ("several", {"columns": ["v"]}),
        ("huge", {"columns": ["v"]}),
        ("expression", {"expressions": ["lower(code)"]}),
    )
    widths = (70, 900, 150, 200, 120, 300, 450, 250, 100, 1700, 160)
    for (kind, index), row_bytes in zip(by_kind, widths, strict=True):
        table = _table(draw, row_bytes, 80 if kind == "lowered" else 100)
        table["indexes"].append({"name": f"t_{kind}", **index})
        sets: Any = ["v"]
        pick: Section = _UNIFORM
        if kind == "zipfian":
            pick = _zipfian(draw.number(1.02, 1.2), scatter=True)
        elif kind == "hot":
            pick = _hot_set(draw.number(0.05, 0.2), draw.number(0.8, 0.95))
        elif kind == "several":
            table["indexes"].append({"name": "t_both", "columns": ["v", "n"]})
        elif kind == "expression":
            code = {"name": "code", "type": "text", "width": {"min_bytes": 8, "max_bytes": 12}}
            table["columns"].append(code)
            sets = ["code"]
        yield _workload(f"indexed-{kind}", "index", table, [_update(pick, sets)])


def _mixed_index(draw: _Draw) -> Iterator[Workload]:
    """An index takes HOT from some of the updates only, or is assigned to and never changed."""
    for name, share, row_bytes in (("half", 1, 110), ("tenth", 9, 220)):
        table = _table(draw, row_bytes)
        table["indexes"].append({"name": "t_v", "columns": ["v"]})
        operations = [_update(_UNIFORM, ["n"], weight=share), _update(_UNIFORM, ["v"])]
        intent: Intent = "index" if share == 1 else "room"
        yield _workload(f"mixed-{name}", intent, table, operations)
    for name, row_bytes in (("narrow", 100), ("wide", 800)):
        table = _table(draw, row_bytes)
        table["indexes"].append({"name": "t_v", "columns": ["v"]})
        sets = {"n": {}, "v": {"changed_frac": 0.0}}
        yield _workload(f"assigned-{name}", "room", table, [_update(_UNIFORM, sets)])


def _once(draw: _Draw) -> Iterator[Workload]:
    """Each row is inserted and updated exactly once: at once, or when its turn has come."""
    for row_bytes in (90, 400):
        operations = [
            _other("insert", transaction="come"),
            _update({"distribution": "newest"}, transaction="come"),
        ]
        table = _table(draw, row_bytes)
        yield _workload(f"once-now{row_bytes}", "room", table, operations, turns=0.7)
    for row_bytes, together in ((110, 1), (350, 1), (160, 5)):
        operations = [
            _other("insert", rows_per_statement=together),
            _update({"distribution": "sequential"}, rows_per_statement=together),
        ]
        # The loaded rows are those that wait: the window ends before they do.
        table = _table(draw, row_bytes)
        yield _workload(f"once-later{row_bytes}", "room", table, operations, turns=0.4)


def _inserting(draw: _Draw) -> Iterator[Workload]:
    """Inserts among the updates; room that is kept in new rows' pages too."""
    for row_bytes, share in ((70, 1), (200, 3), (600, 2), (1400, 4)):
        operations = [
            _update(_UNIFORM, weight=share + draw.whole(0, 2)),
            _other("insert"),
        ]
        yield _workload(
            f"inserts-{row_bytes}", "room", _table(draw, row_bytes), operations, turns=1.2
        )


def _deleting(draw: _Draw) -> Iterator[Workload]:
    """Queues, and rows that leave while others are updated."""
    for row_bytes in (100, 500):
        operations = [
            _other("insert", transaction="turn"),
            _update({"distribution": "newest"}, transaction="turn"),
            _other("delete", pick={"distribution": "oldest"}, transaction="turn"),
        ]
        table = _table(draw, row_bytes, 90 if row_bytes == 100 else 100)
        # As for queues: with the default a vacuum comes twice or three times in a cycle, by luck.
        table["reloptions"] = {"autovacuum_vacuum_scale_factor": "0.02"}
        yield _workload(f"queue-{row_bytes}", "room", table, operations, turns=0.4)
    operations = [
        _update(_UNIFORM, weight=draw.whole(4, 6)),
        _other("insert"),
        _other("delete", pick={"distribution": "oldest"}),
    ]
    yield _workload("deletes-170", "room", _table(draw, 170), operations, turns=1.2)


def _held(draw: _Draw) -> Iterator[Workload]:
    """Another session's snapshot keeps old versions, for a part of each cycle."""
    for row_bytes, fillfactor, length in ((80, 100, 0.3), (300, 100, 0.6), (160, 80, 0.4)):
        pick = _UNIFORM if fillfactor == 100 else _hot_set(0.2, 0.9)
        snapshot = {"start_frac": round(draw.number(0.1, 0.3), 1), "length_frac": length}
        yield _workload(
            f"held-{row_bytes}",
            "room",
            _table(draw, row_bytes, fillfactor),
            [_update(pick)],
            snapshots=[snapshot],
            observe_s=30.0,
        )


def _set_before(draw: _Draw) -> Iterator[Workload]:
    """Somebody has set a fillfactor already: too low, still too high, or right."""
    for name, row_bytes, fillfactor in (
        ("low50", 130, 50),
        ("low60", 60, 60),
        ("low40", 300, 40),
        ("high90", 1100, 90),
        ("high95", 450, 95),
        ("wide70", 1600, 70),
    ):
        intent: Intent = "keep" if name == "wide70" else "room"
        table = _table(draw, row_bytes, fillfactor)
        yield _workload(f"set-{name}", intent, table, [_update(_UNIFORM)])


def _several(draw: _Draw) -> Iterator[Workload]:
    """Several kinds of statements on one table."""
    reading = _other("select", pick=_UNIFORM, weight=draw.whole(3, 5))
    yield _workload("several-reads", "room", _table(draw, 140), [reading, _update(_UNIFORM)])
    upsert = _other("upsert", sets=["n"], pick=_hot_set(0.1, 0.8))
    yield _workload("several-upserts", "room", _table(draw, 120), [upsert], turns=1.5)
    table = _table(draw, 260, 95)
    table["indexes"].append({"name": "t_v", "columns": ["v"]})
    operations = [
        _update(_zipfian(1.1, scatter=True), ["n"], weight=6),
        _update(_UNIFORM, ["n", "v"], weight=1),
        _other("insert", weight=2),
        _other("delete", pick={"distribution": "oldest"}, weight=1),
        _other("select", pick=_UNIFORM, weight=3),
    ]
    yield _workload("several-all", "room", table, operations, turns=1.2)
    operations = [_other("lock", pick=_UNIFORM), _update(_UNIFORM, ["n", "v"])]
    yield _workload("several-locks", "room", _table(draw, 330), operations)


def _fine(draw: _Draw) -> Iterator[Workload]:
    """Nothing to gain: hardly updated, updated where there is room, or set right long ago."""
    rare = _update(_UNIFORM)
    inserts = _other("insert", weight=40)
    yield _workload("fine-log", "keep", _table(draw, 120), [inserts, rare], turns=0.02)
    yield _workload("fine-archive", "keep", _table(draw, 700), [inserts, rare], turns=0.02)
    reads = _other("select", pick=_UNIFORM, weight=60)
    yield _workload("fine-read", "keep", _table(draw, 200), [reads, rare], turns=0.1)
    few = _hot_set(0.001, 0.999, scatter=False)
    yield _workload("fine-counters", "keep", _table(draw, 60), [_update(few)])
    yield _workload("fine-heads", "keep", _table(draw, 400), [_update(few)])
    for row_bytes, fillfactor in ((90, 95), (180, 90), (380, 90), (750, 85)):
        table = _table(draw, row_bytes, fillfactor)
        yield _workload(f"fine-set{row_bytes}", "keep", table, [_update(_UNIFORM)])
    # A BRIN index does not take HOT away since 16.
    table = _table(draw, 150, 92)
    table["indexes"].append({"name": "t_brin", "columns": ["v"], "method": "brin"})
    yield _workload("fine-brin", "keep", table, [_update(_UNIFORM, ["v"])])


_FAMILIES = (
    _uniform,
    _skewed,
    _hot,
    _growing,
    _indexed,
    _mixed_index,
    _once,
    _inserting,
    _deleting,
    _held,
    _set_before,
    _several,
    _fine,
)
