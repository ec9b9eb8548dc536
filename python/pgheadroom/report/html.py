"""
One self-contained HTML page for one or several records, or a page of a site.

Takes tables and charts from the views and puts them into the template. The page opens from disk,
loads nothing and runs no script; its Content-Security-Policy forbids both. Charts are drawn once,
as SVG inside the page. Every foreign text passes through Jinja's escaping; what is marked as safe
below is made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.lab import reading
from pgheadroom.report import html_tables, views
from pgheadroom.report.page import page

if TYPE_CHECKING:
    from pgheadroom.lab.record import SecondsSeries
    from pgheadroom.report.charts import Chart
    from pgheadroom.report.heading import Heading
    from pgheadroom.report.table import Table

_PARTS = (
    ("results", "Results"),
    ("comparisons", "Comparisons"),
    ("controls", "A/A controls"),
    ("time", "Over time"),
    ("references", "The document's figures"),
    ("assumed", "Assumed"),
    ("method", "Method"),
    ("place", "Environment"),
)

_MOST_SENTENCES = 4
"""Findings that still read as one paragraph."""

_FINDINGS_FIRST = 3
"""Findings of a list in sight; the rest is folded with its number."""

_MOST_PICTURES = 24
"""Charts of a result that are drawn, the rest are words; each costs about 0.1 s and 10 kB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file to download: its address from the page, its name, what it holds, its bytes."""

    href: str
    name: str
    holds: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """
    Where a page of a site stands: what it links to, each an address from the page.

    The addresses are ours; nothing in them needs escaping.
    """

    home: str
    files: Sequence[DataFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A result as a page takes it."""

    heading: Heading
    tables: Sequence[Table]
    charts: Sequence[Chart]

    @classmethod
    def of(
        cls,
        result: views.Result,
        series: Sequence[SecondsSeries] = (),
        *,
        command: str | None = None,
    ) -> Shown:
        """
        A result of any kind.

        Args:
            result: The result.
            series: The series files of its record.
            command: What repeats it, where the result does not say it.
        """
        return cls(
            heading=views.heading(result, command=command),
            tables=views.tables(result),
            charts=views.charts(result, series),
        )


def render(
    results: Sequence[Shown],
    *,
    title: str,
    place: SitePage | None = None,
) -> str:
    """
    Make the page of one or several results.

    Args:
        results: What is shown, in this order.
        title: Title of the page; its heading too when there are several results.
        place: Where the page stands in a site; None for one that holds everything itself.
    """
    shown = [_record(number, result) for number, result in enumerate(results, start=1)]
    return page(
        "page.html.j2",
        title=reading.printable(title),
        records=shown,
        place=place,
        version=versions([result.heading for result in results]),
    )


def _record(place: int, result: Shown) -> dict[str, Any]:
    ident = f"record-{place}"
    head = result.heading
    figures = [
        _figure(f"{ident}-figure-{index}", chart, head.command, drawn=index <= _MOST_PICTURES)
        for index, chart in enumerate(result.charts, start=1)
    ]
    return {
        "id": ident,
        "kind": head.kind,
        "title": head.title,
        "place": ", ".join(value for term, value in head.meta if term in ("Server", "Started")),
        "question": head.question,
        "answer": head.answer,
        "warnings": head.alarms,
        "complete": head.complete,
        "findings": head.findings,
        # Whole sentences make a paragraph; anything else reads better as a list.
        "prose": len(head.findings) <= _MOST_SENTENCES
        and all(said.endswith(".") for said in head.findings),
        "in_sight": _FINDINGS_FIRST if len(head.findings) > _MOST_SENTENCES else _MOST_SENTENCES,
        "meta": head.meta,
        "key": [figure for figure in figures if figure["section"] == "key"],
        "parts": _parts(ident, head, result.tables, figures),
    }


def _parts(
    ident: str,
    head: Heading,
    tables: Sequence[Table],
    figures: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    parts = []
    for section, title in _PARTS:
        own = [
            html_tables.laid(table, f"{ident}-table-{index}")
            for index, table in enumerate(tables, start=1)
            if table.section == section
        ]
        drawn = [figure for figure in figures if figure["section"] == section]
        if own or drawn:
            parts.append(
                {"id": f"{ident}-{section}", "title": title, "charts": drawn, "lead": None,
                 "first": own[:1], "tables": own[1:], "command": None}
            )  # fmt: skip
    if head.command:
        lead = f"Where the experiment comes from: {head.source}. " if head.source else ""
        lead += (
            "These commands repeat it, the last of" if head.merged else "This command repeats it:"
        )
        lead += " them with what the others made:" if head.merged else ""
        parts.append(
            {"id": f"{ident}-again", "title": "The same again", "charts": [], "first": [],
             "tables": [], "lead": lead, "command": "\n".join([*head.merged, head.command])}
        )  # fmt: skip
    return parts


def _figure(ident: str, chart: Chart, command: str | None, *, drawn: bool) -> dict[str, Any]:
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    from pgheadroom.report import drawn as drawings  # noqa: PLC0415 - imports the chart library

    pictures = drawings.pictures(chart, ident) if drawn else []
    return {
        "id": ident,
        "title": chart.title,
        "caption": chart.caption,
        "command": command,
        "alt": chart.alt,
        "section": chart.section,
        "wide": drawings.is_wide(chart),
        # Safe: made of numbers, and of text that was escaped there.
        "pictures": [(css, Markup(svg)) for css, svg in pictures],  # noqa: S704
    }


def versions(headings: Iterable[Heading]) -> str:
    """The versions of pgheadroom that made these results, each once."""
    found = (heading.tool_version for heading in headings)
    return ", ".join(dict.fromkeys(version for version in found if version))
