"""
Steps made of what a plan rests on, and a plan out of a file held against what would be made.

A step's texts (statement, undo, lock, risk) and estimates follow from its tool, its forecast and
the bytes that a rewrite copies. So what a file says is never believed: `apply` runs and shows what
is made here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pgheadroom.errors import InputError
from pgheadroom.plan.remedy_contradictions import contradiction
from pgheadroom.plan.remedy_statements import check_remedy, remade
from pgheadroom.plan.statements import (
    REWRITES,
    TRAITS,
    VERIFIED,
    duration,
    name_of,
    rewrite,
    set_fillfactor,
    undo_fillfactor,
    wal_bytes,
)
from pgheadroom.plan.values import Forecast, Plan, Step, TableMark, Target, Tool
from pgheadroom.types import PgVersion

_SET_UNDO = "The old setting; pages that were filled under the new one keep their room."
_NO_UNDO = (
    "Nothing to undo: it changes no data and no setting. With the old setting back, the table "
    "fills up again by itself."
)
_BYTES_MAX = 2**62
_FILLFACTOR = re.compile("[1-9][0-9]|100", re.ASCII)
"""As PostgreSQL has a table's: HEAP_MIN_FILLFACTOR to 100 (intRelOpts, reloptions.c)."""
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})", re.ASCII)


def make_step(
    number: int, tool: Tool, forecast: Forecast, copied_bytes: int, target: Target
) -> Step:
    """
    A step with everything that follows from what it rests on.

    Args:
        number: In the plan; 0 for an offer.
        tool: By what.
        forecast: Of the table, with its fingerprint and its new setting.
        copied_bytes: That a rewrite makes; 0 for a setting.
        target: The database.
    """
    traits, mark = TRAITS[tool], forecast.table
    sets = tool == "ALTER TABLE"
    sql, command = (
        (set_fillfactor(mark, forecast.fillfactor), None) if sets else rewrite(tool, mark, target)
    )
    seconds, basis = duration(tool, copied_bytes)
    return Step(
        number=number,
        kind="set_fillfactor" if sets else "rewrite",
        tool=tool,
        table=mark,
        fillfactor=forecast.fillfactor,
        copied_bytes=copied_bytes,
        sql=sql,
        command=command,
        undo=undo_fillfactor(mark) if sets else None,
        undo_note=_SET_UNDO if sets else _NO_UNDO,
        lock=traits.lock,
        blocks=traits.blocks,
        duration_s=seconds,
        duration_basis=basis,
        disk_bytes=_growth_bytes(forecast) if sets else round(copied_bytes * traits.disk_factor),
        wal_bytes=wal_bytes(tool, copied_bytes),
        in_transaction=traits.in_transaction,
        run_by="you" if sql is None else "apply",
        verified=target.major in VERIFIED[tool],
        risk=traits.risk,
        forecast=forecast,
    )


def as_made(plan: Plan) -> Plan:
    """The plan with steps as they are made now, whatever texts its file has: what is shown."""

    def made(steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(
            make_step(s.number, s.tool, s.forecast, s.copied_bytes, plan.target) for s in steps
        )

    if plan.remedies is not None:
        return replace(plan, remedies=tuple(remade(s, plan.target) for s in plan.remedies))
    return replace(plan, steps=made(plan.steps), offers=made(plan.offers))


def _growth_bytes(forecast: Forecast) -> int:
    """What the table grows by until it is steady under the new setting, without a rewrite."""
    now = forecast.measured.heap_bytes
    way = forecast.transition
    if now is None or way is None or way.final_heap_bytes is None:
        return 0
    return max(0, round(way.final_heap_bytes - now))


def check_plan(plan: Plan) -> None:
    """
    Refuse a plan whose parts contradict each other, or whose statements are not those it makes.

    A plan is a file; what `apply` runs must be what the plan says it is about, and nothing else.

    Raises:
        InputError: Numbers out of order, two tables under one name or number, another text.
    """
    if not _TIME.fullmatch(plan.created_at):
        raise InputError(f"plan: created_at is {plan.created_at!r}, expected a time in UTC")
    PgVersion.parse(plan.target.server_version)
    for place, step in enumerate(plan.work, 1):
        if step.number != place:
            raise InputError(f"plan: step {place} has number {step.number}: expected them in order")
    if plan.remedies is not None:
        _check_remedies(plan)
        return
    _check_marks(plan)
    for step in (*plan.steps, *plan.offers):
        _check_step(step, plan.target)
    seen = set()
    for step in plan.steps:
        if (step.table.oid, step.kind) in seen:
            raise InputError(
                f"plan: step {step.number} does to {name_of(step.table)} what another step does "
                "already: expected one of a kind for each table"
            )
        seen.add((step.table.oid, step.kind))


def _check_remedies(plan: Plan) -> None:
    """The doctor's steps: each makes its own text, and no two contradict each other."""
    assert plan.remedies is not None, "the caller has seen them"
    if plan.steps or plan.offers or plan.kept:
        raise InputError("plan: it has steps of an advice and of the doctor: expected the ones")
    for step in plan.remedies:
        check_remedy(step, plan.target)
    why = contradiction(plan.remedies)
    if why is not None:
        raise InputError(f"plan: {why}: expected steps that can all be carried out")


def _check_marks(plan: Plan) -> None:
    """One table a number and a name: a step may not carry one table's number, another's name."""
    by_oid: dict[int, TableMark] = {}
    by_name: dict[str, int] = {}
    for forecast in plan.forecasts:
        mark = forecast.table
        if not 0 < mark.oid < 2**32 or "\0" in mark.schema + mark.name or not mark.name:
            raise InputError(f"plan: {mark.name!r} with OID {mark.oid} is no table's name and OID")
        found = mark.reloptions.get("fillfactor")
        if found is not None and not _FILLFACTOR.fullmatch(found):
            raise InputError(
                f"plan: the fillfactor that {name_of(mark)} had is {found!r}, expected 10 to 100"
            )
    for step in plan.steps:
        mark = step.table
        if by_oid.setdefault(mark.oid, mark) != mark:
            raise InputError(
                f"plan: step {step.number} has another fingerprint of the table with OID "
                f"{mark.oid} than an earlier step: expected the same of one table"
            )
        if by_name.setdefault(mark.qualified, mark.oid) != mark.oid:
            raise InputError(
                f"plan: step {step.number} has another OID for {name_of(mark)} than an earlier "
                "step: expected the same of one table"
            )


def _check_step(step: Step, target: Target) -> None:
    what = f"step {step.number}" if step.number else "an offered rewrite"
    if not 10 <= step.fillfactor <= 100 or not 0 <= step.copied_bytes < _BYTES_MAX:
        raise InputError(
            f"plan: {what} has fillfactor {step.fillfactor} and copies {step.copied_bytes} bytes: "
            "expected 10 to 100, and a size"
        )
    if step.kind == "rewrite" and step.tool not in REWRITES:
        raise InputError(f"plan: {what} was changed by hand: {step.tool} rewrites nothing")
    made = make_step(step.number, step.tool, step.forecast, step.copied_bytes, target)
    for name in ("kind", "table", "fillfactor", "sql", "command", "undo", "run_by"):
        found, expected = getattr(step, name), getattr(made, name)
        if found != expected:
            said = (
                f"its {name} is {found!r}, expected {expected!r}"
                if name != "table"
                else f"its table is not that of its forecast: {'; '.join(expected.differs(found))}"
            )
            raise InputError(
                f"plan: {what} was changed by hand: {said}; apply runs only statements that it "
                "makes itself: make the plan anew, or run yours with psql"
            )
