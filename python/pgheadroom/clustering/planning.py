"""
What is clustered, by which index, with what, and what is claimed of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pgheadroom
from pgheadroom.doctor.cluster_steps import clustered, order_numbers, order_said
from pgheadroom.doctor.remedy_facts import RemedyFacts
from pgheadroom.doctor.remedy_steps import NotAStep
from pgheadroom.doctor.values import Finding, Remedy, no_price
from pgheadroom.errors import ParameterError
from pgheadroom.order.choosing import chosen
from pgheadroom.order.values import IndexOrder, OrderReport, TableOrder
from pgheadroom.plan.remedies import RemedyStep
from pgheadroom.plan.remedy_statements import remade
from pgheadroom.plan.values import Plan, Target, now_text
from pgheadroom.quoting import printable

RULE = "order"
TOOLS = ("auto", "cluster", "repack", "pg_squeeze", "pg_repack")


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
            if isinstance(index, str):
                raise NotAStep(index)
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


def _step(
    table: TableOrder,
    index: IndexOrder,
    oids: tuple[int, int],
    facts: RemedyFacts,
    target: Target,
    how: str,
) -> RemedyStep:
    finding = Finding(
        rule=RULE,
        severity="info",
        object=table.called,
        text=order_said(index),
        numbers=order_numbers(index, table.rows, *oids),
        price=no_price("it is in the report"),
        remedy=Remedy(text="CLUSTER"),
    )
    return clustered(facts, finding, how, target)
