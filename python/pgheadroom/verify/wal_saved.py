"""
How much less of the write-ahead log is written than before, for what dropped indexes are said to.

    saved = WAL a changed row before - WAL a changed row now
    share = saved / (entries that are not made any more x their bytes, a changed row)

The share is 1 where the claim is right to the byte. Full-page images are taken out: by their bytes
from 19 on, before that by their number, of which each is a page at most; what is not known of them
makes the interval wider. So does a mix of rows that is another one than before.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgheadroom.plan.remedies import Claim, RemedyStep, TableWork, WalWindow
from pgheadroom.plan.values import Plan
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES, percent
from pgheadroom.verify.comparing import ForecastVerdict

_ROWS_MIN = 1000
_WIDTH_MAX = 0.25
"""An interval of the share that is wider to either side tells nothing of a claim of a tenth."""
_OTHERS_FRAC = 0.02
"""Of the log: vacuums, commits and messages that one interval has and another one has not. Where
they are most of it, what an index wrote is hidden by them. Arbitrary."""
_KINDS = ("inserts", "updates", "hot_updates", "deletes")
WalJudged = tuple[Interval | None, ForecastVerdict, str]


def judge_wal(
    plan: Plan, done: Sequence[tuple[RemedyStep, Claim]], now: WalWindow | None
) -> WalJudged:
    """
    Judge all claims about the log together.

    Args:
        plan: With what was watched before.
        done: Steps that were carried out, with these claims.
        now: What was watched now.

    Returns:
        The share of what was foreseen that is really saved, with its interval.
    """
    before = plan.wal
    if before is None:
        return (
            None,
            "not comparable",
            ("the plan was made without an interval, so what was written before is not known"),
        )
    if now is None:
        return None, "not comparable", "statistics were reset in the interval"
    why = _added(plan)
    if why is not None:
        return None, "not comparable", why
    if min(before.rows, now.rows) < _ROWS_MIN:
        few = f"{before.rows:,} rows changed before and {now.rows:,} now"
        return None, "undecided", f"{few}: {_ROWS_MIN:,} are needed"
    entries = {table.oid: table.entries for table in now.tables}
    foreseen = 0.0
    for step, claim in done:
        assert step.table is not None, "an index is of a table"
        foreseen += claim.foreseen.mid * entries.get(step.table.oid, 0)
    if not foreseen:
        return None, "undecided", "the tables were not written in the interval"
    foreseen /= now.rows
    was, is_now = _a_row(before), _a_row(now)
    mixed = mixed_frac(before, now)
    doubt = (mixed + _OTHERS_FRAC) * max(was.high, is_now.high)
    low, high = was.low - is_now.high - doubt, was.high - is_now.low + doubt
    mid = (was.mid - is_now.mid) / foreseen
    share = Interval(
        low=min(low / foreseen, mid), mid=mid, high=max(high / foreseen, mid), level=0.9
    )
    note = f"{was.mid:,.0f} bytes of WAL a changed row before, {is_now.mid:,.0f} now"
    claimed = done[0][1].foreseen
    least, most = claimed.low / claimed.mid, claimed.high / claimed.mid
    if (share.high - share.low) / 2 > _WIDTH_MAX:
        return share, "undecided", f"{note}; {_why_wide(before, now, mixed)}"
    if share.low > most or share.high < least:
        return share, "failed", note
    return share, "held", note


def _added(plan: Plan) -> str | None:
    """Other steps that change what is written for a row."""
    dropped = {
        step.table.oid
        for step in plan.remedies or ()
        if step.kind == "drop_index" and step.table is not None
    }
    for step in plan.remedies or ():
        if step.kind == "create_index" and step.table is not None and step.table.oid in dropped:
            return f"the plan also makes an index ({step.about}), which is written from then on"
    return None


def _a_row(window: WalWindow) -> Interval:
    """WAL a changed row without images."""
    if window.image_bytes is not None:
        low = high = float(window.wal_bytes - window.image_bytes)
    else:
        low, high = float(window.wal_bytes - window.images * PAGE_BYTES), float(window.wal_bytes)
    low = max(low, 0.0)
    mid = (low + high) / 2
    rows = window.rows
    return Interval(low=low / rows, mid=mid / rows, high=high / rows, level=1.0)


def mixed_frac(before: WalWindow, now: WalWindow) -> float:
    """By which part of the changed rows the two differ in table and kind."""
    shares = [_shares(window) for window in (before, now)]
    return (
        sum(
            abs(shares[0].get(key, 0.0) - shares[1].get(key, 0.0))
            for key in {*shares[0], *shares[1]}
        )
        / 2
    )


def _shares(window: WalWindow) -> dict[tuple[int, str], float]:
    found = {(0, "elsewhere"): window.elsewhere_rows / window.rows}
    for table in window.tables:
        for kind in _KINDS:
            found[table.oid, kind] = _of(table, kind) / window.rows
    return found


def _of(table: TableWork, kind: str) -> int:
    """HOT updates are a kind of their own, beside the others."""
    if kind == "updates":
        return table.updates - table.hot_updates
    count: int = getattr(table, kind)
    return count


def _why_wide(before: WalWindow, now: WalWindow, mixed: float) -> str:
    """What makes the interval so wide, the most of it."""
    if mixed > 0.05:
        return f"{percent(mixed)} of the changed rows are of other tables or kinds than before"
    if not any(window.images and window.image_bytes is None for window in (before, now)):
        return "what the indexes wrote is too small a part of that: other WAL hides it"
    return (
        f"{before.images:,} full-page images before and {now.images:,} now, whose bytes are not "
        "counted, hide it: watch longer, and not right behind a checkpoint"
    )
