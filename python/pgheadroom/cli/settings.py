"""
`pgheadroom settings`: what of the settings would be changed, each with what it follows from.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgheadroom.cli import output
from pgheadroom.cli.connection import (
    DbnameOption,
    HostOption,
    PortOption,
    UserOption,
    parameters_of,
)
from pgheadroom.cli.idle import refuse
from pgheadroom.cli.options import Format, FormatOption, OutputOption
from pgheadroom.errors import InputError
from pgheadroom.quoting import printable
from pgheadroom.units import parse_duration_s, parse_setting_bytes

if TYPE_CHECKING:
    from pgheadroom.settings import ServerMachine, SettingsAdvice
    from pgheadroom.settings.in_force import SettingInForce
    from pgheadroom.wal.what_if_values import WhatIf


class DiskKind(StrEnum):
    """Disks under a data directory."""

    SSD = "ssd"
    HDD = "hdd"
    NETWORK = "network"


class WorkloadKind(StrEnum):
    """Kinds of load, as pgtune has them."""

    WEB = "web"
    OLTP = "oltp"
    DW = "dw"
    MIXED = "mixed"


_MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", help="Of the machine, or the container, for PostgreSQL: 64GB."),
]
_CoresOption = Annotated[int | None, typer.Option("--cores", help="Processor cores.")]
_DiskOption = Annotated[
    DiskKind | None, typer.Option("--disk", help="Under the data directory: ssd, hdd, network.")
]
_ConnectionsOption = Annotated[
    int | None,
    typer.Option("--connections", help="Sessions at once (default with CONN: max_connections)."),
]
_WorkloadOption = Annotated[
    WorkloadKind | None,
    typer.Option("--workload", help="web, oltp (short statements), dw (reports) or mixed."),
]
_ServerOption = Annotated[
    str | None,
    typer.Option("--server", help="Without a connection: for this version, 15 to 19."),
]
_LengthOption = Annotated[
    str | None,
    typer.Option(
        "--for",
        help="Read counters twice, so far apart, e.g. 10m (default: what the statistics have "
        "since their start).",
    ),
]
_WalOption = Annotated[
    list[Path] | None,
    typer.Option("--wal", help="Segments of its log, or folders of them: checkpoints by these."),
]
_AlterOption = Annotated[
    bool,
    typer.Option("--alter-system", help="Print ALTER SYSTEM and its undo, instead of a fragment."),
]


def settings_command(
    target: Annotated[str, typer.Argument(help="A connection; without it, as libpq's PG*.")] = "",
    memory: _MemoryOption = None,
    cores: _CoresOption = None,
    disk: _DiskOption = None,
    connections: _ConnectionsOption = None,
    workload: _WorkloadOption = None,
    server: _ServerOption = None,
    length: _LengthOption = None,
    wal: _WalOption = None,
    alter: _AlterOption = False,
    form: FormatOption = Format.TEXT,
    to: OutputOption = None,
    host: HostOption = None,
    port: PortOption = None,
    user: UserOption = None,
    dbname: DbnameOption = None,
) -> None:
    """
    A fragment of postgresql.conf: what would be changed, and what each line follows from.

    Only reads. What is right as it is gets no line. What nobody can know from a connection
    (memory, cores, disk) is asked by an option; without it, its settings are named and left out.
    """
    from pgheadroom.settings import ServerMachine

    given = ServerMachine(
        memory_bytes=None if memory is None else _memory(memory),
        cores=cores,
        disk=None if disk is None else disk.value,
        connections=connections,
        workload=None if workload is None else workload.value,
    )
    if alter and form is not Format.TEXT:
        raise InputError("--alter-system does nothing with --format: every other form has them")
    output.check_outputs(to)
    interval_s = None if length is None else parse_duration_s(length)
    parameters = parameters_of(host, port, user, dbname)
    if server is not None:
        if target or parameters:
            raise InputError("--server is for no server: expected a connection or --server")
        refuse(
            {"--for": length, "--alter-system": alter},
            where="with --server, where no server is asked",
            instead="give a connection instead of --server",
        )
        found = _by_rule(given, server, wal)
    else:
        found = _of_server(target, parameters, given, interval_s, wal)
    _put(found, form, to, alter=alter)


def _memory(written: str) -> int:
    try:
        return parse_setting_bytes(written)
    except InputError as error:
        raise InputError(f"--memory: {error}") from None


def _by_rule(given: ServerMachine, server: str, wal: list[Path] | None) -> SettingsAdvice:
    from pgheadroom.settings import settings_for
    from pgheadroom.types import PgVersion

    major = PgVersion.parse(server).major
    return settings_for(given, major, log=_log(wal, {}) if wal else None)


def _of_server(
    target: str,
    parameters: dict[str, str],
    given: ServerMachine,
    interval_s: float | None,
    wal: list[Path] | None,
) -> SettingsAdvice:
    from pgheadroom.settings import settings_live

    return settings_live(
        target,
        parameters,
        given,
        interval_s=interval_s,
        log=None if not wal else lambda in_force: _log(wal, in_force),
        say=_say,
    )


def _log(wal: list[Path], in_force: Mapping[str, SettingInForce]) -> WhatIf:
    from pgheadroom.wal import wal_what_if
    from pgheadroom.wal.other_checkpoints import Grid

    grid = Grid()
    if in_force:
        grid = Grid(
            completion_target=in_force["checkpoint_completion_target"].number,
            timeout_in_force_s=in_force["checkpoint_timeout"].number,
            size_in_force_bytes=int(in_force["max_wal_size"].number),
        )
    return wal_what_if(wal, grid=grid)


def _say(text: str) -> None:
    sys.stderr.write(f"settings: {printable(text)}\n")
    sys.stderr.flush()


def _put(found: SettingsAdvice, form: Format, to: Path | None, *, alter: bool) -> None:
    from pgheadroom.report import settings as settings_report
    from pgheadroom.report import text

    made = {
        Format.JSON: lambda: text.as_json(found.to_json()),
        Format.CSV: lambda: settings_report.as_csv(found),
        Format.MARKDOWN: lambda: settings_report.as_markdown(found),
        Format.TEXT: lambda: (
            settings_report.statements(found) if alter else settings_report.fragment(found)
        ),
    }
    output.write(made[form](), to)
