"""
A page's life in a terminal: the page drawn, then one line an event, then the page again.

    0        .        .        .        .        .        .        .     8192
    [hd|iiiiiii|                free               |xxxxxxxxxx|oooooooooooo]

Line pointers grow to the right, tuples to the left. Only characters of ASCII where the output
cannot show others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pgheadroom.folding import wrapped
from pgheadroom.page_life import HEADER_BYTES, PAGE_BYTES, Item, PageEvent, PageLife, PageState

_SHOWN_FIRST, _SHOWN_LAST = 30, 15
"""Events shown when there are too many for a screen; arbitrary."""
_GAUGE_CELLS = 8


@dataclass(frozen=True, slots=True)
class Signs:
    """What the picture is drawn with."""

    live: str
    heap_only: str
    replaced: str
    replaced_heap_only: str
    redirect: str
    dead: str
    unused: str
    header: str
    pointer: str
    free: str
    old: str
    full: str
    rows: tuple[str, str, str, str, str, str]


UNICODE = Signs(
    live="●",
    heap_only="◆",
    replaced="○",
    replaced_heap_only="◇",
    redirect="→",
    dead="✕",
    unused="·",
    header="▒",
    pointer="▪",
    free=" ",
    old="░",
    full="█",
    rows=("┌", "─", "┐", "│", "└", "┘"),
)
ASCII = Signs(
    live="O",
    heap_only="H",
    replaced="o",
    replaced_heap_only="h",
    redirect=">",
    dead="x",
    unused=".",
    header="#",
    pointer="i",
    free=" ",
    old="-",
    full="=",
    rows=("+", "-", "+", "|", "+", "+"),
)


def lines(life: PageLife, *, width: int = 100, unicode: bool = True) -> list[str]:
    """
    The whole life as lines of text.

    Args:
        life: What the twin noted.
        width: Characters of a line; at least 60 are used.
        unicode: Whether the output can show other characters than ASCII's.
    """
    signs = UNICODE if unicode else ASCII
    width = max(width, 60)
    start, end = life.events[0], life.events[-1]
    out = [f"Page {life.block} of {life.table}", "", "when the run begins:"]
    out += picture(start.page, width, signs)
    out += ["", *_event_lines(life, width, signs)]
    if end is not start:
        out += ["", "when the run ends:", *picture(end.page, width, signs)]
    return [*out, "", *_legend(life, width, signs)]


def picture(page: PageState, width: int, signs: Signs) -> list[str]:
    """A page: a bar of its 8192 bytes, what it is marked with, and its line pointers."""
    corner, dash, other_corner, side, foot, other_foot = signs.rows
    cells = width - 2
    bar = _bar(page, cells, signs)
    marks = [f"{page.free_bytes} bytes free"]
    marks += ["full"] * page.is_full + ["all-visible"] * page.all_visible
    scale = f"0{f'lower {page.pd_lower}, upper {page.pd_upper}':^{cells - 5}}{PAGE_BYTES}"
    return [
        scale,
        corner + dash * cells + other_corner,
        side + bar + side,
        foot + dash * cells + other_foot,
        f"{len(page.items)} line pointers; " + ", ".join(marks),
        *_items(page.items, width, signs),
    ]


def _bar(page: PageState, cells: int, signs: Signs) -> str:
    """Each cell shows what most of its bytes hold."""
    kinds: list[tuple[int, str]] = [
        (HEADER_BYTES, signs.header),
        (page.pd_lower - HEADER_BYTES, signs.pointer),
        (page.pd_upper - page.pd_lower, signs.free),
    ]
    for number in reversed(page.storage):
        item = page.items[number - 1]
        kinds.append((item.stored_bytes, signs.old if item.replaced else signs.full))
    ends = []
    at = 0
    for count, sign in kinds:
        at += count
        ends.append((at, sign))
    bar = []
    run = 0
    for cell in range(cells):
        middle = (2 * cell + 1) * PAGE_BYTES / (2 * cells)
        while run < len(ends) - 1 and ends[run][0] <= middle:
            run += 1
        bar.append(ends[run][1])
    return "".join(bar)


def _items(items: Iterable[Item], width: int, signs: Signs) -> list[str]:
    """Line pointers in rows of ten, each with its number and its sign."""
    words = [_item(number, item, signs) for number, item in enumerate(items, start=1)]
    if not words:
        return ["  none"]
    cell = max(map(len, words)) + 1
    each = max((width - 2) // cell // 5 * 5, 5)
    rows = [words[at : at + each] for at in range(0, len(words), each)]
    return ["  " + "".join(word.ljust(cell) for word in row).rstrip() for row in rows]


def _item(number: int, item: Item, signs: Signs) -> str:
    if item.kind == "redirect":
        return f"{number}{signs.redirect}{item.to}"
    if item.kind == "normal":
        kind = {
            (False, False): signs.live,
            (True, False): signs.heap_only,
            (False, True): signs.replaced,
            (True, True): signs.replaced_heap_only,
        }[item.heap_only, item.replaced]
        return f"{number}{kind}"
    return f"{number}{signs.dead if item.kind == 'dead' else signs.unused}"


def _event_lines(life: PageLife, width: int, signs: Signs) -> list[str]:
    events = life.events[1:]
    if not events:
        return ["Nothing happened to it."]
    head = f"{'event':>7} {'transaction':>11}  {'free':>5} {'':{_GAUGE_CELLS}}  what"
    first, last = events[: life.first_count - 1], events[life.first_count - 1 :]
    if len(events) > _SHOWN_FIRST + _SHOWN_LAST:
        first, last = events[:_SHOWN_FIRST], events[-_SHOWN_LAST:]
    gap = life.event_count - len(first) - len(last)
    # Of the whole page's bytes the gauge of a page that is kept full would never move.
    most = max(event.page.free_bytes for event in life.events) or 1
    out = [head, *(_line(event, most, width, signs) for event in first)]
    if gap:
        out.append(f"{'...':>7} {gap} events more")
    return out + [_line(event, most, width, signs) for event in last]


def _line(event: PageEvent, most: int, width: int, signs: Signs) -> str:
    """An event; its gauge is the free bytes, of the most that were free."""
    filled = round(event.page.free_bytes * _GAUGE_CELLS / most)
    gauge = signs.full * filled + signs.unused * (_GAUGE_CELLS - filled)
    line = (
        f"{event.number - 1:>7} {event.transaction:>11}  {event.page.free_bytes:>5} {gauge}  "
        f"{event.sentence}"
    )
    return line if len(line) <= width else line[: width - 3] + "..."


def _legend(life: PageLife, width: int, signs: Signs) -> list[str]:
    told = (
        f"{signs.live} tuple",
        f"{signs.heap_only} heap-only tuple",
        f"{signs.replaced} {signs.replaced_heap_only} replaced or deleted",
        f"{signs.redirect}n redirect to n",
        f"{signs.dead} dead",
        f"{signs.unused} unused",
    )
    lines = [told[0]]
    for part in told[1:]:
        if len(lines[-1]) + 2 + len(part) > width:
            lines.append(part)
        else:
            lines[-1] += f"  {part}"
    rule = (
        "A reader prunes the page when it is marked full or has under "
        f"{life.prune_below_bytes} bytes free."
    )
    return lines + wrapped(rule, width)
