"""
`pgheadroom demo`: the main job on an embedded server, no options needed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pgheadroom.cli import output
from pgheadroom.cli.lab import make_request, run_into
from pgheadroom.lab.experiments import get
from pgheadroom.lab.record import Record, write_atomically
from pgheadroom.lab.run import find_record
from pgheadroom.profile import parse_profile
from pgheadroom.prove import prove
from pgheadroom.report import text, view_proof, views

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
# The same work as a profile, which both the server and the twin can play.
FILLFACTORS = (100, 90, 80, 70)
PROFILE: dict[str, Any] = {
    "schema_version": 1,
    "server": {"version": "18"},
    "table": [
        {
            "name": "accounts",
            "rows": 100_000,
            "columns": [
                {"name": "aid", "type": "int4"},
                {"name": "bid", "type": "int4"},
                {"name": "abalance", "type": "int4"},
                {"name": "filler", "type": "bpchar(84)"},
            ],
            "indexes": [{"name": "accounts_pkey", "columns": ["aid"], "unique": True}],
        }
    ],
    "operation": [
        {
            "table": "accounts",
            "kind": "update",
            "sets": ["abalance"],
            "pick": {"distribution": "uniform"},
        }
    ],
    "run": {"operations": TRANSACTIONS, "seed": 1},
}


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
    console.print(
        "3. The same kind of work as a profile: predicted by the twin, then measured on the "
        "server.\n",
        markup=False,
    )
    proof = _proof(folder, server)
    output.print_proof(proof, console)
    report = folder / "report.html"
    output.put_html([sweep, cost], report, title="pgheadroom demo", proofs=[proof])
    sys.stdout.write(f"{report.absolute()}\n")


def _proof(folder: Path, server: str) -> dict[str, Any]:
    """Predict and measure the profile at each fillfactor; what a report shows of it."""
    path = folder / "accounts.json"
    write_atomically(path, json.dumps(PROFILE, indent=2) + "\n")
    found = prove(parse_profile(PROFILE), FILLFACTORS, server=server)
    levels = ",".join(str(level) for level in FILLFACTORS)
    command = f"pgheadroom prove {path} --fillfactor {levels} --server {server}"
    return view_proof.described(found.to_json(), command=command)


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
