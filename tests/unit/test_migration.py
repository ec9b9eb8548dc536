"""Migrations: statements become actions, names become tables, nothing is passed over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import observed_table as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgheadroom.errors import InputError
from pgheadroom.migration import check_migration, read_migration
from pgheadroom.migration.actions import (
    Action,
    AddIndex,
    DropColumn,
    DropIndex,
    NamedRelation,
    Remarkable,
    Rename,
    SetColumn,
    SetExpression,
    SetFillfactor,
    Work,
)
from pgheadroom.migration.catalog import NamedTables
from pgheadroom.migration.following import follow
from pgheadroom.migration.shape import IndexAdded, IndexDropped, edited, stand_in
from pgheadroom.observe.naming import profile_name
from pgheadroom.profile import Profile
from pgheadroom.sources.statements import located

T = NamedRelation(schema=None, name="t")
S_T = NamedRelation(schema="s", name="t")
_EVERY = (
    "CREATE INDEX ON t (a)",
    "DROP INDEX i",
    "ALTER TABLE t ADD a int, ALTER b SET EXPRESSION AS (c), DROP d, SET (fillfactor = 90)",
    "ALTER TABLE t RENAME TO u",
    "DROP TABLE t",
    "CREATE DOMAIN d AS int",
)


def _actions(text: str) -> list[Any]:
    (statement,) = read_migration(text)
    assert statement.problem is None
    return list(statement.actions)


def _index(**facts: Any) -> AddIndex:
    return AddIndex(**{"table": T, "name": "i", "kind": "index"} | facts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE INDEX i ON t (a, b DESC)", _index(columns=("a", "b"), depends=("a", "b"))),
        (
            "create unique index concurrently if not exists i on only s.t using btree "
            "(a DESC NULLS LAST) include (d) nulls not distinct with (fillfactor=70) "
            "where f > 'x;'",
            _index(
                table=S_T,
                columns=("a",),
                include=("d",),
                depends=("a", "d", "f"),
                has_predicate=True,
                fillfactor=70,
                only=True,
                predicate_columns=("f",),
                concurrently=True,
                if_not_exists=True,
            ),
        ),
        (
            'CREATE INDEX "I" ON t (lower("B") COLLATE "C", (c + d))',
            _index(
                name="I",
                depends=("B", "c", "d"),
                has_expressions=True,
                expression_columns=("B", "c", "d"),
            ),
        ),
        (
            "CREATE INDEX i ON t ((to_json(t)))",
            _index(
                depends=("t",), has_expressions=True, expression_columns=("t",), may_be_row=True
            ),
        ),
        (
            "CREATE INDEX i ON t ((to_json(t.*)))",
            _index(has_expressions=True, whole_row=True),
        ),
        ("CREATE INDEX i ON t ((a))", _index(columns=("a",), depends=("a",))),
        (
            "CREATE INDEX i ON t USING brin (a) WITH (pages_per_range = 32)",
            _index(method="brin", columns=("a",), depends=("a",)),
        ),
        (
            "CREATE INDEX i ON t USING gin (a public.ops)",
            _index(method="gin", columns=("a",), depends=("a",), opclasses=("ops",)),
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT i PRIMARY KEY (a) INCLUDE (b)",
            _index(kind="primary key", columns=("a",), include=("b",), depends=("a", "b")),
        ),
        (
            "ALTER TABLE IF EXISTS ONLY t ADD UNIQUE NULLS NOT DISTINCT (a)",
            _index(name=None, kind="unique constraint", columns=("a",), depends=("a",), only=True),
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT i EXCLUDE USING gist (room WITH =, span WITH &&) "
            "WHERE (x > 0)",
            _index(
                kind="exclusion constraint",
                method="gist",
                columns=("room", "span"),
                depends=("room", "span", "x"),
                has_predicate=True,
                predicate_columns=("x",),
            ),
        ),
        (
            "ALTER TABLE t ALTER COLUMN a SET DATA TYPE bigint USING a::bigint",
            SetColumn(table=T, name="a", type="bigint", is_new=False),
        ),
        (
            "ALTER TABLE t ADD COLUMN IF NOT EXISTS a varchar(20) NOT NULL DEFAULT ''",
            SetColumn(
                table=T,
                name="a",
                type="character varying(20)",
                is_new=True,
                default="constant",
                not_null=True,
                if_not_exists=True,
            ),
        ),
        (
            "ALTER TABLE t SET (autovacuum_enabled = off, FILLFACTOR = 70)",
            SetFillfactor(table=T, fillfactor=70),
        ),
        ("ALTER TABLE t RESET (fillfactor)", SetFillfactor(table=T, fillfactor=None)),
        (
            "DROP INDEX CONCURRENTLY IF EXISTS i CASCADE",
            DropIndex(index=NamedRelation(schema=None, name="i"), concurrently=True),
        ),
        (
            "ALTER TABLE t RENAME CONSTRAINT i TO j",
            Rename(what="index", old=NamedRelation(schema=None, name="i"), new="j"),
        ),
        (
            "ALTER TABLE t ALTER a SET EXPRESSION AS (b + c)",
            SetExpression(table=T, name="a", reads=("b", "c")),
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u (id) NOT VALID",
            Work(
                table=T,
                kind="add foreign key",
                other=NamedRelation(schema=None, name="u"),
                **{"name": "f", "columns": ("a",), "referenced": ("id",), "not_valid": True},
            ),
        ),
        ("LOCK t IN SHARE MODE", Work(table=T, kind="lock", mode="SHARE")),
        (
            "ALTER TABLE s.t DROP CONSTRAINT IF EXISTS x",
            DropIndex(index=NamedRelation(schema="s", name="x"), table=S_T),
        ),
        ("ALTER TABLE t DROP a", DropColumn(table=T, name="a")),
        ("ALTER TABLE t RENAME TO u", Rename(what="table", old=T, new="u")),
        ("ALTER TABLE t RENAME a TO b", Rename(what="column", old=T, new="b", column="a")),
        ("ALTER TABLE t SET SCHEMA s", Rename(what="table", old=T, new="t", schema="s")),
        ("ALTER INDEX t RENAME TO u", Rename(what="index", old=T, new="u")),
    ],
)
def test_each_kind_of_statement(text: str, expected: Any) -> None:
    """One statement, one action, with every column that ends HOT by it."""
    # RENAME CONSTRAINT locks the table besides.
    (found,) = (a for a in _actions(text) if isinstance(a, type(expected)))
    if isinstance(found, AddIndex):
        found = replace(found, named_after=())
    assert found == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CREATE UNLOGGED TABLE IF NOT EXISTS t (id int PRIMARY KEY)", "new"),
        ("CREATE TABLE t PARTITION OF p FOR VALUES IN (1)", "new"),
        ("DROP TABLE IF EXISTS t CASCADE", "dropped"),
        (
            "CREATE TRIGGER x BEFORE INSERT OR UPDATE OF a ON t FOR EACH ROW EXECUTE FUNCTION f()",
            "trigger",
        ),
        ("ALTER TABLE p ATTACH PARTITION t FOR VALUES IN (1)", "partition"),
        ("ALTER TABLE p DETACH PARTITION t CONCURRENTLY", "partition"),
    ],
)
def test_what_cannot_be_judged_is_noted(text: str, kind: str) -> None:
    """New tables, triggers, partitions that come and go: said with their table."""
    (action,) = (found for found in _actions(text) if not isinstance(found, Work))
    assert isinstance(action, Remarkable)
    assert (action.kind, action.table) == (kind, T)


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN",
        "COMMIT",
        "SET lock_timeout = '5s'",
        "COMMENT ON TABLE t IS 'CREATE INDEX'",
        "GRANT SELECT ON t TO bob",
        "CREATE EXTENSION pg_trgm",
        "UPDATE t SET a = 1",
        "REINDEX INDEX CONCURRENTLY i",
        "CREATE POLICY p ON t USING (true)",
        "CREATE STATISTICS s ON a, b FROM t",
        "CREATE OR REPLACE VIEW v AS SELECT 1",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $a$ DROP INDEX i; $a$",
        "ALTER TABLE t VALIDATE CONSTRAINT x",
        "ALTER TABLE t ALTER a SET NOT NULL",
        "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u (id) NOT VALID",
        "ALTER TABLE t ADD CHECK (a > 0)",
        "ALTER TABLE t ADD PRIMARY KEY USING INDEX i",
        "ALTER INDEX i SET (fillfactor = 70)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    ],
)
def test_what_does_not_touch_hot_is_of_no_concern(text: str) -> None:
    """No problem, and no action but work on a table: such a statement is understood."""
    assert [action for action in _actions(text) if not isinstance(action, Work)] == []


def test_a_search_path_of_one_schema_stands_before_names() -> None:
    """Migration tools set it, and a table of that name may be in `public` as well."""
    text = (
        "BEGIN; SET LOCAL search_path = app; DROP INDEX i; ALTER TABLE s.t SET (fillfactor = 80);"
        "COMMIT; DROP INDEX i; SET search_path = app; DROP INDEX i; SET search_path = app, public;"
        "DROP INDEX i; SET search_path = app; RESET ALL; DROP INDEX i"
    )
    actions = [action for statement in read_migration(text) for action in statement.actions]
    schemas = [action.index.schema for action in actions if isinstance(action, DropIndex)]
    assert schemas == ["app", None, "app", None, None]
    assert actions[1] == SetFillfactor(table=S_T, fillfactor=80)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("CALL s.p()", "CALL s.p"),
        ("EXECUTE e", "EXECUTE e"),
        ("SELECT create_hypertable('t', 'at')", "function create_hypertable"),
        ("DROP SCHEMA s CASCADE", "DROP SCHEMA"),
        ("ALTER TABLE :name ADD a int", "variable of psql"),
    ],
)
def test_code_that_is_not_seen_is_named(text: str, named: str) -> None:
    """What it does to a table is not known, so it must not pass for a statement without effect."""
    (statement,) = read_migration(text)
    assert named in str(statement.problem)


def test_what_the_core_calls_an_action_is_one() -> None:
    """The core's facts have the names and the fields of actions, all of them."""
    kinds = {type(action) for text in _EVERY for action in _actions(text)}
    assert kinds == set(get_args(Action))


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("\n\nDO $$ BEGIN EXECUTE 'a;b'; END $$;", 3, "what its code does is not known"),
        ("SELECT 1;\n\\i more.sql\n", 2, "psql's \\i is not followed"),
        ("-- first\nCREATE INDEX i ON t (;", 2, "cut off"),
        ("FROBNICATE t;", 1, 'grammar does not know its syntax: syntax error at or near "FROB'),
        ("CREATE INDEX i ON t (a) WHERE b = 'open", 1, "cut off"),
        ("/* open", 1, "cut off"),
        ("ALTER TABLE t SET (fillfactor = 7)", 1, "from 10 to 100"),
    ],
)
def test_what_is_not_understood_is_named_with_its_line(text: str, line: int, why: str) -> None:
    """Never passed over: the line and the reason come out."""
    problems = [s for s in read_migration(text) if s.problem is not None]
    (found,) = problems
    assert found.line == line
    assert why in str(found.problem)


