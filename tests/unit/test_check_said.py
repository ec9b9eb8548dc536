"""What `check` says, in words: once, of the right table, by the user's names, with one unit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from unittest import mock

import observed_table as made
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lengths import examples
from pgheadroom.migration import MigrationCheck, check_migration, judging, read_migration
from pgheadroom.migration.answer import OpenMatter
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.effect import LOCKS
from pgheadroom.migration.following import follow
from pgheadroom.profile import Profile
from pgheadroom.report import migration as migration_report
from pgheadroom.units import show_shares

MIB = 1024**2


def _profile(*tables: Profile) -> Profile:
    (first, *_) = tables
    server = replace(first.server, observed=made.seen_of_server())
    return replace(first, tables=tuple(t.tables[0] for t in tables), server=server)


def _table(name: str, main_bytes: int = MIB, **facts: Any) -> Profile:
    found = made.profile_of(
        made.counters(1000, 1000, 0),
        classes=[made.a_class(["note"], 1000)],
        fillfactor=90,
        indexes=[made.index(f"{name}_pkey", ["id"], is_unique=True, is_primary=True)],
        main_bytes=main_bytes,
        **facts,
    )
    (table,) = found.tables
    observed = made.seen_of(table, name=name)
    return replace(found, tables=(replace(table, name=name, observed=observed),))


JOBS = _profile(_table("jobs", 64 * MIB), _table("owners", 2 * MIB))


def _check(text: str, profile: Profile = JOBS) -> MigrationCheck:
    """Nothing is played: what is said of locks, names and rules does not hang on figures."""
    with mock.patch.object(judging, "figures", return_value="it was not played"):
        return check_migration(profile, read_migration(text))


def _lines(text: str, profile: Profile = JOBS) -> list[str]:
    return migration_report.lines(_check(text, profile))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE INDEX ON jobs (colour)", "an index over colour"),
        (
            "CREATE TRIGGER x BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION f()",
            "a trigger before UPDATE",
        ),
        (
            "ALTER TABLE jobs ADD v int GENERATED ALWAYS AS (owner + 1) VIRTUAL;"
            "CREATE INDEX ON jobs (v)",
            "PostgreSQL 18 refuses an index over v, a virtual generated column",
        ),
    ],
)
def test_what_is_not_judged_is_said_once_and_without_figures(text: str, said: str) -> None:
    """It stood there twice, counted as two matters, with two blanks and beside "can be HOT 100"."""
    found = _check(text)
    whole = "\n".join(migration_report.lines(found))
    assert whole.count(said) == 1
    assert "  " not in whole
    assert migration_report.summary(found).count("1 matter not judged") == 1
    (table,) = found.tables
    assert table.verdict == "not judged"
    then = (table.can_be_hot_then, table.hot_frac_then, table.lost_frac, table.gained_frac)
    assert then == (None,) * 4
    assert found.strict_findings == ("jobs: not judged",)


def test_what_is_lost_is_said_beside_what_is_not_judged() -> None:
    """One index surely ends HOT, the other is unknown: neither hides the other, both count."""
    found = _check("CREATE INDEX ON jobs (note); CREATE INDEX ON jobs (colour)")
    (table,) = found.tables
    assert table.not_judged == (
        OpenMatter(line=1, text="an index over colour, which the profile does not have"),
    )
    head = migration_report.summary(found)
    assert head == "1 table loses HOT; 2 statements; 1 matter not judged"
    assert (table.verdict, table.lost_frac, table.can_be_hot_then) == ("loses HOT", 1.0, None)
    assert "Not judged besides: line 1: an index over colour" in table.text


@pytest.mark.parametrize(
    ("text", "facts", "evidence"),
    [
        ("CREATE INDEX ON jobs (owner)", {}, "by rule"),
        ("ALTER TABLE jobs ALTER owner SET NOT NULL", {}, "by rule"),
        ("CREATE INDEX ON jobs (note)", {}, "estimated"),
        ("CREATE INDEX ON jobs (colour)", {}, None),
        ("CREATE INDEX ON jobs (note)", {"n_tup_upd": 0}, "measured"),
        ("CREATE INDEX ON jobs (note)", {"n_tup_upd": None}, None),
    ],
)
def test_evidence_is_what_the_verdict_rests_on(
    text: str, facts: dict[str, Any], evidence: str | None
) -> None:
    """A verdict of the rule alone stood as "measured"; nothing is evidence for no verdict."""
    profile = _profile(_table("jobs"))
    table = profile.table("jobs")
    assert table.observed is not None
    seen = made.seen_of(table, counters={**table.observed["counters"], **facts})
    (found,) = _check(text, replace(profile, tables=(replace(table, observed=seen),))).tables
    assert found.evidence == evidence
    assert (found.hot_frac_estimated_then is not None) == (evidence == "estimated")
    assert bool(found.not_judged) == (evidence is None)


@pytest.mark.parametrize(
    ("shares", "shown"),
    [
        ((0.9994, 1.0), ("99.94 %", "100.00 %")),
        ((0.5, 0.999), ("50.00 %", "99.90 %")),
        ((0.74, 0.0), ("74.0 %", "0.0 %")),
        ((1, 0.0), ("100 %", "0 %")),
    ],
)
def test_shares_that_stand_together_have_as_many_decimals(
    shares: tuple[float, ...], shown: tuple[str, ...]
) -> None:
    """99.94 -> 100.0 was read as a rise by 0.06 points, or as none."""
    assert show_shares(*shares) == shown


def test_an_index_over_the_row_itself_is_not_one_over_a_column_of_its_name() -> None:
    """`f(jobs)` was an index over a column that does not exist and over the whole row at once."""
    (line,) = (x for x in _lines("CREATE INDEX x ON jobs (f(jobs))") if "HOT" in x)
    assert "over the whole row, which reads the row itself" in line
    assert "does not have" not in line
    column = _profile(_table("owner"))
    (table,) = _check("CREATE INDEX x ON owner (abs(owner))", column).tables
    assert table.verdict == "as before"
    assert "over owner" in table.text
    (table,) = _check("CREATE INDEX x ON owner (f(owner.*))", column).tables
    assert table.verdict == "loses HOT"


def test_one_statement_has_one_lock_and_one_rewrite() -> None:
    """Two types in one ALTER TABLE were two rewrites, each under its own lock."""
    text = "ALTER TABLE jobs ALTER owner TYPE int8, ALTER state TYPE int8, ALTER note SET NOT NULL"
    work = [line for line in _lines(text) if line.startswith("work")]
    assert work == [
        "work: jobs (64 MiB), line 1: column owner from int4 to bigint, column state from int2 to "
        "bigint, SET NOT NULL of note: rewrites it once under ACCESS EXCLUSIVE: nobody can read or "
        "write meanwhile"
    ]
    found = _check("ALTER TABLE jobs VALIDATE CONSTRAINT c, ADD x int")
    assert {work.lock for work in found.tables[0].work} == {"ACCESS EXCLUSIVE"}


def test_a_foreign_key_reads_the_table_that_refers() -> None:
    """The referenced table was said to be read; it is locked for as long as the other one takes."""
    text = "ALTER TABLE jobs ADD FOREIGN KEY (owner) REFERENCES owners (id)"
    work = sorted(line for line in _lines(text) if line.startswith("work"))
    assert work == [
        "work: jobs (64 MiB), line 1: a new foreign key: reads all of it under SHARE ROW "
        "EXCLUSIVE: nobody can write meanwhile",
        "work: owners (2 MiB), line 1: referenced by a new foreign key of jobs: is looked up by "
        "its key while jobs (64 MiB) is read, under SHARE ROW EXCLUSIVE: nobody can write "
        "meanwhile",
    ]
    over = check_migration(JOBS, read_migration(text), rewrite_over_bytes=10 * MIB)
    assert all(len(table.over) == 1 for table in over.tables)


@pytest.mark.parametrize(
    ("before", "expected"),
    [("", "a new"), ("ALTER TABLE jobs ALTER owner SET NOT NULL; ", None)],
)
def test_a_primary_key_by_an_index_reads_what_can_be_null(
    before: str, expected: str | None
) -> None:
    """USING INDEX had no line at all."""
    text = f"{before}CREATE UNIQUE INDEX u ON jobs (owner);"
    text += "ALTER TABLE jobs ADD CONSTRAINT p PRIMARY KEY USING INDEX u;"
    (table,) = _check(text).tables
    (work,) = [work for work in table.work if "using index" in work.what]
    assert (work.lock, work.effort == "nothing") == ("ACCESS EXCLUSIVE", expected is None)
    (table,) = _check(f"{text} DROP INDEX p").tables
    assert table.text == "Nothing changes that HOT depends on."


def test_a_lock_stays_until_its_transaction_ends() -> None:
    """VALIDATE after NOT VALID in one BEGIN: "writers go on meanwhile", and they waited for it."""
    ddl = (
        "ALTER TABLE jobs ADD CONSTRAINT c CHECK (owner > 0) NOT VALID;\n"
        "ALTER TABLE jobs VALIDATE CONSTRAINT c;\nALTER TABLE owners VALIDATE CONSTRAINT d;\n"
    )
    (one, _) = (x for x in _lines(f"BEGIN;\n{ddl}COMMIT;") if "work: jobs" in x)
    assert one.endswith(
        "VALIDATE CONSTRAINT: reads all of it under the ACCESS EXCLUSIVE that line 2 took and its "
        "transaction keeps: nobody can read or write meanwhile"
    )
    for text in (ddl, f"BEGIN; {ddl.replace(';', '; COMMIT; BEGIN;')} COMMIT;"):
        lines = [x for x in _lines(text) if "work: " in x]
        assert len(lines) == 2
        assert all(x.endswith("SHARE UPDATE EXCLUSIVE: writers go on meanwhile") for x in lines)


def test_a_locked_table_waits_for_what_its_transaction_does_to_others() -> None:
    """Adding a column took a moment, and its writers waited until another table was rewritten."""
    ddl = (
        "ALTER TABLE owners ADD c int;\nALTER TABLE jobs ALTER owner TYPE int8;\n"
        "ALTER TABLE jobs ADD CHECK (owner > 0);\n"
    )
    (one,) = (x for x in _lines(f"BEGIN;\n{ddl}COMMIT;") if "work: owners" in x)
    assert one.endswith(
        "(2 MiB), line 3: its transaction goes on: stays locked while 2 statements work on jobs "
        "(128 MiB), under the ACCESS EXCLUSIVE that line 2 took and its transaction keeps: nobody "
        "can read or write meanwhile"
    )
    statements = read_migration(f"BEGIN;\n{ddl}COMMIT;")
    for limit, names in ((100 * MIB, {"owners"}), (10 * MIB, {"owners", "jobs"})):
        found = check_migration(JOBS, statements, rewrite_over_bytes=limit)
        assert {table.name for table in found.tables if table.over} == names
    assert not [x for x in _lines(ddl) if "goes on" in x]
    before = "BEGIN; ALTER TABLE jobs ALTER owner TYPE int8; ALTER TABLE owners ADD c int; COMMIT"
    assert not [x for x in _lines(before) if "goes on" in x]
    reads = (
        "BEGIN; ALTER TABLE owners SET (fillfactor = 80); ALTER TABLE jobs ALTER owner TYPE int8"
    )
    assert not [x for x in _lines(reads) if "goes on" in x]


def test_rows_that_a_transaction_writes_keep_its_locks() -> None:
    """ADD COLUMN and the UPDATE that fills it, in one BEGIN: "takes a lock for an instant"."""
    ddl = "ALTER TABLE jobs ADD c int;\nUPDATE jobs SET c = owner{};\n"
    for where, unless in (("", ""), (" WHERE c IS NULL", ", unless its WHERE finds few rows")):
        text = ddl.format(where)
        (one,) = (x for x in _lines(f"BEGIN;\n{text}COMMIT;") if "UPDATE" in x)
        assert one == (
            "work: jobs (64 MiB), line 3: UPDATE: writes its rows under the ACCESS EXCLUSIVE that "
            f"line 2 took and its transaction keeps: nobody can read or write meanwhile{unless}"
        )
        assert not [x for x in _lines(text) if "UPDATE" in x], "a transaction of its own"
    other = "ALTER TABLE owners ADD c int;\nDELETE FROM jobs;\n"
    (one,) = (x for x in _lines(f"BEGIN;\n{other}COMMIT;") if "goes on" in x)
    assert "stays locked while one statement works on jobs (64 MiB), under the ACCESS" in one
    for free in (
        other,
        "BEGIN; DELETE FROM jobs; ALTER TABLE owners ADD c int; COMMIT",
        "BEGIN; ALTER TABLE owners SET (fillfactor = 80); UPDATE jobs SET owner = 1; COMMIT",
        "BEGIN; ALTER TABLE owners ADD c int; ROLLBACK; UPDATE jobs SET owner = 1",
    ):
        assert not [x for x in _lines(free) if "goes on" in x or "writes its rows" in x]
    found = check_migration(
        JOBS,
        read_migration("BEGIN; ALTER TABLE jobs ADD c int; UPDATE jobs SET c = 1; COMMIT"),
        rewrite_over_bytes=10 * MIB,
    )
    assert [len(table.over) for table in found.tables] == [1]


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("BEGIN; CREATE INDEX i ON jobs (note); ROLLBACK", False),
        ("BEGIN; CREATE INDEX i ON jobs (note); ABORT WORK", False),
        ("BEGIN; CREATE INDEX i ON jobs (note); COMMIT; ROLLBACK", True),
        ("CREATE INDEX i ON jobs (note); ROLLBACK", True),
        ("BEGIN; SAVEPOINT a; CREATE INDEX i ON jobs (note); ROLLBACK TO A; COMMIT", False),
        ("BEGIN; CREATE INDEX i ON jobs (note); SAVEPOINT a; ROLLBACK TO SAVEPOINT a", True),
        ("BEGIN; DROP TABLE jobs; ROLLBACK; CREATE INDEX i ON jobs (note)", True),
        ("BEGIN; ALTER TABLE jobs RENAME note TO x; ROLLBACK; CREATE INDEX i ON jobs (note)", True),
        ("BEGIN; SELECT 1; ROLLBACK AND CHAIN; CREATE INDEX i ON jobs (note); ROLLBACK", False),
    ],
)
def test_what_is_rolled_back_changes_nothing(text: str, lost: bool) -> None:
    """A rehearsal that ends in ROLLBACK was judged as if it stayed; it locks all the same."""
    found = _check(f"{text}; ALTER TABLE owners ADD c int")
    by_name = {table.name: table for table in found.tables}
    assert ("jobs" in by_name and by_name["jobs"].verdict == "loses HOT") == lost
    if "CREATE INDEX" in text:
        assert any(work.effort == "build" for work in by_name["jobs"].work)


def test_locks_of_what_is_rolled_back_are_free_again() -> None:
    """A savepoint's locks go with it (`LockReleaseAll` of the subtransaction)."""
    text = "BEGIN; SAVEPOINT a; LOCK jobs; ROLLBACK TO a; ALTER TABLE jobs VALIDATE CONSTRAINT c"
    for part, since in ((text, None), (text.replace("ROLLBACK TO a", "RELEASE a"), 1)):
        (table,) = (t for t in _check(part).tables if t.name == "jobs")
        assert table.work[-1].lock_since == since


