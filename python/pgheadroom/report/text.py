"""
Tables for the terminal and for files: aligned text, Markdown, CSV, JSON.

The terminal form is psql's: a title, columns parted by `|`, numbers to the right. A table wider
than the terminal wraps its text columns, and if that is not enough it is printed in parts, each
of which repeats the columns that say which row it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import InputError
from pgheadroom.folding import folded
from pgheadroom.forms import write
from pgheadroom.lab import reading
from pgheadroom.lab.result import CellValue, ExperimentResult
from pgheadroom.quoting import printable_json
from pgheadroom.report import csv_file
from pgheadroom.report.table import VERDICTS, Column, Table, Written, range_note, tone
from pgheadroom.types import Interval

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_NARROWEST_TEXT = 16
"""A text column is wrapped down to this many characters; narrower is harder to read than parts."""

_WIDEST_NUMBER = 48
"""What is wider is no number, whatever its column says, and is wrapped like text."""

_TONES = {"good": "green", "bad": "red"}

_MOST_PARTS = 2
"""A table in more parts than this is no table any more: minor columns are left out before."""

_WIDEST_LEAD = 28
"""A leading text column is repeated in each part, so it may not take the whole line."""


def print_tables(tables: Iterable[Table], console: Console) -> None:
    """
    Print tables as psql would.

    Bold, dim, and a verdict's colour, which the console drops for NO_COLOR and for no terminal.
    """
    for index, table in enumerate(tables):
        if index:
            console.print()
        _print_table(table, console)


def as_markdown(tables: Iterable[Table]) -> str:
    """Tables as GitHub-flavoured Markdown; every name is escaped."""
    return "\n".join(_markdown_table(table) for table in tables)


def as_csv(result: ExperimentResult) -> str:
    """
    The cells of a result, one row each: factors, measures, and each interval as three columns.

    A missing value is an empty field.
    """
    cells = reading.cells(result)
    names = _csv_names(result, cells)
    rows = []
    for cell in cells:
        row: list[object] = []
        for name, spread in names:
            row.append(_csv_value(cell.get(name)))
            if spread:
                found = reading.spread_of(cell, name)
                row += ["", "", ""] if found is None else [found.low, found.high, found.level]
        rows.append(row)
    heads = [head for name, spread in names for head in _csv_heads(name, spread)]
    return csv_file.written(heads, rows)


def as_json(result: Mapping[str, Any]) -> str:
    """
    The result as it is, indented by two.

    Raises:
        InputError: It holds NaN or an infinity, which JSON cannot write.
    """
    try:
        text = json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False)
        return printable_json(text) + "\n"
    except ValueError as error:
        raise InputError(
            f"the result cannot be written as JSON: {error}; a measure that has no value is null"
        ) from error


# Terminal ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Laid:
    """A column laid out: its heading lines, its values, and the widths of their two halves."""

    column: Column
    heading: tuple[str, ...]
    values: tuple[Written, ...]
    main_width: int
    spread_width: int
    width: int

    @property
    def wraps(self) -> bool:
        """Whether the column may be made narrower by breaking its text."""
        return self.column.align == "left" or self.width > _WIDEST_NUMBER

    @property
    def narrowest(self) -> int:
        """To how many characters it may be narrowed: no name that leads a row is broken for it."""
        if not self.column.lead:
            return _NARROWEST_TEXT
        words = (word for value in self.values for word in str(value).split())
        longest = max(map(_cells, words), default=0)
        return max(_NARROWEST_TEXT, min(longest, _WIDEST_LEAD))


def _print_table(table: Table, console: Console) -> None:
    from rich.text import Text  # noqa: PLC0415 - only printing needs it

    def line(content: str, style: str = "") -> None:
        console.print(
            Text("\n").join(folded(content, console, console.width, style)),
            no_wrap=True,
            overflow="ignore",
            highlight=False,
            crop=False,
        )

    line(reading.printable(table.title), "bold")
    if not table.columns:
        return
    laid = _lay(table)
    headings = laid[0].values if table.headed else None
    chosen, left_out = _chosen(laid[1:] if table.headed else laid, console.width)
    for part in _parts(chosen, console.width):
        lines = Text("\n").join(_lines(part, console, headings))
        console.print(lines, no_wrap=True, overflow="ignore", crop=False, highlight=False)
    count = len(table.rows)
    line(f"({count} row{'' if count == 1 else 's'})")
    for note in (table.evidence(), range_note(table), table.note, _left_out(left_out)):
        if note:
            line(reading.printable(note), "dim")


def _chosen(laid: list[_Laid], width: int) -> tuple[list[_Laid], list[_Laid]]:
    """Columns that are printed, and the minor ones that have to go so that two parts do."""
    chosen, left_out = list(laid), list[_Laid]()
    while len(_parts(chosen, width)) > _MOST_PARTS:
        minor = [item for item in chosen if item.column.minor]
        if not minor:
            break
        chosen.remove(minor[-1])
        left_out.insert(0, minor[-1])
    return chosen, left_out


def _left_out(columns: Sequence[_Laid]) -> str:
    """Which columns a wider terminal has."""
    if not columns:
        return ""
    named = ", ".join(item.column.title for item in columns)
    return f"Left out, for the terminal is narrow: {named}. --format has them all."


def _lay(table: Table) -> list[_Laid]:
    written = table.written()
    grouped = any(column.group for column in table.columns)
    units = any(column.unit for column in table.columns)
    laid = []
    previous = None
    for place, column in enumerate(table.columns):
        heading = [reading.printable(column.title)]
        if grouped:
            heading.insert(0, (column.group or "") if column.group != previous else "")
        if units:
            heading.append(column.unit or "")
        previous = column.group
        values = tuple(row[place] for row in written)
        main = max((_cells(value.main) for value in values), default=0)
        spread = max((_cells(value.spread) for value in values), default=0)
        width = max([main + (spread and spread + 1), *map(_cells, heading)])
        laid.append(_Laid(column, tuple(heading), values, main, spread, width))
    return laid


def _parts(laid: list[_Laid], width: int) -> list[list[_Laid]]:
    """Columns by printed part: narrowed first, and split when that does not do."""
    narrowed = _narrow(laid, width)
    if _total(narrowed) <= width:
        return [narrowed]
    leads = [
        replace(item, width=min(item.width, _WIDEST_LEAD)) if item.wraps else item
        for item in laid
        if item.column.lead
    ]
    room = width - _total(leads)
    parts: list[list[_Laid]] = []
    for item in laid:
        if item.column.lead:
            continue
        own = replace(item, width=min(item.width, max(_NARROWEST_TEXT, room - 3)))
        beside = width - _total([*leads, *parts[-1]]) - 3 if parts else 0
        if item.wraps and _WIDEST_NUMBER <= beside < own.width:
            own = replace(item, width=beside)
        fits = parts and _total([*leads, *parts[-1], own]) <= width
        if fits and (
            item.column.group is None or not _breaks_group(parts[-1], item, laid, leads, width)
        ):
            parts[-1].append(own)
        else:
            parts.append([own])
    _take_in(parts, leads, width)
    return [[*leads, *part] for part in parts] or [leads]


def _take_in(parts: list[list[_Laid]], leads: list[_Laid], width: int) -> None:
    """A short column that would be printed alone stands where an earlier part has room for it."""
    for part in [part for part in parts[1:] if len(part) == 1]:
        (item,) = part
        if (item.wraps and item.width > _NARROWEST_TEXT) or item.column.group is not None:
            continue
        for earlier in parts[: parts.index(part)]:
            if _total([*leads, *earlier, item]) <= width:
                earlier.append(item)
                parts.remove(part)
                break


def _breaks_group(
    part: list[_Laid], item: _Laid, laid: list[_Laid], leads: list[_Laid], width: int
) -> bool:
    """Whether a group that begins here would not fit into the part as a whole."""
    if any(other.column.group == item.column.group for other in part):
        return False
    group = [other for other in laid if other.column.group == item.column.group]
    return _total([*leads, *part, *group]) > width


def _narrow(laid: list[_Laid], width: int) -> list[_Laid]:
    if _total(laid) <= width:
        return laid
    narrowed = list(laid)
    narrowest = [item.narrowest for item in laid]
    while (excess := _total(narrowed) - width) > 0:
        places = [
            place
            for place, item in enumerate(narrowed)
            if item.wraps and item.width > narrowest[place]
        ]
        if not places:
            break
        widest = max(places, key=lambda place: narrowed[place].width)
        item = narrowed[widest]
        # Level the widest with the next one before both shrink, so that none is squeezed alone.
        others = [narrowed[place].width for place in places if narrowed[place].width < item.width]
        floor = max([narrowest[widest], *others])
        narrowed[widest] = replace(item, width=max(floor, item.width - excess, item.width // 2))
    return narrowed


def _total(laid: Sequence[_Laid]) -> int:
    return sum(item.width + 3 for item in laid) - 1 if laid else 0


def _lines(
    part: list[_Laid], console: Console, headings: Sequence[Written] | None = None
) -> list[Text]:
    from rich.text import Text  # noqa: PLC0415 - only printing needs it

    lines: list[Text] = []
    for level in range(len(part[0].heading)):
        texts = [_centred(item.heading[level], item.width) for item in part]
        lines.append(Text(f" {' | '.join(texts)}".rstrip()))
    lines.append(Text("+".join("-" * (item.width + 2) for item in part)))
    for row in range(len(part[0].values)):
        if headings and (not row or headings[row] != headings[row - 1]):
            lines += folded(f" {headings[row]}", console, console.width, "bold")
        blocks = [_block(item, row, console) for item in part]
        for level in range(max(map(len, blocks))):
            line = Text(" ")
            for place, (item, block) in enumerate(zip(part, blocks, strict=True)):
                line.append(" | " if place else "")
                cell = block[level] if level < len(block) else Text("")
                line.append_text(cell)
                line.append(" " * (item.width - cell.cell_len))
            line.rstrip()
            lines.append(line)
    return lines


def _block(item: _Laid, row: int, console: Console) -> list[Text]:
    """The lines of one value."""
    from rich.text import Text  # noqa: PLC0415 - only printing needs it

    written = item.values[row]
    if item.wraps:
        style = _TONES.get(tone(written.main), "") if item.column.key in VERDICTS else ""
        if "\n" not in str(written) and _cells(str(written)) <= item.width:
            return [Text(str(written), style=style)]  # wrapping takes most of a long table's time
        return folded(str(written), console, item.width, style) or [Text("")]
    block = Text(" " * (item.main_width - _cells(written.main)) + written.main)
    if item.spread_width:
        block.append(f" {written.spread:>{item.spread_width}}", style="dim")
    return [Text(" " * (item.width - block.cell_len)).append_text(block)]


def _centred(heading: str, width: int) -> str:
    """A heading in the middle, as psql has it; cut with an ellipsis when it is too long."""
    length = _cells(heading)
    if length > width:
        while heading and _cells(heading) > width - 1:
            heading = heading[:-1]
        heading += "…"
        length = _cells(heading)
    left = (width - length) // 2
    return " " * left + heading + " " * (width - length - left)


def _cells(text: str) -> int:
    from rich.cells import cell_len  # noqa: PLC0415 - only printing needs it

    return cell_len(text)


# Markdown ---------------------------------------------------------------------------------------


def _markdown_table(table: Table) -> str:
    lines = [f"### {markdown_text(table.title)}", ""]
    if table.columns:
        heads = []
        for column in table.columns:
            unit = f" ({column.unit})" if column.unit else ""
            heads.append(
                markdown_text(f"{column.group}: " if column.group else "")
                + markdown_text(column.title + unit)
            )
        rules = ["---:" if column.align == "right" else ":---" for column in table.columns]
        lines += [f"| {' | '.join(heads)} |", f"| {' | '.join(rules)} |"]
        lines += [
            f"| {' | '.join(markdown_text(str(value)) for value in row)} |"
            for row in table.written()
        ]
        lines.append("")
    for note in (table.evidence(), range_note(table), table.note):
        if note:
            lines += [markdown_text(note), ""]
    return "\n".join(lines)


def markdown_text(content: str) -> str:
    """Escape what Markdown, or the HTML inside it, would take for markup."""
    shown = reading.printable(content)
    for character in "\\`*|":
        shown = shown.replace(character, f"\\{character}")
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace("](", "]\\(")


# CSV --------------------------------------------------------------------------------------------


def _csv_names(
    result: ExperimentResult, cells: Sequence[Mapping[str, Any]]
) -> list[tuple[str, bool]]:
    """Names of the columns in order, with whether an interval stands beside."""
    stated = [factor.name for factor in reading.factors(result)]
    stated += [measure.name for measure in reading.measures(result)]
    present = {name for cell in cells for name in cell}
    names = [name for name in dict.fromkeys(stated) if name in present or not cells]
    for cell in cells:
        names += [name for name in cell if name not in names and not _is_interval(name, cell)]
    return [
        (name, any(reading.spread_of(cell, name) is not None for cell in cells))
        for name in dict.fromkeys(names)
    ]


def _is_interval(name: str, cell: Mapping[str, Any]) -> bool:
    return name.endswith("_interval") and (cell[name] is None or isinstance(cell[name], Interval))


def _csv_heads(name: str, spread: bool) -> list[str]:
    return [name, *(f"{name}_{end}" for end in ("low", "high", "level"))] if spread else [name]


def _csv_value(value: CellValue) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(write(value)) if isinstance(value, Interval) else value
