"""
A second session beside pg_squeeze: its worker obeys no timeout of the session that asked for it.

The worker waits for ACCESS EXCLUSIVE as long as any transaction has the table's lock, and everybody
who wants the table waits behind it; when the session ends or its statement is cancelled, the worker
goes on. So it is watched, and cancelled after `lock_timeout` or with the statement: it gives up its
copy, drops its slot, and has changed nothing (measured on 18.6 with pg_squeeze 1.9.4).
"""

from __future__ import annotations

import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pgheadroom.errors import SourceError
from pgheadroom.quoting import printable
from pgheadroom.sources import sql

if TYPE_CHECKING:
    import psycopg

_LOOK_S = 0.1


class SqueezeGuard:
    """
    Watches the workers of pg_squeeze at one table while a statement of ours runs.

    Args:
        connection: The session that runs the statement; another one is opened like it.
        oid: Of the table.
        lock_timeout_s: How long a worker may wait for its last lock.

    Attributes:
        cancelled: Whether a worker had waited too long.

    Raises:
        SourceError: Entered where no second session can be had.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], oid: int, lock_timeout_s: float
    ) -> None:
        self._of = connection
        self._oid = oid
        self._lock_timeout_s = lock_timeout_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.cancelled = False

    def __enter__(self) -> Self:
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        info = self._of.info
        try:
            self._beside = psycopg.connect(info.dsn, password=info.password, autocommit=True)
        except psycopg.Error as error:
            raise SourceError(
                "pg_squeeze is run with a second session beside it, which ends its worker when it "
                f"waits too long: found none ({printable(str(error).strip())}), expected room for "
                "one more connection. Nothing was changed by this step"
            ) from None
        self._beside.prepare_threshold = None
        # A worker that was at the table before is somebody else's.
        (self._since,) = self._beside.execute("SELECT clock_timestamp()").fetchone() or (None,)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import psycopg  # noqa: PLC0415 - as above

        self._ended.set()
        self._thread.join()
        with suppress(psycopg.Error):
            if kind is not None:  # cancelled, timed out, or we are being ended
                self._end(self._waiting(longer_than_s=-1.0))
        self._beside.close()

    def _watch(self) -> None:
        import psycopg  # noqa: PLC0415 - as above

        with suppress(psycopg.Error):
            while not self._ended.wait(_LOOK_S):
                late = self._waiting(longer_than_s=self._lock_timeout_s)
                if late:
                    # Before they end: the statement fails with them, and asks at once.
                    self.cancelled = True
                    self._end(late)

    def _waiting(self, *, longer_than_s: float) -> list[int]:
        """Process ids of workers that have waited longer."""
        found = self._beside.execute(
            sql.apply_text("squeeze_workers").encode(), {"oid": self._oid, "since": self._since}
        ).fetchall()
        return [pid for pid, waits_s in found if waits_s > longer_than_s]

    def _end(self, pids: list[int]) -> None:
        for pid in pids:
            self._beside.execute("SELECT pg_cancel_backend(%s)", (pid,))
