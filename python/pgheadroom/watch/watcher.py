"""
A session that reads a server's counters again and again, and outlives the server's restarts.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pgheadroom.doctor.examining import SESSION_SETTINGS
from pgheadroom.errors import SourceError
from pgheadroom.redaction import redacted, secrets_of
from pgheadroom.sources.session import read_only_session, set_for_session
from pgheadroom.watch.keeping import KEEP_S, Keeper
from pgheadroom.watch.rates import Tick, ticked
from pgheadroom.watch.reading import ServerReading, read_counters

if TYPE_CHECKING:
    import psycopg

APPLICATION_NAME = "pgheadroom watch"
_NETWORK = {
    # A host that is gone without a word would else be waited for by the kernel's own times.
    "tcp_user_timeout": "15000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}


class Watcher:
    """
    Reads one database, tick by tick.

    Args:
        target: A connection, as libpq takes it.
        parameters: Of the connection, beside it.

    Attributes:
        base: The reading from which `whole` counts: the first, or the first after a restart or a
            reset of the statistics.
        name: Where the server is: host and port, or its service; nothing of a password.
    """

    def __init__(self, target: str, parameters: Mapping[str, str]) -> None:
        self._target = target
        self._parameters = {**_NETWORK, "application_name": APPLICATION_NAME, **parameters}
        self._session = ExitStack()
        self._files = ExitStack()
        self._keeper: Keeper | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._last: ServerReading | None = None
        self._was_away = False
        self.base: ServerReading | None = None
        self.name = _name_of(target, parameters)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._files:
            self.close()

    def open(self) -> None:
        """
        Connect.

        Raises:
            ConnectionFailed: No server answers.
        """
        connection = self._session.enter_context(read_only_session(self._target, self._parameters))
        # A pooler's server connection is not ours alone: nothing is prepared.
        connection.prepare_threshold = None
        for name, value in SESSION_SETTINGS.items():
            set_for_session(connection, name, value)
        self._connection = connection

    def keep_in(self, path: Path, keep_s: float | None = None) -> None:
        """
        Keep counters in a history from now on, beside the readings.

        Args:
            path: Its file.
            keep_s: How long; None: a week.

        Raises:
            InputError: The file is no history, damaged, or of another database.
        """
        assert self._connection is not None, "it is open"
        keeper = Keeper(path, self._connection, keep_s=KEEP_S if keep_s is None else keep_s)
        self._keeper = self._files.enter_context(keeper)

    def hang_up(self) -> None:
        """
        End a reading that does not end, from another thread.

        The network's end is told as soon as it is cut off here; closing the connection would wait
        for the thread that uses it, and asking the server to cancel would wait for the server.
        """
        connection = self._connection
        if connection is None or connection.closed:
            return
        with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Leave the session as it was found, and end it."""
        self._connection = None
        session, self._session = self._session, ExitStack()
        session.close()

    def tick(self) -> Tick:
        """Read once more; what goes wrong is a note, and the next tick tries again."""
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        try:
            if self._connection is None:
                self.open()
            assert self._connection is not None
            now = read_counters(self._connection)
            kept = None
            if self._keeper is not None:
                kept = self._keeper.keep_if_due(self._connection)
        except SourceError as error:
            return self._gone(str(error))
        except psycopg.Error as error:
            said = _first_line(error)
            connection = self._connection
            if connection is None or connection.broken or connection.closed:
                return self._gone(f"the connection ended: {said}")
            return Tick(now=None, notes=(f"no answer: {self._shown(said)}",))
        notes = (*(["connected again"] if self._was_away else ()), *filter(None, (kept,)))
        self._was_away = False
        tick = ticked(self._last, now, notes)
        if self.base is None or (self._last is not None and not tick.counts):
            self.base = now
        self._last = now
        return tick

    def whole(self) -> Tick | None:
        """What happened since `base`; None before there is a second reading."""
        if self.base is None or self._last is None or self.base is self._last:
            return None
        return ticked(self.base, self._last)

    def _gone(self, why: str) -> Tick:
        self._was_away = True
        try:
            self.close()
        except SourceError:
            self._session = ExitStack()
        return Tick(now=None, notes=(f"{self._shown(why)}; trying again",))

    def _shown(self, text: str) -> str:
        """A server's or libpq's words without what they may show of a password."""
        secrets = secrets_of((self._target,), {})
        return redacted(" ".join(text.split()), secrets)


def _name_of(target: str, parameters: Mapping[str, str]) -> str:
    """What to call a server, the same whether it answers or not."""
    import psycopg  # noqa: PLC0415 - as above
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    given: dict[str, str] = {}
    for option in psycopg.pq.Conninfo.get_defaults():
        if option.val is not None:
            given[option.keyword.decode()] = option.val.decode()
    try:
        given |= {name: str(value) for name, value in conninfo_to_dict(target).items()}
    except psycopg.ProgrammingError:
        return ""  # connecting says what is wrong with it
    given |= parameters
    if "service" in given:
        return f"service={given['service']}"
    return f"{given.get('host') or given.get('hostaddr') or 'local'}:{given.get('port', '5432')}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
