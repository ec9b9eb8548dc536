"""Statements: what each writes, by parsing; and statements out of logs and files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.errors import InputError
from pgheadroom.sources.log import read_statements
from pgheadroom.sources.statements import (
    NotParsed,
    expression_reads,
    facts_of,
    located,
    split,
    writes_of,
)

_DEEP = ("(", "f(", "- ", "a || ", "CASE WHEN a THEN ", "ARRAY[")
_COUNTS = st.sampled_from([1, 50, 500, 5_000])

UPDATES = [
    ("UPDATE t SET a = $1, b = b + $2 WHERE id = $3", "update", (None, "t"), ("a", "b")),
    (
        "UPDATE t SET a = f(a, $1, $2), b = $3 WHERE (x, y) IN (($4, $5))",
        "update",
        (None, "t"),
        "ab",
    ),
    (
        "UPDATE ONLY public.t AS x SET (a, b) = ($1, $2) RETURNING *",
        "update",
        ("public", "t"),
        "ab",
    ),
    ("UPDATE t SET (a, b) = (SELECT 1, 2)", "update", (None, "t"), "ab"),
    ("UPDATE t SET (a) = ROW($1)", "update", (None, "t"), "a"),
    ('UPDATE "S"."T" SET "A" = $1', "update", ("S", "T"), "A"),
    ("UPDATE T SET A = $1", "update", (None, "t"), "a"),
    ("UPDATE t SET a[1] = $1, b[1:2] = $2, c.field = 3", "update", (None, "t"), "abc"),
    ("UPDATE t * SET a = DEFAULT WHERE CURRENT OF c", "update", (None, "t"), "a"),
    ("UPDATE t SET a = 1 RETURNING WITH (OLD AS o) o.a", "update", (None, "t"), "a"),
    ("PREPARE p (int, text) AS UPDATE t SET a = $1", "update", (None, "t"), "a"),
    ("EXPLAIN ANALYZE UPDATE t SET a = 1", "update", (None, "t"), "a"),
    ("/* b = 1 /* nested */ */ UPDATE t -- SET c = 1\n SET a = $1", "update", (None, "t"), "a"),
    (
        "UPDATE t SET a = E'\\', z = ' , b = $x$, y = 1$x$, c = U&'d\\0061'",
        "update",
        (None, "t"),
        "abc",
    ),
    ("UPDATE t SET a = b IS DISTINCT FROM c, d = j #>> '{x}' FROM u", "update", (None, "t"), "ad"),
    (
        "INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT (a) DO UPDATE SET b = excluded.b",
        "upsert",
        (None, "t"),
        "b",
    ),
    (
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a "
        "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a)",
        "merge",
        (None, "t"),
        "a",
    ),
    (
        "WITH q AS (SELECT id FROM j FOR UPDATE SKIP LOCKED LIMIT $1) "
        "UPDATE t SET a = $2 FROM q WHERE q.id = t.id",
        "update",
        (None, "t"),
        "a",
    ),
    ("WITH u AS (UPDATE t SET a = 1 RETURNING id) SELECT * FROM u", "update", (None, "t"), "a"),
]


@pytest.mark.parametrize(
    ("text", "kind", "target", "columns"), UPDATES, ids=[text[:40] for text, *_ in UPDATES]
)
def test_assigned_columns(
    text: str, kind: str, target: tuple[str | None, str], columns: tuple[str, ...] | str
) -> None:
    """Each way to write an update in PostgreSQL gives its table and its columns, no more."""
    (statement,) = split(text)
    found = [write for write in writes_of(statement) if write.columns]
    assert [(w.kind, (w.schema, w.table), w.columns) for w in found] == [
        (kind, target, tuple(columns))
    ]


def test_an_update_in_a_with_is_told_from_the_statement_itself() -> None:
    """Of the second the server's count has the rows, of the first it has the query's."""
    texts = (
        "WITH u AS (UPDATE t SET a = 1 RETURNING id) SELECT sum(id) FROM u",
        "WITH q AS (SELECT 1) UPDATE t SET a = 1 FROM q",
        "WITH u AS (UPDATE t SET a = 1 RETURNING id) UPDATE s SET b = 1 FROM u",
        "WITH u AS (INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 1) SELECT 1",
    )
    found = [{write.table: write.is_inner for write in writes_of(text)} for text in texts]
    assert found == [{"t": True}, {"t": False}, {"t": True, "s": False}, {"t": True}]


def test_a_column_assigned_to_itself_or_appended_to_is_told_apart() -> None:
    """An equal value keeps HOT, and a value that grows needs room: both matter for advice."""
    (statement,) = split("UPDATE t AS x SET a = x.a, b = b || $1, c = t2.c, d = d FROM t2")
    (write,) = writes_of(statement)
    assert write.same == {"a", "d"}
    assert write.appended == {"b"}


@pytest.mark.parametrize(
    "text",
    ["SELECT 'update t set a = 1' FOR UPDATE", "COPY t FROM STDIN", "BEGIN", "CALL f($1)", ""],
)
def test_what_writes_no_row_is_no_write(text: str) -> None:
    """Words inside literals and locks are not updates."""
    assert [write for part in split(text) for write in writes_of(part)] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("UPDATE t SET a = 'abc", "cut off"),
        ("UPDATE t SET a = $x$ abc", "cut off"),
        ("UPDATE t SET", "cut off"),
        ("/* never ends UPDATE t SET a = 1", "cut off"),
        ("please update my table", "grammar does not know its syntax$"),
        ("UPDATE t SET a = 1, b", "cut off"),
        ("UPDATE abc FOR PORTION OF x FROM 1 TO 2 SET a = 1", r"does not know its syntax \(at FOR"),
        ("UPDATE t SET a = 1 WHERE abc abc", "grammar does not know its syntax$"),
        ("UPDATE t SET a = " + "(" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_understood_says_why_without_its_words(text: str, reason: str) -> None:
    """The reason is shown and kept in a profile, so it must not carry names or literals."""
    with pytest.raises(NotParsed, match=reason) as caught:
        [writes_of(part) for part in split(text)]
    assert "abc" not in str(caught.value)


def test_literals_and_comments_are_gone_and_equal_statements_are_one() -> None:
    """Literals must not reach a profile, and a log of a million updates is a few statements."""
    texts = [
        "UPDATE t SET a='s3cret' WHERE b=1 -- s3cret\n;",
        "UPDATE t SET a=$2\tWHERE b=$1",
        "UPDATE t SET a=$1 WHERE b=7",
    ]
    assert {part for text in texts for part in split(text)} == {"UPDATE t SET a=$1 WHERE b=$2"}


_MUTATED = st.builds(
    lambda text, cuts: "".join(text[begin:end] for begin, end in cuts),
    st.sampled_from([text for text, *_ in UPDATES]),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 90)), max_size=5),
)


@given(
    st.one_of(
        st.text(alphabet="'\"$;:-/*\\a1 \n", max_size=40),
        st.text(alphabet=st.characters(codec=None), max_size=30),  # NUL, lone surrogates
        _MUTATED,
        st.builds(lambda part, n: f"UPDATE t SET a = {part * n}1", st.sampled_from(_DEEP), _COUNTS),
    )
)
def test_no_text_breaks_the_reader(text: str) -> None:
    """Statement texts are foreign: anything ends as an answer or as NotParsed, in one piece."""
    for read in (writes_of, facts_of, lambda part: expression_reads(part, "t")):
        try:
            for part in [*split(text), *split(text, variables=True), text]:
                read(part)
        except NotParsed:
            pass
    assert all(found.line >= 1 for found in located(text))


def test_an_expression_says_what_it_reads() -> None:
    """An index over an expression ends HOT for each column of it; the row itself is all columns."""
    found = expression_reads("lower(a) || coalesce(t.b, 'x')", "t")
    assert (found.columns, found.whole_row, found.functions) == (("a", "b"), False, ("lower",))
    assert expression_reads("to_json(t.*)", "t").whole_row
    bare = expression_reads("to_json(t)", "t")
    assert (bare.columns, bare.whole_row, bare.may_be_row) == (("t",), False, True)
    with pytest.raises(NotParsed):
        expression_reads("a) FROM t; DROP TABLE t --", "t")


def test_a_pgbench_script_is_read_without_its_commands(tmp_path: Path) -> None:
    """A script's variables stand for values; `FILE@N` counts as in pgbench."""
    path = tmp_path / "script.sql"
    path.write_text(
        "\\set aid random(1, 100)\nBEGIN;\nUPDATE t SET a = a + :delta, b = x::text "
        "WHERE id = :aid;\nEND;\n"
    )
    assert read_statements(Path(f"{path}@3")).counts == {
        "BEGIN": 3,
        "UPDATE t SET a = a + $1, b = x::text WHERE id = $2": 3,
        "END": 3,
    }
    path.write_text("-- nothing\n\\set a 1\n")
    with pytest.raises(InputError, match="holds no statement"):
        read_statements(path)
    with pytest.raises(InputError, match="no such file"):
        read_statements(tmp_path / "absent.sql")