@pytest.mark.parametrize(
    ("text", "since", "named"),
    [
        ("ALTER TABLE jobs ADD CONSTRAINT n NOT NULL owner", 18, "NOT NULL as a constraint"),
        ("ALTER TABLE jobs ADD CONSTRAINT n NOT NULL owner NOT VALID", 18, "NOT NULL as a cons"),
        ("ALTER TABLE jobs ADD v int GENERATED ALWAYS AS (owner) VIRTUAL", 18, "virtual generated"),
        ("ALTER TABLE jobs ADD CHECK (owner > 0) NOT ENFORCED", 18, "NOT ENFORCED"),
        ("ALTER TABLE jobs ADD c int CHECK (c > 0) NOT ENFORCED", 18, "NOT ENFORCED"),
        ("CREATE TABLE n (a int, b tsrange, UNIQUE (a, b WITHOUT OVERLAPS))", 18, "WITHOUT OVERL"),
        ("ALTER TABLE jobs ALTER note SET EXPRESSION AS (note)", 17, "SET EXPRESSION"),
        ("ALTER TABLE jobs ADD CHECK (owner > 0), ADD d int NOT NULL DEFAULT 1", 0, ""),
        ("ALTER TABLE jobs ADD g int GENERATED ALWAYS AS (owner) STORED, ADD UNIQUE (id)", 0, ""),
        ("CREATE TABLE n (a int NOT NULL CHECK (a > 0) REFERENCES jobs)", 0, ""),
    ],
)
def test_syntax_of_a_later_version_is_named(text: str, since: int, named: str) -> None:
    """The grammar is 18's: what a 16 refuses was judged as if it ran there."""
    profile = _observed()
    for version in ("15.18", "16.14", "17.11", "18.4"):
        server = replace(profile.server, version=version)
        found = check_migration(replace(profile, server=server), read_migration(text))
        said = [n.text for n in found.notes if "which came with" in n.text]
        major = int(version[:2])
        assert len(said) == (major < since), version
        assert all(f"PostgreSQL {major} refuses" in s and named in s for s in said)


