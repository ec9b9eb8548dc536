"""
A profile out of a seed and a number: fields of the format, in values that make sense.

What comes out may still be refused (a planner that takes another index, a key that is taken): the
format allows more than any server plays. Left out is what docs/limits.md gives no exact figures
for, compressed images and shared buffers that hold less than what a run writes, and pgbench's own
scripts; tests/unit/test_fuzz_profiles.py holds what is drawn against what the format declares.
Half of the profiles have fields of `further.py` besides.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuzz_profiles.draw import Draw, Section
from fuzz_profiles.further import add_further
from pgheadroom._core import unused_max
from pgheadroom.profile.pages import redirects_max

_NUMBERS = ("int2", "int4", "int8", "float4", "float8", "numeric", "numeric(7,2)")
_OTHERS = ("bool", "timestamp", "timestamptz", "bpchar(1)", "bpchar(20)", "bpchar(84)")
_GIN = ("int4[]", "int8[]", "text[]", "tsvector", "jsonb")
_STRINGS = ("text", "text", "varchar(500)")
_GEOMETRY = ("box", "lseg", "circle", "point", "path")
_MULTIRANGES = ("int4multirange", "datemultirange", "tsmultirange")
_FIXED_FORMS = ("macaddr", "timetz", "uuid", "name", "interval")
_VARIABLE_FORMS = ("int8[]", "int4[]", "bytea", "jsonb")
"""Which stand for types that profiles do not have."""
_STORAGES = ("external", "main", "extended")
_KEYS = ("int4", "int4", "int8", "int8", "int8", "int2", "date", "timestamptz")
_NAMES = ("a", "b", "c", "d", "e", "f")
_SHORT, _LONG, _OUT_OF_LINE = 120, 400, 3000
_POSITIONS_MAX = 60_000
"""Rows and fillers that a load inserts: with values out of line more take minutes."""


def generate(seed: int, number: int, clients: int = 1, versions: Sequence[str] = ()) -> Section:
    """
    The profile of this number.

    Args:
        seed: Of the whole series.
        number: From 0.
        clients: How many work at once.
        versions: Of which the profile has one.

    Returns:
        A profile as its file has it.
    """
    draw = Draw(f"{seed}:{number}:{clients}")
    tables: list[Section] = []
    for position in range(draw.of((1, 1, 1, 2, 2, 3))):
        tables.append(_table(draw, f"t{position}", tables, clients))
    operations = _operations(draw, tables, clients)
    referenced = {key["references"] for table in tables for key in table.get("foreign_keys", ())}
    operations = [
        one for one in operations if one["kind"] != "delete" or one["table"] not in referenced
    ] or [{"table": tables[0]["name"], "kind": "insert"}]
    run: Section = {
        "operations": clients * draw.of((60, 400, 1500, 1500, 4000, 8000)),
        "clients": clients,
        "seed": draw.between(0, 10**6),
    }
    server = _server(draw, versions)
    if draw.rarely(4) and not _has_hash(tables):
        # So little that VACUUM goes in rounds, where a version takes it.
        least = "1MB" if server["version"] in ("15", "16") else "64kB"
        server["settings"] = {"maintenance_work_mem": least}
    if draw.rarely(2):  # so small that most tables have indexes for parallel workers
        least = draw.of(("0", "32kB"))
        server["settings"] = {
            **server.get("settings", {}),
            "min_parallel_index_scan_size": least,
        }
    for table in tables:
        _live(draw, table)
    if draw.rarely(2):
        run["maintenance"] = _maintenance(draw, tables, run["operations"], is_alone=clients == 1)
    made = {"schema_version": 1, "server": server, "table": tables, "operation": operations}
    made |= {"run": run}
    add_further(made, f"{seed}:{number}:{clients}")
    return made


def _has_hash(tables: Sequence[Section]) -> bool:
    """Whether one's build would sort outside of memory, in an order that is not played."""
    return any(index.get("method") == "hash" for table in tables for index in table["indexes"])


