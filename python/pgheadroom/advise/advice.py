"""
The advice as a value: per table the causes, the curve, the verdict, and what it forecasts.

Made by `advise`, saved as JSON (`kind = "advice"`), read by plans, verification and reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pgheadroom.advise.inputs import FittedInput, inputs_in_file, inputs_of
from pgheadroom.advise.scenario import Fit
from pgheadroom.forms import Earlier, Stored, in_file, read, write
from pgheadroom.outcome import Value, middle
from pgheadroom.tabular import Row, Tabular, columns, even

SCHEMA_VERSION = 1

FRAME = ("schema_version", "kind")
"""Keys of the file beside the advice's own."""


def mid(value: Value) -> float:
    """The same, with 0 where nothing is known."""
    return middle(value) or 0.0


Verdict = Literal["CHANGE", "KEEP", "ABSTAIN"]
DecidedBy = Literal["counters", "rule", "twin"]
Evidence = Literal["measured", "sampled", "estimated", "predicted", "assumed"]
CauseKind = Literal["hot", "indexed_column", "no_room", "row_grew", "unknown"]
Certainty = Literal["certain", "possible"]
RemarkKind = Literal[
    "horizon",
    "index",
    "autovacuum",
    "column_order",
    "row_width",
    "growth",
    "access",
    "workload",
    "wal",
]

CAUSES: tuple[CauseKind, ...] = ("hot", "indexed_column", "no_room", "row_grew", "unknown")
"""Every update of the interval belongs to one of these."""


