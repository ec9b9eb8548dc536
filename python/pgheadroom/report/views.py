"""
A result as tables and charts: an experiment's by its presentation, a proof's by its own view.

The last module before the writers. `charts` imports the chart library; `tables` does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pgheadroom.lab import reading
from pgheadroom.lab.presented import presented
from pgheadroom.report import text
from pgheadroom.report.experiment import surroundings
from pgheadroom.report.experiment import tables as experiment_tables
from pgheadroom.report.proof import tables as proof_tables
from pgheadroom.report.proof import time_tables
from pgheadroom.report.table import Table

if TYPE_CHECKING:
    from pgheadroom.report.charts import Chart

_PROOFS = ("proof", "prediction")


def answer(result: Mapping[str, Any]) -> str | None:
    """An experiment's answer in one sentence; None for a proof, whose findings are its answer."""
    return None if result.get("kind") in _PROOFS else presented(result).answer


def tables(result: Mapping[str, Any], *, brief: bool = False) -> list[Table]:
    """
    Tables of any result, in the order in which they are read.

    Args:
        result: Of kind "experiment", where what it lacks is left out, "proof" or "prediction".
        brief: Leave out method and environment, which hold every setting of the server: for a
            terminal.
    """
    if result.get("kind") in _PROOFS:
        return proof_tables.tables(result, brief=brief)
    own = experiment_tables.tables(result, presented(result).tables)
    found = own + surroundings.surrounding(result)
    return [table for table in found if not brief or table.section not in ("method", "place")]


def charts(result: Mapping[str, Any], series: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """
    Charts of any result, the one that answers its question first.

    Args:
        result: Of kind "experiment", "proof" or "prediction".
        series: The series files of the same record, in any order; may be empty.
    """
    from pgheadroom.report.experiment import figures  # noqa: PLC0415 - slow to import
    from pgheadroom.report.proof import figures as proof_figures  # noqa: PLC0415 - slow to import
    from pgheadroom.report.proof import time_figures  # noqa: PLC0415 - slow to import

    if result.get("kind") in _PROOFS:
        if time_tables.is_change(reading.cells(result)):
            return time_figures.charts(result, section="key")
        curves = proof_figures.charts(result)
        return curves + time_figures.charts(result, section="time" if curves else "key")
    return figures.charts(result, presented(result), series)


def as_markdown(result: Mapping[str, Any]) -> str:
    """A whole result: its title, the answer, what was found and what to beware of, the tables."""
    lines = [f"# {result['title']}, PostgreSQL {result['server']}", ""]
    found = answer(result)
    if found is not None:
        lines += [f"**{text.markdown_text(found)}**", ""]
    lines += [f"- {line}" for line in (*result["findings"], *result["warnings"])]
    return "\n".join([*lines, "", text.as_markdown(tables(result))])
