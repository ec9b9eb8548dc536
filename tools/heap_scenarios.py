"""
Scenarios about the heap's maintenance: VACUUM, freezing, truncation, hint bits, row locks.

One table `h(id int, v int, p char(64))`, of 97-byte tuples, with a primary key or without. Steps:

    table [key] fillfactor=F         CREATE TABLE
    insert A B                       INSERT ... SELECT ... FROM generate_series(A, B)
    update|delete|lock M R A B       by a sequential scan, rows with id % M = R between A and B
    update_key|select_key|lock_key|delete_key A B    by the key, rows between A and B
    select                           SELECT count(*) by a sequential scan
    begin, commit, rollback          around several statements
    hold, release                    another session takes a snapshot, and ends
    checkpoint
    vacuum [freeze] [keep]           VACUUM; keep: TRUNCATE FALSE
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """What is played, and why: the rule that it is about."""

    name: str
    rule: str
    steps: tuple[str, ...]
    images: bool = False
    checksums: bool | None = None  # None: the version's default


LOADED = ("table key fillfactor=100", "insert 1 2000", "vacuum", "checkpoint")
BARE = ("table fillfactor=100", "insert 1 2000", "vacuum", "checkpoint")

SCENARIOS = (
    Scenario(
        "one-pass",
        "Without indexes dead rows become unused at once; to 16 by two records, from 17 by one.",
        (*BARE, "delete 3 0 1 2000", "vacuum", "insert 2001 2500"),
    ),
    Scenario(
        "one-pass-dead-left",
        "Readers leave dead line pointers, which VACUUM without indexes frees, also on 17.",
        (*BARE, "delete 2 0 1 400", "update 2 1 1 400", "select", "delete 2 1 1 400", "vacuum"),
    ),
    Scenario(
        "truncate-all",
        "A table whose rows are all gone is cut to nothing, its maps with it.",
        (*BARE, "delete 1 0 1 2000", "vacuum", "insert 1 100", "vacuum"),
    ),
    Scenario(
        "truncate-tail",
        "Empty pages at the end go when they are a 16th; the maps are cut in the middle.",
        (*LOADED, "delete 1 0 1801 2000", "vacuum", "insert 2001 2200", "vacuum"),
    ),
    Scenario(
        "truncate-images",
        "With images, the cut maps' pages are logged where hints are.",
        (*LOADED, "delete 1 0 1001 2000", "vacuum", "insert 2001 2200"),
        images=True,
    ),
    Scenario(
        "truncate-not-worth-while",
        "Fewer than a 16th of the pages empty: they stay.",
        (
            "table key fillfactor=100",
            "insert 1 4000",
            "vacuum",
            "delete 1 0 3900 4000",
            "vacuum",
        ),
    ),
    Scenario(
        "truncate-refused",
        "VACUUM (TRUNCATE FALSE) leaves empty pages, which are all-frozen then and skipped.",
        (*LOADED, "delete 1 0 1001 2000", "vacuum keep", "vacuum keep", "vacuum"),
    ),
    Scenario(
        "freeze",
        "VACUUM FREEZE freezes every tuple, with one plan a kind, and sets all-frozen.",
        (*LOADED, "update 25 1 1 2000", "vacuum", "vacuum freeze", "vacuum freeze"),
    ),
    Scenario(
        "freeze-then-change",
        "A lock clears all-frozen, an update both bits; plain VACUUM sets all-visible only.",
        (
            *LOADED,
            "vacuum freeze",
            "lock_key 5 5",
            "update_key 300 300",
            "delete_key 700 700",
            "insert 2001 2010",
            "vacuum",
            "vacuum freeze",
        ),
    ),
    Scenario(
        "freeze-by-image",
        "From 16 a page whose image is written anyway is frozen when that makes it all-frozen.",
        (*LOADED, "update 100 1 1 2000", "checkpoint", "vacuum", "vacuum"),
        images=True,
    ),
    Scenario(
        "freeze-by-image-bare",
        "The same without indexes, where pages are pruned in one pass.",
        (*BARE, "delete 100 1 1 2000", "checkpoint", "vacuum", "vacuum"),
        images=True,
    ),
    Scenario(
        "freeze-by-hint",
        "An image for hint bits counts too: new rows that nobody has read, after a checkpoint.",
        ("table key fillfactor=100", "insert 1 2000", "checkpoint", "vacuum", "vacuum"),
        images=True,
    ),
    Scenario(
        "freeze-with-locks",
        "Ended row locks and failed deletions are frozen away, each in its own plan.",
        (
            *LOADED,
            "lock 10 3 1 1000",
            "begin",
            "delete 10 4 1 1000",
            "rollback",
            "begin",
            "update 10 5 1 300",
            "rollback",
            "vacuum freeze",
        ),
    ),
    Scenario(
        "freeze-held",
        "What a snapshot may see is neither removed nor frozen.",
        (
            *LOADED,
            "hold",
            "update 20 1 1 2000",
            "delete 20 2 1 2000",
            "vacuum freeze",
            "release",
            "vacuum",
        ),
    ),
    Scenario(
        "skipping",
        "Runs of 32 all-visible pages are skipped, shorter ones are not, the last page never.",
        (
            "table key fillfactor=100",
            "insert 1 8000",
            "vacuum",
            "checkpoint",
            "update_key 1 1",
            "update_key 2500 2500",
            "update_key 5500 5500",
            "vacuum",
        ),
        images=True,
    ),
    Scenario(
        "hints-after-checkpoint",
        "The first reader after a checkpoint notes who committed; with checksums that is logged.",
        ("table key fillfactor=100", "insert 1 1000", "checkpoint", "select", "select"),
        images=True,
    ),
    Scenario(
        "hints-without-images",
        "The same without full-page images: a record of 44 bytes a page.",
        ("table key fillfactor=100", "insert 1 1000", "checkpoint", "select", "select_key 1 1000"),
    ),
    Scenario(
        "hints-by-key",
        "An index scan notes what it sees of the versions it passes.",
        (
            *LOADED,
            "update 50 1 1 2000",
            "checkpoint",
            "select_key 1 400",
            "checkpoint",
            "select_key 1 2000",
            "update_key 401 410",
        ),
        images=True,
    ),
    Scenario(
        "hints-of-aborted",
        "Failed inserters and deleters are noted as well.",
        (
            *LOADED,
            "begin",
            "insert 2001 2100",
            "delete 10 1 1 500",
            "update 10 2 1 500",
            "rollback",
            "checkpoint",
            "select",
            "select",
            "checkpoint",
            "vacuum",
        ),
        images=True,
    ),
    Scenario(
        "hints-before-prune",
        "Pruning looks at every tuple first: the image for hints precedes the prune record.",
        (
            "table key fillfactor=80",
            "insert 1 1500",
            "vacuum",
            "checkpoint",
            "update 5 1 1 1500",
            "update 5 1 1 1500",
            "checkpoint",
            "select",
            "update 7 1 1 1500",
        ),
        images=True,
    ),
    Scenario(
        "hints-of-locks",
        "A reader does not look at ended row locks, whoever changes the row does.",
        (
            *LOADED,
            "lock 20 1 1 2000",
            "checkpoint",
            "select",
            "update_key 21 21",
            "delete_key 81 81",
            "lock_key 161 161",
            "lock 10 1 1 2000",
        ),
        images=True,
    ),
    Scenario(
        "locks-carried-over",
        "A transaction's row lock goes over to the version it makes, as the weakest kind.",
        (
            *LOADED,
            "begin",
            "lock_key 10 12",
            "lock_key 10 12",
            "update_key 10 12",
            "lock_key 10 12",
            "lock_key 10 12",
            "update_key 10 10",
            "commit",
            "update_key 10 12",
            "vacuum",
            "vacuum freeze",
        ),
    ),
    Scenario(
        "locks-rolled-back",
        "A failed locker leaves nothing, whatever came after it in its transaction.",
        (
            *LOADED,
            "begin",
            "lock_key 10 12",
            "update_key 11 12",
            "delete_key 12 12",
            "rollback",
            "lock_key 10 12",
            "update_key 10 12",
            "vacuum",
        ),
    ),
    Scenario(
        "aborted-inserts",
        "Rows of a failed transaction go at the next VACUUM; readers do not prune for them.",
        (
            *LOADED,
            "begin",
            "insert 2001 2300",
            "rollback",
            "select",
            "vacuum",
            "insert 2001 2300",
        ),
    ),
    Scenario(
        "aborted-hot-updates",
        "Versions of a failed update hang on no chain and are removed by themselves.",
        (
            "table key fillfactor=70",
            "insert 1 1000",
            "vacuum",
            "begin",
            "update 3 1 1 1000",
            "update 3 1 1 1000",
            "rollback",
            "update 3 1 1 1000",
            "select",
            "vacuum",
        ),
    ),
    Scenario(
        "bypass",
        "Under 2 % of the pages with dead line pointers: indexes and second pass are left out.",
        (
            "table key fillfactor=100",
            "insert 1 8000",
            "vacuum",
            "delete_key 1 1",
            "vacuum",
            "delete_key 500 500",
            "vacuum",
            "insert 8001 8010",
            "vacuum",
        ),
    ),
    Scenario(
        "all-gone-but-kept-pages",
        "Pages emptied by pruning are all-frozen; those that readers emptied are set at once.",
        (
            "table key fillfactor=100",
            "insert 1 1000",
            "vacuum",
            "delete 1 0 1 500",
            "vacuum keep",
            "lock 100 0 501 1000",
            "insert 1001 1400",
            "vacuum freeze",
        ),
    ),
    Scenario(
        "checksums-off",
        "Without checksums hints and visibility cost no images.",
        (
            *LOADED,
            "update 40 1 1 2000",
            "checkpoint",
            "select",
            "vacuum",
            "vacuum freeze",
            "delete 1 0 1500 2000",
            "vacuum",
        ),
        images=True,
        checksums=False,
    ),
    Scenario(
        "checksums-on",
        "With checksums, which every version can have, they do.",
        (
            *LOADED,
            "update 40 1 1 2000",
            "checkpoint",
            "select",
            "vacuum",
            "vacuum freeze",
            "delete 1 0 1500 2000",
            "vacuum",
        ),
        images=True,
        checksums=True,
    ),
)
