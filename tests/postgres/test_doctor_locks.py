"""The doctor beside more relations than there are locks."""

from __future__ import annotations

import pytest
from doctor_sides import conninfo, run

from pgheadroom.doctor import Examination, all_rules
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.session import read_only_session

pytestmark = pytest.mark.usefixtures("run_parent")

COUNT = 1500
MAKE = f"""DO $$ BEGIN
  FOR i IN 1..{COUNT} LOOP
    EXECUTE format('CREATE TABLE p%s PARTITION OF p FOR VALUES IN (%s)', i, i);
    EXECUTE format('CREATE SEQUENCE s%s AS int', i);
    IF i % 20 = 0 THEN COMMIT; END IF;
  END LOOP;
END $$""".replace("\n", " ")


def test_more_sequences_and_partitions_than_locks(newest: ServerPrograms) -> None:
    """Reading a sequence locks it: some are read, and how many are not is said."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start(
            {"autovacuum": "off", "max_locks_per_transaction": "10", "max_connections": "20"}
        )
        run(
            cluster,
            "postgres",
            "CREATE TABLE parent (id int PRIMARY KEY);\n"
            "CREATE TABLE p (v int REFERENCES parent) PARTITION BY LIST (v);\n"
            f"{MAKE};\nCREATE PUBLICATION every FOR TABLE p;\n",
        )
        with cluster.connect() as connection, pytest.raises(Exception, match="shared memory"):
            connection.execute("SELECT count(last_value) FROM pg_sequences")
        with cluster.connect() as connection, pytest.raises(Exception, match="shared memory"):
            connection.execute("SELECT count(*) FROM pg_partition_tree('p')")
        with read_only_session(conninfo(cluster, "postgres"), {}) as connection:
            diagnosis = Examination(connection, all_rules()).end()
        assert not diagnosis.cut_off, diagnosis.blind
        (why,) = [each.why for each in diagnosis.blind if each.rule == "sequence-nearly-used"]
        assert why.startswith(f"{COUNT - 50:,} sequences are not read")
