"""
Whether another type of a column takes a new heap, by PostgreSQL's casts.
"""

from __future__ import annotations

import re

_SAME = {
    "character varying": "varchar",
    "varchar": "varchar",
    "char": "bpchar",
    "character": "bpchar",
    "int": "int4",
    "integer": "int4",
    "serial": "int4",
    "bigint": "int8",
    "bigserial": "int8",
    "smallint": "int2",
    "decimal": "numeric",
    "real": "float4",
    "double precision": "float8",
    "float": "float8",
    "boolean": "bool",
    "bit varying": "varbit",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
    "time with time zone": "timetz",
}
# pg_cast.castmethod is 'b', or the type is a domain's base: the bytes on disk stay.
_RELABELLED = {
    ("varchar", "text"),
    ("text", "varchar"),
    ("citext", "text"),
    ("citext", "varchar"),
    ("text", "citext"),
    ("varchar", "citext"),
    ("cidr", "inet"),
    ("int4", "oid"),
    ("oid", "int4"),
    ("bit", "varbit"),
    ("varbit", "bit"),
    ("xml", "text"),
    ("xml", "varchar"),
}
# Types whose default operator classes are of one family (pg_opclass).
_FAMILIES = (frozenset({"text", "varchar"}), frozenset({"cidr", "inet"}))
OF_EXTENSIONS = (
    *("citext", "hstore", "ltree", "cube", "seg", "isbn", "geometry", "geography", "raster"),
    *("vector", "halfvec", "sparsevec"),
)
"""Types of extensions that many have; none is a domain. They may be in any schema."""
_SCHEMA = re.compile(rf"^[^.(]+\.(?=(?:{'|'.join(OF_EXTENSIONS)})\b)")
_PRECISE = frozenset({"timestamp", "timestamptz", "time", "timetz", "interval"})
_WITH_PARAMETERS = re.compile(
    r"^([^(]*?)\s*(?:\(([^)]*)\))?((?:\s+with(?:out)? time zone)?)(\[\])*$"
)


def spelled_type(spelled: str) -> tuple[str, tuple[int, ...] | None]:
    """
    A type's name in one spelling, and its parameters; None where it has none.

    An extension's type loses its schema: `format_type` has it where the search_path has not.
    """
    text = " ".join(spelled.lower().replace("pg_catalog.", "").replace('"', "").split())
    text = _SCHEMA.sub("", text)
    match = _WITH_PARAMETERS.match(text)
    if match is None:
        return text, None
    name = (match[1] + match[3]).strip()
    base = _SAME.get(name, name) + (match[4] or "")
    listed = [part.strip() for part in (match[2] or "").split(",") if part.strip()]
    if not all(part.lstrip("-").isdecimal() for part in listed):
        return text, None
    parameters = tuple(int(part) for part in listed) or None
    if base == "bpchar" and parameters is None and name != "bpchar":
        parameters = (1,)  # char is char(1)
    if base == "bit" and parameters is None:
        parameters = (1,)
    if base == "numeric" and parameters is not None and len(parameters) == 1:
        parameters = (parameters[0], 0)
    return base, parameters


def keeps_indexes(old: str, new: str) -> bool:
    """Whether indexes fit the relabelled type (`CheckIndexCompatible`, indexcmds.c)."""
    pair = {spelled_type(old)[0].removesuffix("[]"), spelled_type(new)[0].removesuffix("[]")}
    return len(pair) == 1 or any(pair <= family for family in _FAMILIES)


def is_rewritten(old: str, new: str) -> bool:
    """
    Whether a column's new type takes a new heap.

    A relabelling does not, nor a length coercion that cannot shorten: the planner leaves it out
    (`varchar_support`, `numeric_support`, `varbit_support`, `TemporalSimplify`), and
    `ATColumnChangeRequiresRewrite` finds the bare column.

    Args:
        old: As `format_type` spells it.
        new: As a statement spells it.
    """
    (before, had), (after, has) = spelled_type(old), spelled_type(new)
    if before != after and (before, after) not in _RELABELLED:
        return True
    if has is None or (has == had and before == after):
        return False
    if before in ("varchar", "varbit") and before == after:
        return had is None or has[0] < had[0]
    if before == after == "numeric":
        return had is None or has[1] != had[1] or has[0] < had[0]
    if before == after and before in _PRECISE:
        # Without a precision there are six digits; interval's fields are not followed.
        return has[0] < (6 if had is None else had[0])
    return True
