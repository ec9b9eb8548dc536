"""IF NOT EXISTS, IF EXISTS, foreign keys: what is there decides, what is not known is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import observed_table as made
import pytest

from pgheadroom.migration import check_migration, judging, read_migration
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.figures import Figures, is_played
from pgheadroom.migration.following import follow
from pgheadroom.migration.shape import IndexAdded
from pgheadroom.profile import Profile

KEY = {
    "schema": "public",
    "table": "jobs",
    "name": "jobs_owner_fkey",
    "columns": ["owner"],
    "references_schema": "public",
    "references": "people",
    "references_columns": ["id"],
    "references_index": "people_pkey",
    "is_valid": True,
}


def _profile(**server: Any) -> Profile:
    profile = made.profile_of(
        made.counters(1000, 1000, 0), classes=[made.a_class(["note"], 1000)], fillfactor=80
    )
    seen = made.seen_of_server(**{"interval_s": 10.0, "foreign_keys": []} | server)
    return replace(profile, server=replace(profile.server, observed=seen))


def _followed(text: str, **server: Any) -> NamedTables:
    catalog = NamedTables(_profile(**server))
    follow(catalog, read_migration(text))
    return catalog


def _work(text: str) -> list[tuple[str, str, str | None]]:
    found = _followed(text).altered.get("jobs")
    return (
        []
        if found is None
        else [(effect.lock, effect.effort, effect.unless) for _, effect in found.effects]
    )


LOCKED = ("ACCESS EXCLUSIVE", "nothing", None)


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE jobs ADD COLUMN IF NOT EXISTS note text UNIQUE;",
        "ALTER TABLE jobs ADD COLUMN IF NOT EXISTS note text DEFAULT random() CHECK (note > 'a');",
        "ALTER TABLE jobs ADD q int; ALTER TABLE jobs ADD COLUMN IF NOT EXISTS q int UNIQUE;",
        "ALTER TABLE jobs DROP COLUMN IF EXISTS zz;",
    ],
)
def test_a_column_that_is_there_brings_nothing(text: str) -> None:
    """Its UNIQUE was weighed as a new index ("loses HOT"), its CHECK as a scan."""
    assert set(_work(text)) == {LOCKED}
    (table,) = check_migration(_profile(), read_migration(text)).tables
    assert table.verdict == "as before"


def test_an_index_that_is_there_takes_its_lock_alone() -> None:
    """Whatever has the name, of whichever table; CONCURRENTLY takes the weaker one."""
    share = ("SHARE", "nothing", None)
    assert _work("CREATE INDEX IF NOT EXISTS jobs_owner ON jobs (note);") == [share]
    assert _work("CREATE INDEX IF NOT EXISTS jobs ON jobs (note);") == [share]
    text = "CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_owner ON jobs (note);"
    assert _work(text) == [("SHARE UPDATE EXCLUSIVE", "nothing", None)]
    renamed = (
        "ALTER INDEX jobs_owner RENAME TO z; CREATE INDEX IF NOT EXISTS jobs_owner ON jobs (note)"
    )
    assert _work(renamed) == [("SHARE", "build", None)]


def test_a_table_that_is_there_is_not_made() -> None:
    """Its foreign keys lock nothing then."""
    catalog = _followed("CREATE TABLE IF NOT EXISTS jobs (a int UNIQUE REFERENCES jobs);")
    assert catalog.altered == {}
    assert [note.is_judged for note in catalog.notes] == [True]
    refused = _followed("CREATE TABLE jobs (a int UNIQUE REFERENCES jobs);")
    assert [(note.is_judged, "refuses" in note.text) for note in refused.notes] == [(False, True)]


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE jobs ADD note int;",
        "CREATE INDEX jobs_owner ON jobs (note);",
        "ALTER TABLE jobs RENAME note TO owner; ALTER TABLE jobs DROP owner;",
    ],
)
def test_what_postgresql_refuses_is_not_judged(text: str) -> None:
    """A second one without IF NOT EXISTS: the profile is of another state, or it fails."""
    (altered,) = _followed(text).altered.values()
    assert any("refuses" in said for _, said in altered.open)


BLIND = "DO $$ BEGIN ALTER TABLE jobs RENAME note TO old; END $$;\n"


@pytest.mark.parametrize("exists", ["", "IF NOT EXISTS "])
def test_after_code_that_is_not_seen_a_column_may_be_another(exists: str) -> None:
    """A DO block renamed the column, ADD COLUMN of its old name rewrote: "no rewrite"."""
    text = f"{BLIND}ALTER TABLE jobs ADD COLUMN {exists}note float8 DEFAULT random();"
    ((lock, effort, unless),) = _work(text)
    assert (lock, effort) == ("ACCESS EXCLUSIVE", "rewrite")
    assert (unless is not None) == bool(exists)
    (altered,) = _followed(text).altered.values()
    assert any("depends on line 1" in said for _, said in altered.open)


def test_after_code_that_is_not_seen_a_new_column_may_be_there() -> None:
    """The reverse: what IF NOT EXISTS adds may have been made by the block."""
    text = f"{BLIND}ALTER TABLE jobs ADD COLUMN IF NOT EXISTS old float8 DEFAULT random();"
    ((_, effort, unless),) = _work(text)
    assert effort == "rewrite"
    assert unless == "column old is there by then, which line 1 may decide"
    index = f"{BLIND}CREATE INDEX IF NOT EXISTS jobs_owner ON jobs (note);"
    ((lock, effort, unless),) = _work(index)
    assert (lock, effort) == ("SHARE", "build")
    assert unless == "index jobs_owner is there by then, which line 1 may decide"


def test_an_index_that_was_dropped_since_is_not_there() -> None:
    """DROP INDEX IF EXISTS settles it, for its schema, until code runs again or it is made."""
    made = "CREATE INDEX IF NOT EXISTS jobs_owner ON jobs (note);\n"
    for dropped, is_open in (
        ("DROP INDEX IF EXISTS jobs_owner;\n", False),
        ("DROP INDEX CONCURRENTLY IF EXISTS jobs_owner;\n", False),
        ("DROP INDEX IF EXISTS other.jobs_owner;\n", True),
        ("DROP INDEX IF EXISTS jobs_note;\n", True),
        (f"DROP INDEX IF EXISTS jobs_owner;\n{BLIND}", True),
    ):
        work = _work(BLIND + dropped + made)
        builds = [unless for _, effort, unless in work if effort == "build"]
        assert [unless is not None for unless in builds] == [is_open], dropped


@pytest.mark.parametrize(
    ("text", "is_part"),
    [
        ("UPDATE jobs SET note = ' WHERE '", False),
        ("UPDATE jobs SET note = (SELECT note FROM other WHERE other.id = jobs.id)", False),
        ("UPDATE jobs SET note = 'a' WHERE true", False),
        ("UPDATE jobs SET note = 'a'\nWHERE(id = 1)", True),
        ("WITH o AS (SELECT 1 WHERE false) DELETE FROM jobs", False),
    ],
)
def test_the_condition_is_the_statements_own(text: str, is_part: bool) -> None:
    """The word WHERE stood for it, wherever in the statement."""
    (altered,) = _followed(
        f"BEGIN;\nALTER TABLE jobs ADD q int;\n{text};\nCOMMIT;"
    ).altered.values()
    (fill,) = [effect for _, effect in altered.effects if effect.effort == "fill"]
    assert (fill.unless is not None) == is_part


def test_the_other_table_of_a_key_is_named() -> None:
    """It is not in the profile, so that there is a note of it and no line among tables."""
    catalog = _followed("ALTER TABLE jobs DROP CONSTRAINT jobs_owner_fkey;", foreign_keys=[KEY])
    assert [(note.table, note.is_judged) for note in catalog.notes] == [("public.people", True)]
    assert "ACCESS EXCLUSIVE" in catalog.notes[0].text
    again = "ALTER TABLE jobs DROP CONSTRAINT jobs_owner_fkey; ALTER TABLE jobs DROP owner;"
    assert len(_followed(again, foreign_keys=[KEY]).notes) == 1
    undone = (
        "BEGIN; SAVEPOINT a; ALTER TABLE jobs DROP owner; ROLLBACK TO a; "
        "ALTER TABLE jobs DROP owner; COMMIT;"
    )
    assert "people" in str(_followed(undone, foreign_keys=[KEY]).notes)


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("ALTER TABLE jobs DROP CONSTRAINT jobs_owner_fkey;", True),
        ("ALTER TABLE jobs DROP owner;", True),
        ("ALTER TABLE jobs ALTER owner TYPE bigint;", True),
        ("ALTER TABLE jobs DROP CONSTRAINT jobs_pkey;", False),
        ("ALTER TABLE jobs ADD q int;", False),
    ],
)
def test_keys_that_were_not_observed_are_said_to_be_unknown(text: str, is_said: bool) -> None:
    """A profile of an earlier version has none, which is not the same as an empty list."""
    texts = [note.text for note in _followed(text, foreign_keys=None).notes]
    assert any("before foreign keys" in said for said in texts) == is_said
    assert not any("before foreign keys" in note.text for note in _followed(text).notes)


def test_no_more_is_played_than_can_be_hot(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    An index over a column that the one update of a row fills: "HOT 76 % -> 21 %" beside "0 % can".

    A NULL stays one in a play, so a fifth of the updates changed nothing there.
    """
    played = Figures(hot_now=0.76, hot_then=0.21, wal_now=131.0, wal_then=227.0)
    monkeypatch.setattr(judging, "figures", lambda *_: played)
    ddl = read_migration("CREATE INDEX ON jobs (note);")
    (table,) = check_migration(_profile(), ddl).tables
    assert (table.verdict, table.can_be_hot_then) == ("loses HOT", 0.0)
    assert (table.hot_frac_then, table.hot_frac_estimated_then) == (None, 0.0)
    half = Figures(hot_now=0.76, hot_then=0.01, wal_now=131.0, wal_then=227.0)
    monkeypatch.setattr(judging, "figures", lambda *_: half)
    (table,) = check_migration(_profile(), ddl).tables
    assert table.hot_frac_then == 0.01