def test_one_action_that_is_not_understood_does_not_hide_the_others() -> None:
    """ALTER TABLE has many actions; each is read by itself."""
    (found,) = read_migration("ALTER TABLE t ADD UNIQUE (a), FROBNICATE b, SET (fillfactor = 80)")
    assert [type(action) for action in found.actions] == [AddIndex, SetFillfactor]
    assert "FROBNICATE b" in str(found.problem)


_PIECES = ("CREATE INDEX i ON t (a)", "SELECT ';'", 'SELECT ";"', "SELECT $q$;$q$", "SELECT 1")


@given(
    st.lists(st.tuples(st.sampled_from(_PIECES), st.sampled_from(["", "\n", "-- ;\n", "/*;*/"])))
)
def test_statements_keep_their_lines(pieces: list[tuple[str, str]]) -> None:
    """Literals, names and comments with semicolons neither cut a statement nor shift a line."""
    text, expected = "", []
    for statement, before in pieces:
        text += before
        expected.append((text.count("\n") + 1, statement))
        text += statement + ";"
    assert [(found.line, found.text) for found in located(text)] == expected


@given(st.text(alphabet="CREATE INDEX ON t(a);'\"$\\-/*\n,.x", max_size=80))
def test_any_text_is_read(text: str) -> None:
    """Whatever stands in a file, reading it ends, with lines inside the file."""
    for statement in read_migration(text):
        assert 1 <= statement.line <= text.count("\n") + 1


