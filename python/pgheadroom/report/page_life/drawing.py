"""
Pictures of a page's life: free bytes over its events, and the page after each event.

SVG made of numbers alone, in the colours of the page's style sheet, so that it follows dark
screens and paper. No script takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pgheadroom.page_life import HEADER_BYTES, PAGE_BYTES, Item, PageEvent, PageLife, PageState

_WIDTH = 1000
_BAR_HEIGHT = 22
_ITEMS_TOP = 30
_ITEM_HEIGHT = 12
_ARC_HEIGHT = 22
_WIDEST_ITEM = 15
_TIMELINE_HEIGHT, _TIMELINE_TOP, _TIMELINE_LEFT = 240, 18, 48
NARROW = 380
"""Width of the timeline on a phone, where text of the wide one would be four pixels high."""
_STEPS_Y = (25, 50, 100, 200, 250, 500, 1000, 2000)
_MOST_TICKS_Y = 5
_ROOM_X = 56  # of a label of five digits; arbitrary

Across = Callable[[int], float]
Height = Callable[[float], float]


def item_class(item: Item) -> str:
    """The CSS class of a line pointer."""
    if item.kind != "normal":
        return item.kind
    if item.replaced:
        return "old"
    return "heap-only" if item.heap_only else "live"


def strip(page: PageState, before: PageState | None) -> str:
    """
    A page as a picture: its bytes, its line pointers, and where they lead.

    Args:
        page: The page.
        before: The page one event before; what is new since is outlined.
    """
    has_arcs = any(_target(item) is not None for item in page.items)
    height = _ITEMS_TOP + _ITEM_HEIGHT + (_ARC_HEIGHT if has_arcs else 2)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{_label(page)}">',
        *_bar(page),
        *_items(page, before),
        "</svg>",
    ]
    return "".join(parts)


def _label(page: PageState) -> str:
    count = dict.fromkeys(("normal", "redirect", "dead", "unused"), 0)
    for item in page.items:
        count[item.kind] += 1
    told = ", ".join(f"{number} {kind}" for kind, number in count.items() if number)
    return f"{told or 'no line pointers'}; {page.free_bytes} bytes free"


def _bar(page: PageState) -> Iterable[str]:
    """The 8192 bytes; neighbours of a class are one rectangle."""
    runs: list[tuple[str, int]] = [
        ("header", HEADER_BYTES),
        ("pointers", page.pd_lower - HEADER_BYTES),
        ("free", page.pd_upper - page.pd_lower),
    ]
    for number in reversed(page.storage):
        item = page.items[number - 1]
        name, count = item_class(item), item.stored_bytes
        if runs[-1][0] == name:
            count += runs.pop()[1]
        runs.append((name, count))
    at = 0.0
    for name, count in runs:
        wide = count * _WIDTH / PAGE_BYTES
        if wide > 0:
            yield (
                f'<rect class="{name}" x="{at:.1f}" y="0" width="{wide:.1f}" '
                f'height="{_BAR_HEIGHT}"/>'
            )
        at += wide
    yield f'<rect class="edge" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{_BAR_HEIGHT - 1}"/>'


def _items(page: PageState, before: PageState | None) -> Iterable[str]:
    if not page.items:
        return
    wide = min(_WIDEST_ITEM, _WIDTH / len(page.items))
    inner = wide - (2 if wide > 6 else 0.5)
    by_class: dict[str, list[str]] = {}
    new: list[str] = []
    for position, item in enumerate(page.items):
        x = position * wide
        box = f"M{x:.1f},{_ITEMS_TOP}h{inner:.1f}v{_ITEM_HEIGHT}h-{inner:.1f}z"
        by_class.setdefault(item_class(item), []).append(box)
        old = before.items[position] if before and position < len(before.items) else None
        if before is not None and item != old:
            new.append(box)
    for name, boxes in by_class.items():
        yield f'<path class="{name}" d="{"".join(boxes)}"/>'
    if new:
        yield f'<path class="new" d="{"".join(new)}"/>'
    yield from _arcs(page.items, wide, inner)


def _target(item: Item) -> int | None:
    return item.to if item.kind == "redirect" else item.next


def _arcs(items: Sequence[Item], wide: float, inner: float) -> Iterable[str]:
    """From each redirect and each replaced version to what follows it."""
    arcs: dict[str, list[str]] = {}
    top = _ITEMS_TOP + _ITEM_HEIGHT + 1
    for position, item in enumerate(items):
        target = _target(item)
        if target is None:
            continue
        x, to = position * wide + inner / 2, (target - 1) * wide + inner / 2
        deep = top + min(_ARC_HEIGHT * 1.6, 6 + abs(to - x) / 6)
        kind = "redirects" if item.kind == "redirect" else "chain"
        arcs.setdefault(kind, []).append(
            f"M{x:.1f},{top}Q{(x + to) / 2:.1f},{deep:.1f} {to:.1f},{top}"
        )
    for kind, curves in arcs.items():
        yield f'<path class="arc {kind}" d="{"".join(curves)}"/>'


def timeline(life: PageLife, width: int = _WIDTH) -> str:
    """
    Free bytes after each event, with prunings, departures, and the gap if there is one.

    Args:
        life: What the twin noted.
        width: Of the picture, in its own units: pixels at full size.
    """
    events = life.events
    right = width - 8
    bottom = _TIMELINE_TOP + _TIMELINE_HEIGHT
    step = (right - _TIMELINE_LEFT) / max(len(events) - 1, 1)

    most = max(life.prune_below_bytes, *(event.page.free_bytes for event in events))
    tick_every = next(size for size in _STEPS_Y if most / size <= _MOST_TICKS_Y)
    ticks = range(0, most + tick_every, tick_every)

    def x_of(position: int) -> float:
        return _TIMELINE_LEFT + position * step

    def y_of(free_bytes: float) -> float:
        return bottom - free_bytes / ticks[-1] * _TIMELINE_HEIGHT

    parts = [
        f'<svg viewBox="0 0 {width} {bottom + 40}" role="img" aria-label="{_told(life)}">',
    ]
    for tick in ticks:
        y = y_of(tick)
        parts.append(
            f'<path class="grid" d="M{_TIMELINE_LEFT},{y:.1f}H{right}"/>'
            f'<text class="tick" x="{_TIMELINE_LEFT - 8}" y="{y + 4:.1f}" '
            f'text-anchor="end">{tick}</text>'
        )
    limit = y_of(life.prune_below_bytes)
    parts.append(f'<path class="limit" d="M{_TIMELINE_LEFT},{limit:.1f}H{right}"/>')
    parts += _gap(life, x_of, bottom)
    parts.append(_free_line(life, x_of, y_of))
    parts += _marks(events, x_of, y_of, bottom)
    parts += _ticks(life, x_of, bottom, step)
    middle = (_TIMELINE_LEFT + width) / 2
    parts.append(
        f'<text class="tick" x="{middle:.0f}" y="{bottom + 34}" text-anchor="middle">event</text>'
    )
    parts.append("</svg>")
    return "".join(parts)


def _told(life: PageLife) -> str:
    """The timeline for those who cannot see it."""
    free = [event.page.free_bytes for event in life.events]
    return (
        f"Free bytes after each of {len(free)} events: {free[0]} at first, {free[-1]} at last, "
        f"between {min(free)} and {max(free)}"
    )


def _free_line(life: PageLife, x_of: Across, y_of: Height) -> str:
    """A line of steps; broken where events were left out."""
    commands = []
    for position, event in enumerate(life.events):
        x, y = x_of(position), y_of(event.page.free_bytes)
        broken = life.left_out and position == life.first_count
        commands.append(f"M{x:.1f},{y:.1f}" if position == 0 or broken else f"H{x:.1f}V{y:.1f}")
    return f'<path class="line" d="{"".join(commands)}"/>'


def _gap(life: PageLife, x_of: Across, bottom: float) -> list[str]:
    if not life.left_out:
        return []
    left, right = x_of(life.first_count - 1), x_of(life.first_count)
    middle = (left + right) / 2
    return [
        f'<path class="gap" d="M{middle:.1f},{_TIMELINE_TOP}V{bottom}"/>'
        f'<text class="tick" x="{middle:.1f}" y="{_TIMELINE_TOP - 5}" text-anchor="middle">'
        f"{life.left_out} events left out</text>"
    ]


def _marks(events: Sequence[PageEvent], x_of: Across, y_of: Height, bottom: float) -> list[str]:
    """A dot for each pruning, a tick at the bottom for each version that left the page."""
    dots, ticks = [], []
    for position, event in enumerate(events):
        x = x_of(position)
        if event.kind == "pruned":
            y = y_of(event.page.free_bytes)
            dots.append(f'<circle class="prune" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
        elif event.kind == "update_left":
            ticks.append(f"M{x:.1f},{bottom}v-9")
    if ticks:
        dots.append(f'<path class="left" d="{"".join(ticks)}"/>')
    return dots


def _ticks(life: PageLife, x_of: Across, bottom: float, step: float) -> list[str]:
    """Numbers of events under the line, as many as have room, and none in the gap."""
    every = next(
        size
        for power in range(6)
        for size in (10**power, 2 * 10**power, 5 * 10**power)
        if size * step >= _ROOM_X or size >= len(life.events)
    )
    found = []
    for position, event in enumerate(life.events):
        number = event.number - 1
        is_beside_gap = life.left_out and abs(position - life.first_count + 0.5) * step < _ROOM_X
        if number % every == 0 and not is_beside_gap:
            found.append(
                f'<text class="tick" x="{x_of(position):.1f}" y="{bottom + 16}" '
                f'text-anchor="middle">{number}</text>'
            )
    return found
