"""
Fields that half of the profiles have besides: drawn apart, so that the others stay as they were.

Of them those of a clock, of another session's snapshot and of values that are only stated make
figures intervals. One profile in six has one of these, so that most are compared to the unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fuzz_profiles.draw import Draw, Section
from pgheadroom.profile.column_types import is_toastable
from pgheadroom.profile.maintaining import NEW_FILES

_UNLIKE_NUMBERS = ("uuid", "text", "varchar(60)")
_RELOPTIONS: Sequence[dict[str, str]] = (
    {"toast_tuple_target": "200"},
    {"toast_tuple_target": "1000"},
    {"toast_tuple_target": "8160"},
    {"vacuum_truncate": "false"},
    {"toast.vacuum_truncate": "false"},
    {"autovacuum_enabled": "false"},
    {"autovacuum_vacuum_threshold": "20", "autovacuum_vacuum_scale_factor": "0"},
    {"autovacuum_analyze_threshold": "10", "parallel_workers": "2"},
)
_PATTERN_OPS = {"text": "text_pattern_ops", "varchar(500)": "varchar_pattern_ops"}
_UNPRICED = {
    "gist": ("box", "circle", "point"),
    "spgist": ("box", "point", "text", "varchar(500)"),
}
"""Methods that end HOT and have no figures, and of which types they have values."""
_CHECKPOINT_S = 30  # the shortest that PostgreSQL has
_OWN_OF_BTREE = frozenset({"columns", "unique", "name", "fillfactor", "deduplicate_items"})


def add_further(profile: Section, seed: str) -> None:
    """Give a profile some of them, or leave it as it is."""
    draw = Draw(f"{seed}:further")
    if draw.rarely(2):
        return
    if draw.rarely(4):
        profile["run"]["isolation"] = "repeatable read"
    for table in profile["table"]:
        if draw.rarely(3):
            _key_of_another_type(draw, table, profile)
        _columns(draw, table)
        _indexes(draw, table, profile)
        if draw.rarely(6):
            _unpriced(draw, table)
        if draw.rarely(3):
            table["reloptions"] = dict(draw.of(_RELOPTIONS))
    if draw.rarely(4):
        _machine(draw, profile)
    if draw.rarely(3):
        _unlogged(draw, profile)
    if draw.rarely(3):
        draw.of((_stated, _snapshots, _duration, _wal_size, _autovacuum, _checkpoint))(
            draw, profile
        )


def _of_table(profile: Section, table: Section) -> list[Section]:
    return [one for one in profile["operation"] if one["table"] == table["name"]]


def _heads(profile: Section) -> set[str]:
    """Indexes from whose heads rows are taken."""
    return {one["pick"]["using"] for one in profile["operation"] if "using" in one.get("pick", {})}


def _has_key(table: Section) -> bool:
    return bool(table["indexes"]) and table["indexes"][0]["name"].endswith("_pkey")


def _key_of_another_type(draw: Draw, table: Section, profile: Section) -> None:
    """Where nothing rests on its being a number, or a time."""
    others = [index for index in table["indexes"] if not index["name"].endswith("_pkey")]
    is_referred_to = any(
        key["references"] == table["name"]
        for other in profile["table"]
        for key in other.get("foreign_keys", ())
    )
    if is_referred_to or not _has_key(table) or any(map(_reads_key, others)):
        return
    operations = _of_table(profile, table)
    if any("using" in one.get("pick", {}) for one in operations):
        return
    key = table["columns"][0]
    key["type"] = draw.of((*_UNLIKE_NUMBERS, *_UNLIKE_NUMBERS, "numeric"))
    if key["type"] not in _UNLIKE_NUMBERS:
        return
    has_ranges = any(
        one.get("rows_per_statement", 1) != 1 and one["kind"] != "insert" for one in operations
    )
    is_ordered = has_ranges or draw.rarely(2)
    if is_ordered:
        key["values"] = {"kind": "serial", "ordered": True}
    if key["type"] != "uuid":
        least = draw.of((10, 24)) if is_ordered else draw.of((16, 40))
        most = least if is_ordered else draw.of((least, 60))
        key["width"] = {"min_bytes": least, "max_bytes": most}


def _reads_key(index: Section) -> bool:
    """Whether an index rests on what the key's type is."""
    texts = [*index.get("expressions", ()), index.get("where", "")]
    is_over_it = "method" in index and "k" in index.get("columns", ())
    return is_over_it or any(re.search(r"\bk\b", text) for text in texts)


