"""Bloat as it is estimated, beside what VACUUM FULL gives back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bloat_shapes import SHAPES, Shape
from bloat_truth import SETTINGS, estimates_of, measured
from doctor_sides import examined
from psycopg.rows import dict_row

from pgheadroom.bloat.measured import as_measured, measure, module_schema
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

QUICK = ("deleted_after", "nulls_together", "text_short", "duplicates", "dropped")
WIDE_MAX = 8
"""Of all relations: what statistics do not hold in these shapes, each named."""
COUNTED_APART = ("deleted_after", "grown")
"""A third went, or a quarter came, after ANALYZE: counters alone do not tell that from changes
before it which a session told afterwards. A table and its index each."""


def held(programs: ServerPrograms, shapes: tuple[Shape, ...]) -> list[bool]:
    """
    Which estimates are narrow; the truth is inside of all, and wide ones say why.

    Those of tables that changed since ANALYZE are wide by as much, and are not in the answer.
    """
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
            if found.shape.name in COUNTED_APART:
                assert not is_narrow, (found.name, said)
                continue
            narrow.append(is_narrow)
    return narrow


def test_intervals_have_the_truth_in_them(programs: ServerPrograms) -> None:
    """Some shapes: the rewrite is inside, and what is wider than ten points says why."""
    narrow = held(programs, tuple(shape for shape in SHAPES if shape.name in QUICK))
    assert len(narrow) >= 11
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


MEASURED = ("deleted_third", "deleted_not_vacuumed", "toasted_small", "old_statistics", "queue")


@pytest.mark.contrib
def test_what_pgstattuple_measures(programs: ServerPrograms) -> None:
    """Its bounds, which know no column, have the truth in them; they narrow what is wide."""
    if "pgstattuple" not in programs.contrib:
        pytest.skip("this server has no pgstattuple")
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start(SETTINGS)
        with cluster.connect(prepare_threshold=None, row_factory=dict_row) as connection:

            def ask(text: str) -> list[dict[str, Any]]:
                return connection.execute(text.encode()).fetchall()

            def run(text: str) -> None:
                for statement in filter(str.strip, text.split(";\n")):
                    connection.execute(statement.encode())
                    connection.execute("SELECT pg_stat_force_next_flush()")

            assert module_schema(ask) is None
            run("CREATE EXTENSION pgstattuple;\nCREATE ROLE nobody_special;\n")
            run("SET ROLE nobody_special;\n")
            assert module_schema(ask) is None
            run("RESET ROLE;\nSELECT setseed(0.5);\n")
            schema = module_schema(ask)
            assert schema == "public"
            narrower = 0
            for shape in SHAPES:
                if shape.name not in MEASURED:
                    continue
                run(f"{shape.sql}ANALYZE {shape.name};\n{shape.later}")
                found = [each for each in estimates_of(ask).values() if each.estimate]
                told = []
                for each in found:
                    if each.estimate.kind == "btree" or each.estimate.pages < 100:
                        continue
                    seen = measure(ask, schema, each.oid, 2.0**40)
                    assert seen is not None
                    anyhow = replace(
                        each.estimate,
                        rewritten_pages=Interval(low=0, mid=0, high=1e9, level=0.99),
                    )
                    alone = as_measured(anyhow, seen, 100)
                    both = as_measured(each.estimate, seen, 100)
                    told.append((each, alone, both))
                run(f"VACUUM FULL {shape.name};\n")
                for each, alone, both in told:
                    (row,) = ask(f"SELECT (pg_relation_size({each.oid}) / 8192)::int8 AS pages")
                    for said in (alone, both):
                        new = said.rewritten_pages
                        assert new.low <= row["pages"] <= new.high, (shape.name, said, row)
                    narrower += both.given_back_frac.width < each.estimate.given_back_frac.width
                run(f"DROP TABLE {shape.name};\n")
            assert narrower >= 2
            # The doctor asks it where there are no statistics.
            run(
                "CREATE TABLE t (v text);\n"
                "INSERT INTO t SELECT repeat('v', 500) FROM generate_series(1, 40000);\n"
                "DELETE FROM t WHERE ctid::text LIKE '%1)' OR ctid::text ~ '[2-7]\\)$';\n"
                "VACUUM t;\n"
            )
            (finding,) = examined(cluster, "postgres", "bloated-table").findings
            assert finding.numbers["is_measured"] is True
            assert "pgstattuple_approx" in finding.price.text
            size = finding.numbers["size_bytes"]
            run("VACUUM FULL t;\n")
            (row,) = ask("SELECT pg_relation_size('t')::int8 AS left")
            ends = [finding.numbers[f"given_back_bytes_{end}"] for end in ("low", "high")]
            assert ends[0] <= size - row["left"] <= ends[1]
            run("DROP EXTENSION pgstattuple;\nDROP ROLE nobody_special;\n")
