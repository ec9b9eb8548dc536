"""
What a statement of a migration locks, rewrites or scans, by rule.

    lock        `AlterTableGetLockLevel` (tablecmds.c), `DefineIndex` (indexcmds.c), cluster.c
    rewrite     a new relfilenode: `ATExecAddColumn` (a default that is not computed once),
                `ATPrepAlterColumnType` with `ATColumnChangeRequiresRewrite` (the new type is more
                than a relabelling), `ATPrepChangePersistence`, all in tablecmds.c
    scan        every row is read under the lock: `ATRewriteTable` without a new heap, validation
    build       an index is built

Only what grows with the table's size under a lock that stops writers is a finding; a lock that is
held for an instant is named, no more. How long a statement waits for its lock is not judged, nor
that a lock stays until its transaction ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pgheadroom.migration.actions import (
    Action,
    AddIndex,
    DropColumn,
    DropIndex,
    Remarkable,
    Rename,
    SetColumn,
    SetExpression,
    SetFillfactor,
    Work,
)

Lock = Literal[
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
]
Effort = Literal["nothing", "scan", "build", "rewrite"]

STOPS_WRITERS = frozenset({"SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"})
"""Locks that conflict with ROW EXCLUSIVE (`LockConflicts`, src/backend/storage/lmgr/lock.c)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """
    What a statement does to one table while it runs.

    Attributes:
        lock: The strongest that it takes on the table.
        effort: What takes the longer the bigger the table is.
        what: The part of the statement, for people.
        unless: What would make it otherwise, where that is not known.
    """

    lock: Lock
    effort: Effort
    what: str
    unless: str | None = None

    @property
    def stops_writers(self) -> bool:
        """Whether nobody can write meanwhile."""
        return self.lock in STOPS_WRITERS

    @property
    def is_long(self) -> bool:
        """Whether writers wait for as long as the table is big."""
        return self.stops_writers and self.effort != "nothing"


def effect_of(action: Action, *, old_type: str | None, is_partition: bool = False) -> Effect | None:
    """
    What an action does to its table; None where it touches none that exists.

    Args:
        action: Of the statement.
        old_type: Of a column that gets another type, as `format_type` spells it; None: not known.
        is_partition: The table is the partition of ATTACH or DETACH, or a foreign key's other one.
    """
    match action:
        case AddIndex():
            return _index(action)
        case DropIndex():
            lock: Lock = "SHARE UPDATE EXCLUSIVE" if action.concurrently else "ACCESS EXCLUSIVE"
            what = "constraint" if action.table is not None else "index"
            return Effect(lock=lock, effort="nothing", what=f"{what} {action.index} goes")
        case SetColumn(is_new=True):
            return _new_column(action)
        case SetColumn():
            return _new_type(action, old_type)
        case SetExpression():
            what = f"generated column {action.name} gets another expression"
            if action.reads is None:
                what = f"column {action.name} is no longer generated"
            effort: Effort = "nothing" if action.reads is None else "rewrite"
            return Effect(lock="ACCESS EXCLUSIVE", effort=effort, what=what)
        case DropColumn():
            return _brief(f"column {action.name} goes")
        case SetFillfactor():
            what = f"fillfactor {action.fillfactor or 100}"
            return Effect(lock="SHARE UPDATE EXCLUSIVE", effort="nothing", what=what)
        case Rename(what="index"):
            return None
        case Rename():
            return _brief(f"{action.what} renamed to {action.new}")
        case Work():
            return _other_table(action) if is_partition else _work(action)
        case Remarkable():
            return None


def _brief(what: str) -> Effect:
    return Effect(lock="ACCESS EXCLUSIVE", effort="nothing", what=what)


def _index(action: AddIndex) -> Effect:
    if action.kind != "index":
        what = f"{action.kind} {action.name or ''}".strip()
        return Effect(lock="ACCESS EXCLUSIVE", effort="build", what=what)
    what = f"CREATE INDEX {action.name or ''}".strip()
    if action.concurrently:
        return Effect(lock="SHARE UPDATE EXCLUSIVE", effort="build", what=f"{what} CONCURRENTLY")
    return Effect(lock="SHARE", effort="build", what=what)