def _maintenance(
    draw: Draw, tables: Sequence[Section], transactions: int, *, is_alone: bool
) -> list[Section]:
    """Some commands of another session, several of them at one time now and then."""
    referenced = {key["references"] for table in tables for key in table.get("foreign_keys", ())}
    made: list[Section] = []
    for _ in range(draw.of((1, 1, 2, 3, 6))):
        table = draw.of(tables)
        commands = ["vacuum", "vacuum", "vacuum", "vacuum full", "analyze", "reindex", "cluster"]
        if table["name"] not in referenced and draw.rarely(3):
            commands.append("truncate")
        methods = {index.get("method") for index in table["indexes"]}
        if "hash" in methods:
            commands = [one for one in commands if one != "truncate"]
        if "brin" in methods:
            commands = ["vacuum", "vacuum", "analyze"]
        one: Section = {"do": draw.of(commands), "table": table["name"]}
        btrees = [index for index in table["indexes"] if "method" not in index]
        if one["do"] == "cluster" and not any("unique" in index for index in btrees):
            one["do"] = "vacuum full"
        if one["do"] == "cluster":
            one["index"] = next(index["name"] for index in btrees if "unique" in index)
        elif one["do"] == "reindex" and table["indexes"] and draw.rarely(2):
            one["index"] = draw.of(table["indexes"])["name"]
        elif one["do"] == "vacuum":
            one |= {"freeze": True} if draw.rarely(3) else {}
            one |= {"parallel": draw.of((1, 2, 5))} if draw.rarely(3) else {}
        if made and draw.rarely(4):
            one |= {key: made[-1][key] for key in ("after", "at_frac") if key in made[-1]}
        elif is_alone and draw.rarely(2):
            one["after"] = draw.between(0, transactions)
        else:
            one["at_frac"] = draw.real(0, 1)
        made.append(one)
    return made


def _server(draw: Draw, versions: Sequence[str]) -> Section:
    server: Section = {
        "version": draw.of(versions or ("18",)),
        "shared_buffers": draw.of(("64MB", "128MB")),
        "full_page_writes": draw.of((True, False)),
    }
    if draw.rarely(4):
        server["wal_level"] = draw.of(("minimal", "logical"))
    if draw.rarely(3):
        server["wal_log_hints"] = True
    if draw.rarely(3):
        server["data_checksums"] = draw.of((True, False))
    return server


def _table(draw: Draw, name: str, before: Sequence[Section], clients: int) -> Section:
    rows = draw.of((0, 1, 40, 300, 300, 1200, 5000, 12_000)) * clients
    columns = [{"name": "k", "type": draw.of(_KEYS)}]
    columns += [_column(draw, name) for name in _NAMES[: draw.between(1, 6)]]
    table: Section = {"name": name, "rows": rows}
    if draw.rarely(2):
        table["fillfactor"] = draw.of((10, 30, 50, 70, 80, 90, 95, 100))
    table["columns"] = columns
    _refer(draw, table, before)
    key: Section = {"name": f"{name}_pkey", "columns": ["k"], "unique": True}
    if draw.rarely(12):
        key["columns"] = ["k", draw.of(columns[1:])["name"]]
    if draw.rarely(5):
        key["fillfactor"] = draw.of((10, 50, 70, 100))
    indexes = [key]
    indexes += [_index(draw, f"{name}_{n}", columns) for n in range(draw.of((0, 0, 1, 1, 2, 3)))]
    if draw.rarely(20):  # a table without a key takes inserts only
        indexes = indexes[1:]
    if draw.rarely(4):
        indexes.append(_gin(draw, name, columns))
    table["indexes"] = indexes
    return table


