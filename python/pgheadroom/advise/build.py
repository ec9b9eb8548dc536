"""
The whole: an observed profile becomes an advice.

Tables are looked at by what they might save; those that cannot save anything worth a change are
judged by their counters alone, the others are played until the budget of time is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import pgheadroom
from pgheadroom.advise.advice import Advice, Observation, Remark, TableAdvice, mid
from pgheadroom.advise.calibrate import Fitted, Observed, calibrate, observed_shares
from pgheadroom.advise.causes import causes_of
from pgheadroom.advise.curve import (
    Costed,
    beside,
    candidates,
    curve_of,
    transition_of,
    without_index,
)
from pgheadroom.advise.decide import Decision, abstain, decide, most, without_curve
from pgheadroom.advise.policy import DEFAULT_POLICY, Policy
from pgheadroom.advise.remark_index import index_remark, reads_of
from pgheadroom.advise.remarks import first_remarks, table_remarks
from pgheadroom.advise.runs import Runner
from pgheadroom.advise.scenario import SAMPLE_PAGES, Scenario
from pgheadroom.errors import InputError, TwinError
from pgheadroom.predict import minor_version
from pgheadroom.profile import Profile
from pgheadroom.profile.model import TableProfile
from pgheadroom.types import PgVersion

BUDGET_S = 60.0
"""Seconds of simulation that nobody asked to change: an answer within a minute."""

_INDEXES_MAX = 3  # of a table, that are weighed
_BLAMED_FRAC_MIN = 0.05  # of the updates, for an index to be weighed; arbitrary

Say = Callable[[int, int, str], None]
"""Called with tables done, tables in all, and the table that is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    What an advice is made with.

    Attributes:
        policy: What things cost.
        budget_s: Seconds of simulation in all; tables that come too late are judged by counters.
        tables: Only these, by their names in the profile; empty: all.
        sample_pages: Heap pages that are simulated of each table.
    """

    policy: Policy = DEFAULT_POLICY
    budget_s: float = BUDGET_S
    tables: tuple[str, ...] = ()
    sample_pages: int = SAMPLE_PAGES


def advise(
    profile: Profile,
    options: Options | None = None,
    *,
    executor: Executor | None = None,
    say: Say | None = None,
) -> Advice:
    """
    Advise on every table of an observed profile.

    Args:
        profile: Made by `observe`.
        options: What to make it with.
        executor: Where the twin runs; a thread a core when None.
        say: Called with the progress.

    Raises:
        InputError: Not an observed profile, or a table that it does not have.
    """
    options = options or Options()
    observed = profile.server.observed
    if observed is None or any(table.observed is None for table in profile.tables):
        raise InputError(
            "the profile was not made by `pgheadroom observe`: advice needs what was observed; "
            "for a profile written by hand see `pgheadroom predict`"
        )
    unknown = set(options.tables) - set(profile.table_names)
    if unknown:
        raise InputError(
            f"--table {sorted(unknown)[0]!r} is not in the profile: expected one of "
            f"{', '.join(profile.table_names[:20])}"
        )
    chosen = [t for t in profile.tables if not options.tables or t.name in options.tables]
    chosen.sort(key=lambda table: -most(table, options.policy))
    told: dict[str, Any] = {}
    version = minor_version(profile, None, told)
    made = []
    with Runner(executor, options.budget_s) as runner:
        for n, table in enumerate(chosen):
            if say is not None:
                say(n, len(chosen), table.name)
            one = _Table(profile, table, version, options, runner)
            made.append(one.advise(in_time=runner.in_time))
    if say is not None:
        say(len(chosen), len(chosen), "")
    return Advice(
        tool_version=pgheadroom.__version__,
        observation=_observation(observed),
        policy=options.policy.to_json(),
        first=first_remarks(profile),
        tables=tuple(sorted(made, key=_rank)),
        partitioned=_partitioned(observed, made),
        assumed=(*observed["assumed"], *map(str, told.values())),
    )


class _Table:
    """One table on its way."""

    def __init__(
        self,
        profile: Profile,
        table: TableProfile,
        version: PgVersion,
        options: Options,
        runner: Runner,
    ) -> None:
        assert profile.server.observed is not None, "checked by the caller"
        self._profile = profile
        self._table = table
        self._version = version
        self._options = options
        self._runner = runner
        self._fitted: Fitted | None = None
        self._curve: tuple[Costed, ...] = ()
        self._missing: list[str] = []
        self._remarks: list[Remark] = []
        self._causes = causes_of(table, version.major, profile.server.observed)

    def advise(self, *, in_time: bool) -> TableAdvice:
        server: Mapping[str, Any] = self._profile.server.observed or {}
        decision = without_curve(self._table, server, self._options.policy)
        if decision is None and not in_time:
            decision = abstain(
                "the budget of time was spent on tables that promise more: --budget gives more"
            )
        shares = observed_shares(self._table)
        if decision is None and shares is not None:
            try:
                decision = self._played(shares)
            except TwinError as error:
                decision = abstain(f"the twin cannot play it: {error}")
        assert decision is not None, "a table with updates is played"
        return self._put(decision)

    def _played(self, shares: Observed) -> Decision:
        table, policy, version = self._table, self._options.policy, str(self._version)
        fitted = calibrate(
            self._profile,
            table,
            shares,
            version,
            self._runner,
            sample_pages=self._options.sample_pages,
        )
        if fitted is None:
            return abstain("no operation of it could be made out")
        self._fitted = fitted

        def play(scenario: Scenario, fillfactors: Sequence[int]) -> tuple[Costed, ...]:
            return curve_of(
                table, scenario, fillfactors, version, policy, self._runner, off=fitted.off
            )

        found = play(fitted.scenario, candidates(table))
        if self._runner.in_time:
            found += play(fitted.scenario, beside(found))
        self._curve = tuple(sorted(found, key=lambda one: -one.point.fillfactor))
        self._weigh_indexes(fitted.scenario, play)
        return decide(
            table,
            fitted.calibration,
            fitted.off,
            self._curve,
            policy,
            growth_bytes=fitted.growth_bytes,
        )

    def _weigh_indexes(
        self, scenario: Scenario, play: Callable[[Scenario, Sequence[int]], tuple[Costed, ...]]
    ) -> None:
        """A remark on each index that takes much HOT away: the table without it."""
        blamed = [one for cause in self._causes for one in cause.indexes]
        blamed.sort(key=lambda one: -(mid(one.updates)))
        now = next(c.point for c in self._curve if c.point.fillfactor == self._table.fillfactor)
        total = sum(mid(cause.updates) for cause in self._causes)
        for one in blamed[:_INDEXES_MAX]:
            if mid(one.updates) < _BLAMED_FRAC_MIN * total:
                continue
            if not self._runner.in_time:
                self._missing.append(
                    f"{one.name} was not weighed against HOT, the time was spent: --budget"
                )
                continue
            without, reads = without_index(scenario, one.name), reads_of(self._table, one.name)
            if without is None or reads is None:
                continue
            (then,) = play(without, (self._table.fillfactor,))
            remark = index_remark(one, reads, now, then.point, major=self._version.major)
            if remark is not None:
                self._remarks.append(remark)

    def _put(self, decision: Decision) -> TableAdvice:
        table = self._table
        facts = table.observed
        assert facts is not None, "checked by the caller"
        counters = facts["counters"]
        updates = int(counters.get("n_tup_upd") or 0)
        hot = counters.get("n_tup_hot_upd")
        transition = None
        if decision.verdict == "CHANGE" and self._fitted is not None:
            assert decision.fillfactor is not None, "a change has a setting"
            transition = transition_of(
                table, self._fitted.scenario, decision.fillfactor, str(self._version), self._runner
            )
        return TableAdvice(
            table=table.name,
            schema=facts["schema"],
            name=facts["name"],
            oid=facts["oid"],
            relfilenode=facts["relfilenode"],
            parent=facts.get("parent"),
            rows=table.rows,
            heap_bytes=facts["main_bytes"],
            fillfactor=table.fillfactor,
            updates_per_s=float(facts["per_s"].get("n_tup_upd") or 0.0),
            updates=updates,
            hot_frac=hot / updates if updates and hot is not None else None,
            verdict=decision.verdict,
            reason=decision.reason,
            advised_fillfactor=decision.fillfactor,
            gain_frac=decision.gain_frac,
            causes=self._causes,
            calibration=None if self._fitted is None else self._fitted.calibration,
            curve=tuple(found.point for found in self._curve),
            transition=transition,
            remarks=(*self._remarks, *table_remarks(table, self._profile)),
            missing=tuple(self._missing),
        )


def _observation(observed: Mapping[str, Any]) -> Observation:
    access = observed["access"]
    return Observation(
        server_version=observed["server_version"],
        database=observed["database"],
        database_oid=observed["database_oid"],
        system_identifier=observed["system_identifier"],
        observed_at=observed["observed_at"],
        interval_s=float(observed["interval_s"]),
        masked=bool(observed["masked"]),
        levels=tuple(access["levels"]),
        missing=tuple(access["missing"]),
        broken=(*observed["broken"], *observed["changed"]),
        modules=observed["modules"],
    )


def _rank(table: TableAdvice) -> tuple[int, float, float]:
    """Changes first, by what they save; then what is not known; then what stays."""
    order = {"CHANGE": 0, "ABSTAIN": 1, "KEEP": 2}[table.verdict]
    point = table.point(table.fillfactor)
    saved = mid(table.gain_frac) * (mid(point.cost) if point is not None else 0.0)
    return order, -saved, -table.updates_per_s


def _partitioned(
    observed: Mapping[str, Any], tables: Sequence[TableAdvice]
) -> tuple[Mapping[str, Any], ...]:
    """Each partitioned table, with its partitions' verdicts counted."""
    made = []
    for parent in observed["partitioned"]:
        schema, name = parent["schema"], parent["name"]
        full = name if schema == "public" else f"{schema}.{name}"
        own = [table for table in tables if table.parent == full]
        verdicts = {
            verdict: sum(table.verdict == verdict for table in own)
            for verdict in ("CHANGE", "KEEP", "ABSTAIN")
        }
        advised = sorted(
            {t.advised_fillfactor for t in own if t.verdict == "CHANGE" and t.advised_fillfactor}
        )
        made.append(
            {
                "schema": schema,
                "name": name,
                "partitions": [table.table for table in own],
                "verdicts": verdicts,
                "advised_fillfactors": advised,
                "updates_per_s": sum(table.updates_per_s for table in own),
            }
        )
    return tuple(made)
