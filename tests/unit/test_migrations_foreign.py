"""`check` on migrations that Django and Rails write, against one observed shop."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import observed_table as made
import pytest

from pgheadroom.migration import MigrationCheck, check, check_migration, read_migration
from pgheadroom.migration.answer import HotEnd
from pgheadroom.profile import Profile, parse_profile, to_json

HERE = Path(__file__).parent / "migrations"
LOSES, GAINS, SAME = "loses HOT", "gains HOT", "as before"
BIG, SMALL = 5 * 1024**3, 80 * 1024**2


def _types(*pairs: tuple[str, str, str]) -> list[dict[str, Any]]:
    """Name, type in the profile, type in the catalog."""
    wide = {"min_bytes": 20, "max_bytes": 20}
    listed: list[dict[str, Any]] = [{"name": "id", "type": "int8", "values": {"kind": "serial"}}]
    for name, kind, _ in pairs:
        listed.append({"name": name, "type": kind} | ({"width": wide} if kind == "text" else {}))
    return listed


def _table(
    name: str,
    columns: tuple[tuple[str, str, str], ...],
    counters: tuple[int, int, int],
    classes: dict[tuple[str, ...], int],
    indexed: tuple[str, ...],
    main_bytes: int,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A table and its operations, as `observe` writes them."""
    indexes = [made.index(f"{name}_pkey", ["id"], is_unique=True, is_primary=True)]
    indexes += [made.index(f"index_{name}_on_{column}", [column]) for column in indexed]
    profile = made.profile_of(
        made.counters(*counters),
        columns=_types(*columns),
        indexes=indexes,
        classes=[made.a_class(list(assigned), rows) for assigned, rows in classes.items()],
        fillfactor=85,
        main_bytes=main_bytes,
        totals={"n_tup_upd": counters[0] * 100},
    )
    observed = profile.tables[0].observed
    assert observed is not None
    observed["updates"]["pick"] = {"evidence": "sampled", "why": ""}  # type: ignore[index]
    table = to_json(profile)["table"][0]
    table["name"] = table["observed"]["name"] = name
    spelled = {"id": "bigint"} | {column: kind for column, _, kind in columns}
    for column in table["observed"]["columns"]:
        column["type"] = spelled[column["name"]]
    pick = {"distribution": "uniform"}
    return table, [
        {"table": name, "kind": "update", "weight": rows, "sets": list(assigned), "pick": pick}
        for assigned, rows in classes.items()
    ]


@functools.cache
def shop() -> Profile:
    """
    Sessions that are touched, orders that proceed, customers whom a framework saves whole.

    Every update of a session assigns `updated_at` and `data`; of a customer every column, whose
    values stay the same: `email` is indexed, and 98 % of the updates are HOT all the same.
    """
    stamp = ("timestamptz", "timestamp with time zone")
    listed = [
        _table(
            "sessions",
            (("user_id", "int4", "integer"), ("data", "text", "jsonb"), ("updated_at", *stamp),
             ("seen", "int4", "integer")),
            (1000, 1000, 0),
            {("data", "updated_at"): 1000},
            ("user_id",),
            BIG,
        ),
        _table(
            "orders",
            (("state", "text", "character varying(20)"), ("note", "text", "character varying(40)"),
             ("total", "numeric", "numeric(10,2)"), ("qty", "int4", "integer"),
             ("placed_at", *stamp), ("updated_at", *stamp)),
            (1000, 1000, 0),
            {("state", "updated_at"): 600, ("qty",): 400},
            (),
            BIG,
        ),
        _table(
            "customers",
            (("email", "text", "character varying(80)"), ("name", "text", "text")),
            (1000, 980, 0),
            {("email", "name"): 1000},
            ("email",),
            SMALL,
        ),
    ]  # fmt: skip
    form = {
        "schema_version": 1,
        "server": {"version": "18.4", "observed": made.SERVER},
        "table": [table for table, _ in listed],
        "operation": [operation for _, operations in listed for operation in operations],
        "run": {"duration_s": 100, "rate_per_s": 30, "clients": 1, "seed": 1},
    }
    return parse_profile(json.loads(json.dumps(form)))