def _gin(draw: Draw, name: str, columns: list[Section]) -> Section:
    """A GIN, over one column more or two, of one key a value or of several."""
    index: Section = {"name": f"{name}_gin", "columns": [], "method": "gin"}
    opclasses = []
    for label in ("g", "h")[: draw.of((1, 1, 2))]:
        column: Section = {"name": label, "type": draw.of(_GIN)}
        if draw.rarely(3):
            column["width"] = {"min_bytes": 30, "max_bytes": draw.of((30, 60, 300))}
            column["values"] = {"kind": "random", "ndistinct": draw.of((1, 40, 1000))}
        else:
            least = draw.of((1, 1, 3, 20))
            column["elements"] = {
                "min": least,
                "max": least + draw.of((0, 2, 20)),
                "ndistinct": draw.of((1, 5, 200, 5000)),
            }
            if draw.rarely(2):
                alike = draw.of((1, 7, 64))
                column["elements"]["alike"] = min(alike, column["elements"]["ndistinct"])
        if draw.rarely(3):
            column["null_frac"] = 0.2
        columns.append(column)
        index["columns"].append(label)
        is_path = column["type"] == "jsonb" and draw.rarely(2)
        opclasses.append("jsonb_path_ops" if is_path else "")
    if any(opclasses):
        index["opclass"] = opclasses
    if draw.rarely(2):
        index["fastupdate"] = False
    elif draw.rarely(2):
        index["gin_pending_list_limit"] = draw.of((64, 64, 200))
    return index


def _live(draw: Draw, table: Section) -> None:
    """Now and then the table's pages are not full."""
    if not table["rows"] or not draw.rarely(3):
        return
    per_page = draw.of((1, 2, 5, 12, 40, 60, 150))
    rows = draw.some(range(per_page + 1), 1, 4)
    parts = [draw.between(1, 9) for _ in rows]
    if sum(part * each for part, each in zip(parts, rows, strict=True)) * 20 < per_page * sum(
        parts
    ):
        rows[-1] = per_page
    mean = sum(part * each for part, each in zip(parts, rows, strict=True)) / sum(parts)
    if table["rows"] * per_page > _POSITIONS_MAX * mean:
        return
    fracs = [round(part / sum(parts), 3) for part in parts]
    table["rows_per_page"] = per_page
    table["pages"] = [
        {"pages_frac": frac, "rows": each} for frac, each in zip(fracs, rows, strict=True)
    ]
    if draw.rarely(2):
        for kind in table["pages"]:
            full = per_page, table.get("fillfactor", 100), len(table["columns"])
            most = redirects_max(full, kind["rows"])
            redirects = draw.of((0, most, draw.between(0, most)))
            if redirects:
                kind["redirects"] = redirects
            unused = unused_max(full, kind["rows"], redirects)
            unused = draw.of((0, 0, unused, draw.between(0, unused)))
            if unused:
                kind["unused"] = unused


def _column(draw: Draw, name: str) -> Section:
    kind = draw.of((_NUMBERS, _NUMBERS, _OTHERS, _STRINGS))
    column: Section = {"name": name, "type": draw.of(kind)}
    if kind is _STRINGS:
        most = draw.of((0, 8, _SHORT, _SHORT, _LONG, _LONG, _OUT_OF_LINE))
        if column["type"] != "text":
            most = min(most, 500)
        least = most if draw.rarely(2) else draw.between(0, most)
        column["width"] = {"min_bytes": least, "max_bytes": most}
        if draw.rarely(4):
            column["storage"] = draw.of(_STORAGES)
    elif draw.rarely(8):
        column["type"] = draw.of((*_GEOMETRY, *_MULTIRANGES))
        kind = ()
    elif draw.rarely(8):
        _form(draw, column)
        kind = ()
    if draw.rarely(8):
        column["stands_for"] = "shape"
    if kind is _OTHERS and draw.rarely(2):
        _enum(draw, column)
    elif draw.rarely(2):
        values: Section = {"kind": draw.of(("serial", "random", "random", "constant"))}
        if values["kind"] == "random" and draw.rarely(2):
            values["ndistinct"] = draw.of((1, 2, 7, 40, 1000))
        column["values"] = values
    if draw.rarely(4):
        column["null_frac"] = draw.of((0.05, 0.5, 1.0))
    return column


def _form(draw: Draw, column: Section) -> None:
    """The column has the form of a type that profiles do not have, and a STORAGE of its own."""
    column["type"] = draw.of((*_FIXED_FORMS, *_VARIABLE_FORMS))
    if column["type"] in _VARIABLE_FORMS:
        least = draw.of((30, 127, 400, 1100))
        most = least + draw.of((0, 90, 1500, 9000))
        column["width"] = {"min_bytes": least, "max_bytes": most}
        if draw.rarely(2):
            column["storage"] = draw.of(_STORAGES)
    if draw.rarely(2):
        column["stands_for"] = "shape"


