"""
A plan for people: as text that psql can run, and as Markdown for a change request.

Names come from a database, so nothing that they hold may end a comment or a fence.
"""

from __future__ import annotations

import re

from pgheadroom.advise.foreseen import moves_hot
from pgheadroom.outcome import Value
from pgheadroom.plan.reading import digest
from pgheadroom.plan.remedies import Claim, ClaimMeasure
from pgheadroom.plan.statements import name_of, one_line
from pgheadroom.plan.values import Forecast, Plan, PlanStep, Step
from pgheadroom.types import Interval
from pgheadroom.units import (
    percent,
    share_digits,
    show_bytes,
    show_count,
    show_duration,
    show_percent,
)

LOCK_TIMEOUT = "2s"
"""Longer than deadlock_timeout (1 s), after which an autovacuum gives way."""

_WIDTH = 92
_PURPOSE = (
    "Leave room on the pages of tables whose updates find none, so that more of them are HOT (no "
    "new index entries, less WAL, less to vacuum), or stay on their page; or take back what none "
    "of them needs."
)
CLAIMED: dict[ClaimMeasure, str] = {
    "given_back_bytes": "given back",
    "toast_given_back_bytes": "given back by TOAST",
    "wal_bytes_per_entry": "WAL of an entry of the index",
    "n_dead_tup": "dead rows, at most",
    "toast_n_dead_tup": "dead rows of TOAST, at most",
    "n_mod_since_analyze": "rows changed since ANALYZE, at most",
    "is_analyzed": "analyzed",
    "images_frac": "full-page images a changed row, by those before",
    "vacuums_frac": "part of autovacuum's runs that are due and come",
    "checkpoints_by_wal": "checkpoints by WAL, for each distance of before",
    "setting": "in force",
    "is_valid": "valid",
    "deletes_by_index_frac": "part of the parent's deleted rows whose children the index finds",
    "pages_per_range": "pages of a range of 1,000 rows in the index's order",
}
"""Measures of claims, for people."""
_REMEDIES_PURPOSE = (
    "Carry out what `pgheadroom doctor` has found and priced; each step says what it claims, and "
    "`pgheadroom verify` measures it."
)


def as_text(plan: Plan) -> str:
    """
    The plan as a psql script: statements, and everything else in comments.

    Undo stands beside each statement, as a comment; commands of clients are comments too.
    """
    lines = [f"-- {one_line(line)}" for line in _head(plan)]
    lines += ["", f"SET lock_timeout = '{LOCK_TIMEOUT}';"]
    for step, like in with_likeness(plan.work):
        lines += ["", f"-- Step {step.number}: {one_line(_title(step))}"]
        facts = [wrapped for line in _facts(step, like) for wrapped in _wrap(line)]
        lines += [f"--   {line}" for line in facts]
        if step.sql is not None:
            lines.append(f"{step.sql};")
        else:
            lines.append(f"-- On your machine: {one_line(step.command or '')}")
        lines.append(f"-- Undo: {one_line(f'{step.undo};' if step.undo else step.undo_note)}")
    if not plan.work:
        lines += ["", "-- Nothing to change."]
    if plan.offers:
        lines += ["", "-- Not part of this plan: rewrites that would make a setting act at once"]
        for step in plan.offers:
            lines.append(f"--   {one_line(step.sql or step.command or '')}")
            lines.append(f"--     {one_line(step.lock)}; {_cost(step)}")
    lines += ["", "-- Afterwards: pgheadroom verify PLAN CONN --for 5m"]
    return "\n".join(lines) + "\n"