_LOCKING = {
    "ALTER TABLE jobs ALTER owner TYPE int8": "ACCESS EXCLUSIVE",
    "ALTER TABLE jobs ALTER owner SET DEFAULT 1": "ACCESS EXCLUSIVE",
    "ALTER TABLE jobs VALIDATE CONSTRAINT c": "SHARE UPDATE EXCLUSIVE",
    "CREATE INDEX ON jobs (state)": "SHARE",
    "ALTER TABLE jobs SET (fillfactor = 80)": "SHARE UPDATE EXCLUSIVE",
}


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from((*_LOCKING, "BEGIN", "COMMIT", "ROLLBACK")), min_size=1, max_size=8)
)
def test_no_lock_is_weaker_than_one_before_it_in_its_transaction(parts: list[str]) -> None:
    """In a transaction the strongest so far counts, outside of one the statement's own."""
    catalog = NamedTables(JOBS)
    follow(catalog, read_migration(";\n".join(parts)))
    found = dict(catalog.altered["jobs"].effects) if "jobs" in catalog.altered else {}
    is_open, strongest = False, -1
    for line, part in enumerate(parts, 1):
        if part not in _LOCKING:
            is_open, strongest = part == "BEGIN", strongest if part == "BEGIN" and is_open else -1
            continue
        own = LOCKS.index(_LOCKING[part])
        strongest = max(own, strongest) if is_open else own
        assert LOCKS.index(found[line].lock) == strongest
        assert (found[line].lock_since is None) == (strongest == own)