def _columns(draw: Draw, table: Section) -> None:
    # Few, for many servers are built without lz4 and refuse it.
    methods = ("pglz", "lz4") if draw.rarely(6) else ("pglz",)
    for column in table["columns"]:
        labels = column.get("labels", ())
        if is_toastable(column["type"], labels) and draw.rarely(4):
            column["compression"] = draw.of(methods)
        elements = column.get("elements")
        if elements is not None and column["type"] in ("text[]", "tsvector") and draw.rarely(2):
            elements["width"] = draw.of((5, 9, 40))


def _indexes(draw: Draw, table: Section, profile: Section) -> None:
    heads = _heads(profile)
    types = {column["name"]: column["type"] for column in table["columns"]}
    for n, index in enumerate(table["indexes"]):
        if index.get("method") == "brin" and draw.rarely(2):
            index["pages_per_range"] = draw.of((1, 2, 16, 200))
        if "method" in index or index["name"] in heads:
            continue
        if index.get("unique"):
            if draw.rarely(6):
                index["nulls_not_distinct"] = True
            continue
        if _has_key(table) and set(index) <= _OWN_OF_BTREE and draw.rarely(3):
            # With the key among its columns no two are equal, whatever else they are.
            index["columns"] += [] if "k" in index["columns"] else ["k"]
            index["unique"] = True
            if draw.rarely(2):
                index["nulls_not_distinct"] = True
        keys = [*index.get("columns", ()), *index.get("expressions", ())]
        if n and draw.rarely(3):
            orders = ("", "DESC", "DESC", "ASC NULLS FIRST", "DESC NULLS LAST")
            index["order"] = [draw.of(orders) for _ in keys]
        opclass = [_PATTERN_OPS.get(types.get(key, ""), "") for key in keys]
        if any(opclass) and draw.rarely(3):
            index["opclass"] = opclass


def _unpriced(draw: Draw, table: Section) -> None:
    """An index whose pages are in no figure."""
    method = draw.of(tuple(_UNPRICED))
    fit = [one["name"] for one in table["columns"] if one["type"] in _UNPRICED[method]]
    if not fit:
        return
    index = {"name": f"{table['name']}_{method}", "columns": [draw.of(fit)], "method": method}
    table["indexes"].append(index)


def _unlogged(draw: Draw, profile: Section) -> None:
    """Some tables, and all that refer to them, whose commands that make new files go."""
    names: set[str] = set()
    for table in profile["table"]:
        referred = {key["references"] for key in table.get("foreign_keys", ())}
        if referred & names or draw.rarely(2):
            names.add(table["name"])
            table["unlogged"] = True
    for command in profile["run"].get("maintenance", ()):
        if command["table"] in names and command["do"] in NEW_FILES:
            command["do"] = draw.of(("vacuum", "analyze"))
            command.pop("index", None)


def _machine(draw: Draw, profile: Section) -> None:
    """Times of sessions, all of which mean something with several clients alone."""
    times = ("statement_us", "commit_us", "pause_us", "between_us", "wake_us")
    known = [name for name in times if not draw.rarely(3)]
    machine = {name: draw.of((5, 40.5, 300)) for name in known}
    if draw.rarely(3):
        machine["processors"] = draw.of((1, 2, 3, 64))
    profile["run"]["machine"] = machine


def _snapshots(draw: Draw, profile: Section) -> None:
    profile["run"]["snapshot"] = [
        {"start_frac": start, "length_frac": round(draw.real(0, 1) * (1 - start), 3)}
        for start in (draw.real(0, 0.9) for _ in range(draw.of((1, 1, 2))))
    ]


