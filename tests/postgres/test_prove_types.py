"""
Types on real servers: the same rows in the twin and on a server, to the byte.

With one client every figure is exact: pages, HOT updates, and WAL bytes, which have what a new row
version repeats of the old one left out; so one wrong byte of a value shows.
"""

from __future__ import annotations

from typing import Any

import pytest

from pgheadroom.errors import LabError
from pgheadroom.profile import parse_profile
from pgheadroom.profile.column_types import EXTENSIONS, FORMS, has_operators
from pgheadroom.prove import prove
from pgheadroom.servers import ServerPrograms

pytestmark = pytest.mark.usefixtures("run_parent")

Json = dict[str, Any]
SPELLED = {
    "numeric": "numeric(12,2)",
    "bpchar": "bpchar(11)",
    "varchar": "varchar(40)",
    "bit": "bit(9)",
    "varbit": "varbit(21)",
}
"""Types that want a modifier."""
WIDTHS: dict[str, Json] = {
    "text": {"min_bytes": 3, "max_bytes": 200},
    "json": {"min_bytes": 9, "max_bytes": 200},
    "jsonb": {"min_bytes": 13, "max_bytes": 200},
    "bytea": {"min_bytes": 0, "max_bytes": 160},
    "text[]": {"min_bytes": 24, "max_bytes": 170},
    "varchar[]": {"min_bytes": 25, "max_bytes": 60},
    "tsvector": {"min_bytes": 9, "max_bytes": 90},
    "int4[]": {"min_bytes": 24, "max_bytes": 60},
}
TYPES = [name for name in FORMS if name not in ("xml", *EXTENSIONS)]
"""A server may be built without libxml, and without contrib modules."""
MANY_VALUES = {"kind": "random", "ndistinct": 300}
FEW_VALUES = {"kind": "random", "ndistinct": 7}
GROWS = {"grows_bytes": {"min": 0, "max": 5}}


def _columns(types: list[str], values: Json) -> list[Json]:
    return [
        {
            "name": f"c{n}",
            "type": SPELLED.get(name, name),
            "values": values,
            "null_frac": 0.1 if n % 3 == 0 else 0,
        }
        | ({"width": WIDTHS[name]} if name in WIDTHS else {})
        | ({"labels": [f"{n} l'{at}" for at in range(9)]} if name == "enum" else {})
        for n, name in enumerate(types)
    ]


def _profile(columns: list[Json], indexes: list[Json], sets: Any, **run: Any) -> Json:
    table = {
        "name": "t",
        "rows": 600,
        "fillfactor": 90,
        "columns": [{"name": "id", "type": "int4"}, *columns],
        "indexes": [{"name": "t_pkey", "columns": ["id"], "unique": True}, *indexes],
    }
    update = {"table": "t", "kind": "update", "sets": sets, "pick": {"distribution": "uniform"}}
    operations = [
        {"table": "t", "kind": "insert", "rows_per_statement": 2},
        update | {"weight": 4},
        {"table": "t", "kind": "delete", "pick": {"distribution": "uniform"}},
    ]
    return {
        "schema_version": 1,
        "server": {"shared_buffers": "64MB"},
        "table": [table],
        "operation": operations,
        "run": {"operations": 600, "seed": 3} | run,
    }


def _wrong(data: Json, programs: ServerPrograms) -> list[Any]:
    proof = prove(parse_profile(data), server=str(programs.bin_dir))
    (cell,) = proof.cells
    assert cell.predicted.is_exact
    return [(figure.key, figure.predicted, figure.measured) for _, figure in proof.beyond]


def _exact_where_there(data: Json, programs: ServerPrograms, extension: str) -> None:
    # Debian has what belongs to /usr/lib/postgresql/18 in /usr/share/postgresql/18.
    major, program = str(programs.version.major), programs.bin_dir
    debian = program.parents[3] / "share" / "postgresql" / major
    folders = (program.parent / "share", debian)
    if any(next(folder.rglob(f"{extension}.control"), None) for folder in folders):
        assert _wrong(data, programs) == []
    else:
        with pytest.raises(LabError, match=f"no extension {extension}"):
            _wrong(data, programs)


def test_every_type_in_a_row(programs: ServerPrograms) -> None:
    """Values lie in rows as the server puts them, and change as its operators change them."""
    # The twin shortens none of these, so a row that is long without them has intervals.
    kept = [name for name in TYPES if name == "path" or name.endswith("multirange")]
    for types in ([name for name in TYPES if name not in kept], kept):
        columns = _columns(types, MANY_VALUES)
        sets = {
            f"c{n}": {"changed_frac": 0.2}
            | (GROWS if FORMS[name].grows and name not in SPELLED else {})
            for n, name in enumerate(types)
        }
        assert _wrong(_profile(columns, [], sets), programs) == []


@pytest.mark.parametrize("values", [MANY_VALUES, FEW_VALUES], ids=["many", "few"])
def test_every_type_in_a_btree(programs: ServerPrograms, values: Json) -> None:
    """Entries are ordered, merged and split as by the type's default operator class."""
    types = [name for name in TYPES if FORMS[name].btree]
    columns = _columns(types, values)
    names = [column["name"] for column in columns]
    indexes = [{"name": f"i{name}", "columns": [name]} for name in names]
    indexes.append({"name": "several", "columns": names[12:15], "include": ["c15", names[-1]]})
    sets = {name: {"changed_frac": 0.1} for name in names}
    assert _wrong(_profile(columns, indexes, sets), programs) == []


