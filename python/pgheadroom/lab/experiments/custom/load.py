"""
What `custom` runs: a profile, or a pgbench script with the schema that it works on.

Both become the same few things: how to load, pgbench's arguments, settings of the server.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pgheadroom.errors import InputError
from pgheadroom.lab.design import LevelValue, Request
from pgheadroom.lab.place import Running
from pgheadroom.profile import Profile, read_profile
from pgheadroom.quoting import identifier, literal

TRANSACTIONS_DEFAULT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyWorkload:
    """
    A workload that is ready to be loaded and run.

    `files` are written beside pgbench under their names; `session` are settings that its clients
    work with.
    """

    clients: int
    transactions: int
    arguments: tuple[str, ...]
    files: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)
    session: Mapping[str, str] = field(default_factory=dict)
    profile: Profile | None = None
    schema: str | None = None


def profile_of(request: Request) -> Profile:
    """
    The profile that the request holds as text.

    Raises:
        InputError: Not a profile; or one with what only `prove` plays.
    """
    name = str(request.options["profile"])
    if "profile_text" not in request.options:
        raise InputError(f"profile {name} cannot be read: expected the path of a profile file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_text(str(request.options["profile_text"]), encoding="utf-8")
        profile = read_profile(path)
    run = profile.workload.run
    if run.snapshots or run.maintenance or run.rate_per_s is not None:
        raise InputError(
            f"profile {name} has snapshots, maintenance or a rate, which this experiment does not "
            "play: expected a profile without; `prove` plays them"
        )
    return profile


def work_of(request: Request) -> ReadyWorkload:
    """
    The workload of a request.

    Raises:
        InputError: Neither a profile nor a script, both, or a file that cannot be read.
    """
    options = request.options
    given = [name for name in ("profile", "script") if name in options]
    if len(given) != 1:
        raise InputError(
            "custom needs `profile=FILE`, or `script=FILE` with `schema=FILE`; "
            f"found {' and '.join(given) or 'neither'}",
            mentions=("profile=FILE", "script=FILE", "schema=FILE"),
        )
    return _of_profile(request) if given == ["profile"] else _of_script(request)


def _of_profile(request: Request) -> ReadyWorkload:
    from pgheadroom.play.scripts import (  # noqa: PLC0415 - slow
        FIND_SETTINGS,
        scripts,
        session_find,
        variables,
    )
    from pgheadroom.play.settings import late_settings, start_settings  # noqa: PLC0415 - slow

    profile = profile_of(request)
    run = profile.workload.run
    clients = int(request.options["clients"]) or run.clients
    wanted = int(request.options["transactions"]) or run.operations or TRANSACTIONS_DEFAULT
    # A trial starts a loaded copy, so what `play` sets after loading is set from the start.
    settings = {**start_settings(profile), **late_settings(profile)}
    if profile.workload.builtin is not None:
        arguments: tuple[str, ...] = ("-b", profile.workload.builtin.builtin)
        return _work(clients, wanted, arguments, {}, settings=settings, profile=profile)
    files = {f"script-{n}.sql": each.text for n, each in enumerate(scripts(profile))}
    weights = [each.weight for each in scripts(profile)]
    pairs = [("-f", f"{name}@{weight}") for name, weight in zip(files, weights, strict=True)]
    values = [("-D", f"{name}={value}") for name, value in variables(profile).items()]
    arguments = ("-M", "prepared", *(part for pair in (*values, *pairs) for part in pair))
    return _work(
        clients,
        wanted,
        arguments,
        files,
        settings=settings,
        session=FIND_SETTINGS[session_find(profile)],
        profile=profile,
    )


def _of_script(request: Request) -> ReadyWorkload:
    for name in ("script", "schema"):
        if f"{name}_text" not in request.options:
            raise InputError(
                f"{name} {request.options.get(name, '(not given)')} cannot be read: expected "
                f"`{name}=FILE` with the path of "
                + ("a pgbench script" if name == "script" else "the SQL that loads its tables"),
                mentions=(f"{name}=FILE",),
            )
    return _work(
        int(request.options["clients"]) or 1,
        int(request.options["transactions"]) or TRANSACTIONS_DEFAULT,
        ("-M", str(request.options["protocol"]), "-s", str(request.scale), "-f", "script.sql"),
        {"script.sql": str(request.options["script_text"])},
        schema=str(request.options["schema_text"]),
    )


def _work(
    clients: int,
    transactions: int,
    arguments: tuple[str, ...],
    files: Mapping[str, str],
    *,
    settings: Mapping[str, str] | None = None,
    session: Mapping[str, str] | None = None,
    profile: Profile | None = None,
    schema: str | None = None,
) -> ReadyWorkload:
    """The same number of transactions for each client, as pgbench's -t wants it."""
    return ReadyWorkload(
        clients=clients,
        transactions=max(transactions // clients, 1) * clients,
        arguments=arguments,
        files=files,
        settings=settings or {},
        session=session or {},
        profile=profile,
        schema=schema,
    )


def load(
    server: Running, *, work: ReadyWorkload, scale: int, reloptions: Mapping[str, LevelValue]
) -> None:
    """
    Load the workload's tables with the reloptions of a cell in force.

    Args:
        server: A running server with an empty database.
        work: The workload.
        scale: `:scale` of a schema file.
        reloptions: By `option` for every table, or `table.option`.
    """
    if work.profile is not None and work.profile.workload.builtin is not None:
        builtin = work.profile.workload.builtin
        server.run_client(
            ["pgbench", "-i", "-q", "-I", "dtGvp", "-s", str(builtin.scale)], timeout_s=7200
        )
        _alter(server, {**_own_fillfactors(builtin.fillfactor), **reloptions})
    elif work.profile is not None:
        from pgheadroom.play.load import load as load_profile  # noqa: PLC0415 - slow

        with server.connect() as connection:
            load_profile(connection, with_reloptions(work.profile, reloptions))
    else:
        path = server.scratch.parent / f"{server.scratch.name}-schema.sql"
        path.write_text(str(work.schema), encoding="utf-8")
        path.chmod(0o644)
        server.run_client(
            ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", f"scale={scale}", "-f", str(path)],
            timeout_s=7200,
        )
        path.unlink()
        _alter(server, reloptions)
        with server.connect() as connection:
            connection.execute("VACUUM (ANALYZE)")
    if work.session:
        # Of the database, which is ours on a borrowed server too; a role may be somebody's.
        with server.connect() as connection:
            row = connection.execute("SELECT current_database()").fetchone()
            assert row is not None, "a function returns one row"
            for name, value in work.session.items():
                sql = f"ALTER DATABASE {identifier(row[0])} SET {identifier(name)} = "
                connection.execute(f"{sql}{literal(value)}".encode())
    server.checkpoint()


def _own_fillfactors(fillfactor: Mapping[str, int]) -> dict[str, LevelValue]:
    return {f"{table}.fillfactor": value for table, value in fillfactor.items()}


def load_settings(work: ReadyWorkload) -> dict[str, str]:
    """
    What a load has otherwise than loads have.

    How much a GIN's build gathers before it writes decides on its pages, so there memory is what
    the profile says, or PostgreSQL's default.
    """
    if work.profile is None or not has_gin(work.profile):
        return {}
    name = "maintenance_work_mem"
    return {name: work.settings.get(name, "64MB")}


def has_gin(profile: Profile) -> bool:
    """Whether memory decides what comes to an index at once."""
    return any(index.method == "gin" for table in profile.tables for index in table.indexes)


def with_reloptions(profile: Profile, reloptions: Mapping[str, LevelValue]) -> Profile:
    """The profile with a cell's reloptions: its tables are created with them."""
    for key, value in reloptions.items():
        table, _, option = key.rpartition(".")
        if table and table not in profile.table_names:
            raise InputError(
                f"{key}: the profile has no table {table!r}; it has "
                + ", ".join(profile.table_names)
            )
        changed = []
        for each in profile.tables:
            if table not in ("", each.name):
                changed.append(each)
            elif option == "fillfactor":
                changed.append(each.loaded_at(int(value)))
            else:
                changed.append(replace(each, reloptions={**each.reloptions, option: str(value)}))
        profile = replace(profile, tables=tuple(changed))
    return profile


def _alter(server: Running, reloptions: Mapping[str, LevelValue]) -> None:
    """Set reloptions on loaded tables, and rewrite those whose fillfactor changes."""
    with server.connect() as connection:
        names = [
            str(name)
            for (name,) in connection.execute(
                "SELECT relname FROM pg_stat_user_tables ORDER BY relname"
            ).fetchall()
        ]
        for key, value in reloptions.items():
            table, _, option = key.rpartition(".")
            if table and table not in names:
                raise InputError(
                    f"{key}: there is no table {table!r} after loading; found "
                    + (", ".join(names) or "none")
                )
            for name in [table] if table else names:
                sql = f"ALTER TABLE {identifier(name)} SET ({identifier(option)} = "
                connection.execute(f"{sql}{literal(str(value))})".encode())
                if option == "fillfactor":
                    # As if loaded with it: rows in their order, indexes built anew.
                    connection.execute(f"VACUUM (FULL, ANALYZE) {identifier(name)}".encode())
                    connection.execute(f"VACUUM {identifier(name)}".encode())
