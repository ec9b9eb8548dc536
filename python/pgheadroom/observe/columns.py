"""
Columns of a live table as a profile can have them, with the bytes that they really take.

Types that profiles have keep their names. For every other one stands a type of the same stored
form, by typlen, typalign and attstorage of the catalogue (`standing_in.py`), which keeps its name
under `stands_for`. What that changes is said under `substituted`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pgheadroom.observe.elements import VALUES, KeysSeen, element_type, fitted
from pgheadroom.observe.enums import enum_column
from pgheadroom.observe.key_entry import key_entry
from pgheadroom.observe.naming import profile_name
from pgheadroom.observe.standing_in import fixed_form, own_storage, variable_form
from pgheadroom.observe.widths import WIDTH_MAX, ColumnWidth, catalog_type, string_width
from pgheadroom.profile.column_types import (
    FORMS,
    SHORT_HEADER_MAX,
    UNKNOWN_WIDTH_BYTES,
    Kind,
    base_of,
    is_toastable,
    payload_bytes,
    width_range,
)
from pgheadroom.profile.elements import mean_payload
from pgheadroom.profile.observed import ObservedColumn
from pgheadroom.profile.tables import (
    INTEGER_MAX,
    ColumnProfile,
    Compression,
    Values,
    ValuesKind,
    Width,
)
from pgheadroom.sources.recording import AnswerRow

_COMPRESSIONS: Mapping[str, Compression] = {"p": "pglz", "l": "lz4"}
"""Of pg_attribute.attcompression (`TOAST_PGLZ_COMPRESSION`, toast_compression.h)."""
_ROW_BYTES_MAX = 2000.0
"""With its line pointer, and what alignment may add; TOAST_TUPLE_THRESHOLD, 2,032, heaptoast.h."""
_REST_BYTES_MIN = 8  # fewer are within what is known of a row's length; arbitrary
_PLAYED_ALIKE = frozenset({"text", "varchar", "bpchar", "numeric"})
_NUMERIC_BYTES = {"constant": 3, "random": 7}  # what a profile's numeric values take


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSeen:
    """A column: what was observed, and what stands for it in the profile."""

    attnum: int
    name: str
    profile: ColumnProfile
    observed: ObservedColumn
    rest: ColumnProfile | None = None

    @property
    def label(self) -> str:
        """Its name in the profile."""
        return self.profile.name

    @property
    def is_substituted(self) -> bool:
        """Whether a column of another type stands for it."""
        return self.observed.substituted is not None

    @property
    def entries(self) -> tuple[ColumnProfile, ...]:
        """What the profile lists for it: one column, or two for a split key."""
        return (self.profile,) if self.rest is None else (self.profile, self.rest)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of `entries`."""
        return tuple(entry.name for entry in self.entries)


def sampled_widths(sample: Mapping[str, Any] | None) -> dict[int, tuple[ColumnWidth, float]]:
    """Width and share of NULLs by attribute number, from a row of the query `sample`."""
    if sample is None or not sample.get("rows"):
        return {}
    found = {}
    for attnum, count, total, squares in zip(
        sample["attnums"], sample["counts"], sample["sums"], sample["squares"], strict=True
    ):
        null_frac = 1 - float(count or 0) / float(sample["rows"])
        if not count:
            continue
        mean = float(total) / float(count)
        variance = max(float(squares) / float(count) - mean * mean, 0.0)
        width = ColumnWidth(
            mean_bytes=mean, deviation_bytes=math.sqrt(variance), evidence="sampled"
        )
        found[int(attnum)] = (width, null_frac)
    return found


def fills_pages(rows: int, *, pages: int, deleted: int) -> bool:
    """
    Whether rows are about as long as their share of the pages.

    The last page is as full as it is, and pages of a queue have room for rows that are gone: for
    all that come between two vacuums.

    Args:
        rows: Of the table.
        pages: Of the table.
        deleted: Rows, since counters were reset.
    """
    return pages > 1 and deleted <= rows


