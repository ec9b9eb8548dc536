"""
What an examination found: one screen first, then all of it; and a rule in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pgheadroom.doctor.rule import Rule
from pgheadroom.doctor.values import Diagnosis, Finding, Price, Remedy
from pgheadroom.quoting import printable
from pgheadroom.report import csv_file, text
from pgheadroom.report.heading import Heading
from pgheadroom.report.table import Column, Table
from pgheadroom.units import show_bytes, show_count, show_duration

SCREEN = 6
"""Findings of the first screen: each takes about four lines, and the whole 24; arbitrary."""

STATEMENTS = Column(key="sql", title="statements", style="code")
"""Of a table of findings, the last one."""

_DO, _UNDO = "do: ", "undo: "
_CSV = ("severity", "rule", "object", "text", "price", "price_unit", "price_basis", "sql")


def heading(diagnosis: Diagnosis) -> Heading:
    """What stands above a page."""
    examined = diagnosis.examined
    noted = (("Noted", printable("; ".join(diagnosis.notes))),) if diagnosis.notes else ()
    return Heading(
        kind="Examination",
        title=f"Database {printable(examined.database)}",
        server=examined.server,
        answer=f"{diagnosis.headline()}.",
        warnings=tuple(blind_lines(diagnosis)),
        alarms=tuple(blind_lines(diagnosis)),
        meta=(("At", examined.at), ("Counted", _counted(diagnosis)), *noted),
        tool_version=diagnosis.tool_version,
    )


def summary(diagnosis: Diagnosis) -> str:
    """The first line."""
    return printable(diagnosis.summary())


def circumstances(diagnosis: Diagnosis) -> Iterator[str]:
    """What was looked at, and what was left out on request."""
    examined = diagnosis.examined
    yield f"{show_count(examined.rules, 'rule')} looked; {_counted(diagnosis)}"
    if examined.in_recovery:
        yield "a standby: it counts its own reads, and no writes"
    if diagnosis.known is not None:
        yield f"left out: {show_count(diagnosis.known, 'finding')} that the baseline has too"
    for item in diagnosis.accepted:
        name = ":".join(item.finding.key)
        yield printable(f"accepted until {item.until}: {name} ({item.finding.severity})")
    for note in diagnosis.notes:
        yield printable(note)


def _counted(diagnosis: Diagnosis) -> str:
    examined = diagnosis.examined
    if examined.interval_s is not None:
        return f"counters of {show_duration(examined.interval_s)}"
    since = examined.statistics_since
    return "counters since an unknown time" if since is None else f"counters since {since}"


def blind_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """What could not be seen: rules with the same reason together, those cut off first."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for item in diagnosis.blind:
        groups.setdefault((item.cut_off, item.why), []).append(item.rule)
    for (cut_off, why), rules in groups.items():
        head = "not looked at" if cut_off else "blind"
        yield printable(f"{head}: {', '.join(rules)}: {why}")


def finding_lines(found: Finding) -> list[str]:
    """A finding for a terminal: what, its price, what to do; see `is_statement`."""
    lines = [found.text, f"price: {priced(found.price)}"]
    remedy = found.remedy
    lines += [f"{_DO}{statement};" for statement in remedy.sql]
    lines.append(" ".join(_beside(remedy)))
    lines += [f"{_UNDO}{remedy.undo};"] if remedy.undo else []
    return [printable(line) for line in lines]


def _beside(remedy: Remedy) -> Iterator[str]:
    """What stands beside the statements, in sentences."""
    yield remedy.text
    for name, value in (("Lock", remedy.lock), ("Cost", remedy.cost)):
        if value:
            yield f"{name}: {value}."


def remedy_cells(remedy: Remedy) -> tuple[str, str]:
    """For a table: what to know, and what to run, with what takes it back as a comment."""
    statements = [f"{statement};" for statement in remedy.sql]
    statements += [f"-- undo: {remedy.undo};"] if remedy.undo else []
    return " ".join(_beside(remedy)), " ".join(statements)


def is_statement(line: str) -> bool:
    """Whether a line is to be copied, and so must stay one line whatever the terminal's width."""
    return line.startswith((_DO, _UNDO))


