"""Bloat as it is estimated, beside what VACUUM FULL gives back."""

from __future__ import annotations

import pytest
from bloat_shapes import SHAPES, Shape
from bloat_truth import SETTINGS, estimates_of, measured

from pgheadroom.servers import Host, ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

QUICK = ("deleted_after", "nulls_together", "text_short", "duplicates", "dropped")
WIDE_MAX = 8
"""Of all relations: what statistics do not hold in these shapes, each named."""


def held(programs: ServerPrograms, shapes: tuple[Shape, ...]) -> list[bool]:
    """Which estimates are narrow; the truth is inside of all, and wide ones say why."""
    narrow = []
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        for found in measured(cluster, "postgres", shapes=shapes):
            said = found.estimate_frac
            assert found.is_right, (found.name, found.kind, said, found.truth_frac)
            is_narrow = round(said.high - said.low, 9) <= 0.10
            assert is_narrow == (not found.reasons), (found.name, said, found.reasons)
            if not is_narrow:
                wanted = found.shape.is_wide
                assert wanted, (found.name, said, found.reasons)
                assert wanted in "; ".join(found.reasons)
            narrow.append(is_narrow)
    return narrow


def test_intervals_have_the_truth_in_them(programs: ServerPrograms) -> None:
    """Some shapes: the rewrite is inside, and what is wider than ten points says why."""
    narrow = held(programs, tuple(shape for shape in SHAPES if shape.name in QUICK))
    assert len(narrow) >= 13
    assert narrow.count(False) <= 1


@pytest.mark.long(reason="thirty tables are made and rewritten; some are in the test above")
def test_all_shapes(programs: ServerPrograms) -> None:
    """At least thirty tables and indexes at most ten points wide, the truth in all of them."""
    narrow = held(programs, SHAPES)
    assert narrow.count(True) >= 60
    assert narrow.count(False) <= WIDE_MAX


def test_what_cannot_be_known_is_said(newest: ServerPrograms) -> None:
    """No statistics, none for the role, counters lost, a table that somebody holds."""
    with Host(newest) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        with cluster.connect() as connection:
            from psycopg.rows import dict_row

            def ask(text: str) -> list[dict[str, object]]:
                with connection.cursor(row_factory=dict_row) as cursor:
                    return cursor.execute(text.encode()).fetchall()

            def said(about: str) -> tuple[bool, str]:
                (found,) = [each for each in estimates_of(ask).values() if each.name == about]
                assert found.estimate is not None
                frac = found.estimate.given_back_frac
                assert found.estimate.is_narrow or frac.low < 0.49 < frac.high, (about, frac)
                return found.estimate.is_narrow, "; ".join(found.estimate.reasons)

            for statement in (
                "CREATE TABLE t (id int NOT NULL, v text)",
                "INSERT INTO t SELECT i, 'text ' || i FROM generate_series(1, 20000) i",
                "CREATE INDEX t_v ON t (v)",
                "DELETE FROM t WHERE id % 2 = 0",
                "VACUUM t",
            ):
                connection.execute(statement.encode())
                connection.execute("SELECT pg_stat_force_next_flush()")
            for name in ("t", "t_v"):
                is_narrow, why = said(name)
                assert not is_narrow
                assert "no statistics of" in why
            connection.execute("ANALYZE t")
            connection.execute("SELECT pg_stat_force_next_flush()")
            for name in ("t", "t_v"):
                assert said(name) == (True, "")
            connection.execute("CREATE ROLE nobody_special")
            connection.execute("SET ROLE nobody_special")
            assert "the right to read them" in said("t")[1]
            connection.execute("RESET ROLE")
            connection.execute("SELECT pg_stat_reset()")
            assert "how many rows changed" in said("t")[1]
            with cluster.connect(autocommit=False) as holder:
                holder.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
                found = {each.name: each.estimate for each in estimates_of(ask).values()}
                assert found["t"] is None
                assert found["t_v"] is not None
