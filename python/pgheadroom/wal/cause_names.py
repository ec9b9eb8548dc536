"""
What causes of write-ahead log are called where people read: the contract's names are for programs.

Source: the causes are those of docs/wal.md (`Cause`, crates/pgheadroom-walread/src/cause.rs).
"""

from __future__ import annotations

from collections.abc import Mapping

CAUSE_NAMES: Mapping[str, str] = {
    "hot_update": "HOT updates",
    "cold_update": "updates on their page, not HOT",
    "newpage_update": "updates to another page",
    "insert": "inserts",
    "multi_insert": "COPY",
    "delete": "deletes",
    "lock": "row locks",
    "prune": "pruning",
    "prune_on_access": "pruning on access",
    "prune_vacuum": "pruning by VACUUM",
    "vacuum": "VACUUM's second pass",
    "freeze": "freezing",
    "visible": "visibility map",
    "heap_other": "other heap records",
    "index_insert": "index entries",
    "index_split": "index splits",
    "index_dedup": "index deduplication",
    "index_delete": "deletion of dead index entries",
    "index_vacuum": "VACUUM of indexes",
    "index_other": "other index records",
    "fpi_first_change": "images at first change",
    "fpi_hint": "images for hint bits",
    "fpi_forced": "images always taken",
    "sequence": "sequences",
    "commit": "commits",
    "abort": "rollbacks",
    "prepare": "prepared transactions",
}
"""Of each cause with a name of its own."""


def cause_name(cause: str) -> str:
    """
    What a cause is called; of `other:NAME` the resource manager, of one that is not known itself.

    A profile may come from anywhere, and from a later version.

    >>> cause_name("other:XLOG")
    'XLOG records'
    """
    manager = cause.removeprefix("other:")
    return CAUSE_NAMES.get(cause, cause) if manager == cause else f"{manager} records"
