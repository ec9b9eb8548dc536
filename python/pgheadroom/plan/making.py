"""
An advice becomes a plan: what to run, in which order, with which locks, undone by what.

The setting is a step of its own, cheap and undone in a moment. A rewrite is another one, after
all settings, and only where it was asked for; what the server has for it is offered otherwise.
"""

from __future__ import annotations

from dataclasses import replace

import pgheadroom
from pgheadroom.advise.advice import Advice
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.outcome import middle
from pgheadroom.plan.marks import mark_of, target_of
from pgheadroom.plan.measured import measure
from pgheadroom.plan.rewrites import usable_rewrites
from pgheadroom.plan.statements import check_rewrite, name_of, one_line, tool_of
from pgheadroom.plan.steps import make_step
from pgheadroom.plan.values import Forecast, Plan, Step, Target, Tool, now_text
from pgheadroom.profile import Profile
from pgheadroom.profile.tables import TableProfile
from pgheadroom.profile.within import ProfileWithin
from pgheadroom.quoting import called


def make_plan(advice: Advice, profile: Profile, *, rewrite: str = "none") -> Plan:
    """
    Make the plan of an advice.

    Args:
        advice: Tables with verdict CHANGE become steps, those with KEEP forecasts.
        profile: That the advice was made of.
        rewrite: `none`, `auto` (the best that the server has), or a tool: `repack`, `pg_squeeze`,
            `pg_repack`, `vacuum-full`.

    Raises:
        InputError: Names are masked, the profile was not observed, or the tool is not known or
            not to be had there.
    """
    check_plannable(profile)
    check_rewrite(rewrite)
    return _Maker(advice, profile, rewrite).plan()


def check_plannable(profile: Profile) -> None:
    """
    Refuse a profile from which no plan can be made, before an advice is worked out.

    Raises:
        InputError: It was not observed, or its names are masked.
    """
    observed = profile.server.observed
    if observed is None:
        raise InputError(
            "a plan is for a real database: found a profile that was not observed, expected one "
            "of `pgheadroom observe`"
        )
    if observed.masked:
        raise InputError(
            "the profile is masked, so its tables have no real names and a plan could not run: "
            "observe again without `mask`, or make the plan where the names are known",
            mentions=("mask",),
        )


