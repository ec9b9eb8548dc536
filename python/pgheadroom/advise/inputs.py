"""
Inputs that a calibration set so that the twin repeats what was observed, as values.

A file has them as a mapping, of what was set, in words, to what it was set to. People read the same
words, so there is one place that makes them of a value and a value of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Quantity = Literal["changed_frac", "grows_bytes", "held_s", "lived", "scattered", "pick", "other"]

_NAMES: Mapping[Quantity, tuple[str, str]] = {
    "changed_frac": ("changed_frac of ", ""),
    "grows_bytes": ("grows_bytes of ", ""),
    "held_s": ("seconds that a horizon is held", ""),
    "lived": ("updates a row that the table has lived through", ""),
    "scattered": ("rows of ", " that one statement updates"),
    "pick": ("rows of ", " that are updated"),
}
"""What stands before and after that of which it was set; `held_s` and `lived` are of nothing."""

_UNITS: Mapping[Quantity, str] = {
    "changed_frac": "frac",
    "grows_bytes": "bytes",
    "held_s": "s",
    "lived": "updates a row",
}
_OF_NOTHING: frozenset[Quantity] = frozenset({"held_s", "lived"})
_GROWS = re.compile("1 to ([1-9][0-9]{0,8})")
_BECAUSE = ", which "


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedInput:
    """
    An input that the observation left open, and what it was set to.

    Attributes:
        quantity: What was set; `other` where a file has a name that this version does not give.
        of: Of which it was set: a column with its table, a table; empty for the server's.
        value: The number, in `unit`; of growth the largest. None where words say it.
        words: What it was set to, where that is no number; else empty.
        because: Why it is not what statements say, as `no known statement explains`; else empty.
    """

    quantity: Quantity
    of: str = ""
    value: float | None = None
    words: str = ""
    because: str = ""

    @property
    def unit(self) -> str | None:
        """Of `value`: `frac` (0 to 1), `bytes`, `s`, `updates a row`; None where it has none."""
        return _UNITS.get(self.quantity)

    @property
    def name(self) -> str:
        """What was set, as the file has it and people read it."""
        before, after = _NAMES.get(self.quantity, ("", ""))
        because = _BECAUSE + self.because if self.because else ""
        return f"{before}{self.of}{after}{because}"

    @property
    def stands(self) -> float | str:
        """What it was set to, as the file has it and people read it."""
        if self.value is None:
            return self.words
        return f"1 to {self.value:.0f}" if self.quantity == "grows_bytes" else self.value


def inputs_in_file(inputs: Iterable[FittedInput]) -> dict[str, float | str]:
    """What stands in a file, by name."""
    return {found.name: found.stands for found in inputs}


def inputs_of(file: Mapping[str, float | str]) -> tuple[FittedInput, ...]:
    """The inputs that stand in a file; `inputs_in_file` of them is that again, whatever it has."""
    return tuple(_input(name, stands) for name, stands in file.items())


def _input(name: str, stands: float | str) -> FittedInput:
    quantity, of, because = _named(name)
    if quantity == "grows_bytes":
        sized = _GROWS.fullmatch(stands) if isinstance(stands, str) else None
        if sized is not None:
            return FittedInput(quantity=quantity, of=of, because=because, value=int(sized[1]))
        quantity, of, because = "other", name, ""  # not as this version says it
    if isinstance(stands, str):
        return FittedInput(quantity=quantity, of=of, because=because, words=stands)
    return FittedInput(quantity=quantity, of=of, because=because, value=stands)


def _named(name: str) -> tuple[Quantity, str, str]:
    """What a name says: what was set, of which, and why."""
    for quantity, (before, after) in _NAMES.items():
        if quantity in _OF_NOTHING:
            if name == before:
                return quantity, "", ""
        elif name.startswith(before) and name.endswith(after) and len(name) > len(before + after):
            of = name[len(before) : len(name) - len(after)]
            if quantity != "changed_frac":
                return quantity, of, ""
            column, _, because = of.rpartition(_BECAUSE)
            return (quantity, column, because) if column and because else (quantity, of, "")
    return "other", name, ""
