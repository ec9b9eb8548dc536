"""
How many blocks a run had and why, where its plan does not say: `conduct.json` of a record.

A budget writes it twice. Before the first further block it says that the run goes on, so that a
run that is killed there stays unfinished whatever reads it; at the end it says why it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgheadroom.forms import Filed
from pgheadroom.lab import budget
from pgheadroom.lab.design import SCHEMA_VERSION, Request
from pgheadroom.lab.record import Record, read_form
from pgheadroom.stats import PRECISION_FRAC

FILE = "conduct.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """What is known of a run: whether it ended, how many blocks and why, and warnings."""

    ended: bool = True
    repetitions: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written(Filed):
    """The file."""

    KIND = "lab_conduct"
    VERSION = SCHEMA_VERSION

    repetitions: str
    ended: bool = True
    warnings: tuple[str, ...] = ()


def read(record: Record, request: Request) -> Conduct:
    """
    The conduct of a record.

    Blocks beyond the plan without a word on why they ended are those of a run that was killed.

    Raises:
        InputError: The file is damaged.
    """
    path = record.folder / FILE
    if not path.exists():
        if _blocks(record) <= request.repetitions:
            return Conduct()
        return Conduct(ended=False, repetitions=so_far(record, request))
    found = read_form(path, _Written)
    return Conduct(
        ended=found.ended,
        # What was written before the first further block does not know of those that followed.
        repetitions=found.repetitions if found.ended else so_far(record, request),
        warnings=found.warnings,
    )


def write(record: Record, said: str, *, ended: bool = True, warnings: Sequence[str] = ()) -> None:
    """
    Write the conduct of a record.

    Args:
        record: Open for writing.
        said: How many blocks there were and why.
        ended: Whether nothing more is to come.
        warnings: What a reader of the result must know.

    Raises:
        DiskFull: No room.
    """
    found = _Written(repetitions=said, ended=ended, warnings=tuple(warnings))
    record.write(FILE, found.to_json())


def so_far(record: Record, request: Request) -> str:
    """How many blocks there are, of a run whose budget has added some or is about to."""
    return (
        f"{request.repetitions} blocks planned, {_blocks(record) - request.repetitions} more "
        "within the budget, for the comparisons with the widest intervals"
    )


def why_stopped(open_: Sequence[budget.Open]) -> str:
    """
    Why a budget's blocks ended, and what more of them would have taken.

    Args:
        open_: What is not answered, the widest first.
    """
    if not open_:
        return (
            "stopped because no comparison was left to sharpen (half width at most 2 %, or a "
            "quarter of the effect)"
        )
    widest = open_[0]
    left = f"{len(open_)} comparisons" if len(open_) > 1 else "1 comparison"
    said = f"the budget was spent with {left} not answered, the widest {widest.measure}"
    needed = budget.blocks_needed(widest, PRECISION_FRAC)
    if widest.reason is not None:
        return f"{said}, which is narrow enough and undecided because {widest.reason}"
    return said if needed is None else f"{said}, which would need about {needed:,} blocks for 2 %"


def _blocks(record: Record) -> int:
    return max((sample.repetition for sample in record.samples), default=0)