def page_widths(
    rows: Iterable[AnswerRow], *, row_bytes: float | None, are_full: bool = True
) -> dict[int, ColumnWidth]:
    """
    Widths where neither pg_stats nor a sample may be seen: the row's bytes, shared out.

    Args:
        rows: The table's columns.
        row_bytes: Bytes of the pages per row; None without rows or pages. Above what a row has
            before its values go to TOAST, the pages are not full.
        are_full: `fills_pages`; else rows are no longer than that.
    """
    columns = [row for row in rows if not row["is_dropped"]]
    variable = [row for row in columns if row["typlen"] < 0]
    if not variable:
        return {}
    fixed = sum(max(int(row["typlen"]), 0) for row in columns)
    each = float(UNKNOWN_WIDTH_BYTES)
    if row_bytes is not None:
        own = min(row_bytes, _ROW_BYTES_MAX) - 28 - fixed  # header and line pointer
        most = max(own / len(variable), 1.0)
        each = most if are_full else min(most, each)
    evidence = "assumed" if row_bytes is None else "estimated"
    return {
        row["attnum"]: ColumnWidth(mean_bytes=each, deviation_bytes=0, evidence=evidence)
        for row in variable
    }


def make_column(
    row: AnswerRow,
    *,
    width: ColumnWidth | None,
    null_frac: tuple[float, str],
    statistics: AnswerRow | None,
    rows: int,
    taken: set[str],
    is_key: bool,
    indexed: bool,
    generated: tuple[str, tuple[str, ...]] | None = None,
    keys: KeysSeen | None = None,
) -> ColumnSeen:
    """
    A column of the profile.

    Args:
        row: Its row of the query `columns`.
        width: Stored bytes, for types of variable length.
        null_frac: Share of NULLs and its evidence.
        statistics: Its row of `column_statistics`, if it may be seen.
        rows: Rows of the table.
        taken: Names that other columns have in the profile.
        is_key: The profile finds rows by it.
        indexed: Some index has it.
        generated: `stored` or `virtual`, and the columns that its expression reads.
        keys: Of its values in a GIN that the profile has as what it is.
    """
    label = profile_name(str(row["name"]), taken)
    rest = key_order = substituted = None
    frac = round(min(null_frac[0], 1.0), 6)
    of_elements = None if keys is None or is_key else _of_elements(row, label, width, keys, rows)
    if is_key and (own := key_entry(label, row, width, statistics, rows=rows)) is not None:
        made, key_order = own
    elif is_key:
        made, rest, substituted = _integer_key(row, width, label, taken, rows)
    elif of_elements is not None:
        made, rest_width, substituted = of_elements
        made = replace(made, null_frac=frac)
        rest = _rest_of_elements(rest_width, label, taken, rows, frac)
    else:
        made, substituted = _stand_in(row, label, width, statistics, rows, indexed=indexed)
        made = replace(made, null_frac=frac)
        if substituted is not None:
            made = _named(made, row)
    compression = _COMPRESSIONS.get(row.get("compression") or "")
    made = own_storage(_compressed(made, compression), str(row["storage"]))
    if rest is not None:
        rest = own_storage(_compressed(rest, compression), str(row["storage"]))
    variable = width if int(row["typlen"]) < 0 else None
    observed = ObservedColumn(
        name=str(row["name"]),
        type=row["type"],
        storage=row["storage"],
        compression=compression,
        # Domains as they are declared, and what says how values of any type lie in a row.
        declared=row.get("declared") or row["type"],
        typlen=int(row["typlen"]),
        typalign=row["typalign"],
        is_user_type=row["is_user_type"],
        null_frac=round(null_frac[0], 6),
        null_frac_evidence=null_frac[1],
        avg_width=None if statistics is None else statistics["avg_width"],
        n_distinct=None if statistics is None else statistics["n_distinct"],
        correlation=None if statistics is None else statistics["correlation"],
        stored_bytes=None if variable is None else round(variable.mean_bytes, 2),
        stored_bytes_deviation=None if variable is None else round(variable.deviation_bytes, 2),
        stored_bytes_evidence=None if variable is None else variable.evidence,
        substituted=substituted,
        key_order=key_order,
        elements=None if of_elements is None or keys is None else keys.evidence,
        generated=None if generated is None else generated[0],
        generated_from=None if generated is None else generated[1],
    )
    return ColumnSeen(
        attnum=row["attnum"], name=observed.name, profile=made, observed=observed, rest=rest
    )


def _rest_of_elements(
    width: Width | None, label: str, taken: set[str], rows: int, null_frac: float
) -> ColumnProfile | None:
    """A text for the bytes that a value is longer than its elements."""
    if width is None:
        return None
    name, texts = profile_name(f"{label}__rest", taken), _values("random", None, rows, "text")
    return ColumnProfile(name=name, type="text", values=texts, width=width, null_frac=null_frac)


