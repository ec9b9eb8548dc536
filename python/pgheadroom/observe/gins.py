"""
GIN indexes of a live table that a profile has as what they are, and the columns they are over.

One is played where each of its keys is known: elements of which a sample was counted
(`elements.py`), or trigrams of strings that the profile has as such. A column whose values have
elements stands in no other index, so where a B-tree, or what stands as one, is over it too, all
stay as they were: the GIN a B-tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pgheadroom.observe.elements import VALUES, KeysSeen, element_type, fitted
from pgheadroom.observe.index_row import IndexRow
from pgheadroom.observe.widths import catalog_type
from pgheadroom.profile.column_types import base_of
from pgheadroom.profile.spelling import canonical_type
from pgheadroom.profile.stating import not_evaluated
from pgheadroom.profile.tables import ColumnProfile, IndexProfile, Stated
from pgheadroom.sources.recording import AnswerRow

_TRIGRAMS = "gin_trgm_ops"
SAID = (
    "the twin does not evaluate {texts}: keys are like those of a sample of rows; how often they "
    "change is assumed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gins:
    """
    What is known of a table's GINs.

    Attributes:
        played: OIDs of those that the profile has as what they are.
        columns: Keys of a column that such an index is over, by attribute number.
        expressions: Keys of an expression, by the index and its place, from 1.
    """

    played: frozenset[int] = frozenset()
    columns: Mapping[int, KeysSeen]
    expressions: Mapping[tuple[int, int], KeysSeen]


def find_gins(
    indexes: Iterable[IndexRow],
    live: Mapping[int, AnswerRow],
    seen: Mapping[tuple[int, int], KeysSeen],
) -> Gins:
    """
    Which GINs of a table are played.

    Args:
        indexes: All of the table.
        live: Its columns, rows of the query `columns`, by attribute number.
        seen: Keys that were counted, by the index and the place in it, from 1.
    """
    listed = [index for index in indexes if index.row["is_live"]]
    counted: dict[tuple[int, str], KeysSeen] = {}
    for index in listed:
        for place, number in enumerate(index.keys, 1):
            keys = seen.get((int(index.row["oid"]), place))
            if number > 0 and keys is not None:
                counted.setdefault((number, keys.opclass), keys)
    found = {int(i.row["oid"]): i for i in listed if _keys_known(i, live, seen, counted)}
    while True:
        columns: dict[int, KeysSeen] = {}
        for index in found.values():
            for (number, _), keys in counted.items():
                if number in index.keys and not _is_trigrams(index, number):
                    columns.setdefault(number, keys)
        others = [index for index in listed if int(index.row["oid"]) not in found]
        held = {number for index in others for number in _stands_over(index)}
        # Of a string's trigrams the column is as it was.
        torn = {
            oid
            for oid, index in found.items()
            if any(n in held and n in columns for n in index.keys)
        }
        if not torn:
            return Gins(
                played=frozenset(found),
                columns=columns,
                expressions={key: keys for key, keys in seen.items() if key[0] in found},
            )
        found = {oid: index for oid, index in found.items() if oid not in torn}


def _keys_known(
    index: IndexRow,
    live: Mapping[int, AnswerRow],
    seen: Mapping[tuple[int, int], KeysSeen],
    counted: Mapping[tuple[int, str], KeysSeen],
) -> bool:
    if index.row["method"] != "gin":
        return False
    texts = (index.definition or {}).get("key_texts")
    for place, number in enumerate(index.keys, 1):
        if number > 0:
            if _is_trigrams(index, number):
                if base_of(_canonical(live, number) or "") not in ("text", "varchar"):
                    return False
            elif not any(
                number == column and element_type(_canonical(live, column), keys) is not None
                for (column, _), keys in counted.items()
            ):
                return False
        elif texts is None or (
            _opclass(index, place) != _TRIGRAMS and (int(index.row["oid"]), place) not in seen
        ):
            return False
    return True


def _canonical(live: Mapping[int, AnswerRow], number: int) -> str | None:
    return catalog_type(live[number]) if number in live else None


def _opclass(index: IndexRow, place: int) -> str:
    names = index.row.get("opclasses") or ()
    return str(names[place - 1]) if place <= len(names) else ""


def _is_trigrams(index: IndexRow, number: int) -> bool:
    return _opclass(index, index.keys.index(number) + 1) == _TRIGRAMS


def _stands_over(index: IndexRow) -> tuple[int, ...]:
    """Columns that another index has in the profile; a GIN stands as a B-tree over all it reads."""
    if index.row["method"] in ("btree", "brin", "hash"):
        return tuple(n for n in (*index.keys, *index.included) if n > 0)
    return index.depends


def gin_profile(
    index: IndexRow,
    labels: Mapping[int, str],
    gins: Gins,
    texts: Mapping[int, str],
    entries: Sequence[ColumnProfile],
) -> IndexProfile | None:
    """
    A GIN as what it is, without a name as yet; None where it has a key that a profile lacks.

    Args:
        index: One that is played.
        labels: Names in the profile of the table's columns, by attribute number.
        gins: Of its table.
        texts: Of its expressions, as a profile has them, by place from 1.
        entries: The profile's columns of its table.
    """
    columns: list[tuple[str, str]] = []
    expressions: list[tuple[str, str]] = []
    for place, number in enumerate(index.keys, 1):
        opclass = _opclass(index, place)
        keys = gins.expressions.get((int(index.row["oid"]), place))
        if opclass == "gin_hstore_ops" or (keys is not None and keys.opclass == "gin_hstore_ops"):
            opclass = ""  # as jsonb
        if number > 0 and number in labels:
            columns.append((labels[number], opclass))
        elif place in texts and (keys is not None or not_evaluated(texts[place], entries) is None):
            expressions.append((texts[place], opclass))
        else:
            return None
    classes = tuple(opclass for _, opclass in (*columns, *expressions))
    options = index.row["reloptions"] or {}
    fastupdate = str(options["fastupdate"]).lower() if "fastupdate" in options else None
    limit = options.get("gin_pending_list_limit")
    return IndexProfile(
        name="",
        method="gin",
        columns=tuple(name for name, _ in columns),
        expressions=tuple(text for text, _ in expressions),
        opclass=classes if any(classes) else (),
        fastupdate=None if fastupdate is None else fastupdate in ("on", "true", "yes", "1"),
        gin_pending_list_limit=None if limit is None else int(limit),
    )


def stated_keys(
    index: IndexRow, made: IndexProfile, gins: Gins, *, rows: int
) -> tuple[Stated, ...]:
    """What is known of the keys of a played GIN's expressions."""
    found = []
    places = [place for place, number in enumerate(index.keys, 1) if number == 0]
    types = (index.definition or {}).get("keys") or ()
    for text, place in zip(made.expressions, places, strict=True):
        keys = gins.expressions.get((int(index.row["oid"]), place))
        if keys is None:
            continue
        # A GIN's column over an array is of its elements' type.
        spelled = f"{types[place - 1]['type']}[]" if place <= len(types) else ""
        base = element_type(canonical_type(spelled), keys)
        assert base is not None, "it is played"
        filled = round(rows * (1 - keys.null_frac))
        elements = fitted(keys, base, rows=filled, payload_bytes=None)
        stated = Stated(expression=text, type=base, ndistinct=VALUES, elements=elements)
        found.append(replace(stated, null_frac=round(keys.null_frac, 6)))
    return tuple(found)
