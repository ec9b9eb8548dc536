"""
Which defaults stand where a profile's file says nothing: by the path of the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgheadroom.forms import defaults, write
from pgheadroom.profile.column_types import Kind
from pgheadroom.profile.model import CHECKSUMS_FROM_MAJOR, ServerSettings
from pgheadroom.profile.spelling import Raw
from pgheadroom.profile.stating import said_assumed
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, TableProfile
from pgheadroom.profile.workload import PARAMETERS, Operation, PgbenchFillfactors, Run
from pgheadroom.types import Assumed, PgVersion, Taken

_INDEX_FILLFACTOR = 90  # BTREE_DEFAULT_FILLFACTOR, src/include/access/nbtree.h


class _Notes(dict[str, Taken]):
    """The defaults that were used."""

    def add(self, path: str, raw: Raw, known: Raw, names: Sequence[str] | None = None) -> None:
        """Those of one table of fields, in the order of the names."""
        for name in known if names is None else names:
            if name not in raw:
                self[f"{path}.{name}"] = known[name]


def assumed_of(data: Raw, tables: Sequence[TableProfile]) -> Assumed:
    """
    The defaults that were used.

    Args:
        data: The file, which was read.
        tables: Its tables, with what followed from other fields.
    """
    notes = _Notes()
    _server(notes, data.get("server", {}))
    for n, (raw, table) in enumerate(zip(data.get("table", ()), tables, strict=True)):
        _table(notes, raw, table, f"table[{n}]")
    for n, raw in enumerate(data.get("operation", ())):
        _operation(notes, raw, f"operation[{n}]")
    if "pgbench" in data:
        chosen = data["pgbench"].get("fillfactor", {})
        notes.add("pgbench.fillfactor", chosen, defaults(PgbenchFillfactors))
    notes.add("run", data["run"], defaults(Run), ("clients", "seed", "isolation"))
    return notes


def _server(notes: _Notes, raw: Raw) -> None:
    known = defaults(ServerSettings) | {
        "shared_buffers": "1GB",
        "checkpoint_interval_s": "no checkpoint inside the run",
        "max_wal_size": "out of reach",
    }
    version = PgVersion.parse(raw.get("version", known["version"]))
    known["data_checksums"] = version.major >= CHECKSUMS_FROM_MAJOR
    notes.add(
        "server",
        raw,
        known,
        (
            "version",
            "data_checksums",
            "checkpoint_interval_s",
            "max_wal_size",
            "shared_buffers",
            "full_page_writes",
            "wal_level",
            "wal_compression",
            "wal_log_hints",
            "autovacuum",
        ),
    )


def _table(notes: _Notes, raw: Raw, table: TableProfile, path: str) -> None:
    for n, index in enumerate(raw.get("indexes", ())):
        notes.add(f"{path}.indexes[{n}]", index, defaults(IndexProfile), ("method", "unique"))
        if index.get("method", "btree") == "btree":
            notes.add(f"{path}.indexes[{n}]", index, {"fillfactor": _INDEX_FILLFACTOR})
    for n, index in enumerate(table.indexes):
        if (said := said_assumed(index)) is not None:
            notes[f"{path}.indexes[{n}].stated"] = said
    for n, (given, column) in enumerate(zip(raw["columns"], table.columns, strict=True)):
        place = f"{path}.columns[{n}]"
        if column.kind is Kind.TIMESTAMP and "(" in given["type"]:
            notes[f"{place}.type"] = (
                f"{column.base_type}, to the microsecond: the precision is not played"
            )
        if column.stands_for is not None:
            notes[f"{place}.type"] = said_standing_in(column)
        made = {"null_frac": 0.0, "values": write(column.values, nulls=False)}
        if column.width is not None:
            made["width"] = write(column.width)
        notes.add(place, given, made)
        if given.get("values", {}).get("kind") == "random":
            notes.add(f"{place}.values", given["values"], {"ndistinct": column.values.ndistinct})
    notes.add(path, raw, {"fillfactor": table.fillfactor})
    if table.rows_per_page is not None:
        notes.add(path, raw, {"rows_per_page": table.rows_per_page})


def said_standing_in(column: ColumnProfile) -> str:
    """That a type is played by another of its stored form."""
    return (
        f"{column.type} stands for {column.stands_for}: of the same length, alignment and storage "
        "as far as profiles have such a type; which bytes differ, and the order, are its own"
    )


def _operation(notes: _Notes, raw: Raw, path: str) -> None:
    known = defaults(Operation)
    notes.add(path, raw, known, ("weight", "rows_per_statement", "abort_frac"))
    changes = raw.get("sets", ())
    for name in changes:
        change = changes[name] if isinstance(changes, Mapping) else {}
        notes.add(f"{path}.sets.{name}", change, {"changed_frac": 1.0})
    if raw["kind"] != "insert":
        notes.add(path, raw, {"pick": {"distribution": "uniform"}})
        pick = raw.get("pick")
        if pick is None or "among" in pick:
            pass
        elif "scatter" in PARAMETERS[pick["distribution"]]:
            notes.add(f"{path}.pick", pick, {"scatter": False})
    if raw["kind"] not in ("insert", "upsert"):
        notes.add(path, raw, known, ("find",))
