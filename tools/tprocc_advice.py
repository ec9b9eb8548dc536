"""
What the advice says of the TPC-C-derived workload: loads it, runs it, observes it, advises.

    tools/tprocc_advice.py [--server FOLDER] [--warehouses 4] [--users 2] [--seconds 60]

The last line is a schedule of fillfactors in the form that `lab run tprocc --set fillfactor=...`
takes, so that the advice can be measured beside the schedules that others ship. Which columns the
procedures assign is only known where the server has pg_stat_statements.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from pgheadroom.advise import Options, advise
from pgheadroom.cli import observe
from pgheadroom.lab.experiments.tprocc import load, run
from pgheadroom.lab.opening import place_for
from pgheadroom.lab.place import Place, Running, Shape
from pgheadroom.profile import Profile, read_profile
from pgheadroom.report.advice import text as advice_text

WARM_S = 10
_STATEMENTS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "all",
}


def main() -> None:
    """Print the advice, then the schedule."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--server", default="18")
    parser.add_argument("--warehouses", type=int, default=4)
    parser.add_argument("--users", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=60)
    asked = parser.parse_args()
    with place_for(asked.server) as place:
        profile = _observed(place, asked.warehouses, asked.users, asked.seconds)
    advice = advise(profile, Options(budget_s=300.0))
    advice_text.print_advice(advice, Console(), brief=True)
    parts = [
        f"{each.name}:{each.advised_fillfactor}"
        for each in advice.tables
        if each.advised_fillfactor not in (None, each.fillfactor)
    ]
    print("+".join(parts) or "100")


def _observed(place: Place, warehouses: int, users: int, seconds: int) -> Profile:
    """The workload under load, as `observe` sees it."""
    settings = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
    if "pg_stat_statements" in place.contrib:
        settings |= _STATEMENTS
    shape = Shape(
        name="tprocc",
        load=lambda server: _load(server, warehouses),
        bytes_expected=warehouses * 130 * 1024**2,
    )
    with place.running(shape, settings) as server, tempfile.TemporaryDirectory() as folder:
        if "pg_stat_statements" in place.contrib:
            with server.connect() as connection:
                connection.execute("CREATE EXTENSION pg_stat_statements")
        drivers = run.Users(count=users, at_home=False, warehouses=warehouses)
        length = ("-T", str(WARM_S + seconds + 15))
        path = Path(folder) / "profile.json"
        with ThreadPoolExecutor(max_workers=1) as executor:
            driving = executor.submit(run.run, server, drivers, seed=1, length=length)
            time.sleep(WARM_S)
            observe.observe_command(target=_conninfo(server), length=f"{seconds}s", to=path)
            driving.result()
        return read_profile(path)


def _load(server: Running, warehouses: int) -> None:
    load.load(server.connect, warehouses=warehouses, level=100, workers=2)


def _conninfo(server: Running) -> str:
    assert server.cluster is not None, "a server of ours"
    found = server.cluster.client_env()
    return (
        f"host={found['PGHOST']} port={found['PGPORT']} user={found['PGUSER']} "
        f"dbname={found['PGDATABASE']}"
    )


if __name__ == "__main__":
    main()