def _enum(draw: Draw, column: Section) -> None:
    """The column is an enum: of few labels or many, by shares or alike."""
    labels = [f"l{at}" for at in range(draw.of((1, 2, 4, 4, 30)))]
    column["type"], column["labels"] = "enum", labels
    values: Section = {"kind": draw.of(("random", "random", "constant"))}
    if values["kind"] == "random" and draw.rarely(2):
        parts = [draw.between(0, 9) for _ in labels]
        parts[0] += 1
        values["shares"] = [part / sum(parts) for part in parts]
    if draw.rarely(2):
        values["new"] = draw.of(labels)
    column["values"] = values


def _refer(draw: Draw, table: Section, before: Sequence[Section]) -> None:
    """Now and then a column refers to a table before."""
    parents = [
        one
        for one in before
        if one["indexes"]
        and one["indexes"][0].get("columns") == ["k"]
        and one["columns"][0]["type"] in _NUMBERS
    ]
    children = [
        column for column in table["columns"][1:] if column["type"] in ("int2", "int4", "int8")
    ]
    if not parents or not children or not draw.rarely(2):
        return
    parent, column = draw.of(parents), draw.of(children)
    column["type"] = "int8"
    column.pop("values", None)
    if parent["rows"] == 0:
        table["rows"] = 0
        column["values"] = {"kind": "parent", "pick": "newest"}
    elif draw.rarely(3):
        column["values"] = {"kind": "parent", "pick": "newest"}
    elif draw.rarely(2):
        few = min(parent["rows"], draw.of((1, 2, 10, 100)))
        column["values"] = {"kind": "parent", "ndistinct": few}
    table["foreign_keys"] = [{"columns": [column["name"]], "references": parent["name"]}]


def _index(draw: Draw, name: str, columns: Sequence[Section]) -> Section:
    index: Section = {"name": name}
    # Of choices of its own, so that those of earlier series stay.
    condition = _condition(Draw(f"{name} {columns}"), columns)
    columns = [
        one
        for one in columns
        if one.get("width", {}).get("max_bytes", 0) <= _LONG and one["type"] not in _GEOMETRY
    ]
    numbers = [one["name"] for one in columns if one["type"] in _NUMBERS[:3]]
    strings = [one["name"] for one in columns if one["type"] in _STRINGS]
    kind = draw.between(0, 9)
    if kind == 0:
        index["method"] = "brin"
        unfit = ("bool", "enum", *_MULTIRANGES, *_VARIABLE_FORMS)
        fit = [one["name"] for one in columns if one["type"] not in unfit]
        index["columns"] = draw.some(fit, 1, 2)
        return index
    if kind == 9:
        index["method"] = "hash"
        index["columns"] = [draw.of(columns)["name"]]
        if draw.rarely(3):
            index["fillfactor"] = draw.of((10, 50, 100))
        return index
    if kind == 1 and strings:
        index["expressions"] = [f"lower({draw.of(strings)})"]
    elif kind == 2 and numbers:
        index["expressions"] = [draw.of(("{} + 1", "abs({})", "{} % 10")).format(draw.of(numbers))]
    else:
        # Behind another column the key is no way to its rows.
        listed = draw.some([one["name"] for one in columns[1:]], 1, 3)
        index["columns"] = listed + (["k"] if draw.rarely(6) or not listed else [])
    if draw.rarely(6):
        index["include"] = draw.some([one["name"] for one in columns], 1, 2)
    if draw.rarely(5) and numbers:
        shape = draw.of(("{} > 5", "{} = 0", "{} IS NOT NULL", "{} < 100 OR {} IS NULL"))
        index["where"] = shape.replace("{}", draw.of(numbers))
    enums = [one["name"] for one in columns if one["type"] == "enum"]
    if enums and draw.rarely(2):
        shape = draw.of(("{} = 'l0'", "{} IN ('l0')", "{} > 'l0'", "NOT {} <= 'l0'"))
        index["where"] = shape.replace("{}", draw.of(enums))
    if condition is not None:
        index["where"] = condition
    if draw.rarely(5):
        index["fillfactor"] = draw.of((10, 50, 70, 100))
    if draw.rarely(5):
        index["deduplicate_items"] = False
    return index


