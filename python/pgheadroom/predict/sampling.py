"""
Big tables by a sample: a profile with a share of its rows and operations stands for the whole.

A page's life depends on how often its own rows change and on the room beside them, not on how many
other pages there are. So a table with a tenth of the rows and a tenth of the operations, picked in
the same way, has a tenth of the pages, updates and WAL; only what is there once (an index's
metapage and root, the upper levels of the free space map) does not shrink. Several samples, each
with another seed, say how far one lies from the whole.

Several clients are all there in a sample. Between two transactions that are played each of them has
as many elsewhere as in the whole (`PageSample.of_whole`), so that between two visits of a page as
much time passes, and who holds others from pruning is as far along. What several clients visit
together page after page (new rows, the oldest ones, a walk through the table) would be visited more
slowly than in the whole; with several clients that is refused.

Not everything shrinks: what does not is refused by name (`share_of`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pgheadroom import _core
from pgheadroom.errors import ParameterError
from pgheadroom.layout import TableLayout, of_profile
from pgheadroom.outcome import SUMMED, Outcome, mid, middle, put_together
from pgheadroom.play.page_kinds import blocks
from pgheadroom.predict import pgbench_tables
from pgheadroom.predict.spread import WHOLE, OfSamples
from pgheadroom.profile import Operation, Profile, Run, TableProfile, to_json
from pgheadroom.profile.pages import mean_rows
from pgheadroom.profile.unpriced import is_played

WHOLE_PAGES_MAX = 262_144
"""Heap pages of the largest table (2 GB) that are simulated whole unless a sample is asked for."""

SAMPLE_PAGES = 4096
"""Heap pages of the largest table in a sample that nobody asked for."""

_ROWS_MIN = 1000
"""Rows that each table of a sample keeps at least: fewer fill too few pages to be a sample."""

_OPERATIONS_MIN = 200
"""
Operations of each client that a sample keeps at least: so that their share is the rows' share, and
what they do to pages is no accident.
"""

_UNASKED_PAGES_MAX = 16 * SAMPLE_PAGES
"""Where a sample has to be larger, it is only taken when it is asked for. Arbitrary."""

_SHORTENED_PER_PAGE = 4  # TOAST_TUPLES_PER_PAGE, src/include/access/heaptoast.h
_HASH_FILLFACTOR = 75  # HASH_DEFAULT_FILLFACTOR, src/include/access/hash.h
_BUCKETS_PER_STEP = 4  # of a doubling: how far splits may have come
_ONCE_PER_BTREE = 2
"""Its metapage and its root."""

_MAP_PAGES = 3
"""Two upper levels of a free space map, and the first page of the visibility map."""

_NOT_SHRINKING: Mapping[str, str] = {
    "zipfian": "its hottest rows get the same share of the updates however few rows there are",
    "head": "how long a queue is, and what it has left, does not shrink with its table",
    "stride": "which rows its steps meet depends on their number",
}
_TOGETHER = ("newest", "oldest", "sequential")

_PAGES_PER_CLIENT = 64
"""
Pages of the largest table that a sample has at least for each of several clients: each fills a page
of its own, and those must be few among all.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSample:
    """
    A profile that is a share of another one.

    Attributes:
        profile: What is simulated.
        share: Its operations over those of the whole; rows follow it to within one per client.
        once: Pages of each table's indexes that are there once, whatever its size.
        untouched: Sizes of the whole's tables that the run does nothing to.
        entire: Tables that are there whole, and to which every transaction of the whole does what
            it does.
        of_whole: What the twin has to know of the whole; None when nobody meets anybody.
    """

    profile: Profile
    share: float
    once: Mapping[str, int]
    untouched: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    entire: frozenset[str] = frozenset()
    of_whole: Mapping[str, int] | None = None

    @property
    def doubt(self) -> OfSamples:
        """What the blown up figures may be off by, besides their spread."""
        if self.share == 1:
            return WHOLE
        btree_pages = sum(self.once.values())
        clients = self.profile.workload.run.clients
        return OfSamples(
            # How clients meet is drawn for each sample as for the whole, whatever the share.
            share=self.share if clients == 1 else 1.0,
            entire=self.entire,
            open_pages=clients * (1 / self.share - 1),
            heap_pages=self._lived_pages(),
            index_pages=btree_pages / _ONCE_PER_BTREE / self.share + self._bucket_pages(),
            modified_pages=(btree_pages + _MAP_PAGES * len(self.once)) * (1 / self.share - 1),
        )

    def _lived_pages(self) -> float:
        """Pages that tables that have lived may have more or fewer than the samples' come to."""
        pages = 0.0
        for table in self.profile.tables:
            if table.pages:
                whole = table.rows / self.share / mean_rows(table.pages)
                pages += abs(blocks(table) / self.share - whole)
        return pages

    def _bucket_pages(self) -> float:
        """
        Pages that hash indexes may have more or fewer than the samples' come to.

        Buckets are added in steps, by doubling or by a quarter of that, and a sample is at another
        place of its step.
        """
        pages = 0.0
        for table in self.profile.tables:
            for index in table.indexes:
                if index.method == "hash":
                    percent = index.fillfactor or _HASH_FILLFACTOR
                    whole = _core.hash_buckets(round(table.rows / self.share), percent)
                    pages += abs(_core.hash_buckets(table.rows, percent) / self.share - whole)
                    pages += whole / _BUCKETS_PER_STEP
        return pages

    def with_seed(self, n: int) -> Profile:
        """The sample of this number: the same with other random values."""
        run = self.profile.workload.run
        workload = replace(self.profile.workload, run=replace(run, seed=run.seed + n))
        return replace(self.profile, workload=workload)

    def twin_json(self, n: int) -> str:
        """What the twin is given to play the sample of this number."""
        data = to_json(self.with_seed(n))
        return json.dumps(data | ({} if self.of_whole is None else {"sample": dict(self.of_whole)}))

    def blown_up(self, sampled: Outcome) -> Outcome:
        """What the whole would have been, by the figures of one sample's run."""
        by_table: dict[str, dict[str, float | None]] = {}
        transactions = {key: mid(sampled.value(key)) for key in SUMMED}
        for name, figures in sampled.by_table.items():
            found = {}
            share = 1.0 if name in self.entire else self.share
            for key in SUMMED:
                value = middle(figures.value(key))
                if value is not None:
                    transactions[key] -= value
                    once = self.once.get(name, 0) if key == "index_pages" else 0
                    value = (value - once) / share + once
                found[key] = value
            by_table[name] = found | dict(self.untouched.get(name, {}))
        # Where tables are there whole, all of the whole's transactions have ended.
        share = 1.0 if self.entire else self.share
        records = {key: transactions[key] / share for key in ("wal_records", "wal_bytes")}
        return put_together(by_table, records)


