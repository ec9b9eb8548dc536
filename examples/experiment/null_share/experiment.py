"""
Experiment `null-share`: what NULLs save, in pages and in the time of a scan.

A NULL takes no room but its bit: the first in a row costs the bitmap, all others save their value.
"""

from __future__ import annotations

import time

from pgheadroom.lab import presentation as forms
from pgheadroom.lab.base import plain_rows
from pgheadroom.lab.base.answers import told_of
from pgheadroom.lab.base.comparing import Comparing
from pgheadroom.lab.design import Factor, Measure, Request, Trial
from pgheadroom.lab.environment import describe_server
from pgheadroom.lab.experiment import TrialOutcome
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.lab.reading import Result

_ROWS = 20_000
_COLUMNS = 8


class NullShare(Comparing):
    """See the module's docstring."""

    name = "null-share"
    title = "What NULLs save"
    question = "How many pages does a table save whose columns are NULL, and how fast is it read?"
    source = "an example of an experiment"
    time_needed = "about half a minute"
    scale_default = 1
    scale_meaning = f"rows / {_ROWS:,}"
    factors = (
        Factor(
            name="nulls",
            description=f"of the {_COLUMNS} bigint columns so many are NULL",
            default=(0, 4, 8),
            bounds=(0, _COLUMNS),
        ),
    )
    options = ()
    measures = (
        Measure(name="heap_pages", description="pages of the table", better="lower"),
        Measure(name="scan_ms", description="time of a scan", unit="ms", better="lower"),
    )
    compared = ("heap_pages", "scan_ms")
    tables = (
        forms.CellsTable(
            title="Size and time", measures=("heap_pages", "scan_ms"), repetitions=True
        ),
    )
    figures = (
        forms.Against(
            title="Pages and time by NULLs",
            across="nulls",
            measures=("heap_pages", "scan_ms"),
            key=True,
        ),
    )

    def answer(self, result: Result) -> str | None:
        """Pages, then time, of the first level that is not the reference."""
        return told_of("heap_pages", "scan_ms")(result)

    def trial_s(self, request: Request) -> float:
        """Starting and reading; loading once a level."""
        return 1.0 + 0.1 * request.scale

    def shape_name(self, trial: Trial) -> str:
        """Trials with as many NULLs start from the same cluster."""
        return f"nulls-{trial.cell['nulls']}"

    def measure(self, request: Request, place: Place, trial: Trial) -> TrialOutcome:
        """Count the pages, then read them."""
        rows, nulls = _ROWS * request.scale, int(trial.cell["nulls"])

        def load(server: Running) -> None:
            columns = [f"c{number} bigint" for number in range(_COLUMNS)]
            values = ["NULL" if number < nulls else "i" for number in range(_COLUMNS)]
            with server.connect() as connection:
                connection.execute(f"CREATE TABLE t ({', '.join(columns)})".encode())
                connection.execute(
                    f"INSERT INTO t SELECT {', '.join(values)} "
                    f"FROM generate_series(1, {rows}) i".encode()
                )
                connection.execute("VACUUM t")

        shape = Shape(name=self.shape_name(trial), load=load, bytes_expected=rows * 100)
        settings = plain_rows.quiet_settings(rows * 100, place.memory_bytes)
        with place.running(shape, settings) as server, server.connect() as connection:
            plain_rows.require_rows(connection, rows)
            begun = time.perf_counter()
            plain_rows.require_rows(connection, rows)
            scan_ms = (time.perf_counter() - begun) * 1000
            measures: dict[str, float | None] = {
                "heap_pages": plain_rows.relation_pages(connection),
                "scan_ms": scan_ms,
            }
            return TrialOutcome(measures=measures, environment=describe_server(server))


EXPERIMENT = NullShare()
