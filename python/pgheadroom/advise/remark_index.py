"""
An index that takes HOT away: what it costs by rule or by the twin, against how much it is read.

Never a drop: reads say what an index is worth, and only its users know what needs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.advise.cold_updates import Blamed, IndexesTogether, IndexFinding
from pgheadroom.advise.foreseen import Point
from pgheadroom.advise.table_advice import Gain, Remark
from pgheadroom.outcome import ends, middle
from pgheadroom.profile import TableProfile
from pgheadroom.profile.unpriced import unpriced_of
from pgheadroom.units import percent, show_bytes, show_shares

_GAIN_MIN = 0.01  # of the HOT share; less is nothing to act on; arbitrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """
    How much an index is read, and what else depends on it.

    Attributes:
        scans: Index scans in the interval; None where nobody counted.
        total_scans: The same since the statistics began.
        entries: Entries that its scans returned in the interval.
        fetches: Rows that plain index scans fetched for them; what is missing was answered by
            bitmap or index-only scans.
        enforces: Why it cannot go: `primary key`, `unique`, `exclusion constraint`, `replica
            identity`; None for an index that is there for reading only.
        method: Its access method.
        is_priced: Whether the twin has its pages and its WAL.
        columns: Key columns, `(expression)` among them.
        include: Columns that it only carries.
        has_predicate: Whether it is partial.
        predicate_columns: Columns that only its predicate or expressions name.
        others: The table's other whole B-trees over plain columns: name and key columns.
        parent: The index of the partitioned table that it is a part of; None for one of its own.
    """

    scans: int | None
    total_scans: int | None
    entries: int | None
    fetches: int | None
    enforces: str | None
    method: str
    is_priced: bool
    columns: tuple[str, ...]
    include: tuple[str, ...]
    has_predicate: bool
    predicate_columns: tuple[str, ...]
    others: tuple[tuple[str, tuple[str, ...]], ...] = ()
    parent: str | None = None


def reads_of(table: TableProfile, name: str) -> Reads | None:
    """
    Read them from an observed table; None where it has no such index.

    Args:
        table: With `observed`.
        name: As in the catalog.
    """
    listed = () if table.observed is None else table.observed.indexes
    found = next((index for index in listed if index.name == name), None)
    if found is None:
        return None
    enforces = (
        ("primary key" if found.is_primary else None)
        or ("unique" if found.is_unique else None)
        or ("exclusion constraint" if found.is_exclusion else None)
        or ("replica identity" if found.is_replica_identity else None)
    )
    counters, totals = found.counters, found.totals
    columns, include = found.columns, found.include or ()
    return Reads(
        scans=None if counters is None else counters.idx_scan,
        total_scans=None if totals is None else totals.idx_scan,
        entries=None if counters is None else counters.idx_tup_read,
        fetches=None if counters is None else counters.idx_tup_fetch,
        enforces=enforces,
        method=found.method,
        is_priced=f"{name} ({found.method})" not in unpriced_of(table),
        columns=columns,
        include=include,
        has_predicate=found.predicate is not None,
        predicate_columns=tuple(
            c for c in found.ends_hot_by_columns if c not in (*columns, *include)
        ),
        others=tuple(
            (str(other.name), tuple(other.columns))
            for other in listed
            if other.name != name
            and other.method == "btree"
            and "predicate" not in other
            and "(expression)" not in other.columns
        ),
        parent=found.parent,
    )


def index_remark(
    blamed: Blamed,
    reads: Reads,
    now: Point,
    then: Point,
    *,
    major: int,
    finding: IndexFinding | None = None,
) -> Remark | None:
    """
    Weigh an index against HOT.

    Args:
        blamed: The index, and what it has done.
        reads: How much it is read.
        now: The table as it is, by the twin.
        then: The same without the index.
        major: Of the server: BRIN ends HOT before 16.
        finding: The same by rule, with the columns that do it.

    Returns:
        None for an index that enforces something, or without which HOT gains less than a point.
    """
    if reads.enforces is not None or blamed.unique:
        return None
    before, after = middle(now.hot_frac), middle(then.hot_frac)
    if before is None or after is None or after - before < _GAIN_MIN:
        return None
    shown = show_shares(before, after)
    text = (
        f"{_lead(blamed, finding)}: without it the HOT share would go from {shown[0]} to {shown[1]}"
    )
    wal = (middle(now.wal_bytes_per_update), middle(then.wal_bytes_per_update))
    sizes = (middle(now.index_bytes), middle(then.index_bytes))
    is_priced = reads.is_priced
    saved = None if finding is None else middle(finding.wal_bytes_saved_per_day)
    if not is_priced and saved is not None:
        text += (
            f", and about {show_bytes(saved)} of WAL a day less would be written, estimated by "
            "the statements' own"
        )
    elif is_priced and wal[0] is not None and wal[1] is not None:
        text += f" and WAL per update from {wal[0]:,.0f} to {wal[1]:,.0f} bytes"
    if is_priced and sizes[0] is not None and sizes[1] is not None and sizes[0] > sizes[1]:
        text += f", and {show_bytes(sizes[0] - sizes[1])} of index would go"
    text += f".{_as_part(reads)} {_reads_text(blamed, reads)}{_alternatives(blamed, reads, major)}"
    named = ("hot_frac", "wal_bytes_per_update", "index_bytes") if is_priced else ("hot_frac",)
    gain = {
        name: Gain(now=ends[0], then=ends[1])
        for name in named
        if None not in (ends := (getattr(now, name), getattr(then, name)))
    }
    return Remark(kind="index", text=text, evidence="predicted", gain=gain)


def rule_remark(
    finding: IndexFinding,
    blamed: Blamed,
    reads: Reads,
    *,
    major: int,
    together: IndexesTogether | None = None,
) -> Remark:
    """
    What follows of an index without playing anything.

    Args:
        finding: By rule and layout, or with the twin's figures.
        blamed: The index, and what it has done.
        reads: How much it is read.
        major: Of the server.
        together: It and all others that end HOT for the same updates, where these may go.
    """
    share = middle(finding.updates_frac) or 0.0
    text = f"{_lead(blamed, finding)}, for {percent(share)} of the updates"
    if finding.enforces is not None:
        text += (
            f". It is there for more than reading ({finding.enforces}), so it stays: HOT comes "
            "back where its columns keep their values"
        )
    elif finding.only_with:
        text += (
            f"; {', '.join(finding.only_with)} end"
            f"{'s' if len(finding.only_with) == 1 else ''} HOT for the same updates: without "
            f"{blamed.name} alone they are as cold as now"
        )
        if together is not None:
            now, then = middle(together.hot_frac_now), middle(together.hot_frac_then)
            shown = show_shares(now or 0.0, then or 0.0)
            text += f", without all of them HOT would go from {shown[0]} to {shown[1]}"
    saved = middle(finding.wal_bytes_saved_per_day)
    if finding.enforces is None:
        if saved is None:
            text += (
                f". {blamed.name} ({reads.method}) is not priced: what it writes is not that of a "
                "B-tree, and the WAL of no statement was counted (pg_stat_statements does)"
            )
        else:
            text += f". Without it {_saved_text(finding, saved)} of WAL a day less would be written"
    text += f".{_as_part(reads) if finding.enforces is None else ''} {_reads_text(blamed, reads)}"
    if finding.enforces is None:
        text += _alternatives(blamed, reads, major)
    gain: dict[str, Gain] = {}
    shares = (finding.hot_frac_now, finding.hot_frac_then)
    if finding.enforces is None and shares != (None, None):
        gain = {"hot_frac": Gain(now=shares[0], then=shares[1])}
    return Remark(kind="index", text=text, evidence=finding.evidence, gain=gain)


def _saved_text(finding: IndexFinding, saved: float) -> str:
    """How much; where it may be nothing as well, no more than the end of its interval."""
    if saved >= 1:
        return f"about {show_bytes(saved)}"
    most = ends(finding.wal_bytes_saved_per_day or 0.0)[2]
    return f"no more than {show_bytes(most)}" if most >= 1 else "nothing that could be told"


def _lead(blamed: Blamed, finding: IndexFinding | None) -> str:
    by = ", ".join(blamed.columns)
    if finding is not None:
        by = finding.by or f"{by} (no known statement assigns it: a trigger, or one unseen)"
    return f"{'' if blamed.certainty == 'certain' else 'Possibly '}{blamed.name} ends HOT, by {by}"


def _as_part(reads: Reads) -> str:
    """Of a partition's index: what goes with it."""
    if reads.parent is None:
        return ""
    return (
        f" It is this partition's part of {reads.parent} and goes with that alone, which all "
        "partitions then are without."
    )


