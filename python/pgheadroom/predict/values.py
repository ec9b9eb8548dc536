"""
What a prediction is: its cells, its answer and what it rests on, as they are shown and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pgheadroom
from pgheadroom.forms import Filed, in_file
from pgheadroom.outcome import KEYS, Outcome
from pgheadroom.predict.answer import CurveAnswer, Setting, answer_of
from pgheadroom.predict.clock import ByItself
from pgheadroom.predict.convergence import TakesEffect
from pgheadroom.predict.fillfactors import Fillfactor, fillfactor_in_row, told_apart
from pgheadroom.predict.growth import Growth
from pgheadroom.predict.order import KeyOrder
from pgheadroom.predict.rewriting import RewrittenLater
from pgheadroom.predict.run_plan import Engine, Storage
from pgheadroom.predict.series import InColumns
from pgheadroom.predict.variants import UNCHANGED, Difference
from pgheadroom.tabular import Row, Tabular, columns, even
from pgheadroom.types import Assumed, Version

WHERE_ANY = in_file(unless_none=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A cell's tables in another state at the start: the outcome, and its windows if asked for."""

    predicted: Outcome
    effect: TakesEffect | None = field(default=None, metadata=WHERE_ANY)
    series: InColumns | None = field(default=None, metadata=WHERE_ANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedCell:
    """
    What the twin expects at one fillfactor: exact numbers, or intervals where it is random.

    `variant` is as in `Cell`; `difference` is set in a variant's cell: under `predicted`, its
    figures minus those of the unchanged profile (see `variants.difference`).

    `by_itself` is what the server does by the clock, `series` the windows, where there are any;
    `growth` whether each table's heap has found its size by then.
    With a `from_fillfactor` the tables were loaded at that one and altered when the run began;
    `rewritten` is the same run on tables loaded at the cell's own, and `effect` compares the two;
    `rewritten_later` is the run whose tables are rewritten in its middle.
    `order` is that of each table, where it was asked for.
    """

    fillfactor: Fillfactor
    variant: str | None = field(default=None, metadata=WHERE_ANY)
    from_fillfactor: int | None = field(default=None, metadata=WHERE_ANY)
    predicted: Outcome
    difference: Difference | None = field(default=None, metadata=WHERE_ANY)
    by_itself: ByItself | None = field(default=None, metadata=WHERE_ANY)
    effect: TakesEffect | None = field(default=None, metadata=WHERE_ANY)
    series: InColumns | None = field(default=None, metadata=WHERE_ANY)
    rewritten: Rewritten | None = field(default=None, metadata=WHERE_ANY)
    rewritten_later: RewrittenLater | None = field(default=None, metadata=WHERE_ANY)
    growth: Mapping[str, Growth] | None = field(default=None, metadata=WHERE_ANY)
    order: Mapping[str, KeyOrder] | None = field(default=None, metadata=WHERE_ANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction(Tabular, Filed):
    """
    A curve over fillfactors, or one cell.

    `server` is the minor version that the twin followed; `assumed` has each default of the profile
    by its field's path, and what the twin approximated; `storage` is where pages are kept, `engine`
    how rows are. `evidence` is `exact` where a server gives these very numbers, `interval`
    where something is drawn, and `model` where no server of ours does what was played. `warnings`
    are to be read first. `answer` is None where no fillfactor has to be chosen, and in files from
    before it was kept (`answered` has it of these too).
    """

    KIND = "prediction"

    tool_version: str = pgheadroom.__version__
    server: Version
    storage: Storage
    engine: Engine
    evidence: Literal["exact", "interval", "model"]
    assumed: Assumed
    warnings: tuple[str, ...] = field(default=(), metadata=in_file(unless_empty=True))
    answer: CurveAnswer | None = field(default=None, metadata=WHERE_ANY)
    cells: tuple[PredictedCell, ...]

    def rows(self) -> list[Row]:
        """
        One row a cell and table; `table` is None for all together.

        `fillfactor` is the table's own; of all together the one that they share, or None.
        Names as in the file; of statistical figures the middle, with `_low` and `_high` beside.
        """
        return even(
            [
                {"fillfactor": fillfactor_in_row(cell.fillfactor, name)}
                | {"variant": cell.variant, "table": name}
                | {k: v for key in KEYS for k, v in columns(key, part.value(key)).items()}
                for cell in self.cells
                for name, part in cell.predicted.parts()
            ]
        )

    def summary(self) -> str:
        """The server that the twin followed, and the fillfactors."""
        levels = ", ".join(str(cell.fillfactor) for cell in self.cells)
        return f"Prediction for PostgreSQL {self.server} ({self.evidence}), fillfactor {levels}"

    @property
    def answered(self) -> CurveAnswer | None:
        """The answer as it is kept; of a file from before it was, what its cells say."""
        return self.answer or answer_by(self.cells)

    def sentences(self) -> tuple[str, ...]:
        """The answer."""
        return () if self.answered is None else (self.answered.text,)


def answer_by(cells: Sequence[PredictedCell]) -> CurveAnswer | None:
    """
    Which fillfactor of a prediction is enough, by its cells.

    Returns:
        None where no single number tells the cells apart, where there is one cell, and where the
        tables are altered when the run begins: their curve is that of old pages.
    """
    if any(cell.from_fillfactor is not None for cell in cells):
        return None
    return answer_of(settings_of(cells))


def settings_of(cells: Sequence[PredictedCell]) -> list[Setting]:
    """The cells without variants as settings; none where no single number tells them apart."""
    unchanged = [cell for cell in cells if cell.variant in (None, UNCHANGED)]
    found = []
    for cell, fillfactor in zip(
        unchanged, told_apart([cell.fillfactor for cell in unchanged]), strict=True
    ):
        if not isinstance(fillfactor, int):
            return []
        found.append(
            Setting(
                fillfactor=fillfactor,
                hot=cell.predicted.hot_frac,
                wal=cell.predicted.wal_bytes_per_update,
                heap=cell.predicted.heap_pages,
            )
        )
    return found
