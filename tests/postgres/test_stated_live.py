"""Indexes over what the twin cannot evaluate: their figures' intervals hold what a server has."""

from __future__ import annotations

from typing import Any

import observed
import pytest

from pgheadroom.predict import predict
from pgheadroom.profile import parse_profile, to_json
from pgheadroom.prove import prove
from pgheadroom.servers import Host, ServerPrograms
from pgheadroom.types import Interval

pytestmark = pytest.mark.usefixtures("run_parent")

Json = dict[str, Any]
INDEXES: tuple[Json, ...] = (
    {
        "expressions": ["date_trunc('day', w)"],
        "stated": {"type": "timestamp", "ndistinct": 35, "changed_frac": 0},
    },
    {
        "expressions": ["substring(s, 1, 12)"],
        "stated": {"type": "text", "width": 12},
    },
    {
        "expressions": ["CASE WHEN n > 3 THEN n END"],
        "stated": {"type": "int4", "ndistinct": 5, "null_frac": 1, "changed_frac": 0},
    },
    {"columns": ["n"], "where": "s LIKE 'a%'", "stated": {"true_frac": 0.06, "changed_frac": 0.11}},
    {
        "columns": ["w"],
        "where": "n = ANY ('{0,1,2}')",
        "stated": {"true_frac": 1, "changed_frac": 0},
    },
)


def _index(number: int, index: Json, *, stated: bool) -> Json:
    text = index["where"] if "where" in index else index["expressions"][0]
    made = {key: value for key, value in index.items() if key != "stated"} | {"name": f"i{number}"}
    return made | ({"stated": [{"expression": text} | index["stated"]]} if stated else {})


def _profile(*, stated: bool) -> Json:
    columns = [
        {"name": "id", "type": "int8"},
        {"name": "n", "type": "int4", "values": {"kind": "constant"}},
        {"name": "w", "type": "timestamp", "values": {"kind": "random", "ndistinct": 3_000_000}},
        {"name": "s", "type": "text", "width": 20},
        {"name": "free", "type": "int8"},
    ]
    indexes = [
        {"name": "t_pkey", "columns": ["id"], "unique": True},
        *(_index(number, index, stated=stated) for number, index in enumerate(INDEXES)),
    ]
    table = {"name": "t", "rows": 4000, "fillfactor": 60, "columns": columns, "indexes": indexes}
    updates = [
        {"table": "t", "kind": "update", "sets": [name], "weight": weight}
        for name, weight in (("n", 1), ("w", 1), ("s", 1), ("free", 3))
    ]
    return {
        "schema_version": 1,
        "server": {"full_page_writes": False},
        "table": [table],
        "operation": updates,
        "run": {"operations": 6000},
    }


@pytest.mark.parametrize("stated", [True, False], ids=["stated", "assumed"])
def test_intervals_hold(programs: ServerPrograms, stated: bool) -> None:
    """
    Which updates are HOT is right; pages and WAL lie in what was foreseen.

    On servers the expressions are what they are: days of times that move by a microsecond, digits
    of hashes, numbers that grow.
    """
    proof = prove(parse_profile(_profile(stated=stated)), server=str(programs.bin_dir))
    (cell,) = proof.cells
    missed = {}
    for key in ("n_tup_hot_upd", "heap_pages", "index_pages", "wal_records", "wal_bytes"):
        foreseen, measured = getattr(cell.predicted, key), getattr(cell.measured, key)
        low, high = (
            (foreseen.low, foreseen.high)
            if isinstance(foreseen, Interval)
            else (foreseen, foreseen)
        )
        if not low <= measured <= high:
            missed[key] = (low, measured, high)
    assert missed == {}
    hot = cell.predicted.n_tup_hot_upd
    middle = hot.mid if isinstance(hot, Interval) else hot
    assert abs(middle - cell.measured.n_tup_hot_upd) <= 60


LIVE = """
CREATE TABLE t (id int8 PRIMARY KEY, w timestamp, s text, c int4) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, '2020-01-01'::timestamp + i * interval '1 hour', md5(i::text), i % 5
    FROM generate_series(1, 2400) i;
CREATE INDEX t_day ON t (date_trunc('day', w));
CREATE INDEX t_like ON t (c) WHERE s LIKE 'a%';
CREATE INDEX t_down ON t (c DESC, w DESC NULLS LAST);
CREATE INDEX t_pattern ON t (s text_pattern_ops);
VACUUM ANALYZE t
"""


@pytest.mark.pg(">= 16, < 19")
def test_observe_states_what_the_server_knows(programs: ServerPrograms) -> None:
    """
    Of expressions that the twin cannot evaluate type, different values and share are written.

    DESC, NULLS and operator classes stay, and the profile can be predicted.
    """

    def work() -> None:
        with observed.session(cluster) as connection:
            connection.execute("UPDATE t SET c = c + 1 WHERE id <= 300")

    with Host(programs) as host:
        cluster = host.cluster("main")
        cluster.start({"autovacuum": "off"})
        observed.load(cluster, LIVE)
        profile = observed.profile_of(observed.watched(cluster, work))
    indexes = {index.name: index for index in profile.table("t").indexes}
    (day,) = indexes["t_day"].stated
    assert (day.type, day.ndistinct, day.columns) == ("timestamp", 101, ("w",))
    (like,) = indexes["t_like"].stated
    assert like.true_frac == pytest.approx(1 / 16, abs=0.02)
    assert not day.assumed
    assert not like.assumed
    assert indexes["t_down"].order == ("DESC", "DESC NULLS LAST")
    assert indexes["t_pattern"].opclass == ("text_pattern_ops",)
    assert parse_profile(to_json(profile)) == profile
    (cell,) = predict(profile, server="18.4").cells
    updates = cell.predicted.n_tup_upd
    assert isinstance(updates, Interval)
    assert updates.mid == 300
