"""
`wal stats` as one self-contained HTML page: WAL by table and cause as bars, and over time.

It opens from disk, loads nothing and runs no script; its Content-Security-Policy forbids both.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pgheadroom.lab.reading import printable
from pgheadroom.report import html_tables
from pgheadroom.report.page import page
from pgheadroom.report.wal.stats import headline, labels, tables
from pgheadroom.units import show_bytes, show_count, show_duration, show_share
from pgheadroom.wal import Count, WalStats
from pgheadroom.wal.cause_names import cause_name
from pgheadroom.wal.course import LogCourse
from pgheadroom.wal.values import share_of

if TYPE_CHECKING:
    from markupsafe import Markup

RELATIONS_DRAWN = 20
"""The largest; the table below has all. Arbitrary."""

_COLOURS = 7
"""Causes that have a colour of their own; the page's style has as many, and one for the rest."""

_WIDTH, _HEIGHT = 960, 240
_LEFT, _BOTTOM = 70, 28


def render(stats: WalStats, course: LogCourse | None, *, command: str) -> str:
    """
    Make the page.

    Args:
        stats: The sums.
        course: The same over time; None without times.
        command: The command that makes it again.
    """
    colours = {cause: place for place, cause in enumerate(list(stats.by_cause)[:_COLOURS], 1)}
    shown = tables(stats, every=True)
    return page(
        "wal.html.j2",
        "wal.css",
        server=stats.server,
        summary=headline(stats),
        notes=[printable(note) for note in stats.notes],
        gaps=[
            printable(f"{gap.from_lsn} to {gap.to_lsn} was not read ({gap.path}: {gap.why}).")
            for gap in stats.gaps
        ],
        meta=_meta(stats),
        legend=_legend(stats, colours),
        bars=_bars(stats, colours),
        more=max(len(stats.relations) - RELATIONS_DRAWN, 0),
        over_time=None if course is None else _over_time(course),
        tables=[html_tables.laid(table, f"table-{place}") for place, table in enumerate(shown, 1)],
        command=printable(command),
    )


def _meta(stats: WalStats) -> list[tuple[str, str]]:
    total = stats.total
    found = [
        ("WAL", show_bytes(total.bytes)),
        ("Records", f"{total.records:,}"),
        ("Full-page images", f"{total.fpi:,}, {show_bytes(total.fpi_bytes)}"),
        ("From", stats.start_lsn or ""),
        ("To", stats.end_lsn or ""),
        ("Timeline", str(stats.timeline)),
        ("First transaction's end", _moment(stats.first_end)),
        ("Last transaction's end", _moment(stats.last_end)),
    ]
    return [(term, printable(value)) for term, value in found if value]


def _moment(text: str | None) -> str:
    """To the second: the last transaction's microseconds are in the files."""
    if text is None:
        return ""
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S UTC")


def _legend(stats: WalStats, colours: Mapping[str, int]) -> list[dict[str, Any]]:
    length = max(stats.total.bytes, 1)
    found = [
        {
            "css": f"k{colours[cause]}",
            "name": cause_name(cause),
            "share": show_share(share_of(count.bytes, length)),
        }
        for cause, count in stats.by_cause.items()
        if cause in colours
    ]
    rest = sum(count.bytes for cause, count in stats.by_cause.items() if cause not in colours)
    if rest:
        found.append({"css": "k0", "name": "others", "share": show_share(rest / length)})
    return found


def _bars(stats: WalStats, colours: Mapping[str, int]) -> list[dict[str, Any]]:
    longest = max((one.bytes for one in stats.relations), default=1)
    return [
        {
            "name": printable(name),
            "table": printable(one.table) if one.table else "",
            "bytes": show_bytes(one.bytes),
            "share": show_share(share_of(one.bytes, stats.total.bytes)),
            "parts": _parts(one.by_cause, colours, longest),
        }
        for one, name in zip(
            stats.relations[:RELATIONS_DRAWN], labels(stats.relations), strict=False
        )
    ]


def _parts(
    causes: Mapping[str, Count], colours: Mapping[str, int], longest: int
) -> list[dict[str, Any]]:
    """Causes with a colour in the legend's order, then the others as one."""
    found = [
        (f"k{place}", cause_name(cause), causes[cause].bytes)
        for cause, place in colours.items()
        if cause in causes
    ]
    rest = sum(count.bytes for cause, count in causes.items() if cause not in colours)
    found.append(("k0", "others", rest))
    return [
        {
            "css": css,
            "title": f"{name}: {show_bytes(length)}",
            "width": f"{100 * length / longest:.3f}",
        }
        for css, name, length in found
        if length
    ]


def _over_time(course: LogCourse) -> dict[str, Any]:
    return {
        "svg": _drawing(course),
        "width": show_duration(course.width_s),
        "checkpoints": len(course.checkpoints_s),
        "begins": _moment(course.begins_at),
        "left_out": f"{show_bytes(course.left_out_bytes)} of the log lie before and behind it, "
        f"within {show_duration(course.whole_s)} in all, and are left out."
        if course.left_out_bytes
        else "",
    }


def _drawing(course: LogCourse) -> Markup:
    """Bars of images and of everything else, a slice each; dashed lines where cycles begin."""
    from markupsafe import Markup  # noqa: PLC0415 - only pages need it

    last_s = course.slices[-1].begin_s + course.width_s
    tallest = max(one.bytes for one in course.slices)
    plot = _HEIGHT - _BOTTOM - 12

    def across(seconds: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 10) * seconds / last_s

    def up(length: int) -> float:
        return plot * length / tallest

    base = 12 + plot
    wide = max(across(course.width_s) - across(0) - 1, 0.5)
    parts = []
    for share in (0.5, 1.0):
        y = base - plot * share
        parts.append(f'<path class="grid" d="M{_LEFT},{y:.1f}H{_WIDTH - 10}"/>')
        shown = show_bytes(tallest * share)
        parts.append(
            f'<text class="tick" text-anchor="end" x="{_LEFT - 8}" y="{y + 4:.1f}">{shown}</text>'
        )
    for one in course.slices:
        x, images = across(one.begin_s), up(one.fpi_bytes)
        rest = up(one.bytes - one.fpi_bytes)
        for css, foot, length in (("images", 0.0, images), ("rest", images, rest)):
            parts.append(
                f'<rect class="{css}" x="{x:.1f}" y="{base - foot - length:.1f}" '
                f'width="{wide:.1f}" height="{length:.1f}"/>'
            )
    for seconds in course.checkpoints_s:
        parts.append(f'<path class="checkpoint" d="M{across(seconds):.1f},4V{base}"/>')
    parts.append(f'<path class="edge" d="M{_LEFT},{base}H{_WIDTH - 10}"/>')
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        shown = show_duration(last_s * share) if share else "0"
        parts.append(
            f'<text class="tick" text-anchor="{anchor}" x="{across(last_s * share):.1f}" '
            f'y="{base + 20}">{shown}</text>'
        )
    # Safe: numbers and words of ours alone.
    return Markup(  # noqa: S704
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="WAL in slices of '
        f'{show_duration(course.width_s)}, {show_count(len(course.checkpoints_s), "checkpoint")}">'
        f"{''.join(parts)}</svg>"
    )
