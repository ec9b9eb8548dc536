"""`clustered_heap.sort_insert_select` set for a server, in sessions that call nothing of ours."""

from __future__ import annotations

import pytest

from pgheadroom.servers import Host, ServerPrograms


@pytest.mark.parametrize("preload", ["session_preload_libraries", "shared_preload_libraries"])
def test_preloaded(extended: ServerPrograms, preload: str) -> None:
    """
    With the library preloaded, a first INSERT ... SELECT comes in order, without the extension.

    Without the preload nothing of ours is loaded, and it comes as it is read.
    """
    setting = {"clustered_heap.sort_insert_select": "on", "jit": "off"}
    with Host(extended) as host:
        cluster = host.cluster("main")
        for settings, sorted_ in (({preload: "clustered_heap"} | setting, True), (setting, False)):
            cluster.start(settings)
            with cluster.connect() as session:
                session.execute("DROP TABLE IF EXISTS t")
                session.execute("CREATE TABLE t (k int PRIMARY KEY)")
                session.execute("ALTER TABLE t CLUSTER ON t_pkey")
                session.execute("INSERT INTO t SELECT g * 7 % 101 FROM generate_series(1, 100) g")
                rows = session.execute("SELECT k FROM t ORDER BY ctid").fetchall()
            cluster.stop()
            assert len(rows) == 100
            assert (rows == sorted(rows)) is sorted_
