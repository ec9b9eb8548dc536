"""
Results as a table for programs: flat rows, a data frame, a notebook's HTML.

What a person reads at length is `report`; this is for those who compute further.
"""

from __future__ import annotations

import html
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom.errors import InputError, ParameterError
from pgheadroom.quoting import printable
from pgheadroom.types import Interval

Row = dict[str, Any]

_FRAMES = ("pandas", "polars")
_ROWS_SHOWN = 60  # as pandas has it


class Tabular:
    """A result that is a table too; the class says its rows and a line about itself."""

    __slots__ = ()

    def rows(self) -> list[Row]:
        """Flat rows under the same names each: text, numbers, booleans, None."""
        raise NotImplementedError

    def summary(self) -> str:
        """What it is, in a line."""
        raise NotImplementedError

    def sentences(self) -> tuple[str, ...]:
        """What it answers, where it has a sentence for that."""
        return ()

    def to_frame(self, library: str | None = None) -> Any:
        """
        The rows as a data frame.

        Args:
            library: `pandas` or `polars`; None: the first of the two that is installed.

        Raises:
            InputError: Neither is installed, or not the one that was asked for.
        """
        if library is not None and library not in _FRAMES:
            raise ParameterError("library", f"{library!r}: expected {' or '.join(_FRAMES)}")
        wanted = _FRAMES if library is None else (library,)
        for name in wanted:
            try:
                module = importlib.import_module(name)
            except ModuleNotFoundError:
                continue
            return module.DataFrame(self.rows())
        if library is not None:
            raise ParameterError(
                "library",
                f"{library!r} is not installed: install it, or take rows(), which needs none",
            )
        raise InputError(
            f"{' and '.join(_FRAMES)} are not installed: install one for to_frame(), or take "
            "rows(), which needs none"
        )

    def _repr_html_(self) -> str:
        """What it says, and the table, as notebooks show it."""
        rows = self.rows()
        names = list(rows[0]) if rows else []
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(_shown(row[name]))}</td>" for name in names)
            + "</tr>"
            for row in rows[:_ROWS_SHOWN]
        )
        more = len(rows) - _ROWS_SHOWN
        rest = f"<p>and {more} rows more: to_frame() has them</p>" if more > 0 else ""
        lines = (self.summary(), *self.sentences())
        said = "".join(f"<p>{html.escape(printable(line))}</p>" for line in lines)
        return f"{said}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def columns(name: str, value: Any) -> Row:
    """A value in flat columns: `name`, and with an interval `name_low` and `name_high` beside."""
    if isinstance(value, Interval):
        return {name: value.mid, f"{name}_low": value.low, f"{name}_high": value.high}
    return {name: value}


def even(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Rows that all have every name; an exact value is its own low and high where others differ."""
    names: dict[str, None] = {}
    for row in rows:
        for name in row:
            bare = name.removesuffix("_low").removesuffix("_high")
            if bare != name and bare in row:  # both bounds stand behind their value
                continue
            names[name] = None
            if any(f"{name}_low" in other for other in rows):
                names[f"{name}_low"] = names[f"{name}_high"] = None
    return [{name: _in(row, name) for name in names} for row in rows]


def _in(row: Mapping[str, Any], name: str) -> Any:
    if name in row:
        return row[name]
    bare = name.removesuffix("_low").removesuffix("_high")
    return row.get(bare) if bare != name else None