def _observed(**facts: Any) -> Profile:
    profile = made.profile_of(
        made.counters(1000, 1000, 0), classes=[made.a_class(["note"], 1000)], fillfactor=80, **facts
    )
    server = made.seen_of_server(interval_s=10.0)
    return replace(profile, server=replace(profile.server, observed=server))


def _followed(text: str, **facts: Any) -> NamedTables:
    catalog = NamedTables(_observed(**facts))
    follow(catalog, read_migration(text))
    return catalog


def test_edits_change_the_profile_and_a_sample_alike() -> None:
    """Index, column, type, fillfactor, one after another; later statements see earlier ones."""
    catalog = _followed(
        """
        ALTER TABLE public.jobs ADD COLUMN touched timestamptz, ALTER owner TYPE int8;
        ALTER TABLE jobs RENAME COLUMN note TO remark;
        ALTER TABLE jobs RENAME TO tasks;
        CREATE INDEX tasks_remark ON tasks (touched) INCLUDE (remark) WHERE state > 0;
        ALTER TABLE tasks SET (fillfactor = 60);
        DROP INDEX jobs_owner;
        """
    )
    assert [note.line for note in catalog.notes] == [2]  # of keys that nobody has observed
    altered = catalog.altered["jobs"]
    after = edited(altered.table, altered.edits)
    assert after.fillfactor == 60
    assert [(c.name, c.type) for c in after.columns] == [
        ("id", "int8"),
        ("owner", "int8"),
        ("state", "int2"),
        ("note", "text"),
        ("touched", "timestamptz"),
    ]
    assert [index.name for index in after.indexes] == ["jobs_pkey", "jobs_state", "tasks_remark"]
    assert (after.indexes[-1].columns, after.indexes[-1].include) == (
        ("touched",),
        ("note", "state"),
    )


def test_an_index_that_comes_and_goes_is_nothing() -> None:
    """Made and dropped in one migration: no change is left."""
    catalog = _followed("CREATE INDEX i ON jobs (note); DROP INDEX i;")
    assert catalog.altered["jobs"].edits == []


@pytest.mark.parametrize(("schema", "name"), [("public", "jobs_owner"), ("s", "o:dd"), ("s", "i")])
def test_indexes_are_found_by_their_names_in_the_catalog(schema: str, name: str) -> None:
    """A profile writes the schema before a name, and changes what it cannot hold."""
    label = profile_name(name if schema == "public" else f"{schema}.{name}", set())
    index = made.OWNER | {"schema": schema, "name": label}
    profile = made.profile_of(made.counters(10, 10, 0), indexes=[made.PKEY, index], schema=schema)
    index["name"] = name  # in the catalog
    (table,) = profile.tables
    seen = [made.PKEY, index]
    table = replace(table, observed=made.seen_of(table, indexes=seen))
    catalog = NamedTables(
        replace(
            profile,
            tables=(table,),
            server=replace(profile.server, observed=made.seen_of_server()),
        )
    )
    follow(catalog, read_migration(f'DROP INDEX "{schema}"."{name}"'))
    assert [getattr(edit, "label", None) for edit in catalog.altered["jobs"].edits] == [label]