def test_concurrently_is_refused_in_a_transaction() -> None:
    """PostgreSQL says so, on 15, 16 and 18 of CREATE, DROP, REINDEX and DETACH."""
    said = "PostgreSQL refuses CONCURRENTLY inside a transaction, and line 1 has begun one"
    for text in ("CREATE INDEX CONCURRENTLY ON jobs (state)", "REINDEX TABLE CONCURRENTLY jobs"):
        assert [n.text for n in _check(f"BEGIN; {text}; COMMIT").notes] == [said]
        assert not _check(f"BEGIN; COMMIT; {text}").notes
    assert not _check("BEGIN; REFRESH MATERIALIZED VIEW CONCURRENTLY jobs; COMMIT").notes


def test_what_is_assigned_by_updates_that_are_not_hot_is_said_to_lose_nothing() -> None:
    """Nothing stood between "as before" and "50 % of the updates assign it"."""
    state = made.index("by_state", ["state"])
    jobs = made.profile_of(
        made.counters(1000, 0, 0),
        classes=[made.a_class(["note", "state"], 1000)],
        indexes=[made.index("jobs_pkey", ["id"], is_unique=True, is_primary=True), state],
        name="jobs",
    )
    (line, *_) = _lines("CREATE INDEX x ON jobs (note)", _profile(jobs))
    assert line.startswith("as before: jobs.")
    assert line.endswith("assign note. Those updates cannot be HOT as it is, so no HOT is lost.")
    (line, *_) = _lines("CREATE INDEX x ON jobs (owner)", _profile(jobs))
    assert "Those updates" not in line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "CREATE INDEX x ON jobs (owner) INCLUDE (state) WHERE note IS NULL",
            "over owner INCLUDE (state) with a predicate over note",
        ),
        ("CREATE INDEX x ON jobs (owner) WHERE owner > 0", "over owner with a predicate over own"),
        ("CREATE INDEX x ON jobs (abs(owner)) WHERE state > 0", "over owner with a predicate over"),
        ("ALTER TABLE jobs ADD x int", "column x is new, and NULL until it is assigned."),
        ("ALTER TABLE jobs ADD x int DEFAULT 1", "column x is new, and makes rows longer as"),
        ("CREATE INDEX x ON jobs (id, owner); ALTER TABLE jobs DROP owner, ADD y int", "is new"),
        ("ALTER TABLE jobs SET (fillfactor = 90)", "fillfactor stays 90"),
    ],
)
def test_what_is_done_is_told_by_its_parts(text: str, said: str) -> None:
    """A predicate's columns were the index's, a column that is NULL made rows longer."""
    assert said in _lines(text)[0]


