"""The table of settings beside those that a server has, name by name."""

from __future__ import annotations

import psycopg
import pytest

from pgheadroom import _core
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

FROM_VERSION = {
    "autovacuum_vacuum_max_threshold": 18,
    "vacuum_max_eager_freeze_failure_rate": 18,
    "autovacuum_parallel_workers": 19,
    "log_autoanalyze_min_duration": 19,
}
"""Storage parameters that came later than 15."""
VALUES = {
    "autovacuum_enabled": "on",
    "user_catalog_table": "on",
    "vacuum_index_cleanup": "auto",
    "vacuum_truncate": "on",
    "toast_tuple_target": "4080",
    "autovacuum_freeze_max_age": "200000000",
    "autovacuum_multixact_freeze_max_age": "400000000",
    "fillfactor": "90",
}


@pytest.mark.each
def test_every_setting_of_a_server_is_known(programs: ServerPrograms) -> None:
    """None is swallowed by the beginning of another's name: what is new has to be judged first."""
    known = set(_core.setting_names())
    with Host(programs, label="test") as host:
        cluster = host.cluster("settings")
        cluster.start({})
        with cluster.connect() as connection:
            rows = connection.execute("SELECT name FROM pg_settings WHERE name NOT LIKE '%.%'")
            names = {str(row[0]) for row in rows}
            assert names - known == set()
            _check_storage_parameters(connection, programs.version.major)


def _check_storage_parameters(
    connection: psycopg.Connection[tuple[object, ...]], major: int
) -> None:
    """Each is one of the server's tables, from its version on."""
    connection.execute("CREATE TABLE t (a int, b text)")
    for name in _core.setting_names(storage_parameters=True):
        sql = f"ALTER TABLE t SET ({name} = {VALUES.get(name, '1')})"
        if major >= FROM_VERSION.get(name, 15):
            connection.execute(sql.encode())
        else:
            with pytest.raises(psycopg.errors.InvalidParameterValue):
                connection.execute(sql.encode())
