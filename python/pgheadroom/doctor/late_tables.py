"""
Tables to which autovacuum comes too late: watched beside the interval, and told what is foreseen.

    wait      which tables it is, by the rules; then the interval, in which their counters and
              statements are read as `observe` reads them, without samples
    tell      the findings, with what the twin foresees at the settings in force and at others
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pgheadroom.doctor.examining import Examination
from pgheadroom.doctor.foreseeing import (
    AS_IT_IS,
    BUDGET_S,
    Foreseen,
    Way,
    WaysAsked,
    WaysForeseen,
    foresee,
    is_horizon_held,
    raised_limit,
)
from pgheadroom.doctor.rule import Rule
from pgheadroom.doctor.values import Diagnosis, Finding, FindingNumber
from pgheadroom.errors import HeadroomError
from pgheadroom.observe import observe, request_of
from pgheadroom.observe.classes import find_classes
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.progress import Say
from pgheadroom.sources.observing import watch
from pgheadroom.units import show_duration

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.sources.recording import Recording

FORESEEN_RULES = ("autovacuum-late", "autovacuum-off", "large-table-trigger")
_TABLES_MAX = 3
_WATCHED_FROM_S = 20.0
"""In less, what sessions have not reported by its end (1 s) is too much of a table's counters."""


@dataclass
class LateTables:
    """
    The tables of one examination.

    Attributes:
        connection: From `read_only_session`.
        rules: That look; those of this subject are asked before the interval too.
        say: Told what happens.
        sleep: Waits.
        ahead_s: As of the examination.
    """

    connection: psycopg.Connection[Any]
    rules: Sequence[Rule]
    say: Say
    sleep: Callable[[float], None] = time.sleep
    ahead_s: float = 0.0
    _late: tuple[str, ...] = ()
    _recording: Recording | None = None

    def wait(self, interval_s: float) -> None:
        """Let the interval pass, and read what is done to them."""
        if interval_s >= _WATCHED_FROM_S:
            self._late = self._found()
        if not self._late:
            self.sleep(interval_s)
            return
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        request = request_of(interval_s, samples=False, tables=self._late)
        began_s = time.monotonic()
        try:
            self._recording = watch(
                self.connection, request, lambda _: None, lambda *_: None, self.sleep
            )
        except (HeadroomError, psycopg.Error):  # one of them is gone by now, or is locked
            if self.connection.broken or self.connection.closed:
                raise
            self.sleep(max(interval_s - (time.monotonic() - began_s), 0.0))

    def _found(self) -> tuple[str, ...]:
        """Which they are now, the worst first."""
        rules = [rule for rule in self.rules if rule.id in FORESEEN_RULES]
        if not rules:
            return ()
        found = Examination(self.connection, rules, ahead_s=self.ahead_s).end().findings
        return tuple(dict.fromkeys(one.object for one in found if _is_own(one)))[:_TABLES_MAX]

    def tell(self, diagnosis: Diagnosis, *, budget_s: float = BUDGET_S) -> Diagnosis:
        """
        The findings with what is foreseen of them.

        Args:
            diagnosis: Of the interval.
            budget_s: Seconds of processor time for the twin.
        """
        if self._recording is None:
            return diagnosis
        about = [
            one
            for one in diagnosis.findings
            if one.rule in FORESEEN_RULES and one.object in self._late and _is_own(one)
        ]
        if not about:
            return diagnosis
        try:
            profile = profile_of(self._recording, self._late)
        except HeadroomError as error:
            return _with(diagnosis, [_told(one, "", str(error)) for one in about])
        asked = [(one, ways) for one in about if (ways := _ways(one, profile)) is not None]
        self.say("playing the tables to which autovacuum comes late")
        answers = foresee(profile, [way.question for _, way in asked], budget_s=budget_s)
        told = [
            _told(one, ways.other, answer)
            for (one, ways), answer in zip(asked, answers, strict=True)
        ]
        return _with(diagnosis, told)


def _is_own(finding: Finding) -> bool:
    """Whether it is of a table; those of TOAST tables go with theirs."""
    return finding.numbers["oid"] == finding.numbers.get("table_oid", finding.numbers["oid"])


def profile_of(recording: Recording, tables: tuple[str, ...]) -> Profile:
    """What was watched of the tables, as `observe` writes it of all."""
    classes = find_classes(recording, (), ())
    return observe(recording, classes, mask=False, sampled=False, only=tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is asked of a table: as it is set, and otherwise, in words."""

    question: WaysAsked
    other: str


def _ways(finding: Finding, profile: Profile) -> _Asked | None:
    """What is asked for a finding; None where the profile does not have its table."""
    oid = finding.numbers["oid"]
    for table in profile.tables:
        if table.observed is None or table.observed.oid != oid:
            continue
        other, said = _remedied(finding, profile, table)
        return _Asked(question=WaysAsked(table=table.name, ways=(AS_IT_IS, other)), other=said)
    return None


def _remedied(finding: Finding, profile: Profile, table: TableProfile) -> tuple[Way, str]:
    """How autovacuum would be set, and that in words."""
    if finding.rule == "autovacuum-off":
        return Way(autovacuum=True, options={"autovacuum_enabled": None}), "with autovacuum on"
    if finding.rule == "large-table-trigger":
        options = dict(_OPTION.findall(finding.remedy.sql[0].partition(" SET ")[2]))
        said = ", ".join(f"{name} = {value}" for name, value in options.items())
        return Way(options=options), f"with {said}"
    if is_horizon_held(profile):
        return Way(is_held=False), "with nobody who holds the horizon"
    name, value = "autovacuum_vacuum_cost_limit", str(raised_limit(profile.server, table))
    if name in table.reloptions:
        return Way(options={name: value}), f"with {name} = {value} of its own"
    return Way(settings={name: value}), f"with {name} = {value}"


_OPTION = re.compile(r"(autovacuum_\w+) = ([0-9.e+-]+)")


def _told(finding: Finding, other: str, answer: WaysForeseen) -> Finding:
    if isinstance(answer, str):
        return replace(finding, text=f"{finding.text} The twin foresees nothing of it: {answer}.")
    now, then = answer
    said = (
        f"{finding.text} Foreseen by the twin, after {show_duration(now.after_s)} of the work that "
        f"was watched: {_figures(now)} as it is set; {_figures(then)} {other}."
    )
    numbers = {**finding.numbers, **_numbers("now", now), **_numbers("then", then)}
    return replace(finding, text=said, numbers=numbers)


def _figures(one: Foreseen) -> str:
    low, _, high = one.dead_rows
    least, most = (f"{count:,.0f}" for count in one.vacuums_per_day)
    vacuums = f"{least if least == most else f'{least} to {most}'} vacuums a day"
    return f"at most {low:,} to {high:,} dead rows at a time, {vacuums}"


def _numbers(when: str, one: Foreseen) -> dict[str, FindingNumber]:
    low, middle, high = one.dead_rows
    return {
        f"foreseen_{when}_dead_rows": middle,
        f"foreseen_{when}_dead_rows_low": low,
        f"foreseen_{when}_dead_rows_high": high,
        f"foreseen_{when}_vacuums_per_day_low": round(one.vacuums_per_day[0], 3),
        f"foreseen_{when}_vacuums_per_day_high": round(one.vacuums_per_day[1], 3),
    }


def _with(diagnosis: Diagnosis, told: Sequence[Finding]) -> Diagnosis:
    """The diagnosis with these findings in the places of those that they were."""
    by_key = {one.key: one for one in told}
    return replace(
        diagnosis, findings=tuple(by_key.get(one.key, one) for one in diagnosis.findings)
    )