def _new_column(action: SetColumn) -> Effect:
    what = f"column {action.name} is new"
    effort: Effort = "nothing"
    unless = None
    if action.generated == "stored":
        effort, what = "rewrite", f"{what}, generated and stored"
    elif action.default == "volatile":
        effort, what = "rewrite", f"{what} with a default that each row computes"
    elif action.default == "unknown":
        effort, what = "rewrite", f"{what} with a function as its default"
        unless = "the function is STABLE or IMMUTABLE"
    elif action.generated == "virtual" and action.not_null:
        effort = "scan"
    return Effect(lock="ACCESS EXCLUSIVE", effort=effort, what=what, unless=unless)


def _new_type(action: SetColumn, old_type: str | None) -> Effect:
    what = f"column {action.name} from {old_type or 'a type that is not known'} to {action.type}"
    unless = None
    needed = True if action.has_using else None
    if needed is None and old_type is not None:
        needed = is_rewritten(old_type, action.type)
        bases = {_spelled(old_type)[0], _spelled(action.type)[0]}
        if bases == {"timestamp", "timestamptz"}:
            unless = "the session's TimeZone is UTC"
    elif needed is None:
        needed, unless = True, "the old type may stay as it is on disk"
    effort: Effort = "rewrite" if needed else "nothing"
    if not needed and old_type is not None and not _keeps_indexes(old_type, action.type):
        effort, unless = "build", "no index has it"
    if not needed and action.collation is not None:
        effort, what = "build", f"{what}, COLLATE {action.collation}: its indexes are built anew"
    return Effect(lock="ACCESS EXCLUSIVE", effort=effort, what=what, unless=unless)


def _work(action: Work) -> Effect | None:
    concurrently = "SHARE UPDATE EXCLUSIVE"
    rules: dict[str, tuple[Lock, Effort]] = {
        "set not null": ("ACCESS EXCLUSIVE", "scan"),
        "add check": ("ACCESS EXCLUSIVE", "scan"),
        "add not null": ("ACCESS EXCLUSIVE", "scan"),
        "add foreign key": ("SHARE ROW EXCLUSIVE", "scan"),
        "validate constraint": ("SHARE UPDATE EXCLUSIVE", "scan"),
        "attach partition": ("SHARE UPDATE EXCLUSIVE", "nothing"),
        "set logged": ("ACCESS EXCLUSIVE", "rewrite"),
        "set unlogged": ("ACCESS EXCLUSIVE", "rewrite"),
        "set access method": ("ACCESS EXCLUSIVE", "rewrite"),
        "set tablespace": ("ACCESS EXCLUSIVE", "rewrite"),
        "cluster": ("ACCESS EXCLUSIVE", "rewrite"),
        "vacuum full": ("ACCESS EXCLUSIVE", "rewrite"),
        "reindex": ("SHARE", "build"),
        "set statistics": ("SHARE UPDATE EXCLUSIVE", "nothing"),
        "set trigger": ("SHARE ROW EXCLUSIVE", "nothing"),
    }
    if action.kind == "lock":
        return Effect(lock=_mode(action.mode), effort="nothing", what="LOCK TABLE")
    lock, effort = rules.get(action.kind, ("ACCESS EXCLUSIVE", "nothing"))
    what = action.kind if action.column is None else f"{action.kind} of {action.column}"
    if action.not_valid:
        effort, what = "nothing", f"{what}, NOT VALID"
    unless = None
    if action.concurrently and action.kind in ("reindex", "detach partition"):
        lock, what = concurrently, f"{what} CONCURRENTLY"  # type: ignore[assignment]
    if action.kind == "set not null":
        unless = "a valid CHECK constraint shows it already"
    elif action.kind in ("set logged", "set unlogged", "set access method", "set tablespace"):
        unless = "it is so already"
    return Effect(lock=lock, effort=effort, what=what, unless=unless)


def _other_table(action: Work) -> Effect | None:
    """What becomes of a partition, or of the table that a foreign key references."""
    if action.kind == "attach partition":
        return Effect(
            lock="ACCESS EXCLUSIVE",
            effort="scan",
            what="attached as a partition",
            unless="a valid CHECK constraint shows that its rows belong there",
        )
    if action.kind == "detach partition":
        return _brief("detached")
    if action.kind == "add foreign key":
        what = "referenced by a new foreign key"
        # The referencing table is scanned meanwhile, this one's writers wait for that.
        effort: Effort = "nothing" if action.not_valid else "scan"
        return Effect(lock="SHARE ROW EXCLUSIVE", effort=effort, what=what)
    return None


