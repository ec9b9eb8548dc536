"""
Watching a live database for a while: short read-only passes, nothing held between them.

    shape    catalogs, settings, what the role may see
             hashes of some rows' values
    start    all counters                                  |
    tick N   who holds the horizon, which statements run   |  the interval
    end      all counters again, texts of statements       |
             hashes of the same rows' values, bounded samples of rows and pages

No statistics are reset, no lock stronger than ACCESS SHARE is taken, and no snapshot outlives its
query. What cannot be read is recorded with its SQLSTATE, and the rest goes on.
"""

from __future__ import annotations

import functools
import json
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import ParameterError
from pgheadroom.progress import Say
from pgheadroom.sources import sql
from pgheadroom.sources.encoding import codec_of
from pgheadroom.sources.recording import AnswerRow, RecordedAnswer, Recording, line_of, parsed
from pgheadroom.sources.session import set_for_session

if TYPE_CHECKING:
    import psycopg

APPLICATION_NAME = "pgheadroom observe"
_NOT_TRANSLATED = ("22P05", "22021")  # untranslatable_character, character_not_in_repertoire
_OF_MODULES = ("free_space", "page_headers")
_FOR_EVERY_TABLE = ("42501 InsufficientPrivilege", "42883 UndefinedFunction")
"""A right on a module's function, or the module, is missing, for each table alike. Any other
failure is one table's: it is locked, was dropped or truncated meanwhile, or takes too long."""
NO_XID = 2**62
"""Stands for the transaction at which the interval began, before it has."""

