"""
The loads: pgbench, the nine tables of tprocc, the schemas of public applications.

Each is a server with PostgreSQL's own defaults, autovacuum among them, under a steady rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from public_schemas import live, sources
from public_schemas.manifest import Application, applications

from pgheadroom.errors import LabError
from pgheadroom.lab.experiments.tprocc import load as tprocc_load
from pgheadroom.lab.experiments.tprocc import run as tprocc_run
from pgheadroom.lab.place import OwnPlace, Shape
from pgheadroom.servers import Cluster, Host, find_client

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "fsync": "on",  # throw-away servers have it off; no healthy one has
    "wal_keep_size": "8GB",  # the load's log is read at its end
}
APPLICATIONS = ("freeradius", "miniflux", "openstreetmap", "supabase-auth")
_SCALE = 10
_RATE_PER_S = 100
_WAREHOUSES = 4
_USERS = 2

Watched = tuple[Cluster, str, Callable[[float], int | None]]
"""A server, the database to look at, and what keeps it under load for so many seconds; that gives
the transactions that ran, where they are counted."""


def cases(clones: Path | None) -> Mapping[str, Callable[[], AbstractContextManager[Watched]]]:
    """Each case by its name; applications' files come from clones in that folder, or GitHub."""
    known = {each.key: each for each in applications(ROOT / "experiments" / "public-schemas")}
    return {
        "pgbench": _pgbench,
        "tprocc": _tprocc,
        **{key: partial(_application, known[key], clones) for key in APPLICATIONS},
    }


@contextmanager
def _pgbench() -> Iterator[Watched]:
    """Its own tables and its own script."""
    programs = live.server_for_applications()
    with Host(programs, label="doctor-healthy") as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        pgbench, _ = find_client("pgbench", programs)

        def bench(*options: str) -> None:
            done = host.run(
                [pgbench, *options, "postgres"],
                env=cluster.client_env(),
                timeout=86_400,
            )
            if done.returncode:
                raise LabError(f"pgbench {' '.join(options)}: {done.stderr.strip()[-500:]}")

        bench("-i", "-q", "-s", str(_SCALE))

        def work(length_s: float) -> None:
            bench("-n", "-c", str(_USERS), "-R", str(_RATE_PER_S), "-T", f"{length_s:.0f}")

        yield cluster, "postgres", work


@contextmanager
def _tprocc() -> Iterator[Watched]:
    """The standard's mix over four warehouses."""
    with Host(live.server_for_applications(), label="doctor-healthy") as host:
        shape = Shape(
            name="tprocc",
            load=lambda server: _loaded(server.connect),
            bytes_expected=_WAREHOUSES * 150 * 1024**2,
        )
        with OwnPlace(host).running(shape, SETTINGS) as server:
            assert server.cluster is not None, "a throw-away server has one"
            with server.connect() as connection:
                # A copy has the statistics of what it was copied from.
                connection.execute("SELECT pg_stat_reset()")
                connection.execute("VACUUM (ANALYZE)")

            def work(length_s: float) -> int:
                users = tprocc_run.Users(count=_USERS, at_home=False, warehouses=_WAREHOUSES)
                length = ("-T", f"{length_s:.0f}", "-R", str(_RATE_PER_S))
                return tprocc_run.run(server, users, seed=1, length=length).transactions

            yield server.cluster, "postgres", work


def _loaded(connect: tprocc_load.Connect) -> None:
    tprocc_load.load(connect, warehouses=_WAREHOUSES, level=100, workers=_USERS)


@contextmanager
def _application(application: Application, clones: Path | None) -> Iterator[Watched]:
    """Its schema, our rows, its statements."""
    texts = sources.texts(application, ROOT / "build" / "public-schemas" / "sources", clones)
    programs = live.server_for_applications()
    has_modules = live.has_modules_at(programs)
    with Host(programs, label="doctor-healthy") as host:
        cluster = host.cluster("application")
        settings = dict(SETTINGS)
        if has_modules:
            settings["shared_preload_libraries"] = "pg_stat_statements"
        cluster.start(settings)
        live.load(application, texts, cluster, has_modules=has_modules)

        def work(length_s: float) -> None:
            with live.under_load(application, texts, host, cluster):
                time.sleep(length_s)

        yield cluster, live.DATABASE, work
