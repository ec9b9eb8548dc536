"""
One table of a recording: its part of the profile, and what was observed of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgheadroom.observe.answers import Answers
from pgheadroom.observe.columns import Column, make_column, page_widths, sampled_widths
from pgheadroom.observe.counters import COUNTERS, STATES, differences, rates
from pgheadroom.observe.indexes import (
    IndexRow,
    choose_key,
    observed_index,
    profile_index,
    read_index,
)
from pgheadroom.observe.naming import profile_name
from pgheadroom.observe.stated import SAID, stated_of
from pgheadroom.observe.values import Values, read_values
from pgheadroom.observe.widths import ColumnWidth
from pgheadroom.sources.recording import Row
from pgheadroom.sources.sampled import sample_summary
from pgheadroom.units import PAGE_BYTES

_REPLICA_IDENTITIES = {"d": "default", "n": "nothing", "f": "full", "i": "index"}
"""Of pg_class.relreplident."""

_PAGE_USABLE_BYTES = 8168  # SizeOfPageHeaderData from a page of 8,192


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTable:
    """A table: the profile's part, the observation, and what operations are made from."""

    oid: int
    profile: dict[str, Any]
    observed: dict[str, Any]
    columns: Mapping[int, Column]
    key_attnum: int | None
    delta: Mapping[str, int | None]
    sample: Row | None
    row_ages: Row | None
    values: Values | None
    times: frozenset[int]
    unique: frozenset[int]
    ending_hot: frozenset[str]

    @property
    def rows(self) -> int:
        """Rows in the profile."""
        return int(self.profile["rows"])


def make_table(row: Row, answers: Answers, *, label: str, taken: set[str]) -> WatchedTable:
    """
    Put one table together.

    Args:
        row: Its row of the query `tables`.
        answers: All rows by table.
        label: Its name in the profile.
        taken: Names of tables and indexes that the profile has already.
    """
    oid = int(row["oid"])
    after = answers.after.get(oid)
    delta = differences(answers.before.get(oid), after, COUNTERS)
    sample = answers.samples.get(oid)
    size = answers.sizes.get(oid)
    pages = int(size["main_bytes"]) // PAGE_BYTES if size is not None else int(row["relpages"])
    rows, rows_evidence = _rows(row, after, sample)
    listed = answers.columns.get(oid, ())
    indexes = [
        read_index(found, answers.definitions.get(found["oid"]), [c["attnum"] for c in listed])
        for found in answers.indexes.get(oid, ())
    ]
    live = {c["attnum"]: c for c in listed if not c["is_dropped"]}
    key = choose_key(indexes, live, rows)
    columns = _columns(row, live, answers, sample, indexes, key, rows=rows, pages=pages)
    entries = [entry for column in columns.values() for entry in column.entries]
    entries += [_dropped(c) for c in listed if c["is_dropped"]]
    made_indexes, differing = _indexes(row, indexes, columns, key, taken)
    _state(made_indexes, differing, indexes, entries, answers, rows=rows)
    profile = {
        "name": label,
        "rows": rows,
        "unlogged": row["relpersistence"] == "u",
        "fillfactor": int((row["reloptions"] or {}).get("fillfactor", 100)),
        "columns": entries,
        "indexes": made_indexes,
        "reloptions": _reloptions(row),
    }
    facts = [_index_facts(index, live, answers) for index in indexes]
    observed = _identity(row, size) | {
        "pages": pages,
        "rows_evidence": rows_evidence,
        "counters": delta,
        "totals": {name: after[name] for name in COUNTERS if name in after} if after else {},
        "state": {name: after[name] for name in STATES if name in after} if after else {},
        "per_s": rates(delta, answers.interval_s),
        "columns": [column.observed for column in columns.values()],
        "dropped_columns": len(listed) - len(live),
        "added_columns": [str(c["name"]) for c in live.values() if c["has_missing"]],
        "indexes": facts,
        "differs": differing,
        "toast": _toast(row, answers),
        "sample": sample_summary(sample),
        "free_space": _free_space(oid, answers),
    }
    return WatchedTable(
        oid=oid,
        profile=profile,
        observed=observed,
        columns=columns,
        key_attnum=None if key is None else key[1],
        delta=delta,
        sample=sample,
        row_ages=answers.row_ages.get(oid),
        values=read_values(answers.values_before.get(oid), answers.values_after.get(oid)),
        times=frozenset(n for n, c in live.items() if str(c["type"]).startswith("timestamp")),
        unique=frozenset(
            index.keys[0] for index in indexes if index.row["is_unique"] and len(index.keys) == 1
        ),
        ending_hot=frozenset(name for index in facts for name in index["ends_hot_by_columns"]),
    )


