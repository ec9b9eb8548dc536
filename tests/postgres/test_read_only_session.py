"""The read-only session: what it sets is in force for us, and for nobody after us."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from doctor_sides import conninfo
from pooler import pooled

from pgheadroom.doctor import all_rules
from pgheadroom.doctor.live import examine_live
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.session import read_only_session, set_for_session

pytestmark = pytest.mark.usefixtures("run_parent")

_OURS = """
SELECT name, setting FROM pg_catalog.pg_settings
WHERE name IN ('default_transaction_read_only', 'transaction_read_only', 'statement_timeout',
               'lock_timeout', 'search_path', 'jit', 'max_parallel_workers_per_gather',
               'idle_session_timeout', 'idle_in_transaction_session_timeout')
"""
_BACKENDS = 2


def settings_of_all(target: str) -> list[dict[str, str]]:
    """Those that an application finds in each server connection of the pool."""
    found: dict[int, dict[str, str]] = {}
    with ExitStack() as opened:
        for _ in range(_BACKENDS):
            session = opened.enter_context(psycopg.connect(target, prepare_threshold=None))
            (pid,) = session.execute("SELECT pg_backend_pid()").fetchall()[0]
            found[pid] = dict(session.execute(_OURS).fetchall())
    assert len(found) == _BACKENDS
    return [found[pid] for pid in sorted(found)]


def test_an_application_behind_us_finds_its_own_settings(newest: ServerPrograms) -> None:
    """In transaction mode each statement may go to another server connection."""
    turns = f"server_round_robin = 1\ndefault_pool_size = {_BACKENDS}\n"
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        with pooled(host, cluster, "transaction", more=turns) as target:
            before = settings_of_all(target)
            with read_only_session(target, {}) as connection:
                set_for_session(connection, "jit", "off")
                pids = set()
                for _ in range(2 * _BACKENDS):
                    connection.execute("SELECT 1")
                    pids |= set(connection.execute("SELECT pg_backend_pid()").fetchall())
                    seen: dict[str, Any] = dict(connection.execute(_OURS).fetchall())
                    assert seen["transaction_read_only"] == "on"
                    assert seen["statement_timeout"] == "30000"
                    assert seen["search_path"] == "pg_catalog"
                    assert seen["jit"] == "off"
                with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                    connection.execute("CREATE TABLE t ()")
            assert len(pids) == _BACKENDS, "one server connection served it all"
            assert settings_of_all(target) == before
            assert not examine_live(target, {}, rules=all_rules()).cut_off
            assert settings_of_all(target) == before
            with read_only_session(target, {}) as connection:
                watch(connection, ObservationRequest(duration_s=0.2, ticks=1), lambda _: None)
            assert settings_of_all(target) == before


def test_a_session_is_left_as_it_was(newest: ServerPrograms) -> None:
    """Also where an error ends it; and an interval is not taken for idleness."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "idle_session_timeout": "200ms"})
        target = conninfo(cluster, "postgres")
        with read_only_session(target, {}) as connection:
            # Kept open beyond the session, as a pooler in session mode keeps it.
            kept, connection.close = connection, lambda: None  # type: ignore[method-assign]
            during = dict(connection.execute(_OURS).fetchall())
        after = dict(kept.execute(_OURS).fetchall())
        psycopg.Connection.close(kept)
        with psycopg.connect(target, application_name="pgheadroom") as plain:
            assert after == dict(plain.execute(_OURS).fetchall())
        assert during != after
        assert not examine_live(target, {}, interval_s=0.6).cut_off