SHAPE = (
    "identity",
    "cluster",
    "settings",
    "log_settings",
    "access",
    "extensions",
    "tables",
    "columns",
    "column_statistics",
    "indexes",
    "index_definitions",
    "foreign_keys",
    "triggers",
    "views",
    "domains",
)
COUNTERS = (
    "instant",
    "table_counters",
    "database_counters",
    "wal_counters",
    "checkpoint_counters",
    "statement_counters",
    "statement_info",
    "index_counters",
    "io_counters",
    "sizes",
    "horizon",
)
TICK = ("instant", "horizon", "activity")
END = (*COUNTERS, "tables", "activity", "statement_texts", "function_calls")
VALUES = ("value_statements",)
SAMPLES = (
    "sample_statements",
    "age_statements",
    "element_statements",
    "free_space_statements",
    "page_statements",
)
"""Queries that write statements, one a table; those of values before the interval and after it."""
_KINDS = {
    "value_statements": "row_values",
    "sample_statements": "sample",
    "age_statements": "row_ages",
    "element_statements": "elements",
    "free_space_statements": "free_space",
    "page_statements": "page_headers",
}
"""What their statements answer."""
EXTENSION_OF = {
    "statement_counters": ("pg_stat_statements", "pgss_schema"),
    "statement_info": ("pg_stat_statements", "pgss_schema"),
    "statement_texts": ("pg_stat_statements", "pgss_schema"),
    "function_calls": ("pg_stat_statements", "pgss_schema"),
    "free_space_statements": ("pg_freespacemap", "fsm_schema"),
    "page_statements": ("pageinspect", "inspect_schema"),
}
"""What a query needs, and the variable that holds the schema of it."""
SESSION_SETTINGS = {
    "jit": "off",
    "max_parallel_workers_per_gather": "0",  # our reading takes one process, never more
    "client_encoding": "UTF8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationRequest:
    """
    How long to watch, and how much may be sampled.

    With `tick_counters` the tables' counters are read at each tick too, so that the interval falls
    into windows. With `tables`, names or `schema.name`, only those are sampled and measured.
    """

    duration_s: float
    ticks: int = 10
    samples: bool = True
    sample_tables: int = 200
    sample_pages: int = 1000
    sample_budget_s: float = 60.0
    sample_statement_s: float = 5.0
    value_tables: int = 20
    value_pages: int = 200
    value_cells: int = 50_000
    value_budget_s: float = 10.0
    tick_counters: bool = False
    seed: int = 1
    tables: tuple[str, ...] = ()

    def variables(self) -> dict[str, int | str]:
        """The values of the queries' variables that do not come from the database."""
        return {
            "sample_tables": self.sample_tables,
            "sample_pages": self.sample_pages,
            "value_tables": self.value_tables,
            "value_pages": self.value_pages,
            "value_cells": self.value_cells,
            "seed": self.seed,
            "start_xid": NO_XID,
            "tables": "",
            "names": json.dumps(self.tables),
        }


def watch(
    connection: psycopg.Connection[Any],
    request: ObservationRequest,
    say: Say,
    at: Callable[[str, Recording], None] = lambda *_: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Recording:
    """
    Watch a database for the length of the request.

    Args:
        connection: From `read_only_session`, in autocommit mode.
        request: How long, and how much.
        say: Told what happens, for people.
        at: Called with `start` before the first counters are read, and with `end` after the last,
            with what is recorded until then.
        sleep: Waits.
    """
    return _Watch(connection, request, say, sleep).run(at)


def look(connection: psycopg.Connection[Any]) -> Recording:
    """Read the shape of a database and what the role may see, without watching it."""
    return _Watch(connection, ObservationRequest(duration_s=0.0), lambda _: None).look()


def read_counters(connection: psycopg.Connection[Any]) -> Recording:
    """
    Read all counters once, as moment `start`, and who holds the horizon.

    What is read so at two moments is an interval for `look_back`.

    Args:
        connection: In autocommit mode.
    """
    return _Watch(connection, ObservationRequest(duration_s=0.0), lambda _: None).read_once()


def look_back(
    connection: psycopg.Connection[Any],
    request: ObservationRequest,
    past: Iterable[RecordedAnswer],
    say: Say,
    at: Callable[[str, Recording], None] = lambda *_: None,
) -> Recording:
    """
    Observe an interval that is over: its counters as they were kept, everything else as it is now.

    Args:
        connection: From `read_only_session`, in autocommit mode.
        request: How much is sampled.
        past: The counters at `start`, at each `tick N`, and at `end`.
        say: Told what happens, for people.
        at: As for `watch`.
    """
    return _Watch(connection, request, say).run_back(tuple(past), at)


def ask(connection: psycopg.Connection[Any], queries: Iterable[str]) -> Recording:
    """
    Ask some queries once, as moment `shape`.

    Args:
        connection: In autocommit mode.
        queries: Names of queries that need no extension.
    """
    asking = _Watch(connection, ObservationRequest(duration_s=0.0), lambda _: None)
    return asking.answers(queries)


def ask_with_samples(
    connection: psycopg.Connection[Any], queries: Iterable[str], request: ObservationRequest
) -> Recording:
    """
    Ask some queries once, as moment `shape`, and sample rows as far as the request wants.

    Args:
        connection: In autocommit mode.
        queries: Names of queries that need no extension.
        request: Which tables, and how much may be sampled.

    Raises:
        InputError: A table that was named is not in the database.
    """
    return _Watch(connection, request, lambda _: None).rows_of_now(queries)


def with_gaps(recording: Recording) -> Recording:
    """A recording out of files, with a line for each query that has no answer in them."""
    installed = {row["name"] for row in recording.rows("extensions") if row["usable"]}
    row = recording.row("identity", "shape") or {}
    major = int(row["server_version_num"]) // 10000
    lines = list(recording.lines)
    for moment, queries in (("shape", SHAPE), ("start", COUNTERS), ("end", END)):
        for name in queries:
            needed = EXTENSION_OF.get(name)
            wanted = needed is None or needed[0] in installed
            if sql.text(name, major) is None or not wanted or recording.answered(name, moment):
                continue
            why = "psql has written no answer"
            lines.append(RecordedAnswer(query=name, moment=moment, rows=(), failed=why))
    return Recording(tuple(lines))


@functools.cache
def _undecoded() -> type[psycopg.abc.Loader]:
    """Loads text as the server sent it: a name may be no text in any encoding."""
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    class Undecoded(psycopg.adapt.Loader):
        def load(self, data: bytes | bytearray | memoryview) -> bytes:
            return bytes(data)

    return Undecoded


class _Watch:
    def __init__(
        self,
        connection: psycopg.Connection[Any],
        request: ObservationRequest,
        say: Say,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self._request = request
        self._say = say
        self._sleep = sleep
        self._major = connection.info.server_version // 10000
        self._lines: list[RecordedAnswer] = []
        # Hashes of values that are read twice are salted; nothing keeps the salt.
        self._variables = request.variables() | {"salt": secrets.randbits(62)}
        self._codec = "utf-8"
        self._is_raw = False
        self._timeout = "0"

    def look(self) -> Recording:
        return self.answers(SHAPE)

    def answers(self, queries: Iterable[str]) -> Recording:
        self._begin()
        self._choose()
        self._ask_all(queries, "shape")
        return Recording(tuple(self._lines))

    def rows_of_now(self, queries: Iterable[str]) -> Recording:
        """The queries, and samples of rows as far as they are wanted; without an interval."""
        self.answers(("access", *queries))
        self._sample(("sample_statements",), "end", self._request.sample_budget_s)
        return Recording(tuple(self._lines))

    def _begin(self) -> None:
        # A pooler's server connection is not ours alone: nothing is prepared.
        self._connection.prepare_threshold = None
        for name, value in SESSION_SETTINGS.items():
            set_for_session(self._connection, name, value)
        query = "SELECT current_setting('statement_timeout')"
        self._timeout = str(self._connection.execute(query).fetchall()[0][0])

    def _choose(self) -> None:
        """From names to oids, so that the queries themselves are bounded."""
        if not self._request.tables:
            return
        self._ask_all(("chosen_tables",), "shape")
        row = next(iter(self._rows("chosen_tables")), {})
        for name in self._request.tables:
            if name not in (row.get("names") or ()):
                raise ParameterError("table", f"{name!r} is not in the database")
        self._variables["tables"] = str(row["tables"])

    def run(self, at: Callable[[str, Recording], None]) -> Recording:
        self._begin()
        self._choose()
        self._ask_all(SHAPE, "shape")
        self._find_extensions()
        self._sample(VALUES, "start", self._request.value_budget_s)
        at("start", Recording(tuple(self._lines)))
        self._ask_all(COUNTERS, "start")
        self._wait()
        self._ask_all(END, "end")
        at("end", Recording(tuple(self._lines)))
        if self._rows("row_values"):
            self._sample(VALUES, "end", self._request.value_budget_s)
        self._sample(SAMPLES, "end", self._request.sample_budget_s)
        return Recording(tuple(self._lines))

    def read_once(self) -> Recording:
        self._begin()
        self._ask_all(("identity", "extensions"), "shape")
        self._find_extensions()
        self._ask_all((*COUNTERS, "activity"), "start")
        return Recording(tuple(self._lines))

    def run_back(
        self, past: tuple[RecordedAnswer, ...], at: Callable[[str, Recording], None]
    ) -> Recording:
        self._begin()
        self._choose()
        self._ask_all(SHAPE, "shape")
        self._find_extensions()
        first = next((row for line in past if line.query == "instant" for row in line.rows), None)
        if first is not None:
            self._variables["start_xid"] = int(first["next_xid"])
        at("start", Recording(tuple(self._lines)))
        self._lines.extend(past)
        self._say("reading the tables as they are now")
        self._ask_all((name for name in END if name not in COUNTERS), "end")
        at("end", Recording(tuple(self._lines)))
        self._sample(SAMPLES, "end", self._request.sample_budget_s)
        return Recording(tuple(self._lines))

    def _find_extensions(self) -> None:
        schemas = {
            row["name"]: str(row["schema"]) for row in self._rows("extensions") if row["usable"]
        }
        for extension, variable in EXTENSION_OF.values():
            if extension in schemas:
                self._variables[variable] = schemas[extension]

    def _rows(self, query: str) -> tuple[AnswerRow, ...]:
        return Recording(tuple(self._lines)).rows(query)

    def _wait(self) -> None:
        began = time.monotonic()
        ticks = self._request.ticks
        for number in range(1, ticks + 1):
            target_s = self._request.duration_s * number / ticks
            self._sleep(max(began + target_s - time.monotonic(), 0))
            self._say(f"{target_s:.0f} of {self._request.duration_s:.0f} s")
            if number < ticks:
                counters = ("table_counters",) if self._request.tick_counters else ()
                self._ask_all((*TICK, *counters), f"tick {number}")

    def _ask_all(self, queries: Iterable[str], moment: str) -> None:
        for name in queries:
            query = self._bound(name)
            if query is not None:
                self._ask(name, moment, sql.as_line(name, moment, query))
            if name == "instant" and moment == "start":
                row = next(iter(self._rows("instant")), None)
                if row is not None:
                    self._variables["start_xid"] = int(row["next_xid"])

    def _bound(self, name: str) -> str | None:
        """The query's text; None where this server has nothing to ask."""
        text = sql.text(name, self._major)
        needed = EXTENSION_OF.get(name)
        if text is None or (needed is not None and needed[1] not in self._variables):
            return None
        return sql.bound(text, self._variables)

    def _ask(self, name: str, moment: str, statement: str) -> None:
        found, failed = self._fetch(statement)
        if failed is not None:
            self._lines.append(RecordedAnswer(query=name, moment=moment, rows=(), failed=failed))
        else:
            self._lines.extend(
                line_of(parsed(data) if isinstance(data, str) else data) for (data,) in found
            )

    def _fetch(self, statement: str) -> tuple[list[Any], str | None]:
        """The rows, or why there are none; a broken connection goes on as an exception."""
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        try:
            # Text of ours without parameters: '%' means itself.
            query = statement.encode(self._codec, "surrogateescape")
            cursor = self._connection.cursor()
            cursor.adapters.register_loader("text", _undecoded())
            rows = cursor.execute(query).fetchall()
            return [tuple(self._decoded(value) for value in row) for row in rows], None
        except psycopg.Error as error:
            if self._connection.broken or self._connection.closed or error.sqlstate is None:
                raise
            if error.sqlstate in _NOT_TRANSLATED and self._take_raw():
                return self._fetch(statement)
            return [], f"{error.sqlstate} {type(error).__name__}"

    def _decoded(self, value: Any) -> Any:
        return value.decode(self._codec, "surrogateescape") if isinstance(value, bytes) else value

    def _take_raw(self) -> bool:
        """Have texts sent as they are stored, from now on; False where they are already."""
        if self._is_raw:
            return False
        # SQL_ASCII too: no conversion, but what is sent is checked to be of the client's encoding.
        encoding = self._connection.info.parameter_status("server_encoding") or "UTF8"
        set_for_session(self._connection, "client_encoding", encoding)
        self._codec, self._is_raw = codec_of(encoding), True
        return True

    def _sample(self, wanted: Iterable[str], moment: str, budget_s: float) -> None:
        """Run the written statements until all are done or the time is used up."""
        if not self._request.samples:
            return
        if self._is_superuser() and "pgss_schema" in self._variables:
            # A statement a table would drive others out of it; only superusers may say so.
            set_for_session(self._connection, "pg_stat_statements.track", "none")
        deadline = time.monotonic() + budget_s
        self._variables["moment"] = moment
        for name in wanted:
            query = self._bound(name)
            if query is None:
                continue
            if name == "page_statements" and not self._is_superuser():
                continue
            statements, failed = self._fetch(query)
            if failed is not None:
                self._lines.append(
                    RecordedAnswer(query=name, moment=moment, rows=(), failed=failed)
                )
            kind = _KINDS[name]
            for (statement,) in statements:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    self._lines.append(
                        RecordedAnswer(
                            query=kind, moment=moment, rows=(), failed="time cap reached"
                        )
                    )
                    break
                timeout_ms = round(1000 * min(left_s, self._request.sample_statement_s)) + 1
                set_for_session(self._connection, "statement_timeout", str(timeout_ms))
                self._ask(kind, moment, statement)
                if self._lines[-1].failed in _FOR_EVERY_TABLE and kind in _OF_MODULES:
                    break
        set_for_session(self._connection, "statement_timeout", self._timeout)

    def _is_superuser(self) -> bool:
        return any(row["is_superuser"] for row in self._rows("access"))