def test_an_index_goes_with_its_column() -> None:
    """It was not said why."""
    first = "CREATE INDEX x ON jobs (owner); "
    (line, *_) = _lines(f"{first}DROP INDEX jobs_pkey")
    assert line.endswith("jobs_pkey goes.")
    (line, *_) = _lines("ALTER TABLE jobs DROP id")
    assert line.endswith("jobs_pkey goes with column id.")


def test_a_statement_over_a_whole_database_is_one_line() -> None:
    """50 lines for 50 tables; CLUSTER alone touches those alone that were clustered before."""
    tables = [_table(f"t{n}") for n in range(50)] + [_table("big", 5 * 1024 * MIB)]
    profile = _profile(*tables)
    lines = _lines("VACUUM FULL", profile)
    assert len(lines) == 3
    assert "50 tables (t0, t1, t2 and 47 more) (50 MiB together)" in "\n".join(lines)
    assert "writers wait: big (5 GiB)" in "\n".join(lines)
    assert migration_report.tables(_check("VACUUM FULL", profile)) == []
    (line,) = _lines("CLUSTER", profile)
    assert "no table of the profile was" in line
    marked = _lines("CLUSTER t1 USING t1_pkey; CLUSTER", profile)
    assert [line for line in marked if ", line 1: CLUSTER: rewrites it" in line]
    assert len(marked) == 3
    (refused,) = (line for line in _lines("CLUSTER t1", profile) if "rewrites" in line)
    assert "unless none of its indexes is marked" in refused
    assert _lines("REINDEX SCHEMA other", profile) == []


