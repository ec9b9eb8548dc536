"""
A result as tables and charts: picks the view of the experiment, or the generic one.

The last module before the writers. `charts` imports the chart library; `tables` does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pgheadroom.report import (
    reading,
    view_cluster_decay,
    view_common,
    view_fillfactor,
    view_generic,
    view_index_walkthrough,
    view_proof,
    view_time,
    view_tprocc,
    view_update_cost,
)
from pgheadroom.report.table import Table

if TYPE_CHECKING:
    from pgheadroom.report.charts import Chart

_PROOFS = ("proof", "prediction")
_TABLES = {
    "update-cost": view_update_cost.tables,
    "fillfactor": view_fillfactor.tables,
    "cluster-decay": view_cluster_decay.tables,
    "index-walkthrough": view_index_walkthrough.tables,
    "tprocc": view_tprocc.tables,
}


def tables(result: Mapping[str, Any], *, brief: bool = False) -> list[Table]:
    """
    Tables of any result, in the order in which they are read.

    Args:
        result: Of kind "experiment", where what it lacks is left out, "proof" or "prediction".
        brief: Leave out method and environment, which hold every setting of the server: for a
            terminal.
    """
    if result.get("kind") in _PROOFS:
        return view_proof.tables(result, brief=brief)
    own = _TABLES.get(str(result.get("name")), view_generic.tables)
    found = own(result) + view_common.surrounding(result)
    return [table for table in found if not brief or table.section not in ("method", "place")]


def charts(result: Mapping[str, Any], series: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """
    Charts of any result, the one that answers its question first.

    Args:
        result: Of kind "experiment", "proof" or "prediction".
        series: The series files of the same record, in any order; may be empty.
    """
    from pgheadroom.report import (  # noqa: PLC0415 - the chart library is slow to import
        charts_book,
        charts_clients_scale,
        charts_cluster_decay,
        charts_fillfactor,
        charts_generic,
        charts_index_walkthrough,
        charts_proof,
        charts_series,
        charts_time,
        charts_tprocc,
        charts_update_cost,
        charts_windows,
    )

    if result.get("kind") in _PROOFS:
        if view_time.is_change(reading.cells(result)):
            return charts_time.charts(result, section="key")
        curves = charts_proof.charts(result)
        return curves + charts_time.charts(result, section="time" if curves else "key")
    own = {
        "update-cost": charts_update_cost.charts,
        "fillfactor": charts_fillfactor.charts,
        "cluster-decay": charts_cluster_decay.charts,
        "index-walkthrough": charts_index_walkthrough.charts,
        "clients-scale": charts_clients_scale.charts,
        "tprocc": charts_tprocc.charts,
        "fpi-sawtooth": charts_windows.charts,
        "long-transaction": charts_windows.charts,
        "read-writes": charts_book.charts,
        "insert-rate": charts_book.charts,
        "load-methods": charts_book.charts,
        "commit-cost": charts_book.charts,
    }.get(str(result.get("name")), charts_generic.charts)
    return own(result) + charts_series.charts(result, series)
