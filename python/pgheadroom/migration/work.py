"""
What a statement of a migration locks, rewrites or scans, by rule.

    lock        `AlterTableGetLockLevel` (tablecmds.c), `DefineIndex` (indexcmds.c), cluster.c
    rewrite     a new relfilenode: `ATExecAddColumn` (a default that is not computed once),
                `ATPrepAlterColumnType` with `ATColumnChangeRequiresRewrite` (the new type is more
                than a relabelling), `ATPrepChangePersistence`, all in tablecmds.c
    scan        every row is read under the lock: `ATRewriteTable` without a new heap, validation
    build       an index is built

What the parts of one statement come to, and what earlier ones hold: `effect.py`.
"""

from __future__ import annotations

from dataclasses import replace

from pgheadroom import _core
from pgheadroom.migration import actions
from pgheadroom.migration.actions import Action
from pgheadroom.migration.effect import LOCKS, Effect, Effort, Lock
from pgheadroom.migration.new_type import OF_EXTENSIONS, is_rewritten, keeps_indexes, spelled_type


def effect_of(action: Action, *, old_type: str | None, is_partition: bool = False) -> Effect | None:
    """
    What an action does to its table; None where it touches none that exists.

    Args:
        action: Of the statement.
        old_type: Of a column that gets another type, as `format_type` spells it; None: not known.
        is_partition: The table is the partition of ATTACH or DETACH, or a foreign key's other one.
    """
    match action:
        case actions.AddIndex():
            return _index(action)
        case actions.DropIndex():
            lock: Lock = "SHARE UPDATE EXCLUSIVE" if action.concurrently else "ACCESS EXCLUSIVE"
            what = "constraint" if action.table is not None else "index"
            return Effect(lock=lock, effort="nothing", what=f"{what} {action.index} goes")
        case actions.SetColumn(is_new=True):
            return _new_column(action)
        case actions.SetColumn():
            return _new_type(action, old_type)
        case actions.SetExpression():
            what = f"generated column {action.name} gets another expression"
            if action.reads is None:
                what = f"column {action.name} is no longer generated"
            effort: Effort = "nothing" if action.reads is None else "rewrite"
            return Effect(lock="ACCESS EXCLUSIVE", effort=effort, what=what)
        case actions.DropColumn():
            return _brief(f"column {action.name} goes")
        case actions.SetFillfactor():
            what = f"fillfactor {action.fillfactor or 100}"
            return Effect(lock="SHARE UPDATE EXCLUSIVE", effort="nothing", what=what)
        case actions.Rename(what="index"):
            return None
        case actions.Rename():
            return _brief(f"{action.what} renamed to {action.new}")
        case actions.Work():
            return _other_table(action) if is_partition else _work(action)
        case actions.Remarkable() | actions.Domain():
            return None


def is_known_type(spelled: str) -> bool:
    """Whether a type is one of PostgreSQL's own or of a known extension's: no domain."""
    return spelled_type(spelled)[0] in _KNOWN_TYPES


def domain_checked(action: actions.Domain) -> Effect:
    """What it does to each table with a column of it (`validateDomainCheckConstraint`)."""
    what = f"every value of domain {action.domain} is checked"
    return Effect(lock="SHARE", effort="scan", what=what)


def of_domain(effect: Effect, spelled: str, is_constrained: bool | None) -> Effect:
    """
    A new column of a type that may be a domain: its constraints are checked row by row.

    `ATExecAddColumn` (tablecmds.c) rewrites the table then, whatever the default.

    Args:
        effect: Of the new column by itself.
        spelled: The column's type.
        is_constrained: It is a domain with constraints; None: not known.
    """
    if is_constrained is False or spelled.endswith("[]") or effect.effort == "rewrite":
        return effect
    if is_constrained is None and is_known_type(spelled):
        return effect
    what = f"{effect.what}, of domain {spelled}, which has constraints"
    unless = None
    if is_constrained is None:
        what, unless = effect.what, f"{spelled} is no domain with a constraint"
    return replace(effect, effort="rewrite", what=what, unless=unless, shares_pass=False)


