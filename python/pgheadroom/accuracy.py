"""
How far a prediction is from what a server measured, and whether that is far.

Between the players and whoever reports: the error of each figure by fixed rules, the bounds that
the project sets itself, and how many intervals held what came.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pgheadroom.forms import in_file
from pgheadroom.outcome import KEYS, SHARES, Outcome, Value, middle
from pgheadroom.predict.fillfactors import Fillfactor
from pgheadroom.types import Interval

BOUNDS: Mapping[str, float] = {
    "hot_frac": 0.01,
    "newpage_frac": 0.01,
    "heap_pages": 0.01,
    "index_pages": 0.03,
    "wal_nonfpi_bytes_per_update": 0.02,
    "wal_bytes_per_update": 0.05,
    "wal_bytes": 0.05,
}
"""
What random and concurrent work may miss by, either way: shares absolutely, the rest relatively.

They hold for all tables of a profile together; exact figures may not miss at all, in any table.
"""

Agreement = Literal["exact", "differs", "within", "beyond", "no bound", "not compared"]
"""
`differs` is an exact figure that is off. Of statistical ones `within` and `beyond` are said of the
bound that they have, `no bound` of those that have none: whether the interval holds is another
question (`Figure.holds`). `not compared` is what a side does not have.
"""


def error(predicted: Outcome, measured: Outcome) -> Outcome:
    """
    The error of every figure, and of every table's.

    Shares: predicted minus measured. The rest: the ratio minus 1. Equal values, 0 and 0 too, give
    0; a measured 0 with another prediction, and a value that is missing on either side, give None.
    An interval counts with its middle.
    """
    values = {key: _error(key, predicted.value(key), measured.value(key)) for key in KEYS}
    tables = {
        name: error(table, measured.by_table[name])
        for name, table in predicted.by_table.items()
        if name in measured.by_table
    }
    without_row = _errors(predicted.operations_without_row, measured.operations_without_row)
    failed = _error(
        "failed_transactions", predicted.failed_transactions, measured.failed_transactions
    )
    return Outcome(
        **values,
        by_table=tables,
        operations_without_row=without_row,
        failed_transactions=failed,
    )


def _errors(
    predicted: Mapping[str, Value] | None, measured: Mapping[str, Value] | None
) -> Mapping[str, Value] | None:
    """Of numbers under equal names; None where nothing of the other side is known."""
    if predicted is None or measured is None:
        return None
    return {
        name: _error("operations_without_row", value, measured.get(name))
        for name, value in predicted.items()
    }


def _error(key: str, predicted: Value, measured: Value) -> Value:
    ours, theirs = middle(predicted), middle(measured)
    if ours is None or theirs is None:
        return None
    if ours == theirs:
        return 0
    if key in SHARES:
        return ours - theirs
    return None if theirs == 0 else ours / theirs - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a cell: both players' values, the error and what to say of it."""

    table: str | None
    key: str
    predicted: Value
    measured: Value
    error: Value
    verdict: Agreement

    @property
    def missed(self) -> bool:
        """Whether the prediction is off by more than the bounds allow."""
        return self.verdict in ("differs", "beyond")

    @property
    def holds(self) -> bool | None:
        """Whether the interval holds what was measured; None where there is no interval."""
        if not isinstance(self.predicted, Interval):
            return None
        value = middle(self.measured)
        return None if value is None else not self.predicted.excludes(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Figures together: how many could be compared and are equal, how many intervals hold."""

    compared: int
    equal: int
    intervals: int
    held: int

    @classmethod
    def of(cls, found: Iterable[Figure]) -> Tally:
        """Count them."""
        found = list(found)
        holding = [figure.holds for figure in found if figure.holds is not None]
        return cls(
            compared=sum(figure.verdict != "not compared" for figure in found),
            equal=sum(figure.verdict == "exact" for figure in found),
            intervals=len(holding),
            held=sum(holding),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """
    A figure that is off by more than the bounds allow: of all its cells the one that is most so.

    `cells` counts them; `fillfactor` and `variant` are that cell's.
    """

    table: str | None
    key: str
    cells: int
    fillfactor: Fillfactor
    variant: str | None = field(default=None, metadata=in_file(unless_none=True))
    predicted: Value
    measured: Value
    error: Value
    verdict: Agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofAnswer:
    """
    What a proof answers: how many figures of all cells agree, and which do not.

    Figures are of all tables together, and of each where a cell has several; `missed` has the
    largest errors first.
    """

    tally: Tally
    missed: tuple[Miss, ...] = ()

    @classmethod
    def of(cls, cells: Sequence[tuple[Fillfactor, str | None, Sequence[Figure]]]) -> ProofAnswer:
        """Count them, given each cell's fillfactor, variant and figures."""
        every = [(cell, figure) for cell in cells for figure in told(cell[2])]
        missed: dict[tuple[str | None, str], list[Miss]] = {}
        for (fillfactor, variant, _), figure in every:
            if figure.missed:
                found = missed.setdefault((figure.table, figure.key), [])
                found.append(
                    Miss(
                        table=figure.table,
                        key=figure.key,
                        cells=1,
                        fillfactor=fillfactor,
                        variant=variant,
                        predicted=figure.predicted,
                        measured=figure.measured,
                        error=figure.error,
                        verdict=figure.verdict,
                    )
                )
        worst = [replace(max(found, key=_size), cells=len(found)) for found in missed.values()]
        return cls(
            tally=Tally.of(figure for _, figure in every),
            missed=tuple(sorted(worst, key=lambda miss: -_size(miss))),
        )


def _size(miss: Miss) -> float:
    """How large it is; without end where there is no error to state."""
    number = middle(miss.error)
    return math.inf if number is None else abs(number)


def told(found: Sequence[Figure]) -> list[Figure]:
    """Of one cell's figures the whole, and the tables when there are several."""
    names = {figure.table for figure in found if figure.table is not None}
    return [figure for figure in found if figure.table is None or len(names) > 1]


def figures(predicted: Outcome, measured: Outcome) -> Iterator[Figure]:
    """Every figure of a cell, the whole first, then table by table."""
    parts: list[tuple[str | None, Outcome, Outcome]] = [(None, predicted, measured)]
    parts += [
        (name, table, measured.by_table[name])
        for name, table in predicted.by_table.items()
        if name in measured.by_table
    ]
    for table, ours, theirs in parts:
        for key in KEYS:
            found = _error(key, ours.value(key), theirs.value(key))
            yield Figure(
                table=table,
                key=key,
                predicted=ours.value(key),
                measured=theirs.value(key),
                error=found,
                verdict=_verdict(table, key, ours.value(key), theirs.value(key), found),
            )


def _verdict(
    table: str | None, key: str, predicted: Value, measured: Value, found: Value
) -> Agreement:
    if middle(predicted) is None or middle(measured) is None:
        return "not compared"
    if found == 0:
        return "exact"
    if not isinstance(predicted, Interval):
        return "differs"
    if table is not None or key not in BOUNDS:
        return "no bound"
    number = middle(found)
    return "beyond" if number is None or abs(number) > BOUNDS[key] else "within"


def beyond(predicted: Outcome, measured: Outcome) -> list[Figure]:
    """The figures that miss by more than the bounds allow."""
    return [item for item in figures(predicted, measured) if item.missed]
