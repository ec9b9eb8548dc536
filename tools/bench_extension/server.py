"""The servers and tables that the workloads share, and times of statements."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from pgheadroom.extension import objects_sql
from pgheadroom.servers import Cluster, Host, ServerPrograms

Session = psycopg.Connection[Any]

SETTINGS = {
    "autovacuum": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
    # No checkpoint while something is measured: its images would be one arm's and not another's.
    "checkpoint_timeout": "1d",
    "max_wal_size": "64GB",
    "synchronous_commit": "off",
    "maintenance_work_mem": "160MB",
}


@dataclass(frozen=True)
class Arm:
    """A table that is measured: its access method, and whether the source of inserts is sorted."""

    name: str
    method: str
    is_sorted: bool = False
    has_trigger: bool = False

    def create(self, session: Session, columns: str, key: str) -> None:
        """The empty table, its index `NAME_key`, and the mark."""
        session.execute(f"DROP TABLE IF EXISTS {self.name}")
        session.execute(f"CREATE TABLE {self.name} ({columns}) USING {self.method}")
        session.execute(f"CREATE INDEX {self.name}_key ON {self.name} ({key})")
        session.execute(f"ALTER TABLE {self.name} CLUSTER ON {self.name}_key")

    def place(self, session: Session) -> None:
        """From here on the trigger places rows, if this arm has it."""
        if self.has_trigger:
            session.execute(
                f"CREATE TRIGGER place BEFORE INSERT ON {self.name} "
                "FOR EACH ROW EXECUTE FUNCTION cluster_place()"
            )


HEAP = Arm("plain", "heap")
PLACED = Arm("placed", "clustered_heap")
SORTED = Arm("placed_sorted", "clustered_heap", is_sorted=True)
TRIGGER = Arm("by_trigger", "heap", has_trigger=True)


@contextmanager
def running(
    programs: ServerPrograms, shared_buffers: str, **settings: str
) -> Iterator[tuple[Host, Cluster, Session]]:
    """A throw-away server that has the extension, and a session of it."""
    with Host(programs) as host:
        cluster = host.cluster("bench")
        cluster.start({**SETTINGS, "shared_buffers": shared_buffers, **settings})
        with cluster.connect() as session:
            session.execute(objects_sql(programs, host.folder / "clustered_heap"))
            yield host, cluster, session


def spent_ms(session: Session, statement: str) -> float:
    """How long a statement took, as a client sees it."""
    begun = time.perf_counter()
    session.execute(statement)
    return (time.perf_counter() - begun) * 1000
