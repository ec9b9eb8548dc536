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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom import units
from pgheadroom.lab import reading
from pgheadroom.report import html_tables, views
from pgheadroom.report.page import asset, page

if TYPE_CHECKING:
    from pgheadroom.report.charts import Chart
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


def render(
    records: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]],
    *,
    title: str,
    place: SitePage | None = None,
) -> str:
    """
    Make the page of one or several records.

    Args:
        records: Results of kind "experiment", each with the series files of its record.
        title: Title of the page; its heading too when there are several records.
        place: Where the page stands in a site; None for one that holds everything itself.
    """
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    shown = [
        _record(number, result, series) for number, (result, series) in enumerate(records, start=1)
    ]
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
        version=versions([result for result, _ in records]),
    )


def _record(
    place: int, result: Mapping[str, Any], series: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    ident = f"record-{place}"
    charts = views.charts(result, series)
    findings = reading.texts(result.get("findings"))
    figures = [
        _figure(
            f"{ident}-figure-{index}",
            chart,
            picture=index <= _MOST_PICTURES,
            command=reading.text(result.get("command")),
        )
        for index, chart in enumerate(charts, start=1)
    ]
    return {
        "id": ident,
        "kind": kind(result),
        "title": heading(result),
        "place": ", ".join(value for term, value in meta(result) if term in ("Server", "Started")),
        "question": reading.text(result.get("question")),
        "answer": views.answer(result),
        "warnings": alarms(result),
        "findings": findings,
        # Whole sentences make a paragraph; anything else reads better as a list.
        "prose": len(findings) <= _MOST_SENTENCES and all(said.endswith(".") for said in findings),
        "meta": meta(result),
        "charts": figures,
        "key": [figure for figure in figures if figure["section"] == "key"],
        "parts": _parts(ident, result, views.tables(result), figures),
    }


def heading(result: Mapping[str, Any]) -> str:
    """A result's title, or what stands in for it."""
    named = reading.text(result.get("title")) or reading.text(result.get("name"))
    return named or "A result without a title"


def kind(result: Mapping[str, Any]) -> str:
    """What it is, for the line above the title."""
    if result.get("kind") in ("proof", "prediction"):
        return str(result["kind"])
    return f"experiment {reading.text(result.get('name')) or 'without a name'}"


def _parts(
    ident: str,
    result: Mapping[str, Any],
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
    command = reading.text(result.get("command"))
    if command:
        source = reading.text(result.get("source"))
        lead = f"Where the experiment comes from: {source}. " if source else ""
        before = _merged(result)
        lead += "These commands repeat it, the last of" if before else "This command repeats it:"
        lead += " them with what the others made:" if before else ""
        parts.append(
            {"id": f"{ident}-again", "title": "The same again", "charts": [], "first": [],
             "tables": [], "lead": lead, "command": "\n".join([*before, command])}
        )  # fmt: skip
    return parts


def _merged(result: Mapping[str, Any]) -> list[str]:
    """The commands of the records that this one was merged from, each with its record's folder."""
    commands = reading.mapping(reading.mapping(result.get("environment")).get("merged_from"))
    return [
        f"# {reading.printable(folder)}:\n{reading.text(command) or '# not known'}"
        for folder, command in commands.items()
    ]


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


def alarms(result: Mapping[str, Any]) -> tuple[str, ...]:
    """What a reader must know before the answer."""
    found = []
    if result.get("complete") is False:
        found.append("This run is not complete: cells or repetitions are missing.")
    noisy = []
    for control in reading.mappings(result.get("controls")):
        ratio = reading.interval(control.get("ratio"))
        if ratio is not None and ratio.excludes(1.0):
            noisy.append(reading.printable(control.get("measure")))
    if noisy:
        found.append(
            f"An A/A control of {', '.join(dict.fromkeys(noisy))} excludes 1 although both of its "
            "sides are equal: differences of that size in this record may be noise."
        )
    return (*found, *reading.texts(result.get("warnings")))


def meta(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """When, where and how much: terms with their values, without those that are not known."""
    machine = reading.mapping(result.get("environment"))
    duration = reading.number(result.get("duration_s"))
    started = reading.text(result.get("started_at"))
    repetitions = sorted(
        {found for cell in reading.cells(result)
         if (found := reading.number(cell.get("repetitions"))) is not None}
    )  # fmt: skip
    span = [reading.label(item) for item in (*repetitions[:1], *repetitions[1:][-1:])]
    items = [
        ("Server", _after("PostgreSQL ", result.get("server"))),
        ("Scale", _shown(result.get("scale"))),
        ("Cells", str(len(reading.cells(result)))),
        ("Repetitions", " to ".join(span) or None),
        ("Seed", _shown(result.get("seed"))),
        ("Started", re.sub(r"T(\d\d:\d\d).*", r" \1 UTC", started)
         if started and started.endswith(("+00:00", "Z")) else started),
        ("Took", units.show_duration(duration) if duration is not None else None),
        ("Cores", _shown(machine.get("cores"))),
        ("Made by", _after("pgheadroom ", result.get("tool_version"))),
    ]  # fmt: skip
    return [(term, value) for term, value in items if value]


def _after(word: str, value: object) -> str | None:
    found = reading.text(value)
    return f"{word}{found}" if found else None


def _shown(value: object) -> str | None:
    return None if value is None else reading.label(value)


def versions(results: Sequence[Mapping[str, Any]]) -> str:
    """The versions of pgheadroom that made these results, each once."""
    found = [reading.text(result.get("tool_version")) for result in results]
    return ", ".join(dict.fromkeys(version for version in found if version))


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@functools.cache
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; made once, which takes about 3 s."""
    import vl_convert  # noqa: PLC0415 - starts a JavaScript engine

    bundle: str = vl_convert.javascript_bundle(_GLOBALS)
    return re.sub(r"</(?=script)", r"<\\/", bundle.replace("<!--", r"<\!--"), flags=re.IGNORECASE)
