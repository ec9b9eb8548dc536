"""
A borrowed server: somebody's, reached by a connection, with a database of our own on it.

The database that the connection names is the *maintenance database*: there we create and drop our
own, and hold one idle session without a snapshot. Nothing else on the server is touched.

Our database is called pgheadroom_LABEL_RANDOM and carries a comment. While the run lives, its
maintenance session holds an advisory lock whose key follows from the database's name; it is taken
before the database is created. So a database with our comment whose lock nobody holds belongs to a
dead run: the next run of the same role drops it, if the watchdog of the dead one could not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import secrets
import subprocess
import sys
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgheadroom import quoting
from pgheadroom.errors import ConnectionFailed, InputError, PrivilegeMissing, UnsupportedServer
from pgheadroom.servers import borrowed_watchdog
from pgheadroom.servers.cluster import APPLICATION_NAME
from pgheadroom.servers.environment import client_environment
from pgheadroom.servers.run_folder import RunFolder
from pgheadroom.types import PgVersion

if TYPE_CHECKING:
    import psycopg

_log = logging.getLogger(__name__)

_MARK = "pgheadroom: throw-away database of a run, to be dropped when the run is over"
_NAME = r"^pgheadroom_[a-z0-9_]+_[0-9a-f]{12}$"
_CONNECT_TIMEOUT_S = 15
_WATCHDOG_EXIT_S = 10.0
_LOCK_HOLDERS = """
    SELECT count(*) FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
      AND classid::int8 = (%(key)s::int8 >> 32) & 4294967295
      AND objid::int8 = %(key)s::int8 & 4294967295
"""
"""Sessions, in whichever database, that hold the advisory lock of a 64-bit key."""
_STALE = """
    SELECT d.datname FROM pg_catalog.pg_database d
    WHERE d.datname ~ %(name)s AND d.datname <> pg_catalog.current_database()
      AND pg_catalog.pg_get_userbyid(d.datdba) = current_user
      AND pg_catalog.shobj_description(d.oid, 'pg_database') = %(mark)s
