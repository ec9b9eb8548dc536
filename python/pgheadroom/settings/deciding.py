"""
All rules together: what they say of a machine, its settings and its load.
"""

from __future__ import annotations

from collections.abc import Sequence

import pgheadroom
from pgheadroom.errors import ParameterError
from pgheadroom.settings import checkpoints, machine, memory, shared_memory, vacuum
from pgheadroom.settings.case import Said, SettingRule, SettingsCase
from pgheadroom.settings.in_force import defaults_of
from pgheadroom.settings.measured import CountedLoad
from pgheadroom.settings.values import (
    KeptSetting,
    OpenSetting,
    ServerMachine,
    SettingLine,
    SettingsAdvice,
)
from pgheadroom.units import show_bytes
from pgheadroom.wal.what_if_values import WhatIf

MAJORS = (15, 16, 17, 18, 19)
RULES: tuple[SettingRule, ...] = (
    memory.decide,
    shared_memory.decide,
    machine.decide,
    checkpoints.decide,
    vacuum.decide,
)


def check_given(given: ServerMachine) -> None:
    """
    Refuse a machine on which nothing runs.

    Raises:
        ParameterError: Too little memory, no core, no session.
    """
    if given.memory_bytes is not None and given.memory_bytes < memory.MEMORY_MIN_BYTES:
        raise ParameterError(
            "memory",
            f"{show_bytes(given.memory_bytes)}: expected {show_bytes(memory.MEMORY_MIN_BYTES)} or "
            "more, the memory of the machine or the container",
        )
    if given.cores is not None and not 1 <= given.cores <= 1024:
        raise ParameterError("cores", f"{given.cores}: expected 1 to 1024")
    if given.connections is not None and not 1 <= given.connections <= 262_143:
        raise ParameterError("connections", f"{given.connections}: expected 1 to 262143")


def decided(case: SettingsCase) -> tuple[Said, ...]:
    """
    What all rules say.

    Raises:
        ParameterError: So many sessions do not fit into the memory.
    """
    sessions = case.given.connections
    if case.given.memory_bytes is not None and sessions is not None:
        most = memory.most_connections(case, case.given.memory_bytes)
        if sessions > most:
            raise ParameterError(
                "connections",
                f"{sessions}: expected at most {max(most, 0)} with "
                f"{show_bytes(case.given.memory_bytes)} of memory, for each sorts in 64 kB at "
                "least; have a pooler hold the others",
            )
    return tuple(said for rule in RULES for said in rule(case))


def advice_of(
    case: SettingsCase,
    said: Sequence[Said],
    *,
    server: str,
    database: str | None,
    remarks: Sequence[str] = (),
) -> SettingsAdvice:
    """The answer as a value."""
    return SettingsAdvice(
        tool_version=pgheadroom.__version__,
        server=server,
        database=database,
        given=case.given,
        counted=None if case.counted is None else counted_in(case.counted),
        lines=tuple(each for each in said if isinstance(each, SettingLine)),
        kept=tuple(each for each in said if isinstance(each, KeptSetting)),
        asked=tuple(each for each in said if isinstance(each, OpenSetting)),
        remarks=tuple(remarks),
    )


def counted_in(counted: CountedLoad) -> str:
    """Over which times, in words."""
    if counted.over == counted.wal_over:
        return counted.over
    return f"{counted.over} of this database, {counted.wal_over} of WAL"


def settings_for(given: ServerMachine, major: int, *, log: WhatIf | None = None) -> SettingsAdvice:
    """
    Settings for a machine, without a server.

    Args:
        given: The machine.
        major: The server's version, 15 to 19.
        log: The write-ahead log under other checkpoints.

    Raises:
        ParameterError: Another version, or a machine on which nothing runs.
    """
    if major not in MAJORS:
        raise ParameterError("server", f"{major}: expected one of {', '.join(map(str, MAJORS))}")
    check_given(given)
    case = SettingsCase(
        given=given, major=major, in_force=defaults_of(major), is_live=False, log=log
    )
    said = shared_memory.remark(case)
    return advice_of(
        case,
        decided(case),
        server=str(major),
        database=None,
        remarks=() if said is None else (said,),
    )
