"""A Dask scheduler's address: what answers there, what does not, and how that is said."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import dask.config
import pytest
from distributed import LocalCluster, Security

from pgheadroom.errors import ConnectionFailed, InputError, LabError, ParameterError
from pgheadroom.schedule import run_pieces, scheduler
from pgheadroom.schedule.scheduler import Scheduler


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A socket of this machine that something else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path) -> Iterator[None]:
    """Servers of Dask's put their files into /tmp, unless they are told another place."""
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        yield


def _address(server: socket.socket, protocol: str = "tcp") -> str:
    return f"{protocol}://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("address", ["", "10.0.0.1:8786", "http://x:1", "tcp://x", "tcp://x:1/y"])
def test_an_address_has_a_protocol_and_a_port(address: str) -> None:
    """Others are refused before anything is loaded."""
    with pytest.raises(ParameterError, match="expected tcp://HOST:PORT or tls://HOST:PORT"):
        Scheduler(address)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `pip` takes it."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'pgheadroom\[dask\]'"):
        Scheduler("tcp://127.0.0.1:1").__enter__()


def test_nobody_answers(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed port, and one on which nothing is said: Dask's own client waits there for ever."""
    monkeypatch.setattr(scheduler, "_ANSWER_S", 0.05)
    silent = _address(listening)
    with pytest.raises(ConnectionFailed, match=f"no Dask scheduler answers at {silent}"):
        Scheduler(silent).__enter__()
    listening.close()
    with pytest.raises(ConnectionFailed, match=f"no Dask scheduler answers at {silent}"):
        Scheduler(silent).__enter__()


@pytest.mark.parametrize(("said", "why"), [(b"SSH-2.0-x\r\n", "no Dask"), (b"", "says nothing")])
def test_something_else_answers(listening: socket.socket, said: bytes, why: str) -> None:
    """A service that speaks otherwise, or hangs up."""

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(said)

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises(ConnectionFailed, match=why):
        Scheduler(_address(listening)).__enter__()
    thread.join()


def test_certificates_are_asked_for(listening: socket.socket) -> None:
    """Where Dask's configuration names none."""
    with pytest.raises(InputError, match="needs certificates"):
        Scheduler(_address(listening, "tls")).__enter__()


@pytest.mark.parametrize("protocol", ["tcp", "tls"])
def test_a_scheduler_without_workers(protocol: str) -> None:
    """It answers, by certificates too, and that no worker has a label is said."""
    security = Security.temporary() if protocol == "tls" else Security()
    names = {"ca-file": "tls_ca_file", "client.cert": "tls_client_cert"}
    names["client.key"] = "tls_client_key"
    settings = {
        f"distributed.comm.tls.{name}": getattr(security, attribute)
        for name, attribute in names.items()
    }
    cluster = LocalCluster(
        n_workers=0, protocol=f"{protocol}://", security=security, dashboard_address=":0"
    )
    with cluster, dask.config.set(settings), Scheduler(cluster.scheduler_address) as found:
        assert cluster.scheduler_address.startswith(f"{protocol}://")
        assert found.workers() == ()
        with pytest.raises(LabError, match="has no worker with a label"):
            found.chosen([])
        with pytest.raises(LabError, match="has no worker with the label nvme"):
            found.chosen(["nvme"])


def test_workers_that_die_of_a_call() -> None:
    """Dask gives up after some, and so do we, with the last one's name."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Scheduler(cluster.scheduler_address) as found,
        pytest.raises(LabError, match="workers die of what they are to play"),
        found.translated(),
    ):
        found.executor().submit(os._exit, 1).result()


def test_workers_that_have_all_left_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is enough room for what waits; after a minute it ends, also where no label matters."""
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Scheduler(cluster.scheduler_address) as found,
    ):
        assert found.count("nvme") == 1
        monkeypatch.setattr(scheduler, "ABSENT_S", -1.0)
        with pytest.raises(LabError, match="the last worker with the label nvme has left"):
            found.count("nvme")
        pieces = run_pieces(abs, [-1, -2], executor=found.executor())
        with pytest.raises(LabError, match=r"the last worker has left .*: start one"):
            next(pieces)
        monkeypatch.undo()
        cluster.scale(1)
        pieces = run_pieces(abs, [-1, -2], executor=found.executor())
        assert sorted(pieces) == [(-2, 2), (-1, 1)]
