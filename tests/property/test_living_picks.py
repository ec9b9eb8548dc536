"""
Which rows statements take where rows come and go: three ways to the same keys.

The format's text, followed with lists of rows; the pgbench script that a server is given, evaluated
as pgbench evaluates it; and the twin's own arithmetic.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lengths import examples
from pgbench_scripts import Chooser, Prng, permute, run
from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.play.scripts import scripts, variables
from pgheadroom.play.values import million
from pgheadroom.profile import Operation, Pick, Profile, parse_profile, to_json
from pgheadroom.profile.workload import RowRange

Json = dict[str, Any]
Keys = tuple[int, int]
TURNS = 60
NONE = -1


class _Rows:
    """A client's own rows of a table in their order, with those that its inserts leave out."""

    def __init__(self, client: int, clients: int, loaded: int, most: int) -> None:
        self.keys = list(range(client + 1, loaded + 1, clients))
        self.first, self.last, self.deletes = 0, len(self.keys) - 1, 0
        self._statement, self._step = loaded + 1 + client * most, clients * most
        self._most, self.last_inserted = most, 0

    def next_insert(self) -> int:
        self.keys += range(self._statement, self._statement + self._most)
        self._statement += self._step
        return self._statement - self._step

    def inserted(self, rows: int) -> None:
        self.last = len(self.keys) - self._most + rows - 1
        self.last_inserted = self.keys[self.last]

    def pick(self, pick: Pick, *, deletes: bool, prng: Prng) -> int:
        """Of the rows that are there, by the format's words."""
        n = self.last - self.first + 1
        if n < 1:
            return NONE
        if pick.within_rows is not None:
            block, place = divmod(self.deletes, pick.within_rows)
            i = pick.within_rows * block + permute(place, pick.within_rows, 1)
        elif pick.distribution == "oldest":
            i = self.first
        elif pick.distribution == "age":
            i = self.last - prng.random(pick.min_age_rows or 0, pick.max_age_rows or 0)
        elif pick.distribution == "uniform":
            i = self.first - 1 + prng.random(1, n)
        elif pick.distribution == "zipfian":
            i = self.last + 1 - prng.random_zipfian(1, n, pick.theta or 0)
        else:
            i = self.last + 1 - prng.random_gaussian(1, n, pick.param or 0)
        if not self.first <= i <= self.last:
            return NONE
        if deletes and pick.distribution == "oldest":
            self.deletes += 1
            self.first += 1
            if pick.within_rows is not None:
                self.first = self.deletes // pick.within_rows * pick.within_rows
        return self.keys[i]


class _Client:
    """What one client draws, by the format's words."""

    def __init__(self, profile: Profile, number: int, prng: Prng) -> None:
        self.profile, self.number, self.prng = profile, number, prng
        self.clients = profile.workload.run.clients
        self.rows = {
            table.name: _Rows(number, self.clients, table.rows, _most(profile, table.name))
            for table in profile.tables
        }

    def transaction(self, operations: tuple[Operation, ...]) -> list[Keys]:
        made = [self._statement(operation) for operation in operations]
        if operations[0].abort_frac > 0:
            self.prng.random(1, 1_000_000)
        return made

    def _statement(self, operation: Operation) -> Keys:
        own, pick, most = self.rows[operation.table], operation.pick, operation.rows_max
        loaded = self.profile.table(operation.table).rows
        deletes = operation.kind == "delete"
        if pick is None:
            low = own.next_insert()
        elif operation.is_living:
            low = own.pick(pick, deletes=deletes, prng=self.prng)
        elif pick.distribution == "oldest":
            # The oldest of the loaded rows and the keys behind it, which may be others' too.
            low = self.number + 1 + own.first * self.clients
            low = -most if low > loaded else low
        elif pick.distribution == "newest":
            low = own.last_inserted or loaded - self.number
        else:
            low = self.prng.random(1, loaded)
        rows = operation.rows_per_statement
        if isinstance(rows, RowRange):
            rows = self.prng.random(rows.min_rows, rows.max_rows)
        if pick is None:
            own.inserted(rows)
        elif deletes and pick.distribution == "oldest" and not operation.is_living and low > 0:
            own.first += sum(
                key % self.clients == low % self.clients for key in range(low, low + rows)
            )
        for change in operation.sets:
            if change.draws:
                self.prng.random(1, 1_000_000)
        return low, low + rows - 1


def _most(profile: Profile, table: str) -> int:
    inserts = (o for o in profile.workload.operations if o.kind == "insert" and o.table == table)
    return max((operation.rows_max for operation in inserts), default=1)


def _by_words(profile: Profile) -> list[list[Keys]]:
    chooser = Chooser(profile.workload.run.seed, profile.workload.run.clients)
    clients = [_Client(profile, n, prng) for n, prng in enumerate(chooser.clients)]
    transactions = profile.workload.transactions()
    weights = [transaction[0].weight for transaction in transactions]
    return [
        client.transaction(transactions[chooser.choose(weights)])
        for _ in range(TURNS)
        for client in clients
    ]


