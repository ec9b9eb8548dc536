"""
A Dask cluster as executors: one for each label of its workers.

A label is a resource that a worker was started with (`--resources nvme=1`). Its scheduler keeps a
task to workers that have the resource, one at a time on each, and runs it again on another one when
a worker dies; what is lost and found is its matter, and ours that a result is taken once.

Calls are never taken for equal to each other (`pure=False`): a repetition is one.
"""

from __future__ import annotations

import logging
import re
import socket
import ssl
import struct
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

import pgheadroom
from pgheadroom.errors import ConnectionFailed, HeadroomError, InputError, LabError, ParameterError
from pgheadroom.schedule.pieces import DistantExecutor

if TYPE_CHECKING:
    from distributed import Client

_ADDRESS = re.compile(r"(tcp|tls)://[^\s/@]+:[0-9]{1,5}")
_ANSWER_S = 10.0
"""How long a scheduler may take to answer (arbitrary)."""
ABSENT_S = 60.0
"""How long a run waits for a worker of a label that has none left (arbitrary)."""

_EACH = 2
"""Calls that a worker has at once: one, and the next, which it need not wait for."""

_LENGTH = struct.Struct("<Q")
_GREETING_BYTES_MAX = 1024**2  # some hundred are usual; arbitrary

FoundT = TypeVar("FoundT")
Question = Callable[..., Coroutine[Any, Any, FoundT]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerWorker:
    """A worker: its address, its name (its address unless it was given one), its labels."""

    address: str
    name: str
    labels: tuple[str, ...]


def _greeted(address: str, context: ssl.SSLContext | None) -> None:
    """
    Make sure that a server of Dask's is there: its client waits for one without an end.

    Such a server speaks first: the length of its greeting, in eight bytes, the lowest first
    (`TCP.write`, distributed/comm/tcp.py).
    """
    parts = urlsplit(address)
    place = (parts.hostname or "", parts.port or 0)
    with socket.create_connection(place, timeout=_ANSWER_S) as plain, ExitStack() as stack:
        connection = plain
        if parts.scheme == "tls":
            if context is None:
                raise InputError(
                    f"{address} needs certificates: expected Dask's configuration to name them, "
                    "for example by DASK_DISTRIBUTED__COMM__TLS__CA_FILE and its neighbours"
                )
            connection = stack.enter_context(context.wrap_socket(plain))
        said = b""
        while len(said) < _LENGTH.size:
            if not (more := connection.recv(_LENGTH.size - len(said))):
                raise ConnectionError("it says nothing")
            said += more
    if _LENGTH.unpack(said)[0] > _GREETING_BYTES_MAX:
        raise ConnectionError("what answers is no Dask scheduler")


class _SameVersion(DistantExecutor):
    """Calls where the same version of pgheadroom is."""

    def __init__(self, there: Executor, workers: Callable[[], int]) -> None:
        self._there = there
        self._workers = workers

    def room(self) -> int:
        return _EACH * self._workers()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._there.submit(_call, pgheadroom.__version__, fn, *args, **kwargs)


def _call(version: str, function: Callable[..., FoundT], /, *args: Any, **kwargs: Any) -> FoundT:
    _require(version)
    return function(*args, **kwargs)


async def _answer(version: str, question: Question[FoundT], /, *args: Any) -> FoundT:
    _require(version)
    return await question(*args)


def _require(version: str) -> None:
    """Refuse to work for another version: on a worker."""
    if version != pgheadroom.__version__:
        raise LabError(
            f"this worker has pgheadroom {pgheadroom.__version__}, and the command is of "
            f"{version}: install the same one on both"
        )


class Scheduler:
    """
    The scheduler of a Dask cluster; a context manager.

    Args:
        address: `tcp://HOST:PORT`, or `tls://HOST:PORT` with the certificates of Dask's own
            configuration.
    """

    def __init__(self, address: str) -> None:
        if not _ADDRESS.fullmatch(address):
            raise ParameterError(
                "scheduler", f"{address}: expected tcp://HOST:PORT or tls://HOST:PORT"
            )
        self._address = address
        self._client: Client | None = None
        self._absent_since: dict[str | None, float] = {}

    def __enter__(self) -> Self:
        """
        Connect.

        Raises:
            InputError: The extra is not installed.
            ConnectionFailed: Nobody answers there, or not as a scheduler does.
        """
        try:
            from distributed import Client, Security  # noqa: PLC0415 - an extra
        except ImportError:
            raise InputError(
                "the package distributed is not installed: expected the extra dask, "
                "pip install 'pgheadroom[dask]'"
            ) from None
        # What becomes of a connection is raised here; in their log it would be a trace.
        for name in ("distributed", "distributed.client", "distributed.core"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        security = Security()
        try:
            _greeted(self._address, security.get_connection_args("client").get("ssl_context"))
            self._client = Client(
                self._address, timeout=_ANSWER_S, set_as_default=False, security=security
            )
        except HeadroomError:
            raise
        except Exception as error:
            raise ConnectionFailed(
                f"no Dask scheduler answers at {self._address} ({error}): expected one that "
                "`dask scheduler` has started, or that a provider runs"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect; what is still to be run for us is forgotten."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    @property
    def _connected(self) -> Client:
        assert self._client is not None, "a scheduler is used inside its block"
        return self._client

    def workers(self) -> tuple[SchedulerWorker, ...]:
        """
        The workers that there are now.

        Raises:
            ConnectionFailed: The scheduler is gone.
        """
        client = self._connected
        found: Mapping[str, Mapping[str, Any]]
        try:
            if client.scheduler is None:
                raise ConnectionError("closed")
            # Not `scheduler_info`, which gives what it knew before where nobody answers.
            found = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
        except (OSError, TimeoutError, RuntimeError) as error:
            raise self._gone() from error
        return tuple(
            SchedulerWorker(
                address=address, name=str(about["name"]), labels=tuple(about["resources"])
            )
            for address, about in found.items()
        )

    def chosen(self, labels: Sequence[str]) -> tuple[str, ...]:
        """
        The labels to use: those given, else all that workers have.

        Args:
            labels: Each has to be some worker's.

        Raises:
            LabError: No worker has one of them, or there is no worker with a label at all.
        """
        workers = self.workers()
        known = dict.fromkeys(label for worker in workers for label in worker.labels)
        missing = [label for label in labels if label not in known]
        if missing or not known:
            what = f"with the label {missing[0]}" if missing else "with a label"
            has = f"its workers have {', '.join(known)}" if known else "none of them has one"
            raise LabError(
                f"{self._address} has no worker {what} ({len(workers)} in all, {has}): start one "
                f"by `dask worker {self._address} --nthreads 1 --resources "
                f"{missing[0] if missing else 'nvme'}=1`"
            )
        return tuple(labels or known)

    def executor(self, label: str | None = None) -> Executor:
        """
        What runs calls on the workers of a label, one at a time on each; None: on any worker.

        Functions and arguments have to be known there; another version of pgheadroom is refused
        where it is met, since it might give something else.
        """
        resources = {} if label is None else {"resources": {label: 1}}
        there = self._connected.get_executor(pure=False, **resources)
        return _SameVersion(there, partial(self.count, label))

    def count(self, label: str | None) -> int:
        """
        How many workers of a label there are, at least 1: where there is none, one is waited for.

        Args:
            label: None: of any, or of none.

        Raises:
            LabError: There has been none for a minute.
        """
        count = sum(label in (None, *worker.labels) for worker in self.workers())
        if count:
            self._absent_since.pop(label, None)
        elif time.monotonic() - self._absent_since.setdefault(label, time.monotonic()) > ABSENT_S:
            with_label = "" if label is None else f" with the label {label}"
            raise LabError(
                f"the last worker{with_label} has left {self._address}, and none has come for "
                f"{ABSENT_S:.0f} s: start one, and give the same command again"
            )
        return max(1, count)

    def on_each(
        self,
        question: Question[FoundT],
        *args: Any,
        labels: Sequence[str],
    ) -> dict[str, FoundT]:
        """
        What each worker with one of some labels says now, by its name; beside what it runs.

        Args:
            question: Asked in the worker's event loop, which it must not hold up.
            args: Its arguments.
            labels: Of the workers.

        Raises:
            HeadroomError: What one of them raised, with its name.
            LabError: One of them does not know the question, or has another version.
        """
        asked = {
            worker.address: worker.name
            for worker in self.workers()
            if not set(labels).isdisjoint(worker.labels)
        }
        answers = self._connected.run(
            _answer, pgheadroom.__version__, question, *args, workers=list(asked), on_error="return"
        )
        found: dict[str, FoundT] = {}
        for address, answer in answers.items():
            if isinstance(answer, ImportError | AttributeError):
                raise LabError(
                    f"worker {asked[address]} has not this version of pgheadroom ({answer}): "
                    "install the same one there"
                ) from answer
            if isinstance(answer, BaseException):
                answer.add_note(f"on worker {asked[address]}")
                raise answer
            found[asked[address]] = answer
        return found

    def tell_each(self, what: Question[None], *args: Any) -> None:
        """Have every worker do something, as far as it can be reached."""
        with suppress(OSError, TimeoutError, RuntimeError):  # the last: its connection is closed
            self._connected.run(what, *args, on_error="ignore")

    @contextmanager
    def translated(self) -> Iterator[None]:
        """
        Turn what Dask says of calls that were not run into our errors.

        Raises:
            LabError: Workers died of a call, each time that it was run again.
            ConnectionFailed: The scheduler is gone.
        """
        from distributed import KilledWorker  # noqa: PLC0415 - an extra

        try:
            yield
        except KilledWorker as error:
            raise LabError(
                f"workers die of what they are to play, the last one was "
                f"{error.last_worker.address}: see its log, and how much memory it has"
            ) from error
        except CancelledError as error:
            raise self._gone() from error

    def _gone(self) -> ConnectionFailed:
        return ConnectionFailed(
            f"the scheduler at {self._address} is gone: what has ended is kept, and the same "
            "command goes on when it is back"
        )
