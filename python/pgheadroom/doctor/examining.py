"""
Examining a database: each rule's query in turn, nothing held between them.

    moment      clock, version, how far the statistics reach back, settings
    start       the counters of rules that count, where there is an interval
    end         every rule's query, and what it decides

A rule that is stopped (statement_timeout, a lock, a missing right) is named as blind and the others
go on. Where the connection ends, or somebody interrupts, what was found until then is the answer,
and what was not, or not over the whole interval, is named too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pgheadroom
from pgheadroom.defaults import RATES_FROM_S
from pgheadroom.doctor.agreeing import agreed, runnable
from pgheadroom.doctor.definitions import with_definition
from pgheadroom.doctor.rule import Facts, QueryRow, Rule
from pgheadroom.doctor.values import SEVERITIES, Blind, Diagnosis, Examined, Finding
from pgheadroom.doctor.where_set import BEFORE_FILES
from pgheadroom.progress import Say
from pgheadroom.sources.session import set_for_session
from pgheadroom.sources.since import SINCE_EPOCH_S, is_partly_reset
from pgheadroom.units import show_duration

if TYPE_CHECKING:
    import psycopg

APPLICATION_NAME = "pgheadroom doctor"
SESSION_SETTINGS = {
    "statement_timeout": "5s",  # a query of a rule takes some hundredths; arbitrary
    "jit": "off",
    "max_parallel_workers_per_gather": "0",  # our reading takes one process, never more
    "client_encoding": "UTF8",
}
_NO_STANDBYS = "('pg_basebackup', 'pg_receivewal')"
_RIGHTS = ("42501",)  # insufficient_privilege

_MOMENT = f"""
SELECT extract(epoch FROM clock_timestamp())::float8 AS at_epoch_s,
       current_setting('server_version') AS server_version,
       current_database() AS database, current_user AS role,
       pg_is_in_recovery() AS in_recovery,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
         OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS monitors,
       -- Those who copy files or take the log read no index; subscribers have logical slots.
       EXISTS (SELECT FROM pg_stat_replication r
               WHERE coalesce(r.application_name, '') NOT IN {_NO_STANDBYS}
                 AND NOT EXISTS (SELECT FROM pg_replication_slots s
                                 WHERE s.active_pid = r.pid AND s.slot_type = 'logical'))
         OR EXISTS (SELECT FROM pg_replication_slots s
                    WHERE s.slot_type = 'physical'
                      AND NOT EXISTS (SELECT FROM pg_stat_replication r
                                      WHERE r.pid = s.active_pid
                                        AND r.application_name IN {_NO_STANDBYS}))
         AS has_standbys,
       CASE WHEN NOT pg_is_in_recovery()
            THEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END AS timeline,
       {{is_partly_reset}} AS is_partly_reset,
       {SINCE_EPOCH_S}
         AS since_epoch_s
