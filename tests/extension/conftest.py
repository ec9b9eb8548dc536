"""
Tests of the extension `clustered_heap` on real servers.

`extended` is a server with the extension in it: a copy of the server, so that nothing of the
original's folder is written. A server without headers or PGXS is skipped, with its name.
`server` is a running one with the extension created; each test has a database of its own in it.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sandbox import extended_copy

from pgheadroom.extension import lacking
from pgheadroom.servers import Cluster, Host, ServerPrograms
from places import fast_place

NUMBERS = itertools.count(1)
SETTINGS = {"shared_buffers": "128MB", "max_connections": "40", "autovacuum": "off", "jit": "off"}


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[dict[Path, ServerPrograms]]:
    """The servers with the extension that this process has made, by the original's folder."""
    made: dict[Path, ServerPrograms] = {}
    yield made
    for programs in made.values():
        shutil.rmtree(sandbox_of(programs), ignore_errors=True)


def sandbox_of(programs: ServerPrograms) -> Path:
    """The folder that all of a copied server lies in."""
    place = fast_place()
    return place / programs.bin_dir.relative_to(place).parts[0]


@pytest.fixture(scope="session")
def extended(programs: ServerPrograms, sandboxes: dict[Path, ServerPrograms]) -> ServerPrograms:
    """A copy of the server that has the extension; built without a warning."""
    problem = lacking(programs)
    if problem is not None:
        pytest.skip(f"{programs}: {problem}")
    return extended_copy(programs, sandboxes)


@pytest.fixture(scope="session")
def cluster(extended: ServerPrograms) -> Iterator[Cluster]:
    """A running server with the extension; databases of tests are made in it."""
    with Host(extended) as host:
        made = host.cluster("main")
        made.start(SETTINGS)
        yield made


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    """The name of an empty database with the extension."""
    name = f"test_{next(NUMBERS)}"
    with cluster.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with cluster.connect(name) as connection:
        connection.execute("CREATE EXTENSION clustered_heap")
    yield name
    with cluster.connect() as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def session(cluster: Cluster, database: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """One session in that database."""
    with cluster.connect(database) as connection:
        yield connection