def _by_scripts(profile: Profile) -> list[list[Keys]]:
    chooser = Chooser(profile.workload.run.seed, profile.workload.run.clients)
    sessions = [{"client_id": n} | variables(profile) for n in range(len(chooser.clients))]
    numbers = {id(operation): n for n, operation in enumerate(profile.workload.operations)}
    transactions = profile.workload.transactions()
    played = scripts(profile)
    weights = [script.weight for script in played]
    made = []
    for turn in range(TURNS * len(sessions)):
        client = turn % len(sessions)
        chosen, session = chooser.choose(weights), sessions[client]
        sent = list(run(played[chosen].text, session, chooser.clients[client]))
        operations = transactions[chosen]
        assert len(sent) >= len(operations)
        if operations[0].abort_frac > 0:
            aborts = session["a"] <= million(operations[0].abort_frac)
            assert sent[-1] == ("ROLLBACK;" if aborts else "COMMIT;")
        made.append([_keys(operation, numbers[id(operation)], session) for operation in operations])
    return made


def _keys(operation: Operation, n: int, session: dict[str, Any]) -> Keys:
    return session[f"k{n}"], session[f"{'m' if operation.rows_max > 1 else 'k'}{n}"]


BLOCKS = st.sampled_from([1, 2, 3, 7, 20])
LIVE = {"among": "live"}
PICKS = st.one_of(
    st.sampled_from([{"distribution": "oldest"}, {"distribution": "uniform", **LIVE}]),
    st.builds(lambda n: {"distribution": "oldest", "within": n}, BLOCKS),
    st.builds(
        lambda low, more: {"distribution": "age", "min": low, "max": low + more},
        st.integers(0, 6),
        st.integers(0, 12),
    ),
    st.builds(
        lambda theta: {"distribution": "zipfian", "theta": theta, **LIVE},
        st.sampled_from([1.1, 1.5, 3.0]),
    ),
    st.builds(
        lambda param: {"distribution": "gaussian", "param": param, **LIVE},
        st.sampled_from([2.0, 4.5]),
    ),
    st.sampled_from([{"distribution": "newest"}, {"distribution": "uniform"}]),
)
ROWS = st.one_of(st.just(1), st.sampled_from([2, {"min": 1, "max": 3}, {"min": 2, "max": 4}]))


@st.composite
def operations(draw: st.DrawFn, table: str, insert_rows: Any) -> Json:
    """An insert, or a statement that finds a row, in its own transaction or in one of two."""
    made: Json = {"table": table, "kind": draw(st.sampled_from(["insert", "delete", "update"]))}
    made |= {"weight": draw(st.integers(1, 3)), "abort_frac": draw(st.sampled_from([0, 0, 0.4]))}
    if (name := draw(st.sampled_from([None, None, "a", "b"]))) is not None:
        made["transaction"] = name
    if made["kind"] == "insert":
        return made | {"rows_per_statement": insert_rows}
    made["pick"] = draw(PICKS)
    if made["pick"]["distribution"] in ("oldest", "uniform", "newest") and len(made["pick"]) == 1:
        made["rows_per_statement"] = draw(ROWS)
    if made["kind"] == "update":
        made["sets"] = {"n": {"changed_frac": draw(st.sampled_from([1, 0.5]))}}
    return made


@st.composite
def profiles(draw: st.DrawFn) -> Json:
    """One to three clients, one or two tables that may be empty at first."""
    clients = draw(st.integers(1, 3))
    names = ["t", "u"][: draw(st.integers(1, 2))]
    key = {"name": "id", "type": "int8"}
    tables = [
        {
            "name": name,
            "rows": clients * draw(st.sampled_from([0, 0, 1, 5, 12])),
            "columns": [key, {"name": "n", "type": "int4"}],
            "indexes": [{"name": f"{name}_pkey", "columns": ["id"], "unique": True}],
        }
        for name in names
    ]
    rows = {name: draw(ROWS) for name in names}
    of_tables = st.sampled_from(names).flatmap(lambda name: operations(name, rows[name]))
    return {
        "schema_version": 1,
        "table": tables,
        "operation": draw(st.lists(of_tables, min_size=1, max_size=6)),
        "run": {
            "operations": TURNS * clients,
            "clients": clients,
            "seed": draw(st.integers(0, 2**31)),
        },
    }


def _queue(pick: Json, **delete: Any) -> Json:
    """A queue of blocks, in which inserts and deletes come by chance."""
    data = {
        "schema_version": 1,
        "table": [
            {
                "name": "t",
                "rows": 12,
                "columns": [{"name": "id", "type": "int8"}, {"name": "n", "type": "int4"}],
                "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}],
            }
        ],
        "operation": [
            {"table": "t", "kind": "insert", "rows_per_statement": {"min": 1, "max": 3}},
            {"table": "t", "kind": "update", "sets": ["n"], "pick": pick},
            {"table": "t", "kind": "delete", "pick": {"distribution": "oldest"} | delete},
        ],
        "run": {"operations": 2 * TURNS, "clients": 2, "seed": 3},
    }
    data["operation"][2]["weight"] = 3
    return data


@given(profiles())
@example(_queue({"distribution": "age", "min": 0, "max": 4}))
@example(_queue({"distribution": "zipfian", "theta": 1.1, "among": "live"}, within=7))
@example(_queue({"distribution": "oldest", "within": 5}, within=5))
@settings(max_examples=examples(150))
def test_words_scripts_and_twin_take_the_same_keys(data: Json) -> None:
    """Key by key, for every statement of every client, whatever the profile."""
    try:
        profile = parse_profile(data)
    except InputError:
        assume(False)
    by_words = _by_words(profile)
    assert _by_scripts(profile) == by_words
    assert _core.drawn_keys(json.dumps(to_json(profile)), "18.4", TURNS) == by_words
