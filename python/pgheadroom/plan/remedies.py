"""
Steps that carry out a doctor's finding: what they act on, what they claim, what was seen of them.

They stand in the same plans as an advice's steps, and `apply`, its record and `verify` take both.
What a statement says follows from the fields here alone (`remedy_statements.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pgheadroom.forms import in_file
from pgheadroom.quoting import called, printable, shown_relation
from pgheadroom.types import Interval

# In the order in which they are carried out: settings first, which cost nothing, what copies last.
RemedyKind = Literal[
    "set_server",
    "set_storage",
    "drop_index",
    "create_index",
    "rebuild_index",
    "vacuum",
    "rewrite_table",
    "cluster_table",
    "analyze",
]
RemedyTool = Literal[
    "ALTER SYSTEM",
    "ALTER TABLE",
    "DROP INDEX",
    "CREATE INDEX",
    "REINDEX",
    "VACUUM",
    "ANALYZE",
    "REPACK (CONCURRENTLY)",
    "pg_squeeze",
    "pg_repack",
    "VACUUM FULL",
    "CLUSTER",
    "REPACK USING INDEX",
    "pg_squeeze by index",
    "pg_repack by columns",
]
ClaimMeasure = Literal[
    "given_back_bytes",
    "toast_given_back_bytes",
    "wal_bytes_per_entry",
    "n_dead_tup",
    "toast_n_dead_tup",
    "n_mod_since_analyze",
    "is_analyzed",
    "images_frac",
    "vacuums_frac",
    "checkpoints_by_wal",
    "setting",
    "is_valid",
    "deletes_by_index_frac",
    "pages_per_range",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRelation:
    """A table or an index as it was seen; `relfilenode` is its file."""

    schema: str
    name: str
    oid: int
    relfilenode: int

    @property
    def qualified(self) -> str:
        """Schema and name, quoted for SQL, with nothing in it that acts on a reader's screen."""
        return shown_relation(self.schema, self.name)

    @property
    def called(self) -> str:
        """For people, on one line."""
        return printable(called(self.schema, self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedIndex:
    """
    An index: what makes it, as the server writes it (pg_get_indexdef), and where it lies.

    Attributes:
        relation: It; of one that is to be made OID and file are 0.
        definition: CREATE INDEX, whole.
        tablespace: Of its own; None: the database's; empty: the database's, which has to be said,
            for somebody's default_tablespace is another.
        is_valid: Queries may use it.
        comment: On it; None: it has none.
        statistics: Targets of its expressions, by the number of the column; None: none has one.
    """

    relation: PlannedRelation
    definition: str
    tablespace: str | None
    is_valid: bool
    comment: str | None = field(default=None, metadata=in_file(unless_none=True))
    statistics: Mapping[str, int] | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChange:
    """
    A setting of the server.

    Attributes:
        name: Its name.
        value: For ALTER SYSTEM SET; None: RESET.
        before: In force when it was planned, in the unit of pg_settings.
        was_in_auto: It was set by ALTER SYSTEM before, so that the undo sets it again.
        becomes: In the unit of pg_settings; None: what the files beside have is not known.
        needs_restart: A reload does not reach it.
    """

    name: str
    value: str | None
    before: str
    was_in_auto: bool
    becomes: str | None
    needs_restart: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """
    What a step is said to do, and against what `verify` holds it.

    Attributes:
        measure: What is measured.
        unit: Of it.
        before: When it was planned; None where nothing tells it.
        foreseen: Afterwards.
        basis: Where that comes from.
        how: How `verify` measures it.
        of: Further numbers that the measuring takes, by name.
    """

    measure: ClaimMeasure
    unit: str
    before: float | None
    foreseen: Interval
    basis: str
    how: str
    of: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWork:
    """Row changes of a table in a time: `updates` are all, `hot_updates` those that were HOT."""

    oid: int
    inserts: int
    updates: int
    hot_updates: int
    deletes: int

    @property
    def entries(self) -> int:
        """In each of its indexes."""
        return self.inserts + self.updates - self.hot_updates

    @property
    def rows(self) -> int:
        """Rows changed."""
        return self.inserts + self.updates + self.deletes


@dataclass(frozen=True, slots=True, kw_only=True)
class WalWindow:
    """
    The write-ahead log of a time, beside the rows that were changed in it.

    Attributes:
        interval_s: How long.
        wal_bytes: Of the whole server.
        images: Full-page images in it.
        image_bytes: Theirs; None before 19, where a server does not count them.
        tables: Of this database, those that were changed.
        elsewhere_rows: Rows changed in other databases.
    """

    interval_s: float
    wal_bytes: int
    images: int
    image_bytes: int | None
    tables: tuple[TableWork, ...]
    elsewhere_rows: int

    @property
    def rows(self) -> int:
        """Rows changed anywhere."""
        return sum(table.rows for table in self.tables) + self.elsewhere_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyState:
    """
    What a step acts on, as the catalog has it.

    Attributes:
        oid: Of the index or table; None: it is not there.
        relfilenode: Its file; None likewise.
        is_valid: Of an index; None of anything else.
        definition: Of an index.
        options: Storage parameters that the step changes; None where one is not set.
        setting: In force, in the unit of pg_settings.
        is_pending: The setting waits for a restart.
        size_bytes: Main fork; toast_bytes of the TOAST table.
        vacuums: Of the table, by hand or not; toast_vacuums of its TOAST table.
        analyzes: Of the table likewise.
        idx_scan: Of the index.
        deletes: Rows of the referenced table that were deleted.
        checkpoints: That were requested, since the statistics began.
        wal_bytes: Where the write-ahead log is.
        images: Full-page images, and rows changed on the whole server, since statistics began.
        leftovers: Invalid indexes that a rebuild which was stopped has left.
    """

    oid: int | None = None
    relfilenode: int | None = None
    is_valid: bool | None = None
    definition: str | None = None
    options: Mapping[str, str | None] | None = None
    setting: str | None = None
    is_pending: bool | None = None
    size_bytes: int | None = None
    toast_bytes: int | None = None
    vacuums: int | None = None
    toast_vacuums: int | None = None
    analyzes: int | None = None
    idx_scan: int | None = None
    deletes: int | None = None
    checkpoints: int | None = None
    wal_bytes: int | None = None
    images: int | None = None
    rows: int | None = None
    leftovers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyStep:
    """
    One finding's remedy: a statement or two, or a command of yours.

    Attributes:
        number: From 1 on, in order.
        kind: What it does.
        tool: By what.
        rule: Of the finding.
        finding: Its object.
        table: That it acts on, or whose index it is; None of a setting.
        index: That it acts on; None of a table or a setting.
        keeps: An index that serves in its place, which has to be there and valid.
        standbys: Who followed the server when it was planned, by slot or name, all of whom were
            asked whether they read the index; None where standbys do not matter.
        referenced: OID of the table that a foreign key refers to.
        options: Storage parameters after it; None: reset.
        options_before: The same before.
        setting: Of the server.
        copied_bytes: What a rewrite makes or a build writes; 0 otherwise.
        reads_bytes: What it reads of the table besides.
        evidence: Why it may be done: what was found, and who was asked.
        claims: Against which `verify` holds it.
        statements: In order.
        command: A client's command line; None for statements.
        undo_statements: What takes it back; none where nothing can or has to.
        undo_note: What to know about undoing.
        lock: The strongest lock, by PostgreSQL's name.
        blocks: What that lock keeps waiting.
        duration_s: Estimated.
        duration_basis: Where the estimate is from.
        disk_bytes: Needed while it runs.
        wal_bytes: Written.
        run_by: `apply` runs statements; commands are left to you.
        verified: Whether this was run on a server of this version in our tests.
        risk: In words.
    """

    number: int
    kind: RemedyKind
    tool: RemedyTool
    rule: str
    finding: str
    table: PlannedRelation | None
    index: PlannedIndex | None = field(default=None, metadata=in_file(unless_none=True))
    keeps: PlannedIndex | None = field(default=None, metadata=in_file(unless_none=True))
    standbys: tuple[str, ...] | None = field(default=None, metadata=in_file(unless_none=True))
    referenced: int | None = field(default=None, metadata=in_file(unless_none=True))
    options: Mapping[str, str | None] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
    options_before: Mapping[str, str | None] | None = field(
        default=None, metadata=in_file(unless_none=True)
    )
    setting: ServerChange | None = field(default=None, metadata=in_file(unless_none=True))
    copied_bytes: int = 0
    reads_bytes: int = 0
    evidence: str
    claims: tuple[Claim, ...]
    statements: tuple[str, ...]
    command: str | None
    undo_statements: tuple[str, ...]
    undo_note: str
    lock: str
    blocks: str
    duration_s: Interval
    duration_basis: str
    disk_bytes: int
    wal_bytes: int
    run_by: Literal["apply", "you"]
    verified: bool
    risk: str

    @property
    def sql(self) -> str | None:
        """All statements on one line; None for a client's command."""
        return "; ".join(self.statements) or None

    @property
    def undo(self) -> str | None:
        """All statements that take it back, on one line."""
        return "; ".join(self.undo_statements) or None

    @property
    def about(self) -> str:
        """What it acts on, for people, on one line."""
        if self.setting is not None:
            return printable(self.setting.name)
        if self.index is not None and self.kind != "cluster_table":
            return self.index.relation.called
        assert self.table is not None, "a step acts on a setting, an index or a table"
        return self.table.called

    @property
    def title(self) -> str:
        """What it does, in a line."""
        name = self.about
        if self.setting is not None:
            to = "as the files have it" if self.setting.value is None else self.setting.value
            return f"{name} {self.setting.before} -> {to}"
        if self.options is not None:
            said = ", ".join(f"{k} {v or 'not set'}" for k, v in self.options.items())
            return f"{name}: {said}"
        words = {
            "drop_index": "drop index",
            "create_index": "make index",
            "rebuild_index": "build anew index",
            "vacuum": "vacuum",
            "analyze": "analyze",
            "rewrite_table": "rewrite",
            "cluster_table": "cluster",
        }
        by = f" by {self.tool}" if self.kind == "rewrite_table" else ""
        if self.kind == "cluster_table":
            assert self.index is not None, "a table is clustered by an index"
            by = f" by index {printable(self.index.relation.name)} ({self.tool})"
        return f"{words[self.kind]} {name}{by}"

    @property
    def in_transaction(self) -> bool:
        """Whether it may run inside a transaction block."""
        return self.kind == "set_storage"

    @property
    def skip_key(self) -> str:
        """By what it is left alone with others of the same table or setting."""
        if self.table is None:
            assert self.setting is not None, "a step acts on a setting or a table"
            return f"setting {self.setting.name}"
        return f"table {self.table.oid}"