class _Maker:
    def __init__(self, advice: Advice, profile: Profile, asked: str) -> None:
        self._advice = advice
        self._profile = profile
        self._asked = asked
        self._target: Target = target_of(profile)
        self._notes: list[str] = [one_line(remark.text) for remark in advice.first]
        self._kept: list[Forecast] = []
        self._settings: list[Step] = []
        self._rewrites: list[Step] = []
        self._offers: list[Step] = []
        self._partitioned = {called(one.schema, one.name) for one in advice.partitioned}
        self._parted: dict[str, list[tuple[TableAdvice, Forecast]]] = {}

    def plan(self) -> Plan:
        for table in self._advice.tables:
            self._add(table)
        self._add_later_partitions()
        observed = self._profile.server.observed
        assert observed is not None, "checked by the caller"
        steps = [*self._settings, *self._rewrites]
        simulated = self._simulated()
        return Plan(
            tool_version=pgheadroom.__version__,
            created_at=now_text(),
            observed_at=observed.observed_at,
            target=self._target,
            policy=self._advice.policy,
            rewrite=self._asked,
            steps=tuple(replace(step, number=number) for number, step in enumerate(steps, 1)),
            offers=tuple(self._offers),
            kept=tuple(self._kept),
            notes=tuple(self._notes),
            profile=None if simulated is None else ProfileWithin.of(simulated),
        )

    def _simulated(self) -> Profile | None:
        """The profile of the tables that have a forecast by the twin."""
        names = {
            advice.table
            for advice in self._advice.tables
            if advice.calibration is not None and advice.verdict != "ABSTAIN"
        }
        workload = self._profile.workload
        operations = tuple(o for o in workload.operations if o.table in names)
        tables = tuple(t for t in self._profile.tables if t.name in names)
        if not tables or not operations:
            return None
        workload = replace(workload, operations=operations)
        return replace(self._profile, tables=tables, workload=workload)

    def _add(self, advice: TableAdvice) -> None:
        if advice.verdict == "ABSTAIN" or advice.advised_fillfactor is None:
            return
        table = self._profile.table(advice.table)
        if table.observed is None or not table.observed.oid:
            self._notes.append(f"{one_line(advice.table)}: not observed, so it has no step")
            return
        changes = advice.verdict == "CHANGE" and advice.advised_fillfactor != advice.fillfactor
        forecast = Forecast(
            table=mark_of(table),
            verdict="CHANGE" if changes else "KEEP",
            fillfactor=advice.advised_fillfactor if changes else advice.fillfactor,
            before=advice.point(advice.fillfactor),
            after=advice.point(advice.advised_fillfactor if changes else advice.fillfactor),
            transition=advice.transition if changes else None,
            measured=measure(self._profile, table),
            reason=advice.reason,
            fit=None if advice.calibration is None else advice.calibration.fit,
        )
        if not changes:
            if forecast.after is not None and forecast.measured.updates:
                self._kept.append(forecast)
            return
        self._settings.append(self._step("ALTER TABLE", forecast, table))
        self._add_rewrite(forecast, table)
        if advice.parent in self._partitioned:
            assert advice.parent is not None, "a partitioned table has a name"
            self._parted.setdefault(advice.parent, []).append((advice, forecast))

    def _add_later_partitions(self) -> None:
        """A partition has no fillfactor from the table that it is of: its maker has to set it."""
        for parent, changed in self._parted.items():
            _, forecast = max(changed, key=lambda one: one[0].updates_per_s)
            of = f"that of {name_of(forecast.table)}"
            if len(changed) > 1:
                of += f", the most updated of {len(changed)} that change"
            self._notes.append(
                f"Later partitions of {one_line(parent)} begin at 100: it cannot have a fillfactor "
                "that they would take over, and LIKE ... INCLUDING ALL copies none. Whatever makes "
                f"them has to end in WITH (fillfactor = {forecast.fillfactor}), {of}, or to run "
                "ALTER TABLE on them before they fill."
            )

    def _add_rewrite(self, forecast: Forecast, table: TableProfile) -> None:
        usable, unfit = self._tools(table)
        if self._asked == "auto":
            self._rewrites.append(self._step(usable[0], forecast, table))
        elif self._asked != "none":
            tool = tool_of(self._asked)
            if tool not in usable:
                raise ParameterError(
                    "rewrite",
                    f"{self._asked}: {name_of(forecast.table)} cannot be rewritten by it: "
                    f"{unfit[tool]}; expected one of {', '.join(usable)}",
                )
            self._rewrites.append(self._step(tool, forecast, table))
        else:
            self._offers += [self._step(tool, forecast, table) for tool in usable]

    def _tools(self, table: TableProfile) -> tuple[list[Tool], dict[Tool, str]]:
        """What can rewrite the table there, best first; and why the others cannot."""
        server = self._profile.server
        assert table.observed is not None, "only observed tables have steps"
        assert server.observed is not None, "checked by the caller"
        return usable_rewrites(
            table.observed,
            server.observed,
            major=self._target.major,
            wal_level=server.wal_level,
        )

    def _step(self, tool: Tool, forecast: Forecast, table: TableProfile) -> Step:
        copied = 0 if tool == "ALTER TABLE" else _copied_bytes(forecast, table)
        return make_step(0, tool, forecast, copied, self._target)


def _copied_bytes(forecast: Forecast, table: TableProfile) -> int:
    """The new table, its indexes and its TOAST: what a rewrite makes."""
    facts = table.observed
    assert facts is not None, "only observed tables have steps"
    after: Point | None = forecast.after
    heap = None if after is None else middle(after.heap_bytes)
    if heap is None:
        now = forecast.measured.heap_bytes or 0
        heap = now * forecast.measured.fillfactor / forecast.fillfactor
    indexes = sum(index.main_bytes or 0 for index in facts.indexes)
    toast = None if facts.toast is None else facts.toast.main_bytes
    return round(heap) + indexes + (toast or 0)