def heap_pages(profile: Profile) -> int:
    """Pages of the largest table as it is loaded."""
    if profile.workload.builtin is not None:
        return pgbench_tables.heap_pages(profile.workload.builtin)
    layouts = of_profile(profile, None).tables
    return max(_pages(*both) for both in zip(layouts, profile.tables, strict=True))


def _pages(table: TableLayout, loaded: TableProfile) -> int:
    found = (room for room in table.fillfactors if room.fillfactor == table.fillfactor)
    room = next(found, None)
    if room is None:  # longer than a page, so values of it are out of line
        pages = math.ceil(loaded.rows / _SHORTENED_PER_PAGE)
    else:
        assert room.heap_pages is not None, "a profile says how many rows it has"
        pages = room.heap_pages
    if loaded.rows_per_page is None:
        return pages
    return math.ceil(pages * loaded.rows_per_page / mean_rows(loaded.pages))


def sample_of(profile: Profile, pages: int) -> PageSample:
    """
    The sample whose largest table has about so many pages.

    Args:
        profile: The whole.
        pages: Heap pages that are simulated of its largest table.

    Raises:
        InputError: Fewer pages than a sample needs, or a profile that does not shrink; the message
            says why.
    """
    share = share_of(profile, pages)
    if profile.workload.builtin is not None:
        return _smaller_scale(profile, share)
    run = profile.workload.run
    tables = tuple(_smaller(table, share, run.clients) for table in profile.tables)
    once = {
        table.name: _ONCE_PER_BTREE * sum(index.method == "btree" for index in table.indexes)
        for table in tables
    }
    shrunk = _shorter(run, share)
    is_met = run.clients > 1 and share < 1
    return PageSample(
        profile=replace(profile, tables=tables, workload=replace(profile.workload, run=shrunk)),
        share=_operations(shrunk) / _operations(run),
        once=once,
        of_whole={"whole_operations": _operations(run)} if is_met else None,
    )


