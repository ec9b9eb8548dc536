"""
How much less sure a forecast of HOT is than the runs of the twin show, and why.

An advice's runs have statements that update as many rows each and are transactions of their own, by
one client, or by as many as insert where it is known that rows are updated while their page is
being filled. What else several clients, statements of many rows (whose number nobody knows but in
the mean) and transactions of several statements do to HOT is not played: versions stay until the
transaction ends, and several rows of a page want room at once. Rows that grow by updates of which
it is not known what they fill are played at their mean length: that width is arithmetic, of the
room they take. How wide each of the others makes the interval is measured (docs/method/advise.md);
they are independent, so their squares add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pgheadroom.advise.filling import unplayed_growth_frac
from pgheadroom.advise.scenario import writes
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile

CLIENTS_FRAC = 0.01
STATEMENTS_FRAC = 0.02
ROWS_FRAC = 0.08
"""Half-widths of the HOT share; 90 % of those measured lay within: docs/method/advise.md."""

_STATEMENTS_FROM = 1.1  # statements a commit; BEGIN is one too
_ROWS_FROM = 1.5  # rows a statement
_GROWN_FROM = 0.001  # of the updates: less is not seen
_AGE_FROM_XIDS = 2.0  # one client's own snapshot is one transaction old, at most
_MOMENTS_MIN = 5  # fewer looks at the horizon say nothing; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraWidth:
    """A half-width that comes on top, as a share of the updates, and what it is for."""

    half: float
    why: tuple[str, ...]

    @property
    def text(self) -> str:
        """As a sentence; empty where nothing is known that makes it wider."""
        if not self.why:
            return ""
        return (
            f"HOT may be off by another {100 * self.half:.1f} points: {', '.join(self.why)}, "
            "which the runs play in part at most"
        )


def width_of(profile: Profile, table: TableProfile) -> ExtraWidth:
    """
    Read what makes a forecast of a table less sure.

    Args:
        profile: Made by `observe`.
        table: One of its tables.
    """
    found: list[tuple[float, str]] = []
    if (age := _median_age_xids(profile)) is not None and age >= _AGE_FROM_XIDS:
        found.append((CLIENTS_FRAC, "several clients write at a time"))
    rows = _rows_a_statement(profile, table)
    if rows >= _ROWS_FROM:
        found.append((ROWS_FRAC, f"a statement updates {rows:.3g} rows in the mean"))
    statements = _statements_a_commit(profile)
    if statements is not None and statements >= _STATEMENTS_FROM:
        found.append((STATEMENTS_FRAC, "transactions have several statements"))
    grown = unplayed_growth_frac(table, writes(profile, table.name))
    if grown >= _GROWN_FROM:
        found.append((grown, "updates give values to columns that were NULL, and rows grow"))
    return ExtraWidth(
        half=math.sqrt(math.fsum(half * half for half, _ in found)),
        why=tuple(why for _, why in found),
    )


def _rows_a_statement(profile: Profile, table: TableProfile) -> float:
    """
    Of its updates, the most in the mean: as counted, and as they are played.

    What a row goes through is played in turns, of one row each: only what was counted says then
    that one statement updates many.
    """
    played = [o.rows_mean for o in writes(profile, table.name) if o.is_update]
    classes = () if table.observed is None else table.observed.updates.classes or ()
    counted = [
        found.rows / found.calls
        for found in classes
        if found.kind == "update" and found.rows and found.calls
    ]
    return max([1.0, *played, *counted])


def _median_age_xids(profile: Profile) -> float | None:
    """How old the oldest snapshot mostly was, in transactions that had begun since."""
    observed = profile.server.observed
    series = () if observed is None else observed.horizon.series or ()
    ages: Sequence[float] = [
        float(moment.age_xids)
        for moment in series
        if moment.age_xids is not None and moment.oldest_xid is not None
    ]
    return median(ages) if len(ages) >= _MOMENTS_MIN else None


def _statements_a_commit(profile: Profile) -> float | None:
    """Of the whole server, where pg_stat_statements has counted statements."""
    observed = profile.server.observed
    if observed is None:
        return None
    database = observed.counters.database
    commits = None if database is None else database.xact_commit
    calls = [
        found.calls for found in observed.statements or () if found.source == "pg_stat_statements"
    ]
    return calls[0] / commits if calls and commits else None
