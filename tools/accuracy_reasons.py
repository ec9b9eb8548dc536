"""
Why a figure of docs/accuracy.md is off: the reasons, and which misses each explains.

A miss that no reason names stands as "not explained" on the page, and a test fails. A reason says
what the twin leaves out and how that is known; it never widens an interval or a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgheadroom.types import PgVersion

_WAL = ("wal_nonfpi_bytes_per_update", "wal_bytes_per_update", "wal_bytes", "wal_records")


@dataclass(frozen=True)
class Reason:
    """
    Why some figures of some runs are off.

    Attributes:
        name: A letter, by which the table of misses names it.
        text: The reason, for whoever reads the page.
        runs: The runs that it concerns, by name.
        figures: Keys of the figures.
        majors: Versions of the server; none: all.
    """

    name: str
    text: str
    runs: tuple[str, ...]
    figures: tuple[str, ...]
    majors: tuple[int, ...] = ()

    def explains(self, run: str, server: str, figure: str) -> bool:
        """Whether it is about this figure of this run on this server."""
        major = PgVersion.parse(server).major
        is_its = run in self.runs and figure in self.figures
        return is_its and (not self.majors or major in self.majors)


REASONS = (
    Reason(
        name="B",
        text="To 15 one extension of a table that others wait for adds 20 pages for each of them. "
        "How many wait is the machine's; the interval reaches that far up, its middle does not.",
        runs=(
            "clients-uniform",
            "inserts",
            "inserts-eight",
            "autovacuum-indexed",
            "hot-set-eight",
            "autovacuum-mix",
            "queue-clients",
            "gaussian",
            "two-tables",
            "eight-clients-full",
            "indexed-column-eight",
            "two-snapshots",
            "snapshot-hot-set",
            "snapshot",
            "read-mostly",
            "deletes",
        ),
        figures=("heap_pages",),
        majors=(15,),
    ),
    Reason(
        name="A",
        text="Many clients want the same few rows. How often such a page is pruned depends on who "
        "has it pinned at that moment, which is the machine's: a page that somebody has pinned is "
        "not pruned, its record (about 60 bytes) is not written, and rows then leave it. On 15.18 "
        "two runs of `hot-set` had 145.4 and 163.7 bytes of WAL an update without images, two of "
        "`zipfian-mild` 150.1 and 162.4 (see [limits](limits.md) too).",
        runs=(
            "clients-zipfian",
            "hot-set",
            "hot-set-eight",
            "zipfian-mild",
            "zipfian-scattered",
            "tpcb-four",
            "tpcb-eight",
        ),
        figures=(*_WAL, "heap_pages", "newpage_frac", "hot_frac"),
    ),
    Reason(
        name="C",
        text="Several clients insert keys at the end of an index, or delete from its beginning, "
        "each in its own stretch. How they come on beside each other decides which leaves split in "
        "the middle and which become empty and are used again. How many transactions each client "
        "had in each hundredth of the run is the run's; who comes first within it is drawn. "
        "`deletes` had 237 to 278 index pages in the four runs recorded here, 181 to 351 in "
        "nine earlier ones, and 654 to 660 in three beside some fifteen busy processes on two "
        "cores; a prediction, which knows no run, is as wrong as they differ.",
        runs=("inserts", "inserts-eight", "queue-clients", "deletes", "autovacuum-mix"),
        figures=("index_pages",),
    ),
    Reason(
        name="D",
        text="How many of the updates still find their row depends on how far the deleting clients "
        "have come, so the number of updates itself differs, and with it WAL for each of them.",
        runs=("autovacuum-mix", "clients-mix"),
        figures=_WAL,
    ),
    Reason(
        name="E",
        text="Vacuums are played between their start and their end as the log has them, at an even "
        "pace. What is free when a page or a leaf would overflow depends on where exactly a vacuum "
        "is by then, and in `autovacuum-indexed` an index of a few dozen leaves hangs on it; so "
        "may whether it cuts off a table's end: the twin's runs of `deletes` (18.4) lie far apart.",
        runs=("autovacuum-indexed", "autovacuum", "autovacuum-mix", "deletes"),
        figures=("index_pages", "heap_pages"),
    ),
    Reason(
        name="F",
        text="Snapshots are taken and released between two transactions, at the fraction of the "
        "run that was measured. Leaves that cannot be cleaned while one is held split about the "
        "same time: with the snapshots of `two-snapshots` released 1 % of the run later the twin "
        "has 118 index pages instead of 108, so 4 pages are 0.4 % of the run.",
        runs=("two-snapshots", "snapshot", "snapshot-hot-set"),
        figures=("index_pages",),
    ),
    Reason(
        name="G",
        text="No cause is known. The intervals of `every-field` hold, and their middles are 1 to "
        "2.4 % low on 18.4, 16.14 and 15.18; of `eight-clients-full`, with 8 clients, 423 pages "
        "(16.14) lie above 410 to 416, of `two-clients` 416 (15.18) above 406 to 410. Intervals "
        "state 90 %, so that some are to miss.",
        runs=("every-field", "eight-clients-full", "two-clients"),
        figures=("heap_pages",),
    ),
)


def reason_for(run: str, server: str, figure: str) -> Reason | None:
    """The first reason that explains a miss; None when nobody has found one."""
    return next((one for one in REASONS if one.explains(run, server, figure)), None)