def _reads_text(blamed: Blamed, reads: Reads) -> str:
    if reads.scans is None or reads.total_scans is None:
        return (
            "How much it is read nobody has counted: find that out, on standbys too, before "
            "anything else."
        )
    if reads.total_scans == 0:
        return (
            "It was not read since the statistics began; standbys count their own reads, and a "
            "job that runs once a year may not have come yet."
        )
    if reads.scans == 0:
        return f"It was not read in the interval, and {reads.total_scans:,} times before."
    cost = middle(blamed.updates) or 0.0
    text = f"It was read {reads.scans:,} times in the interval, {reads.total_scans:,} times in all"
    if reads.entries and reads.fetches is not None and reads.fetches < reads.entries / 2:
        text += ", mostly by bitmap or index-only scans"
    if reads.scans >= cost:
        return text + ": more often than it ended HOT, so it may well be worth more than HOT."
    return text + f", against {cost:,.0f} updates that it made cold."


def _alternatives(blamed: Blamed, reads: Reads, major: int) -> str:
    """What keeps its use and gives HOT back, as far as the definition tells."""
    changed = set(blamed.columns)
    found = []
    if changed <= set(reads.include):
        found.append(
            f"without {', '.join(sorted(changed))} in INCLUDE it would end no HOT, and scans "
            "would read the row instead"
        )
    elif changed and not changed & set(reads.columns) and reads.has_predicate:
        found.append(
            "its predicate alone names what changes: one over a column that stays ends no HOT"
        )
    elif changed <= {*reads.columns, *reads.include} and not changed >= set(reads.columns):
        kept = [column for column in reads.columns if column not in changed]
        copied = next((n for n, c in reads.others if list(c[: len(kept)]) == kept), None)
        if copied is not None and reads.method == "btree":
            found.append(
                f"narrowed to {', '.join(kept)} it would end no HOT, but duplicate {copied}: it "
                "may be dropped where that serves its scans"
            )
        else:
            found.append(f"narrowed to {', '.join(kept)} it would end no HOT")
    if reads.method == "btree" and major >= 16 and "(expression)" not in reads.columns:
        found.append(
            "BRIN ends no HOT and serves ranges, where values follow the order of the rows"
        )
    if reads.scans and not reads.has_predicate and reads.method == "btree":
        found.append("a predicate makes it smaller, yet gives no HOT back")
    if not found:
        return ""
    said = "; ".join(found)
    return f" {said[0].upper()}{said[1:]}."
