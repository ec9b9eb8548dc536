"""
Histories of one table and one B-tree index, each about a few rules of nbtree.

Data for `record_btree_golden.py`, which embeds each scenario in what it records.
"""

from __future__ import annotations

import random
from typing import Any

Scenario = dict[str, Any]


def column(value: str, type_name: str = "int4", **more: Any) -> dict[str, Any]:
    """
    A key column.

    `value` is how v follows from the row's number i and random number s: `random` (s), `random_mod`
    (s / 65536 mod `modulus`), `ascending` (i), `descending` (-i), `i_mod`, `i_div`. Every tenth
    below `null_tenths` is NULL. Text is v in ten digits and v mod `length_modulus` letters more.
    """
    defaults = {"modulus": 1, "null_tenths": 0, "length_modulus": 1, "order": ""}
    return {"type": type_name, "value": value} | defaults | more


def scenario(name: str, columns: list[dict[str, Any]], steps: list[Any], **more: Any) -> Scenario:
    """A scenario; `include` of the columns, the last ones, are INCLUDE columns."""
    named = [dict(zip(("op", "a", "b"), step, strict=False)) for step in steps]
    defaults = {"unique": False, "include": 0, "fillfactor": 90, "deduplicate_items": True}
    defaults["full_page_writes"] = False
    return {"name": name, "columns": columns, "steps": named} | defaults | more


def load(rows: int) -> list[Any]:
    """An empty index, then rows."""
    return [("index",), ("insert", 1, rows)]


# Steps: index (CREATE INDEX); insert (rows a to b); delete (rows with i mod a = b); delete_range
# (rows a to b); update (same condition as delete, changes no key); vacuum.
SCENARIOS = [
    scenario("unique-random", [column("random")], load(60000), unique=True),
    scenario(
        "fillfactor-70",
        [column("ascending", "int8")],
        [*load(20000), ("delete", 5, 1), ("vacuum",)],
        unique=True,
        fillfactor=70,
    ),
    scenario(
        "build-then-insert",
        [column("random_mod", modulus=3000)],
        [("insert", 1, 20000), ("index",), ("insert", 20001, 40000)],
    ),
    scenario(
        "build-unique-50",
        [column("random")],
        [("insert", 1, 20000), ("index",), ("insert", 20001, 40000)],
        unique=True,
        fillfactor=50,
    ),
    scenario(
        "two-columns-include",
        [column("random_mod", modulus=500), column("i_mod", modulus=7), column("ascending")],
        load(30000),
        include=1,
    ),
    scenario(
        "no-deduplication",
        [column("random_mod", modulus=200)],
        load(30000),
        deduplicate_items=False,
    ),
    scenario(
        "text",
        [column("random_mod", "text", modulus=20000, length_modulus=60)],
        [*load(30000), ("delete", 3, 0), ("vacuum",), ("insert", 30001, 40000)],
    ),
    scenario(
        "text-and-int",
        [
            column("random_mod", "text", modulus=40, length_modulus=7),
            column("random"),
        ],
        [("insert", 1, 10000), ("index",), ("insert", 10001, 30000)],
    ),
    scenario(
        "nulls",
        [
            column("random_mod", modulus=100, null_tenths=4),
            column("ascending", null_tenths=2),
        ],
        [*load(30000), ("delete", 4, 1), ("vacuum",), ("insert", 30001, 45000)],
    ),
    scenario(
        "nulls-first-descending",
        [
            column("random_mod", "int8", modulus=1000, null_tenths=3, order="NULLS FIRST"),
            column("i_mod", "int2", modulus=300, null_tenths=5, order="DESC"),
        ],
        [("insert", 1, 10000), ("index",), ("insert", 10001, 30000)],
    ),
    scenario(
        "unique-nulls",
        [column("random", null_tenths=5)],
        load(30000),
        unique=True,
    ),
    scenario(
        "duplicates-vacuum",
        [column("random_mod", modulus=100)],
        [
            *load(30000),
            ("delete", 3, 0),
            ("vacuum",),
            ("insert", 30001, 40000),
            ("delete", 2, 1),
            ("vacuum",),
        ],
    ),
    scenario(
        "page-deletion",
        [column("ascending")],
        [
            *load(30000),
            ("delete_range", 5000, 20000),
            ("vacuum",),
            ("insert", 30001, 31000),
            ("vacuum",),
            ("insert", 31001, 45000),
        ],
        unique=True,
    ),
    scenario(
        "subtree-deletion",
        [column("ascending", "text", length_modulus=1, pad=480)],
        [
            *load(4000),
            ("delete_range", 1, 3500),
            ("vacuum",),
            ("insert", 4001, 4010),
            ("vacuum",),
            ("insert", 4011, 5000),
            ("delete_range", 3501, 4990),
            ("vacuum",),
            ("insert", 5001, 7000),
        ],
        unique=True,
    ),
    scenario(
        "all-deleted",
        [column("random_mod", modulus=5000)],
        [
            *load(20000),
            ("delete_range", 1, 20000),
            ("vacuum",),
            ("insert", 20001, 30000),
            ("vacuum",),
            ("insert", 30001, 50000),
        ],
    ),
    scenario(
        "updates-unique",
        [column("random")],
        [*load(20000), *[("update", 2, 1)] * 3, ("vacuum",), *[("update", 3, 1)] * 3],
        unique=True,
    ),
    scenario(
        "updates-duplicates",
        [column("random_mod", modulus=700)],
        [*load(15000), *[("update", 2, 0)] * 4, ("delete", 5, 3), ("vacuum",), ("update", 3, 1)],
    ),
    scenario(
        "updates-text",
        [column("random_mod", "text", modulus=9000, length_modulus=30)],
        [*load(15000), *[("update", 1, 0)] * 3],
    ),
]