@pytest.mark.parametrize(
    ("text", "is_as_it_is"),
    [
        ("CREATE INDEX x ON jobs USING hash (note);", True),
        ("CREATE INDEX x ON jobs USING hash (note) WHERE id > 1;", False),
        ("CREATE INDEX x ON jobs USING hash (lower(note));", True),
        ("CREATE INDEX x ON jobs USING hash ((note || id));", False),
        ("CREATE INDEX x ON jobs (note) WHERE id > 1;", True),
        ("CREATE INDEX x ON jobs USING gin (note);", False),
    ],
)
def test_a_b_tree_that_stands_for_a_hash_index_is_said(text: str, is_as_it_is: bool) -> None:
    """What reads several columns stands as a B-tree over them, whose WAL is not a hash index's."""
    (added,) = (e for e in _followed(text).altered["jobs"].edits if isinstance(e, IndexAdded))
    assert is_played(added) == is_as_it_is


def test_partitioned_tables_that_are_each_others_parents_end() -> None:
    """No server has such a pair; a file may say so, and check once never came to an end."""
    profile = made.profile_of(made.counters(10, 10, 0), name="jobs_1", parent="a")
    pair = [
        {"schema": "public", "name": name, "parent": parent}
        for name, parent in (("a", "b"), ("b", "a"))
    ]
    seen = made.seen_of_server(partitioned=pair, foreign_keys=[])
    catalog = NamedTables(replace(profile, server=replace(profile.server, observed=seen)))
    follow(catalog, read_migration("CREATE INDEX i ON b (note)"))
    assert [type(edit).__name__ for edit in catalog.altered["jobs"].edits] == ["IndexAdded"]
