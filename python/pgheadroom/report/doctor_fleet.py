"""
Several examinations on one page: the servers as rows, then what was found, the worst first.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgheadroom.doctor.fleet import FleetDiagnosis, ServerDiagnosis
from pgheadroom.lab.result import CellValue
from pgheadroom.quoting import printable
from pgheadroom.report import csv_file, text
from pgheadroom.report import doctor as doctor_report
from pgheadroom.report import fleet as fleet_report
from pgheadroom.report.heading import Heading
from pgheadroom.report.table import Column, Table

_CSV = (
    "server",
    "severity",
    "rule",
    "object",
    "text",
    "price",
    "price_unit",
    "price_basis",
    "sql",
)


def heading(fleet: FleetDiagnosis) -> Heading:
    """What stands above the page."""
    return fleet_report.heading(
        "Examination",
        (one.diagnosis.examined.server if one.diagnosis else None for one in fleet.servers),
        answer=fleet.summary(),
        unseen=_unseen(fleet),
        tool=fleet.tool_version,
    )


def servers_table(fleet: FleetDiagnosis) -> Table:
    """A row a server."""
    columns = (
        Column(key="server", title="server", style="words", lead=True),
        Column(key="version", title="PostgreSQL", style="words"),
        Column(key="database", title="database", style="words"),
        Column(key="error", title="errors"),
        Column(key="warning", title="warnings"),
        Column(key="info", title="info"),
        Column(key="worst", title="first", style="words"),
    )
    return Table(
        title="Servers", columns=columns, rows=tuple(_server_row(one) for one in fleet.servers)
    )


def _server_row(one: ServerDiagnosis) -> tuple[CellValue, ...]:
    found = one.diagnosis
    if found is None:
        return (one.name, None, None, None, None, None, "no answer")
    counts = [
        sum(each.severity == severity for each in found.findings)
        for severity in ("error", "warning", "info")
    ]
    worst = "none"
    if found.findings:
        worst = f"{found.findings[0].rule}: {found.findings[0].object}"
    return (one.name, found.examined.server, found.examined.database, *counts, worst)


def tables(fleet: FleetDiagnosis) -> list[Table]:
    """Servers, then findings with their server."""
    made = [servers_table(fleet)]
    found = fleet.findings()
    if found:
        names = ("severity", "server", "rule", "object", "what was found", "price", "what to do")
        columns = tuple(
            Column(key=name, title=name, style="words", lead=place < 4)
            for place, name in enumerate(names)
        )
        columns += (doctor_report.STATEMENTS,)
        rows = tuple(
            (
                each.severity,
                server,
                each.rule,
                each.object,
                each.text,
                doctor_report.priced(each.price),
                *doctor_report.remedy_cells(each.remedy),
            )
            for server, each in found
        )
        made.append(Table(title="Findings, the worst first", columns=columns, rows=rows))
    return made


def unseen_lines(fleet: FleetDiagnosis) -> Iterator[str]:
    """What could not be seen, and where."""
    yield from map(printable, _unseen(fleet))


def _unseen(fleet: FleetDiagnosis) -> Iterator[str]:
    """Servers of which the same is to be said stand together; those without an answer first."""
    said: dict[str, list[str]] = {}
    for one in fleet.servers:
        if one.diagnosis is None:
            yield fleet_report.no_answer(one.name, one.error)
            continue
        for line in doctor_report.blind_lines(one.diagnosis):
            said.setdefault(line, []).append(one.name)
    for line, names in said.items():
        yield f"{', '.join(names)}: {line}"


def as_csv(fleet: FleetDiagnosis) -> str:
    """A row a finding."""
    return csv_file.written(_CSV, [tuple(row[name] for name in _CSV) for row in fleet.rows()])


def as_markdown(fleet: FleetDiagnosis) -> str:
    """For a ticket: the servers, then a section for each."""
    parts = [f"# {text.markdown_text(printable(fleet.summary()))}\n"]
    parts.append(text.as_markdown([servers_table(fleet)]))
    for one in fleet.servers:
        if one.diagnosis is None:
            parts.append(f"# {text.markdown_text(printable(one.name))}\n")
            parts.append(f"No answer: {text.markdown_text(printable(one.error or ''))}\n")
        else:
            parts.append(doctor_report.as_markdown(one.diagnosis))
    return "\n".join(parts)