Goal = Literal["balanced", "wal", "size", "latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Of a day, in units of one GB kept for a day."""

    kept_gb: float
    wal_gb: float
    written_mpages: float
    read_mpages: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPolicy:
    """
    By what was decided, as `policy.Policy` explains it.

    None where an advice of an earlier version did not ask for it.
    """

    goal: Goal
    prices: Prices
    max_growth_frac: float | None
    min_gain_frac: float
    images_gain_frac: float | None = field(default=None, metadata=in_file(unless_none=True))
    gain_per_growth: float | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """
    What the time for simulations was enough for.

    Attributes:
        cpu_s: Processor time that was allowed.
        worth: Tables that were worth playing.
        played: Of them those that were.
        not_weighed: Names of those for which nothing was left.

    A file of an earlier version may say none of it.
    """

    cpu_s: float | None = field(default=None, metadata=in_file(unless_none=True))
    worth: int | None = field(default=None, metadata=in_file(unless_none=True))
    played: int | None = field(default=None, metadata=in_file(unless_none=True))
    not_weighed: tuple[str, ...] | None = field(default=None, metadata=in_file(unless_none=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Tables by their verdict."""

    change: int = field(metadata=in_file("CHANGE"))
    keep: int = field(metadata=in_file("KEEP"))
    abstain: int = field(metadata=in_file("ABSTAIN"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """A partitioned table: its partitions by name, their verdicts counted, what is advised."""

    schema: str = "public"
    name: str
    partitions: tuple[str, ...]
    verdicts: Verdicts
    advised_fillfactors: tuple[int, ...]
    updates_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """A measure as it is, and as it would be."""

    now: Value
    then: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Blamed:
    """
    An index that has taken HOT away, or may have.

    Attributes:
        name: As in the catalog.
        columns: Its columns that the updates assign.
        updates: Updates of the interval that it made non-HOT; shared out where several have.
        certainty: `certain` where the counters agree, `possible` where only statements say so.
        scans: Its index scans in the interval; None where nobody counted.
        total_scans: The same since the statistics began.
        unique: Whether it is unique, so that it cannot just go.
    """

    name: str
    columns: tuple[str, ...]
    updates: Value
    certainty: Certainty
    scans: int | None = None
    total_scans: int | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFinding:
    """
    An index that ends HOT, and what a table without it would save.

    Attributes:
        table: The table's name in the profile.
        name: As in the catalog.
        columns: What ends HOT, each as `{"column", "reads", "assigned"}`: a column of the index, as
            what it reads it (`key`, `INCLUDE`, `expression`, `predicate`, `whole row`), and the
            assigned column, which is another one where the former is generated from it. Empty where
            no known statement assigns one.
        updates_frac: Of the table's updates: those that it made non-HOT.
        hot_frac_now: Observed, or predicted where `hot_frac_then` is.
        hot_frac_then: Without it.
        wal_bytes_saved_per_day: Without it; None where nobody can say (another access method than
            B-tree, and no statement's WAL was counted).
        evidence: `estimated` by the rule and the layout, or the statements' own WAL; `predicted` by
            the twin.
        certainty: As in `Blamed`.
        enforces: Why it cannot just go, or None; as in `remark_index.Reads`.
        only_with: Other indexes that end HOT for the same updates: without it alone these stay
            non-HOT.
        scans, total_scans: As in `Blamed`.
    """

    table: str
    name: str
    columns: tuple[Mapping[str, str], ...]
    updates_frac: Value
    hot_frac_now: Value
    hot_frac_then: Value
    wal_bytes_saved_per_day: Value
    evidence: Evidence
    certainty: Certainty
    enforces: str | None
    only_with: tuple[str, ...]
    scans: int | None = None
    total_scans: int | None = None

    @property
    def by(self) -> str:
        """The columns that do it, for people; empty where none is known."""
        return ", ".join(map(_by, self.columns))


def _by(found: Mapping[str, str]) -> str:
    name = "the whole row" if found["reads"] == "whole row" else found["column"]
    notes = [] if found["reads"] in ("key", "whole row") else [found["reads"]]
    if found["assigned"] != found["column"]:
        notes.append(f"generated from {found['assigned']}")
    return f"{name} ({', '.join(notes)})" if notes else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """
    A part of the interval's updates, and why they were what they were.

    Attributes:
        kind: One of `CAUSES`.
        updates: Rows updated.
        frac: Of all updates of the table.
        evidence: Where the number is from.
        detail: One sentence for people.
        indexes: Those that took HOT away, for `indexed_column`.
        wal_bytes: WAL of these updates in the interval, estimated; None where nobody can say.
    """

    kind: CauseKind
    updates: Value
    frac: Value
    evidence: Evidence
    detail: str
    indexes: tuple[Blamed, ...] = ()
    wal_bytes: Value = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """
    One fillfactor: what the table does in its steady state there.

    Per update where a name says so; sizes are those at the end of the simulated time.

    Attributes:
        fillfactor: Percent.
        hot_frac: HOT updates over updates.
        newpage_frac: Updates that went to another page, over updates.
        heap_bytes: Main fork of the table.
        index_bytes: Main forks of its B-trees.
        wal_bytes_per_update: WAL that the statements that update rows write, over the rows: as
            pg_stat_statements has it, images apart. None where nobody can say.
        all_wal_bytes_per_update: All WAL of the table over its updates: images, inserts, commits
            and vacuums included; what the cost is made of. Files of earlier versions have it under
            the other name.
        pages_modified_per_update: Pages that a checkpoint's distance dirties, over its updates.
        seq_scan_pages: Pages that a sequential scan reads.
        misses_per_update: Pages not found in shared buffers, over updates; None where unknown.
        vacuum_pages_per_update: Pages that vacuums look at, over updates; None without vacuums.
        cost: By the policy, a day; see `policy`.
        is_settled: Whether the run went on until it no longer moved; else what stands here is of
            its last half, and the long run may lie beyond.
        hot_frac_seen: Where it has not settled: from where to where HOT has moved at its end.
        updates_per_row: How far it was played; None in files of earlier versions.
    """

    fillfactor: int
    hot_frac: Value
    newpage_frac: Value
    heap_bytes: Value
    index_bytes: Value
    wal_bytes_per_update: Value
    pages_modified_per_update: Value
    seq_scan_pages: Value
    misses_per_update: Value = None
    vacuum_pages_per_update: Value = None
    cost: Value = None
    all_wal_bytes_per_update: Value = None
    is_settled: bool = field(default=True, metadata=in_file(added_later=True))
    hot_frac_seen: Value = field(default=None, metadata=in_file(added_later=True))
    updates_per_row: float | None = field(default=None, metadata=in_file(added_later=True))


def _of_one_wal(found: Any) -> Any:
    """Until a version that has both, WAL per update was all of the table's."""
    if not isinstance(found, Mapping) or "all_wal_bytes_per_update" in found:
        return found
    all_wal = found.get("wal_bytes_per_update")
    return {**found, "wal_bytes_per_update": None, "all_wal_bytes_per_update": all_wal}


HOT_MOVES = 0.01
"""Of the updates: what gives less HOT than this is not for HOT, and is not told as if it were."""


def moves_hot(before: Point | None, after: Point | None) -> bool:
    """Whether HOT in the long run is another one; True where nobody knows."""
    if before is None or after is None:
        return True
    hot = middle(before.hot_frac), middle(after.hot_frac)
    return None in hot or abs(mid(hot[1]) - mid(hot[0])) >= HOT_MOVES


MEASURES: tuple[str, ...] = (
    "hot_frac",
    "newpage_frac",
    "heap_bytes",
    "index_bytes",
    "wal_bytes_per_update",
    "all_wal_bytes_per_update",
    "pages_modified_per_update",
    "seq_scan_pages",
    "misses_per_update",
    "vacuum_pages_per_update",
    "cost",
)
"""The fields of a `Point` that a curve shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """
    How well the twin repeats what was observed at the setting in force.

    Attributes:
        observed_hot_frac: Of the interval.
        predicted_hot_frac: The twin's at the current fillfactor, in the state that it takes the
            table to be in.
        observed_newpage_frac: Of the interval; None on 15.
        predicted_newpage_frac: The twin's.
        agrees: Whether the observed share lies inside the predicted interval, or within a point.
        fitted: Physical inputs that were set so that it does, which the file has by name, as
            `{"changed_frac of orders.state": 0.1}`; empty where the observation alone sufficed.
        note: One sentence for people.
        observed_wal_bytes_per_update: Of the interval, by pg_stat_statements, images apart.
        predicted_wal_bytes_per_update: The twin's, in the same state; None where it contradicts
            what was measured.
        contradicted: What was measured and is not what the twin has, beyond its interval, in
            sentences; figures of it are not shown.
        fit: What it was played with, from which `verify` foresees again; None where the twin is
            contradicted as a whole, and in files of earlier versions.
    """

    observed_hot_frac: float | None
    predicted_hot_frac: Value
    observed_newpage_frac: float | None
    predicted_newpage_frac: Value
    agrees: bool
    fitted: Annotated[
        tuple[FittedInput, ...], Stored(Mapping[str, float | str], inputs_of, inputs_in_file)
    ]
    note: str
    observed_wal_bytes_per_update: Value = None
    predicted_wal_bytes_per_update: Value = None
    contradicted: tuple[str, ...] = ()
    fit: Fit | None = field(default=None, metadata=in_file(added_later=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """
    The way to the new setting when nothing is rewritten.

    Attributes:
        verdict: `at once`, `converges`, `does not converge`, `no updates`.
        after_s: Seconds at the observed rate until the HOT share is within a point of its final
            value; None where it never is, or nobody knows.
        after_updates_per_row: The same in updates a row.
        final_hot_frac: The share that it arrives at without a rewrite.
        rewritten_hot_frac: The share with the rewrite.
        final_heap_bytes: The size that it arrives at without a rewrite.
    """

    verdict: Literal["at once", "converges", "does not converge", "no updates"]
    after_s: float | None
    after_updates_per_row: float | None
    final_hot_frac: float | None
    rewritten_hot_frac: float | None
    final_heap_bytes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """
    A finding beside the fillfactor, with its gain where there is one.

    Attributes:
        kind: What it is about.
        text: One or two sentences for people.
        evidence: Where its figures are from.
        gain: Measures as they are and as they would be.
        statements: Statements that would act on it: `{"sql": ..., "undo": ...}`; never part of a
            plan unless they are safe and reversible.
    """

    kind: RemarkKind
    text: str
    evidence: Evidence
    gain: Mapping[str, Gain]
    statements: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAdvice:
    """
    One table: what was seen, why, what to do.

    Attributes:
        table: Its name in the profile.
        schema: Of the server.
        name: Of the server; a pseudonym in a masked profile.
        oid: Of the server.
        relfilenode: When it was observed.
        parent: The partitioned table it belongs to.
        rows: Rows.
        heap_bytes: Main fork when it was observed.
        fillfactor: In force.
        updates_per_s: Over the interval.
        updates: In the interval.
        hot_frac: Observed; None without updates.
        verdict: What to do.
        reason: Why, in one sentence.
        advised_fillfactor: The setting that is best by the policy; the current one for KEEP, None
            for ABSTAIN.
        gain_frac: Part of the cost that the change saves, by the policy; None without a curve.
        causes: The interval's updates by cause; empty without updates.
        calibration: None where nothing was simulated.
        curve: Points by falling fillfactor; the current and the advised one are among them. Empty
            where nothing was simulated.
        transition: The way there without a rewrite; None unless CHANGE.
        remarks: Further findings.
        missing: What was not known and would have helped.
        decided_by: From what: `counters` and layout, a `rule` (an index, the horizon), or `twin`.
        wal_bytes_per_update: Measured in the interval: what the statements that update rows wrote,
            images apart; by the log where the profile has it. None where nobody has counted them.
    """

    table: str
    schema: str
    name: str
    oid: int | None
    relfilenode: int | None
    parent: str | None
    rows: int
    heap_bytes: int | None
    fillfactor: int
    updates_per_s: float
    updates: int
    hot_frac: float | None
    verdict: Verdict
    reason: str
    advised_fillfactor: int | None
    gain_frac: Value
    causes: tuple[Cause, ...]
    calibration: Calibration | None
    curve: tuple[Annotated[Point, Earlier(_of_one_wal)], ...]
    transition: Transition | None
    remarks: tuple[Remark, ...]
    missing: tuple[str, ...]
    decided_by: DecidedBy = "twin"
    wal_bytes_per_update: Value = None

    def point(self, fillfactor: int | None) -> Point | None:
        """The curve's point at a fillfactor, if it has one."""
        return next((point for point in self.curve if point.fillfactor == fillfactor), None)

    @property
    def heap_grows_frac(self) -> float | None:
        """By what part the heap is larger as advised than as it is set, both in the long run."""
        now, then = self.point(self.fillfactor), self.point(self.advised_fillfactor)
        if now is None or then is None:
            return None
        before, after = middle(now.heap_bytes), middle(then.heap_bytes)
        return None if not before or after is None else after / before - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """
    Where and when the advice's facts were taken.

    `database_oid` and `system_identifier` (None where it was not to be had, or masked) say which
    database a plan is for.
    """

    server_version: str
    database: str | None
    database_oid: int | None
    system_identifier: str | None
    observed_at: str | None
    interval_s: float
    masked: bool
    levels: tuple[str, ...]
    missing: tuple[str, ...]
    broken: tuple[str, ...]
    modules: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice(Tabular):
    """
    All tables, ranked by gain.

    `first` are findings about the whole server that go before everything else (a horizon that is
    held: no fillfactor helps then). `partitioned` sums up the partitions of each parent. `indexes`
    are those that end HOT, of all tables, by the WAL that they cost.
    """

    tool_version: str
    observation: Observation
    policy: StatedPolicy
    first: tuple[Remark, ...]
    # An advice of an earlier version has neither.
    indexes: tuple[IndexFinding, ...] = ()
    budget: Budget = field(default_factory=Budget)
    tables: tuple[TableAdvice, ...]
    partitioned: tuple[Partitions, ...]
    assumed: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The file's form."""
        return {"schema_version": SCHEMA_VERSION, "kind": "advice", **write(self)}

    def rows(self) -> list[Row]:
        """One row a table: the verdict, what was measured, and the long run now and as advised."""
        return even([_row(table) for table in self.tables])

    def summary(self) -> str:
        """How many tables, and how many to change."""
        count = sum(table.verdict == "CHANGE" for table in self.tables)
        return f"Advice for {len(self.tables)} tables: {count} to change"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """
        Read what `to_json` wrote.

        Raises:
            InputError: It is no advice, or a field is not as it must be.
        """
        rest = {key: value for key, value in data.items() if key not in FRAME}
        return read(cls, rest, at="advice", exact=True)


def _row(table: TableAdvice) -> Row:
    now, then = table.point(table.fillfactor), table.point(table.advised_fillfactor)
    found: Row = {
        "table": table.table,
        "verdict": table.verdict,
        "fillfactor": table.fillfactor,
        "advised_fillfactor": table.advised_fillfactor,
        **columns("gain_frac", table.gain_frac),
        "updates_per_s": table.updates_per_s,
        "hot_frac_measured": table.hot_frac,
    }
    for when, point in (("now", now), ("advised", then)):
        for measure in ("hot_frac", "wal_bytes_per_update", "heap_bytes"):
            value = None if point is None else getattr(point, measure)
            found |= columns(f"{measure}_{when}", value)
    return found | {"reason": table.reason}