def test_a_constraint_without_a_name_has_postgresqls() -> None:
    """A later statement may drop it by that name."""
    catalog = _followed(
        "ALTER TABLE jobs ADD UNIQUE (owner, state); CREATE INDEX ON jobs (lower(note));"
        "ALTER TABLE jobs DROP CONSTRAINT jobs_owner_state_key; DROP INDEX jobs_lower_idx;"
    )
    assert (catalog.altered["jobs"].edits, catalog.notes) == ([], [])


def test_partitions_are_reached_by_their_parent() -> None:
    """An index on the parent is one on each partition; a fillfactor is none of its own."""
    profile = made.profile_of(made.counters(10, 10, 0), name="jobs_1", schema="s", parent="s.jobs")
    parent = {"schema": "s", "name": "jobs", "parent": None}
    seen = made.seen_of_server(partitioned=[parent], foreign_keys=[])
    catalog = NamedTables(replace(profile, server=replace(profile.server, observed=seen)))
    ddl = (
        "CREATE INDEX i ON s.jobs (note); CREATE INDEX j ON ONLY s.jobs (note);"
        "ALTER TABLE s.jobs SET (fillfactor = 70); ALTER TABLE s.jobs_1 SET (fillfactor = 60);"
        "ALTER TABLE s.jobs DROP CONSTRAINT u;"
    )
    follow(catalog, read_migration(ddl))
    altered = catalog.altered["jobs"]
    assert [type(edit).__name__ for edit in altered.edits] == ["IndexAdded", "FillfactorSet"]
    assert edited(altered.table, altered.edits).fillfactor == 60
    assert [note.text.split(":")[0] for note in catalog.notes] == [
        "an index ON ONLY the partitioned table",
        "PostgreSQL refuses a fillfactor of a partitioned table",
        "constraint u goes",
    ]


def test_a_dropped_column_takes_its_indexes() -> None:
    """The indexes over it go; the key's stays in what is played, for rows are found by it."""
    catalog = _followed("ALTER TABLE jobs DROP COLUMN owner, DROP COLUMN id")
    altered = catalog.altered["jobs"]
    assert [
        (edit.name, edit.label) for edit in altered.edits if isinstance(edit, IndexDropped)
    ] == [
        ("jobs_owner", "jobs_owner"),
        ("jobs_pkey", None),
    ]
    assert [index.name for index in altered.after.indexes] == ["jobs_state"]


def test_names_that_are_not_in_the_profile_are_noted() -> None:
    """Unknown tables, indexes and columns; a table that the migration makes is no such."""
    catalog = _followed(
        "CREATE TABLE fresh (id int); CREATE INDEX ON fresh (id); CREATE INDEX ON gone (a);"
        "DROP INDEX lost; CREATE INDEX i ON jobs (colour);"
    )
    assert [(note.table, note.text.split(":")[0]) for note in catalog.notes] == [
        ("fresh", "a new table"),
        ("gone", "not in the profile"),
        (None, "index lost is not in the profile"),
    ]
    assert catalog.altered["jobs"].open == [
        (1, "an index over colour, which the profile does not have")
    ]
    assert not any(altered.edits for altered in catalog.altered.values())


def test_a_materialized_view_is_a_new_table() -> None:
    """An index of one is an index of what the migration makes."""
    notes = _followed(
        "CREATE MATERIALIZED VIEW busy AS SELECT 1 AS id; CREATE UNIQUE INDEX ON busy (id);"
    ).notes
    assert [(note.table, note.text.split(":")[0]) for note in notes] == [("busy", "a new table")]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE n (LIKE jobs); ALTER TABLE jobs RENAME TO o; ALTER TABLE n RENAME TO jobs;",
        "CREATE TABLE n AS SELECT * FROM jobs; DROP TABLE jobs; ALTER TABLE n RENAME TO jobs;",
        "DROP TABLE jobs; CREATE TABLE jobs (id int PRIMARY KEY, note text);",
    ],
)
def test_a_table_that_takes_anothers_place_is_not_judged(text: str) -> None:
    """
    A table of sessions was copied, swapped and indexed over what updates assign: "as before".

    The application's updates go to whatever has the name.
    """
    (altered,) = _followed(f"{text} CREATE INDEX ON jobs (note);").altered.values()
    assert [said for _, said in altered.open] == [
        "another table takes its name, of which nothing was observed"
    ]
    other = _followed("CREATE TABLE a (id int); ALTER TABLE a RENAME TO b; DROP TABLE b;").notes
    assert all(note.is_judged for note in other)


