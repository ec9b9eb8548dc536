"""What `published-without-identity` says of a table, beside what its UPDATE and DELETE do."""

from __future__ import annotations

import psycopg
import pytest
from doctor_sides import conninfo, run

from pgheadroom.doctor import examine, rule_named
from pgheadroom.servers import Cluster, Host, ServerPrograms
from pgheadroom.sources.session import read_only_session

pytestmark = [pytest.mark.usefixtures("run_parent"), pytest.mark.each]

COLUMNS = "id int PRIMARY KEY, v int, w int"
SHAPES = {
    "no_identity": ("v int", "TABLE {0}"),
    "with_key": (COLUMNS, "TABLE {0}"),
    "only_inserts": ("v int", "TABLE {0} WITH (publish = 'insert')"),
    "only_deletes": ("v int", "TABLE {0} WITH (publish = 'insert, delete')"),
    "filter_of_key": (COLUMNS, "TABLE {0} WHERE (id > 0)"),
    "filter_beside": (COLUMNS, "TABLE {0} WHERE (id > 0 AND v > 0)"),
    "filter_for_inserts": (COLUMNS, "TABLE {0} WHERE (v > 0) WITH (publish = 'insert')"),
    "filter_for_updates": (COLUMNS, "TABLE {0} WHERE (v > 0) WITH (publish = 'update')"),
    "list_with_key": (COLUMNS, "TABLE {0} (id, w)"),
    "list_without": (COLUMNS, "TABLE {0} (v, w)"),
    "list_for_inserts": (COLUMNS, "TABLE {0} (v) WITH (publish = 'insert')"),
    "whole_row": (COLUMNS, "TABLE {0} WHERE (v > 0)", "REPLICA IDENTITY FULL"),
    "whole_row_list": (COLUMNS, "TABLE {0} (id, v, w)", "REPLICA IDENTITY FULL"),
    "included": (
        "id int NOT NULL, v int, w int",
        "TABLE {0} WHERE (v > 0)",
        "ADD PRIMARY KEY (id) INCLUDE (v)",
    ),
    "whole": (
        f"{COLUMNS.replace(' PRIMARY KEY', '')}, PRIMARY KEY (id, v)",
        "TABLE {0} WHERE (v > 0)",
    ),
    "nothing": (COLUMNS, "TABLE {0} WHERE (id > 0)", "REPLICA IDENTITY NOTHING"),
    "unlogged": ("v int", "ALL TABLES WITH (publish = 'truncate')"),
}
"""Columns of a table, its publication, what is altered."""

# Its partition has the columns in another order, and one that is gone.
PARTITIONED = """
CREATE TABLE {0} (id int, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE {0}_one (gone int, v int, id int NOT NULL PRIMARY KEY);
ALTER TABLE {0}_one DROP COLUMN gone;
ALTER TABLE {0} ATTACH PARTITION {0}_one FOR VALUES FROM (0) TO (100);
INSERT INTO {0} VALUES (1, 1);
"""
OF_PARTITIONS = {
    "by_root_key": "TABLE {0} WHERE (id > 0) WITH (publish_via_partition_root)",
    "by_root_beside": "TABLE {0} WHERE (v > 0) WITH (publish_via_partition_root)",
    "by_root_list": "TABLE {0} (id) WITH (publish_via_partition_root)",
    "by_root_short": "TABLE {0} (v) WITH (publish_via_partition_root)",
    "by_leaf_key": "TABLE {0}_one WHERE (id > 0)",
    "by_leaf_beside": "TABLE {0}_one WHERE (v > 0)",
    # The filter of the one that is highest holds.
    "by_both": "TABLE {0}, {0}_one WHERE (v > 0) WITH (publish_via_partition_root)",
    "by_schema": "TABLES IN SCHEMA other",
}
GENERATED = "id int PRIMARY KEY, v int, g int GENERATED ALWAYS AS (v + 1) STORED"
SINCE_18 = {
    "hidden": (GENERATED, "TABLE {0}", "REPLICA IDENTITY FULL"),
    "shown": (
        GENERATED,
        "TABLE {0} WITH (publish_generated_columns = stored)",
        "REPLICA IDENTITY FULL",
    ),
    "beside_key": (GENERATED, "TABLE {0}"),
    "virtual": (
        "id int PRIMARY KEY, v int, g int GENERATED ALWAYS AS (v + 1) VIRTUAL",
        "TABLE {0}",
        "REPLICA IDENTITY FULL",
    ),
}


def fails(cluster: Cluster, statement: str) -> bool:
    with cluster.connect() as connection:
        try:
            connection.execute(statement.encode())
        except psycopg.errors.InvalidColumnReference:
            return True
        except psycopg.errors.ObjectNotInPrerequisiteState:
            return True
        return False


def test_what_fails_is_told_and_nothing_else(programs: ServerPrograms) -> None:
    """Filters, lists, operations, partitions, generated columns: as the server itself decides."""
    shapes = {**SHAPES, **(SINCE_18 if programs.version.major >= 18 else {})}
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "wal_level": "logical"})
        run(cluster, "postgres", "CREATE SCHEMA other")
        for name, (columns, published, *altered) in shapes.items():
            run(cluster, "postgres", f"CREATE TABLE {name} ({columns})")
            for change in altered:
                run(cluster, "postgres", f"ALTER TABLE {name} {change}")
            run(cluster, "postgres", f"CREATE PUBLICATION of_{name} FOR {published.format(name)}")
        for name, published in OF_PARTITIONS.items():
            run(cluster, "postgres", PARTITIONED.format(name).strip())
            run(cluster, "postgres", f"CREATE PUBLICATION of_{name} FOR {published.format(name)}")
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            diagnosis = examine(connection, [rule_named("published-without-identity")])
        assert not diagnosis.blind
        told = {each.object: each.text for each in diagnosis.findings}
        told_fails = {
            name: (
                "updates and deletes fail" in text or "updates fail" in text,
                "deletes fail" in text,
            )
            for name, text in told.items()
        }
        found = {}
        for name in (*shapes, *OF_PARTITIONS):
            column = "v" if "v int" in str(shapes.get(name, "v int")) else "id"
            refused = (
                fails(cluster, f"UPDATE {name} SET {column} = 3"),
                fails(cluster, f"DELETE FROM {name}"),
            )
            if any(refused):
                found[name] = refused
        assert told_fails == found, told
        assert {"no_identity", "filter_beside", "list_without", "by_root_short"} <= set(found)
