"""
The whole: a recording and its update classes become a profile with what was observed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pgheadroom
from pgheadroom.errors import InputError, ParameterError
from pgheadroom.forms import FieldError, write
from pgheadroom.observe import server
from pgheadroom.observe.access import read_access
from pgheadroom.observe.ages import Rates, read_ages
from pgheadroom.observe.answers import read_answers
from pgheadroom.observe.classes import Classes, SourceReport, UpdateClass, with_triggers
from pgheadroom.observe.keys import domains, foreign_keys
from pgheadroom.observe.mask import masked
from pgheadroom.observe.naming import profile_name
from pgheadroom.observe.operations import make_operations
from pgheadroom.observe.sample import fit_skew
from pgheadroom.observe.tables import WatchedTable, make_table
from pgheadroom.observe.triggers import triggers_observed
from pgheadroom.profile import Profile, parse_profile
from pgheadroom.sources.recording import Recording, Row

_INDEX_RETRIES_MAX = 40  # a table has seldom more indexes than that; arbitrary


def observe(
    recording: Recording, classes: Classes, *, mask: bool, sampled: bool, only: tuple[str, ...] = ()
) -> Profile:
    """
    Make a profile of a recording.

    Args:
        recording: As it was answered.
        classes: Of the unmasked recording.
        mask: Put pseudonyms for names, and leave texts and literals out.
        sampled: Samples were wanted.
        only: Only these tables, by name or `schema.name`.

    Raises:
        InputError: No table, or none of those that were named.
    """
    tables = _chosen(recording, only)
    clear_access = read_access(recording, sampled=sampled)
    if mask:
        recording = masked(recording)
        chosen = {row["oid"] for row in tables}
        tables = [row for row in recording.rows("tables", "shape") if row["oid"] in chosen]
    access = read_access(recording, sampled=sampled)
    assert len(access.missing) == len(clear_access.missing), "masking hides names, not gaps"
    answers = read_answers(
        recording,
        major=server.version_of(recording).major,
        interval_s=server.interval_s(recording),
    )
    ends = {row["oid"]: row for row in recording.rows("tables", "end")}
    built = _Builder(recording, classes)
    for row in tables:
        built.add(row, make=answers, end=ends.get(row["oid"]), ends_known=bool(ends))
    observed = _server_observed(recording, classes, built) | {
        "access": write(access),
        "masked": mask,
        "domains": domains(recording),
        "foreign_keys": foreign_keys(recording, {row["oid"] for row in tables}),
    }
    return built.profile(observed)


def _chosen(recording: Recording, only: tuple[str, ...]) -> list[Row]:
    rows = list(recording.rows("tables", "shape"))
    if not rows:
        raise InputError("the database has no table of its own: nothing to observe")
    if not only:
        return rows
    found = []
    for name in only:
        matching = [r for r in rows if name in (r["name"], f"{r['schema']}.{r['name']}")]
        if not matching:
            raise ParameterError("table", f"{name!r} is not in the database")
        parents = {row["oid"] for row in matching if row["relkind"] == "p"}
        found += [r for r in rows if r in matching or _has_ancestor(r, parents, rows)]
    return [row for row in rows if row in found]


def _has_ancestor(row: Row, parents: set[int], rows: list[Row]) -> bool:
    by_oid = {other["oid"]: other for other in rows}
    while row["parent_oid"] is not None and row["parent_oid"] in by_oid:
        if row["parent_oid"] in parents:
            return True
        row = by_oid[row["parent_oid"]]
    return False


class _Builder:
    def __init__(self, recording: Recording, classes: Classes) -> None:
        self._recording = recording
        self._classes = classes
        self._rows = {row["oid"]: row for row in recording.rows("tables", "shape")}
        self._names: dict[int, dict[int, str]] = {}
        for column in recording.rows("columns"):
            if not column["is_dropped"]:
                self._names.setdefault(column["oid"], {})[column["attnum"]] = column["name"]
        self._taken: set[str] = set()
        self._tables: list[dict[str, Any]] = []
        self._operations: list[dict[str, Any]] = []
        self._server = server.server_section(recording)
        self.left_out: list[dict[str, Any]] = []
        self.changed: list[str] = []
        self.partitioned: list[dict[str, Any]] = []
        self.keyed: str | None = None

    def add(self, row: Row, *, make: Any, end: Row | None, ends_known: bool) -> None:
        """Add one table, as far as a profile can hold it."""
        name = str(row["name"])
        full = name if row["schema"] == "public" else f"{row['schema']}.{name}"
        if row.get("unreadable"):
            self._leave_out(row, "its name is no text in the database's encoding, shown as \\x..")
            return
        if row["relkind"] == "p":
            self._add_parent(row)
            return
        if ends_known and end is None:
            self.changed.append(f"{full} was dropped inside the interval")
            self._leave_out(row, "dropped inside the interval")
            return
        if end is not None and end["relfilenode"] != row["relfilenode"]:
            self.changed.append(f"{full} was rewritten inside the interval")
        table = make_table(row, make, label=profile_name(full, self._taken), taken=self._taken)
        if not table.columns:
            self._leave_out(row, "it has no columns")
            return
        skew = fit_skew(
            table.sample,
            rows=table.rows,
            updates=int(table.delta.get("n_tup_upd") or 0),
            inserts=int(table.delta.get("n_tup_ins") or 0),
            xids=server.xids(self._recording),
        )
        found, shared = self._classes_of(row)
        triggers = self._classes.triggers.get(row["oid"], ())
        classes = with_triggers(found, triggers)
        ages = read_ages(
            table.row_ages,
            Rates(
                inserts=int(table.delta.get("n_tup_ins") or 0),
                updates=int(table.delta.get("n_tup_upd") or 0),
                deletes=int(table.delta.get("n_tup_del") or 0),
                xids=server.xids(self._recording),
                interval_s=make.interval_s,
                rows=table.rows,
            ),
            assigned={number for found in classes for number in found.attnums},
            seconds=table.times,
            unique=table.unique,
        )
        operations, updates = make_operations(
            table, classes, skew, ages, shared=shared, interval_s=make.interval_s
        )
        table.observed["updates"] = updates
        table.observed["triggers"] = triggers_observed(self._recording, row["oid"], triggers)
        if row["parent_oid"] is not None:
            table.observed["parent"] = self._full(row["parent_oid"])
        self._put(row, table, operations)

    def _classes_of(self, row: Row) -> tuple[tuple[UpdateClass, ...], bool]:
        """Of the table itself, else of the nearest parent whose updates reach it."""
        found = self._classes.by_table.get(row["oid"])
        if found:
            return found, False
        parent, own = row["parent_oid"], row["oid"]
        while parent is not None:
            found = self._classes.by_table.get(parent)
            if found:
                return self._renumbered(found, own, parent), True
            parent = (self._rows.get(parent) or {}).get("parent_oid")
        return (), False

    def _renumbered(
        self, classes: tuple[UpdateClass, ...], own: int, parent: int
    ) -> tuple[UpdateClass, ...]:
        """A parent's classes under the partition's attribute numbers: columns pair by name."""
        numbers = {name: number for number, name in self._names.get(own, {}).items()}
        names = self._names.get(parent, {})
        places = {n: numbers[name] for n, name in names.items() if name in numbers}

        def moved(attnums: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(places[n] for n in attnums if n in places)

        return tuple(
            replace(
                found,
                attnums=moved(found.attnums),
                same=moved(found.same),
                appended=moved(found.appended),
            )
            for found in classes
        )

    def _full(self, oid: int) -> str | None:
        row = self._rows.get(oid)
        if row is None:
            return None
        return str(row["name"]) if row["schema"] == "public" else f"{row['schema']}.{row['name']}"

    def _add_parent(self, row: Row) -> None:
        classes = self._classes.by_table.get(row["oid"], ())
        self.partitioned.append(
            {
                "schema": row["schema"],
                "name": row["name"],
                "oid": row["oid"],
                "strategy": {"r": "range", "l": "list", "h": "hash"}.get(row["partition_strategy"]),
                "parent": None if row["parent_oid"] is None else self._full(row["parent_oid"]),
                "update_classes": len(classes),
            }
        )

    def _leave_out(self, row: Row, why: str) -> None:
        self.left_out.append({"schema": row["schema"], "name": row["name"], "why": why})

    def _put(self, row: Row, table: WatchedTable, operations: list[dict[str, Any]]) -> None:
        """Keep what the profile's own check takes; an index that it refuses goes alone."""
        entry = table.profile | {"observed": table.observed}
        for _ in range(_INDEX_RETRIES_MAX):
            problem = self._problem(entry, operations)
            if problem is None:
                break
            if problem.path.startswith("operation["):
                number = int(problem.path.split("[")[1].split("]")[0])
                table.observed["updates"]["assumed"].append(
                    f"{operations[number]['kind']} left out: {problem.problem}"
                )
                del operations[number]
            elif problem.path.startswith("table[0].indexes["):
                number = int(problem.path.split("[")[2].split("]")[0])
                entry["indexes"] = list(entry["indexes"])
                name = entry["indexes"][number]["name"]
                table.observed["differs"][name] = f"left out: {problem.problem}"
                del entry["indexes"][number]
            else:
                self._leave_out(row, f"a profile cannot hold it: {problem}")
                return
        else:
            self._leave_out(row, "a profile cannot hold it")
            return
        self._tables.append(entry)
        self._operations += operations
        if self.keyed is None and table.key_attnum is not None and table.rows > 0:
            self.keyed = str(entry["name"])

    def _problem(
        self, entry: Mapping[str, Any], operations: list[dict[str, Any]]
    ) -> FieldError | None:
        probe = {"table": entry["name"], "kind": "insert"}
        try:
            parse_profile(
                {
                    "schema_version": 1,
                    "server": self._server,
                    "table": [entry],
                    "operation": operations or [probe],
                    "run": {"operations": 1},
                }
            )
        except FieldError as error:
            return error
        return None

    def profile(self, observed: dict[str, Any]) -> Profile:
        """
        All tables as one profile.

        Raises:
            InputError: No table is left.
        """
        if not self._tables:
            why = "; ".join(sorted({str(item["why"]) for item in self.left_out})) or "no table"
            raise InputError(f"no table can be put into a profile: {why}")
        operations = self._operations
        is_written = any(
            entry["observed"]["counters"].get(name)
            for entry in self._tables
            for name in ("n_tup_ins", "n_tup_upd", "n_tup_del")
        )
        observed["is_idle"] = not operations and not is_written
        length_s = max(round(observed["interval_s"]), 1)
        run: dict[str, Any] = {"duration_s": length_s, "clients": 1, "seed": 1}
        if operations:
            # A transaction has the weight of its first operation.
            weight = sum(
                {
                    operation.get("transaction", number): operation["weight"]
                    for number, operation in enumerate(operations)
                }.values()
            )
            run["rate_per_s"] = round(min(max(weight / length_s, 0.001), 1e9), 6)
        else:
            # A profile has at least one operation; this one changes nothing.
            kind = "select" if self.keyed is not None else "insert"
            name = self.keyed or self._tables[0]["name"]
            operations = [{"table": name, "kind": kind}]
            why = "nothing was written inside the interval"
            if is_written:
                why = "no table that was written can be played, for rows are found by a key"
            observed["assumed"].append(f"{why}: one {kind} stands as the operation")
        still = observed["horizon"]["stood_still"]
        if still:
            run["snapshot"] = still
        return parse_profile(
            {
                "schema_version": 1,
                "server": self._server | {"observed": observed},
                "table": self._tables,
                "operation": operations,
                "run": run,
            }
        )