def as_markdown(plan: Plan) -> str:
    """The plan as a change request: purpose, statements with undo, locks, costs, risk, check."""
    target = plan.target
    lines = [
        f"# Change: {_what(plan)}",
        "",
        f"- Database: {_code(one_line(target.database))} (OID {target.database_oid}), PostgreSQL "
        f"{_escaped(target.server_version)}, cluster "
        f"{_escaped(target.system_identifier or 'unknown')}",
        f"- Observed: {_escaped(plan.observed_at or 'unknown')}; planned: "
        f"{_escaped(plan.created_at)} by pgheadroom {_escaped(plan.tool_version)}"
        + ("" if plan.policy is None else f"; goal: {_escaped(plan.policy.goal)}"),
        f"- Digest of the plan's file: `{digest(plan)}`; `apply` shows that of the file it is "
        "given",
        "",
        "## Purpose",
        "",
        _PURPOSE if plan.remedies is None else _REMEDIES_PURPOSE,
        "",
    ]
    purposes = _purposes(plan) or ([] if plan.work else ["Nothing to change."])
    lines += [f"- {_escaped(line)}" for line in purposes]
    lines += [f"- {_escaped(note)}" for note in plan.notes]
    for step, like in with_likeness(plan.work):
        lines += ["", f"## Step {step.number}: {_escaped(_title(step))}", ""]
        made = f"{step.sql};" if step.sql else str(step.command)
        lines += _fenced(one_line(made), bool(step.sql))
        undo = f"Undo: {_escaped(step.undo_note)}"
        lines += ["", undo]
        if step.undo is not None:
            lines += ["", *_fenced(one_line(f"{step.undo};"), True)]
        lines += [""] + [f"- {_escaped(line)}" for line in _facts(step, like)]
    if plan.offers:
        lines += ["", "## Not part of this plan", ""]
        lines += ["A rewrite would make a setting act at once. The server has:", ""]
        lines += [
            f"- {_code(one_line(step.sql or step.command or ''))}: {_escaped(step.lock)}; "
            f"{_escaped(_cost(step))}"
            for step in plan.offers
        ]
    lines += [
        "",
        "## How to carry it out",
        "",
        "`pgheadroom apply PLAN CONN` shows all of it, asks, waits for locks at most "
        f"{LOCK_TIMEOUT} at a time, stops at the first failure, and writes down what it did; "
        "`--undo` takes it back. Or run the statements above with psql, after "
        f"`SET lock_timeout = '{LOCK_TIMEOUT}'`.",
        "",
        "## How to verify",
        "",
        "`pgheadroom verify PLAN CONN --for 5m` observes again under a comparable load and holds "
        "the outcome against the forecast; exit code 1 says that a forecast failed.",
        "",
    ]
    return "\n".join(lines)


def _what(plan: Plan) -> str:
    if plan.remedies and all(step.kind == "cluster_table" for step in plan.remedies):
        return f"{show_count(len(plan.remedies), 'table')} put in the order of an index"
    if plan.remedies is not None:
        return f"{show_count(len(plan.remedies), 'step')} for the doctor's findings"
    return f"fillfactor of {show_count(len({step.table.oid for step in plan.steps}), 'table')}"


def _head(plan: Plan) -> list[str]:
    target = plan.target
    lines = [
        f"pgheadroom {plan.tool_version}: plan of {plan.created_at}",
        f"For database {one_line(target.database)} (OID {target.database_oid}) on PostgreSQL "
        f"{target.server_version}, cluster {target.system_identifier or 'unknown'}; observed "
        f"{plan.observed_at or 'at an unknown time'}",
    ]
    return lines + [wrapped for line in (*_purposes(plan), *plan.notes) for wrapped in _wrap(line)]


def _purposes(plan: Plan) -> list[str]:
    seen: dict[int, Forecast] = {step.table.oid: step.forecast for step in plan.steps}
    rewritten = {step.table.oid for step in plan.steps if step.kind == "rewrite"}
    return [
        f"{name_of(found.table)}: fillfactor {found.measured.fillfactor} -> {found.fillfactor}. "
        f"{one_line(found.reason).rstrip('.')}. {_expected(found, oid in rewritten)}"
        for oid, found in seen.items()
    ]


def _expected(found: Forecast, is_rewritten: bool) -> str:
    hot = found.measured.hot_frac
    then = None if found.after is None else found.after.hot_frac
    end = None if found.transition is None else found.transition.final_hot_frac
    measured, foreseen, arrives = _shares(hot, then, end)
    said = [] if hot is None else [f"HOT {measured} measured"]
    if found.after is not None:
        stays = "" if moves_hot(found.before, found.after) else "as before, "
        said.append(f"long run at {found.fillfactor}: HOT {stays}{foreseen}")
        said.append(f"heap {_size(found.after.heap_bytes)}")
    if is_rewritten:
        said.append("the rewrite makes it act at once")
    elif found.transition is not None:
        said.append(_way(found, arrives))
    return "; ".join(said) + "."


def _way(found: Forecast, arrives: str) -> str:
    way = found.transition
    assert way is not None, "the caller has looked"
    acts = "without a rewrite it acts on pages that are filled from now on"
    if not moves_hot(found.before, found.after):
        return acts
    if way.verdict == "at once":
        return f"{acts}, which shows at once"
    if way.after_s is not None:
        return f"{acts}, which takes about {show_duration(way.after_s)} at the observed rate"
    if way.verdict == "does not converge":
        end = "" if way.final_hot_frac is None else f": HOT {arrives}"
        return f"{acts}, and never gets there{end}"
    return acts


def _title(step: PlanStep) -> str:
    if not isinstance(step, Step):
        return step.title
    name = name_of(step.table)
    if step.kind == "set_fillfactor":
        return (
            f"fillfactor of {name} {step.table.fillfactor or 'not set (100)'} -> {step.fillfactor}"
        )
    return f"rewrite {name} by {step.tool}"


