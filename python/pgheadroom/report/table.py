"""
Tables as values: columns, rows, and how a value of a column is written.

Between the views, which build tables from a result, and the writers (terminal, Markdown, HTML),
which all write a value through `Column.write`. Nothing here knows an experiment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pgheadroom.lab.reading import middle, number, printable
from pgheadroom.lab.result import CellValue
from pgheadroom.types import Interval
from pgheadroom.units import share_digits, show_percent

Style = Literal["number", "share", "ratio", "text", "words", "code"]
"""How a value is written: as it is, a fraction as per cent, a ratio, a size as text, words, or
statements to be copied."""

Section = Literal[
    "results", "time", "comparisons", "controls", "references", "assumed", "method", "place"
]
"""The part of a report a table belongs to; `place` is the environment it was measured in."""

NOTHING = "-"
"""Stands where a value is missing; empty would look like a mistake of ours."""

_RATIO_DIGITS = 3
_SHARE_DIGITS = 1
_MAX_DIGITS = 6

_WHOLE_FROM = 1000
"""Around whole numbers from here on, the ends of a range are written without decimals too."""


@dataclass(frozen=True)
class Column:
    """
    One column: what it is called, and how its values are written.

    `lead` columns say which row it is (the factors); a table that is too wide repeats them.
    `group` is a heading over neighbouring columns. `digits` are decimals; None lets the column
    choose by its values. `evidence` says where the numbers come from. A terminal that is too narrow
    leaves out `minor` columns, the last one first, before it prints a table in more than two parts.
    """

    key: str
    title: str
    unit: str | None = None
    digits: int | None = None
    style: Style = "number"
    lead: bool = False
    group: str | None = None
    evidence: str | None = None
    description: str | None = None
    signed: bool = False
    minor: bool = False

    @property
    def align(self) -> Literal["left", "right"]:
        """Words begin at the left; numbers, and sizes written as text, end at the right."""
        return "left" if self.style in ("words", "code") else "right"

    def write(self, cell: CellValue) -> Written:
        """Write one value; the range of an interval is a part of its own."""
        if cell is None:
            return Written(NOTHING)
        if isinstance(cell, Interval):
            main = self._number(cell.mid)
            if cell.low == cell.high:
                return Written(main)
            return Written(main, f"[{self._end(cell.low)}, {self._end(cell.high)}]")
        found = number(cell)
        if found is not None and self.style not in ("text", "words", "code"):
            return Written(self._number(found))
        if isinstance(cell, bool):
            return Written("on" if cell else "off")
        return Written(printable(cell))

    def _end(self, found: float) -> str:
        """An end of a range, rounded to whichever side: one below 100 % may be shown as 100."""
        if self.style == "share":
            return f"{found * 100:.{_SHARE_DIGITS if self.digits is None else self.digits}f}"
        return self._number(found)

    def _number(self, found: float) -> str:
        if self.style == "share":
            return show_percent(found, _SHARE_DIGITS if self.digits is None else self.digits)
        if self.style == "ratio":
            return _ratio(found) if self.digits is None else f"{found:.{self.digits}f}"
        if self.digits is None and not (isinstance(found, int) or float(found).is_integer()):
            written = f"{found:.{_digits([found])}f}"
        else:
            written = f"{found:.{self.digits or 0}f}"
        return f"+{written}" if self.signed and found > 0 else written


@dataclass(frozen=True)
class Written:
    """A value as text: the value itself, and the range around it if it has one."""

    main: str
    spread: str = ""

    def __str__(self) -> str:
        return f"{self.main} {self.spread}" if self.spread else self.main


@dataclass(frozen=True)
class Table:
    """
    A table with its columns and rows; each row has one value per column.

    With `headed`, the first column's value is a heading over the rows that share it. `folded` is
    one of several alike, which a page shows when it is asked to.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[CellValue, ...], ...]
    note: str | None = None
    section: Section = "results"
    headed: bool = False
    folded: bool = False

    def settled(self) -> Table:
        """
        The same table, with decimals chosen per column, so that they stand in line.

        Shares have as many in all columns: they are read beside each other.
        """
        columns = tuple(
            _with_digits(column, [row[place] for row in self.rows])
            for place, column in enumerate(self.columns)
        )
        digits = [one.digits or 0 for one in columns if one.style == "share"]
        columns = tuple(
            replace(new, digits=max(digits)) if new.style == "share" and old.digits is None else new
            for old, new in zip(self.columns, columns, strict=True)
        )
        return replace(self, columns=columns)

    def written(self) -> list[list[Written]]:
        """Every value as text."""
        columns = self.settled().columns
        return [
            [column.write(cell) for column, cell in zip(columns, row, strict=True)]
            for row in self.rows
        ]

    def evidence(self) -> str | None:
        """
        Where the numbers come from, as a sentence; None when no column says.

        One word when all agree, else the columns by kind.
        """
        kinds: dict[str, list[str]] = {}
        for column in self.columns:
            if column.evidence:
                names = kinds.setdefault(column.evidence, [])
                if column.title not in names:
                    names.append(column.title)
        if not kinds:
            return None
        if len(kinds) == 1:
            return f"All figures {next(iter(kinds))}."
        said = [f"{kind}: {', '.join(names)}" for kind, names in kinds.items()]
        sentence = "; ".join(said)
        return f"{sentence[0].upper()}{sentence[1:]}."


