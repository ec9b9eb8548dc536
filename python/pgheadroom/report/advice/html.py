"""
An advice as one self-contained HTML page: what goes first, tables by gain, each in full.

It opens from disk and loads nothing; its only script copies statements, and its
Content-Security-Policy forbids all others. Every foreign text passes through Jinja's escaping; the
pictures are numbers and words of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pgheadroom.advise.advice import Advice
from pgheadroom.advise.cold_updates import Evidence
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.table_advice import TableAdvice
from pgheadroom.lab import reading
from pgheadroom.outcome import Value, middle
from pgheadroom.report import html_tables
from pgheadroom.report import verification as verification_report
from pgheadroom.report.advice import card_chart, cards
from pgheadroom.report.advice import detail as advice_detail
from pgheadroom.report.advice import drawing as advice_drawing
from pgheadroom.report.advice import head as advice_head
from pgheadroom.report.advice import overview as advice_overview
from pgheadroom.report.advice import statements as advice_statements
from pgheadroom.report.advice import tables as advice_tables
from pgheadroom.report.advice import text as advice_text
from pgheadroom.report.advice import values as advice_values
from pgheadroom.report.page import page
from pgheadroom.report.table import NOTHING
from pgheadroom.units import show_bytes
from pgheadroom.verify.values import Verification

if TYPE_CHECKING:
    from pgheadroom.report.charts import Chart

MOST_DETAILS = 30
"""Tables with curve, causes and statements; a page of hundreds of charts would not be read."""

_LEAST_LABELLED = 0.12
"""Part of the bar from which it has room for its name."""


def render(
    advice: Advice,
    *,
    command: str | None = None,
    outcome: Verification | None = None,
    day: Chart | None = None,
) -> str:
    """
    Make the page.

    Args:
        advice: What is shown.
        command: The command that makes it again.
        outcome: What happened after it was applied.
        day: The day out of which the counters are, where they are of a history.
    """
    details, more = advice_text.details(advice, verbose=False, most=MOST_DETAILS)
    # What the advice had room for in full: every table of a small database, too.
    if len(advice.tables) <= MOST_DETAILS:
        details = [advice_detail.detail(advice, table) for table in advice.tables]
        more = 0
    places = {id(item.table): f"table-{place}" for place, item in enumerate(details, start=1)}
    parents = advice_tables.partitioned(advice)
    indexes = advice_tables.indexes(advice, all_indexes=True)
    return page(
        "advice.html.j2",
        "advice.css",
        script="copy.js",
        title=advice_head.title(advice),
        first=[
            {"text": advice_detail.remark_text(remark),
             "statements": advice_statements.remark_statements(remark)}
            for remark in advice.first
        ],
        summary=advice_head.summary(advice),
        meta=_meta(advice),
        rows=[_row(table, places.get(id(table))) for table in advice.tables],
        changes=[
            _detail(advice, item.table, places[id(item.table)], outcome)
            for item in details
            if item.table.verdict == "CHANGE"
        ],
        stays=cards.stays(advice, places),
        details=[
            _detail(advice, item.table, places[id(item.table)], outcome)
            for item in details
            if item.table.verdict != "CHANGE"
        ],
        shown=len(details),
        more=more,
        indexes=html_tables.laid(indexes, "indexes-table") if indexes else None,
        parents=html_tables.laid(parents, "partitioned-table") if parents else None,
        prices=html_tables.laid(advice_tables.prices(advice), "prices-table"),
        outcome=_outcome(outcome) if outcome else None,
        day=_day(day) if day else None,
        unseen=advice_head.unseen(advice.observation),
        assumed=[reading.printable(line) for line in advice.assumed],
        command=reading.printable(command) if command else None,
        version=advice.tool_version,
    )  # fmt: skip


def _day(chart: Chart) -> dict[str, Any]:
    from markupsafe import Markup  # noqa: PLC0415 - only such pages need it

    from pgheadroom.report import drawn  # noqa: PLC0415 - imports the chart library

    picture = drawn.picture(chart.spec, drawn.WIDE_PX, chart, "of-day")
    # Safe: made of numbers, and of text that was escaped there.
    drawn_safe = Markup(picture)  # noqa: S704
    return {"title": chart.title, "caption": chart.caption, "picture": drawn_safe}


def _meta(advice: Advice) -> list[tuple[str, str]]:
    seen = advice.observation
    items = [
        ("Server", f"PostgreSQL {reading.printable(seen.server_version)}"),
        ("Database", reading.text(seen.database)),
        ("Observed", advice_head.observed_at(seen)),
        ("Names", "masked" if seen.masked else None),
        ("Goal", advice.policy.goal),
        ("Made by", f"pgheadroom {reading.printable(advice.tool_version)}"),
    ]
    return [(term, value) for term, value in items if value]


def _outcome(found: Verification) -> dict[str, Any]:
    """Forecast beside outcome."""
    tables = verification_report.tables(found)
    return {
        "title": verification_report.title(found),
        "findings": [*verification_report.findings(found), *map(reading.printable, found.notes)],
        "tables": [
            html_tables.laid(table, f"outcome-{place}") for place, table in enumerate(tables, 1)
        ],
    }


def _row(table: TableAdvice, place: str | None) -> dict[str, Any]:
    """A line of the list; numbers apart, so that they stand in line."""
    now, then = table.point(table.fillfactor), table.point(table.advised_fillfactor)
    change = table.verdict == "CHANGE" and then is not None
    shares = advice_overview.shown_shares(table)
    return {
        "name": advice_head.full_name(table),
        "place": place,
        "verdict": table.verdict,
        "fillfactor": str(table.fillfactor),
        "advised": str(table.advised_fillfactor) if change else "",
        "hot": advice_values.share(table.hot_frac, beside=shares),
        "hot_then": _pair(then.hot_frac, shares) if change and then else ("", ""),
        "wal": advice_values.short(advice_values.known_wal(table.wal_bytes_per_update)),
        "wal_then": _from_to(now, then) if change and now and then else "",
        "size": advice_overview.size(table),
        "rate": advice_values.short(table.updates_per_s),
        "gain": advice_values.share(table.gain_frac, ranged=False) if change else NOTHING,
        "reason": reading.printable(table.reason),
    }


def _from_to(now: Point, then: Point) -> str:
    written = map(advice_values.short, (now.wal_bytes_per_update, then.wal_bytes_per_update))
    return " -> ".join(written)


def _pair(value: Value, beside: Iterable[Value] = ()) -> tuple[str, str]:
    main, _, spread = advice_values.share(value, beside=beside).partition(" ")
    return main, spread


def _detail(
    advice: Advice, table: TableAdvice, ident: str, outcome: Verification | None
) -> dict[str, Any]:
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    found = advice_detail.detail(advice, table, all_points=True)
    tables = {item.title: item for item in found.tables}
    curve = advice_tables.curve(table, all_points=True)
    others = [item for item in tables.values() if curve is None or item.title != curve.title]
    states = cards.states(table, cards.outcome_of(table, outcome))
    chart = card_chart.picture(table, states, advice.policy.max_growth_frac)
    return {
        "id": ident,
        "title": found.title,
        "verdict": table.verdict,
        "name": advice_head.full_name(table),
        "from": table.fillfactor,
        "to": table.advised_fillfactor,
        "states": cards.rows(states),
        # Safe, as below.
        "chart": chart and {"title": chart[0], "picture": Markup(chart[1])},  # noqa: S704
        "sentences": found.sentences,
        "facts": _facts(table),
        "remarks": found.remarks,
        "missing": found.missing,
        "bar": _bar(table),
        "panels": [
            # Safe: numbers and words of ours.
            {"title": panel.title, "picture": Markup(panel.picture)}  # noqa: S704
            for panel in advice_drawing.panels(table)
        ],
        "curve": html_tables.laid(curve, f"{ident}-curve") if curve else None,
        "tables": [
            html_tables.laid(item, f"{ident}-{place}") for place, item in enumerate(others, 1)
        ],
        "statements": found.statements,
    }


def _facts(table: TableAdvice) -> list[tuple[str, str, Evidence]]:
    """The numbers that lead, each with where it is from."""
    now, then = table.point(table.fillfactor), table.point(table.advised_fillfactor)
    at, shares = table.advised_fillfactor, advice_overview.shown_shares(table)
    facts: list[tuple[str, str | None, Evidence]] = [
        ("Updates a second", advice_values.short(table.updates_per_s), "measured"),
        ("HOT, measured", _percent(table.hot_frac, shares), "measured"),
    ]
    if now is not None:
        known = _percent(now.hot_frac, shares)
        facts.append((f"HOT, long run at {table.fillfactor}", known, "predicted"))
    changes = table.verdict == "CHANGE" and then is not None
    if changes and then is not None:
        facts.append((f"HOT, long run at {at}", _percent(then.hot_frac, shares), "predicted"))
    wal = "WAL bytes per update"
    measured = advice_values.known_wal(table.wal_bytes_per_update)
    facts.append((f"{wal}, measured", _ranged(measured), "measured"))
    if now is not None:
        run = f"{wal}, long run at {table.fillfactor}"
        facts.append((run, _ranged(now.wal_bytes_per_update), "predicted"))
    if changes and then is not None:
        run = f"{wal}, long run at {at}"
        facts.append((run, _ranged(then.wal_bytes_per_update), "predicted"))
    if table.heap_bytes is not None:
        facts.append(("Heap now", show_bytes(table.heap_bytes), "measured"))
    if changes:
        facts.append((f"Heap at {at}, against now", advice_overview.growth(table), "predicted"))
    if changes and table.gain_frac is not None:
        facts.append(("Saved, of the cost", _percent(table.gain_frac), "predicted"))
    return [(term, value, how) for term, value, how in facts if value is not None]


def _percent(value: Value, beside: Iterable[Value] = ()) -> str | None:
    if value is None:
        return None
    main, spread = _pair(value, beside)
    return f"{main} %{f' {spread}' if spread else ''}"


def _ranged(value: Value) -> str | None:
    return None if value is None else advice_values.plain(value, ranged=True)


def _bar(table: TableAdvice) -> list[dict[str, Any]]:
    """Parts of the stacked bar; their lengths sum to 100 %."""
    mids = [(cause, max(0.0, middle(cause.frac) or 0.0)) for cause in table.causes]
    total = sum(mid for _, mid in mids)
    if not total:
        return []
    return [
        {
            "kind": cause.kind,
            "title": advice_tables.CAUSE_TITLES[cause.kind],
            "width": f"{100 * mid / total:.3f}",
            "labelled": mid / total >= _LEAST_LABELLED,
            "share": advice_values.share(cause.frac),
            "evidence": cause.evidence,
        }
        for cause, mid in sorted(
            mids, key=lambda item: list(advice_tables.CAUSE_TITLES).index(item[0].kind)
        )
        if mid
    ]
