"""
What a rule is, and what it is told: rows of its query, counters over a time, settings, the clock.

    RULE = Rule(id=..., question=..., sql={15: ...}, decide=...)     rules/NAME.py
    [[rule]]                                                         rules/NAME.toml

A rule looks by one query of its own, which reads catalogs and statistics and nothing else. With
`counters` the query is asked at both ends of an interval, where there is one, and those columns
are what was counted between; else they are what was counted since `since_epoch_s` of the row, or
since this database's statistics began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.bloat.asking import Ask
from pgheadroom.defaults import JUDGED_FROM_S, RATES_FROM_S
from pgheadroom.doctor.values import (
    Basis,
    Blind,
    Finding,
    FindingNumber,
    Price,
    Remedy,
    Severity,
    no_price,
)
from pgheadroom.units import show_age, show_duration

if TYPE_CHECKING:
    import psycopg

DAY_S = 86_400.0
QueryRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    What every rule may know beside its own rows.

    Attributes:
        major: The server's version.
        now_s: The server's clock, seconds since 1970.
        interval_s: Between the two readings; None: there was one.
        since_s: From when on this database's statistics count; None: nothing says it.
        is_standby: The server is one.
        has_standbys: A standby is connected, or a physical slot waits for one.
        monitors: The role sees other users' sessions.
        settings: All settings, in the unit that pg_settings has.
        is_partly_reset: Some counters of this database are older than `since_s`: only those of a
            table were reset then.
        was_promoted: It has been a standby, or comes of a backup (its timeline is not the first).
        promoted_s: Since when it is none; None: it never was, or the role may not see it.
    """

    major: int
    now_s: float
    interval_s: float | None
    since_s: float | None
    is_standby: bool
    has_standbys: bool
    monitors: bool
    settings: Mapping[str, str]
    is_partly_reset: bool = False
    was_promoted: bool = False
    promoted_s: float | None = None

    def length_s(self, row: QueryRow) -> float | None:
        """Over which time the counters of a row were counted; None: nothing says it."""
        if self.interval_s is not None:
            return self.interval_s
        since_s = row.get("since_epoch_s", None if self.is_partly_reset else self.since_s)
        return None if since_s is None else max(self.now_s - float(since_s), 0.0)

    def tells_rates(self, row: QueryRow) -> bool:
        """Whether that time is long enough to speak of a day."""
        if self.interval_s is not None:
            return True
        length_s = self.length_s(row)
        return length_s is not None and length_s >= RATES_FROM_S

    @property
    def judges_rates(self) -> bool:
        """Whether a rate may say how severe something is: an interval may be too short for it."""
        return self.interval_s is None or self.interval_s >= JUDGED_FROM_S

    def a_day(self, row: QueryRow, count: float) -> float | None:
        """What was counted, as so much a day; None where that cannot be said."""
        length_s = self.length_s(row)
        if not self.tells_rates(row) or not length_s:
            return None
        return count * DAY_S / length_s

    def over(self, row: QueryRow) -> str:
        """The time in words."""
        length_s = self.length_s(row)
        if self.interval_s is not None:
            return f"in the {show_duration(self.interval_s)} watched"
        if length_s is None:
            return "since the statistics began"
        return f"in the {show_age(length_s)} that the statistics reach back"

    def number(self, name: str) -> float:
        """A setting as the number that pg_settings has."""
        return float(self.settings[name])


Decide = Callable[[Facts, Sequence[QueryRow]], Iterable[Finding | Blind]]
Look = Callable[[Facts, Sequence[QueryRow], Ask], Sequence[QueryRow]]
ReadRows = Callable[[Facts, Sequence[QueryRow], "psycopg.Connection[Any]"], Sequence[QueryRow]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """
    One thing to look for, whole.

    Attributes:
        id: What it is called, for people to type.
        question: What it asks.
        book: Rows of the catalogue of checks that it answers (docs/doctor.md).
        sql: Its query, by the major version from which it stands.
        decide: Makes findings of the rows.
        threshold: When it is a finding, and why from there on.
        severity: When it is which, by effect.
        price: What its price is and where it comes from.
        remedy: What to do, in general.
        blind: What it cannot see.
        link: A page of PostgreSQL's manual.
        counters: Columns that count.
        key: Columns by which a row is known again at the interval's end.
        is_rate: It says nothing where no rate can be told.
        needs_monitor: It is blind to other users' sessions without pg_read_all_stats.
        on_standby: It has something to say there.
        look: Asks further of the rows that may become findings, and gives these with the answers:
            what would take too long, or a lock, where all are asked.
        reads: Reads rows of the tables that are left then, within a budget of pages.
    """

    id: str
    question: str
    book: tuple[str, ...]
    sql: Mapping[int, str]
    decide: Decide
    threshold: str
    severity: str
    price: str
    remedy: str
    blind: str
    link: str
    counters: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    is_rate: bool = False
    needs_monitor: bool = False
    on_standby: bool = True
    look: Look | None = None
    reads: ReadRows | None = None

    def text_for(self, major: int) -> str | None:
        """The query for that version; None where the version has nothing to ask."""
        fitting = [since for since in self.sql if major >= since]
        return self.sql[max(fitting)] if fitting else None

    def finding(
        self,
        severity: Severity,
        about: str,
        text: str,
        *,
        remedy: Remedy,
        price: Price | None = None,
        **numbers: FindingNumber,
    ) -> Finding:
        """A finding of this rule."""
        return Finding(
            rule=self.id,
            severity=severity,
            object=about,
            text=text,
            numbers=numbers,
            price=price or no_price(self.price),
            remedy=remedy,
        )


def bytes_a_day(amount: float | None, text: str, *, basis: Basis = "estimated") -> Price:
    """A price in bytes a day; without an amount there is none, for the statistics are too young."""
    if amount is None:
        return no_price("the statistics are too young to tell a day's worth")
    return Price(amount=round(amount), unit="bytes a day", basis=basis, text=text)


def bytes_held(amount: float, text: str, *, basis: Basis = "measured") -> Price:
    """A price in bytes that are there."""
    return Price(amount=round(amount), unit="bytes", basis=basis, text=text)