def _smaller_scale(profile: Profile, share: float) -> PageSample:
    """The nearest scale below, with as many transactions for each account."""
    builtin, run = profile.workload.builtin, profile.workload.run
    assert builtin is not None, "the caller has looked"
    scale = max(1, int(builtin.scale * share))
    shrunk = _shorter(run, scale / builtin.scale)
    smaller = pgbench_tables.at_scale(profile, scale)
    entire = pgbench_tables.entire(builtin) if scale < builtin.scale else frozenset()
    of_whole = None
    if scale < builtin.scale and (run.clients > 1 or entire):
        of_whole = {"whole_operations": _operations(run)}
        of_whole |= {"whole_scale": builtin.scale} if entire else {}
    return PageSample(
        profile=replace(smaller, workload=replace(smaller.workload, run=shrunk)),
        share=_operations(shrunk) / _operations(run),
        once={pgbench_tables.ACCOUNTS: _ONCE_PER_BTREE, "pgbench_history": 0},
        untouched=pgbench_tables.untouched(builtin),
        entire=entire,
        of_whole=of_whole,
    )


def sample_if_big(profile: Profile) -> PageSample | None:
    """The sample of a profile too large to be simulated whole; None if it is not, or has none."""
    if obstacle(profile) is not None:
        return None
    if heap_pages(profile) <= WHOLE_PAGES_MAX:
        return None
    pages = max(SAMPLE_PAGES, least_pages(profile))
    return sample_of(profile, pages) if pages <= _UNASKED_PAGES_MAX else None


def least_pages(profile: Profile) -> int:
    """Pages of the largest table that a sample of this profile has to have at least."""
    whole = heap_pages(profile)
    run, builtin = profile.workload.run, profile.workload.builtin
    least = 1 if run.clients == 1 else run.clients * _PAGES_PER_CLIENT
    least = max(least, math.ceil(_OPERATIONS_MIN * run.clients / _operations(run) * whole))
    if builtin is not None:
        least = max(least, math.ceil(whole / builtin.scale))
    for table in profile.tables:
        least = max(least, math.ceil(_ROWS_MIN / table.rows * whole))
    return min(least, whole)


