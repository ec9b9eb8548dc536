"""
`pgheadroom observe`: a live database becomes a profile.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import observe_fleet, output
from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    LogOption,
    PortOption,
    ServersArgument,
    ServiceFileOption,
    StatementsOption,
    UserOption,
    WalFilesOption,
    WalOption,
    parameters_of,
)
from pgheadroom.cli.idle import refuse
from pgheadroom.cli.observe_wal import said_log
from pgheadroom.cli.on_cluster import refuse_of_one_server
from pgheadroom.cli.options import SchedulerOption, TablesOption
from pgheadroom.errors import DiskFull, HeadroomError, InputError
from pgheadroom.quoting import called, printable, printable_json
from pgheadroom.units import parse_duration_s, percent, show_duration

if TYPE_CHECKING:
    from pgheadroom.profile import Profile
    from pgheadroom.sources.recording import Recording
    from pgheadroom.watch.recalling import Recalled

LENGTH = "5m"
"""How long to watch, where nobody says."""

_TABLES_SHOWN = 10
_LAST_RESORTS = ("/dev/shm", "/var/tmp")  # noqa: S108 - files in them are made by mkstemp


_LengthOption = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="How long to watch, e.g. 2m (default: 5m); counters are read at both ends.",
    ),
]
_ToOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the profile here (JSON); several: the folder."),
]
_MaskOption = Annotated[
    bool, typer.Option("--mask", help="Pseudonyms for names; no statement texts, no literals.")
]
_NoSampleOption = Annotated[
    bool,
    typer.Option(
        "--no-sample",
        help="Read no rows (otherwise at most 1,000 pages and the newest 1,000 rows a table; of "
        "the 20 most updated ones 200 pages more, before the interval and after it).",
    ),
]
_PrintGrantsOption = Annotated[
    bool, typer.Option("--print-grants", help="Print what would let the role see more.")
]
_PrintSqlOption = Annotated[
    bool, typer.Option("--print-sql", help="Print all statements as a psql script; no server.")
]
_SourceOption = Annotated[
    Path | None, typer.Option("--from", help="Read what the psql script has written here.")
]


def observe_command(
    targets: ServersArgument = None,
    service_file: ServiceFileOption = None,
    scheduler: SchedulerOption = None,
    length: _LengthOption = None,
    to: _ToOption = None,
    table: TablesOption = None,
    mask: _MaskOption = False,
    no_sample: _NoSampleOption = False,
    log: LogOption = None,
    statements: StatementsOption = None,
    wal: WalOption = False,
    wal_files: WalFilesOption = None,
    print_grants: _PrintGrantsOption = False,
    print_sql: _PrintSqlOption = False,
    source: _SourceOption = None,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
) -> None:
    """
    Watch a live database, only reading, and write a profile of its tables and workload.

    Several are watched side by side, with a profile each in the folder -o; exit code 3 where one
    of them does not answer.
    """
    from pgheadroom.profile import to_json

    parameters = parameters_of(host, port, user, dbname)
    logged: dict[str, object] = {"--log": log, "--wal": wal, "--wal-files": wal_files}
    reading = {"--mask": mask, "--statements": statements, **logged}
    if service_file is not None or len(targets or ()) > 1:
        logged |= {"--statements": statements, "--print-grants": print_grants, "--from": source}
        observe_fleet.refuse_of_one(logged | {"--print-sql": print_sql}, "an observe of that one")
        wish = observe_fleet.Wish(length or LENGTH, tuple(table or ()), no_sample, mask)
        several = observe_fleet.Several(tuple(targets or ()), parameters, service_file, scheduler)
        observe_fleet.observe_several(several, to, wish, save)
        return
    refuse_of_one_server(scheduler)
    target, tables = next(iter(targets or ()), ""), tuple(table or ())
    if to is not None:
        output.check_writable(to)
    if print_sql:
        refuse(
            {**reading, "--from": source, "--print-grants": print_grants},
            where="with --print-sql, which only prints the script",
            instead="give it with --from, to the observe that reads what the script wrote",
        )
        output.write(_script(length or LENGTH, tables, no_sample=no_sample), to)
        return
    if source is not None and (target or parameters):
        raise InputError("--from stands beside a connection: expected one of them")
    if print_grants:
        idle = {**reading, "--table": table, "--from": source, "--for": length}
        refuse(
            idle | {"--no-sample": no_sample, "-o": to},
            where="with --print-grants, which only looks at the role's rights",
            instead="give it to the observe that follows",
        )
        _print_grants(target, parameters)
        return
    if source is not None:
        _refuse_beside_script(length, wal, wal_files, no_sample=no_sample)
    profile = observed(
        target,
        parameters,
        source=source,
        length=length or LENGTH,
        tables=tables,
        mask=mask,
        no_sample=no_sample,
        logs=tuple(log or ()),
        statements=tuple(statements or ()),
        wal=wal,
        wal_files=tuple(wal_files or ()),
        to=to,
    )
    save(printable_json(json.dumps(to_json(profile), indent=1, ensure_ascii=False)) + "\n", to)
    summarize(profile)


def _refuse_beside_script(
    length: str | None, wal: bool, wal_files: list[Path] | None, *, no_sample: bool
) -> None:
    """What would do nothing beside what the script has written."""
    refuse(
        {"--for": length, "--no-sample": no_sample},
        where="with --from: the interval and its samples are those of the script's run",
        instead="give it to `observe --print-sql`, which makes the script",
    )
    refuse(
        {"--wal": wal, "--wal-files": wal_files},
        where="with --from: the script does not read the write-ahead log",
        instead="observe the server itself, or sum its files by `wal stats`",
    )


def observed(
    target: str,
    parameters: dict[str, str],
    *,
    source: Path | None,
    length: str,
    tables: tuple[str, ...],
    mask: bool,
    no_sample: bool,
    logs: tuple[Path, ...],
    statements: tuple[Path, ...],
    wal: bool = False,
    wal_files: tuple[Path, ...] = (),
    past: Recalled | None = None,
    to: Path | None = None,
) -> Profile:
    """
    Watch a database, or read what the psql script has written, and make the profile.

    Args:
        target: A connection, as libpq takes it.
        parameters: Of the connection, beside it.
        source: The script's folder instead of a connection.
        length: How long to watch, as people write it.
        tables: Only these; empty: all.
        mask: Put pseudonyms for names.
        no_sample: Read no rows.
        logs: Server logs with statements.
        statements: Files of statements.
        wal: Read the write-ahead log of the interval too.
        wal_files: Read it out of these files and folders.
        past: An interval out of a history instead of one of now.
        to: Where the profile will be written; its room is looked at before the interval.
    """
    from pgheadroom.observe import observe_live, request_of
    from pgheadroom.observe.room import profile_bytes
    from pgheadroom.wal.beside import beside

    # Options first: a mistake in them should not cost an interval.
    request = request_of(parse_duration_s(length), samples=not no_sample, tables=tables)

    def at(moment: str, recording: Recording) -> None:
        if moment == "start" and to is not None:
            check_room(to, profile_bytes(recording))

    with beside(target, parameters, wanted=wal, files=wal_files) as of_wal:

        def each(moment: str, recording: Recording) -> None:
            at(moment, recording)
            of_wal.at(moment)

        profile = observe_live(
            target,
            parameters,
            request,
            source=source,
            mask=mask,
            logs=logs,
            statements=statements,
            past=None if past is None else past.for_observe,
            say=_say,
            at=each,
        )
        return of_wal.add(profile)


def _script(length: str, tables: tuple[str, ...], *, no_sample: bool) -> str:
    from pgheadroom.observe import request_of
    from pgheadroom.sources.script import psql_script

    seconds = parse_duration_s(length)
    return psql_script(request_of(seconds, samples=not no_sample, tables=tables))


def _print_grants(target: str, parameters: dict[str, str]) -> None:
    from pgheadroom.observe.access import read_access
    from pgheadroom.sources.observing import APPLICATION_NAME, look
    from pgheadroom.sources.session import read_only_session
    from pgheadroom.wal.live import grants

    with read_only_session(
        target, {"application_name": APPLICATION_NAME, **parameters}
    ) as connection:
        access = read_access(look(connection), sampled=True)
    lines = [f"-- Seen now: {', '.join(access.levels) or 'only what everyone sees'}"]
    lines += [f"-- Not seen: {missing}" for missing in access.missing]
    lines += access.would_help or ("-- Nothing is missing.",)
    of_log = grants(target, parameters)
    if of_log:
        lines += ["-- For --wal; this one lets the role read every file of the server:", of_log]
    if any("pg_stat_statements" in grant for grant in access.would_help or ()):
        lines.append("-- It also needs shared_preload_libraries = 'pg_stat_statements', a restart.")
    output.write_out("\n".join(lines) + "\n")


def check_room(to: Path, needed_bytes: int) -> None:
    """
    Look for room before an interval is spent.

    Raises:
        InputError: The folder has less than that.
    """
    if to.exists() and not to.is_file():
        return  # a pipe or a device
    folder = to.absolute().parent
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise InputError(
            f"{folder} has {free_bytes / 1e6:,.1f} MB free, and the profile may take "
            f"{needed_bytes / 1e6:,.1f} MB: free some room, name another place with -o, or bound "
            "it with --table"
        )


def save(content: str, to: Path | None) -> None:
    """
    Write a profile; an interval cannot be had again, so it is kept somewhere in any case.

    Raises:
        InputError: It could not be written where it should be; says where it is instead.
    """
    try:
        output.write(content, to)
        if to is None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise  # who reads it has had enough
    except (HeadroomError, OSError) as error:
        why = "no room" if isinstance(error, DiskFull) else str(error)
        place = _last_resort(content)
        if place is None and to is not None:
            output.write_out(content)
            sys.stdout.flush()
            raise InputError(
                f"{to} could not be written ({why}). The profile went to standard output instead"
            ) from None
        if place is None:
            raise
        where = "standard output" if to is None else str(to)
        raise InputError(
            f"{where} could not be written ({why}). The profile is in {place} instead: move it"
        ) from None


def _last_resort(content: str) -> Path | None:
    """Keep a profile in a temporary folder that has room; None where none has."""
    for folder in dict.fromkeys((tempfile.gettempdir(), *_LAST_RESORTS, str(Path.home()))):
        try:
            handle, name = tempfile.mkstemp(".json", "pgheadroom-profile-", dir=folder)
        except OSError:
            continue
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(content)
            return Path(name)
        except OSError:
            Path(name).unlink(missing_ok=True)
    return None


def _say(text: str) -> None:
    sys.stderr.write(f"observe: {printable(text)}\n")
    sys.stderr.flush()


def _lost(reasons: Mapping[str, int]) -> str:
    """Calls of statements that say nothing of updates, and why most of them do not."""
    said = f"{sum(reasons.values())} of them say nothing"
    if not reasons:
        return said
    most = max(reasons, key=lambda reason: reasons[reason])
    return f"{said}, mostly: {most}" if len(reasons) > 1 else f"{said}: {most}"


def summarize(profile: Profile) -> None:
    """For people: what was seen, what was not, the tables with most updates."""
    observed = profile.server.observed
    assert observed is not None, "observe writes what it observed"
    levels = ", ".join(observed.access.levels) or "basic"
    _say(
        f"{len(profile.tables)} tables, {show_duration(observed.interval_s)}, "
        f"PostgreSQL {profile.server.version}; access: {levels}"
    )
    for line in said_log(profile):
        _say(line)
    for line in (*observed.broken, *observed.changed):
        _say(f"! {line}")
    for parent in observed.partitioned:
        if parent.moved_rows:
            _say(
                f"{called(parent.schema, parent.name)}: {parent.moved_rows:,} rows were moved to "
                "another partition by UPDATEs, each one row deleted and one inserted"
            )
    for item in [one for one in observed.left_out or () if not one.is_told_as_changed]:
        _say(f"! left out: {item.schema}.{item.name}: {item.why}")
    for missing in observed.access.missing:
        _say(f"! not seen: {missing}")
    for report in observed.statements or ():
        _say(
            f"statements: {report.source} ({report.detail}), {report.calls} calls, "
            f"{_lost(report.not_understood or {})}"
        )
        for note in report.notes or ():
            _say(f"! {note}")
    for line in observed.assumed:
        _say(f"~ {line}")
    updated = [
        (facts.counters.n_tup_upd or 0, found, facts)
        for found in profile.tables
        if (facts := found.observed) is not None
    ]
    for updates, found, facts in sorted(updated, key=lambda item: -item[0])[:_TABLES_SHOWN]:
        if updates:
            hot, lost_frac = facts.counters.n_tup_hot_upd, facts.updates.unattributed_frac
            share = "unknown" if hot is None else percent(hot / updates, 1)
            lost = "0.0 %" if lost_frac is None else percent(lost_frac, 1)
            unknown = "" if lost == "0.0 %" else f", {lost} known to no source"
            _say(
                f"{found.name}: {updates / observed.interval_s:.1f} updates/s, HOT {share}, "
                f"fillfactor {found.fillfactor}; columns by "
                f"{facts.updates.source or 'no source'}{unknown}"
            )
            if facts.updates.unattributed_hint is not None:
                _say(f"~ {found.name}: {facts.updates.unattributed_hint}")