def test_a_fillfactor_names_the_size_that_it_asks_for() -> None:
    """A figure of noise stood there, and nothing of a table three times as big."""
    (line, *_) = _lines("ALTER TABLE jobs SET (fillfactor = 30)")
    assert "fillfactor 90 -> 30 for new pages, about 16 rows a page instead of 49" in line
    assert "the heap takes about 4.88 MiB once it is rewritten, 64 MiB now" in line


def test_one_statement_is_no_statements() -> None:
    """The head counted "1 statements"."""
    for text, said in (("SELECT 1", "; 1 statement"), ("SELECT 1; SELECT 2", "; 2 statements")):
        assert migration_report.summary(_check(text)) == f"0 tables lose HOT{said}"


def test_names_after_a_rename_are_the_new_ones() -> None:
    """What ends HOT is named as it is called in the end."""
    text = (
        "CREATE INDEX x ON jobs (note); ALTER INDEX x RENAME TO y;"
        "ALTER TABLE jobs RENAME note TO remark;"
        "ALTER TABLE jobs ADD g text GENERATED ALWAYS AS (remark || 'x') STORED;"
        "ALTER TABLE jobs ALTER g SET EXPRESSION AS (remark || 'y'); CREATE INDEX z ON jobs (g);"
    )
    (table,) = _check(text).tables
    found = [(one.index, one.column, one.assigned) for one in table.lost_by]
    assert found == [("y", "remark", "remark"), ("z", "g", "remark")]


