"""
Tests on real servers.

Every test that takes `programs` runs on each server at hand (`tests/conftest.py`). `run_parent`
gives a test a place of its own for run folders, and fails it if anything is left there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from doctor_sides import SETTINGS

from pgheadroom.servers import Cluster, Host, ServerPrograms, find_programs
from places import fast_place

PLACE = fast_place()


@pytest.fixture(scope="session")
def newest() -> ServerPrograms:
    """The server that is used by default, for tests of what does not depend on the version."""
    return find_programs("18")


@pytest.fixture(scope="module")
def server(newest: ServerPrograms) -> Iterator[Cluster]:
    """One of a module of the doctor's tests, each of which makes a database of its own on it."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        yield cluster


@pytest.fixture
def run_parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """
    A folder for this test's run folders; whatever is in it afterwards fails the test.

    Not pytest's tmp_path: that is closed to the unprivileged user who runs servers for root.
    """
    parent = Path(tempfile.mkdtemp(prefix="pgh-test-", dir=PLACE))
    parent.chmod(0o755)
    monkeypatch.setenv("PGHEADROOM_TMPDIR", str(parent))
    yield parent
    left = sorted(path.name for path in parent.iterdir())
    shutil.rmtree(parent, ignore_errors=True)
    assert left == [], f"left behind in {parent}"


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder, for tests that damage it or count what is in it."""
    cache = Path(tempfile.mkdtemp(prefix="pgh-cache-", dir=PLACE))
    cache.chmod(0o755)
    monkeypatch.setenv("PGHEADROOM_CACHE", str(cache))
    yield cache
    shutil.rmtree(cache)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs a server: the mark can be used to select (-m pg)."""
    here = os.fspath(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here) and item.get_closest_marker("pg") is None:
            item.add_marker(pytest.mark.pg)