def test_every_type_in_a_hash_index(programs: ServerPrograms) -> None:
    """Which bucket an entry is in, and so what a split moves, is by the type's own code."""
    types = [name for name in TYPES if has_operators(name, "hash")]
    assert len(types) > 25
    columns = _columns(types, MANY_VALUES)
    names = [column["name"] for column in columns]
    indexes = [
        {"name": f"i{name}", "columns": [name], "method": "hash", "fillfactor": 10}
        for name in names
    ]
    sets = {name: {"changed_frac": 0.1} for name in names}
    assert _wrong(_profile(columns, indexes, sets), programs) == []


@pytest.mark.parametrize("fastupdate", [True, False], ids=["pending", "at once"])
def test_every_type_in_a_gin(programs: ServerPrograms, fastupdate: bool) -> None:
    """Keys are those that the operator class extracts, of one element and of several."""
    types = [name for name in TYPES if has_operators(name, "gin")]
    assert len(types) == 7
    columns = _columns([*types, *types], FEW_VALUES)
    for column in columns[len(types) :]:
        column.pop("width", None)
        column["elements"] = {"min": 1, "max": 9, "ndistinct": 50}
        if column["type"] not in ("int2[]", "jsonb"):
            column["elements"] |= {"ndistinct": 500, "alike": 3}
    for column in columns:
        if "elements" not in column:
            column["width"] = WIDTHS.get(column["type"], {"min_bytes": 28, "max_bytes": 60})
    names = [column["name"] for column in columns]
    indexes = [
        {"name": f"i{name}", "columns": [name], "method": "gin", "fastupdate": fastupdate}
        | ({} if not fastupdate else {"gin_pending_list_limit": 64})
        for name in names
    ]
    paths = [column["name"] for column in columns if column["type"] == "jsonb"]
    indexes.append(
        {"name": "several", "columns": [*paths, names[0]], "method": "gin", "where": "id > 50"}
        | {"opclass": ["jsonb_path_ops", "jsonb_path_ops"]}
    )
    sets = {name: {"changed_frac": 0.1} for name in names}
    maintenance = [
        {"do": "vacuum", "table": "t", "after": 350},
        {"do": "reindex", "table": "t", "after": 450},
    ]
    data = _profile(columns, indexes, sets, maintenance=maintenance)
    assert _wrong(data, programs) == []


@pytest.mark.contrib
def test_operators_of_extensions_in_a_gin(programs: ServerPrograms) -> None:
    """Trigrams of text, and the keys and values of hstore."""
    columns = [
        {"name": "a", "type": "text", "width": {"min_bytes": 0, "max_bytes": 40}},
        {"name": "b", "type": "varchar(20)"},
        {"name": "c", "type": "hstore", "width": {"min_bytes": 14, "max_bytes": 300}},
    ]
    indexes = [
        {"name": "ia", "columns": ["a"], "method": "gin", "opclass": ["gin_trgm_ops"]},
        {"name": "ib", "columns": ["b", "c"], "method": "gin", "opclass": ["gin_trgm_ops", ""]}
        | {"fastupdate": False},
        # Words are what lies between other characters, whatever their case.
        {"name": "iab", "expressions": ["a || '-' || upper(b)"], "method": "gin"}
        | {"opclass": ["gin_trgm_ops"]},
    ]
    sets = {name: {"changed_frac": 0.3} for name in "abc"}
    _exact_where_there(_profile(columns, indexes, sets), programs, "hstore")


@pytest.mark.contrib
def test_types_of_extensions(programs: ServerPrograms) -> None:
    """citext, hstore and ltree in rows and indexes; a server without them says so."""
    columns = _columns([*EXTENSIONS], MANY_VALUES)
    for column in columns:
        column["width"] = {"min_bytes": 14, "max_bytes": 60}
    names = [column["name"] for column in columns]
    indexes: list[Json] = [{"name": f"i{name}", "columns": [name]} for name in names]
    indexes += [
        {"name": f"h{column['name']}", "columns": [column["name"]], "method": "hash"}
        for column in columns
        if has_operators(column["type"], "hash")
    ]
    data = _profile(columns, indexes, {name: {"changed_frac": 0.3} for name in names})
    _exact_where_there(data, programs, "citext")


@pytest.mark.pg(">= 18, < 19")
def test_every_type_in_a_brin(programs: ServerPrograms) -> None:
    """Summaries have the smallest and largest value of the types that minmax has operators for."""
    types = [name for name in TYPES if FORMS[name].brin]
    columns = _columns(types, MANY_VALUES)
    names = [column["name"] for column in columns]
    indexes = [{"name": f"i{name}", "columns": [name], "method": "brin"} for name in names]
    sets = {name: {"changed_frac": 0.2} for name in names}
    assert _wrong(_profile(columns, indexes, sets), programs) == []


@pytest.mark.pg(">= 18, < 19")
def test_long_values_of_every_type_are_moved_out(programs: ServerPrograms) -> None:
    """What is wider than a page's quarter is compressed or moved out, and int4[] compresses."""
    types = ["json", "jsonb", "bytea", "text[]", "int4[]"]
    columns = _columns(types, MANY_VALUES)
    for column in columns:
        column["width"] = {"min_bytes": 700, "max_bytes": 1400}
    sets = {column["name"]: {"changed_frac": 0.3} for column in columns}
    assert _wrong(_profile(columns, [], sets), programs) == []
