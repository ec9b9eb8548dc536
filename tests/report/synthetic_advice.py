"""Advices as the tests of the report need them: made up, but shaped as `advise` makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pgheadroom.advise.advice import Advice, Observation, Partitions, Verdicts
from pgheadroom.advise.cold_updates import Blamed, Cause
from pgheadroom.advise.foreseen import Calibration, Point, Transition
from pgheadroom.advise.inputs import FittedInput
from pgheadroom.advise.policy import make_policy, with_cost
from pgheadroom.advise.table_advice import AdviceVerdict, Gain, Remark, TableAdvice
from pgheadroom.outcome import Value
from pgheadroom.types import Interval

HOSTILE = 't\x1b[31m"\n<script>alert(1)</script> |`{{ 7 * 7 }}'


def around(mid: float, part: float = 0.02) -> Interval:
    """An interval of that part to each side."""
    return Interval(low=mid * (1 - part), mid=mid, high=mid * (1 + part), level=0.9)


def curve(*, scale: float = 1.0, rate: float = 50.0) -> tuple[Point, ...]:
    """HOT share rising to 1 at 80, size growing, WAL falling."""
    found = []
    for fillfactor in range(100, 45, -5):
        lost = max(0.0, (fillfactor - 80) / 30)
        hot: Value = around(1 - lost) if lost else 1.0
        point = Point(
            fillfactor=fillfactor,
            hot_frac=hot,
            newpage_frac=around(lost) if lost else 0.0,
            heap_bytes=1.2e8 * scale * 100 / fillfactor,
            index_bytes=3e7 * scale * (1 + lost),
            wal_bytes_per_update=around(180 + 420 * lost),
            all_wal_bytes_per_update=around(280 + 620 * lost),
            pages_modified_per_update=0.4 + lost,
            seq_scan_pages=1.2e8 * scale * 100 / fillfactor / 8192,
            misses_per_update=0.1 + 0.1 * lost,
        )
        found.append(
            with_cost(point, make_policy().prices, updates_per_s=rate, seq_scans_per_s=0.001)
        )
    return tuple(found)


def table(
    name: str = "orders", verdict: AdviceVerdict = "CHANGE", *, oid: int = 16384, **given: Any
) -> TableAdvice:
    """One table with everything that an advice can say."""
    change = verdict == "CHANGE"
    abstain = verdict == "ABSTAIN"
    found = TableAdvice(
        table=name,
        schema="public",
        name=name,
        oid=oid,
        relfilenode=oid + 6,
        parent=None,
        rows=1_000_000,
        heap_bytes=121_634_816,
        wal_bytes_per_update=around(455),
        fillfactor=100 if change else 90,
        updates_per_s=50.25,
        updates=15075,
        hot_frac=0.334,
        verdict=verdict,
        reason={
            "CHANGE": "a third of the updates find no room on their page",
            "KEEP": "no setting saves more than 2 % of the cost",
            "ABSTAIN": "no source says which columns the updates assign",
        }[verdict],
        advised_fillfactor=80 if change else None if abstain else 90,
        gain_frac=around(0.31) if change else None,
        causes=(
            Cause(
                kind="hot", updates=5035, frac=0.334, evidence="measured",
                detail="by the counters", wal_bytes=906_300.0,
            ),
            Cause(
                kind="indexed_column", updates=around(2000.0), frac=around(0.1327),
                evidence="estimated", detail="orders_state_idx has a column that changed",
                indexes=(
                    Blamed(
                        name=f"{name}_state_idx", columns=("state",), updates=around(2000.0),
                        certainty="certain", scans=12, total_scans=40_000,
                    ),
                ),
                wal_bytes=around(1.2e6),
            ),
            Cause(
                kind="no_room", updates=around(7900.0), frac=around(0.524), evidence="measured",
                detail="new-page updates", wal_bytes=around(4.7e6),
            ),
            Cause(
                kind="unknown", updates=140, frac=0.0093, evidence="estimated",
                detail="nobody saw these statements",
            ),
        ),
        calibration=None if abstain else Calibration(
            observed_hot_frac=0.334,
            predicted_hot_frac=around(0.34),
            observed_newpage_frac=0.524,
            predicted_newpage_frac=around(0.52),
            agrees=True,
            fitted=(FittedInput(quantity="changed_frac", of=f"{name}.state", value=0.13),),
            note="The measured share lies inside the predicted interval.",
        ),
        curve=() if abstain else curve(),
        transition=Transition(
            verdict="converges", after_s=5400.0, after_updates_per_row=0.27,
            final_hot_frac=0.98, rewritten_hot_frac=1.0, final_heap_bytes=1.6e8,
        ) if change else None,
        remarks=(
            Remark(
                kind="index", text=f"Without {name}_state_idx these updates could be HOT.",
                evidence="predicted",
                gain={"hot_frac": Gain(now=0.334, then=around(0.95)),
                      "wal_bytes_per_update": Gain(now=440.0, then=190.0)},
                statements=({"sql": "DROP INDEX CONCURRENTLY x;", "undo": "CREATE INDEX x;"},),
            ),
        ) if change else (),
        missing=("pg_stats of public.orders",) if abstain else (),
    )  # fmt: skip
    return replace(found, **given)


def advice(*tables: TableAdvice, **given: Any) -> Advice:
    """An advice for some tables; by default one of each verdict."""
    own = tables or (
        table(),
        table("customers", "KEEP", oid=16400, remarks=()),
        table("events", "ABSTAIN", oid=16410),
    )
    found = Advice(
        tool_version="0.1",
        observation=Observation(
            server_version="18.4",
            database="shop",
            database_oid=5,
            system_identifier="7",
            observed_at="2026-11-20T10:00:00+00:00",
            interval_s=300.0,
            masked=False,
            levels=("pg_monitor", "pg_read_all_data"),
            missing=("the sizes of pages that are free",),
            broken=(),
            modules={},
        ),
        policy=make_policy().stated(),
        first=(
            Remark(
                kind="horizon",
                text="Process 4711 holds the horizon since 3 hours: no fillfactor helps meanwhile.",
                evidence="measured",
                gain={},
                statements=({"sql": "SELECT pg_terminate_backend(4711);", "undo": ""},),
            ),
        ),
        tables=own,
        partitioned=(),
        assumed=("one client at a time",),
    )
    return replace(found, **given)


def many(changes: int = 40, keeps: int = 400) -> Advice:
    """A database of hundreds of tables."""
    return advice(
        *(table(f"change_{place}", oid=20000 + place) for place in range(changes)),
        *(table(f"keep_{place}", "KEEP", oid=30000 + place) for place in range(keeps)),
        table("open", "ABSTAIN"),
    )


def partitioned() -> Advice:
    """A partitioned table with partitions of every verdict, as `advise` sums them up."""
    own = (
        *(table(f"part_{place}", oid=40000 + place) for place in range(3)),
        table("part_old", "KEEP", oid=40010),
        table("part_odd", "ABSTAIN", oid=40011),
    )
    summary = Partitions(
        schema="sales",
        name="events",
        partitions=tuple(part.table for part in own),
        verdicts=Verdicts(change=3, keep=1, abstain=1),
        advised_fillfactors=(85,),
        updates_per_s=12.5,
    )
    return replace(advice(*own), partitioned=(summary,))


def hostile() -> Advice:
    """Names that would be markup, escape sequences or formulas."""
    found = table(HOSTILE, reason=f"because {HOSTILE}")
    return advice(
        found, replace(found, verdict="KEEP", name="=cmd|x", advised_fillfactor=100, oid=3)
    )