"""


def lock_key(dbname: str) -> int:
    """The 64-bit key of the advisory lock that guards a database of ours."""
    return int.from_bytes(hashlib.sha256(dbname.encode()).digest()[:8], "big", signed=True)


class BorrowedServer:
    """
    A database of our own on an existing server; a context manager, used once.

    Args:
        conninfo: A libpq URI or conninfo string; what it leaves out, PG* variables, a service or a
            password file may give.
        label: Becomes part of the database's name.
    """

    def __init__(self, conninfo: str, *, label: str = "lab") -> None:
        self._conninfo = conninfo
        self._run = RunFolder(label=label, user=None)
        word = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")[:30] or "lab"
        self.dbname = f"pgheadroom_{word}_{secrets.token_hex(6)}"
        self._parameters: dict[str, Any] = {}
        self._maintenance: psycopg.Connection[Any] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._version: PgVersion | None = None
        self._pid = os.getpid()

    @property
    def version(self) -> PgVersion:
        """The server's version; known once it is entered."""
        assert self._version is not None, "not entered"
        return self._version

    @property
    def folder(self) -> Path:
        """A folder for the run's files; it goes at the end."""
        return self._run.path

    @property
    def scratch(self) -> Path:
        """Working directory of client programs."""
        return self._run.scratch

    def __enter__(self) -> BorrowedServer:
        self._pid = os.getpid()
        try:
            self._maintenance = self._connect_first()
            self._run.__enter__()
            _borrowed.add(self)
            self._require_rights(self._maintenance)
            self._sweep(self._maintenance)
            self._create(self._maintenance)
        except BaseException:
            self._leave(quiet=True)
            raise
        return self

    def __exit__(self, exception_type: object, *_: object) -> None:
        self._leave(quiet=exception_type is not None)

    # Sessions

    def _connect_first(self) -> psycopg.Connection[Any]:
        """Connect to the maintenance database, and remember how it was reached."""
        import psycopg  # noqa: PLC0415 - loads libpq
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

        try:
            given: dict[str, Any] = conninfo_to_dict(self._conninfo)
        except psycopg.ProgrammingError:
            # libpq quotes what it could not read, and that may be the password.
            raise InputError(
                "the connection is not understood: expected postgresql://user@host:port/dbname or "
                "host=... dbname=..., with special characters percent-encoded (URI) or quoted"
            ) from None
        if "@" in str(given.get("host", "")).lstrip("@"):
            raise InputError("the connection's host contains '@': write a password's '@' as %40")
        given.setdefault("connect_timeout", _CONNECT_TIMEOUT_S)
        given["application_name"] = APPLICATION_NAME
        try:
            connection = psycopg.connect(**given, autocommit=True)
        except psycopg.Error as error:
            raise ConnectionFailed(_without_password(str(error).strip(), given)) from None
        info = connection.info
        self._version = PgVersion.of_server(
            info.server_version, info.parameter_status("server_version") or ""
        )
        # From here on without the service, which might name another database, and at the one
        # server that answered, if several were listed.
        parameters: dict[str, Any] = {
            name: value
            for name, value in info.get_parameters().items()
            if name not in ("service", "servicefile", "passfile", "dbname", "target_session_attrs")
        }
        parameters |= {"host": info.host, "port": info.port, "user": info.user}
        if info.hostaddr and not info.host.startswith(("/", "@")):
            parameters["hostaddr"] = info.hostaddr
        else:
            parameters.pop("hostaddr", None)
        if info.password:
            parameters["password"] = info.password
        parameters["application_name"] = APPLICATION_NAME
        parameters["connect_timeout"] = given["connect_timeout"]
        self._parameters = parameters | {"dbname": info.dbname}
        borrowed_watchdog.prepare(connection)
        return connection

    def connect(self, **kwargs: Any) -> psycopg.Connection[Any]:
        """
        Open a session in our database, in autocommit mode; `kwargs` as for `psycopg.connect`.

        Raises:
            ConnectionFailed: The server does not answer any more.
        """
        import psycopg  # noqa: PLC0415 - loaded by now

        assert "dbname" not in kwargs, "only our own database"
        parameters = self._parameters | {"dbname": self.dbname, "autocommit": True} | kwargs
        try:
            return psycopg.connect(**parameters)
        except psycopg.Error as error:
            raise ConnectionFailed(_without_password(str(error).strip(), parameters)) from None

    def client_env(self) -> dict[str, str]:
        """
        The whole environment for a client program of our database.

        The password is in a file of the run folder, not in the environment.
        """
        import psycopg  # noqa: PLC0415 - loaded by now

        environment = client_environment()
        parameters = self._parameters | {"dbname": self.dbname}
        password = parameters.pop("password", None)
        for option in psycopg.pq.Conninfo.get_defaults():
            keyword = option.keyword.decode()
            if keyword in parameters and option.envvar is not None:
                environment[option.envvar.decode()] = str(parameters[keyword])
        if password is not None:
            environment["PGPASSFILE"] = str(self._password_file(password))
        return environment

    def _password_file(self, password: str) -> Path:
        if "\n" in password:
            raise InputError("a password with a line break cannot be handed to client programs")
        path = self._run.path / "passfile"
        if not path.exists():
            escaped = password.replace("\\", "\\\\").replace(":", "\\:")
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(f"*:*:*:*:{escaped}\n")
        return path

    def run(
        self,
        args: Iterable[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run a client program to its end, by default on our database; `RunFolder.run`."""
        env = self.client_env() if env is None else env
        return self._run.run(args, env=env, input=input, timeout=timeout, **options)

    def popen(
        self, args: Iterable[str | Path], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a client program that does not outlive the run; `RunFolder.popen`."""
        env = self.client_env() if env is None else env
        return self._run.popen(args, env=env, **options)

    # The database

    def _require_rights(self, connection: psycopg.Connection[Any]) -> None:
        row = connection.execute(
            "SELECT current_user, rolcreatedb OR rolsuper, pg_is_in_recovery() "
            "FROM pg_catalog.pg_roles WHERE rolname = current_user"
        ).fetchone()
        assert row is not None, "the current role has a row in pg_roles"
        role, may_create, in_recovery = row
        if in_recovery:
            raise UnsupportedServer(
                "the server is a standby: no database can be created there; name the primary"
            )
        if not may_create:
            raise PrivilegeMissing(
                f"the role {role} may not create a database on this server; an experiment needs "
                "one of its own, so that it touches no other",
                grant=f"ALTER ROLE {quoting.shown_identifier(role)} CREATEDB;",
            )

    def _create(self, connection: psycopg.Connection[Any]) -> None:
        import psycopg  # noqa: PLC0415 - loaded by now

        key = lock_key(self.dbname)
        connection.execute("SELECT pg_catalog.pg_advisory_lock(%s)", (key,))
        self._watchdog = self._start_watchdog(key)
        quoted = quoting.identifier(self.dbname)
        # Locale C as on throw-away servers; template0 allows any, and holds nobody's objects.
        provider = " LOCALE_PROVIDER libc" if self.version.major >= 15 else ""
        try:
            connection.execute(
                f"CREATE DATABASE {quoted} TEMPLATE template0 ENCODING 'UTF8'{provider} "
                "LC_COLLATE 'C' LC_CTYPE 'C'"
            )
            connection.execute(f"COMMENT ON DATABASE {quoted} IS {quoting.literal(_MARK)}")
        except psycopg.errors.InsufficientPrivilege as error:
            raise PrivilegeMissing(f"the server refused to create a database: {error}") from error

    def _start_watchdog(self, key: int) -> subprocess.Popen[bytes]:
        job = {
            "module_path": sys.path,
            "parameters": self._parameters,
            "dbname_quoted": quoting.identifier(self.dbname),
            "lock_key": key,
        }
        process = subprocess.Popen(
            [sys.executable, "-I", str(Path(borrowed_watchdog.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(job).encode() + b"\n")
        return process

    def _sweep(self, connection: psycopg.Connection[Any]) -> None:
        """Drop databases of our role that dead runs left."""
        import psycopg  # noqa: PLC0415 - loaded by now

        rows = connection.execute(_STALE, {"name": _NAME, "mark": _MARK}).fetchall()
        for (dbname,) in rows:
            holders = connection.execute(_LOCK_HOLDERS, {"key": lock_key(dbname)}).fetchone()
            if holders is None or holders[0] != 0:
                continue
            _log.info("dropping database %s of a run that was killed", dbname)
            try:
                connection.execute(
                    f"DROP DATABASE IF EXISTS {quoting.identifier(dbname)} WITH (FORCE)"
                )
            except psycopg.Error as error:
                _log.warning("database %s of a dead run could not be dropped: %s", dbname, error)

    def _leave(self, *, quiet: bool) -> None:
        """Drop the database, end the watchdog, remove the folder; `quiet`: only log failures."""
        if os.getpid() != self._pid:
            return  # in a forked child it is the parent's
        _borrowed.discard(self)
        failure: Exception | None = None
        try:
            failure = self._drop()
        finally:
            maintenance, self._maintenance = self._maintenance, None
            if maintenance is not None:
                maintenance.close()
            self._run.close()
        if failure is not None:
            message = (
                f"database {self.dbname} could not be dropped: "
                f"{_without_password(str(failure).strip(), self._parameters)}; a background "
                "process goes on trying for some minutes, and the next run there tries again"
            )
            if not quiet:
                raise ConnectionFailed(message) from None
            _log.warning("%s", message)

    def _drop(self) -> Exception | None:
        import psycopg  # noqa: PLC0415 - loaded by now

        watchdog, self._watchdog = self._watchdog, None
        if watchdog is None:
            return None  # nothing was created
        assert watchdog.stdin is not None
        quoted = quoting.identifier(self.dbname)
        failure: Exception | None = None
        try:
            assert self._maintenance is not None
            try:
                self._maintenance.execute(f"DROP DATABASE IF EXISTS {quoted} WITH (FORCE)")
            except psycopg.OperationalError:
                # The session is lost, or still busy because Ctrl-C came in the middle: close it,
                # so that our lock becomes free when the server has ended it too.
                self._maintenance.close()
                with psycopg.connect(**self._parameters, autocommit=True) as another:
                    borrowed_watchdog.drop(another, quoted, lock_key(self.dbname))
            with contextlib.suppress(OSError):  # killed by somebody: not needed any more
                watchdog.stdin.write(borrowed_watchdog.DROPPED)
        except psycopg.Error as error:
            failure = error
        finally:
            watchdog.stdin.close()
        if failure is None:
            try:
                watchdog.wait(timeout=_WATCHDOG_EXIT_S)
            except subprocess.TimeoutExpired:  # on a busy machine it may still be starting
                watchdog.kill()
                watchdog.wait()
        else:
            watchdog.returncode = 0  # It is meant to outlive us: no warning about that.
        return failure

    def forget_in_child(self) -> None:
        """In a forked child: let go of the session and the lifeline of our parent."""
        if self._maintenance is not None and not self._maintenance.closed:
            with contextlib.suppress(OSError):
                os.close(self._maintenance.fileno())
        if self._watchdog is not None and self._watchdog.stdin is not None:
            self._watchdog.stdin.close()


_borrowed: weakref.WeakSet[BorrowedServer] = weakref.WeakSet()


def _forget_in_child() -> None:
    for server in list(_borrowed):
        server.forget_in_child()
    _borrowed.clear()


os.register_at_fork(after_in_child=_forget_in_child)


def _without_password(message: str, parameters: Mapping[str, Any]) -> str:
    """Libpq does not print passwords; should a message contain one all the same, it goes."""
    password = parameters.get("password")
    return message.replace(str(password), "********") if password else message
