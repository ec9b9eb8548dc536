"""
What is clustered, by which index, with what, and what is claimed of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pgheadroom
from pgheadroom.doctor.remedy_facts import RemedyFacts, index_of, is_shown, table_of
from pgheadroom.doctor.remedy_steps import NotAStep, unmade
from pgheadroom.doctor.rewriting import copied_bytes, rewriting_facts, tools_for
from pgheadroom.doctor.values import Finding, Remedy, no_price
from pgheadroom.errors import ParameterError
from pgheadroom.order.values import RANGE_ROWS, IndexOrder, OrderReport, TableOrder
from pgheadroom.plan.remedies import Claim, RemedyStep, RemedyTool
from pgheadroom.plan.remedy_statements import remade
from pgheadroom.plan.values import Plan, Target, now_text
from pgheadroom.quoting import printable
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

RULE = "order"
TOOLS = ("auto", "cluster", "repack")
_TIMES_FROM = 1.5
_BACK_DAYS_MAX = 30.0
"""A plan has what pays back within a month, unless its table was named. Arbitrary."""
_CLAIM_FRAC = 0.05
"""What the layout of rows, and ranges that begin at another row, are off by."""


def check_tool(how: str) -> None:
    """
    Refuse what is no way to cluster.

    Raises:
        ParameterError: It is none of `TOOLS`.
    """
    if how not in TOOLS:
        raise ParameterError("tool", f"{how!r}: expected one of {', '.join(TOOLS)}")


def plan_order(
    report: OrderReport,
    oids: Mapping[tuple[str, str], tuple[int, Mapping[str, int]]],
    facts: RemedyFacts,
    target: Target,
    how: str,
    *,
    is_named: bool,
) -> Plan:
    """
    Make the plan of a report.

    Args:
        report: What was found.
        oids: Of tables by schema and name, and of their indexes by name.
        facts: Asks the database.
        target: It.
        how: `auto`: only by what lets clients go on; or a tool.
        is_named: The tables were named, so that prices do not decide.
    """
    steps: list[RemedyStep] = []
    notes = []
    for table in report.tables:
        try:
            index = chosen(table, is_named=is_named)
            table_oid, indexes = oids[table.schema, table.name]
            step = _step(table, index, (table_oid, indexes[index.name]), facts, target, how)
        except NotAStep as why:
            notes.append(printable(f"no step for {table.called}: {why}"))
            continue
        steps.append(remade(replace(step, number=len(steps) + 1), target))
    return Plan(
        tool_version=pgheadroom.__version__,
        created_at=now_text(),
        observed_at=report.at,
        target=target,
        policy=None,
        rewrite="none",
        steps=(),
        offers=(),
        kept=(),
        notes=tuple(notes),
        remedies=tuple(steps),
    )


def chosen(table: TableOrder, *, is_named: bool) -> IndexOrder:
    """
    The index by which a table is clustered.

    Args:
        table: It, with its indexes.
        is_named: It was named, so that prices do not decide.

    Raises:
        NotAStep: None, and why.
    """
    lost = [
        index
        for index in table.indexes
        if index.evidence == "sampled"
        and index.pages_per_range.low >= _TIMES_FROM * index.pages_fresh.high
    ]
    if not lost:
        if not any(index.evidence == "sampled" for index in table.indexes):
            raise NotAStep("no range of it was read")
        raise NotAStep(f"no range lies on {_TIMES_FROM:g} times the pages of a clustered one")
    marked = [index for index in table.indexes if index.is_marked]
    if marked and marked[0] not in lost and marked[0].evidence == "sampled":
        raise NotAStep(f"it lies in the order of {marked[0].name}, by which it is clustered")
    if marked and marked[0] in lost:
        lost = marked
    if is_named:
        return max(lost, key=_saved_s)
    paying = [
        index
        for index in lost
        if index.pay is not None
        and index.pay.pays_back_days is not None
        and index.pay.pays_back_days.mid <= _BACK_DAYS_MAX
    ]
    if not paying:
        raise NotAStep(
            f"by its prices clustering does not pay back within {_BACK_DAYS_MAX:g} days, or "
            "nothing says how often ranges are read; name the table to have a step all the same"
        )
    return max(paying, key=_saved_s)


def _saved_s(index: IndexOrder) -> float:
    return 0.0 if index.pay is None else index.pay.saved_s_a_day.mid


def _step(
    table: TableOrder,
    index: IndexOrder,
    oids: tuple[int, int],
    facts: RemedyFacts,
    target: Target,
    how: str,
) -> RemedyStep:
    row = facts.index(oids[1])
    found = rewriting_facts(facts.rows, [oids[0]]).get(oids[0])
    if row is None or found is None:
        raise NotAStep("it could not be looked at: it is gone, or somebody holds it")
    planned = index_of(row)
    if not is_shown(planned):
        raise NotAStep("characters of its index's definition cannot be printed: do it by hand")
    now, fresh = index.pages_per_range, index.pages_fresh
    finding = Finding(
        rule=RULE,
        severity="info",
        object=table.called,
        text=f"A range of 1,000 rows by {printable(index.name)} lies on {now.mid:.0f} pages "
        f"[{now.low:.0f}, {now.high:.0f}], of a freshly clustered table on {fresh.mid:.0f}; "
        f"{index.ranges} ranges were read.",
        numbers={},
        price=no_price("it is in the report"),
        remedy=Remedy(text="CLUSTER"),
    )
    claim = Claim(
        measure="pages_per_range",
        unit="pages",
        before=now.mid,
        foreseen=Interval(
            low=fresh.low * (1 - _CLAIM_FRAC),
            mid=fresh.mid,
            high=fresh.high * (1 + _CLAIM_FRAC),
            level=fresh.level,
        ),
        basis="rows laid in order on pages to the table's fillfactor",
        how="ranges of 1,000 rows are read again, at most 1,000 pages",
        of={},
    )
    step = unmade(
        finding,
        "cluster_table",
        _tool(facts, found, target, how),
        table_of(row),
        finding.text,
        (claim,),
    )
    new_bytes = table.rows / max((RANGE_ROWS - 1) / max(fresh.low - 1, 0.1), 1.0) * PAGE_BYTES
    return replace(step, index=planned, copied_bytes=copied_bytes(found, new_bytes))


def _tool(facts: RemedyFacts, found: Mapping[str, object], target: Target, how: str) -> RemedyTool:
    tools, unfit = tools_for(facts.settings(), target.major, found)
    if how != "cluster" and "REPACK (CONCURRENTLY)" in tools:
        return "REPACK USING INDEX"
    if how == "repack":
        raise NotAStep(f"repack cannot cluster it: {unfit['REPACK (CONCURRENTLY)']}")
    if how == "auto":
        raise NotAStep(
            "only CLUSTER is there, which takes ACCESS EXCLUSIVE: nobody reads or writes the table "
            "until it ends; it is a step where the tool `cluster` is asked for"
        )
    return "CLUSTER"
