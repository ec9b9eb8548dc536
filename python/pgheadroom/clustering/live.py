"""
Looking at the order of a database and planning what it asks for, on one connection that only reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from pgheadroom.clustering.planning import check_tool, plan_order
from pgheadroom.doctor.planning import refuse_standby
from pgheadroom.doctor.remedy_facts import RemedyFacts
from pgheadroom.order import asking
from pgheadroom.order.live import APPLICATION_NAME, OrderAsking, OrderWish
from pgheadroom.order.ranges import kept_settings
from pgheadroom.order.values import OrderReport
from pgheadroom.plan.marks import read_catalog
from pgheadroom.plan.values import Plan
from pgheadroom.progress import Say
from pgheadroom.sources.session import read_only_session


def order_and_plan(
    target: str,
    parameters: Mapping[str, str],
    wish: OrderWish,
    how: str,
    *,
    say: Say = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[OrderReport, Plan]:
    """
    Look at the order of tables and plan to cluster those that pay, only reading.

    Args:
        target: A connection, as libpq takes it.
        parameters: Of the connection, beside it.
        wish: What is looked at; tables that are named are planned whatever they pay.
        how: `auto`: only by what lets clients go on; or `cluster`,
            `repack`, `pg_squeeze`, `pg_repack`.
        say: Told what happens, for people.
        sleep: Waits.

    Raises:
        InputError: The server is a standby, or a table is not there.
        ConnectionFailed: No server answers.
        SourceError: A query failed.
    """
    check_tool(how)
    named = {"application_name": APPLICATION_NAME, **parameters}
    with read_only_session(target, named) as connection:
        refuse_standby(connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,))
        with kept_settings(connection):
            report = OrderAsking(connection, wish, say).report(sleep)
        facts = RemedyFacts(connection)
        oids: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
        for row in facts.rows(asking.INDEXES_SQL.format(pages_min=0)):
            key = str(row["schema"]), str(row["table"])
            oids.setdefault(key, (int(row["table_oid"]), {}))[1][str(row["name"])] = int(row["oid"])
        plan = plan_order(
            report,
            oids,
            facts,
            replace(read_catalog(connection).target, is_superuser=facts.is_superuser()),
            how,
            is_named=bool(wish.tables),
        )
    return report, plan