WITH_IMAGES = ("text", "nulls", "page-deletion", "subtree-deletion", "updates-unique")
SCENARIOS += [
    played | {"name": f"{played['name']}-images", "full_page_writes": True}
    for played in SCENARIOS
    if played["name"] in WITH_IMAGES
]


def random_column(rng: random.Random) -> dict[str, Any]:
    """A key column of any kind; int2 takes only what fits it."""
    type_name = rng.choice(["int4", "int4", "int8", "int2", "text"])
    values = ["random", "random_mod", "random_mod", "ascending", "descending", "i_mod", "i_div"]
    if type_name == "int2":
        values = ["random_mod", "i_mod"]
    elif type_name == "text":
        values.remove("descending")
    return column(
        rng.choice(values),
        type_name,
        modulus=rng.choice([2, 20, 300, 5000, 20000]),
        null_tenths=rng.choice([0, 0, 0, 1, 5]),
        length_modulus=rng.choice([1, 5, 60]),
        order="" if type_name == "text" else rng.choice(["", "", "DESC", "NULLS FIRST"]),
        pad=rng.choice([0, 0, 20, 300]),
    )


def random_steps(rng: random.Random) -> list[Any]:
    """Rows before the index or not, then anything in any order."""
    rows = rng.choice([0, rng.randint(1, 9000)])
    steps: list[Any] = [("insert", 1, rows)] if rows else []
    steps.append(("index",))
    kinds = ["insert", "insert", "delete", "delete_range", "update", "update", "vacuum", "vacuum"]
    for _ in range(rng.randint(2, 7)):
        kind = rng.choice(kinds)
        if kind == "insert":
            more = rng.randint(1, 7000)
            steps.append((kind, rows + 1, rows + more))
            rows += more
        elif kind == "delete_range":
            start = rng.randint(1, max(1, rows))
            steps.append((kind, start, start + rng.randint(0, 9000)))
        elif kind == "vacuum":
            steps.append((kind,))
        else:
            modulus = rng.randint(1 if kind == "update" else 2, 9)
            steps.append((kind, modulus, rng.randrange(modulus)))
    return steps


def random_scenarios(seed: int, count: int) -> list[Scenario]:
    """Scenarios from a seed, the second half with full-page images."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    scenarios = []
    for number in range(count):
        columns = [random_column(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
        unique = rng.random() < 0.4
        if unique:
            columns.append(column("ascending", rng.choice(["int4", "int8"])))
        scenarios.append(
            scenario(
                f"random-{seed}-{number}",
                columns,
                random_steps(rng),
                unique=unique,
                include=int(len(columns) > 1 and not unique and rng.random() < 0.25),
                fillfactor=rng.choice([90, 90, 50, 100, 10]),
                deduplicate_items=rng.random() < 0.85,
                full_page_writes=number * 2 >= count,
            )
        )
    return scenarios
