"""What stands above the tables and charts of a proof or a prediction, its findings among it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pgheadroom.accuracy import Miss
from pgheadroom.lab import reading
from pgheadroom.predict import Prediction
from pgheadroom.report.heading import Heading
from pgheadroom.report.proof import time_tables, variant_tables
from pgheadroom.report.proof.words import cell_label, column_of, error_text, labels, lines_of

if TYPE_CHECKING:
    from pgheadroom.prove import Proof

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
        assumed=tuple(map(str, lines_of(result.assumed.get("twin.approximations", ())))),
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
        return _proven(result) + variant_tables.sentences(result.cells)
    cells = result.cells
    said = variant_tables.models(result)
    answer = [] if (found := result.answered) is None else [reading.printable(found.text)]
    over_time = time_tables.findings(cells, labels(cells))
    if time_tables.is_change(cells):  # the curve is that of old pages, which answers nothing
        return said + over_time
    return said + variant_tables.sentences(cells) + answer + over_time


def _proven(result: Proof) -> list[str]:
    several, answer = len(result.cells), result.answered
    tally = answer.tally
    where = f" in {several} cells" if several > 1 else ""
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
    said += [_missed(miss, several) for miss in answer.missed[:_MOST_SENTENCES]]
    if further := answer.missed[_MOST_SENTENCES:]:
        said.append(_further(further))
    return said


def _further(missed: Sequence[Miss]) -> str:
    """How many figures there are beside those that are told one by one."""
    differing = sum(miss.verdict == "differs" for miss in missed)
    beyond = len(missed) - differing
    of_each = [
        (differing, "differs" if differing == 1 else "differ"),
        (beyond, "is beyond its bound" if beyond == 1 else "are beyond their bounds"),
    ]
    (first, what), *rest = [(count, said) for count, said in of_each if count]
    also = "".join(f", {count} {said}" for count, said in rest)
    return f"{first} further figure{'s' * (first > 1)} {what}{also}."


def _missed(miss: Miss, cells: int) -> str:
    """One figure that is beyond its bound, in one or several cells."""
    column = column_of(miss.key)
    name = f"{miss.key}{f' of {reading.printable(miss.table)}' if miss.table else ''}"
    where = f" at fillfactor {cell_label(miss)}" if cells > 1 else ""
    often = f" in {miss.cells} cells, most{where}" if miss.cells > 1 else where
    how = "differs" if miss.verdict == "differs" else "is beyond its bound"
    return (
        f"{name} {how}{often}: predicted {column.write(miss.predicted).main}, "
        f"measured {column.write(miss.measured).main}{_with_error(miss)}."
    )


def _with_error(miss: Miss) -> str:
    return "" if miss.error is None else f" ({error_text(miss.key, miss.error)})"
