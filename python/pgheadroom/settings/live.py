"""
Settings of a live server, only reading: what is in force, what was counted, what would be changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pgheadroom.defaults import JUDGED_FROM_S
from pgheadroom.progress import Say
from pgheadroom.settings import shared_memory
from pgheadroom.settings.case import Said, SettingsCase
from pgheadroom.settings.deciding import advice_of, check_given, decided
from pgheadroom.settings.in_force import NAMES, SettingInForce, setting_of
from pgheadroom.settings.measured import CountedLoad, CounterReading
from pgheadroom.settings.placing import PROVIDERS, placed, provider_of
from pgheadroom.settings.values import ServerMachine, SettingLine, SettingsAdvice
from pgheadroom.sources.session import read_only_session, set_for_session
from pgheadroom.units import show_duration

if TYPE_CHECKING:
    import psycopg

    from pgheadroom.wal.what_if_values import WhatIf

APPLICATION_NAME = "pgheadroom settings"
_SESSION = {"statement_timeout": "5s", "jit": "off", "client_encoding": "UTF8"}

_SETTINGS = """
SELECT name, reset_val, unit, context, source, sourcefile, sourceline, pending_restart, enumvals,
       has_parameter_privilege(name, 'ALTER SYSTEM') AS may_alter
FROM pg_settings WHERE name = ANY (%s) OR name LIKE 'autovacuum%%'
"""
_MOMENT = """
SELECT current_setting('server_version') AS server_version, current_database() AS database,
       pg_is_in_recovery() AS in_recovery,
       ARRAY(SELECT rolname::text FROM pg_roles WHERE rolname = ANY (%s)) AS roles
"""

Log = Callable[[Mapping[str, SettingInForce]], "WhatIf"]


def settings_live(
    target: str,
    parameters: Mapping[str, str],
    given: ServerMachine,
    *,
    interval_s: float | None = None,
    log: Log | None = None,
    say: Say = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> SettingsAdvice:
    """
    Say what of a server's settings would be changed, and why.

    Args:
        target: A connection, as libpq takes it.
        parameters: Of the connection, beside it.
        given: What it cannot tell.
        interval_s: Between two readings of counters; None: what statistics have.
        log: Reads the write-ahead log, told what is in force.
        say: Told what happens, for people.
        sleep: Waits.

    Raises:
        ConnectionFailed: No server answers.
        SourceError: A query failed.
        ParameterError: A machine on which nothing runs.
    """
    check_given(given)
    named = {"application_name": APPLICATION_NAME, **parameters}
    with read_only_session(target, named) as connection:
        asking = Asking(connection, given)
        if interval_s is not None:
            asking.start()
            say(f"watching for {show_duration(interval_s)}")
            sleep(interval_s)
        counted = asking.counted()
    return asking.answer(counted, None if log is None else log(asking.in_force))


class Asking:
    """
    One server that is asked.

    Args:
        connection: From `read_only_session`.
        given: What it cannot tell.
        ahead_s: By how much the clock is taken to be later than it is; for tests.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], given: ServerMachine, ahead_s: float = 0.0
    ) -> None:
        connection.prepare_threshold = None  # a pooler's server connection is not ours alone
        for name, value in _SESSION.items():
            set_for_session(connection, name, value)
        self._given = given
        self._major = connection.info.server_version // 10000
        self._moment = _rows(connection, _MOMENT, [list(PROVIDERS)])[0]
        rows = _rows(connection, _SETTINGS, [list(NAMES)])
        self.in_force = {str(row["name"]): setting_of(row) for row in rows}
        values = {name: setting.value for name, setting in self.in_force.items()}
        self.reading = CounterReading(connection, values, ahead_s)

    def start(self) -> None:
        """Read counters at the interval's beginning."""
        self.reading.start()

    def counted(self) -> CountedLoad | str:
        """Read counters; or why nothing can be said by them."""
        if self._moment["in_recovery"]:
            return "a standby counts neither WAL nor rows that die: ask the primary"
        return self.reading.end()

    def answer(self, counted: CountedLoad | str, log: WhatIf | None = None) -> SettingsAdvice:
        """What would be changed."""
        case = SettingsCase(
            given=self._given,
            major=self._major,
            in_force=self.in_force,
            is_live=True,
            counted=None if isinstance(counted, str) else counted,
            uncounted=counted if isinstance(counted, str) else "it was not counted",
            log=log,
        )
        provider = provider_of(self._moment["roles"])
        remarks = [] if provider is None else [provider]
        remarks += [] if isinstance(counted, str) else list(counted.notes)
        if isinstance(counted, CountedLoad) and counted.is_interval:
            length_s = counted.wal_length_s or 0.0
            if length_s < JUDGED_FROM_S:
                remarks.append(
                    f"An interval of {show_duration(length_s)}: a burst in it is taken for a load "
                    "that lasts."
                )
        if self._moment["in_recovery"]:
            remarks.append(
                "A standby: max_connections and max_worker_processes may not be less here than on "
                "the primary, so change them there last when they shrink, here first when they "
                "grow."
            )
        if provider is None and (pages := shared_memory.remark(case)) is not None:
            remarks.append(pages)
        said: list[Said] = []
        for each in decided(case):
            if isinstance(each, SettingLine) and self.in_force[each.name].pending_restart:
                remarks.append(
                    f"{each.name} is {each.now}, and another value waits for a restart: restart, "
                    "then ask again."
                )
            elif isinstance(each, SettingLine):
                said.append(placed(each, self.in_force, is_managed=provider is not None))
            else:
                said.append(each)
        return advice_of(
            case,
            said,
            server=str(self._moment["server_version"]).split()[0],
            database=str(self._moment["database"]),
            remarks=remarks,
        )


def _rows(
    connection: psycopg.Connection[Any], query: str, values: list[list[str]]
) -> list[Mapping[str, Any]]:
    from psycopg.rows import dict_row  # noqa: PLC0415 - loads libpq

    with connection.cursor(row_factory=dict_row) as cursor:
        return list(cursor.execute(query.encode(), values).fetchall())