# The verdict of each table that is concerned, what takes as long as the table is big, and whether
# a strict check fails.
CASES: dict[str, tuple[dict[str, str], list[str], bool]] = {
    "django/session_updated_index": ({"sessions": LOSES}, ["build"], True),
    "django/session_updated_concurrently": ({"sessions": SAME}, ["build"], False),
    "django/session_data_gin": ({"sessions": LOSES}, ["build"], True),
    "django/order_state_partial": ({"orders": LOSES}, ["build"], True),
    "django/order_placed_index": ({"orders": SAME}, ["build"], True),
    "django/order_priority_db_default": ({"orders": SAME}, [], False),
    "django/order_created_db_default_now": ({"orders": SAME}, [], False),
    "django/order_lucky_db_default_random": ({"orders": SAME}, ["rewrite"], True),
    "django/order_gross_generated": ({"orders": LOSES}, ["rewrite", "build"], True),
    "django/order_note_longer": ({"orders": SAME}, [], False),
    "django/order_qty_bigint": ({"orders": SAME}, ["rewrite"], True),
    "django/order_unique_together": ({"orders": LOSES}, ["build"], True),
    "django/order_customer_fk": ({"orders": SAME, "customers": SAME}, ["build"], True),
    "django/order_rename_then_index": ({"orders": LOSES}, ["build"], True),
    "django/order_brin": ({"orders": SAME}, ["build"], True),
    "django/customer_lower_email": ({"customers": SAME}, ["build"], False),
    "django/order_check": ({"orders": SAME}, ["scan"], True),
    "django/runsql": ({}, [], True),
    "django/order_not_null": ({"orders": SAME}, ["scan"], True),
    "django/remove_note": ({"orders": SAME}, [], False),
    "rails/sessions_index_updated_at": ({"sessions": LOSES}, ["build"], True),
    "rails/orders_index_concurrently": ({"orders": LOSES}, ["build"], True),
    "rails/orders_index_partial_include": ({"orders": LOSES}, ["build"], True),
    "rails/orders_add_reference": ({"orders": SAME, "customers": SAME}, ["build", "scan"], True),
    "rails/orders_virtual_stored": ({"orders": LOSES}, ["rewrite", "build"], True),
    "rails/orders_add_timestamps": ({"orders": SAME}, [], False),
    "rails/orders_add_uuid": ({"orders": SAME}, ["rewrite"], True),
    "rails/orders_change_column_bigint": ({"orders": SAME}, ["rewrite"], True),
    "rails/orders_change_limit": ({"orders": SAME}, [], False),
    "rails/orders_change_null": ({"orders": SAME}, ["scan"], True),
    "rails/orders_rename_swap": ({"orders": LOSES}, ["build"], True),
    "rails/customers_remove_index": ({"customers": GAINS}, [], False),
    "rails/sessions_remove_seen_index": ({}, [], False),
    "rails/customers_index_name_email": ({"customers": SAME}, ["build"], False),
    "rails/customers_rename_table": ({"customers": LOSES}, ["build"], True),
    "rails/fillfactor": ({"orders": SAME}, [], False),
}


def _checked(name: str) -> MigrationCheck:
    text = (HERE / f"{name}.sql").read_text(encoding="utf-8")
    return check_migration(shop(), read_migration(text))


def test_every_file_is_expected_to_say_something() -> None:
    """A file without an expectation would never be looked at."""
    found = {f"{path.parent.name}/{path.stem}" for path in HERE.glob("*/*.sql")}
    assert found == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_what_frameworks_write_is_judged(name: str) -> None:
    """The verdict, what is rewritten, read or built, and what a strict check says."""
    verdicts, efforts, is_strict = CASES[name]
    found = _checked(name)
    assert {table.name: table.verdict for table in found.tables} == verdicts
    mine = [w.effort for t in found.tables for w in t.work if t.name == next(iter(verdicts))]
    assert [effort for effort in mine if effort != "nothing"] == efforts
    assert bool(found.findings or found.strict_findings) == is_strict


def test_an_index_on_what_every_update_assigns_never_gains() -> None:
    """
    An index on sessions.updated_at, which 100 % of the updates assign, was told "gains HOT".

    The calibration had made up changes of another column, the operation was then taken for a
    stand-in, and the update of a third column was played beside the new index.
    """
    (table,) = _checked("rails/sessions_index_updated_at").tables
    assert (table.lost_frac, table.can_be_hot_then) == (1.0, 0.0)
    assert table.lost_by == (
        HotEnd(
            index="index_sessions_on_updated_at",
            column="updated_at",
            reads="key",
            assigned="updated_at",
        ),
    )
    assert table.evidence == "predicted"
    assert "100 % of the updates assign updated_at" in table.text


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("CREATE INDEX ON customers (id);", []),
        ("CREATE INDEX ON orders (id);", ["orders, line 1: writers wait"]),
        ("SELECT 1;\nDO $$ BEGIN NULL; END $$;", ["line 2: not understood"]),
        ("CREATE INDEX ON elsewhere (a);", ["line 1: elsewhere"]),
        ("CREATE TABLE fresh (a int); CREATE INDEX ON fresh (a);", []),
        (
            "DROP TABLE orders; CREATE TABLE orders (a int); CREATE INDEX ON orders (a);",
            ["orders: not judged"],
        ),
        ("CREATE INDEX ON customers (colour);", ["customers: not judged"]),
        (
            "CREATE TRIGGER x BEFORE UPDATE ON customers FOR EACH ROW EXECUTE FUNCTION f();",
            ["customers: not judged"],
        ),
    ],
)
def test_a_strict_check_fails_on_what_it_does_not_know(text: str, strict: list[str]) -> None:
    """Not understood, not judged, or writers of a big table have to wait: nothing else."""
    found = check_migration(shop(), read_migration(text))
    assert list(found.strict_findings) == strict
    assert found.findings == 0


