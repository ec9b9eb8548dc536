"""
A workload's clients in pieces, so that vacuums and snapshots come at the same transaction always.

One pgbench run is a piece. Its variables begin where the last piece ended (`carried`), so that the
pieces together do what one run would: keys go on, no row is inserted twice. After each piece
autovacuum's own rule decides on a VACUUM, and snapshots begin and end between pieces.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.errors import LabError, MeasurementInvalid
from pgheadroom.play import DATABASE
from pgheadroom.play.scripts import FIND_SETTINGS, scripts, session_find, variables
from pgheadroom.profile import Profile
from pgheadroom.servers import Cluster, Host, find_client
from pgheadroom.servers.pgbench import parse_report

if TYPE_CHECKING:
    import psycopg

PIECES = 10
"""Of a cycle: autovacuum looks as often."""

_SCRIPT_TRANSACTIONS = re.compile(r"^ - (\d+) transactions \(", re.MULTILINE)
_GONE_WITHIN_S = 60.0  # a client that has lost its pgbench ends at once; arbitrary

# autovacuum_vacuum_threshold, _scale_factor, _insert_threshold, _insert_scale_factor: defaults,
# unless the table has a scale factor of its own.
_VACUUM_DUE = """
SELECT s.n_dead_tup > 50 + scale_factor * greatest(c.reltuples, 0)
       OR s.n_ins_since_vacuum > 1000 + 0.2 * greatest(c.reltuples, 0)
FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid,
     LATERAL (SELECT coalesce(max(option_value::float8), 0.2)
              FROM pg_options_to_table(c.reloptions)
              WHERE option_name = 'autovacuum_vacuum_scale_factor') AS own(scale_factor)
