"""
The clients of a run: pgbench with the profile's scripts, and what goes on beside it.

    with snapshots, maintenance:  pgbench ~~~~~~~~~~~~~~~ ends | report, logs
                                     step  step  step
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom.errors import LabError, MeasurementInvalid
from pgheadroom.play.course import ClientsCourse, course
from pgheadroom.play.deadlocks import Deadlocks
from pgheadroom.play.ended import Ended
from pgheadroom.play.gates import gate_lines, gate_variables
from pgheadroom.play.maintenance import Maintainer
from pgheadroom.play.scripts import FIND_SETTINGS, scripts, session_find, variables
from pgheadroom.play.session_times import SessionClock, SessionTimes
from pgheadroom.play.snapshots import RunProgress, SnapshotHolder
from pgheadroom.play.standing import Standing, inside, standing
from pgheadroom.profile import PgbenchBuiltin, Profile
from pgheadroom.profile.maintaining import is_counted
from pgheadroom.servers import Host, find_client
from pgheadroom.servers.pgbench import PgbenchReport, parse_report, read_logs

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.servers import Cluster

_POLL_S = 0.01
_LOG_PREFIX = "transactions"


class Clients:
    """
    A profile's clients on a loaded server: first `run`, and when all is counted `report`.

    Attributes:
        snapshots: Those that were held, from and to which share of the run.
        duration_s: How long the clients worked.
        standing: How often one stood still; None where nobody asks, as the next two.
        course: How each came on.
        session_times: What their sessions spent their time on; None as well beside other sessions
            of the profile's, which the server counts with them.
        ended: When transactions ended.
    """

    def __init__(self, host: Host, cluster: Cluster, profile: Profile, database: str) -> None:
        self.snapshots: tuple[tuple[float, float], ...] = ()
        self.duration_s = 0.0
        self.standing: Standing | None = None
        self.course: ClientsCourse = ()
        self.session_times: SessionTimes | None = None
        self._session_clock: SessionClock | None = None
        self.ended: Ended | None = None
        self._held_s: tuple[tuple[float, float], ...] = ()
        self._host = host
        self._cluster = cluster
        self._profile = profile
        self._database = database
        self._folder = host.scratch
        self._deadlocks = Deadlocks(cluster.log_path)
        self._output = self._folder / "pgbench.out"

    def run(self, monitor: psycopg.Connection[Any]) -> Maintainer:
        """
        Run pgbench to its end, with the profile's snapshots and maintenance beside it.

        Args:
            monitor: A session in another database.

        Returns:
            Who ran the commands of maintenance.

        Raises:
            LabError: pgbench failed.
            MeasurementInvalid: After maintenance plans are others.
        """
        errors_path = self._folder / "pgbench.err"
        progress = RunProgress(self._profile, monitor)
        if _are_alone(self._profile):
            self._session_clock = SessionClock(monitor, self._database)
            self._session_clock.start()

        def connect() -> psycopg.Connection[Any]:
            return self._cluster.connect(self._database)

        holder = SnapshotHolder(self._profile, connect, progress)
        maintainer = Maintainer(self._profile, connect, progress, self._folder)
        path, _ = find_client("pgbench", self._host.programs)
        with (
            self._output.open("wb") as output,
            errors_path.open("wb") as errors,
            holder,
            maintainer,
        ):
            progress.start()
            started = time.monotonic()
            process = self._host.popen(
                [path, *self._arguments(self._folder), self._database],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
            )
            try:
                while process.poll() is None:
                    holder.step()
                    maintainer.step()
                    self._deadlocks.step()
                    if self._session_clock is not None:
                        self._session_clock.step()
                    time.sleep(_POLL_S)
            except BaseException:
                process.kill()
                process.wait()
                raise
            self.duration_s = time.monotonic() - started
            if process.returncode == 0:
                maintainer.end()
        if process.returncode != 0:
            said = errors_path.read_text(errors="replace").strip()[-1000:]
            raise LabError(f"pgbench ended with exit code {process.returncode}; it said: {said}")
        self.snapshots = holder.held
        if self.snapshots and not progress.is_told_by_xids():
            self._held_s = holder.held_s
        return maintainer

    def have_left(self) -> None:
        """No session of theirs is there any more."""
        if self._session_clock is not None:
            self._session_clock.stop()

    def report(self) -> PgbenchReport:
        """
        What pgbench says of its run, and its log, which becomes the attributes.

        Raises:
            MeasurementInvalid: Not every transaction of the profile ran.
        """
        self._deadlocks.look()
        deadlocks = self._deadlocks.count
        report = parse_report(self._output.read_text(errors="replace"))
        wanted = self._profile.workload.run.operations
        failed, ended = report.failed_transactions, report.transactions
        # pgbench goes on after both, and counts the transaction as failed.
        known = deadlocks + report.serialization_failures
        if failed > known or wanted not in (None, ended + failed):
            raise MeasurementInvalid(
                f"{ended} transactions ran and {failed} failed, {deadlocks} of them in "
                f"deadlocks and {report.serialization_failures} to serialize, expected {wanted}"
            )
        if _times_are_wanted(self._profile):
            clients = self._profile.workload.run.clients
            log = read_logs(self._folder.glob(f"{_LOG_PREFIX}.*"))
            self.standing = standing(log, clients)
            self.course = course(log, clients)
            if self._session_clock is not None:
                self.session_times = self._session_clock.times(log)
                if self.standing is not None:
                    part = inside(self.standing, self._session_clock.looks, log)
                    self.standing = replace(self.standing, inside=part)
            # The server's own log has no record of a transaction that found no row.
            self.ended = Ended.of(log.ends_s, log.failed_ends_s)
        if self._held_s and self.ended is not None:
            self.snapshots = tuple(
                (self.ended.share(began_s), self.ended.share(ended_s))
                for began_s, ended_s in self._held_s
            )
        return report

    def _environment(self) -> dict[str, str]:
        environment = self._cluster.client_env()
        settings = {"log_min_messages": "warning"}  # a worker's level would log every statement
        if self._profile.workload.builtin is None:
            settings |= FIND_SETTINGS[session_find(self._profile)]
        isolation = self._profile.workload.run.isolation
        if isolation != "read committed":
            settings["default_transaction_isolation"] = isolation.replace(" ", "\\ ")
        environment["PGOPTIONS"] = " ".join(f"-c {n}={v}" for n, v in settings.items())
        return environment

    def _arguments(self, folder: Path) -> list[str]:
        run, workload = self._profile.workload.run, self._profile.workload
        arguments = ["-n", "-M", "prepared", "-j", "1", "-c", str(run.clients)]
        arguments += [f"--random-seed={run.seed}", "--failures-detailed"]
        if run.operations is not None:
            arguments += ["-t", str(run.operations // run.clients)]
        else:
            assert run.duration_s is not None, "a run has one of the two"
            arguments += ["-T", str(int(run.duration_s))]
            if run.rate_per_s is not None:
                arguments += ["-R", repr(run.rate_per_s)]
        if _times_are_wanted(self._profile):
            arguments += ["--log", f"--log-prefix={_LOG_PREFIX}"]
        if workload.builtin is not None:
            return [*arguments, *self._builtin_arguments(folder, workload.builtin)]
        for name, value in variables(self._profile).items():
            arguments += ["-D", f"{name}={value}"]
        for n, script in enumerate(scripts(self._profile)):
            path = folder / f"script-{n}.sql"
            path.write_text(script.text, encoding="utf-8")
            arguments += ["-f", f"{path.name}@{script.weight}"]
        return arguments

    def _builtin_arguments(self, folder: Path, builtin: PgbenchBuiltin) -> list[str]:
        """The script of pgbench's own, with the lines before it that wait for maintenance."""
        before = gate_lines(self._profile)
        if not before:
            return ["-b", builtin.builtin]
        path, _ = find_client("pgbench", self._host.programs)
        shown = self._host.run([path, f"--show-script={builtin.builtin}"])
        if shown.returncode != 0:
            raise LabError(f"pgbench does not show its script: {shown.stderr.strip()[-500:]}")
        lines = shown.stderr.splitlines()
        script = folder / "script.sql"
        script.write_text("\n".join([*before, *lines]) + "\n", encoding="utf-8")
        given = gate_variables(self._profile) | {"scale": builtin.scale}
        definitions = [f"-D{name}={value}" for name, value in given.items()]
        return [*definitions, "-f", script.name]


def _are_alone(profile: Profile) -> bool:
    """Whether several clients, as fast as they can, are the only sessions of their database."""
    run = profile.workload.run
    has_others = bool(run.snapshots) or bool(run.maintenance)
    return run.clients > 1 and run.rate_per_s is None and not has_others


def _times_are_wanted(profile: Profile) -> bool:
    """Whether anybody asks when transactions ended: for clients, or what the server does."""
    server = profile.server
    return (
        profile.workload.run.clients > 1
        or bool(profile.workload.run.snapshots)
        or (bool(profile.workload.run.maintenance) and not is_counted(profile.workload.run))
        or profile.may_autovacuum
        or server.checkpoint_interval_s is not None
        or server.max_wal_size_bytes is not None
    )
