"""
Examining a database and planning what its findings ask for, on one connection that only reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pgheadroom.doctor.examining import APPLICATION_NAME, Examination
from pgheadroom.doctor.late_tables import LateTables
from pgheadroom.doctor.planning import PlanGrounds, PlanWish, plan_findings, refuse_standby
from pgheadroom.doctor.remedy_facts import RemedyFacts
from pgheadroom.doctor.rule import Rule
from pgheadroom.doctor.rules import all_rules
from pgheadroom.doctor.standbys import standby_evidence
from pgheadroom.doctor.values import Diagnosis
from pgheadroom.errors import SourceError
from pgheadroom.plan.marks import read_catalog
from pgheadroom.plan.remedies import WalWindow
from pgheadroom.plan.values import Plan
from pgheadroom.plan.wal_window import read_wal, window_of
from pgheadroom.progress import Say
from pgheadroom.sources.session import read_only_session
from pgheadroom.units import show_duration

if TYPE_CHECKING:
    import psycopg


def examine_and_plan(
    target: str,
    parameters: Mapping[str, str],
    wish: PlanWish,
    *,
    standbys: Sequence[str] = (),
    interval_s: float | None = None,
    rules: Sequence[Rule] | None = None,
    then: Callable[[Diagnosis], Diagnosis] = lambda found: found,
    say: Say = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
    ahead_s: float = 0.0,
) -> tuple[Diagnosis, Plan | None]:
    """
    Examine a database and plan, only reading.

    What would refuse a plan is told before anybody watches; what was found is given even where the
    connection ended before a plan could be made.

    Args:
        target: A connection, as libpq takes it.
        parameters: Of the connection, beside it.
        wish: What the plan may hold.
        standbys: A connection to each standby, to the same database.
        interval_s: Between two readings of counters; None: one reading, and no claim about the
            write-ahead log can be verified.
        rules: Which look; None: all.
        then: Sets findings aside.
        say: Told what happens, for people.
        sleep: Waits.
        ahead_s: By how much clocks are taken to be later than they are.

    Returns:
        The findings that count; and the plan, or None where the connection ended before it.

    Raises:
        InputError: A standby that is named is none of this server, or the server is one itself.
        ConnectionFailed: A server does not answer.
    """
    import psycopg  # noqa: PLC0415 - loads libpq, which most commands do not need

    named = {"application_name": APPLICATION_NAME, **parameters}
    with read_only_session(target, named) as connection:
        examination = Examination(
            connection, all_rules() if rules is None else rules, ahead_s=ahead_s
        )
        refuse_standby(connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,))
        standby_evidence(connection, standbys, ahead_s=ahead_s)
        wal = None
        late = LateTables(connection, examination.rules, say, sleep, ahead_s)
        if interval_s is not None:
            wal = _watched(connection, examination, interval_s, say, late.wait)
        found = then(late.tell(examination.end()))
        try:
            catalog = read_catalog(connection)
            facts = RemedyFacts(connection)
            grounds = PlanGrounds(
                facts=facts,
                target=replace(catalog.target, is_superuser=facts.is_superuser()),
                standbys=standby_evidence(connection, standbys, ahead_s=ahead_s),
                wal=wal,
            )
            plan = plan_findings(found, grounds, wish)
        except (psycopg.Error, SourceError) as error:
            said = next(iter(str(error).strip().splitlines()), "")
            say(f"no plan could be made: {said}")
            return found, None
    return found, plan


def _watched(
    connection: psycopg.Connection[Any],
    examination: Examination,
    interval_s: float,
    say: Say,
    sleep: Callable[[float], None],
) -> WalWindow | None:
    """The log of the interval; None where it was cut short, or counters were reset in it."""
    import psycopg  # noqa: PLC0415 - as above

    try:
        begin = read_wal(connection)
        examination.start()
        say(f"watching for {show_duration(interval_s)}")
        sleep(interval_s)
        return window_of(begin, read_wal(connection))
    except (psycopg.Error, KeyboardInterrupt, SystemExit):
        examination.cut_short(interval_s)
        say("the interval was cut short")
        return None
