"""
What a site's records say about fillfactor: a line for each record, and small multiples beside it.

Of each record that has fillfactors: HOT share, WAL, size and throughput over them, a line for each
group of its other factors, with intervals. The sentence is of one step below the reference, by the
record's own comparisons where it has them, else by what its cells hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pgheadroom.lab import reading
from pgheadroom.lab.answer_words import SaidCell, Sentence, comparisons
from pgheadroom.lab.measure_titles import title
from pgheadroom.lab.reading import Result
from pgheadroom.report.axes import Axes, amounts, of_bytes, shares
from pgheadroom.types import Interval
from pgheadroom.units import show_bytes

_SIZE = (240, 150)
_GROUPS_MAX = 4
"""Lines of one picture; further groups are on the record's own page. Arbitrary: four colours."""
SWEPT = "fillfactor"
"""The factor over which records are shown."""
_WHOLE_FROM = 1000
_THOUSANDS_FROM = 10_000  # longer labels do not fit beside the axis
_ENOUGH = 0.005
"""HOT share that a lower fillfactor has to add, else the one above is enough; arbitrary."""
_ASKED: Mapping[str, tuple[str, ...]] = {
    "HOT share": ("hot_frac",),
    "WAL": (
        "wal_nonfpi_bytes_per_tx",
        "wal_bytes_per_tx",
        "wal_bytes_per_update",
        "mean_wal_bytes_per_update",
    ),
    "size": ("heap_pages", "data_bytes"),
    "throughput": ("tps", "nopm"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverFillfactor:
    """
    A record over fillfactor.

    Attributes:
        sentence: What one step below the reference does, with intervals; None where it has none.
        enough: Below which fillfactor hardly more updates are HOT, and what that costs; None
            where that is not known.
        pictures: Heading and SVG of each measure that it has.
        legend: The lines' names, in the order of the colours; empty where there is one.
    """

    sentence: str | None
    enough: str | None
    pictures: tuple[tuple[str, str], ...]
    legend: tuple[str, ...]


def over_fillfactor(result: Result) -> OverFillfactor | None:
    """What a record says about fillfactor; None where it has not two of them."""
    levels = _levels(result)
    if len(levels) < 2:
        return None
    groups = _groups(result)
    pictures = []
    for heading, names in _ASKED.items():
        name = next((name for name in names if _has_levels(groups, name)), None)
        if name is not None:
            unit = _unit(name, _reached(groups, name))
            picture = _picture(groups, name, levels, unit[0])
            pictures.append((_heading(heading, name, unit[1]), picture))
    if not pictures:
        return None
    legend = tuple(groups) if len(groups) > 1 else ()
    return OverFillfactor(
        sentence=_sentence(result, levels),
        enough=_enough(groups),
        pictures=tuple(pictures),
        legend=legend,
    )


def _levels(result: Result) -> list[int]:
    """Its fillfactors, the highest first; other levels of the factor are settings by table."""
    known = {
        int(level)
        for cell in reading.cells(result)
        if (level := reading.number(cell.get(SWEPT))) is not None
    }
    return sorted(known, reverse=True)


def _groups(result: Result) -> dict[str, list[SaidCell]]:
    """Cells by what else varies; of a factor that counts (windows, rounds) the last one."""
    counting = {"window", "round"}
    names = [factor.name for factor in reading.varying(result) if factor.name != SWEPT]
    others = [name for name in names if name not in counting]
    groups: dict[str, dict[float, SaidCell]] = {}
    for cell in reading.cells(result):
        level = reading.number(cell.get(SWEPT))
        if level is not None:
            groups.setdefault(reading.at(cell, others), {})[level] = cell
    most = dict(list(groups.items())[:_GROUPS_MAX])
    return {name: [found[level] for level in sorted(found)] for name, found in most.items()}


def _has_levels(groups: Mapping[str, Sequence[SaidCell]], name: str) -> bool:
    return any(len(_known(cells, name)) > 1 for cells in groups.values())


def _known(cells: Sequence[SaidCell], name: str) -> list[tuple[int, float, Interval | None]]:
    """Fillfactor, middle and interval of each cell that has a value."""
    found = []
    for cell in cells:
        value = reading.value(cell, name)
        at = reading.middle(value)
        if at is not None:
            level = int(reading.number(cell[SWEPT]) or 0)
            found.append((level, float(at), value if isinstance(value, Interval) else None))
    return found


def _heading(asked: str, name: str, unit: str) -> str:
    said = title(name)
    if name.endswith("_bytes"):
        return f"{said}, {unit}"
    units = {"HOT share": "%", "throughput": "a second" if name == "tps" else "a minute"}.get(
        asked, "pages" if name.endswith("_pages") else "bytes"
    )
    return f"{said}, {f'{unit} {units}' if unit else units}"


def _reached(groups: Mapping[str, Sequence[SaidCell]], name: str) -> list[float]:
    """All values that a picture shows."""
    return [
        end
        for cells in groups.values()
        for _, at, spread in _known(cells, name)
        for end in (at, spread.high if spread else at)
    ]


def _picture(
    groups: Mapping[str, Sequence[SaidCell]], name: str, levels: Sequence[int], unit: float
) -> str:
    lines = {group: _known(cells, name) for group, cells in groups.items()}
    is_share = name.endswith("_frac")
    values, step = shares() if is_share else amounts(_reached(groups, name), unit)
    axes = Axes(
        width=_SIZE[0],
        height=_SIZE[1],
        fillfactors=(levels[-1], levels[0]),
        values=values,
        step=step,
        unit=unit,
        is_share=is_share,
    )
    words = "; ".join(
        f"{group}: {', '.join(f'{level}: {_number(at, is_share)}' for level, at, _ in known)}"
        for group, known in lines.items()
        if known
    )
    label = reading.printable(f"{title(name)} by fillfactor; {words}")
    return "".join(
        [
            f'<svg class="marks small" viewBox="0 0 {_SIZE[0]} {_SIZE[1]}" role="img" '
            f'aria-label="{_quoted(label)}">',
            *axes.drawn(),
            *(
                part
                for place, known in enumerate(lines.values(), 1)
                for part in _line(axes, place, known)
            ),
            "</svg>",
        ]
    )


def _unit(name: str, reached: Sequence[float]) -> tuple[float, str]:
    """Of an axis, so that its labels are short."""
    if name.endswith("_bytes"):
        return of_bytes(max(reached))
    return (1000.0, "thousand") if max(reached) >= _THOUSANDS_FROM else (1.0, "")


def _enough(groups: Mapping[str, Sequence[SaidCell]]) -> str | None:
    """
    Which fillfactor is enough for all groups, and what the lowest takes beyond it.

    Enough is the highest of which no lower one has more HOT updates, but for `_ENOUGH`.
    """
    enough: list[int] = []
    for cells in groups.values():
        known = _known(cells, "hot_frac")
        if len(known) < 2:
            return None
        most = max(at for _, at, _ in known)
        enough.append(max(level for level, at, _ in known if at >= most - _ENOUGH))
    chosen = min(enough)
    sizes = [
        {level: at for level, at, _ in _known(cells, "heap_pages")} for cells in groups.values()
    ]
    lowest = min((level for known in sizes for level in known), default=chosen)
    if lowest >= chosen or not all({lowest, chosen} <= set(known) for known in sizes):
        return None
    more = sorted((known[lowest] / known[chosen] - 1) * 100 for known in sizes)
    ends = dict.fromkeys(f"{more[place]:.3g}" for place in (0, -1))
    said = " to ".join(ends)
    return (
        f"{chosen} is enough: {lowest} adds at most {_ENOUGH * 100:g} points of HOT and has a heap "
        f"that is {said} % larger."
    )


def _line(
    axes: Axes, colour: int, known: Sequence[tuple[int, float, Interval | None]]
) -> Iterable[str]:
    at = [(axes.across(level), axes.up(middle)) for level, middle, _ in known]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    yield f'<g class="k{colour}"><polyline class="line" points="{points}"/>'
    for (level, middle, spread), (x, y) in zip(known, at, strict=True):
        said = f"{level}: {_number(middle, axes.is_share)}"
        if spread is not None:
            low, high = axes.up(spread.low), axes.up(spread.high)
            ends = (_number(spread.low, axes.is_share), _number(spread.high, axes.is_share))
            said += f" [{', '.join(ends)}]"
            yield f'<path class="whisker" d="M{x:.1f},{high:.1f}V{low:.1f}"/>'
        yield f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{said}</title></circle>'
    yield "</g>"


def _number(value: float, is_share: bool) -> str:
    if is_share:
        return f"{value * 100:.3g} %"
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.4g}"


def _quoted(text: str) -> str:
    """A level may be anybody's text."""
    table = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    return "".join(table.get(character, character) for character in text)


def _sentence(result: Result, levels: Sequence[int]) -> str | None:
    """One step below the highest setting, within the first level of all else."""
    said, parts = Sentence(), []
    for names in _ASKED.values():
        found = next((text for name in names if (text := _told(result, said, name, levels))), None)
        if found is not None:
            parts.append(found)
    if not parts:
        return None
    return said.ended(f"at fillfactor {levels[1]} against {levels[0]}: {'; '.join(parts)}")


def _told(result: Result, said: Sentence, name: str, levels: Sequence[int]) -> str | None:
    """What became of a measure, by its comparison; of a share both values too."""
    cells = [
        cell
        for level in levels[1::-1]
        for group in list(_groups(result).values())[:1]
        for cell in group
        if reading.number(cell[SWEPT]) == level
    ]
    if len(cells) < 2:
        return None
    then, now = cells[0], cells[1]
    if name.endswith("_frac"):
        before, after = (said.figure(cell, name) for cell in (now, then))
        return f"{title(name)} {before} to {after}" if before and after else None
    for item in comparisons(result, name):
        sides = [dict(item.cell), dict(item.against)]
        if item.changed == (SWEPT,) and all(
            all(cell.get(key) == level for key, level in side.items())
            for cell, side in zip((then, now), sides, strict=True)
        ):
            return f"{title(name)} {said.compared(item)}"
    if name.endswith("_bytes"):
        sizes = [reading.middle(reading.value(cell, name)) for cell in (now, then)]
        return f"{title(name)} {' to '.join(show_bytes(size or 0) for size in sizes)}"
    before, after = (said.figure(cell, name) for cell in (now, then))
    unit = " pages" if name.endswith("_pages") else ""
    return f"{title(name)} {before} to {after}{unit}" if before and after else None
