"""
Expressions and predicates that the twin cannot evaluate: what stands for their values.

    stated in the file       width, different values, how often they change
    not stated               anything: runs go from the least to the most that it may be

Which columns they read, and so which updates they keep from being HOT, PostgreSQL's own grammar
says; that does not depend on their values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pgheadroom import _core
from pgheadroom.errors import InputError
from pgheadroom.forms import FieldError, fail
from pgheadroom.profile.column_types import FORMS, assumed_width, base_of
from pgheadroom.profile.elements import completed_elements, payload_range
from pgheadroom.profile.tables import (
    STRING_BYTES_MAX,
    ColumnProfile,
    IndexProfile,
    Stated,
    TableProfile,
    Width,
)

_MANY = 2**60
UNIQUE_TYPES = frozenset({"int8", "text", "varchar", "uuid", "numeric"})
"""Of what a unique index over stated values may be."""
EVALUATED = "evaluated by "
"""How what a server found begins, under `assumed`."""
ASSUMED_BYTES = 16
"""Of a value of which nothing is known: digits; runs go from 4 of them to 40."""


def with_stated(table: TableProfile, path: str) -> TableProfile:
    """
    A table whose indexes say what stands for each expression that the twin cannot evaluate.

    Args:
        table: With its columns.
        path: Its path, for messages.

    Raises:
        FieldError: Something is stated that does not fit.
    """
    indexes = tuple(
        _index(table, index, f"{path}.indexes[{n}]") for n, index in enumerate(table.indexes)
    )
    return replace(table, indexes=indexes)


def not_evaluated(
    expression: str, columns: Sequence[ColumnProfile], *, is_condition: bool = False
) -> str | None:
    """
    Why the twin cannot evaluate an expression, or a WHERE, over these columns; None where it can.

    Raises:
        InputError: No server takes it.
    """
    listed = [(column.name, column.type, list(column.labels)) for column in columns]
    return _core.not_evaluated(expression, listed, is_condition=is_condition)


def check_taken(expression: str, table: TableProfile, path: str, *, is_condition: bool) -> None:
    """
    Refuse what no server would take: a label that no enum has, a function that is not immutable.

    An index that was observed is there, so nothing is asked of its functions. What neither the twin
    nor the list of PostgreSQL's functions knows is PostgreSQL's to judge, when it is played.

    Raises:
        FieldError: Names the field to change.
    """
    try:
        not_evaluated(expression, table.columns, is_condition=is_condition)
    except InputError as error:
        fail(path, expression, f"an expression that PostgreSQL takes: {error}")
    if table.observed is not None:
        return
    columns = [(column.name, base_of(column.type)) for column in table.columns]
    mutable = _core.not_immutable(expression, columns)
    if mutable is not None:
        expected = "an expression that PostgreSQL takes in an index, which has to be immutable"
        fail(path, expression, f"{expected}: {mutable} is not")


def reads(expression: str, table: TableProfile) -> tuple[str, ...] | None:
    """The columns of the table that an expression reads; None where its text is no expression."""
    found = json.loads(_core.expression_reads(expression, table=table.name))
    if "reason" in found:
        return None
    names = [column.name for column in table.columns]
    if found["whole_row"] or (found["may_be_row"] and table.name not in names):
        return tuple(names)
    return tuple(name for name in names if name in found["columns"])


def _texts(index: IndexProfile) -> Iterator[tuple[str, bool]]:
    """Expressions, and the predicate, which is one."""
    for expression in index.expressions:
        yield expression, False
    if index.where is not None:
        yield index.where, True


def _index(table: TableProfile, index: IndexProfile, path: str) -> IndexProfile:
    texts = dict(_texts(index))
    for text, is_predicate in texts.items():
        field = "where" if is_predicate else "expressions"
        check_taken(text, table, f"{path}.{field}", is_condition=is_predicate)
    given: dict[str, Stated] = {}
    for n, stated in enumerate(index.stated):
        place = f"{path}.stated[{n}]"
        if stated.expression not in texts:
            expected = "an expression of the index, or its where: " + ", ".join(map(repr, texts))
            fail(f"{place}.expression", stated.expression, expected)
        given[stated.expression] = _completed(stated, index, table, place, texts[stated.expression])
    made = []
    for text, is_predicate in texts.items():
        if text in given:
            made.append(given[text])
        elif not_evaluated(text, table.columns, is_condition=is_predicate) is not None:
            columns = reads(text, table)
            if columns is None:
                field = "where" if is_predicate else "expressions"
                fail(f"{path}.{field}", text, "an expression by PostgreSQL's grammar")
            made.append(_assumed(text, columns, (table, index), is_predicate=is_predicate))
    return replace(index, stated=tuple(made))


def _assumed(
    text: str,
    columns: tuple[str, ...],
    of: tuple[TableProfile, IndexProfile],
    *,
    is_predicate: bool,
) -> Stated:
    table, index = of
    if is_predicate:
        return Stated(expression=text, type="bool", true_frac=0.5, columns=columns, assumed=True)
    return Stated(
        expression=text,
        type="text",
        width=Width(min_bytes=ASSUMED_BYTES, max_bytes=ASSUMED_BYTES),
        ndistinct=_MANY if index.unique else max(table.rows, 1),
        columns=columns,
        assumed=True,
    )


def _completed(
    stated: Stated, index: IndexProfile, table: TableProfile, path: str, is_predicate: bool
) -> Stated:
    columns = reads(stated.expression, table)
    if columns is None:
        raise FieldError(f"{path}.expression", "is no expression that PostgreSQL's grammar reads")
    if stated.assumed:  # as it was written before
        return replace(stated, columns=columns)
    _check_found(stated, columns if is_predicate else None, path)
    if is_predicate:
        if stated.true_frac is None:
            raise FieldError(f"{path}.true_frac", "missing, expected the share of rows, 0 to 1")
        return replace(stated, type="bool", columns=columns)
    if stated.true_frac is not None:
        fail(f"{path}.true_frac", stated.true_frac, "none, except for where")
    form = FORMS[base_of(stated.type)]
    if index.method == "btree" and not form.btree:
        fail(f"{path}.type", stated.type, "a type that a B-tree has operators for")
    width = stated.width
    if stated.elements is not None:
        base = base_of(stated.type)
        elements = completed_elements(stated.elements, base, f"{path}.elements")
        if index.method != "gin":
            expected = f"none, for {index.method} orders whole values"
            fail(f"{path}.elements", elements.max, expected)
        least, most = payload_range(elements, base)
        stated = replace(stated, elements=elements)
        width = Width(min_bytes=least, max_bytes=most)
    if form.width and width is None:
        assumed = assumed_width(stated.type, STRING_BYTES_MAX)
        if assumed is None:
            raise FieldError(f"{path}.width", f"missing, expected bytes of {stated.type}")
        width = Width(min_bytes=assumed[0], max_bytes=assumed[1])
    if not form.width and width is not None:
        fail(f"{path}.width", width.max_bytes, f"no width, which {stated.type} has by itself")
    if index.unique and base_of(stated.type) not in UNIQUE_TYPES:
        expected = "one of " + ", ".join(sorted(UNIQUE_TYPES)) + ", for the index is unique"
        fail(f"{path}.type", stated.type, expected)
    ndistinct = _MANY if index.unique else stated.ndistinct or max(table.rows, 1)
    return replace(stated, width=width, ndistinct=ndistinct, columns=columns)


def _check_found(stated: Stated, columns: tuple[str, ...] | None, path: str) -> None:
    """Values that were found are of a predicate, and as many as it reads (None: it is none)."""
    for field in ("true_for", "false_for"):
        for n, values in enumerate(getattr(stated, field)):
            if columns is None or len(values) != len(columns):
                expected = "none" if columns is None else f"values of {', '.join(columns)}"
                fail(f"{path}.{field}[{n}]", list(values), expected)


def said_assumed(index: IndexProfile) -> str | None:
    """What is assumed of an index's expressions, as a sentence; None where all are known."""
    unknown = [repr(stated.expression) for stated in index.stated if stated.assumed]
    if not unknown:
        return None
    return (
        f"values of {', '.join(unknown)} may be any: figures go from few short values that never "
        "change to as many as rows, wide, that always do; state type, width, ndistinct, "
        "changed_frac, or true_frac of where, or have a server evaluate them, to narrow them"
    )
