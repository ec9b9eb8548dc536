"""Files of psql: its own commands, and rows that stand among statements."""

from __future__ import annotations

from dataclasses import replace

import observed_table as made
import pytest

from pgheadroom.migration import MigrationCheck, check_migration, read_migration


def _check(text: str) -> MigrationCheck:
    profile = made.profile_of(
        made.counters(1000, 1000, 0), classes=[made.a_class(["note"], 1000)], fillfactor=80
    )
    profile = replace(profile, server=replace(profile.server, observed=made.seen_of_server()))
    return check_migration(profile, read_migration(text))


def test_what_psql_runs_nothing_by_is_counted_and_no_more() -> None:
    """Its settings, what it echoes, and the rows of a COPY each failed a strict check."""
    text = (
        "\\set ON_ERROR_STOP on\n\\timing\n\\connect app\nBEGIN;\n\\echo it's\n"
        "COPY jobs FROM stdin;\n"
        "1\tDROP TABLE jobs;\n\\.\nALTER TABLE jobs ADD c int;\nCOMMIT;\n"
    )
    found = _check(text)
    assert found.strict_findings == ()
    shown = found.to_json()
    assert (shown["statements"], shown["commands"], shown["not_understood"]) == (4, 4, [])
    (note,) = found.notes
    assert (note.line, note.is_judged) == (1, True)
    assert note.text.startswith(
        "4 commands of psql run nothing and are left out: \\connect, \\echo,"
    )
    assert [work.line for table in found.tables for work in table.work] == [9]


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("\\i more.sql", "line 1: not understood"),
        ("\\if :x\nSELECT 1;\n\\endif", "line 1: not understood"),
        ("SELECT 'DROP TABLE t' \\gexec", "line 1: not understood"),
        ("\\set x 1\nSELECT :x;", "line 2: not understood"),
        (
            "\\connect other",
            "line 1: what follows goes to database other, and the profile is of app",
        ),
    ],
)
def test_what_changes_what_is_run_is_a_finding(text: str, strict: str) -> None:
    """Other text, a condition, a value that nobody knows, another database."""
    found = _check(f"{text}\nALTER TABLE jobs ADD c int")
    assert strict in found.strict_findings


def test_a_lock_is_kept_over_a_command() -> None:
    """A command is no statement: it ends no transaction, another connection does."""
    text = "BEGIN;\nLOCK jobs;\n{}\nALTER TABLE jobs VALIDATE CONSTRAINT c;"
    for command, since in (("\\echo x", 2), ("\\c", None)):
        found = _check(text.format(command))
        assert found.tables[0].work[-1].lock_since == since
