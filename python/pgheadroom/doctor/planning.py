"""
Findings become a plan: a step each where the remedy is a statement and its claim can be measured.

What is not a step is a remark of the plan, with its reason. No two steps contradict each other:
the first of two stays, in the order in which they are carried out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import pgheadroom
from pgheadroom.doctor.agreeing import ORDERING
from pgheadroom.doctor.cluster_steps import clustered_as_wished
from pgheadroom.doctor.remedy_facts import RemedyFacts, in_unit
from pgheadroom.doctor.remedy_steps import (
    NotAStep,
    analyzed,
    dropped,
    indexed_key,
    rebuilt,
    rewritten,
    stored,
    unmade,
    vacuumed,
)
from pgheadroom.doctor.standbys import StandbyEvidence
from pgheadroom.doctor.values import Diagnosis, Finding, FindingNumber
from pgheadroom.errors import InputError
from pgheadroom.plan.remedies import Claim, RemedyKind, RemedyStep, ServerChange, WalWindow
from pgheadroom.plan.remedy_contradictions import contradiction
from pgheadroom.plan.remedy_look import as_number
from pgheadroom.plan.remedy_statements import ASKS_STANDBYS, is_settable, remade
from pgheadroom.plan.statements import check_rewrite
from pgheadroom.plan.values import Plan, Target, now_text
from pgheadroom.quoting import printable
from pgheadroom.settings.arithmetic import distance_bytes
from pgheadroom.types import Interval

_ORDER: tuple[RemedyKind, ...] = get_args(RemedyKind)
_NAMED_MAX = 5
_DROPPING = ("duplicate-index", "overlapping-index", "unused-index", "invalid-index")
_ALTER = re.compile(
    r"ALTER SYSTEM (?:SET (?P<name>[a-z_]+) = (?:'(?P<quoted>[^']*)'|(?P<bare>\S+))"
    r"|RESET (?P<reset>[a-z_]+))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWish:
    """
    What a plan may hold.

    Attributes:
        rewrite: `auto`: tables by the best tool that lets clients go on; `none`; or a tool.
        settings: The server's settings too.
    """

    rewrite: str = "auto"
    settings: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGrounds:
    """
    What a plan is made of beside the findings.

    Attributes:
        facts: Asks the database.
        target: It.
        standbys: What they said of their reads.
        wal: What was watched; None: no interval was.
    """

    facts: RemedyFacts
    target: Target
    standbys: StandbyEvidence
    wal: WalWindow | None


def plan_findings(diagnosis: Diagnosis, grounds: PlanGrounds, wish: PlanWish) -> Plan:
    """
    Make the plan of what was found.

    Args:
        diagnosis: The findings that count.
        grounds: What it is made of beside.
        wish: What it may hold.

    Raises:
        InputError: The server is a standby, or the way to rewrite is not known.
    """
    check_rewrite(wish.rewrite)
    refuse_standby(diagnosis.examined.in_recovery)
    return _Planner(diagnosis, grounds, wish).plan()


def refuse_standby(is_one: bool) -> None:
    """
    Refuse to plan where nothing can be carried out.

    Raises:
        InputError: It is a standby.
    """
    if is_one:
        raise InputError(
            "the server is a standby: expected its primary, where a plan can be carried out, and "
            "which is told of its standbys"
        )


class _Planner:
    def __init__(self, diagnosis: Diagnosis, grounds: PlanGrounds, wish: PlanWish) -> None:
        self._diagnosis = diagnosis
        self._grounds = grounds
        self._wish = wish
        self._made: list[RemedyStep] = []
        self._remarks: dict[tuple[str, str], list[str]] = {}
        self._holds = any(one.rule == "horizon-holder" for one in diagnosis.findings)
        self._rules: Mapping[str, Callable[[Finding], RemedyStep]] = {
            "duplicate-index": self._dropped,
            "overlapping-index": self._dropped,
            "unused-index": self._dropped,
            "invalid-index": self._unfinished,
            "bloated-index": lambda one: rebuilt(self._grounds.facts, one),
            "bloated-table": self._rewritten,
            ORDERING: self._ordered,
            "foreign-key-without-index": lambda one: indexed_key(self._grounds.facts, one),
            "autovacuum-off": lambda one: stored(self._grounds.facts, one),
            "large-table-trigger": lambda one: stored(self._grounds.facts, one),
            "autovacuum-late": self._vacuumed,
            "never-analyzed": lambda one: analyzed(self._grounds.facts, one),
            "parent-never-analyzed": lambda one: analyzed(self._grounds.facts, one),
            "statistics-behind": lambda one: analyzed(self._grounds.facts, one),
        }

    def plan(self) -> Plan:
        for finding in self._by_place():
            self._add(finding)
        steps = sorted(self._made, key=lambda step: _ORDER.index(step.kind))
        return Plan(
            tool_version=pgheadroom.__version__,
            created_at=now_text(),
            observed_at=self._diagnosis.examined.at,
            target=self._grounds.target,
            policy=None,
            rewrite=self._wish.rewrite,
            steps=(),
            offers=(),
            kept=(),
            notes=self._notes(),
            remedies=tuple(
                remade(replace(step, number=number), self._grounds.target)
                for number, step in enumerate(steps, 1)
            ),
            wal=self._grounds.wal,
        )

    def _by_place(self) -> list[Finding]:
        """Drops first, the surest of them; a table before its TOAST and its indexes."""
        # What puts a table in order gives back what another rewrite does.
        first = (*_DROPPING, ORDERING, "bloated-table")

        def place(finding: Finding) -> tuple[int, bool]:
            rule, about = finding.rule, finding.object
            is_toast = about.startswith("TOAST of ") or about.endswith(" (TOAST)")
            return first.index(rule) if rule in first else len(first), is_toast

        return sorted(self._diagnosis.findings, key=place)

    def _add(self, finding: Finding) -> None:
        try:
            step = self._step(finding)
        except NotAStep as why:
            self._remark(finding, str(why))
            return
        same = [one for one in self._made if _is_of_one_statement(one, step)]
        if same:  # the table and its TOAST, by one statement
            joined = replace(same[0], claims=(*same[0].claims, *step.claims))
            self._made[self._made.index(same[0])] = joined
            return
        number = len(self._made) + 1
        why_not = contradiction([*self._made, replace(step, number=number)])
        if why_not is not None:
            self._remark(finding, f"{why_not.partition(': ')[2]}; look again afterwards")
            return
        self._made.append(replace(step, number=number))

    def _remark(self, finding: Finding, why: str) -> None:
        self._remarks.setdefault((finding.rule, why), []).append(finding.object)

    def _notes(self) -> tuple[str, ...]:
        """A line a rule and reason, with some of its objects."""
        return tuple(
            printable(f"no step for {rule}: {_some(objects)}: {why}")
            for (rule, why), objects in self._remarks.items()
        )

    def _step(self, finding: Finding) -> RemedyStep:
        make = self._rules.get(finding.rule)
        if make is not None:
            return make(finding)
        for statement in finding.remedy.sql:
            match = _ALTER.fullmatch(statement)
            if match is not None:
                return self._server(finding, match)
        if not finding.remedy.sql:
            raise NotAStep(finding.remedy.text)
        raise NotAStep("what to do is not one statement whose effect can be measured")

    def _dropped(self, finding: Finding) -> RemedyStep:
        needs_standbys = finding.rule in ASKS_STANDBYS
        is_ready = bool(finding.remedy.sql) or finding.rule == "unused-index"
        if not is_ready:
            raise NotAStep(finding.remedy.text)
        return dropped(
            self._grounds.facts, finding, self._grounds.standbys if needs_standbys else None
        )

    def _unfinished(self, finding: Finding) -> RemedyStep:
        if finding.remedy.sql and finding.remedy.sql[0].startswith("DROP"):
            return dropped(self._grounds.facts, finding, None)
        return rebuilt(self._grounds.facts, finding)

    def _vacuumed(self, finding: Finding) -> RemedyStep:
        if self._holds:
            raise NotAStep(
                "something holds the horizon (`horizon-holder`), so that a VACUUM removes nothing "
                "yet: that goes first"
            )
        return vacuumed(self._grounds.facts, finding)

    def _rewritten(self, finding: Finding) -> RemedyStep:
        return rewritten(self._grounds.facts, finding, self._wish.rewrite, self._grounds.target)

    def _ordered(self, finding: Finding) -> RemedyStep:
        grounds = self._grounds
        return clustered_as_wished(grounds.facts, finding, self._wish.rewrite, grounds.target)

    def _server(self, finding: Finding, match: re.Match[str]) -> RemedyStep:
        name = match["name"] or match["reset"]
        if not self._wish.settings:
            raise NotAStep("a setting of the server is a step with --settings")
        if not is_settable(name):
            raise NotAStep(f"{name} is not set by a plan")
        row = self._grounds.facts.setting(name)
        if row is None or row["pending_restart"]:
            raise NotAStep(f"{name} waits for a restart, or is none of this server")
        value = None if match["name"] is None else (match["quoted"] or match["bare"])
        # Without being set it is what the server was built with, unless another file has it too.
        becomes = str(row["boot_val"]) if value is None else value
        if value not in (None, "on", "off"):
            becomes = in_unit(value, row["unit"])
        change = ServerChange(
            name=name,
            value=value,
            before=str(row["setting"]),
            was_in_auto=bool(row["is_auto"] or row["is_hidden"]),
            becomes=becomes,
            needs_restart=row["context"] == "postmaster",
        )
        claims = _setting_claims(finding, change, row, self._grounds.facts.settings())
        step = unmade(finding, "set_server", "ALTER SYSTEM", None, finding.text, claims)
        return replace(step, setting=change)


def _setting_claims(
    finding: Finding, change: ServerChange, row: Mapping[str, Any], settings: Mapping[str, str]
) -> tuple[Claim, ...]:
    numbers = finding.numbers
    claims = []
    is_switch = row["vartype"] == "bool"
    to, was = (as_number(text) for text in (change.becomes, change.before))
    if to is not None:
        claims.append(
            Claim(
                measure="setting",
                unit="switch" if is_switch else str(row["unit"] or ""),
                before=was,
                foreseen=Interval.exactly(to),
                basis="the value that is set",
                how="pg_settings has it in force",
                of={},
            )
        )
    if finding.rule == "checkpoints-by-wal":
        distance, share = _distances(numbers, settings)
        claims.append(
            Claim(
                measure="checkpoints_by_wal",
                unit="",
                before=1.0,
                # A checkpoint comes a little before its distance is full.
                foreseen=Interval(low=0.0, mid=share, high=1.5 * share, level=0.9),
                basis="the distance between them grows with max_wal_size",
                how="requested checkpoints since the step, against the WAL written since",
                of={"distance_bytes": float(distance)},
            )
        )
    if finding.rule == "checkpoint-images":
        claims.append(_images_claim(numbers, to))
    if finding.rule == "autovacuum-limit":
        claims.append(_VACUUMS_CLAIM)
    return tuple(claims)


_VACUUMS_CLAIM = Claim(
    measure="vacuums_frac",
    unit="",
    before=None,
    # Of three that are due, as few as are judged, one may end behind the interval.
    foreseen=Interval(low=0.6, mid=1.0, high=1.0, level=0.9),
    basis="at a quarter of what it may cost autovacuum comes to each table when its rows have died",
    how="its runs in an interval, by how often its triggers' worth of rows died in it",
    of={},
)


def _images_claim(numbers: Mapping[str, FindingNumber], to: float | None) -> Claim:
    before_s = numbers["checkpoint_timeout_s"]
    assert isinstance(before_s, int), "the finding has it"
    assert to is not None, "the setting is a number"
    least = before_s / to
    return Claim(
        measure="images_frac",
        unit="",
        before=1.0,
        # A twentieth fewer at least, or it has not paid. Arbitrary.
        foreseen=Interval(low=0.0, mid=(least + 0.95) / 2, high=0.95, level=0.9),
        basis=f"{least:.2f} of them where all change the same pages, all of them where each change "
        "is of another page",
        how="images a changed row since the step, by those in the interval before",
        of={"before_s": float(before_s), "after_s": to},
    )


def _distances(
    numbers: Mapping[str, FindingNumber], settings: Mapping[str, str]
) -> tuple[int, float]:
    """WAL between two checkpoints as it was, and by which part more often they come then."""
    distance, wanted = numbers["distance_bytes"], numbers["max_wal_size_wanted_bytes"]
    assert isinstance(distance, int), "the finding has it"
    assert isinstance(wanted, int), "the finding says what it wants"
    segment, target = (
        float(settings[name]) for name in ("wal_segment_size", "checkpoint_completion_target")
    )
    return distance, distance / distance_bytes(wanted, int(segment), target)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def _is_of_one_statement(one: RemedyStep, other: RemedyStep) -> bool:
    return (
        one.kind == other.kind
        and one.kind in ("rewrite_table", "set_storage", "vacuum")
        and one.options == other.options
        and one.table is not None
        and other.table is not None
        and one.table.oid == other.table.oid
        and {claim.measure for claim in one.claims}.isdisjoint(c.measure for c in other.claims)
    )
