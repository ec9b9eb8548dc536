"""Files in which a tool keeps the way forward and the way back."""

from __future__ import annotations

import pytest
from test_migrations_foreign import shop

from pgheadroom.migration import MigrationCheck, check_migration, read_migration
from pgheadroom.migration.sections import forward

MAKE = "CREATE INDEX seen_at ON sessions (updated_at);"
DROP = "DROP INDEX seen_at;"
FILES = {
    "goose": f"-- +goose Up\n{MAKE}\n\n-- +goose Down\n{DROP}\n",
    "goose, any case": f"--+GOOSE up\r\n{MAKE}\r\n\r\n-- +goose down\r\n{DROP}\r\n",
    "goose, statements": "-- +goose Up\n-- +goose StatementBegin\n"
    f"{MAKE}\n-- +goose StatementEnd\n-- +goose Down\n-- +goose StatementBegin\n{DROP}\n",
    "sql-migrate": f"-- +migrate Up\n{MAKE}\n-- +migrate Down\n{DROP}\n",
    "dbmate": f"-- migrate:up\n{MAKE}\n-- migrate:down\n{DROP}\n",
    "back first": f"-- migrate:down\n{DROP}\n-- migrate:up\n{MAKE}\n",
    "tern": f"{MAKE}\n---- create above / drop below ----\n{DROP}\n",
    "node-pg-migrate": f"-- Up Migration\n{MAKE}\n-- Down Migration\n{DROP}\n",
}


def _check(text: str) -> MigrationCheck:
    return check_migration(shop(), read_migration(text))


@pytest.mark.parametrize("name", FILES)
def test_the_way_back_undoes_nothing_in_the_answer(name: str) -> None:
    """An index that ends HOT was "as before", since the way back drops it: exit code 0."""
    found = _check(FILES[name])
    (table,) = found.tables
    assert (table.verdict, found.findings, found.statements, found.commands) == (
        "loses HOT",
        1,
        1,
        0,
    )
    line = FILES[name].split("\n").index(next(n for n in FILES[name].split("\n") if MAKE in n)) + 1
    assert [work.line for work in table.work] == [line]
    (note,) = found.notes
    assert note.is_judged
    assert "is its way back, and left out" in note.text
    assert ("in one transaction" in note.text) == (name != "node-pg-migrate")


@pytest.mark.parametrize(
    "text",
    [
        f"{MAKE}\n-- the down migration\n{DROP}\n",
        f"{MAKE}\n-- Down Migration\n{DROP}\n",
        f"{MAKE}\n-- goose down, if it has to\n{DROP}\n",
        f"{MAKE}\nSELECT '-- migrate:down';\n{DROP}\n",
    ],
)
def test_comments_of_people_divide_nothing(text: str) -> None:
    """What no tool leaves out is read: the index goes again."""
    assert forward(text).text == text
    (table,) = _check(text).tables
    assert table.verdict == "as before"


ADDS = "ALTER TABLE orders ADD c int;"
INDEXES = "CREATE INDEX CONCURRENTLY i ON orders (c);"


@pytest.mark.parametrize(
    ("begins", "is_one"),
    [
        ("-- +goose Up", True),
        ("-- +goose NO TRANSACTION\n-- +goose Up", False),
        ("-- +migrate Up", True),
        ("-- +migrate Up notransaction", False),
        ("-- migrate:up", True),
        ("-- migrate:up transaction:false", False),
    ],
)
def test_the_transaction_that_a_tool_begins_keeps_its_locks(begins: str, is_one: bool) -> None:
    """CONCURRENTLY is refused in it, and an index is built under the lock of a column before it."""
    found = _check(f"{begins}\n{ADDS}\n{INDEXES}")
    refused = [note for note in found.notes if "refuses CONCURRENTLY" in note.text]
    assert bool(refused) == is_one
    found = _check(f"{begins}\n{ADDS}\n{INDEXES.replace(' CONCURRENTLY', '')}")
    (build,) = (work for work in found.tables[0].work if work.effort == "build")
    assert build.lock == ("ACCESS EXCLUSIVE" if is_one else "SHARE")
    ended = _check(f"{begins}\n{ADDS}\nCOMMIT;\n{INDEXES}")
    assert not [note for note in ended.notes if "refuses CONCURRENTLY" in note.text]


def test_a_file_with_a_way_back_alone_runs_nothing() -> None:
    """It is refused as an empty file is."""
    with pytest.raises(Exception, match="the migration has no statement"):
        _check(f"-- +goose Down\n{DROP}")


@pytest.mark.parametrize(
    "marker",
    [
        "-- THIS OPERATION CANNOT BE WRITTEN AS SQL",
        "-- MIGRATION NOW PERFORMS OPERATION THAT CANNOT BE WRITTEN AS SQL:",
    ],
)
def test_what_django_runs_in_python_is_not_passed_over(marker: str) -> None:
    """
    `sqlmigrate` prints a comment for RunPython: it was dropped, and a strict check passed.

    What the operation does is not known, so the line is not understood, in its transaction.
    """
    text = f"BEGIN;\n--\n-- Raw Python operation\n--\n{marker}\n--\nSELECT 1;\nCOMMIT;\n"
    listed = read_migration(text)
    assert [(s.line, s.transaction, bool(s.problem)) for s in listed] == [
        (1, None, False),
        (5, 1, True),
        (7, 1, False),
        (8, 1, False),
    ]
    found = _check(text)
    assert [(item.line, item.text) for item in found.not_understood] == [(5, marker)]
    assert found.strict_findings == ("line 5: not understood",)
    # Alone, at the end of a file without a transaction, or in a string.
    assert _check(f"{marker}\n").strict_findings == ("line 1: not understood",)
    assert len(_check(f"SELECT 1;\n{marker}").not_understood) == 1
    assert not _check(f"COMMENT ON TABLE sessions IS 'as {marker}';").not_understood