def _dropped(row: Row) -> dict[str, Any]:
    """A dropped column, under the name that the catalogue has for it: NULL, a bit of a bitmap."""
    return {
        "name": profile_name(str(row["name"]), set()),
        "type": "bool",
        "values": {"kind": "constant"},
        "null_frac": 1.0,
    }


def _identity(row: Row, size: Row | None) -> dict[str, Any]:
    made: dict[str, Any] = {"schema": row["schema"], "name": row["name"], "oid": row["oid"]}
    made["relfilenode"] = row["relfilenode"] if size is None else size["relfilenode"]
    made |= {"relpages": row["relpages"], "relallvisible": row["relallvisible"]}
    # As they are set: the profile's fillfactor does not tell 100 from not set.
    made["reloptions"] = {k: str(v) for k, v in (row["reloptions"] or {}).items()}
    made["main_bytes"] = None if size is None else size["main_bytes"]
    made["persistence"] = {"p": "permanent", "u": "unlogged", "t": "temporary"}.get(
        row["relpersistence"], row["relpersistence"]
    )
    if row.get("replica_identity") is not None:
        made["replica_identity"] = _REPLICA_IDENTITIES[row["replica_identity"]]
    return made


def _rows(row: Row, after: Row | None, sample: Row | None) -> tuple[int, str]:
    if sample is not None and sample.get("rows") is not None:
        percent = float(sample["drawn_percent"])
        evidence = "measured" if percent >= 100 else "sampled"
        return round(float(sample["rows"]) * 100 / percent), evidence
    if float(row["reltuples"]) >= 0:
        return round(float(row["reltuples"])), "estimated by the last VACUUM or ANALYZE"
    if after is not None and after["n_live_tup"]:
        return int(after["n_live_tup"]), "estimated by n_live_tup"
    return 0, "assumed: never vacuumed or analyzed"


def _columns(
    row: Row,
    live: Mapping[int, Row],
    answers: Answers,
    sample: Row | None,
    indexes: Sequence[IndexRow],
    key: tuple[IndexRow, int] | None,
    *,
    rows: int,
    pages: int,
) -> dict[int, Column]:
    sampled = sampled_widths(sample)
    row_bytes = pages * _PAGE_USABLE_BYTES / rows if rows > 0 and pages > 0 else None
    guessed = page_widths(live.values(), row_bytes=row_bytes)
    indexed = {number for index in indexes for number in index.depends}
    taken: set[str] = set()
    made = {}
    for number, column in live.items():
        statistics = answers.statistics.get((row["schema"], row["name"], column["name"]))
        width = guessed.get(number)
        null_frac, evidence = 0.0, "assumed"
        if statistics is not None:
            null_frac, evidence = float(statistics["null_frac"]), "estimated by ANALYZE"
            if column["typlen"] < 0 and null_frac < 1:
                width = ColumnWidth(
                    mean_bytes=float(statistics["avg_width"]),
                    deviation_bytes=0.0,
                    evidence="estimated by ANALYZE",
                )
        if number in sampled:
            width, null_frac, evidence = *sampled[number], "sampled"
        elif sample is not None and number in sample["attnums"] and sample["rows"]:
            null_frac, evidence = 1.0, "sampled"
        if column["not_null"]:
            null_frac, evidence = 0.0, "measured"
        if column.get("generated") == "v":  # computed when it is read, NULL in the row
            width, null_frac, evidence = guessed.get(number), 1.0, "measured"
        made[number] = make_column(
            column,
            width=width,
            null_frac=(null_frac, evidence),
            statistics=statistics,
            rows=rows,
            taken=taken,
            is_key=key is not None and key[1] == number,
            indexed=number in indexed,
        )
        made[number].observed.update(_generated(column, live))
    return made


