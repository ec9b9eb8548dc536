"""
A table in bad order as a step that clusters it by an index, and what is claimed of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pgheadroom.doctor.remedy_facts import FactRow, RemedyFacts, index_of, is_shown, table_of
from pgheadroom.doctor.remedy_steps import NotAStep, finding_number, unmade
from pgheadroom.doctor.rewriting import copied_bytes, rewriting_facts, tools_for
from pgheadroom.doctor.values import Finding, FindingNumber
from pgheadroom.order.values import RANGE_ROWS, IndexOrder
from pgheadroom.plan.remedies import Claim, PlannedIndex, RemedyStep, RemedyTool
from pgheadroom.plan.remedy_statements import remade
from pgheadroom.plan.statements import OPTIONS, ORDERING, order_keys, tool_of
from pgheadroom.plan.values import Target
from pgheadroom.quoting import printable
from pgheadroom.types import Interval
from pgheadroom.units import PAGE_BYTES

if TYPE_CHECKING:
    import psycopg

_CLAIM_FRAC = 0.05
"""What the layout of rows, and ranges that begin at another row, are off by."""
_HOW = {name: name for name in ("auto", *OPTIONS)} | {"vacuum-full": "cluster"}
"""Of ways to rewrite a table those that put it in order; who takes VACUUM FULL takes its lock."""


def order_numbers(
    index: IndexOrder, rows: int, table_oid: int, index_oid: int
) -> dict[str, FindingNumber]:
    """
    What `clustered` takes of a finding.

    Args:
        index: By which the table is clustered.
        rows: Of the table.
        table_oid: Its OID.
        index_oid: That of the index.
    """
    now, fresh = index.pages_per_range, index.pages_fresh
    per_page = max((RANGE_ROWS - 1) / max(fresh.low - 1, 0.1), 1.0)
    return {
        "oid": table_oid,
        "by_index_oid": index_oid,
        "pages_per_range_low": round(now.low, 2),
        "pages_per_range": round(now.mid, 2),
        "pages_per_range_high": round(now.high, 2),
        "pages_fresh_low": fresh.low,
        "pages_fresh": fresh.mid,
        "pages_fresh_high": fresh.high,
        "pages_fresh_level": fresh.level,
        "ranges": index.ranges,
        "fresh_bytes": round(rows / per_page * PAGE_BYTES),
    }


def order_said(index: IndexOrder) -> str:
    """In words: pages of a range now, and of a table in order."""
    now, fresh = index.pages_per_range, index.pages_fresh
    return (
        f"A range of 1,000 rows by {printable(index.name)} lies on {now.mid:.0f} pages "
        f"[{now.low:.0f}, {now.high:.0f}], of a freshly clustered table on {fresh.mid:.0f}; "
        f"{index.ranges} ranges were read."
    )


def clustered(facts: RemedyFacts, finding: Finding, how: str, target: Target) -> RemedyStep:
    """
    A table that is written anew in the order of an index.

    Args:
        facts: Asks the database.
        finding: With `order_numbers`.
        how: `auto`: only by what lets clients go on; `best`: else by CLUSTER; or `cluster`,
            `repack`, `pg_squeeze`, `pg_repack`.
        target: The database.

    Raises:
        NotAStep: It is gone, or nothing that was asked for can do it.
    """
    row = facts.index(int(finding_number(finding, "by_index_oid")))
    table_oid = int(finding_number(finding, "oid"))
    found = rewriting_facts(facts.rows, [table_oid]).get(table_oid)
    if row is None or found is None:
        raise NotAStep("it could not be looked at: it is gone, or somebody holds it")
    index = index_of(row)
    if not is_shown(index):
        raise NotAStep("characters of its index's definition cannot be printed: do it by hand")
    low, mid, high, level = (
        finding_number(finding, f"pages_fresh{end}") for end in ("_low", "", "_high", "_level")
    )
    claim = Claim(
        measure="pages_per_range",
        unit="pages",
        before=finding_number(finding, "pages_per_range"),
        foreseen=Interval(
            low=low * (1 - _CLAIM_FRAC), mid=mid, high=high * (1 + _CLAIM_FRAC), level=level
        ),
        basis="rows laid in order on pages to the table's fillfactor",
        how="ranges of 1,000 rows are read again, at most 1,000 pages",
        of={},
    )
    tool = _tool(facts.settings(), found, target, how, index)
    step = unmade(finding, "cluster_table", tool, table_of(row), finding.text, (claim,))
    new_bytes = finding_number(finding, "fresh_bytes")
    return replace(step, index=index, copied_bytes=copied_bytes(found, new_bytes))


def clustered_as_wished(
    facts: RemedyFacts, finding: Finding, rewrite: str, target: Target
) -> RemedyStep:
    """
    The same, where a plan says how tables may be rewritten.

    Args:
        facts: Asks the database.
        finding: With `order_numbers`.
        rewrite: As `doctor --rewrite` has it.
        target: The database.

    Raises:
        NotAStep: None is wanted, or as in `clustered`.
    """
    if rewrite == "none":
        raise NotAStep("rewrites were not wanted")
    return clustered(facts, finding, _HOW[rewrite], target)


def step_or_why(connection: psycopg.Connection[Any], finding: Finding) -> RemedyStep | str:
    """
    The step as it would be planned with the best tool that the server has; or why there is none.

    Args:
        connection: From `read_only_session`.
        finding: With `order_numbers`.
    """
    facts = RemedyFacts(connection)
    target = Target(
        system_identifier=None,
        database_oid=0,
        database=connection.info.dbname,
        server_version=str(connection.info.server_version // 10000),
        is_superuser=facts.is_superuser(),
    )
    try:
        step = clustered(facts, finding, "best", target)
    except NotAStep as why:
        return str(why)
    return remade(step, target)


def _tool(
    settings: Mapping[str, str], found: FactRow, target: Target, how: str, index: PlannedIndex
) -> RemedyTool:
    tools, unfit = tools_for(settings, target.major, found)
    if "pg_repack" in tools and order_keys(index.definition) is None:
        tools.remove("pg_repack")
        unfit["pg_repack"] = f"{index.relation.called} has more than columns, which it orders by"
    if found["method"] != "heap":
        why = f"not tested with tables of access method {printable(str(found['method']))}"
        unfit |= dict.fromkeys(ORDERING.values(), why)
    ways = {tool: way for way, tool in ORDERING.items()}
    usable = [
        tool
        for tool in tools
        if tool in ways and tool not in unfit and OPTIONS.get(how, tool) == tool
    ]
    if how != "cluster" and usable:
        return cast("RemedyTool", ways[usable[0]])
    if how in OPTIONS:
        raise NotAStep(f"{how} cannot cluster it: {unfit[tool_of(how)]}")
    if how == "auto":
        others = "; ".join(f"{tool}: {why}" for tool, why in unfit.items())
        raise NotAStep(
            f"only CLUSTER is there ({others}), which takes ACCESS EXCLUSIVE: nobody reads or "
            "writes the table until it ends; it is a step where the tool `cluster` is asked for, "
            "and in plans of findings where VACUUM FULL is, which locks as much"
        )
    return "CLUSTER"
