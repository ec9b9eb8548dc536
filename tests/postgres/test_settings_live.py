"""The table of settings beside those that a server has, name by name."""

from __future__ import annotations

import psycopg
import pytest

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.play import play
from pgheadroom.predict import predict
from pgheadroom.profile import parse_profile
from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

FROM_VERSION = {
    "autovacuum_vacuum_max_threshold": 18,
    "vacuum_max_eager_freeze_failure_rate": 18,
    "autovacuum_parallel_workers": 19,
    "log_autoanalyze_min_duration": 19,
}
"""Storage parameters that came later than 15."""
OWN_CHECKS = {"vacuum_buffer_usage_limit"}
"""Settings that take less than their range, by code of their own."""
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


@pytest.mark.each
def test_values_that_a_server_takes_are_known(programs: ServerPrograms) -> None:
    """Both ends of each range, and the number beyond them, beside what the server says to SET."""
    version = str(programs.version)
    judged, wrong = 0, []
    with Host(programs, label="test") as host:
        cluster = host.cluster("settings")
        cluster.start({})
        with cluster.connect() as connection:
            rows = connection.execute(
                "SELECT name, vartype, unit, min_val, max_val, enumvals FROM pg_settings"
                " WHERE context = 'user' AND name = ANY(%s)",
                [_core.setting_names()],
            ).fetchall()
            for name, kind, unit, low, high, words in rows:
                values = ["maybe", "0x10", "1e2", "-0.4", "7 furlongs", "64kB", "64kb", "2min"]
                if kind in ("integer", "real"):
                    values += [low, high, f"{float(low) - 1:.0f}"]
                    values += [f"{low} {unit}"] if unit and unit != "8kB" else []
                    values += [f"{int(high) + 1}"] if kind == "integer" else []
                values += words or []
                for value in values:
                    takes = _takes(connection, name, value)
                    if name in OWN_CHECKS or kind == "string" or (kind == "enum" and not takes):
                        continue  # or how the server was built
                    found = _core.setting_expected(name, value, version)
                    if (found is None) != takes:
                        wrong.append((name, value, found))
                    judged += 1
    assert not wrong
    assert judged > 200


def _takes(connection: psycopg.Connection[tuple[object, ...]], name: str, value: str) -> bool:
    try:
        connection.execute("SELECT set_config(%s, %s, false)", [name, value])
    except psycopg.Error as error:
        # What a setting's own check says, in view of other settings, has other words.
        return not any(
            words in str(error)
            for words in ("invalid value for", "requires a Boolean", "outside the valid range")
        )
    finally:
        connection.execute("RESET ALL")
    return True


@pytest.mark.pg(">= 16, < 17")
def test_a_value_out_of_range_is_refused_before_a_server_starts(programs: ServerPrograms) -> None:
    """VACUUM had 64 kB in the twin's 16, and a server's log was all that `prove` said."""
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": {"settings": {"maintenance_work_mem": "64kB"}},
            "table": [{"name": "t", "rows": 10, "columns": [{"name": "id", "type": "int4"}]}],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": {"operations": 10},
        }
    )
    said = r"server.settings.maintenance_work_mem: found 64kB, expected .* from 1024 to"
    with pytest.raises(InputError, match=said):
        play(profile, server=str(programs.bin_dir))
    with pytest.raises(InputError, match=said):
        predict(profile, server="16")


@pytest.mark.pg("< 18")
@pytest.mark.parametrize(
    ("name", "value"),
    [("autovacuum_worker_slots", "16"), ("autovacuum_vacuum_max_threshold", "1000")],
)
def test_settings_that_this_version_lacks(name: str, value: str, programs: ServerPrograms) -> None:
    """
    A profile that was observed on 18 did not start on 16: initdb of 18 sets the first of them.

    What has no effect on pages is left out and said; another one is refused by name.
    """
    profile = parse_profile(
        {
            "schema_version": 1,
            "server": {"settings": {name: value, "min_wal_size": "80MB"}},
            "table": [{"name": "t", "rows": 10, "columns": [{"name": "id", "type": "int4"}]}],
            "operation": [{"table": "t", "kind": "insert"}],
            "run": {"operations": 10},
        }
    )
    path = f"server.settings.{name}"
    if name == "autovacuum_worker_slots":
        assumed = play(profile, server=str(programs.bin_dir)).assumed
        assert assumed[path] == f"left out: PostgreSQL {programs.version} does not have it"
        assert "server.settings.min_wal_size" not in assumed
    else:
        with pytest.raises(InputError, match=f"{path}: PostgreSQL {programs.version} does not"):
            play(profile, server=str(programs.bin_dir))