def _server_observed(recording: Recording, classes: Classes, built: _Builder) -> dict[str, Any]:
    identity = recording.row("identity", "shape") or {}
    cluster = recording.row("cluster", "shape") or {}
    instant = recording.row("instant", "end") or {}
    version = server.version_of(recording)
    assumed = ["each operation is a transaction of its own, by one client"]
    if version.major > server.VERIFIED_MAX:
        assumed.append(f"PostgreSQL {version.major} is as its release candidate 1 was")
    if instant.get("in_recovery"):
        assumed.append(
            "a standby counts no writes: rates are unknown, observe the primary for them"
        )
    return {
        "tool_version": pgheadroom.__version__,
        "observed_at": time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime(float(instant.get("at_epoch_s", 0)))
        ),
        "interval_s": round(server.interval_s(recording), 3),
        "passes": len(recording.ticks()),
        "server_version": identity.get("server_version"),
        "database": identity.get("database"),
        "database_oid": identity.get("database_oid"),
        "system_identifier": cluster.get("system_identifier"),
        "role": identity.get("role"),
        "in_recovery": instant.get("in_recovery"),
        "broken": server.broken(recording),
        "changed": built.changed,
        "left_out": built.left_out,
        "partitioned": built.partitioned,
        "statements": [_report(report) for report in classes.reports],
        "counters": server.counters(recording),
        "horizon": server.horizon(recording),
        "settings": {
            row["name"]: {"setting": row["setting"], "unit": row["unit"], "source": row["source"]}
            for row in recording.rows("settings")
        },
        "modules": {e["name"]: e["version"] for e in recording.rows("extensions")},
        "assumed": assumed,
    }


def _report(report: SourceReport) -> dict[str, Any]:
    return {
        "source": report.source,
        "detail": report.detail,
        "statements": report.statements,
        "calls": report.calls,
        "not_understood": dict(report.lost),
        "notes": list(report.notes),
    }
