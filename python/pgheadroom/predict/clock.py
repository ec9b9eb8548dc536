"""
How fast a run goes: what the twin's clock has to be told, and what it then tells of the server.

The twin knows no machine. A profile at a rate says when its transactions arrive; any other run
needs transactions a second, from whoever asks or by assumption.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pgheadroom import _core
from pgheadroom.errors import ParameterError
from pgheadroom.outcome import Value
from pgheadroom.predict.spread import counted
from pgheadroom.profile import Profile

TPS_PER_CLIENT = 1000.0
"""Where nobody says more: a millisecond a transaction, about what a commit's flush takes on a
good disk; arbitrary."""

Pace = tuple[Literal["even", "arrivals"], float]
"""Transactions a second, evenly; or the seconds within which they arrive."""

Kind = Literal["autovacuum", "autoanalyze", "checkpoint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """
    Something that the twin's server did by itself.

    `ended_s` is None when it went on after the run; `pages` are those that a vacuum or analyze
    looked at, or that a checkpoint had to write.
    """

    kind: Kind
    table: str | None
    is_toast: bool
    began_s: float
    ended_s: float | None
    pages: int

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {
            "kind": self.kind,
            "table": f"{self.table} (TOAST)" if self.is_toast else self.table,
            "began_s": round(self.began_s, 3),
            "ended_s": None if self.ended_s is None else round(self.ended_s, 3),
            "pages": self.pages,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ByItself:
    """
    What the server does by itself in a run, as the runs of the twin have it.

    `counts` are how often, by kind; `happened` is the first run's, as an example of the times.
    """

    duration_s: float
    counts: dict[str, Value]
    happened: tuple[Happened, ...]

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {
            "duration_s": self.duration_s,
            **{
                key: value if value is None or isinstance(value, int | float) else value.to_json()
                for key, value in self.counts.items()
            },
            "example": [item.to_json() for item in self.happened],
        }


def has_clockwork(profile: Profile) -> bool:
    """Whether the server does something by the clock: autovacuum, or checkpoints."""
    server = profile.server
    return (
        server.autovacuum
        or server.checkpoint_interval_s is not None
        or server.max_wal_size_bytes is not None
    )


def tps_of(profile: Profile, tps: float | None) -> tuple[float, str]:
    """
    Transactions a second of all clients together, and where that is from.

    Raises:
        InputError: `tps` is not positive, or the profile has a rate already.
    """
    run = profile.workload.run
    if tps is not None and not (math.isfinite(tps) and tps > 0):
        raise ParameterError("tps", f"{tps:g}: expected a number above 0")
    if run.rate_per_s is not None:
        if tps is not None:
            raise ParameterError(
                "tps",
                f"{tps:g}: the profile has run.rate_per_s = {run.rate_per_s:g}, expected one "
                "of the two",
            )
        return run.rate_per_s, "run.rate_per_s"
    if tps is not None:
        return tps, f"{tps:g} transactions a second by --tps"
    assumed = TPS_PER_CLIENT * run.clients
    return assumed, (
        f"{assumed:g} transactions a second, a millisecond each in {run.clients} "
        f"client{'s' if run.clients > 1 else ''}: a guess, --tps says better"
    )


def pace_of(profile: Profile, tps: float | None) -> Pace:
    """How transactions follow each other."""
    run = profile.workload.run
    per_s, _ = tps_of(profile, tps)
    if run.rate_per_s is not None:
        assert run.duration_s is not None, "a rate belongs to a duration"
        return ("arrivals", run.duration_s)
    return ("even", per_s)


def by_itself(runs: Sequence[_core.Simulated]) -> ByItself | None:
    """What the server did in these runs; None without a clock."""
    duration_s = runs[0].duration_s
    if duration_s is None:
        return None
    kinds: tuple[tuple[str, Kind], ...] = (
        ("autovacuums", "autovacuum"),
        ("autoanalyzes", "autoanalyze"),
        ("checkpoints", "checkpoint"),
    )
    counts: dict[str, Value] = {
        key: counted([sum(item[0] == kind for item in run.happened) for run in runs])
        for key, kind in kinds
    }
    return ByItself(duration_s=duration_s, counts=counts, happened=happened_in(runs[0]))


def happened_in(run: _core.Simulated) -> tuple[Happened, ...]:
    """What happened in one run, in the order of its beginning."""
    return tuple(
        Happened(
            kind=kind,
            table=table,
            is_toast=is_toast,
            began_s=began_s,
            ended_s=ended_s,
            pages=pages,
        )
        for kind, table, is_toast, began_s, ended_s, pages in run.happened
    )
