"""
Indexes of a live table: each column whose change ends HOT, and what stands for it in a profile.

HOT is lost when an update changes a column that an index holds (INCLUDE too) or that its
expressions or predicate name; from 16 on summarizing indexes (BRIN) do not count
(`RelationGetIndexAttrBitmap`, src/backend/utils/cache/relcache.c).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pgheadroom import quoting
from pgheadroom.observe.columns import ColumnSeen
from pgheadroom.observe.enums import without_types
from pgheadroom.observe.gins import Gins, gin_profile
from pgheadroom.observe.index_row import IndexRow
from pgheadroom.observe.naming import profile_name
from pgheadroom.profile.column_types import EXTENSIONS, PATTERN_OPS, base_of, has_operators
from pgheadroom.profile.observed import ObservedIndex
from pgheadroom.profile.spelling import canonical_type
from pgheadroom.profile.tables import INTEGER_MAX, IndexProfile, Values
from pgheadroom.profile.unpriced import PRICED
from pgheadroom.sources.recording import AnswerRow

T = TypeVar("T")

_INTEGERS = {"smallint": "int2", "integer": "int4", "bigint": "int8"}
_FAR_MORE = 10  # times as many different values as the column that is the key else; arbitrary
_DEDUPLICATE = {"on": True, "true": True, "off": False, "false": False}


def choose_key(
    indexes: Sequence[IndexRow],
    columns: Mapping[int, AnswerRow],
    rows: int,
    distinct: Mapping[int, float],
) -> tuple[IndexRow, int] | None:
    """
    The unique index by which the profile finds rows, and the column of it that is the key.

    Of several columns it is an integer that can count the rows, else the first, unless another
    one has far more different values: of (tenant, id) the id, whatever its type.

    Args:
        indexes: In the order of the query, the primary key first.
        columns: Rows of the query `columns` by attribute number.
        rows: Rows of the table; the key counts them, so it should hold that many.
        distinct: Different values by attribute number, where statistics have them.
    """
    for index in indexes:
        row = index.row
        whole = row["is_unique"] and row["is_valid"] and row["is_live"] and index.is_plain
        if not whole or row["method"] != "btree" or not all(n in columns for n in index.keys):
            continue
        chosen = next(
            (
                number
                for number in index.keys
                if INTEGER_MAX.get(_INTEGERS.get(str(columns[number]["type"]), ""), 0) >= rows
            ),
            index.keys[0],
        )
        best = max(index.keys, key=lambda number: distinct.get(number, 0.0))
        if distinct.get(best, 0.0) > _FAR_MORE * distinct.get(chosen, math.inf):
            chosen = best
        return index, chosen
    return None


def observed_index(index: IndexRow, names: Mapping[int, str], major: int) -> ObservedIndex:
    """What the catalogs have of it."""
    row, definition = index.row, index.definition or {}
    texts = definition.get("key_texts")
    return ObservedIndex(
        schema=row["schema"],
        name=row["name"],
        oid=row["oid"],
        method=row["method"],
        is_unique=row["is_unique"],
        is_primary=row["is_primary"],
        is_summarizing=row["is_summarizing"],
        columns=tuple(names.get(number, "(expression)") for number in index.keys),
        reloptions=row["reloptions"] or {},
        ends_hot=index.blocks_hot(major),
        ends_hot_by_columns=tuple(names[number] for number in index.depends if number in names),
        include=tuple(names[number] for number in index.included) or None,
        is_exclusion=row["is_exclusion"] or None,
        is_clustered=row["is_clustered"] or None,
        is_replica_identity=row["is_replica_identity"] or None,
        is_deferrable=(row["is_unique"] and row.get("is_deferrable")) or None,
        is_nullable=(row["is_unique"] and row.get("is_nullable")) or None,
        parent=quoting.called(row["parent_schema"], row["parent_name"])
        if row.get("parent_name")
        else None,
        is_valid=None if row["is_valid"] else False,
        is_ready=None if row["is_ready"] else False,
        is_live=None if row["is_live"] else False,
        expressions=_shown(row["has_expressions"], None if texts is None else tuple(texts)),
        predicate=_shown(row["has_predicate"], definition.get("predicate")),
    )


def _shown(is_there: bool, found: T | None) -> T | str | None:
    """A text of the definition, which the role may not see; None where there is none."""
    if not is_there:
        return None
    return "hidden" if found is None else found


def profile_index(
    index: IndexRow,
    columns: Mapping[int, ColumnSeen],
    *,
    is_key: bool,
    is_empty: bool,
    taken: set[str],
    label: str,
    gins: Gins,
    key: ColumnSeen | None = None,
    share: float | None = None,
) -> tuple[IndexProfile | None, str | None]:
    """
    What stands for an index in the profile, and what is different about it.

    Args:
        index: A live index.
        columns: The table's columns by attribute number.
        is_key: The profile finds rows by it.
        is_empty: It has no page but the first, so it never had an entry.
        taken: Names of tables and indexes that the profile has already.
        label: Its name, with the schema where that is not public.
        gins: Which GINs of the table the profile has as what they are.
        key: The column by which the profile finds rows.
        share: Of the table's rows, those that the index has; None where nobody has counted.
    """
    method = str(index.row["method"])
    why = None
    if index.row["is_unique"] and not is_key:
        why = "not unique in the profile, where only the key is"
    cannot_stand = _calls_what_is_not_there(index, columns) or any(
        _is_another(columns[n]) for n in index.depends if n in columns
    )
    gin = _gin(index, columns, gins, cannot_stand=cannot_stand)
    if gin is None and not _is_played(index, columns, cannot_stand=cannot_stand):
        why = f"{method} stands as btree: which updates it ends HOT for is right, its pages are not"
        method = ""
    if gin is not None:
        made, differs = gin, None
    else:
        made, differs = _listed(index, columns, method, is_key=is_key, cannot_stand=cannot_stand)
    if not made.columns and not made.expressions:
        return None, "it has no column that a profile can have"
    types = {entry.name: entry.type for c in columns.values() for entry in c.entries}
    if method == "brin" and not all(has_operators(types[n], "brin") for n in made.columns):
        return None, "BRIN is not played over a type of its columns"
    made = replace(made, name=profile_name(label, taken))
    if gin is not None:
        pass
    elif method == "brin":
        made = replace(made, method="brin")
    elif method == "hash":
        made = _with_options(replace(made, method="hash"), index.row)
    else:
        made = _with_options(replace(made, unique=is_key), index.row)
        made = _of_numerics(made, [columns[n] for n in index.keys if n in columns])
    if method == "btree" and not is_key and not index.row["has_expressions"]:
        made = _with_orders(made, index, columns)
    if index.row["has_predicate"]:
        where, differs_too = _where(
            index, columns, key, share, cannot_stand=cannot_stand, is_empty=is_empty
        )
        made, differs = replace(made, where=where), differs_too or differs
    return made, differs or why


def _gin(
    index: IndexRow, columns: Mapping[int, ColumnSeen], gins: Gins, *, cannot_stand: bool
) -> IndexProfile | None:
    """A GIN as what it is; None of another method, and where not all of it is known."""
    if int(index.row["oid"]) not in gins.played:
        return None
    listed = (index.definition or {}).get("key_texts") or ()
    texts = {}
    for place, number in enumerate(index.keys, 1):
        if number == 0 and not cannot_stand and place <= len(listed):
            bare = without_types(str(listed[place - 1]), _enums(columns))
            if bare is not None:
                texts[place] = bare
    labels = {number: column.label for number, column in columns.items()}
    entries = [entry for column in columns.values() for entry in column.entries]
    return gin_profile(index, labels, gins, texts, entries)


def _is_played(index: IndexRow, columns: Mapping[int, ColumnSeen], *, cannot_stand: bool) -> bool:
    """Whether the profile has it as what it is; a hash index where profiles hash its key alike."""
    method = str(index.row["method"])
    if method != "hash":
        return method in PRICED
    if index.row["has_expressions"]:
        return not cannot_stand and (index.definition or {}).get("key_texts") is not None
    entries = [entry for n in index.keys if n in columns for entry in columns[n].entries]
    return len(entries) == 1 and has_operators(entries[0].type, method)


def _enums(columns: Mapping[int, ColumnSeen]) -> set[str]:
    """How the catalogue spells the types of the table's enums."""
    return {column.observed.type for column in columns.values() if column.profile.labels}


