"""
What `apply` did, beside the plan: written whole before and after each statement.

    pending -> running -> done -> undoing -> undone
                  |                  |
                  +-> failed         +-> done (the undo failed)
       `---------`-> gone

A step is `gone` when its table is: nothing is tried, and the others go on. A kill leaves `running`
or `undoing`: the statement is in doubt, and the next call finds out by looking at the catalog.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pgheadroom
from pgheadroom.errors import InputError
from pgheadroom.files import write_atomically
from pgheadroom.forms import Filed, in_file, read, unframed
from pgheadroom.plan.reading import digest, read_object, said_kind
from pgheadroom.plan.remedies import RemedyState
from pgheadroom.plan.values import Plan, Target
from pgheadroom.quoting import printable_json

State = Literal["pending", "running", "done", "failed", "undoing", "undone", "yours", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """
    What the catalog says of a table: its setting (None: not set) and its file.

    `inserts`, `updates` and `deletes` are rows since the statistics began, by which it is known
    later how many have come since; `vacuums` of the table likewise, by hand or not; `heap_bytes` is
    the main fork after a step, None where nobody looked.
    """

    fillfactor: int | None
    relfilenode: int
    inserts: int | None
    updates: int | None
    deletes: int | None
    heap_bytes: int | None = None
    vacuums: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """
    One step: what was done of it.

    Attributes:
        number: Of the plan.
        state: See the module.
        statement: That was run last; None before the first try.
        attempts: Tries of that statement.
        started_at: Of the last try, UTC.
        finished_at: UTC; None while it runs.
        duration_s: Of the last try.
        messages: Of the server.
        error: Of the last try that failed; of a step that is gone, what is there instead.
        before: The catalog before.
        after: The catalog afterwards.
        found_out: The end was not seen: the catalog told it later.
        found_before: Of a doctor's step, the catalog before it; found_after: afterwards.
    """

    number: int
    state: State = "pending"
    statement: str | None = None
    attempts: int = 0
    started_at: str | None = None
    finished_at: str | None = None
    duration_s: float | None = None
    messages: tuple[str, ...] = ()
    error: str | None = None
    before: TableState | None = None
    after: TableState | None = None
    found_out: bool = False
    found_before: RemedyState | None = field(default=None, metadata=in_file(unless_none=True))
    found_after: RemedyState | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedRecord(Filed):
    """All steps of a plan; `plan_sha256` says of which, `connection` who did it, no password."""

    KIND = "applied"
    VERSION = 2
    ADDED = False

    tool_version: str
    plan_sha256: str
    target: Target
    connection: Mapping[str, str]
    steps: tuple[StepRecord, ...]

    def step(self, number: int) -> StepRecord:
        """The record of a step."""
        return self.steps[number - 1]

    def with_step(self, step: StepRecord) -> AppliedRecord:
        """The same with one step changed."""
        steps = list(self.steps)
        steps[step.number - 1] = step
        return replace(self, steps=tuple(steps))


def record_path(plan_path: Path) -> Path:
    """`plan.json` has its record in `plan.applied.json`."""
    return plan_path.with_name(f"{plan_path.name.removesuffix('.json')}.applied.json")


def new_record(plan: Plan) -> AppliedRecord:
    """Nothing has been done."""
    return AppliedRecord(
        tool_version=pgheadroom.__version__,
        plan_sha256=digest(plan),
        target=plan.target,
        connection={},
        steps=tuple(StepRecord(number=step.number) for step in plan.work),
    )


def read_record(path: Path, plan: Plan) -> AppliedRecord | None:
    """
    The record of a plan; None where nothing was ever done.

    Raises:
        InputError: It belongs to another plan, or is not as it must be.
    """
    if not path.exists():
        return None
    data = read_object(path, "the record of an earlier `pgheadroom apply`")
    if (
        data.get("kind") != AppliedRecord.KIND
        or data.get("schema_version") != AppliedRecord.VERSION
    ):
        raise InputError(
            f"{path}: found {said_kind(data)}; expected the record of `pgheadroom apply`, "
            f"version {AppliedRecord.VERSION}: move it away if it is something else"
        )
    record = read(AppliedRecord, unframed(data), at=str(path))
    if record.plan_sha256 != digest(plan):
        raise InputError(
            f"{path} is the record of another plan: expected that of this one. Move the record "
            "away if what it says is done with; undo needs the plan that it belongs to"
        )
    if [step.number for step in record.steps] != [step.number for step in plan.work]:
        raise InputError(f"{path} has other steps than the plan: expected {len(plan.work)}")
    return record


def save(record: AppliedRecord, path: Path) -> None:
    """
    Write it whole, synced, before anything else happens.

    Raises:
        DiskFull: No room; the old record is untouched.
        InputError: The file cannot be written.
    """
    write_atomically(path, as_text(record))


def as_text(record: AppliedRecord) -> str:
    """The record as its file has it."""
    return printable_json(json.dumps(record.to_json(), indent=1, ensure_ascii=False)) + "\n"
