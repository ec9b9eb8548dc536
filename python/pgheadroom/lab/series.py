"""
Per-second series of a window: transactions from pgbench's log, WAL, sizes, what the server did.

Nothing is connected to the database under test meanwhile: WAL positions are read in another
database of the same server, sizes from the relation files, checkpoints and vacuums from the
server's log.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pgheadroom.lab import guards
from pgheadroom.lab.design import Trial
from pgheadroom.lab.place import SAMPLER_DATABASE, Running
from pgheadroom.lab.record import LogEvent, SecondsSeries
from pgheadroom.servers.log_lines import autovacuum_of, log_line
from pgheadroom.servers.pgbench import TransactionLog
from pgheadroom.units import PAGE_BYTES

_CHECKPOINT_TOTAL = re.compile(r"checkpoint complete: .*?total=(\d+\.\d+) s")
_ELAPSED = re.compile(r"elapsed: (\d+\.\d+) s")


class Sampler:
    """
    Reads WAL position and relation sizes about once a second while its `with` block runs.

    On a borrowed server it samples nothing: sizes and positions would need a session in a database
    that is not ours.
    """

    def __init__(self, server: Running, *tables: str) -> None:
        self.t_s: list[float] = []
        self.wal_bytes: list[int] = []
        self.heap_bytes: list[int] = []
        self.index_bytes: list[int] = []
        self._server = server
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if server.cluster is not None:
            self._heaps, self._indexes = _relation_paths(server, tables)

    def __enter__(self) -> Self:
        if self._server.cluster is not None:
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _sample(self) -> None:
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        try:
            with self._server.connect(SAMPLER_DATABASE) as connection:
                ended = False
                while True:
                    row = connection.execute(
                        "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
                    ).fetchone()
                    assert row is not None, "a function returns one row"
                    self.t_s.append(time.time())
                    self.wal_bytes.append(row[0])
                    self.heap_bytes.append(sum(_relation_bytes(path) for path in self._heaps))
                    self.index_bytes.append(sum(_relation_bytes(path) for path in self._indexes))
                    if ended:
                        return
                    # Once more at the end, so that the last second is sampled to its end.
                    ended = self._stop.wait(1.0)
        except psycopg.Error:
            # The server is going away: the main thread meets the same and reports it.
            return


def _relation_paths(server: Running, tables: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Files of the tables, and of their indexes."""
    assert server.cluster is not None, "only our own clusters have readable files"
    with server.connect() as connection:
        rows = connection.execute(
            "SELECT relkind = 'r', pg_relation_filepath(oid) FROM pg_class "
            "WHERE oid = ANY (%(tables)s::regclass[]) OR oid IN "
            "(SELECT indexrelid FROM pg_index WHERE indrelid = ANY (%(tables)s::regclass[]))",
            {"tables": list(tables)},
        ).fetchall()
    found: tuple[list[Path], list[Path]] = ([], [])
    for is_table, path in rows:
        found[0 if is_table else 1].append(server.cluster.relation_path(str(path)))
    return found


def _relation_bytes(path: Path) -> int:
    """Size of a relation's main fork, all its 1 GiB segments."""
    total_bytes, segment = 0, 0
    while True:
        part = path if segment == 0 else path.with_name(f"{path.name}.{segment}")
        try:
            total_bytes += part.stat().st_size
        except FileNotFoundError:
            return total_bytes
        segment += 1


def of_window(
    server: Running,
    trial: Trial,
    log: TransactionLog,
    *,
    start_s: float,
    end_s: float,
    window_s: float,
    sampler: Sampler | None = None,
) -> tuple[SecondsSeries, list[str]]:
    """
    The series of a throughput window, and what is to be noted of its throughput.

    Args:
        server: The running server, whose log tells what it did meanwhile.
        trial: Whose window it is.
        log: Every transaction.
        start_s: When the driver was started, epoch seconds.
        end_s: When it had ended.
        window_s: The length that it was asked for.
        sampler: What was sampled beside; None where nothing was.
    """
    found = per_second(
        trial,
        log,
        sampler,
        start_s=start_s,
        window_s=window_s,
        events=log_events(server, start_s, end_s),
    )
    return found, guards.steady([tps or 0.0 for tps in found.tps or ()])