"""
_FIRST_TIMELINE = "00000001"
_PROMOTED = """
SELECT extract(epoch FROM max(modification))::float8 AS at_epoch_s FROM pg_ls_waldir()
WHERE name = '{timeline}.history'
"""
"""The file is written when the timeline begins, and stays (RemoveOldXlogFiles, xlog.c)."""
_SINCE = f"SELECT {SINCE_EPOCH_S} AS since_epoch_s"
_SETTINGS = "SELECT name, setting, source FROM pg_settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastInterval:
    """
    Counters of an interval that is over, as they were kept.

    Attributes:
        said: When it was, in words.
        interval_s: How long.
        rows: Of each rule that counts, by its id, at the interval's beginning and at its end.
        missing: Rules of which one of these is not there, with why.
    """

    said: str
    interval_s: float
    rows: Mapping[str, tuple[Sequence[QueryRow], Sequence[QueryRow]]]
    missing: Mapping[str, str]


@dataclass
class Examination:
    """
    One examination of a database.

    Attributes:
        connection: From `read_only_session`.
        rules: Which look.
        ahead_s: By how much the clock is taken to be later than it is; for tests, which have no
            time to wait until something is old.
    """

    connection: psycopg.Connection[Any]
    rules: Sequence[Rule]
    ahead_s: float = 0.0
    _start: dict[str, Mapping[Any, QueryRow]] = field(default_factory=dict)
    _blind: list[Blind] = field(default_factory=list)
    _findings: list[Finding] = field(default_factory=list)
    _began_s: dict[str, float] = field(default_factory=dict)
    _is_interval: bool = False
    _ended_s: float = 0.0
    _looked: int = 0
    _past: PastInterval | None = None
    _was_reset: bool = False
    _cut_short: str | None = None

    def __post_init__(self) -> None:
        # A pooler's server connection is not ours alone: nothing is prepared.
        self.connection.prepare_threshold = None
        for name, value in SESSION_SETTINGS.items():
            set_for_session(self.connection, name, value)
        self._major = self.connection.info.server_version // 10000
        asked = _MOMENT.format(is_partly_reset=is_partly_reset(self._major))
        self._moment = self._rows(asked)[0]
        rows = self._rows(_SETTINGS)
        self._settings = {row["name"]: row["setting"] for row in rows}
        self._started_with = {
            row["name"]: row["source"] for row in rows if row["source"] in BEFORE_FILES
        }
        self._promoted_s = self._promotion_s()

    def start(self) -> None:
        """Read the counters at the interval's beginning."""
        self._is_interval = True
        for rule in self.rules:
            query = rule.text_for(self._major)
            if not rule.counters or query is None or self._is_elsewhere(rule):
                continue
            rows = self._asked(rule, query)
            self._began_s[rule.id] = self._clock_s()
            if rows is not None:
                self._start[rule.id] = {_key(rule, row): row for row in rows}

    def recall(self, past: PastInterval) -> None:
        """Take the counters of an interval that is over; the other rules look at what is now."""
        self._past = past
        for rule in self.rules:
            if rule.id in past.rows:
                begin, _ = past.rows[rule.id]
                self._start[rule.id] = {_key(rule, row): row for row in begin}

    def cut_short(self, interval_s: float) -> None:
        """
        Tell that somebody ended the interval.

        Args:
            interval_s: As long as it was to be.
        """
        began_s = min(self._began_s.values(), default=self._clock_s())
        watched = show_duration(self._clock_s() - began_s)
        self._cut_short = (
            f"over the whole {show_duration(interval_s)}, for the interval was cut short after "
            f"{watched}"
        )

    def end(self) -> Diagnosis:
        """Ask every rule, and put together what was found."""
        self._ended_s = self._clock_s()
        self._each(self.rules)
        self._settle()
        return self._diagnosis()

    def _settle(self) -> None:
        """What is to be done, of all findings together: it agrees, and can be run."""
        is_standby = bool(self._moment["in_recovery"])
        allows_alter = self._settings.get("allow_alter_system") != "off"
        self._findings = [
            runnable(
                with_definition(found, self._row_if_any),
                is_standby=is_standby,
                allows_alter=allows_alter,
                started_with=self._started_with,
            )
            for found in agreed(self._findings)
        ]

    def _promotion_s(self) -> float | None:
        """Since when it is a primary, where it has not always been one and the server tells."""
        timeline = self._moment["timeline"]
        if timeline in (None, _FIRST_TIMELINE):
            return None
        row = self._row_if_any(_PROMOTED.format(timeline=timeline))
        return None if row is None else row["at_epoch_s"]

    def _row_if_any(self, query: str) -> QueryRow | None:
        """The row, if the server gives it."""
        import psycopg  # noqa: PLC0415 - as above

        if self.connection.broken or self.connection.closed:
            return None
        try:
            return next(iter(self._rows(query)), None)
        except (psycopg.Error, KeyboardInterrupt, SystemExit):
            return None  # the finding is told without it

    def _clock_s(self) -> float:
        """Ours: each rule's interval is its own, for a pass takes a while."""
        return time.monotonic() + self.ahead_s

    def _now_s(self) -> float:
        row = self._rows("SELECT extract(epoch FROM clock_timestamp())::float8 AS s")[0]
        return float(row["s"]) + self.ahead_s

    def _each(self, rules: Sequence[Rule]) -> None:
        """All of them, as long as the connection lasts."""
        import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

        done = 0
        try:
            facts = self._facts()
            for rule in rules:
                self._look(rule, facts)
                done += 1
        except psycopg.Error as error:
            why = f"the connection ended: {str(error).strip().splitlines()[0]}"
            self._cut(rules[done:], why)
        except (KeyboardInterrupt, SystemExit):
            # Whoever stops it is still told what was found.
            self._cut(rules[done:], "interrupted before it could look")

    def _cut(self, rules: Iterable[Rule], why: str) -> None:
        named = {item.rule for item in self._blind}
        self._blind += [
            Blind(rule=rule.id, why=why, cut_off=True) for rule in rules if rule.id not in named
        ]

    def _facts(self) -> Facts:
        now_s = self._now_s()
        since_s = self._since_s()
        return Facts(
            major=self._major,
            now_s=now_s,
            interval_s=None,
            since_s=since_s,
            is_standby=bool(self._moment["in_recovery"]),
            has_standbys=bool(self._moment["has_standbys"]),
            monitors=bool(self._moment["monitors"]),
            settings=self._settings,
            is_partly_reset=bool(self._moment["is_partly_reset"]),
            was_promoted=self._moment["timeline"] not in (None, _FIRST_TIMELINE),
            promoted_s=self._promoted_s,
        )

    def _since_s(self) -> float | None:
        """From when statistics count; younger at an interval's end where they were reset in it."""
        before: float | None = self._moment["since_epoch_s"]
        if not self._is_interval:
            return before
        now: float | None = self._rows(_SINCE)[0]["since_epoch_s"]
        self._was_reset = now is not None and (before is None or now > before)
        return now

    def _is_elsewhere(self, rule: Rule) -> bool:
        return bool(self._moment["in_recovery"]) and not rule.on_standby

    def _look(self, rule: Rule, facts: Facts) -> None:
        query = rule.text_for(self._major)
        if self._is_elsewhere(rule):
            self._is_blind(rule, "a standby does not count this: ask the primary")
            return
        if query is None:
            self._is_blind(rule, f"PostgreSQL {self._major} does not count this")
            return
        if self._cut_short is not None and rule.counters:
            self._is_blind(rule, self._cut_short, cut_off=True)
            if rule.id not in self._began_s:
                return  # what it counts is of a longer time than anybody asked for
        rows = self._rows_of(rule, query)
        if rows is None:
            return
        if self._past is not None and rule.counters:
            facts = replace(facts, interval_s=self._past.interval_s)
        elif rule.id in self._began_s:
            interval_s = max(self._clock_s() - self._began_s[rule.id], 0.001)
            facts = replace(facts, interval_s=interval_s)
        if rule.needs_monitor and not facts.monitors:
            self._is_blind(rule, "without pg_read_all_stats: other users' sessions are not seen")
        counted = self._counted(rule, rows, facts)
        if self._past is not None and rule.counters and not rule.is_rate:
            counted = self._as_now(rule, query, counted)
        if rule.is_rate:
            told = [row for row in counted if facts.tells_rates(row)]
            if len(told) < len(counted):
                self._is_blind(rule, _too_young(facts, counted))
            counted = told
        self._decided(rule, facts, counted)
        self._looked += 1

    def _decided(self, rule: Rule, facts: Facts, rows: Sequence[QueryRow]) -> None:
        """What it makes of its rows; what goes wrong with it is its own."""
        import psycopg  # noqa: PLC0415 - as above

        try:
            looked = rows if rule.look is None else rule.look(facts, rows, self._rows)
            if rule.reads is not None:
                looked = rule.reads(facts, looked, self.connection)
            for found in rule.decide(facts, looked):
                if isinstance(found, Blind):
                    self._is_blind(rule, found.why, cut_off=found.cut_off)
                else:
                    self._findings.append(as_far_as_watched(rule, found, facts))
        except psycopg.Error as error:
            self._refused(rule, error)
        except Exception as error:  # noqa: BLE001 - what others have found is told all the same
            why = f"its rows are not understood: {type(error).__name__}: {_first_line(error)}"
            self._is_blind(rule, why, cut_off=True)

    def _counted(self, rule: Rule, rows: Sequence[QueryRow], facts: Facts) -> list[QueryRow]:
        """The rows with what was counted in the interval, where there is one."""
        if not rule.counters or facts.interval_s is None:
            return list(rows)
        before = self._start.get(rule.id)
        if before is None:
            return []  # named as blind already
        found: list[QueryRow] = []
        was_reset = self._was_reset
        # What was reset may be more than before all the same, or be new among the rows.
        for row in () if was_reset else rows:
            earlier = before.get(_key(rule, row))
            if earlier is None:
                # It is new, or can be: what it counts may be of a longer time than the interval.
                if not rule.is_rate:
                    found.append({**row, **dict.fromkeys(rule.counters)})
                continue
            counts = {
                name: None if row[name] is None else row[name] - (earlier.get(name) or 0)
                for name in rule.counters
            }
            if any(count is not None and count < 0 for count in counts.values()):
                was_reset = True
                continue
            found.append({**row, **counts})
        if was_reset:
            self._is_blind(rule, "statistics were reset inside the interval", cut_off=True)
        return found

    def _rows_of(self, rule: Rule, query: str) -> list[QueryRow] | None:
        """Those of now, or of the end of an interval that is over; None: that is noted."""
        if self._past is None or not rule.counters:
            return self._asked(rule, query)
        if rule.id not in self._past.rows:
            why = self._past.missing.get(rule.id, "it was not kept")
            self._is_blind(rule, f"nothing of it in the history: {why}")
            return None
        return list(self._past.rows[rule.id][1])

    def _as_now(self, rule: Rule, query: str, counted: Iterable[QueryRow]) -> list[QueryRow]:
        """
        What is there now, with what was counted in an interval that is over.

        An index that is gone, or was read since, is none to be dropped.
        """
        before = {_key(rule, row): row for row in counted}
        nothing = dict.fromkeys(rule.counters)
        return [
            {**row, **{name: before.get(_key(rule, row), nothing)[name] for name in rule.counters}}
            for row in self._asked(rule, query) or ()
        ]

    def _asked(self, rule: Rule, query: str) -> list[QueryRow] | None:
        """The rows; None where the server refused, which is noted."""
        import psycopg  # noqa: PLC0415 - as above

        try:
            return self._rows(query)
        except psycopg.Error as error:
            self._refused(rule, error)
            return None

    def _refused(self, rule: Rule, error: psycopg.Error) -> None:
        """Note it; where the connection ended, everything ends."""
        if self.connection.broken or self.connection.closed or error.sqlstate is None:
            raise error
        why = f"{error.sqlstate} {type(error).__name__}: {_first_line(error)}"
        self._is_blind(rule, why, cut_off=error.sqlstate not in _RIGHTS)

    def _is_blind(self, rule: Rule, why: str, *, cut_off: bool = False) -> None:
        if not any(item.rule == rule.id and item.why == why for item in self._blind):
            self._blind.append(Blind(rule=rule.id, why=why, cut_off=cut_off))

    def _rows(self, query: str) -> list[QueryRow]:
        from psycopg.rows import dict_row  # noqa: PLC0415 - as above

        with self.connection.cursor(row_factory=dict_row) as cursor:
            return list(cursor.execute(query.encode()).fetchall())

    def _diagnosis(self) -> Diagnosis:
        moment = self._moment
        at_s = float(moment["at_epoch_s"]) + self.ahead_s
        since_s = None if moment["is_partly_reset"] else moment["since_epoch_s"]
        began_s = min(self._began_s.values(), default=self._ended_s)
        interval_s = round(self._ended_s - began_s, 3) if self._is_interval else None
        if self._past is not None:
            interval_s = round(self._past.interval_s, 3)
        return Diagnosis(
            tool_version=pgheadroom.__version__,
            examined=Examined(
                at=_utc(at_s),
                database=str(moment["database"]),
                server=str(moment["server_version"]).split()[0],
                role=str(moment["role"]),
                in_recovery=bool(moment["in_recovery"]),
                interval_s=interval_s,
                statistics_since=None if since_s is None else _utc(since_s),
                rules=self._looked,
            ),
            findings=by_effect(self._findings),
            notes=()
            if self._past is None
            else (f"counters are those of {self._past.said}; all else is of now",),
            blind=tuple(sorted(self._blind, key=lambda item: (not item.cut_off, item.rule))),
        )


