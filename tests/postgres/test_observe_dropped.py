"""Tables that go, and partitions that come and go, while their database is observed."""

from __future__ import annotations

from typing import Any

import observed
import psycopg
import pytest

from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.recording import Recording
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")


def _watched_while_dropping(cluster: Cluster, drops: dict[bytes, str]) -> Recording:
    """Before the first query that has such a text is run, another session runs a statement."""

    class Dropping(psycopg.Cursor[Any]):
        def execute(self, query: Any, *rest: Any, **named: Any) -> Any:
            for text in [text for text in drops if isinstance(query, bytes) and text in query]:
                observed.load(cluster, drops.pop(text))
            return super().execute(query, *rest, **named)

    with read_only_session(observed.conninfo(cluster), {}) as connection:
        connection.cursor_factory = Dropping
        return watch(connection, ObservationRequest(duration_s=0.2, ticks=1), lambda _: None)


@pytest.mark.contrib
def test_a_table_that_goes_takes_no_other_tables_free_space_with_it(
    programs: ServerPrograms,
) -> None:
    """
    A table that was dropped after the list of tables was made ended the reading of all others.

    So did one that was locked or truncated: of the tables behind it no page's room was known.
    """
    with Host(programs) as host:
        cluster = host.cluster("main")
        if not observed.start_with_contrib(cluster, {"autovacuum": "off"}):
            pytest.skip(f"{programs} has no contrib modules")
        observed.load(cluster)
        observed.load(
            cluster,
            "CREATE EXTENSION pg_freespacemap; CREATE EXTENSION pageinspect;"
            " UPDATE jobs SET state = 1; UPDATE parts_1 SET v = 1 WHERE id < 50",
        )
        found = _watched_while_dropping(
            cluster,
            {
                b"public.pg_freespace(": "DROP TABLE jobs",
                b"public.get_raw_page(": "DROP TABLE parts",
            },
        )
    names = {row["oid"]: row["name"] for row in found.rows("tables", "shape")}
    assert {names[row["oid"]] for row in found.rows("free_space")} >= {"parts_1", "quiet"}
    assert {names[row["oid"]] for row in found.rows("page_headers")} == {"quiet"}
    assert {line.query for line in found.failures()} == {"free_space", "page_headers"}


def test_partitions_that_come_and_go_are_said(newest: ServerPrograms) -> None:
    """
    Of a partition that was detached, or attached, inside the interval nothing was said.

    It stood as any other, though statements of its table reach it in a part of the interval alone.
    """
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster)
        observed.load(cluster, "CREATE TABLE parts_3 (LIKE parts_1)")

        def work() -> None:
            observed.load(
                cluster,
                "ALTER TABLE parts DETACH PARTITION parts_1;"
                " ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES IN (3);"
                " UPDATE parts SET v = v + 1",
            )

        profile = observed.profile_of(observed.watched(cluster, work))
    assert profile.server.observed is not None
    assert profile.server.observed.changed == (
        "parts_1 was detached from parts inside the interval",
        "parts_3 was attached to parts inside the interval",
    )