def test_big_is_what_the_caller_says() -> None:
    """Each table by its own size, at the limit that is asked for."""
    listed = read_migration("CREATE INDEX ON orders (id); CREATE INDEX ON customers (id);")
    for limit, names in ((SMALL - 1, {"orders", "customers"}), (SMALL, {"orders"}), (BIG, set())):
        found = check_migration(shop(), listed, rewrite_over_bytes=limit)
        assert {table.name for table in found.tables if table.over} == names
    (table,) = check_migration(shop(), listed, table="orders").tables
    assert table.name == "orders"


@pytest.mark.parametrize(
    ("text", "verdict", "said"),
    [
        (
            "CREATE INDEX x ON sessions (updated_at);",
            LOSES,
            "100 % of the updates assign updated_at",
        ),
        (
            "CREATE INDEX x ON sessions USING brin (updated_at);",
            LOSES,
            "HOT 94.0 % measured, 0.0 % then as estimated from that",
        ),
        (
            "CREATE INDEX x ON sessions (seen) WHERE updated_at IS NOT NULL;",
            LOSES,
            "100 % of the updates assign updated_at. 100 % of the updates can be HOT now and no "
            "more "
            "then (x by updated_at (",
        ),
        ("DROP INDEX index_sessions_on_user_id;", SAME, "index_sessions_on_user_id goes"),
        (
            "ALTER TABLE sessions SET (fillfactor = 60);",
            "not judged",
            "a short run does not repeat",
        ),
    ],
)
def test_where_the_twin_misses_what_was_measured_the_rule_answers(
    text: str, verdict: str, said: str
) -> None:
    """On 15, 94 % HOT and no count of new pages: the case that a calibration had explained away."""
    profile = shop()
    table = profile.table("sessions")
    assert table.observed is not None
    counters = {**table.observed["counters"], "n_tup_hot_upd": 940}
    del counters["n_tup_newpage_upd"]
    table = replace(table, observed=made.seen_of(table, counters=counters))
    server = replace(profile.server, version="15.18")
    profile = replace(profile, tables=(table,), server=server)
    (found,) = check_migration(profile, read_migration(text)).tables
    assert found.verdict == verdict
    assert (found.wal_bytes_per_update_then, found.hot_frac_now, found.hot_frac_then) == (None,) * 3
    assert found.hot_frac_estimated_then == (0.0 if verdict == LOSES else None)
    kinds = {LOSES: "estimated", SAME: "by rule", "not judged": None}
    assert found.evidence == kinds[verdict]
    assert said in found.text


@pytest.mark.parametrize(
    ("text", "wal_bytes", "evidence", "said"),
    [
        ("CREATE INDEX x ON sessions (updated_at)", 120_000, "predicted", "HOT in the long run"),
        (
            "CREATE INDEX x ON sessions (updated_at)",
            30_000,
            "estimated",
            "does not repeat the WAL of an update, 30 bytes as pg_stat_statements has counted it",
        ),
        (
            "CREATE INDEX x ON sessions USING gin (data)",
            120_000,
            "predicted",
            "x (gin)",
        ),
    ],
)
def test_what_is_played_contradicts_no_wal_that_was_measured(
    text: str, wal_bytes: int, evidence: str, said: str
) -> None:
    """WAL is the statements' own, held against theirs as in an advice; other methods are named."""
    profile = shop()
    table = profile.table("sessions")
    assert table.observed is not None
    plain = to_json(profile)["table"][0]["observed"]["updates"]
    plain["classes"][0] |= {"wal_bytes": wal_bytes, "wal_fpi": 0}
    table = replace(table, observed=made.seen_of(table, updates=plain))
    profile = replace(profile, tables=(table,))
    (found,) = check_migration(profile, read_migration(text)).tables
    assert (found.verdict, found.evidence) == (LOSES, evidence)
    assert (found.wal_bytes_per_update_then is None) == (evidence == "estimated")
    assert said in " ".join((found.text, *found.assumed))


def test_figures_have_a_budget_that_verdicts_do_not_hang_on() -> None:
    """What a verdict needs is played all the same; the others are estimated, and why is said."""
    text = (
        "CREATE INDEX ON sessions (updated_at); CREATE INDEX ON orders (qty);"
        "ALTER TABLE customers SET (fillfactor = 60)"
    )
    with mock.patch.object(check, "FIGURES_CPU_S", 0.0):
        found = check_migration(shop(), read_migration(text))
    by_name = {table.name: table for table in found.tables}
    for name in ("sessions", "orders"):
        assert (by_name[name].verdict, by_name[name].evidence) == (LOSES, "estimated")
        assert "tables that are updated more often were played" in by_name[name].text
    assert by_name["customers"].evidence == "predicted"


def test_an_answer_imports_no_statistics() -> None:
    """`scipy.stats` took a second of processor time, half of what an answer may."""
    text = (
        "import sys, test_migrations_foreign as t; found = t._checked('rails/fillfactor');"
        "print(found.tables[0].evidence, 'scipy.stats' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=True,
        timeout=300,
    )
    assert done.stdout.split() == ["predicted", "False"]
