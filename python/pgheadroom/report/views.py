"""
A result as words, tables and charts: an experiment's by its presentation, a proof's by its view.

The last module before the writers. What shows one kind of result is loaded with the first of it:
`charts` imports the chart library, a proof knows the twin, an experiment how all others look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pgheadroom.lab.result import ExperimentResult
from pgheadroom.report import text
from pgheadroom.report.table import Table

if TYPE_CHECKING:
    from pgheadroom.lab.record import SecondsSeries
    from pgheadroom.predict import Prediction
    from pgheadroom.prove import Proof
    from pgheadroom.report.charts import Chart
    from pgheadroom.report.heading import Heading

    Result = ExperimentResult | Proof | Prediction


def heading(result: Result, *, command: str | None = None) -> Heading:
    """
    What stands above a result's tables.

    Args:
        result: Of any kind.
        command: What repeats it, where the result does not say it.
    """
    if isinstance(result, ExperimentResult):
        from pgheadroom.report.experiment import heading as experiment_heading  # noqa: PLC0415

        return experiment_heading.of(result)
    from pgheadroom.report.proof import heading as proof_heading  # noqa: PLC0415

    return proof_heading.of(result, command)


def tables(result: Result, *, brief: bool = False) -> list[Table]:
    """
    Tables of any result, in the order in which they are read.

    Args:
        result: Of any kind; what an experiment's lacks is left out.
        brief: Leave out method and environment, which hold every setting of the server: for a
            terminal.
    """
    if not isinstance(result, ExperimentResult):
        from pgheadroom.report.proof import tables as proof_tables  # noqa: PLC0415

        return proof_tables.tables(result, brief=brief)
    from pgheadroom.lab.presented import presented  # noqa: PLC0415
    from pgheadroom.report.experiment import surroundings  # noqa: PLC0415
    from pgheadroom.report.experiment import tables as experiment_tables  # noqa: PLC0415

    own = experiment_tables.tables(result, presented(result).tables)
    found = own + surroundings.surrounding(result)
    return [table for table in found if not brief or table.section not in ("method", "place")]


def charts(result: Result, series: Sequence[SecondsSeries] = ()) -> list[Chart]:
    """
    Charts of any result, the one that answers its question first.

    Args:
        result: Of any kind.
        series: The series files of the same record, in any order; may be empty.
    """
    if isinstance(result, ExperimentResult):
        from pgheadroom.lab.presented import presented  # noqa: PLC0415
        from pgheadroom.report.experiment import figures  # noqa: PLC0415

        return figures.charts(result, presented(result), series)
    from pgheadroom.report.proof import figures as proof_figures  # noqa: PLC0415

    return proof_figures.all_charts(result)


def as_markdown(result: Result, *, command: str | None = None) -> str:
    """A whole result: its title, the answer, what was found and what to beware of, the tables."""
    head = heading(result, command=command)
    lines = [f"# {head.title}, PostgreSQL {head.server}", ""]
    if head.answer is not None:
        lines += [f"**{text.markdown_text(head.answer)}**", ""]
    lines += [f"- {line}" for line in (*head.findings, *head.warnings)]
    return "\n".join([*lines, "", text.as_markdown(tables(result))])
