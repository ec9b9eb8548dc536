"""What inserts lock in the table that they refer to: in an observed profile, and in its proof."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import observed
import pytest

from pgheadroom.advise import Options, advise
from pgheadroom.advise.knobs import Knobs
from pgheadroom.advise.row_locks import locks_remark
from pgheadroom.advise.scenario import make_scenario
from pgheadroom.observe import find_classes, observe
from pgheadroom.outcome import middle
from pgheadroom.predict import predict
from pgheadroom.predict.values import PredictedCell
from pgheadroom.profile import Profile, parse_profile, to_json
from pgheadroom.profile.foreign_keys import without_foreign_keys
from pgheadroom.profile.tables import ForeignKey, Values
from pgheadroom.prove import ProofCell, prove
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.sources.observing import ObservationRequest, watch
from pgheadroom.sources.session import read_only_session
from pgheadroom.wal.beside import beside

pytestmark = pytest.mark.usefixtures("run_parent")

SHOP = """
CREATE TABLE users (id int4 PRIMARY KEY, email text UNIQUE, visits int4)
    WITH (autovacuum_enabled = off);
CREATE TABLE coupons (id int8 PRIMARY KEY, uses int4) WITH (autovacuum_enabled = off);
CREATE TABLE carts (id int4 PRIMARY KEY) WITH (autovacuum_enabled = off);
CREATE TABLE pages (id uuid PRIMARY KEY, title text) WITH (autovacuum_enabled = off);
CREATE TABLE orders (id int8 PRIMARY KEY, user_id int4 NOT NULL REFERENCES users,
    coupon int4 REFERENCES coupons, email text REFERENCES users (email), before int8
    REFERENCES orders, cart int4 REFERENCES carts, late int4, page uuid REFERENCES pages)
    WITH (autovacuum_enabled = off);
ALTER TABLE orders ADD CONSTRAINT orders_late_fkey FOREIGN KEY (late) REFERENCES users NOT VALID;
CREATE TABLE lines (order_id int8 REFERENCES orders, n int4) WITH (autovacuum_enabled = off);
CREATE TABLE notes (id int4 PRIMARY KEY, user_id int4 REFERENCES users);
INSERT INTO users SELECT i, i || '@example.net', 0 FROM generate_series(1, 300) i;
INSERT INTO coupons SELECT i, 0 FROM generate_series(1, 40) i;
INSERT INTO carts SELECT i FROM generate_series(1, 40) i;
INSERT INTO pages SELECT md5(i::text)::uuid, 'page' FROM generate_series(1, 40) i;
INSERT INTO orders SELECT i, 1 + i * 7 % 300, CASE WHEN i % 2 = 0 THEN 1 + i / 2 % 4 END,
    (1 + i * 7 % 300) || '@example.net', i, 11 + i % 30, 1, md5((1 + i % 40)::text)::uuid
    FROM generate_series(1, 1200) i;