def fill(found: actions.RowChange, held: tuple[Lock, int]) -> Effect:
    """Rows are written while the transaction keeps others from writing to their table."""
    lock, line = held
    return Effect(
        lock=lock,
        effort="fill",
        what=found.kind,
        unless="its WHERE finds few rows" if found.is_part else None,
        lock_since=line,
    )


def of_parent(action: actions.Work) -> tuple[str, Lock] | None:
    """What is done to a partitioned table itself, and its lock there; None: nothing that counts."""
    kinds: dict[actions.WorkKind, str] = {
        "attach partition": "ATTACH PARTITION",
        "detach partition": "DETACH PARTITION",
        "new partition": "CREATE TABLE ... PARTITION OF",
    }
    effect = _work(action) if action.kind in kinds else None
    if effect is None:
        return None
    said = kinds[action.kind]
    return f"{said} CONCURRENTLY" if action.concurrently else said, effect.lock


def _brief(what: str) -> Effect:
    return Effect(lock="ACCESS EXCLUSIVE", effort="nothing", what=what)


def _index(action: actions.AddIndex) -> Effect:
    if action.kind != "index":
        what = f"{action.kind} {action.name or ''}".strip()
        return Effect(lock="ACCESS EXCLUSIVE", effort="build", what=what)
    what = f"CREATE INDEX {action.name or ''}".strip()
    if action.concurrently:
        return Effect(lock="SHARE UPDATE EXCLUSIVE", effort="build", what=f"{what} CONCURRENTLY")
    return Effect(lock="SHARE", effort="build", what=what)


def _new_column(action: actions.SetColumn) -> Effect:
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
    return Effect(
        lock="ACCESS EXCLUSIVE",
        effort=effort,
        what=what,
        unless=unless,
        shares_pass=effort == "scan",
    )


def _new_type(action: actions.SetColumn, old_type: str | None) -> Effect:
    what = f"column {action.name} from {old_type or 'a type that is not known'} to {action.type}"
    unless = None
    needed = True if action.has_using else None
    if needed is None and old_type is not None:
        needed = is_rewritten(old_type, action.type)
        bases = {spelled_type(old_type)[0], spelled_type(action.type)[0]}
        if bases == {"timestamp", "timestamptz"}:
            unless = "the session's TimeZone is UTC"
    elif needed is None:
        needed, unless = True, "the old type may stay as it is on disk"
    effort: Effort = "rewrite" if needed else "nothing"
    if not needed and old_type is not None and not keeps_indexes(old_type, action.type):
        effort, unless = "build", "no index has it"
    if not needed and action.collation is not None:
        effort, what = "build", f"{what}, COLLATE {action.collation}: its indexes are built anew"
    return Effect(lock="ACCESS EXCLUSIVE", effort=effort, what=what, unless=unless)


def _work(action: actions.Work) -> Effect | None:
    if action.kind == "lock":
        return Effect(lock=_mode(action.mode), effort="nothing", what="LOCK TABLE")
    if action.kind == "reindex":
        return _reindex(action)
    lock, effort = _RULES.get(action.kind, ("ACCESS EXCLUSIVE", "nothing"))
    what = _KIND_SAID.get(action.kind, action.kind)
    if action.column is not None:
        what = _IS_SO.get(action.kind, f"{what} of {{}}").format(action.column)
    if action.kind in ("primary key using index", "unique using index"):
        what = f"{action.kind} {action.index}"
    if action.not_valid:
        effort, what = "nothing", f"{what}, NOT VALID"
    if action.concurrently and action.kind == "index is there":
        lock = "SHARE UPDATE EXCLUSIVE"
    if action.concurrently and action.kind == "detach partition":
        lock, what = "SHARE UPDATE EXCLUSIVE", f"{what} CONCURRENTLY"
    return Effect(
        lock=lock,
        effort=effort,
        what=what,
        unless=None if action.not_valid else _UNLESS.get(action.kind),
        shares_pass=effort == "scan" and action.kind in _SHARES_PASS,
    )