def _named(made: ColumnProfile, row: AnswerRow) -> ColumnProfile:
    """
    The column with the name of the type that it stands for, as `layout` names it.

    Not of strings, which are texts of their own, nor of numerics, equal ones of which never share
    an entry, as their index says (`indexes.py`).
    """
    if base_of(catalog_type(row) or "") in _PLAYED_ALIKE:
        return made
    name = str(row.get("declared") or row["type"]).removeprefix("public.")
    return replace(made, stands_for=name)


def _compressed(column: ColumnProfile, own: Compression | None) -> ColumnProfile:
    """With the column's own compression, where what stands for it can have one."""
    if own is None or not is_toastable(column.type, column.labels):
        return column
    return replace(column, compression=own)


def _of_elements(
    row: AnswerRow, label: str, width: ColumnWidth | None, keys: KeysSeen, rows: int
) -> tuple[ColumnProfile, Width | None, str | None] | None:
    """
    A column of several elements, the width of a text for the bytes that it is longer, what differs.

    None of a type that no type with elements stands for.
    """
    canonical = catalog_type(row)
    base = element_type(canonical, keys)
    if base is None:
        return None
    payload = None if width is None else string_width(width)
    mean = None if payload is None else (payload.min_bytes + payload.max_bytes) / 2
    elements = fitted(keys, base, rows=rows, payload_bytes=mean)
    values = Values(kind="random", ndistinct=VALUES)
    made = ColumnProfile(name=label, type=base, values=values, elements=elements)
    substituted = None if base == canonical else f"{base} with as many elements"
    left = 0 if mean is None else round(mean - mean_payload(elements, base)) - 1
    if left < _REST_BYTES_MIN:
        return made, None, substituted
    said = f"{base} with as many elements, and a text of {left} bytes"
    return made, Width(min_bytes=left, max_bytes=left), said


def distinct_values(statistics: AnswerRow | None, rows: int) -> int | None:
    """How many different values a column has, by its row of pg_stats; None: not known."""
    if statistics is None or not statistics["n_distinct"]:
        return None
    found = float(statistics["n_distinct"])
    return max(round(found if found > 0 else -found * rows), 1)


def _stand_in(
    row: AnswerRow,
    label: str,
    width: ColumnWidth | None,
    statistics: AnswerRow | None,
    rows: int,
    *,
    indexed: bool,
) -> tuple[ColumnProfile, str | None]:
    """The column that stands for one that is no key, and what is another about it."""
    typlen, distinct = int(row["typlen"]), distinct_values(statistics, rows)
    canonical = catalog_type(row)
    base = base_of(canonical or "")
    constant = distinct == 1 or (distinct is None and not indexed)
    kind: ValuesKind = "constant" if constant else "random"
    stored = width.mean_bytes if width is not None else float(UNKNOWN_WIDTH_BYTES)
    if typlen < 0 and width is None:
        width = ColumnWidth(mean_bytes=stored, deviation_bytes=0, evidence="assumed")

    def column(of_type: str, values: Values, payload: Width | None = None) -> ColumnProfile:
        return ColumnProfile(name=label, type=of_type, values=values, width=payload)

    if (own := enum_column(label, row, statistics)) is not None:
        return own, None
    if base == "numeric":
        if abs(stored - _NUMERIC_BYTES[kind]) <= 1:
            return column("numeric", _values(kind, distinct, rows, "numeric")), None
        canonical = None
    if base == "bpchar" and "(" not in (canonical or ""):
        canonical = None
    if canonical is not None and not _stands(canonical, stored, indexed=indexed):
        canonical = None
    if canonical is not None and FORMS[base].kind is Kind.WRAPPED and FORMS[base].width:
        assert width is not None, "variable lengths have a width"
        payload, (least, most) = string_width(width), width_range(canonical, WIDTH_MAX)
        limits = Width(
            min_bytes=min(max(payload.min_bytes, least), most),
            max_bytes=min(max(payload.max_bytes, least), most),
        )
        return column(canonical, _values("random", distinct, rows, base), limits), None
    # Strings are never constant in a profile: equal ones would shrink WAL records.
    texts = _values("random", distinct, rows, "text")
    if canonical is not None and base in ("text", "varchar"):
        assert width is not None, "variable lengths have a width"
        payload = string_width(width)
        limit = canonical.partition("(")[2].rstrip(")")
        fits = not limit or payload.max_bytes <= int(limit)
        return column(canonical if fits else "text", texts, payload), None
    if canonical is not None:
        return column(canonical, _values(kind, distinct, rows, base)), None
    fixed = fixed_form(typlen, str(row["typalign"]), indexed=indexed)
    if fixed is not None:
        of_hashes = FORMS[fixed].kind is Kind.WRAPPED
        values = texts if of_hashes else _values(kind, distinct, rows, fixed)
        return column(fixed, values), f"{fixed}, of the same length"
    of_type, payload, substituted = _of_its_form(row, width)
    return column(of_type, texts, payload), substituted