def _condition(draw: Draw, columns: Sequence[Section]) -> str | None:
    """Now and then a predicate over a string, however long, that has conditions within others."""
    strings = [one["name"] for one in columns if one["type"] in _STRINGS]
    numbers = [one["name"] for one in columns if one["type"] in _NUMBERS[:3]]
    if not strings or not draw.rarely(4):
        return None
    shapes = ("{} <> 'ab'", "{} = 'ab'", "{} > 'm'", "{} IS NOT NULL", "{} < {} OR {} <> ''",
              "lower({}) <> 'x'", "coalesce({}, '') <> 'ab'")  # fmt: skip
    one = draw.of(shapes).replace("{}", draw.of(strings))
    if not numbers or draw.rarely(3):
        return one
    other = draw.of(("{} > 5", "{} = 0", "{} IS NULL", "{} < 100")).replace("{}", draw.of(numbers))
    return draw.of(
        (
            f"{other} AND ({one})",
            f"({one}) OR {other}",
            f"NOT ({other} OR {one})",
            f"NOT ({other} AND ({one}))",
            f"({other} AND ({one})) OR (k IS NOT NULL AND ({one}))",
        )
    )


def _operations(draw: Draw, tables: Sequence[Section], clients: int) -> list[Section]:
    """Of each table a way of life: its rows stay, or come and go."""
    made: list[Section] = []
    for table in tables:
        is_living = table["rows"] == 0 or draw.rarely(4)
        keyless = not table["indexes"] or "unique" not in table["indexes"][0]
        inserted = 1 if is_living or draw.rarely(2) else draw.of((2, 5, 20))
        within = draw.of((None, None, 3, 20))
        deletes_oldest = draw.rarely(2)
        for _ in range(draw.of((1, 1, 2, 3))):
            kind = draw.of(
                ("update", "update", "update", "insert", "delete", "select", "lock", "upsert")
            )
            if keyless:
                kind = "insert"
            if kind == "upsert" and (is_living or len(table["indexes"][0]["columns"]) > 1):
                kind = "insert"
            one: Section = {"table": table["name"], "kind": kind}
            if draw.rarely(3):
                one["weight"] = draw.between(2, 6)
            if kind == "insert":
                if inserted > 1:
                    one["rows_per_statement"] = inserted
            else:
                _find(draw, one, table, (is_living, within, deletes_oldest))
            if kind in ("update", "upsert"):
                one["sets"] = _sets(draw, table)
            made.append(one)
        if not keyless and draw.rarely(4):
            made = _with_head(draw, table, made, is_alone=clients == 1)
        if is_living and not any(
            one["kind"] == "insert" and one["table"] == table["name"] for one in made
        ):
            made.append({"table": table["name"], "kind": "insert", "weight": 3})
    return _transactions(draw, made)


def _find(draw: Draw, one: Section, table: Section, life: tuple[bool, int | None, bool]) -> None:
    is_living, within, deletes_oldest = life
    rows = table["rows"]
    if is_living:
        one["pick"] = _living_pick(draw, one["kind"], within)
        if one["kind"] == "delete" and deletes_oldest:
            one["pick"] = {"distribution": "oldest"} | ({"within": within} if within else {})
    else:
        one["pick"] = _loaded_pick(draw, one["kind"], rows)
        if one["kind"] == "delete" and deletes_oldest:
            one["pick"] = {"distribution": "oldest"}
        most = min(rows, draw.of((2, 5, 30)))
        if draw.rarely(4) and most > 1:
            ranges = draw.rarely(2)
            one["rows_per_statement"] = {"min": 1, "max": most} if ranges else most
    may_scan = one["kind"] != "upsert" and "foreign_keys" not in table
    if may_scan and rows <= 1200 and draw.rarely(8):
        one["find"] = "seqscan"
    elif may_scan and draw.rarely(6):
        one["find"] = "bitmap"