COLUMNS = ("qa", "qb", "qc")
_DDL = st.sampled_from(
    (
        "ALTER TABLE qt RENAME {0} TO {1}",
        "ALTER TABLE qt ADD {0} int",
        "ALTER TABLE qt DROP {0}",
        "ALTER TABLE qt ADD {0} int GENERATED ALWAYS AS ({1} + 1) STORED",
        "ALTER TABLE qt ALTER {0} SET EXPRESSION AS ({1} + 2)",
        "ALTER TABLE qt ALTER {0} DROP EXPRESSION",
        "ALTER TABLE qt ALTER {0} TYPE numeric(30)",
        "ALTER TABLE qt ADD {0} qtype",
        "CREATE INDEX q{1}i ON qt ({0})",
        "CREATE INDEX ON qt (abs({0})) WHERE {1} > 0",
        "ALTER INDEX q{1}i RENAME TO q{0}i",
        "DROP INDEX q{1}i",
        "ALTER TABLE qt RENAME TO qu; ALTER TABLE qu RENAME TO qt",
    )
)
_NAMES = st.sampled_from((*COLUMNS, "qd", "qe"))


def _migrated(parts: list[tuple[str, str, str]]) -> tuple[str, MigrationCheck]:
    columns = [{"name": "id", "type": "int8", "values": {"kind": "serial"}}]
    columns += [{"name": name, "type": "int4"} for name in COLUMNS]
    found = made.profile_of(
        made.counters(1000, 900, 0),
        columns=columns,
        indexes=[made.index("qpkey", ["id"], is_unique=True, is_primary=True)],
        classes=[made.a_class(["qa", "qb"], 1000)],
        name="qt",
    )
    # One that is computed, and in the end an index over it: both outlive most of what is between.
    text = "ALTER TABLE qt ADD qd int GENERATED ALWAYS AS (qa + 1) STORED;"
    text += ";".join(form.format(one, other) for form, one, other in parts)
    text += ";CREATE INDEX ON qt (qd)"
    return text, _check(text, _profile(found))


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(st.lists(st.tuples(_DDL, _NAMES, _NAMES), min_size=1, max_size=7))
@example([("ALTER TABLE qt ALTER {0} SET EXPRESSION AS ({1} + 2)", "qd", "qb")])
@example([("ALTER TABLE qt DROP {0}; ALTER TABLE qt ADD {0} int", "qa", "qb")])
def test_no_name_is_shown_that_nobody_has_given(parts: list[tuple[str, str, str]]) -> None:
    """Columns have identities inside, which renames leave alone; they are no names."""
    text, found = _migrated(parts)
    shown = json.dumps(found.to_json()) + "\n".join(migration_report.lines(found))
    known = {"qt", "qpkey", *COLUMNS, *re.findall(r"\bq\w*", text)}
    named = set(re.findall(r"\bq[^\s\",;:()\\.]*", shown))
    chosen = {name for name in named if re.fullmatch(r"q[tu]_\w+_idx\d*", name)}
    assert named - chosen <= known, text