def priced(price: Price) -> str:
    """A price in words."""
    if price.amount is None:
        return f"none: {price.text.removeprefix('no price: ')}"
    amount, _, per = str(price.unit).partition(" ")
    shown = show_bytes(price.amount) if amount == "bytes" else _long(price.amount)
    return f"{shown}{' ' if per else ''}{per} ({price.basis}): {price.text}"


def _long(seconds: float) -> str:
    return f"{seconds / 86_400:,.0f} days" if seconds >= 172_800 else show_duration(seconds)


def tables(diagnosis: Diagnosis) -> list[Table]:
    """A row a finding."""
    if not diagnosis.findings:
        return []
    columns = tuple(
        Column(key=key, title=title, style="words", lead=lead)
        for key, title, lead in (
            ("severity", "severity", True),
            ("rule", "rule", True),
            ("object", "object", True),
            ("text", "what was found", False),
            ("price", "price", False),
            ("remedy", "what to do", False),
        )
    )
    columns += (STATEMENTS,)
    rows = tuple(
        (
            found.severity,
            found.rule,
            found.object,
            found.text,
            priced(found.price),
            *remedy_cells(found.remedy),
        )
        for found in diagnosis.findings
    )
    return [Table(title="Findings, by effect", columns=columns, rows=rows)]


def as_csv(diagnosis: Diagnosis) -> str:
    """A row a finding."""
    return csv_file.written(_CSV, [tuple(row[name] for name in _CSV) for row in diagnosis.rows()])


def as_markdown(diagnosis: Diagnosis) -> str:
    """For a ticket: a section a finding."""
    lines = [f"# {text.markdown_text(summary(diagnosis))}", ""]
    lines += [f"- {text.markdown_text(line)}" for line in circumstances(diagnosis)]
    lines += [f"- {text.markdown_text(line)}" for line in blind_lines(diagnosis)]
    for found in diagnosis.findings:
        about = text.markdown_text(f"{found.severity}: {found.rule}, {found.object}")
        lines += ["", f"## {about}", ""]
        lines += [f"{text.markdown_text(found.text)}", ""]
        lines += [f"- Price: {text.markdown_text(priced(found.price))}"]
        lines += [f"- {text.markdown_text(line)}" for line in _remedy(found)]
        if found.remedy.sql:
            lines += ["", *_fenced(found.remedy.sql)]
        if found.remedy.undo:
            lines += ["", "Undo:", "", *_fenced([found.remedy.undo])]
    return "\n".join([*lines, ""])


def _remedy(found: Finding) -> Iterator[str]:
    remedy = found.remedy
    yield remedy.text
    for name, value in (("Lock", remedy.lock), ("Cost", remedy.cost)):
        if value:
            yield f"{name}: {value}"


def _fenced(statements: Sequence[str]) -> list[str]:
    """A block of SQL, between fences that no name in it ends."""
    lines = [f"{printable(statement)};" for statement in statements]
    runs = [len(run) for line in lines for run in re.findall("`+", line)]
    fence = "`" * (1 + max([2, *runs]))
    return [f"{fence}sql", *lines, fence]


def explained(rule: Rule) -> list[str]:
    """All that a rule is, for people."""
    found = [
        f"{rule.id}: {rule.question}",
        "",
        f"Finding:  {rule.threshold}",
        f"Severity: {rule.severity}",
        f"Price:    {rule.price}",
        f"Remedy:   {rule.remedy}",
        f"Blind:    {rule.blind}",
        f"Manual:   {rule.link}",
    ]
    found += [f"Book:     {', '.join(rule.book)}"] if rule.book else []
    for since, query in sorted(rule.sql.items()):
        head = (
            "Query"
            if len(rule.sql) == 1 and since == min(rule.sql) == 15
            else (f"Query from PostgreSQL {since} on")
        )
        found += ["", f"{head}:", query.strip()]
    return found


def first_screen(diagnosis: Diagnosis) -> Sequence[Finding]:
    """The findings that a terminal shows where nobody asks for all."""
    return diagnosis.findings[:SCREEN]