@pytest.mark.parametrize(
    ("text", "is_another"),
    [
        ("ALTER TABLE jobs RENAME note TO o; ALTER TABLE jobs ADD note text;", True),
        ("ALTER TABLE jobs DROP note, ADD note text;", True),
        ("ALTER TABLE jobs RENAME note TO o; ALTER TABLE jobs RENAME state TO note;", True),
        ("ALTER TABLE jobs RENAME state TO o; ALTER TABLE jobs ADD state int;", False),
        ("ALTER TABLE jobs RENAME note TO o;", False),
        ("ALTER TABLE jobs RENAME note TO o; ALTER TABLE jobs RENAME o TO note;", False),
    ],
)
def test_another_column_under_an_assigned_name_is_not_judged(text: str, is_another: bool) -> None:
    """Statements name columns: `SET note = ...` assigns whatever has the name in the end."""
    (altered,) = _followed(text).altered.values()
    assert any("another column" in said for _, said in altered.open) == is_another


def test_brin_keeps_its_method_and_others_stand_as_btrees() -> None:
    """What ends HOT is right for each; pages of others are not played."""
    catalog = _followed(
        "CREATE INDEX b ON jobs USING brin (note); CREATE INDEX g ON jobs USING gin (note)"
    )
    edits = catalog.altered["jobs"].edits
    assert [(e.index.method, e.kind) for e in edits if isinstance(e, IndexAdded)] == [
        ("brin", "index (brin)"),
        ("btree", "index (gin)"),
    ]


@pytest.mark.parametrize(
    ("spelled", "kind", "width"),
    [
        ("INT", "int4", None),
        ("BIGSERIAL", "int8", None),
        ("TIMESTAMPTZ", "timestamptz", None),
        ("DATE", "date", None),
        ("UUID", "uuid", None),
        ("JSONB", "text", 32),
        ("VARCHAR(8)", "text", 8),
        ("my_enum", "text", 32),
        ("CHAR(5)", "bpchar(5)", None),
        ("DECIMAL(10, 2)", "numeric", None),
    ],
)
def test_new_columns_have_the_length_of_their_type(
    spelled: str, kind: str, width: int | None
) -> None:
    """A profile has few types; what stands for another has its bytes, or assumed ones."""
    column, assumed = stand_in("c", spelled)
    assert column.type == kind
    assert (None if column.width is None else column.width.max_bytes) == width
    assert (assumed is not None) is (width in (8, 32))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no statement"),
        ("-- only a comment\n", "no statement"),
        ("add an index", "no statement of the migration is understood; the first, line 1"),
    ],
)
def test_nothing_to_check_is_an_error(text: str, said: str) -> None:
    """A check of nothing must not pass."""
    with pytest.raises(InputError, match=said):
        check_migration(_observed(), read_migration(text))


@pytest.mark.parametrize("text", ["DO $$ x $$;", "SELECT make_my_index();"])
def test_code_alone_is_said_and_no_mistake_of_the_user(text: str) -> None:
    """It ended with exit code 2, without --strict too."""
    found = check_migration(_observed(), read_migration(text))
    assert found.to_json()["not_understood"]
    assert found.strict_findings


def test_profiles_that_cannot_tell_are_refused() -> None:
    """Written by hand, masked, of a standby or an idle time, where nothing is counted."""
    statements = read_migration("CREATE INDEX i ON jobs (note)")
    plain = made.profile_of(made.counters(10, 10, 0))
    with pytest.raises(InputError, match="not made by"):
        check_migration(plain, statements)
    observed = _observed()
    for field in ("masked", "in_recovery", "is_idle"):
        facts = made.seen_of_server(**{field: True})
        other = replace(observed, server=replace(observed.server, observed=facts))
        with pytest.raises(InputError, match=r"is masked|of a standby|nothing was written"):
            check_migration(other, statements)