@pytest.mark.parametrize(
    ("text", "said", "unsaid"),
    [
        (
            "ALTER TABLE jobs ADD c int; CREATE INDEX i ON jobs (id, c)",
            "over id, c; no statement that was observed can have assigned c.",
            "assigned id",
        ),
        (
            "CREATE INDEX i ON jobs (owner)",
            "over owner; no statement that was observed assigns owner.",
            "none",
        ),
        (
            "ALTER TABLE jobs ADD g int GENERATED ALWAYS AS (length(note)) STORED;"
            "CREATE INDEX i ON jobs (g)",
            "if every value that is assigned, and what is generated from it, changes.",
            "assigned changes",
        ),
        (
            "CREATE INDEX i ON jobs (note)",
            "if every value that is assigned changes.",
            "generated",
        ),
    ],
)
def test_an_index_is_told_by_the_columns_that_it_is_about(
    text: str, said: str, unsaid: str
) -> None:
    """Of an index over old and new columns all were said to be assigned by no statement."""
    (table,) = _check(text).tables
    assert said in table.text
    assert unsaid not in table.text


def test_another_type_names_the_locks_of_keys_that_nobody_has_observed() -> None:
    """The other table of a foreign key is locked too, for as long as a column is rewritten."""
    found = _check("ALTER TABLE jobs ALTER owner TYPE bigint")
    (note,) = found.notes
    assert (note.line, note.table, note.is_judged) == (1, "jobs", True)
    assert "a foreign key of owner or to it, if there is one, locks its other table" in note.text
    (brief,) = _check("ALTER TABLE jobs ALTER note TYPE text").notes
    assert "locks its other table with ACCESS EXCLUSIVE too" in brief.text
    assert _check("ALTER TABLE jobs ADD c int DEFAULT random()").notes == ()


def test_work_on_a_renamed_table_says_what_it_is_called_by_then() -> None:
    """
    `jobs` becomes `tasks`, and `owners` becomes `jobs`: work on either is told apart.

    Without it the table that the statement calls `jobs` was only called `owners`, and the other
    one `jobs`, which is by then the name of the first.
    """
    found = _check(
        "ALTER TABLE jobs RENAME TO tasks; ALTER TABLE owners RENAME TO jobs;\n"
        "CREATE INDEX a ON tasks (owner);\n"
        "ALTER TABLE jobs SET SCHEMA archive;\n"
        'ALTER TABLE archive.jobs RENAME TO "two words";\n'
        'ALTER TABLE archive."two words" ALTER COLUMN state TYPE bigint;'
    )
    told = {
        (table.table, work.line): work.called
        for table in found.tables
        for work in table.work
        if work.effort != "nothing"
    }
    assert told == {("jobs", 2): "tasks", ("owners", 5): "archive.two words"}
    lines = migration_report.lines(found)
    assert any(line.startswith("work: jobs, tasks by then (64 MiB), line 2: ") for line in lines)
    assert any(line.startswith("work: owners, archive.two words by then (2 MiB)") for line in lines)
    plain = [line for line in _lines("CREATE INDEX a ON jobs (owner);") if "line 1" in line]
    assert not any("by then" in line for line in plain)