INSERT INTO lines SELECT 1 + i / 2, i FROM generate_series(0, 2399) i;
INSERT INTO notes SELECT i, i FROM generate_series(1, 100) i;
VACUUM ANALYZE
"""
ORDERS, VISITS = 400, 200  # a visit every second order


def _played(cluster: Any) -> None:
    """Orders with two lines each, and between them visits of users; carts and a coupon go."""
    drawn = random.Random(1)
    with observed.session(cluster) as connection:
        connection.execute("DELETE FROM carts WHERE id <= 5")
        connection.execute("DELETE FROM coupons WHERE id = 40")
        for n in range(1201, 1201 + ORDERS):
            user, coupon = drawn.randint(1, 300), drawn.randint(1, 4)
            connection.execute(
                "INSERT INTO orders VALUES (%s, %s, %s, %s, %s, 20, 1, md5('7')::uuid)",
                (n, user, coupon if n % 2 else None, f"{user}@example.net", n - 1),
            )
            connection.execute("INSERT INTO lines VALUES (%s, 1), (%s, 2)", (n, n))
            if n % (ORDERS // VISITS) == 0:
                visitor = drawn.randint(1, 300)
                connection.execute("UPDATE users SET visits = visits + 1 WHERE id = %s", (visitor,))


def _locks(profile: Profile, table: str) -> int:
    """LOCK records of a table in the log of the interval."""
    wal = observed.facts(profile, table).wal
    return 0 if wal is None or "lock" not in wal.by_cause else wal.by_cause["lock"].records


def _records(cell: PredictedCell | ProofCell, table: str) -> float:
    return middle(cell.predicted.by_table[table].value("wal_records")) or 0.0


@pytest.fixture
def shop(programs: ServerPrograms) -> Profile:
    """The shop, observed with its log while it is played."""
    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off", "full_page_writes": "off"})
        observed.load(cluster, SHOP)
        done: list[str] = []

        def work(text: str) -> None:
            if not done:
                _played(cluster)
            done.append(text)

        request = ObservationRequest(duration_s=0.4, ticks=2, samples=True)
        with (
            read_only_session(observed.conninfo(cluster), {}) as connection,
            beside(observed.conninfo(cluster), {}, wanted=True) as log,
        ):
            recording = watch(connection, request, work, lambda moment, _: log.at(moment))
            classes = find_classes(recording, [], [])
            found = log.add(observe(recording, classes, mask=False, sampled=True))
            masked = observe(recording, classes, mask=True, sampled=True)
    keys = [len(table.foreign_keys) for table in found.tables]
    assert sorted(keys) == sorted(len(table.foreign_keys) for table in masked.tables)
    return found


def test_what_inserts_lock_is_in_the_forecast(shop: Profile, programs: ServerPrograms) -> None:
    """
    Each kind of key is played, or named with the reason; the rest follows from those played.

    LOCK records were in no operation of an observed profile: Procrastinate's workers wrote 3,184
    bytes of WAL an update, and 198 were foreseen.
    """
    keys = {table.name: table.foreign_keys for table in shop.tables if table.foreign_keys}
    assert keys == {
        "orders": (
            ForeignKey(columns=("coupon",), references="coupons"),
            ForeignKey(columns=("page",), references="pages"),
            ForeignKey(columns=("user_id",), references="users"),
        ),
        "lines": (ForeignKey(columns=("order_id",), references="orders"),),
    }
    values = {name: shop.table("orders").column(name).values for name in ("coupon", "user_id")}
    assert values["coupon"] == Values(kind="parent", ndistinct=4)
    assert values["user_id"] == Values(kind="parent", ndistinct=300)
    lines = shop.table("lines").column("order_id").values
    assert (lines.kind, lines.pick) == ("parent", "newest")
    assert shop.server.observed is not None
    why = {one.name: one.left_out for one in shop.server.observed.foreign_keys or ()}
    assert why == {
        "orders_before_fkey": "their tables refer to themselves",
        "orders_cart_fkey": "rows of carts are deleted",
        "orders_coupon_fkey": None,
        "orders_email_fkey": "they refer to another column of users than its rows are found by",
        "orders_late_fkey": "they are NOT VALID, or not enforced",
        "orders_page_fkey": None,
        "orders_user_id_fkey": None,
        "lines_order_id_fkey": None,
        "notes_user_id_fkey": "no statement that was observed looks for rows by it",
    }
    said = " ".join(shop.server.observed.assumed)
    assert "orders_cart_fkey of orders): rows of carts are deleted" in said
    assert "notes_user_id_fkey" not in said
    assert "from coupons, to which others refer, no row is deleted: its deletes are left" in said
    assert parse_profile(to_json(shop)) == shop
    # As many transactions, whatever the pace of the machine: then one client's figures are exact.
    counted = replace(shop.workload.run, operations=1400, duration_s=None, rate_per_s=None)
    fixed = replace(shop, workload=replace(shop.workload, run=counted))
    proof = prove(fixed, server=str(programs.bin_dir))
    assert [(f.table, f.key, f.predicted, f.measured) for _, f in proof.beyond] == []
    (cell,) = proof.cells
    # In the application as often as here, of each order that is written.
    orders = cell.measured.by_table["orders"].n_tup_ins
    assert orders
    for table, each in (("coupons", 0.5), ("pages", 1.0)):
        assert _locks(shop, table) == each * ORDERS
        records = cell.measured.by_table[table].wal_records or 0
        assert records / orders == pytest.approx(each, rel=0.25), table
    bare = [without_foreign_keys(table, table.foreign_keys) for table in shop.tables]
    (alone,) = predict(replace(fixed, tables=tuple(bare)), server=str(programs.version)).cells
    more = _records(cell, "users") - _records(alone, "users")
    assert more == pytest.approx(orders, rel=0.05)


def test_advice_of_a_table_that_others_lock(shop: Profile) -> None:
    """Each table is played by itself; what others lock in it is named, and in no figure."""
    users = shop.table("users")
    said = locks_remark(users, shop)
    assert said is not None
    assert said.text.startswith("Foreign keys of orders lock rows of this table, about ")
    assert locks_remark(shop.table("lines"), shop) is None
    seldom = tuple(replace(one, weight=1) for one in shop.workload.operations)
    rare = replace(shop, workload=replace(shop.workload, operations=seldom))
    assert locks_remark(users, rare) is None
    scenario = make_scenario(shop, shop.table("orders"), Knobs())
    assert scenario is not None
    assert not scenario.table.foreign_keys
    assert scenario.table.column("user_id").values.kind == "random"
    advice = advise(shop, Options(tables=("users", "orders"), budget_s=20.0))
    assert "the twin cannot play it" not in " ".join(one.reason for one in advice.tables)
    (found,) = (one for one in advice.tables if one.table == "users")
    assert said in found.remarks