def _of_its_form(row: AnswerRow, width: ColumnWidth | None) -> tuple[str, Width, str]:
    """A type with a width for one that profiles do not have, and what is another about it."""
    typlen, align = int(row["typlen"]), str(row["typalign"])
    if typlen > 0:
        width = ColumnWidth(mean_bytes=typlen, deviation_bytes=0, evidence="measured")
    assert width is not None, "variable lengths have a width"
    payload = string_width(width)
    form = None if typlen > 0 else variable_form(payload, align)
    if form is not None:
        return form.type, form.width, f"{form.type} of the same length"
    is_long = align == "d" and payload.max_bytes >= SHORT_HEADER_MAX
    loses = is_long if typlen < 0 else align != "c"
    return "text", payload, "text of the same length" + ", without its alignment" * loses


def _stands(canonical: str, stored_bytes: float, *, indexed: bool) -> bool:
    """Whether the type stands for itself, with values like those that a profile makes."""
    form, payload = FORMS[base_of(canonical)], payload_bytes(canonical)
    if indexed and not form.btree:
        return False  # another method's index stands as a B-tree
    # Addresses of IPv6 are longer.
    return form.kind is not Kind.COUNTED or payload is None or abs(stored_bytes - payload - 1) <= 1


def _values(kind: ValuesKind, distinct: int | None, rows: int, base: str) -> Values:
    if kind == "constant":
        return Values(kind="constant")
    most = INTEGER_MAX.get(base, 2**62)
    return Values(kind="random", ndistinct=max(min(distinct or max(rows, 1), most), 1))


def _key_type(row: AnswerRow, width: ColumnWidth | None, rows: int) -> str:
    """An integer that is not longer than the key's own values, if it can count the rows."""
    canonical = catalog_type(row)
    if canonical in INTEGER_MAX and rows <= INTEGER_MAX[canonical]:
        return canonical
    stored = int(row["typlen"])
    if stored < 0:
        stored = round(width.mean_bytes) if width is not None else UNKNOWN_WIDTH_BYTES
    for name, length in (("int8", 8), ("int4", 4), ("int2", 2)):
        if stored >= length and rows <= INTEGER_MAX[name]:
            return name
    return next(name for name in ("int4", "int8") if rows <= INTEGER_MAX[name])


def _integer_key(
    row: AnswerRow, width: ColumnWidth | None, label: str, taken: set[str], rows: int
) -> tuple[ColumnProfile, ColumnProfile | None, str | None]:
    """An integer for a key, a second column for the bytes that it is longer, and what differs."""
    key_type = _key_type(row, width, rows)
    key = ColumnProfile(name=label, type=key_type, values=Values(kind="serial"))
    if catalog_type(row) == key_type:
        return key, None, None
    stored = float(row["typlen"])
    if stored < 0:
        stored = width.mean_bytes if width is not None else float(UNKNOWN_WIDTH_BYTES)
    left = stored - {"int8": 8, "int4": 4, "int2": 2}[key_type]
    substituted = f"{key_type}, for a profile's key is an ascending integer"
    if left < 1:
        return key, None, substituted
    substituted += f"; and a text of {left:.0f} bytes, which is a part of the key"
    deviation = width.deviation_bytes if width is not None and row["typlen"] < 0 else 0.0
    part = ColumnWidth(mean_bytes=left, deviation_bytes=deviation, evidence="estimated")
    rest = ColumnProfile(
        name=profile_name(f"{label}__rest", taken), type="text", width=string_width(part)
    )
    return key, rest, substituted
