"""The view of `index-walkthrough`: blocks of each step, measured beside predicted."""

from __future__ import annotations

from pgheadroom.report.reading import Result
from pgheadroom.report.table import Table
from pgheadroom.report.view_generic import further
from pgheadroom.report.view_predicted import beside, counterparts

COUNTED = ("buffers", "heap_pages", "index_pages")


def tables(result: Result) -> list[Table]:
    """One table of all counts, then whatever else there is."""
    seen = {*COUNTED, *counterparts(COUNTED)}
    found = beside(result, COUNTED, title="Blocks, measured beside predicted")
    return ([] if found is None else [found]) + further(result, seen)
