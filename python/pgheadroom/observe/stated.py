"""
What a live server knows of the values of an index's expressions and of its predicate.

    expression   type from the catalog; width, different values and NULLs from pg_stats
    predicate    rows of the index over rows of the table

How often they change no server counts: an expression as often as a column that it reads, a
predicate as often as half of two rows that are drawn apart differ in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgheadroom import _core
from pgheadroom.observe.widths import ColumnWidth, canonical_type, string_width
from pgheadroom.profile.column_types import FORMS, base_of
from pgheadroom.sources.recording import Row

SAID = (
    "the twin does not evaluate {texts}: their values are like those that the server has "
    "statistics of; how often they change is assumed"
)


def stated_of(
    row: Row,
    definition: Row | None,
    made: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
    statistics: Mapping[tuple[str, str, str], Row],
    *,
    rows: int,
) -> list[dict[str, Any]]:
    """
    What is known of the expressions that the twin cannot evaluate; those of nothing are left out.

    Args:
        row: The index's row of the query `indexes`.
        definition: Its row of `index_definitions`.
        made: What stands for it in the profile.
        entries: The profile's columns of its table.
        statistics: Rows of `column_statistics`, by schema, table or index, and name.
        rows: Rows of the table.
    """
    columns = [(str(entry["name"]), str(entry["type"])) for entry in entries]
    stated = []
    keys = (definition or {}).get("keys") or ()
    for text, key in zip(made.get("expressions", ()), keys, strict=False):
        found = statistics.get((row["schema"], row["name"], key["name"]))
        if found is None or _core.not_evaluated(text, columns) is None:
            continue
        stated.append({"expression": text} | _values(str(key["type"]), found, rows))
    where = made.get("where")
    share = _share(row, rows)
    if where is not None and share is not None and _core.not_evaluated(where, columns) is not None:
        changed = round(share * (1 - share), 6)
        stated.append({"expression": where, "true_frac": share, "changed_frac": changed})
    return stated


def _values(spelled: str, found: Row, rows: int) -> dict[str, Any]:
    canonical = canonical_type(spelled)
    if canonical is None or not FORMS[base_of(canonical)].btree:
        canonical = "text"
    made: dict[str, Any] = {"type": canonical}
    if FORMS[base_of(canonical)].width:
        width = ColumnWidth(
            mean_bytes=float(found["avg_width"]), deviation_bytes=0.0, evidence="ANALYZE"
        )
        made["width"] = string_width(width)
    distinct = float(found["n_distinct"] or -1)
    made["ndistinct"] = max(round(distinct if distinct > 0 else -distinct * rows), 1)
    if found["null_frac"]:
        made["null_frac"] = round(float(found["null_frac"]), 6)
    return made


def _share(row: Row, rows: int) -> float | None:
    """Rows that the index has, of those of the table; None where nobody has counted."""
    counted = row.get("reltuples")
    if counted is None or float(counted) < 0 or rows <= 0:
        return None
    return round(min(float(counted) / rows, 1.0), 6)
