"""
An advice as text: for the terminal, as psql would align it, and as Markdown for a ticket.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pgheadroom.advise.advice import Advice
from pgheadroom.report import text
from pgheadroom.report.advice import detail as advice_detail
from pgheadroom.report.advice import head as advice_head
from pgheadroom.report.advice import overview as advice_overview
from pgheadroom.report.advice import statements as advice_statements
from pgheadroom.report.advice import tables as advice_tables
from pgheadroom.report.advice.detail import Detail
from pgheadroom.report.advice.statements import Statements
from pgheadroom.report.table import Table

if TYPE_CHECKING:
    from rich.console import Console

MOST_DETAILS = 10
"""Tables in full in a terminal or a ticket; the page has more (arbitrary)."""


def details(advice: Advice, *, verbose: bool, most: int = MOST_DETAILS) -> tuple[list[Detail], int]:
    """
    The tables that are shown in full, and how many more deserve it.

    Args:
        advice: What is shown.
        verbose: All tables, and all points of their curves.
        most: Tables at most, unless verbose.
    """
    wanted = advice_overview.treated(advice, verbose=verbose)
    shown = wanted if verbose else wanted[:most]
    found = [advice_detail.detail(advice, table, all_points=verbose) for table in shown]
    return found, len(wanted) - len(shown)


def print_advice(
    advice: Advice, console: Console, *, verbose: bool = False, brief: bool = False
) -> None:
    """
    Print what goes first, a line a table, and the tables to change in full.

    Args:
        advice: What is shown.
        console: Where.
        verbose: Every table in full, with all points of its curve.
        brief: Of a table only sentences and statements; for where a page has the rest.
    """
    _line(console, advice_head.title(advice), "bold")
    _marked(console, "!", map(advice_detail.remark_text, advice.first))
    _marked(console, "*", advice_head.summary(advice))
    _marked(console, "~", advice_head.unseen(advice.observation))
    _marked(console, "~ assumed:", map(advice_statements.printed_line, advice.assumed))
    for remark in advice.first:
        _blocks(console, advice_statements.remark_statements(remark))
    console.print()
    text.print_tables(_tables(advice, verbose=verbose), console)
    if not verbose:
        _marked(console, "", advice_overview.others(advice))
    found, more = details(advice, verbose=verbose)
    for item in found:
        _print_detail(item, console, brief=brief)
    if more:
        _line(console, f"\n{more} more deserve it: --verbose shows all, --html a page.")


def _print_detail(item: Detail, console: Console, *, brief: bool) -> None:
    console.print()
    _line(console, item.title, "bold")
    _marked(console, "*", item.sentences)
    _marked(console, "+", item.remarks)
    _marked(console, "~ not known:", item.missing)
    if item.tables and not brief:
        console.print()
        text.print_tables(item.tables, console)
    _blocks(console, item.statements)


def _line(console: Console, content: str, style: str = "") -> None:
    console.print(content, style=style, markup=False, highlight=False)


def _marked(console: Console, sign: str, lines: Iterable[str]) -> None:
    for content in lines:
        _line(console, f"{sign} {content}" if sign else content)


def _blocks(console: Console, found: Iterable[Statements]) -> None:
    for statements in found:
        console.print()
        _line(console, f"-- {statements.title}", "dim")
        for content in statements.lines:
            # Not wrapped: a break inside a statement could not be copied.
            console.print(content, markup=False, highlight=False, soft_wrap=True)


def as_markdown(advice: Advice, *, verbose: bool = False) -> str:
    """The same as GitHub-flavoured Markdown; every name is escaped."""
    said = text.markdown_text
    lines = [f"# {said(advice_head.title(advice))}", ""]
    lines += [f"- **{said(advice_detail.remark_text(remark))}**" for remark in advice.first]
    lines += [f"- {said(item)}" for item in advice_head.summary(advice)]
    lines += [f"- {said(item)}" for item in advice_head.unseen(advice.observation)]
    lines += [f"- Assumed: {said(item)}" for item in advice.assumed]
    lines.append("")
    for remark in advice.first:
        lines += _fenced(advice_statements.remark_statements(remark))
    lines += [text.as_markdown(_tables(advice, verbose=verbose, folds=False))]
    others = () if verbose else advice_overview.others(advice, folds=False)
    lines += [f"{said(item)}\n" for item in others]
    found, more = details(advice, verbose=verbose)
    for item in found:
        lines += [f"## {said(item.title)}", ""]
        lines += [f"- {said(sentence)}" for sentence in item.sentences]
        lines += [f"- {said(remark)}" for remark in item.remarks]
        lines += [f"- Not known: {said(missing)}" for missing in item.missing]
        lines += ["", text.as_markdown(item.tables)]
        lines += _fenced(item.statements)
    if more:
        lines += [f"{more} more deserve it: `--verbose` shows all.", ""]
    lines += [text.as_markdown([advice_tables.prices(advice)])]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def _tables(advice: Advice, *, verbose: bool, folds: bool = True) -> list[Table]:
    found = []
    if (indexes := advice_tables.indexes(advice, all_indexes=verbose)) is not None:
        found.append(indexes)
    found.append(advice_overview.overview(advice, verbose=verbose, folds=folds))
    if (parents := advice_tables.partitioned(advice)) is not None:
        found.append(parents)
    return found


def _fenced(found: Sequence[Statements]) -> list[str]:
    lines: list[str] = []
    for item in found:
        runs = re.findall(r"`+", "\n".join(item.lines))
        fence = "`" * max([3, *(len(run) + 1 for run in runs)])
        lines += [text.markdown_text(item.title), "", f"{fence}{item.language}"]
        lines += [*item.lines, fence, ""]
    return lines
