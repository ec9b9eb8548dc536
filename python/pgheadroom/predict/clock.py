"""
How fast a run goes: what the twin's clock has to be told, and what it then tells of the server.

The twin knows no machine. A profile at a rate says when its transactions arrive; any other run
needs transactions a second, from whoever asks or by assumption.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pgheadroom import _core
from pgheadroom.errors import ParameterError
from pgheadroom.forms import Stored, in_file
from pgheadroom.outcome import Value
from pgheadroom.predict.chance import counted
from pgheadroom.profile import Profile

TPS_PER_CLIENT = 1000.0
"""Where nobody says more: a millisecond a transaction, about what a commit's flush takes on a
good disk; arbitrary."""

Pace = tuple[Literal["even", "arrivals"], float]
"""Transactions a second, evenly; or the seconds within which they arrive."""

ClockEventKind = Literal["autovacuum", "autoanalyze", "checkpoint"]

MomentS = Annotated[float, Stored(float, dump=lambda moment_s: round(moment_s, 3))]
"""Seconds since the run began, in files to the millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """
    Something that the twin's server did by itself.

    `table` is `jobs (TOAST)` for the TOAST table of `jobs`; `ended_s` is None when it went on after
    the run; `pages` are those that a vacuum or analyze looked at, or that a checkpoint had to
    write.
    """

    kind: ClockEventKind
    table: str | None
    began_s: MomentS
    ended_s: MomentS | None
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ByItself:
    """
    What the server does by itself in a run, as the runs of the twin have it.

    How often is by kind; `happened` is the first run's, as an example of the times.
    """

    duration_s: float
    autovacuums: Value
    autoanalyzes: Value
    checkpoints: Value
    happened: tuple[Happened, ...] = field(metadata=in_file("example"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """
    How fast a run goes on the twin's clock.

    Attributes:
        per_s: Transactions a second of all clients together.
        said: Where that is from, in words.
        duration_s: How long the run is.
        at_rate: Whether transactions arrive by chance, as pgbench's throttle has them come, rather
            than evenly.
    """

    per_s: float
    said: str
    duration_s: float
    at_rate: bool = False

    @property
    def pace(self) -> Pace:
        """How transactions follow each other."""
        return ("arrivals", self.duration_s) if self.at_rate else ("even", self.per_s)


def has_clockwork(profile: Profile) -> bool:
    """Whether the server does something by the clock: autovacuum, or checkpoints."""
    server = profile.server
    return (
        profile.may_autovacuum
        or server.checkpoint_interval_s is not None
        or server.max_wal_size_bytes is not None
    )


def clock_of(profile: Profile, tps: float | None = None) -> Clock:
    """
    How fast a profile's run goes.

    Args:
        profile: The profile.
        tps: Transactions a second of all clients together; None: as the profile says, or assumed.

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
        assert run.duration_s is not None, "a rate belongs to a duration"
        return Clock(
            per_s=run.rate_per_s, said="run.rate_per_s", duration_s=run.duration_s, at_rate=True
        )
    per_s = TPS_PER_CLIENT * run.clients if tps is None else tps
    said = f"{per_s:g} transactions a second, as asked for"
    if tps is None:
        said = (
            f"{per_s:g} transactions a second, a millisecond each in {run.clients} "
            f"client{'s' if run.clients > 1 else ''}: a guess, for nobody said it"
        )
    if run.duration_s is not None:
        return Clock(per_s=per_s, said=said, duration_s=run.duration_s)
    assert run.operations is not None, "a run has one of the two"
    return Clock(per_s=per_s, said=said, duration_s=run.operations / per_s)


def by_itself(runs: Sequence[_core.Simulated]) -> ByItself | None:
    """What the server did in these runs; None without a clock."""
    duration_s = runs[0].duration_s
    if duration_s is None:
        return None

    def often(kind: ClockEventKind) -> Value:
        return counted([sum(item[0] == kind for item in run.happened) for run in runs])

    return ByItself(
        duration_s=duration_s,
        autovacuums=often("autovacuum"),
        autoanalyzes=often("autoanalyze"),
        checkpoints=often("checkpoint"),
        happened=happened_in(runs[0]),
    )


def happened_in(run: _core.Simulated) -> tuple[Happened, ...]:
    """What happened in one run, in the order of its beginning."""
    return tuple(
        Happened(
            kind=kind,
            table=f"{table} (TOAST)" if is_toast else table,
            began_s=began_s,
            ended_s=ended_s,
            pages=pages,
        )
        for kind, table, is_toast, began_s, ended_s, pages in run.happened
    )
