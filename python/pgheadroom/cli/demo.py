"""
`pgheadroom demo`: the main job on an embedded server, no options needed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pgheadroom.cli import output
from pgheadroom.cli.lab import make_request, run_into
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import Record
from pgheadroom.lab.run import find_record
from pgheadroom.report import text, views

DEMO_FOLDER = Path("demo-records")

# Six updates a page, so that pages fill up and what fillfactor does becomes visible. The accounts
# UPDATE alone: the rest of the transaction takes time and does not touch the table. Counters do not
# depend on how the disk is read.
TRANSACTIONS = 10_000
FILLFACTOR_SETTINGS = [
    "measure=counters",
    "memory=fits",
    "io=cached",
    "script=accounts-update",
    f"transactions={TRANSACTIONS}",
]
SCALE = 1
REPETITIONS = 5


def demo(
    folder: Annotated[
        Path, typer.Option(help="Where the two records and the report are kept.")
    ] = DEMO_FOLDER,
    server: Annotated[str, typer.Option(help="A version or a folder with server programs.")] = "18",
) -> None:
    """See on an embedded server why a table loses HOT updates and what fillfactor changes."""
    console = output.Terminal(highlight=False)
    console.print(
        "1. pgbench_accounts loses HOT updates when its pages are full. The same "
        f"{TRANSACTIONS:,}\n   random updates at four fillfactors, counted on a real PostgreSQL:\n",
        markup=False,
    )
    sweep = _record("fillfactor", FILLFACTOR_SETTINGS, SCALE, folder, server)
    _show(console, sweep)
    console.print(
        "2. What a single UPDATE costs, by row width, fillfactor and columns changed:\n",
        markup=False,
    )
    cost = _record("update-cost", [], SCALE, folder, server)
    _show(console, cost)
    report = folder / "report.html"
    output.put_html([sweep, cost], report, title="pgheadroom demo")
    sys.stdout.write(f"{report.absolute()}\n")


def _record(name: str, settings: list[str], scale: int, parent: Path, server: str) -> Record:
    experiment = get(name)
    request = make_request(experiment, settings, scale, REPETITIONS, 1, server)
    folder = find_record(request, parent=parent, fresh=False)
    run_into(request, folder, server=server)
    return Record.open(folder)


def _show(console: Console, record: Record) -> None:
    """The lead tables and the findings; the page has the rest."""
    result = record.read_result()
    text.print_tables(views.tables(result, brief=True)[:1], console)
    for finding in result["findings"]:
        console.print(f"  * {finding}", markup=False)
    console.print()