def per_second(
    trial: Trial,
    log: TransactionLog,
    sampler: Sampler | None,
    *,
    start_s: float,
    window_s: float,
    events: Sequence[LogEvent] = (),
) -> SecondsSeries:
    """
    Series over the whole seconds of a window.

    Args:
        trial: Whose window it is.
        log: Every transaction.
        sampler: What was sampled beside; None where nothing was.
        start_s: Begin of the window, epoch seconds.
        window_s: Its length.
        events: What the server did meanwhile.
    """
    import numpy as np  # noqa: PLC0415 - slow to import; only a run needs it

    seconds = max(int(window_s), 1)
    index = np.floor(log.ends_s - start_s).astype(int)
    inside = [log.latency_ms[index == second] for second in range(seconds)]
    found = SecondsSeries(
        cell=dict(trial.cell),
        repetition=trial.repetition,
        arm=trial.arm,
        t_s=tuple(float(second + 1) for second in range(seconds)),
        tps=tuple(float(len(each)) for each in inside),
        latency_ms_mean=tuple(float(each.mean()) if len(each) else None for each in inside),
        latency_ms_max=tuple(float(each.max()) if len(each) else None for each in inside),
        events=tuple(events),
    )
    if sampler is None or len(sampler.t_s) < 2:
        return found
    ends = [start_s + second for second in range(seconds + 1)]

    def at_ends(values: Sequence[int]) -> tuple[float, ...]:
        here = np.interp(ends[1:], sampler.t_s, values)
        return tuple(float(value // PAGE_BYTES * PAGE_BYTES) for value in here)

    wal = np.interp(ends, sampler.t_s, sampler.wal_bytes)
    return replace(
        found,
        wal_bytes_per_s=tuple(float(step) for step in np.diff(wal)),
        heap_bytes=at_ends(sampler.heap_bytes),
        index_bytes=at_ends(sampler.index_bytes),
    )


def log_events(server: Running, start_s: float, end_s: float) -> list[LogEvent]:
    """
    Checkpoints, autovacuums and autoanalyzes in a window, out of the server's own log.

    Args:
        server: The running server; a borrowed one shows no log and gives no events.
        start_s: Begin of the window, epoch seconds.
        end_s: Its end.

    Returns:
        Events as in a series file, by time; `t_s` is when the work began.
    """
    if server.cluster is None:
        return []
    text = server.cluster.log_path.read_text(encoding="utf-8", errors="replace")
    return [
        replace(event, t_s=round(event.t_s - start_s, 3))
        for event in _events(text.splitlines())
        if start_s <= event.t_s + (event.duration_s or 0) and event.t_s <= end_s
    ]


def _events(lines: Sequence[str]) -> Iterator[LogEvent]:
    """All events of a log, with epoch seconds."""
    begun: tuple[float, str] | None = None
    for number, line in enumerate(lines):
        read = log_line(line)
        if read is None:
            continue
        ended_s, text = read.at_s, read.said
        if text.startswith("checkpoint starting"):
            begun = (ended_s, text)
        elif total := _CHECKPOINT_TOTAL.search(text):
            duration_s = float(total[1])
            reason = begun[1].partition(":")[2].strip() if begun else "unknown"
            yield _event(ended_s - duration_s, "checkpoint", duration_s, f"checkpoint: {reason}")
            begun = None
        elif (work := autovacuum_of(text)) is not None:
            kind, table = work
            duration_s = _elapsed_s(lines[number:])
            said = f"automatic {kind} of {table}"
            yield _event(ended_s - duration_s, f"auto{kind}", duration_s, said)
    if begun is not None:
        yield _event(begun[0], "checkpoint", None, f"{begun[1]} (not complete at the end)")


def _event(t_s: float, kind: str, duration_s: float | None, text: str) -> LogEvent:
    return LogEvent(t_s=t_s, kind=kind, duration_s=duration_s, text=text)


def _elapsed_s(lines: Sequence[str]) -> float:
    """The time that a vacuum's message gives in its last line, 0 when it gives none."""
    for offset, line in enumerate(lines):
        if offset and log_line(line) is not None:
            break
        if match := _ELAPSED.search(line):
            return float(match[1])
    return 0.0
