"""
One self-contained HTML page for one or several records, or a page of a site.

Takes tables and charts from the views and puts them into the template. The page opens from disk
and loads nothing: library, style, charts and data are inline, and its Content-Security-Policy
allows only the two scripts whose hashes it names. A page of a site has its library beside it, and
its policy allows its own script, by hash, and what that one loads, which is the library. Every
foreign text passes through Jinja's escaping; what is marked as safe below is made here.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.lab import reading
from pgheadroom.report import html_tables, views
from pgheadroom.report.page import asset, page

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

_GLOBALS = "window.vegaEmbed = vegaEmbed;"
"""What the page's script needs of the chart library."""

_MOST_PICTURES = 24
"""Static pictures for readers without scripts; each costs about 0.2 s and 40 kB."""


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
    Where a page of a site stands: what it links to and loads, each an address from the page.

    The addresses are ours; nothing in them needs escaping.
    """

    home: str
    chart_file: str
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
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    shown = [_record(number, result) for number, result in enumerate(results, start=1)]
    drawn = any(record["charts"] for record in shown)
    inline = chart_library() if drawn and place is None else ""
    script = asset("page.js")
    allowed: tuple[str, ...] = ()
    if drawn and place is None:
        allowed = (_hash(inline), _hash(script))
    elif drawn:
        # By its hash and not by 'self', so that no other file of the site can be run as a script;
        # and 'self' means nothing to some browsers where the page is opened from disk.
        allowed = (_hash(script), "'strict-dynamic'")
    # Safe: both are files of ours, not text of a record.
    return page(
        "page.html.j2",
        scripts=allowed,
        title=reading.printable(title),
        records=shown,
        charts=drawn,
        place=place,
        library=Markup(inline),  # noqa: S704 - the chart library
        script=Markup(script),  # noqa: S704 - a file of ours
        version=versions([result.heading for result in results]),
    )


def _record(place: int, result: Shown) -> dict[str, Any]:
    ident = f"record-{place}"
    head = result.heading
    figures = [
        _figure(
            f"{ident}-figure-{index}",
            chart,
            picture=index <= _MOST_PICTURES,
            command=head.command,
        )
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
        "findings": head.findings,
        # Whole sentences make a paragraph; anything else reads better as a list.
        "prose": len(head.findings) <= _MOST_SENTENCES
        and all(said.endswith(".") for said in head.findings),
        "meta": head.meta,
        "charts": figures,
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


def _figure(ident: str, chart: Chart, *, picture: bool, command: str | None) -> dict[str, Any]:
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    return {
        "id": ident,
        "title": chart.title,
        "caption": chart.caption,
        "command": command,
        "alt": chart.alt,
        "section": chart.section,
        # Safe: `script_json` leaves no character that HTML reads, `still` is checked there.
        "json": Markup(script_json(chart.spec)),  # noqa: S704
        "svg": Markup(still(chart.spec)) if picture else chart.alt,  # noqa: S704
    }


def script_json(value: object) -> str:
    """
    JSON for a script element: no character in it can end the element or begin a comment.

    U+2028 and U+2029 go too, which older JavaScript takes for line ends.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub(r"[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def still(spec: Mapping[str, Any]) -> str:
    """A chart's description as SVG that needs no script; nothing in place of what looks unsafe."""
    import vl_convert  # noqa: PLC0415 - starts a JavaScript engine

    svg: str = vl_convert.vegalite_to_svg(dict(spec))
    # The library escapes text; a second look costs nothing.
    if re.search(
        r"</?noscript|<script|<foreignObject|<image|<use|\son\w+=|href=", svg, re.IGNORECASE
    ):
        return ""
    return svg


def versions(headings: Iterable[Heading]) -> str:
    """The versions of pgheadroom that made these results, each once."""
    found = (heading.tool_version for heading in headings)
    return ", ".join(dict.fromkeys(version for version in found if version))


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@functools.cache
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; made once, which takes about 3 s."""
    import vl_convert  # noqa: PLC0415 - starts a JavaScript engine

    bundle: str = vl_convert.javascript_bundle(_GLOBALS)
    return re.sub(r"</(?=script)", r"<\\/", bundle.replace("<!--", r"<\!--"), flags=re.IGNORECASE)
