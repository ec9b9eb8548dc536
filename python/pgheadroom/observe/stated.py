"""
What a live server knows of the values of an index's expressions and of its predicate.

    expression   type from the catalog; width, different values and NULLs from pg_stats
    predicate    rows of the index over rows of the table

How often they change no server counts: an expression as often as a column that it reads, a
predicate as often as half of two rows that are drawn apart differ in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgheadroom.profile.column_types import FORMS, base_of, numeric_bytes
from pgheadroom.profile.spelling import canonical_type
from pgheadroom.profile.stating import not_evaluated
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, Stated, Width
from pgheadroom.sources.recording import AnswerRow

_HEADER_BYTES = 4
SAID = (
    "the twin does not evaluate {texts}: their values are like those that the server has "
    "statistics of; how often they change is assumed"
)


def stated_of(
    row: AnswerRow,
    definition: AnswerRow | None,
    made: IndexProfile,
    entries: Sequence[ColumnProfile],
    statistics: Mapping[tuple[str, str, str], AnswerRow],
    *,
    rows: int,
) -> tuple[Stated, ...]:
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
    stated = []
    keys = (definition or {}).get("keys") or ()
    for text, key in zip(made.expressions, keys, strict=False):
        found = statistics.get((row["schema"], row["name"], key["name"]))
        if found is None or not_evaluated(text, entries) is None:
            continue
        stated.append(_values(text, str(key["type"]), found, rows))
    where = made.where
    share = share_of(row, rows)
    if where is None or share is None:
        return tuple(stated)
    if not_evaluated(where, entries, is_condition=True) is not None:
        changed = round(share * (1 - share), 6)
        stated.append(Stated(expression=where, true_frac=share, changed_frac=changed))
    return tuple(stated)


def _values(expression: str, spelled: str, found: AnswerRow, rows: int) -> Stated:
    canonical = canonical_type(spelled)
    if canonical is None or not FORMS[base_of(canonical)].btree:
        canonical = "text"
    # ANALYZE measures what an expression makes in memory, whose header is never the short one
    # (`compute_scalar_stats`, src/backend/commands/analyze.c, REL_18_STABLE).
    bytes_ = max(round(float(found["avg_width"])) - _HEADER_BYTES, 0)
    width = Width(min_bytes=bytes_, max_bytes=bytes_)
    distinct = float(found["n_distinct"] or -1)
    counted = max(round(distinct if distinct > 0 else -distinct * rows), 1)
    if base_of(canonical) == "numeric" and abs(bytes_ - numeric_bytes(counted)) > 1:
        canonical = "citext"  # of that length, and equal ones have an entry each as well
    return Stated(
        expression=expression,
        type=canonical,
        width=width if FORMS[base_of(canonical)].width else None,
        ndistinct=counted,
        null_frac=round(float(found["null_frac"] or 0.0), 6),
    )


def share_of(row: AnswerRow, rows: int) -> float | None:
    """Rows that the index has, of those of the table; None where nobody has counted."""
    counted = row.get("reltuples")
    if counted is None or float(counted) < 0 or rows <= 0:
        return None
    return round(min(float(counted) / rows, 1.0), 6)