def _generated(column: Row, live: Mapping[int, Row]) -> dict[str, Any]:
    """Of a generated column: its kind, and the columns that its expression reads."""
    kind = {"s": "stored", "v": "virtual"}.get(str(column.get("generated") or ""))
    if kind is None:
        return {}
    reads = (int(number) for number in column.get("generated_from") or ())
    return {"generated": kind, "generated_from": [str(live[n]["name"]) for n in reads if n in live]}


def _indexes(
    row: Row,
    indexes: Sequence[IndexRow],
    columns: Mapping[int, Column],
    key: tuple[IndexRow, int] | None,
    taken: set[str],
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    made, differing = [], {}
    # The key's index first, whatever its name.
    for index in sorted(indexes, key=lambda found: key is None or found is not key[0]):
        name = str(index.row["name"])
        if not index.row["is_live"]:
            continue
        label = name if row["schema"] == "public" else f"{row['schema']}.{name}"
        is_key = key is not None and index is key[0]
        found, why = profile_index(index, columns, is_key=is_key, taken=taken, label=label)
        if found is not None:
            made.append(found)
        if why is not None:
            differing[name] = why
    return made, differing


def _state(
    made: Sequence[dict[str, Any]],
    differing: dict[str, str],
    indexes: Sequence[IndexRow],
    entries: Sequence[Mapping[str, Any]],
    answers: Answers,
    *,
    rows: int,
) -> None:
    """Adds what is known of expressions that the twin cannot evaluate."""
    by_name = {str(index.row["name"]): index for index in indexes}
    by_name |= {f"{index.row['schema']}.{name}": index for name, index in by_name.items()}
    for found in made:
        index = by_name.get(str(found["name"]))
        if index is None:
            continue
        stated = stated_of(
            index.row, index.definition, found, entries, answers.statistics, rows=rows
        )
        if stated:
            found["stated"] = stated
            texts = ", ".join(repr(one["expression"]) for one in stated)
            differing.setdefault(str(index.row["name"]), SAID.format(texts=texts))


def _index_facts(index: IndexRow, live: Mapping[int, Row], answers: Answers) -> dict[str, Any]:
    names = {number: str(column["name"]) for number, column in live.items()}
    oid = int(index.row["oid"])
    made = observed_index(index, names, answers.major)
    size = answers.sizes.get(oid)
    made["main_bytes"] = None if size is None else size["main_bytes"]
    counters = ("idx_scan", "idx_tup_read", "idx_tup_fetch", "idx_blks_read", "idx_blks_hit")
    after = answers.index_after.get(oid)
    made["counters"] = differences(answers.index_before.get(oid), after, counters)
    made["totals"] = {name: after[name] for name in counters} if after is not None else {}
    return made


def _reloptions(row: Row) -> dict[str, str]:
    made = {k: str(v) for k, v in (row["reloptions"] or {}).items() if k != "fillfactor"}
    return made | {f"toast.{k}": str(v) for k, v in (row["toast_reloptions"] or {}).items()}


def _toast(row: Row, answers: Answers) -> dict[str, Any] | None:
    oid = row["toast_oid"]
    if oid is None:
        return None
    size = answers.sizes.get(oid)
    after = answers.after.get(oid)
    return {
        "main_bytes": None if size is None else size["main_bytes"],
        "counters": differences(answers.before.get(oid), after, COUNTERS[:3]),
    }


def _free_space(oid: int, answers: Answers) -> list[dict[str, Any]]:
    """Pages by free bytes, each source for itself: [k, pages], from 128 k bytes on."""
    made = []
    for name, rows, evidence in (
        ("page_headers", answers.page_headers, "measured"),
        ("free_space_map", answers.free_space, "measured, as old as the last vacuum"),
        ("rows", answers.samples, "estimated: what dead rows take counts as free"),
    ):
        found = rows.get(oid)
        if found is not None and found.get("rooms"):
            made.append(
                {
                    "source": name,
                    "evidence": evidence,
                    "pages": found["pages"],
                    "table_pages": found["table_pages"],
                    "class_bytes": 128,
                    "classes": found["rooms"],
                }
            )
    return made