def examine(
    connection: psycopg.Connection[Any],
    rules: Sequence[Rule],
    *,
    interval_s: float | None = None,
    past: PastInterval | None = None,
    say: Say = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Diagnosis:
    """
    Examine a database.

    Args:
        connection: From `read_only_session`.
        rules: Which look.
        interval_s: Between two readings of counters; None: one reading.
        past: Counters of an interval that is over, instead of any of now.
        say: Told what happens, for people.
        sleep: Waits.
    """
    import psycopg  # noqa: PLC0415 - as above

    examination = Examination(connection, rules)
    if past is not None:
        examination.recall(past)
    if interval_s is not None:
        try:
            examination.start()
            say(f"watching for {show_duration(interval_s)}")
            sleep(interval_s)
        except (psycopg.Error, KeyboardInterrupt, SystemExit):
            if not (connection.broken or connection.closed):
                examination.cut_short(interval_s)
                say("the interval was cut short")
    return examination.end()


def as_far_as_watched(rule: Rule, found: Finding, facts: Facts) -> Finding:
    """The finding, with no more made of a short interval than is in it."""
    if facts.judges_rates or not (rule.is_rate or found.price.unit == "bytes a day"):
        return found
    price = found.price
    if price.unit == "bytes a day":
        price = replace(price, text=f"{price.text}; if it goes on so")
    severity = "info" if rule.is_rate else found.severity
    return replace(found, severity=severity, price=price)


def by_effect(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first; among equals the dearest; what has a price before what has none."""

    def place(found: Finding) -> tuple[Any, ...]:
        amount = found.price.amount
        return (
            -SEVERITIES.index(found.severity),
            amount is None,
            -(amount or 0.0),
            found.rule,
            found.object,
        )

    return tuple(sorted(findings, key=place))


def _key(rule: Rule, row: QueryRow) -> Any:
    return tuple(row[name] for name in rule.key)


def _too_young(facts: Facts, rows: Sequence[QueryRow]) -> str:
    lengths = [length for row in rows if (length := facts.length_s(row)) is not None]
    if not lengths:
        return "nothing says since when the statistics count: watch an interval"
    return (
        f"the statistics reach back {show_duration(min(lengths))}: rates need "
        f"{show_duration(RATES_FROM_S)} of them, or an interval that is watched"
    )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "")


def _utc(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))
