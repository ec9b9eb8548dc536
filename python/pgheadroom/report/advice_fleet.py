"""
Advice for several servers on one page: the servers as rows, then every table that is to change.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgheadroom.advise.fleet import FleetAdvice, ServerAdvice
from pgheadroom.lab.result import CellValue
from pgheadroom.quoting import printable
from pgheadroom.report import csv_file, text
from pgheadroom.report import fleet as fleet_report
from pgheadroom.report.advice import head
from pgheadroom.report.advice import text as advice_text
from pgheadroom.report.heading import Heading
from pgheadroom.report.table import Column, Table


def heading(fleet: FleetAdvice) -> Heading:
    """What stands above the page."""
    return fleet_report.heading(
        "Advice",
        (one.advice.observation.server_version if one.advice else None for one in fleet.servers),
        answer=fleet.summary(),
        unseen=_unseen(fleet),
        tool=fleet.tool_version,
    )


def servers_table(fleet: FleetAdvice) -> Table:
    """A row a server."""
    columns = (
        Column(key="server", title="server", style="words", lead=True),
        Column(key="version", title="PostgreSQL", style="words"),
        Column(key="database", title="database", style="words"),
        Column(key="change", title="CHANGE"),
        Column(key="keep", title="KEEP"),
        Column(key="abstain", title="ABSTAIN"),
    )
    return Table(title="Servers", columns=columns, rows=tuple(map(_server_row, fleet.servers)))


def _server_row(one: ServerAdvice) -> tuple[CellValue, ...]:
    found = one.verdicts
    if one.advice is None or found is None:
        return (one.name, "no answer", None, None, None, None)
    seen = one.advice.observation
    return (
        one.name,
        seen.server_version,
        seen.database,
        found.change,
        found.keep,
        found.abstain,
    )


def tables(fleet: FleetAdvice) -> list[Table]:
    """Servers, then tables to change, each with its server."""
    made = [servers_table(fleet)]
    columns = (
        Column(key="server", title="server", style="words", lead=True),
        Column(key="table", title="table", style="words", lead=True),
        Column(key="fillfactor", title="fillfactor"),
        Column(key="advised", title="advised"),
        Column(key="gain", title="gain", style="share"),
        Column(key="reason", title="reason", style="words"),
    )
    rows = tuple(
        (
            one.name,
            head.full_name(table),
            table.fillfactor,
            table.advised_fillfactor,
            table.gain_frac,
            table.reason,
        )
        for one in fleet.servers
        if one.advice is not None
        for table in one.advice.tables
        if table.verdict == "CHANGE"
    )
    if rows:
        made.append(Table(title="Tables to change", columns=columns, rows=rows))
    return made


def unseen_lines(fleet: FleetAdvice) -> Iterator[str]:
    """Servers without an answer, and why."""
    yield from map(printable, _unseen(fleet))


def _unseen(fleet: FleetAdvice) -> Iterator[str]:
    for one in fleet.servers:
        if one.advice is None:
            yield fleet_report.no_answer(one.name, one.error)


def as_csv(fleet: FleetAdvice) -> str:
    """A row a table."""
    rows = fleet.rows()
    names = tuple(rows[0]) if rows else ("server", "table", "verdict")
    return csv_file.written(names, [tuple(row[name] for name in names) for row in rows])


def as_markdown(fleet: FleetAdvice, *, verbose: bool) -> str:
    """For a ticket: the servers, then the advice for each."""
    parts = [f"# {text.markdown_text(printable(fleet.summary()))}\n"]
    parts.append(text.as_markdown([servers_table(fleet)]))
    parts += [f"- {text.markdown_text(line)}\n" for line in unseen_lines(fleet)]
    parts += [
        advice_text.as_markdown(one.advice, verbose=verbose)
        for one in fleet.servers
        if one.advice is not None
    ]
    return "\n".join(parts)