def share_of(profile: Profile, pages: int) -> float:
    """
    The share of the rows that so many pages of the largest table hold; 1 when it has no more.

    Raises:
        InputError: As in `sample_of`.
    """
    if pages < 1:
        raise ParameterError("sample_pages", f"{pages}: expected at least 1")
    if (why := obstacle(profile)) is not None:
        raise ParameterError("sample_pages", f": {why}")
    share = min(1.0, pages / heap_pages(profile))
    clients = profile.workload.run.clients
    if share < 1 and clients > 1 and pages < clients * _PAGES_PER_CLIENT:
        raise ParameterError(
            "sample_pages",
            f"{pages}: {clients} clients each fill a page of their own, expected at "
            f"least {_PAGES_PER_CLIENT} pages for each; take {least_pages(profile)} pages or more",
        )
    operations = share * _operations(profile.workload.run)
    if share < 1 and operations < _OPERATIONS_MIN * clients:
        raise ParameterError(
            "sample_pages",
            f"{pages}: {operations:.0f} operations would be left, expected at least "
            f"{_OPERATIONS_MIN * clients}; take {least_pages(profile)} pages or more",
        )
    for table in profile.tables:
        if share < 1 and share * table.rows < _ROWS_MIN:
            raise ParameterError(
                "sample_pages",
                f"{pages}: {share * table.rows:.0f} rows would be left of table {table.name}, "
                f"expected at least {_ROWS_MIN}; take {least_pages(profile)} pages or more",
            )
    return share


def obstacle(profile: Profile) -> str | None:
    """What of the profile has no smaller likeness; None when all has."""
    workload = profile.workload
    if workload.run.operations is None:
        return "run.duration_s: a sample needs run.operations, the number that it takes a share of"
    server = profile.server
    if profile.may_autovacuum or server.checkpoint_interval_s or server.max_wal_size_bytes:
        return "autovacuum and checkpoints do not shrink with the tables"
    if (table := next((t for t in profile.tables if t.foreign_keys), None)) is not None:
        return (
            f"{table.name} has foreign keys: how the locks that their checks take shrink with "
            "the tables was not compared with a server"
        )
    # One whose keys are not known has no page.
    gins = (
        index.name
        for table in profile.tables
        for index in table.indexes
        if index.method == "gin" and is_played(index, table)
    )
    if (name := next(gins, None)) is not None:
        return f"{name} is a GIN, whose keys do not become fewer with the rows"
    clients = workload.run.clients
    if any(table.rows == 0 for table in profile.tables):
        return "a table that begins empty has no rows to take a share of"
    found = (_operation_obstacle(operation, clients) for operation in workload.operations)
    return next(filter(None, found), None)


def _operation_obstacle(operation: Operation, clients: int) -> str | None:
    if operation.find == "seqscan":
        return f"{operation.kind} on {operation.table} reads whole tables, which are smaller then"
    pick = operation.pick
    if pick is not None and pick.distribution in _NOT_SHRINKING:
        why = _NOT_SHRINKING[pick.distribution]
        return f"{operation.kind} on {operation.table} picks {pick.distribution} keys: {why}"
    if pick is not None and (pick.distribution == "age" or pick.among or pick.within_rows):
        return (
            f"{operation.kind} on {operation.table} picks among the rows that are there: how old "
            "they become is counted in rows, and in a sample more of them would still be on the "
            "page that is being filled"
        )
    if pick is not None and pick.distribution in _TOGETHER and clients > 1:
        return (
            f"{operation.kind} on {operation.table} picks {pick.distribution} keys: {clients} "
            "clients visit the same pages one after the other there, more slowly in a sample; "
            "one client can be sampled, or fewer rows simulated whole"
        )
    return None


def _smaller(table: TableProfile, share: float, clients: int) -> TableProfile:
    rows = _divisible(table.rows * share, clients)
    columns = tuple(
        column
        if column.values.ndistinct is None
        # As many rows of one value as in the whole, so that posting lists are as long.
        else replace(
            column,
            values=replace(
                column.values, ndistinct=max(1, round(column.values.ndistinct * rows / table.rows))
            ),
        )
        for column in table.columns
    )
    return replace(table, rows=rows, columns=columns)


def _shorter(run: Run, share: float) -> Run:
    return replace(run, operations=_divisible(_operations(run) * share, run.clients))


def _operations(run: Run) -> int:
    assert run.operations is not None, "others are refused"
    return run.operations


def _divisible(wanted: float, clients: int) -> int:
    """The nearest number that the clients share evenly, at least one each."""
    return max(1, round(wanted / clients)) * clients