def _duration(draw: Draw, profile: Section, seconds: int | None = None) -> None:
    """So long instead of so many, now and then at a rate."""
    run = profile["run"]
    del run["operations"]
    run["duration_s"] = draw.of((1, 2, 3)) if seconds is None else seconds
    if seconds is not None or not draw.rarely(3):
        run["rate_per_s"] = draw.of((50, 300, 1000))
    for command in run.get("maintenance", ()):
        if command.pop("after", None) is not None:
            command["at_frac"] = draw.real(0, 1)


def _wal_size(draw: Draw, profile: Section) -> None:
    """So little that some runs reach it."""
    profile["server"]["max_wal_size"] = draw.of(("32MB", "48MB"))


def _checkpoint(draw: Draw, profile: Section) -> None:
    """In time, which few runs are long enough for."""
    profile["server"]["checkpoint_interval_s"] = _CHECKPOINT_S
    if draw.rarely(4):
        _duration(draw, profile, _CHECKPOINT_S + draw.between(2, 5))


def _autovacuum(draw: Draw, profile: Section) -> None:
    """Which may come by itself, and so beside no command; runs are as long as it takes to come."""
    profile["run"].pop("maintenance", None)
    profile["server"] |= {"autovacuum": True, "autovacuum_naptime_s": 1}
    if draw.rarely(2):
        least = {"autovacuum_vacuum_threshold": "30", "autovacuum_vacuum_scale_factor": "0"}
        profile["server"].setdefault("settings", {}).update(least)
    if not draw.rarely(4):
        _duration(draw, profile, draw.between(3, 6))


def _stated(draw: Draw, profile: Section) -> None:
    """An index over what the twin cannot evaluate, with what its values are."""
    tables = [table for table in profile["table"] if "pages" not in table]
    if not tables:
        return
    table = draw.of(tables)
    ndistinct = 2 * draw.of((1, 5, 400))
    width = {"min_bytes": 20, "max_bytes": draw.of((20, 60))}
    table["columns"] += [
        {"name": "p", "type": "int4", "values": {"kind": "random", "ndistinct": ndistinct}},
        {"name": "q", "type": "text", "width": width, "null_frac": draw.of((0, 0.25))},
    ]
    column, index = draw.of(tuple(_stated_indexes(table)))
    table["indexes"].append({"name": f"{table['name']}_stated"} | index)
    for one in _of_table(profile, table):
        if isinstance(one.get("sets"), list):
            one["sets"].append(column)
        elif "sets" in one:
            one["sets"][column] = {"changed_frac": draw.of((0.0, 0.5, 1.0))}


def _stated_indexes(table: Section) -> Iterator[tuple[str, Section]]:
    """The column that each reads, and the index: over numbers, a string, by a predicate, a GIN."""
    number, string = table["columns"][-2:]
    ndistinct = number["values"]["ndistinct"]
    one: Section = {"expression": "(p # 1)", "type": "int4", "ndistinct": ndistinct}
    yield "p", {"expressions": [one["expression"]], "stated": [one | {"changed_frac": 1.0}]}
    null_frac, width = string["null_frac"], string["width"]
    one = {"expression": "reverse(q)", "type": "text", "width": width, "null_frac": null_frac}
    yield "q", {"expressions": [one["expression"]], "stated": [one]}
    one = {"expression": "p & 1 = 0", "true_frac": 0.5}
    yield "p", {"columns": ["q"], "where": one["expression"], "stated": [one]}
    elements = {"min": 1, "max": 1, "ndistinct": ndistinct, "alike": ndistinct}
    one = {"expression": "(ARRAY[p])", "type": "int4[]", "elements": elements}
    yield "p", {"method": "gin", "expressions": [one["expression"]], "stated": [one]}
    elements = {"min": 1, "max": 1, "ndistinct": ndistinct, "width": 7}
    digits = "(ARRAY[lpad(p::text, 7, '0')])"
    one = {"expression": digits, "type": "text[]", "elements": elements}
    yield "p", {"method": "gin", "expressions": [digits], "stated": [one]}