VERDICTS = ("verdict", "holds")
"""Columns, by their key, whose words have a tone."""


def tone(verdict: str) -> str:
    """`good`, `bad`, `open` or nothing: colour that only repeats what a verdict's words say."""
    if verdict.startswith("undecided"):
        return "open"
    if "(better)" in verdict or verdict in ("equal", "holds", "within"):
        return "good"
    return "bad" if "(worse)" in verdict or verdict in ("differs", "misses", "beyond") else ""


def levels(table: Table) -> list[float]:
    """The coverages of the table's intervals, in rising order, each once."""
    found = (cell for row in table.rows for cell in row if isinstance(cell, Interval))
    return sorted({spread.level for spread in found if spread.low != spread.high})


def range_note(table: Table) -> str | None:
    """What the brackets mean, in one sentence."""
    covered = levels(table)
    if not covered:
        return None
    shown = [f"{level * 100:.3g} %" for level in covered]
    span = shown[0] if shown[0] == shown[-1] else f"{shown[0]} to {shown[-1]}"
    return f"Brackets: interval of {span} coverage."


def _with_digits(column: Column, cells: Sequence[CellValue]) -> Column:
    if column.style not in ("number", "share") or column.digits is not None:
        return column
    # The middles choose: the ends of a range have no more digits than what they enclose.
    mids = [mid for cell in cells if (mid := middle(cell)) is not None]
    spreads = [cell for cell in cells if isinstance(cell, Interval)]
    ends = [end for spread in spreads for end in (spread.low, spread.high)]
    if not mids:
        return column
    if column.style == "share":
        return replace(column, digits=share_digits(mids))
    whole = max(map(abs, mids)) >= _WHOLE_FROM
    return replace(column, digits=_digits(mids) if whole else _digits([*mids, *ends]))


def _ratio(found: float) -> str:
    """A ratio around 1 with three decimals; one far from 1 with three digits that count."""
    if 0 < abs(found) < 0.01 or abs(found) >= 1e6:
        return f"{found:.2e}"
    return f"{found:.{_RATIO_DIGITS}f}" if abs(found) < 10 else f"{found:.1f}"


def _digits(found: list[float]) -> int:
    """Decimals for a column: none for whole numbers, else about four digits of the largest."""
    if all(value.is_integer() for value in map(float, found)):
        return 0
    power = math.floor(math.log10(max(abs(value) for value in found)))
    return min(_MAX_DIGITS, max(1, 3 - power if power >= 0 else 2 - power))