def _with_head(draw: Draw, table: Section, made: list[Section], *, is_alone: bool) -> list[Section]:
    """Somebody takes rows from a queue's head; what a delete there cannot stand beside goes."""
    plain = ("name", "columns", "fillfactor", "deduplicate_items", "unique")
    whole = {one["name"] for one in table["columns"] if one["type"] in _NUMBERS[:3]}
    queues = [
        index
        for index in table["indexes"]
        if index.get("columns") and index["columns"][0] in whole and set(index) <= set(plain)
    ]
    if not queues:
        return made
    index = draw.of(queues)
    pick: Section = {"distribution": "head", "using": index["name"]}
    if not index.get("unique") and draw.rarely(2):
        pick["where"] = f"{index['columns'][0]} = {draw.of((0, 1))}"
    one: Section = {"table": table["name"], "kind": draw.of(("update", "delete")), "pick": pick}
    if draw.rarely(2):
        one["rows_per_statement"] = draw.of((2, 5))
    if one["kind"] == "update":
        one["sets"] = _sets(draw, table)
    elif "where" in pick or not is_alone:
        made = [
            other
            for other in made
            if other["table"] != table["name"] or not _counts_rows(other.get("pick", {}))
        ]
    return [*made, one]


def _counts_rows(pick: Section) -> bool:
    return pick.get("distribution") in ("oldest", "age") or "among" in pick


def _loaded_pick(draw: Draw, kind: str, rows: int) -> Section:
    pick: Section = {
        "distribution": draw.of(
            (
                "uniform",
                "uniform",
                "zipfian",
                "gaussian",
                "hot_set",
                "sequential",
                "stride",
                "newest",
                "oldest",
            )
        )
    }
    match pick["distribution"]:
        case "zipfian":
            pick["theta"] = draw.real(1.01, 2.5)
        case "gaussian":
            pick["param"] = draw.real(2, 8)
        case "hot_set":
            pick |= {"rows_frac": draw.real(0.01, 0.5), "weight": draw.real(0.1, 0.99)}
        case "stride":
            pick["n"] = draw.between(1, max(rows, 2))
        case "oldest" if kind != "delete":
            pick["distribution"] = "uniform"
    if pick["distribution"] in ("uniform", "zipfian", "gaussian", "hot_set") and draw.rarely(4):
        pick["scatter"] = True
    return pick


def _living_pick(draw: Draw, kind: str, within: int | None) -> Section:
    low = draw.of((0, 0, 3, 50))
    picks: list[Section] = [
        {"distribution": "age", "min": low, "max": low + draw.of((0, 5, 80, 400))},
        {"distribution": "uniform", "among": "live"},
        {"distribution": "zipfian", "theta": draw.real(1.01, 2), "among": "live"},
        {"distribution": "gaussian", "param": draw.real(2, 6), "among": "live"},
    ]
    if kind == "delete":
        picks.append({"distribution": "oldest"} | ({"within": within} if within else {}))
    return draw.of(picks)


def _sets(draw: Draw, table: Section) -> Section | list[str]:
    columns = draw.some(table["columns"][1:], 1, 3)
    if draw.rarely(2):
        return [column["name"] for column in columns]
    made: Section = {}
    for column in columns:
        change: Section = {}
        if draw.rarely(2):
            change["changed_frac"] = draw.of((0.0, 0.1, 0.5, 0.9))
        if column["type"] == "enum" and draw.rarely(2):
            change["to"] = draw.of(column["labels"])
        if column["type"] == "text" and draw.rarely(3):
            change["grows_bytes"] = {"min": 0, "max": draw.of((1, 8, 60))}
        made[column["name"]] = change
    return made


def _transactions(draw: Draw, operations: list[Section]) -> list[Section]:
    """Some operations run together; some of what runs is rolled back."""
    if len(operations) > 1 and draw.rarely(2):
        for one in draw.some(operations, 2, min(5, len(operations))):
            one["transaction"] = "together"
            one.pop("weight", None)
    first: set[str] = set()
    for one in operations:
        name = one.get("transaction")
        if name is None or name not in first:
            if draw.rarely(5):
                one["abort_frac"] = draw.of((0.02, 0.3, 1.0))
            first.add(name or "")
    return operations
