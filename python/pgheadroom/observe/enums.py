"""
Enums of a live table: labels by the catalogue, how often each stands by ANALYZE.

    DEFAULT 'todo'::job_status        rows that a run inserts have that label
    status = 'todo'::job_status       status = 'todo'
    status = ANY (ARRAY['a'::s, ...]) status IN ('a', ...)

A profile's enum has a name of its own on a server, so its predicates do not name the type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pgheadroom.profile.enums import LABELS_MAX
from pgheadroom.profile.spelling import is_name
from pgheadroom.profile.tables import ColumnProfile, Values
from pgheadroom.sources.recording import AnswerRow

_LITERAL = r"'(?>(?:[^']|'')*)'"
_LISTED = re.compile(
    rf"(?P<sign>=|<>) (?P<word>ANY|ALL) \(ARRAY\[(?P<list>{_LITERAL}(?:, {_LITERAL})*)\]\)"
)
_DIGITS = 6


def enum_column(name: str, row: AnswerRow, statistics: AnswerRow | None) -> ColumnProfile | None:
    """
    The profile's column of an enum; None of another type, and where a profile cannot have it.

    Args:
        name: In the profile.
        row: Its row of the query `columns`.
        statistics: Its row of `column_statistics`, if it may be seen.
    """
    labels = tuple(str(label) for label in row.get("labels") or ())
    if not labels or len(labels) > LABELS_MAX or not all(is_name(label) for label in labels):
        return None
    values = Values(
        kind="random",
        ndistinct=len(labels),
        shares=_shares(labels, statistics),
        new=row.get("label_default"),
    )
    return ColumnProfile(name=name, type="enum", labels=labels, values=values)


def _shares(labels: tuple[str, ...], statistics: AnswerRow | None) -> tuple[float, ...]:
    """The share of each label among values that are not NULL; empty where nothing is known."""
    found = statistics or {}
    fracs = dict(zip(found.get("labels") or (), found.get("label_fracs") or (), strict=False))
    # Of a few values in a large sample ANALYZE keeps all; what is missing is spread over the rest.
    total = 1 - float(found.get("null_frac") or 0.0)
    known = sum(float(frac) for frac in fracs.values())
    others = [label for label in labels if label not in fracs]
    if not fracs or total <= 0:
        return ()
    each = max(total - known, 0.0) / len(others) if others else 0.0
    shares = [float(fracs.get(label, each)) for label in labels]
    whole = sum(shares)
    rounded = [round(share / whole, _DIGITS) for share in shares]
    largest = rounded.index(max(rounded))
    rounded[largest] = round(rounded[largest] + 1 - sum(rounded), _DIGITS)
    return tuple(rounded)


def without_types(text: str, types: Iterable[str]) -> str | None:
    """
    An index's expression or predicate that does not name enums' types; None where it has to.

    Args:
        text: As the catalogue has it.
        types: Names of the enums, as the catalogue spells them.
    """
    names = sorted(types)
    if not names:
        return text
    named = rf"::(?:{'|'.join(map(re.escape, names))})(?![\w.])"
    # Whole literals one after the other, so that nothing inside of one is taken for a cast.
    bare = re.sub(rf"({_LITERAL})(?:{named}(?!\[))?", r"\1", text)

    def listed(match: re.Match[str]) -> str:
        words = {("=", "ANY"): "IN", ("<>", "ALL"): "NOT IN"}
        word = words.get((match["sign"], match["word"]))
        return match[0] if word is None else f"{word} ({match['list']})"

    bare = _LISTED.sub(listed, bare)
    return None if re.search(named, re.sub(_LITERAL, "''", bare)) else bare
