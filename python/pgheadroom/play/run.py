"""
One profile, one throw-away server, one window: load, run the clients, read what happened.

The window runs from after the CHECKPOINT until the last client has ended. While it runs, nothing
of ours is connected to the database under test (a snapshot there would hold the horizon), except
the snapshots that the profile asks for; we wait in another database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.errors import InputError, LabError, MeasurementInvalid
from pgheadroom.outcome import Outcome, mid
from pgheadroom.play.clients import Clients
from pgheadroom.play.course import ClientsCourse
from pgheadroom.play.ended import Ended
from pgheadroom.play.events import Event, place_events, read_events, within
from pgheadroom.play.load import load
from pgheadroom.play.maintenance import Maintainer
from pgheadroom.play.measured import (
    Relations,
    measured,
    read_counters,
    read_relations,
    read_sizes,
    reset_statistics,
)
from pgheadroom.play.places import Places, find_forks, read_places
from pgheadroom.play.plans import check_plans, read_pgbench_plans
from pgheadroom.play.scripts import scripts
from pgheadroom.play.session_times import SessionTimes
from pgheadroom.play.settings import fitting_settings, late_settings, start_settings
from pgheadroom.play.standing import Standing
from pgheadroom.play.wal_source import WalSource
from pgheadroom.play.without_row import turns_without_row
from pgheadroom.play.workers import LEVEL, Hold, place_holds, read_holds
from pgheadroom.profile import Profile
from pgheadroom.profile.settings import check_values
from pgheadroom.profile.unpriced import left_out_gins
from pgheadroom.progress import Say
from pgheadroom.servers import Host, find_client, find_programs, is_connection
from pgheadroom.servers.processors import usable
from pgheadroom.types import Assumed, PgVersion, Span

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.servers import Cluster

DATABASE = "profile"
_CLIENTS_GONE_WITHIN_S = 60.0  # a client that has lost its pgbench ends at once; arbitrary
_POLL_S = 0.01
_LOG_PREFIX = "transactions"

OtherWork = Callable[["Cluster"], int]
"""Does a run's transactions on a loaded server, in its database `DATABASE`; says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """
    What a server did with a profile.

    `measured` is what a proof has of it; `duration_s` is the clients' time; `events` are the
    checkpoints and autovacuums inside the window; `checks` are figures of other counters of the
    same window, for whoever doubts. `by_record` is the WAL of the tables and their transactions by
    record type: records, bytes, bytes of images. `places`, if asked for, is where everything lies.
    `turns` are those of operations, and of them those without a row, as far as counters tell.
    `maintained` has from when to when each command of maintenance ran, as shares of the
    transactions, where these are not counted.
    `processors` are those that the server and its clients may use.
    `failed_transactions` are among `transactions`: pgbench rolled them back and tried none again.
    """

    server: PgVersion
    measured: Outcome
    assumed: Assumed
    duration_s: float
    transactions: int
    plans: Mapping[str, str]
    events: tuple[Event, ...]
    snapshots: tuple[tuple[float, float], ...]
    checks: Mapping[str, int]
    by_record: Mapping[str, tuple[int, int, int]]
    places: Places | None
    turns: Mapping[str, tuple[int, int]]
    standing: Standing | None = None
    failed_transactions: int = 0
    holds: tuple[Hold, ...] = ()
    course: ClientsCourse = ()
    session_times: SessionTimes | None = None
    maintained: tuple[Span, ...] = ()
    processors: int | None = None


def play(
    profile: Profile,
    *,
    server: str | None = None,
    say: Say | None = None,
    with_places: bool = False,
    work: OtherWork | None = None,
) -> Played:
    """
    Play a profile on a throw-away server and measure it.

    Args:
        profile: The profile.
        server: Version or folder; it wins over the profile's version.
        say: Called with what is being done, for progress.
        with_places: Also read the relation files at the end.
        work: What works on the tables instead of pgbench, for histories that a profile's random
            operations cannot tell; the profile's own operations are then not run.

    Raises:
        InputError: `server` is a connection, or not understood.
        ServerNotFound: That version is not at hand.
        MeasurementInvalid: A plan is another than the profile wants, transactions failed, or WAL
            and counters do not fit together.
        LabError: The server failed.
    """
    say = say or (lambda _: None)
    spec = server or profile.server.version
    if is_connection(spec):
        raise InputError(
            "a profile is played on a throw-away server, whose WAL files can be read: expected a "
            "version or a folder with server programs, not a connection"
        )
    scripts(profile)  # what pgbench cannot take is refused before a server is started
    programs = find_programs(spec)
    check_values(profile, programs.version)
    assumed = profile.assumed_on(programs.version.major)
    if server is not None and server != profile.server.version:
        assumed = {**assumed, "server.version": f"{programs.version}, as asked for"}
    with Host(programs, data_checksums=profile.server.data_checksums, label="play") as host:
        cluster = host.cluster("play")
        if profile.server.settings:
            profile, left_out = fitting_settings(
                profile, cluster.known_settings(), programs.version
            )
            assumed = {**assumed, **left_out}
        cluster.start(start_settings(profile))
        with _server_errors(cluster):
            played = _Play(host, cluster, profile, say, work).run(assumed, with_places=with_places)
        cluster.stop("immediate")
    return played


class _Play:
    """A run in progress."""

    def __init__(
        self, host: Host, cluster: Cluster, profile: Profile, say: Say, work: OtherWork | None
    ) -> None:
        self.host = host
        self.cluster = cluster
        self.profile = profile
        self.say = say
        self.work = work
        self.names = profile.table_names
        self.left_out = left_out_gins(profile)
        self.maintainer: Maintainer | None = None

    def run(self, assumed: Assumed, *, with_places: bool) -> Played:
        self.say("load")
        with self.cluster.connect() as monitor:
            wal_source = WalSource(self.host, self.cluster, monitor)
            monitor.execute(f"CREATE DATABASE {DATABASE}".encode())
            plans = self._load()
            self._wait_for_clients(monitor)
            with self.cluster.connect(DATABASE) as connection:
                reset_statistics(connection, self.names)
                before = read_counters(connection, self.names)
                relations = read_relations(connection, self.names, self.left_out)
            self._wait_for_clients(monitor)
            monitor.execute("CHECKPOINT")
            start = _position(monitor)
            log_start = self.cluster.log_path.stat().st_size
            self._switch_on(monitor)
            self.say("run")
            began_at = time.time()
            clients = Clients(self.host, self.cluster, self.profile, DATABASE)
            done = 0
            if self.work is None:
                self.maintainer = clients.run(monitor)
            else:
                done = self.work(self.cluster)
                clients.duration_s = time.time() - began_at
            self._wait_for_clients(monitor)
            clients.have_left()
            end = _position(monitor)
            with self.cluster.connect(DATABASE) as connection:
                after, sizes, later = self._left_behind(connection)
                forks = find_forks(connection, self.cluster, self.names) if with_places else ()
            # Not before: while pgbench's logs are read, autovacuum comes to the next table.
            report = clients.report() if self.work is None else None
            # So that the WAL up to the end, and all pages, are in their files.
            monitor.execute("CHECKPOINT")
            self.say("read the WAL")
            wal = wal_source.read(start.lsn, end.lsn, self._table_of(relations, later))
            places = read_places(forks) if with_places else None
        ended = clients.ended or Ended(wal.ended_at)
        failed = 0 if report is None else report.failed_transactions
        happened = self._happened(log_start, began_at, end.at_s, ended)
        counted = end.wal_records - start.wal_records
        result = measured(before, after, sizes, wal)
        # An autovacuum worker counts what it has written when it ends, which may be later.
        if mid(result.wal_records) > counted and not self.profile.may_autovacuum:
            raise MeasurementInvalid(
                f"pg_stat_wal counts {counted} records in the window, fewer than the "
                f"{result.wal_records} found for the profile's tables"
            )
        return Played(
            server=self.cluster.version,
            measured=result,
            assumed=assumed,
            duration_s=clients.duration_s,
            transactions=done if report is None else report.transactions + failed,
            plans=plans,
            snapshots=clients.snapshots,
            checks={
                "pg_stat_wal_records": counted,
                "pg_stat_wal_bytes": end.wal_bytes - start.wal_bytes,
                "window_wal_records": wal.everything.records,
                "window_wal_bytes": wal.everything.bytes,
            },
            by_record={
                name: (sums.records, sums.bytes, sums.fpi_bytes)
                for name, sums in sorted(wal.by_record.items())
            },
            places=places,
            standing=clients.standing,
            course=clients.course,
            session_times=clients.session_times,
            failed_transactions=failed,
            turns={}
            if report is None or failed
            else turns_without_row(self.profile, report.script_transactions, result.by_table),
            events=happened.events,
            holds=happened.holds,
            maintained=happened.maintained,
            processors=usable(),
        )

    def _left_behind(
        self, connection: psycopg.Connection[Any]
    ) -> tuple[dict[str, tuple[int | None, ...]], dict[str, tuple[int, int, int]], Relations]:
        """Counters and sizes at the end, and relations: a rewritten table has new files."""
        after = read_counters(connection, self.names)
        sizes = read_sizes(connection, self.names, self.left_out)
        return after, sizes, read_relations(connection, self.names, self.left_out)

    def _table_of(self, *known: Relations) -> dict[str, str]:
        """The tables of relations that there were at the beginning, in between and at the end."""
        table_of = {} if self.maintainer is None else dict(self.maintainer.table_of)
        for relations in known:
            table_of |= relations.table_of
        return table_of

    def _happened(
        self, log_start: int, began_at: float, ended_at: float, ended: Ended
    ) -> _Happened:
        """What went on beside the clients, out of the server's log, which has it by now."""
        log = self.cluster.log_path
        maintained: tuple[Span, ...] = ()
        held: tuple[Hold, ...] = ()
        if self.maintainer is not None:
            maintained, held = self.maintainer.placed(log, log_start, ended)
        events = within(read_events(log, log_start, began_at), ended_at - began_at)
        holds = read_holds(log, log_start, began_at, DATABASE)
        return _Happened(
            events=place_events(events, ended, began_at),
            holds=(*place_holds(holds, ended, began_at), *held),
            maintained=maintained,
        )

    def _load(self) -> dict[str, str]:
        if self.profile.workload.builtin is not None:
            self._load_pgbench()
            with self.cluster.connect(DATABASE) as connection:
                return read_pgbench_plans(connection)
        with self.cluster.connect(DATABASE) as connection:
            load(connection, self.profile)
        with self.cluster.connect(DATABASE) as connection:
            return check_plans(connection, self.profile)

    def _load_pgbench(self) -> None:
        builtin = self.profile.workload.builtin
        assert builtin is not None
        scale = ["-s", str(builtin.scale)]
        self._client("pgbench", ["-i", "-q", "-I", "dt", *scale])
        with self.cluster.connect(DATABASE) as connection:
            for name, fillfactor in builtin.fillfactor.items():
                sql = f"ALTER TABLE {quoting.identifier(name)} SET (fillfactor = {fillfactor})"
                connection.execute(sql.encode())
        self._client("pgbench", ["-i", "-q", "-I", "Gvp", *scale])

    def _client(self, program: str, arguments: list[str]) -> None:
        path, _ = find_client(program, self.host.programs)
        done = self.host.run([path, *arguments, DATABASE], env=self.cluster.client_env())
        if done.returncode != 0:
            raise LabError(
                f"{program} {' '.join(arguments)} ended with exit code {done.returncode}; "
                f"it said: {done.stderr.strip()[-500:]}"
            )

    def _switch_on(self, monitor: psycopg.Connection[Any]) -> None:
        settings = late_settings(self.profile)
        if self.profile.may_autovacuum:
            settings["log_min_messages"] = LEVEL
        for name, value in settings.items():
            sql = f"ALTER SYSTEM SET {quoting.identifier(name)} = {quoting.literal(value)}"
            monitor.execute(sql.encode())
        if settings:
            monitor.execute("SELECT pg_reload_conf()")

    def _wait_for_clients(self, monitor: psycopg.Connection[Any]) -> None:
        """Wait until nobody is connected to the database under test; counters are whole then."""
        deadline = time.monotonic() + _CLIENTS_GONE_WITHIN_S
        while True:
            row = monitor.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = %s AND backend_type = 'client backend'",
                (DATABASE,),
            ).fetchone()
            assert row is not None, "an aggregate returns one row"
            if row[0] == 0:
                return
            if time.monotonic() > deadline:
                raise MeasurementInvalid(f"{row[0]} clients stay connected to the database")
            time.sleep(_POLL_S)


@dataclass(frozen=True, slots=True)
class _Happened:
    """What went on beside the clients, as `Played` has it."""

    events: tuple[Event, ...]
    holds: tuple[Hold, ...]
    maintained: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class _Position:
    """A moment in the WAL, in epoch seconds, and the server's own counters of it."""

    at_s: float
    lsn: str
    wal_records: int
    wal_bytes: int


def _position(monitor: psycopg.Connection[Any]) -> _Position:
    # What this session itself wrote is counted when it says so.
    monitor.execute("SELECT pg_stat_force_next_flush()")
    row = monitor.execute(
        "SELECT pg_current_wal_insert_lsn()::text, wal_records, wal_bytes::bigint FROM pg_stat_wal"
    ).fetchone()
    assert row is not None, "pg_stat_wal has one row"
    return _Position(time.time(), row[0], int(row[1]), int(row[2]))


@contextmanager
def _server_errors(cluster: Cluster) -> Iterator[None]:
    """Turn what the server says while it works for us into our error, with its log."""
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    try:
        yield
    except psycopg.Error as error:
        said = "\n".join(f"  | {line}" for line in cluster.log_tail(8))
        raise LabError(f"the server failed: {error}\nIts log ends with:\n{said}") from error