def _mode(mode: str | None) -> Lock:
    known: dict[str, Lock] = {str(name): name for name in _LOCKS}
    return known.get(" ".join((mode or "").upper().split()), "ACCESS EXCLUSIVE")


_LOCKS: tuple[Lock, ...] = (
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
)

_SAME = {
    "character varying": "varchar",
    "varchar": "varchar",
    "char": "bpchar",
    "character": "bpchar",
    "int": "int4",
    "integer": "int4",
    "serial": "int4",
    "bigint": "int8",
    "bigserial": "int8",
    "smallint": "int2",
    "decimal": "numeric",
    "real": "float4",
    "double precision": "float8",
    "float": "float8",
    "boolean": "bool",
    "bit varying": "varbit",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
    "time with time zone": "timetz",
}
# pg_cast.castmethod is 'b', or the type is a domain's base: the bytes on disk stay.
_RELABELLED = {
    ("varchar", "text"),
    ("text", "varchar"),
    ("citext", "text"),
    ("citext", "varchar"),
    ("text", "citext"),
    ("varchar", "citext"),
    ("cidr", "inet"),
    ("int4", "oid"),
    ("oid", "int4"),
    ("bit", "varbit"),
    ("varbit", "bit"),
    ("xml", "text"),
    ("xml", "varchar"),
}
# Types whose default operator classes are of one family (pg_opclass).
_FAMILIES = (frozenset({"text", "varchar"}), frozenset({"cidr", "inet"}))
_PRECISE = frozenset({"timestamp", "timestamptz", "time", "timetz", "interval"})
_WITH_PARAMETERS = re.compile(
    r"^([^(]*?)\s*(?:\(([^)]*)\))?((?:\s+with(?:out)? time zone)?)(\[\])*$"
)


def _spelled(spelled: str) -> tuple[str, tuple[int, ...] | None]:
    """A type's name in one spelling, and its parameters; None where it has none."""
    text = " ".join(spelled.lower().replace("pg_catalog.", "").replace('"', "").split())
    match = _WITH_PARAMETERS.match(text)
    if match is None:
        return text, None
    name = (match[1] + match[3]).strip()
    base = _SAME.get(name, name) + (match[4] or "")
    listed = [part.strip() for part in (match[2] or "").split(",") if part.strip()]
    if not all(part.lstrip("-").isdecimal() for part in listed):
        return text, None
    parameters = tuple(int(part) for part in listed) or None
    if base == "bpchar" and parameters is None and name != "bpchar":
        parameters = (1,)  # char is char(1)
    if base == "bit" and parameters is None:
        parameters = (1,)
    if base == "numeric" and parameters is not None and len(parameters) == 1:
        parameters = (parameters[0], 0)
    return base, parameters


def _keeps_indexes(old: str, new: str) -> bool:
    """Whether indexes fit the relabelled type (`CheckIndexCompatible`, indexcmds.c)."""
    pair = {_spelled(old)[0].removesuffix("[]"), _spelled(new)[0].removesuffix("[]")}
    return len(pair) == 1 or any(pair <= family for family in _FAMILIES)


def is_rewritten(old: str, new: str) -> bool:
    """
    Whether a column's new type takes a new heap.

    A relabelling does not, nor a length coercion that cannot shorten: the planner leaves it out
    (`varchar_support`, `numeric_support`, `varbit_support`, `TemporalSimplify`), and
    `ATColumnChangeRequiresRewrite` finds the bare column.

    Args:
        old: As `format_type` spells it.
        new: As a statement spells it.
    """
    (before, had), (after, has) = _spelled(old), _spelled(new)
    if before != after and (before, after) not in _RELABELLED:
        return True
    if has is None or (has == had and before == after):
        return False
    if before in ("varchar", "varbit") and before == after:
        return had is None or has[0] < had[0]
    if before == after == "numeric":
        return had is None or has[1] != had[1] or has[0] < had[0]
    if before == after and before in _PRECISE:
        # Without a precision there are six digits; interval's fields are not followed.
        return has[0] < (6 if had is None else had[0])
    return True