def _calls_what_is_not_there(index: IndexRow, columns: Mapping[int, ColumnSeen]) -> bool:
    """Whether it calls functions that a server which plays the profile has not."""
    calls = set((index.definition or {}).get("calls") or ())
    bases = {entry.base_type for column in columns.values() for entry in column.entries}
    return not calls <= {EXTENSIONS[base] for base in bases if base in EXTENSIONS}


def _is_another(column: ColumnSeen) -> bool:
    """Whether expressions cannot stand over it as they are: of another type, or another name."""
    return column.is_substituted or column.label != column.name


def _of_numerics(made: IndexProfile, keys: Sequence[ColumnSeen]) -> IndexProfile:
    """Without shared entries where a text stands for a numeric, equal ones of which share none."""
    numerics = [
        key for key in keys if base_of(canonical_type(key.observed.type) or "") == "numeric"
    ]
    if not any(key.is_substituted for key in numerics):
        return made
    return replace(made, deduplicate_items=False)


def _listed(
    index: IndexRow,
    columns: Mapping[int, ColumnSeen],
    method: str,
    *,
    is_key: bool,
    cannot_stand: bool,
) -> tuple[IndexProfile, str | None]:
    """
    Columns or expressions, and included columns; without a name as yet.

    `method` is empty of what is not played: then all columns that it depends on stand for it.
    """

    def labels(numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(label for n in numbers if n in columns for label in columns[n].labels)[:32]

    if not method:
        return IndexProfile(name="", columns=labels(index.depends)), None
    made = IndexProfile(name="", include=labels(index.included))
    if not index.row["has_expressions"]:
        keys = list(index.keys)
        if is_key:
            # The integer first: a profile's key is the first column of its first unique index.
            keys.sort(
                key=lambda n: n not in columns or columns[n].profile.values != Values(kind="serial")
            )
        return replace(made, columns=labels(keys)), None
    texts = (index.definition or {}).get("key_texts")
    if texts is not None and not cannot_stand and method != "brin":
        bare = [without_types(str(text), _enums(columns)) for text in texts]
        if None not in bare:
            return replace(made, expressions=tuple(filter(None, bare))), None
    why = "the columns of its expressions stand for them: HOT is right, its entries are not"
    return replace(made, columns=labels(index.depends)), why


def _where(
    index: IndexRow,
    columns: Mapping[int, ColumnSeen],
    key: ColumnSeen | None,
    share: float | None,
    *,
    cannot_stand: bool,
    is_empty: bool,
) -> tuple[str, str | None]:
    """
    The predicate, or one over the same columns where its text cannot stand.

    That one takes no row into an index that never had any: of a queue's partial indexes for
    policies that nobody uses. Else it takes as many as are in the index, whichever these are: by a
    hash of the key. Where that is not known it takes all.
    """
    predicate = (index.definition or {}).get("predicate")
    if predicate is not None and not cannot_stand:
        bare = without_types(str(predicate), _enums(columns))
        if bare is not None:
            return bare, None
    inside = {n for n in (*index.keys, *index.included) if n > 0}
    named = [n for n in index.depends if n not in inside] or list(index.depends)
    names = [quoting.shown_identifier(columns[n].label) for n in named if n in columns]
    where = " AND ".join(f"{name} IS NOT NULL" for name in names)
    if is_empty and names:
        never = f"{names[0]} IS NULL AND {where}"
        return never, "its predicate stands as one that no row fulfils, for it never had an entry"
    hashed = None if key is None or share is None or share >= 1 else _hashed(key)
    if hashed is not None and share is not None and names:
        # Of any type; the server keeps a predicate as it is written for what HOT has to look at.
        read = " AND ".join(f"({name} IS NULL) IS NOT NULL" for name in names)
        return f"({hashed} & {_PARTS - 1}) < {math.ceil(share * _PARTS)} AND {read}", (
            "its predicate stands as one over its columns that as many rows fulfil: HOT and its "
            "size are right, which rows it has is not"
        )
    return where, "its predicate stands as IS NOT NULL of its columns: HOT is right, its size not"


_PARTS = 2**20
"""Parts of the rows that hashes of the key tell apart; arbitrary, a power of two."""


def _hashed(key: ColumnSeen) -> str | None:
    """SQL of a hash of the key; None of other types, whose text may change with a setting."""
    if base_of(key.profile.type) in ("date", "timestamp", "timestamptz"):
        return f"hash_record_extended(ROW({quoting.shown_identifier(key.label)}), 0)"
    if base_of(key.profile.type) not in ("int2", "int4", "int8", "numeric", "uuid", *_STRINGS):
        return None
    return f"hashtextextended(CAST({quoting.shown_identifier(key.label)} AS text), 0)"


_STRINGS = ("text", "varchar")


_ORDERS = {0: "", 1: "DESC NULLS LAST", 2: "NULLS FIRST", 3: "DESC"}
"""By `indoption`: `INDOPTION_DESC` is 1, `INDOPTION_NULLS_FIRST` 2 (pg_index.h)."""


def _with_orders(
    made: IndexProfile, index: IndexRow, columns: Mapping[int, ColumnSeen]
) -> IndexProfile:
    """DESC, NULLS and operator classes of its key columns, where each is one in the profile."""
    keys = [columns[n] for n in index.keys if n in columns]
    if len(keys) < len(index.keys) or any(len(column.labels) > 1 for column in keys):
        return made
    order = tuple(_ORDERS.get(int(option) & 3, "") for option in index.row.get("options") or ())
    classes = tuple(
        str(name) if name == PATTERN_OPS.get(column.profile.base_type) else ""
        for column, name in zip(keys, index.row.get("opclasses") or (), strict=False)
    )
    return replace(made, order=order if any(order) else (), opclass=classes if any(classes) else ())


def _with_options(made: IndexProfile, row: AnswerRow) -> IndexProfile:
    """With the storage parameters of a B-tree that a profile has fields for."""
    options = row["reloptions"] or {}
    if row["method"] not in ("btree", "hash"):
        return made
    spelled = str(options.get("deduplicate_items")).lower()
    return replace(
        made,
        fillfactor=int(options["fillfactor"]) if "fillfactor" in options else None,
        deduplicate_items=_DEDUPLICATE.get(spelled, True)
        if "deduplicate_items" in options
        else None,
    )