def _reindex(action: actions.Work) -> Effect:
    """The table's lock; the index itself is locked exclusively, and planning a query needs it."""
    one = action.index is not None
    does = "builds it anew" if one else "builds its indexes anew"
    what = f"REINDEX INDEX {action.index}" if one else "REINDEX"
    if action.concurrently:
        lock: Lock = "SHARE UPDATE EXCLUSIVE"
        return Effect(lock=lock, effort="build", what=f"{what} CONCURRENTLY", does=does)
    return Effect(
        lock="SHARE",
        effort="build",
        what=what,
        does=does,
        beside="ACCESS EXCLUSIVE on the index that is built, so queries of the table wait too",
    )


def _other_table(action: actions.Work) -> Effect | None:
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
        # The referencing table is read meanwhile: its size decides, this one's writers wait.
        return Effect(
            lock="SHARE ROW EXCLUSIVE",
            effort="nothing" if action.not_valid else "probe",
            what=f"referenced by a new foreign key of {action.table}",
            waits_for=None if action.not_valid else action.table,
        )
    return None


def _mode(mode: str | None) -> Lock:
    known: dict[str, Lock] = {str(name): name for name in LOCKS}
    return known.get(" ".join((mode or "").upper().split()), "ACCESS EXCLUSIVE")


_KNOWN_TYPES = frozenset(spelled_type(name)[0] for name in (*_core.type_names(), *OF_EXTENSIONS))
_RULES: dict[actions.WorkKind, tuple[Lock, Effort]] = {
    "set not null": ("ACCESS EXCLUSIVE", "scan"),
    "add check": ("ACCESS EXCLUSIVE", "scan"),
    "add not null": ("ACCESS EXCLUSIVE", "scan"),
    "add foreign key": ("SHARE ROW EXCLUSIVE", "scan"),
    "validate constraint": ("SHARE UPDATE EXCLUSIVE", "scan"),
    "primary key using index": ("ACCESS EXCLUSIVE", "scan"),
    "attach partition": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "set logged": ("ACCESS EXCLUSIVE", "rewrite"),
    "set unlogged": ("ACCESS EXCLUSIVE", "rewrite"),
    "set access method": ("ACCESS EXCLUSIVE", "rewrite"),
    "set tablespace": ("ACCESS EXCLUSIVE", "rewrite"),
    "cluster": ("ACCESS EXCLUSIVE", "rewrite"),
    "vacuum full": ("ACCESS EXCLUSIVE", "rewrite"),
    "set statistics": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "set clustering": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "set trigger": ("SHARE ROW EXCLUSIVE", "nothing"),
    "comment": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "statistics": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "storage parameter": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "publication": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "inherited": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "new partition": ("ACCESS EXCLUSIVE", "nothing"),
    "analyze": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "vacuum": ("SHARE UPDATE EXCLUSIVE", "nothing"),
    "index is there": ("SHARE", "nothing"),
}
"""Others take ACCESS EXCLUSIVE for an instant."""

_IS_SO: dict[actions.WorkKind, str] = {
    "column is there": "column {} is there already",
    "column is absent": "column {} is not there",
    "index is there": "index {} is there already",
}
_SHARES_PASS = frozenset({"set not null", "add check", "add not null", "primary key using index"})
_SO_ALREADY = "it is so already"
_UNLESS: dict[actions.WorkKind, str] = {
    "set not null": "a valid CHECK constraint shows it already",
    "primary key using index": "its columns are NOT NULL already",
    "set logged": _SO_ALREADY,
    "set unlogged": _SO_ALREADY,
    "set access method": _SO_ALREADY,
    "set tablespace": _SO_ALREADY,
}
_KIND_SAID: dict[actions.WorkKind, str] = {
    "set not null": "SET NOT NULL",
    "add check": "a new CHECK constraint",
    "add not null": "a new NOT NULL constraint",
    "add foreign key": "a new foreign key",
    "validate constraint": "VALIDATE CONSTRAINT",
    "set logged": "SET LOGGED",
    "set unlogged": "SET UNLOGGED",
    "set access method": "another access method",
    "set tablespace": "another tablespace",
    "cluster": "CLUSTER",
    "vacuum full": "VACUUM FULL",
}