WHERE s.relid = %s::regclass
"""


class Player:
    """
    The clients of one workload on a loaded server; one client, so that all is decided.

    Args:
        host: Where pgbench runs.
        cluster: The server; its database `DATABASE` is loaded.
        profile: The profile, at the fillfactor that is loaded.
        monitor: A session in another database.
    """

    def __init__(
        self, host: Host, cluster: Cluster, profile: Profile, monitor: psycopg.Connection[Any]
    ) -> None:
        assert profile.workload.run.clients == 1, "one client"
        self.cluster = cluster
        self.profile = profile
        self.vacuums = 0
        self._host = host
        self._monitor = monitor
        self._variables = variables(profile)
        self._piece = 0
        self._pgbench, _ = find_client("pgbench", host.programs)

    def turn(self, transactions: int) -> None:
        """A whole cycle: its pieces, with what the profile's snapshots hold of it."""
        assert transactions % PIECES == 0, "whole pieces"
        held: dict[int, psycopg.Connection[Any]] = {}
        try:
            for number in range(PIECES):
                self._snapshots(number, held)
                self.piece(transactions // PIECES)
                self._vacuum(held)
            self._snapshots(PIECES, held)
        finally:
            for connection in held.values():
                connection.close()
        self.wait_until_alone()

    def _snapshots(self, number: int, held: dict[int, psycopg.Connection[Any]]) -> None:
        for n, snapshot in enumerate(self.profile.workload.run.snapshots):
            first = round(snapshot.start_frac * PIECES)
            last = round((snapshot.start_frac + snapshot.length_frac) * PIECES)
            if number == first:
                held[n] = hold(self.cluster)
            elif number == last and n in held:
                connection = held.pop(n)
                connection.execute("ROLLBACK")
                connection.close()

    def _vacuum(self, held: Mapping[int, object]) -> None:
        self.wait_until_alone(len(held))
        with self.cluster.connect(DATABASE) as connection:
            for name in self.profile.table_names:
                found = quoting.identifier(name)
                row = connection.execute(_VACUUM_DUE, (found,)).fetchone()
                assert row is not None, f"{name} has a row in pg_stat_user_tables"
                if row[0]:
                    connection.execute(f"VACUUM {found}".encode())
                    self.vacuums += 1
        self.wait_until_alone(len(held))

    def wait_until_alone(self, others: int = 0) -> None:
        """Wait until only so many sessions are in the database: counters are whole then."""
        deadline = time.monotonic() + _GONE_WITHIN_S
        while True:
            row = self._monitor.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = %s AND backend_type = 'client backend'",
                (DATABASE,),
            ).fetchone()
            assert row is not None, "an aggregate returns one row"
            if row[0] <= others:
                return
            if time.monotonic() > deadline:
                raise MeasurementInvalid(f"{row[0]} clients stay connected to the database")
            time.sleep(0.005)

    def piece(self, transactions: int) -> None:
        """Run so many transactions, as fast as they go."""
        process = self.start(["-t", str(transactions)])
        output, errors = process.communicate()
        if process.returncode != 0:
            raise LabError(
                f"pgbench ended with exit code {process.returncode}; it said: "
                f"{errors.strip()[-1000:]}"
            )
        report = parse_report(output)
        if report.failed_transactions or report.transactions != transactions:
            raise MeasurementInvalid(
                f"{report.transactions} transactions ran and {report.failed_transactions} failed, "
                f"expected {transactions}"
            )
        self._variables = carried(self.profile, self._variables, script_counts(output))

    def start(
        self, length: list[str], options: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start pgbench where the last piece ended; `options` are settings of its session."""
        settings = {**FIND_SETTINGS[session_find(self.profile)], **(options or {})}
        environment = self.cluster.client_env()
        environment["PGOPTIONS"] = " ".join(f"-c {n}={v}" for n, v in settings.items())
        self._piece += 1
        seed = self.profile.workload.run.seed * 1000 + self._piece
        arguments = ["-n", "-M", "prepared", "-j", "1", "-c", "1", f"--random-seed={seed}"]
        for name, value in self._variables.items():
            arguments += ["-D", f"{name}={value}"]
        for n, script in enumerate(scripts(self.profile)):
            path = self._host.scratch / f"script-{n}.sql"
            path.write_text(script.text, encoding="utf-8")
            arguments += ["-f", f"{path.name}@{script.weight}"]
        return self._host.popen(
            [str(self._pgbench), *arguments, *length, DATABASE],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )


def hold(cluster: Cluster) -> psycopg.Connection[Any]:
    """A session that holds a snapshot until it ends."""
    connection = cluster.connect(DATABASE)
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT count(*) FROM pg_class")
    return connection


def script_counts(output: str) -> tuple[int, ...]:
    """
    How often each script ran, out of pgbench's report; one script's are all.

    Source: printResults, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    """
    found = tuple(int(count) for count in _SCRIPT_TRANSACTIONS.findall(output))
    return found or (parse_report(output).transactions,)


def carried(profile: Profile, before: Mapping[str, int], counts: tuple[int, ...]) -> dict[str, int]:
    """
    What the variables of the next piece begin with.

    Args:
        profile: The profile, of one client.
        before: What this piece began with.
        counts: How often each script ran in it.
    """
    found = dict(before)
    numbers = {id(item): n for n, item in enumerate(profile.workload.operations)}
    tables = {table.name: t for t, table in enumerate(profile.tables)}
    transactions = profile.workload.transactions()
    assert len(transactions) == len(counts), f"{len(transactions)} scripts, {len(counts)} counts"
    for transaction, count in zip(transactions, counts, strict=True):
        for operation in transaction:
            t, rows = tables[operation.table], operation.rows_per_statement
            assert isinstance(rows, int), "what a count of scripts cannot tell"
            distribution = None if operation.pick is None else operation.pick.distribution
            if distribution in ("sequential", "stride"):
                found[f"i{numbers[id(operation)]}"] += count
            if operation.kind == "insert":
                found[f"j{t}"] += count
                if found[f"j{t}"]:
                    found[f"l{t}"] = profile.tables[t].rows + found[f"j{t}"] * rows
                if f"y{t}" in found:
                    found[f"y{t}"] += count * rows
            elif operation.kind == "delete" and distribution == "oldest":
                assert rows == 1, "what is left of the loaded rows"
                assert operation.pick is None or operation.pick.within_rows is None, "blocks"
                found[f"f{t}"] += count
    return found
