"""What stands above the tables and charts of a proof or a prediction, its findings among it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pgheadroom.accuracy import Figure, Tally
from pgheadroom.lab import reading
from pgheadroom.outcome import middle
from pgheadroom.predict import Prediction
from pgheadroom.predict.variants import UNCHANGED
from pgheadroom.report.heading import Heading
from pgheadroom.report.proof import answer as prediction_answer
from pgheadroom.report.proof import time_tables, variant_tables
from pgheadroom.report.proof.tables import figures_of, told
from pgheadroom.report.proof.words import cell_label, column_of, error_text, labels, varied

if TYPE_CHECKING:
    from pgheadroom.prove import Proof, ProofCell

_MOST_SENTENCES = 4


def of(result: Proof | Prediction, command: str | None = None) -> Heading:
    """
    Its words, printable.

    Args:
        result: What was proved or predicted.
        command: What repeats it.
    """
    version = str(result.server)
    warnings = reading.texts(result.warnings)
    predicted = isinstance(result, Prediction)
    return Heading(
        kind="prediction" if predicted else "proof",
        title="What the twin predicts" if predicted else "The twin beside a real server",
        server=version,
        question=time_tables.question(result.cells)
        if isinstance(result, Prediction)
        else "Does the twin do what PostgreSQL does with this profile?",
        findings=tuple(findings(result)),
        warnings=warnings,
        alarms=warnings,
        assumed=tuple(result.assumed.get("twin.approximations", ())),
        command=command,
        meta=(
            ("Server", f"PostgreSQL {version}"),
            ("Cells", str(len(result.cells))),
            ("Made by", f"pgheadroom {reading.printable(result.tool_version)}"),
        ),
        tool_version=result.tool_version,
    )


def findings(result: Proof | Prediction) -> list[str]:
    """What the result says, in sentences with numbers."""
    if not isinstance(result, Prediction):
        return _proven(result.cells) + variant_tables.sentences(result.cells)
    cells = result.cells
    said = variant_tables.models(result)
    over_time = time_tables.findings(cells, labels(cells))
    if time_tables.is_change(cells):  # the curve is that of old pages, which answers nothing
        return said + over_time
    unchanged = [cell for cell in cells if cell.variant in (None, UNCHANGED)]
    answer = prediction_answer.sentence(unchanged, varied(unchanged))
    return said + variant_tables.sentences(cells) + ([answer] if answer else []) + over_time


def _proven(cells: Sequence[ProofCell]) -> list[str]:
    found = [(cell, figure) for cell in cells for figure in told(figures_of(cell))]
    tally = Tally.of(figure for _, figure in found)
    where = f" in {len(cells)} cells" if len(cells) > 1 else ""
    said = [
        f"All {tally.equal} figures{where} are equal."
        if tally.equal == tally.compared
        else f"{tally.equal} of {tally.compared} figures{where} are equal."
    ]
    if tally.intervals:
        said.append(
            f"{tally.held} of {tally.intervals} intervals hold what was measured "
            f"({100 * tally.held / tally.intervals:.0f} %; 90 % is what they state)."
        )
    missed: dict[tuple[str | None, str], list[tuple[ProofCell, Figure]]] = {}
    for cell, figure in found:
        if figure.missed:
            missed.setdefault((figure.table, figure.key), []).append((cell, figure))
    worst = sorted(missed.values(), key=lambda items: -max(map(_size, items)))
    said += [_missed(items, len(cells)) for items in worst[:_MOST_SENTENCES]]
    if len(worst) > _MOST_SENTENCES:
        said.append(f"{len(worst) - _MOST_SENTENCES} further figures differ.")
    return said


def _size(item: tuple[ProofCell, Figure]) -> float:
    """How large a miss is; without end where there is no error to state."""
    number = middle(item[1].error)
    return math.inf if number is None else abs(number)


def _missed(items: Sequence[tuple[ProofCell, Figure]], cells: int) -> str:
    """One figure that is beyond its bound, in one or several cells."""
    cell, figure = max(items, key=_size)
    column = column_of(figure.key)
    name = f"{figure.key}{f' of {reading.printable(figure.table)}' if figure.table else ''}"
    where = f" at fillfactor {cell_label(cell)}" if cells > 1 else ""
    often = f" in {len(items)} cells, most{where}" if len(items) > 1 else where
    how = "differs" if figure.verdict == "differs" else "is beyond its bound"
    return (
        f"{name} {how}{often}: predicted {column.write(figure.predicted).main}, "
        f"measured {column.write(figure.measured).main}{_with_error(figure)}."
    )


def _with_error(figure: Figure) -> str:
    return "" if figure.error is None else f" ({error_text(figure.key, figure.error)})"