def with_likeness(steps: tuple[PlanStep, ...]) -> list[tuple[PlanStep, int | None]]:
    """Each step with the number of the first one by the same tool, of which the same is true."""
    first: dict[str, int] = {}
    made: list[tuple[PlanStep, int | None]] = []
    for step in steps:
        made.append((step, first.get(step.tool)))
        first.setdefault(step.tool, step.number)
    return made


def claim_lines(step: PlanStep) -> list[str]:
    """Of a doctor's step: why it may be done, and what it is said to do."""
    if isinstance(step, Step):
        return []
    lines = [f"Why: {step.rule}: {one_line(step.evidence)}"]
    return lines + [f"Claim: {claim_said(claim)}" for claim in step.claims]


def claim_said(claim: Claim) -> str:
    """A claim in a sentence: from what to what, and how it is measured."""
    before = "unknown" if claim.before is None else shown_amount(claim.before, claim.unit)
    found = claim.foreseen
    low, mid, high = (shown_amount(n, claim.unit) for n in (found.low, found.mid, found.high))
    said = mid if low == high else f"{mid} ({low} to {high})"
    start = "" if claim.measure.endswith("given_back_bytes") else f"{before} -> "
    found_by = f"{one_line(claim.basis)}. Measured by: {one_line(claim.how)}"
    return f"{CLAIMED[claim.measure]}: {start}{said}; {found_by}"


def shown_amount(value: float, unit: str) -> str:
    """A number of a claim in its unit."""
    if unit == "bytes":
        return show_bytes(value)
    if unit == "switch":
        return "on" if value else "off"
    shown = f"{value:,.0f}" if value == round(value) else f"{value:,.3g}"
    return f"{shown} {unit}".rstrip()


def _facts(step: PlanStep, like: int | None) -> list[str]:
    lock = f"blocks {step.blocks}" if like is None else f"as in step {like}"
    facts = [*claim_lines(step), f"Lock: {step.lock}; {lock}"]
    basis = step.duration_basis if like is None else f"as in step {like}"
    facts.append(f"Duration: {_duration(step.duration_s)} ({basis})")
    facts.append(
        f"{disk_said(step).capitalize()}: {show_bytes(step.disk_bytes)}; "
        f"WAL: {show_bytes(step.wal_bytes)} (estimated)"
    )
    if not step.in_transaction:
        facts.append("Not inside a transaction block")
    if not step.verified:
        facts.append("Not verified by us on this version")
    if step.run_by == "you":
        facts.append("pgheadroom apply does not run it: it is a client's command")
    return [*facts, f"Risk: {step.risk if like is None else f'as in step {like}'}"]


def disk_said(step: PlanStep) -> str:
    """When the disk that a step names is needed: a setting needs none, its table grows by it."""
    return "disk in the end" if step.kind == "set_fillfactor" else "disk while it runs"


def _cost(step: Step) -> str:
    return (
        f"{_duration(step.duration_s)}, {disk_said(step)} {show_bytes(step.disk_bytes)}, WAL "
        f"{show_bytes(step.wal_bytes)}, all estimated"
    )


def _duration(found: Interval) -> str:
    return f"{show_duration(found.low)} to {show_duration(found.high)}"


def _shares(*values: Value) -> list[str]:
    """Shares that are read beside each other: all have as many decimals."""
    mids = [value.mid if isinstance(value, Interval) else value for value in values]
    digits = share_digits(mid for mid in mids if mid is not None)

    def one(value: Value) -> str:
        if isinstance(value, Interval):
            ends = f"{percent(value.low, digits)} to {percent(value.high, digits)}"
            return f"{show_percent(value.mid, digits)} % ({ends})"
        return "unknown" if value is None else f"{show_percent(value, digits)} %"

    return [one(value) for value in values]


def _size(value: Value) -> str:
    if isinstance(value, Interval):
        return f"{show_bytes(value.mid)} ({show_bytes(value.low)} to {show_bytes(value.high)})"
    return "unknown" if value is None else show_bytes(value)


def _wrap(line: str) -> list[str]:
    """Words on lines of a comment's width; one_line has been applied, so no word breaks it."""
    lines, current = [], ""
    for word in one_line(line).split(" "):
        if current and len(current) + 1 + len(word) > _WIDTH:
            lines.append(current)
            current = f"  {word}"
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current]


def _escaped(text: str) -> str:
    """Nothing in it is markup, and nothing ends the line."""
    shown = one_line(text)
    for character in "\\`*_|[]#~$":
        shown = shown.replace(character, f"\\{character}")
    return shown.replace("&", "&amp;").replace("<", "&lt;")


def _code(text: str) -> str:
    """An inline code span that its text cannot leave."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text[:1] in "` " or text[-1:] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _fenced(text: str, is_sql: bool) -> list[str]:
    """A code block that its text cannot leave."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{'sql' if is_sql else 'sh'}", text, fence]
