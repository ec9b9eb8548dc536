//! What each kind of DDL does, as recorded; and that every text is answered.

use pgheadroom_sql::facts::Fact;
use pgheadroom_sql::lexer::Options;
use pgheadroom_sql::{SqlError, columns, facts_of, normal, split, writes};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Facts as JSON, without fields that are null, false or empty, and without versions.
fn facts(text: &str) -> Vec<Value> {
    let found = facts_of(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    found
        .iter()
        .filter(|fact| !matches!(fact, Fact::Newer { .. }))
        .map(|fact| {
            let mut value = serde_json::to_value(fact).unwrap();
            let fields = value.as_object_mut().unwrap();
            fields.retain(|_, inside| {
                *inside != json!(null) && *inside != json!(false) && *inside != json!([])
            });
            for inside in fields.values_mut() {
                if let Some(name) = inside.get("name") {
                    let schema = inside["schema"].as_str();
                    *inside = json!(
                        schema.map_or(String::new(), |s| format!("{s}.")) + name.as_str().unwrap()
                    );
                }
            }
            value
        })
        .collect()
}

#[test]
fn what_depends_on_what_is_there_says_so() {
    let shown = |text: &str| -> Vec<Value> {
        facts(text)
            .into_iter()
            .map(|fact| {
                let keys = ["action", "kind", "if_not_exists", "if_exists", "comes_with"];
                keys.iter()
                    .filter_map(|key| fact.get(key).map(|found| (key.to_string(), found.clone())))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            })
            .collect()
    };
    assert_eq!(
        shown(
            "ALTER TABLE t ADD COLUMN IF NOT EXISTS a int UNIQUE CHECK (a > 0) REFERENCES p, \
             ADD UNIQUE (b), ADD c int UNIQUE, DROP COLUMN IF EXISTS d, DROP e"
        ),
        [
            json!({"action": "SetColumn", "if_not_exists": true}),
            json!({"action": "AddIndex", "kind": "unique constraint", "comes_with": "a"}),
            json!({"action": "Work", "kind": "add check", "comes_with": "a"}),
            json!({"action": "Work", "kind": "add foreign key", "comes_with": "a"}),
            json!({"action": "AddIndex", "kind": "unique constraint"}),
            json!({"action": "SetColumn"}),
            json!({"action": "AddIndex", "kind": "unique constraint"}),
            json!({"action": "DropColumn", "if_exists": true}),
            json!({"action": "DropColumn"}),
        ]
    );
    for text in [
        "CREATE TABLE IF NOT EXISTS n (a int)",
        "CREATE TABLE IF NOT EXISTS n AS SELECT 1",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS n AS SELECT 1",
    ] {
        let expected = json!({"action": "Remarkable", "kind": "new", "if_not_exists": true});
        assert_eq!(shown(text), [expected], "{text}");
    }
}

#[test]
fn indexes_say_all_that_they_read() {
    for (text, expected) in [
        (
            "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON ONLY s.t (a DESC NULLS LAST, \
             lower(b) COLLATE \"C\" text_pattern_ops, (c)) INCLUDE (d) NULLS NOT DISTINCT WITH \
             (fillfactor = 70) WHERE f > 'x;'",
            json!({"action": "AddIndex", "table": "s.t", "name": "i", "kind": "index",
                "method": "btree", "columns": ["a", "c"], "include": ["d"],
                "depends": ["a", "b", "c", "d", "f"], "has_expressions": true,
                "has_predicate": true, "fillfactor": 70, "only": true,
                "opclasses": ["", "text_pattern_ops", ""],
                "expression_columns": ["b"], "predicate_columns": ["f"],
                "named_after": ["a", "lower", "c", "d"],
                "concurrently": true, "if_not_exists": true}),
        ),
        (
            "CREATE INDEX ON t USING gin (a, b s.ops) WITH (fastupdate)",
            json!({"action": "AddIndex", "table": "t", "kind": "index", "method": "gin",
                "columns": ["a", "b"], "depends": ["a", "b"], "named_after": ["a", "b"],
                "opclasses": ["", "ops"], "fastupdate": true}),
        ),
        (
            "CREATE INDEX ON t USING brin ((f(t.*)), (t IS NOT NULL), (a + 1))",
            json!({"action": "AddIndex", "table": "t", "kind": "index", "method": "brin",
                "depends": ["t", "a"], "has_expressions": true, "expression_columns": ["t", "a"],
                "named_after": ["f", null, null], "whole_row": true, "may_be_row": true}),
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT x EXCLUDE USING gist (room WITH =, lower(a) WITH =) \
             WHERE (b > 0)",
            json!({"action": "AddIndex", "table": "t", "name": "x", "method": "gist",
                "kind": "exclusion constraint", "columns": ["room"],
                "depends": ["room", "a", "b"], "has_expressions": true, "has_predicate": true,
                "named_after": ["room", "lower"],
                "expression_columns": ["a"], "predicate_columns": ["b"]}),
        ),
        (
            "ALTER TABLE ONLY t ADD CONSTRAINT x PRIMARY KEY (a, b) INCLUDE (c) WITH \
             (fillfactor = 80)",
            json!({"action": "AddIndex", "table": "t", "name": "x", "method": "btree",
                "kind": "primary key", "columns": ["a", "b"], "include": ["c"],
                "named_after": ["a", "b", "c"],
                "depends": ["a", "b", "c"], "fillfactor": 80, "only": true}),
        ),
        (
            "ALTER TABLE t ADD UNIQUE (a, b WITHOUT OVERLAPS)",
            json!({"action": "AddIndex", "table": "t", "method": "gist",
                "named_after": ["a", "b"],
                "kind": "unique constraint", "columns": ["a", "b"], "depends": ["a", "b"]}),
        ),
    ] {
        assert_eq!(facts(text), [expected], "{text}");
    }
}

#[test]
fn columns_say_what_decides_a_rewrite() {
    let column = |text: &str| facts(&format!("ALTER TABLE t {text}")).remove(0);
    for (text, field, expected) in [
        ("ADD a int", "type", json!("integer")),
        (
            "ADD a varchar(20)[]",
            "type",
            json!("character varying(20)[]"),
        ),
        ("ADD a numeric(10, 2)", "type", json!("numeric(10,2)")),
        (
            "ADD a timestamptz(3)",
            "type",
            json!("timestamp(3) with time zone"),
        ),
        (
            "ADD a interval day to second (3)",
            "type",
            json!("interval(3)"),
        ),
        ("ADD a double precision", "type", json!("double precision")),
        ("ADD a \"S\".\"T\"", "type", json!("\"S\".\"T\"")),
        ("ADD a char", "type", json!("character(1)")),
        ("ADD a int", "default", json!("none")),
        ("ADD a int DEFAULT NULL", "default", json!("none")),
        ("ADD a int DEFAULT 1 + 2", "default", json!("constant")),
        (
            "ADD a text DEFAULT lower('A')",
            "default",
            json!("constant"),
        ),
        (
            "ADD a date DEFAULT CURRENT_DATE",
            "default",
            json!("stable"),
        ),
        ("ADD a date DEFAULT now()::date", "default", json!("stable")),
        (
            "ADD a float DEFAULT random() * 2",
            "default",
            json!("volatile"),
        ),
        (
            "ADD a uuid DEFAULT gen_random_uuid()",
            "default",
            json!("volatile"),
        ),
        ("ADD a bigserial", "default", json!("volatile")),
        (
            "ADD a int GENERATED BY DEFAULT AS IDENTITY",
            "default",
            json!("volatile"),
        ),
        ("ADD a text DEFAULT mine.f()", "default", json!("unknown")),
        ("ADD a int NOT NULL DEFAULT 0", "not_null", json!(true)),
        (
            "ADD a int GENERATED ALWAYS AS (b + lower(c)) STORED",
            "generated",
            json!("stored"),
        ),
        (
            "ADD a int GENERATED ALWAYS AS (b + c) VIRTUAL",
            "generated",
            json!("virtual"),
        ),
        (
            "ADD a int GENERATED ALWAYS AS (b + c)",
            "reads",
            json!(["b", "c"]),
        ),
        (
            "ALTER a TYPE bigint USING a::bigint",
            "has_using",
            json!(null),
        ),
        ("ALTER a TYPE bigint USING b + 1", "has_using", json!(true)),
        (
            "ALTER a SET DATA TYPE text COLLATE \"C\"",
            "collation",
            json!("C"),
        ),
        ("ALTER a SET EXPRESSION AS (b * 2)", "reads", json!(["b"])),
    ] {
        assert_eq!(column(text)[field], expected, "{text}");
    }
    let behind = facts("ALTER TABLE t ADD a int UNIQUE CHECK (a > 0) REFERENCES s.u (id)");
    let kinds: Vec<_> = behind.iter().map(|fact| fact["kind"].clone()).collect();
    assert_eq!(
        kinds[1..],
        [
            json!("unique constraint"),
            json!("add check"),
            json!("add foreign key")
        ]
    );
    assert_eq!(behind[3]["other"], "s.u");
}

#[test]
fn each_kind_of_statement_has_its_facts() {
    let shown = |text: &str| -> Vec<String> {
        facts(text)
            .iter()
            .map(|fact| {
                let mut words: Vec<String> = Vec::new();
                for field in [
                    "action",
                    "kind",
                    "what",
                    "table",
                    "old",
                    "name",
                    "index",
                    "new",
                    "column",
                    "schema",
                    "other",
                    "fillfactor",
                    "mode",
                    "text",
                ] {
                    match &fact[field] {
                        Value::Null => {}
                        Value::String(text) => words.push(text.clone()),
                        other => words.push(other.to_string()),
                    }
                }
                for field in ["concurrently", "not_valid", "local"] {
                    if fact[field] == json!(true) {
                        words.push(field.to_owned());
                    }
                }
                words.join(" ")
            })
            .collect()
    };
    for (text, expected) in [
        (
            "DROP INDEX CONCURRENTLY i, s.j",
            vec!["DropIndex i concurrently", "DropIndex s.j concurrently"],
        ),
        (
            "ALTER TABLE s.t DROP CONSTRAINT IF EXISTS x",
            vec!["DropIndex s.t s.x"],
        ),
        (
            "ALTER TABLE t DROP COLUMN a, DROP b",
            vec!["DropColumn t a", "DropColumn t b"],
        ),
        (
            "ALTER TABLE t SET (autovacuum_enabled = off, FILLFACTOR = '70')",
            vec!["Work storage parameter t", "SetFillfactor t 70"],
        ),
        ("ALTER TABLE t RESET (fillfactor)", vec!["SetFillfactor t"]),
        (
            "ALTER TABLE t SET (toast.autovacuum_enabled = off)",
            vec!["Work storage parameter t"],
        ),
        ("ALTER TABLE s.t RENAME TO u", vec!["Rename table s.t u"]),
        (
            "ALTER TABLE t RENAME COLUMN a TO b",
            vec!["Rename column t b a"],
        ),
        ("ALTER INDEX s.i RENAME TO j", vec!["Rename index s.i j"]),
        (
            "ALTER TABLE s.t RENAME CONSTRAINT i TO j",
            vec!["Rename index s.i j", "Work rename s.t"],
        ),
        ("ALTER VIEW v RENAME TO w", vec![]),
        ("ALTER TABLE t SET SCHEMA s", vec!["Rename table t t s"]),
        (
            "ALTER TABLE t ADD CONSTRAINT x UNIQUE USING INDEX i",
            vec!["Work unique using index t i", "Rename index i x"],
        ),
        (
            "ALTER TABLE s.t ADD PRIMARY KEY USING INDEX i",
            vec!["Work primary key using index s.t s.i"],
        ),
        (
            "ALTER TABLE t CLUSTER ON i, SET WITHOUT CLUSTER",
            vec!["Work set clustering t", "Work set clustering t"],
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID",
            vec!["Work add check t not_valid"],
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT n NOT NULL a",
            vec!["Work add not null t a"],
        ),
        (
            "ALTER TABLE t ALTER a SET NOT NULL, VALIDATE CONSTRAINT x",
            vec!["Work set not null t a", "Work validate constraint t"],
        ),
        (
            "ALTER TABLE t ALTER a DROP EXPRESSION",
            vec!["SetExpression t a"],
        ),
        (
            "ALTER TABLE p DETACH PARTITION s.t CONCURRENTLY",
            vec![
                "Remarkable partition s.t it is detached: indexes of the partitioned table are not \
             followed there",
                "Work detach partition p s.t concurrently",
            ],
        ),
        ("TRUNCATE a, b", vec!["Work truncate a", "Work truncate b"]),
        ("LOCK TABLE t IN SHARE MODE", vec!["Work lock t SHARE"]),
        ("LOCK t", vec!["Work lock t ACCESS EXCLUSIVE"]),
        ("VACUUM FULL t", vec!["Work vacuum full t"]),
        ("VACUUM (FULL, ANALYZE)", vec!["Work vacuum full"]),
        ("VACUUM (FULL false) t", vec!["Work vacuum t"]),
        ("ANALYZE s.t (a)", vec!["Work analyze s.t"]),
        ("VACUUM", vec![]),
        (
            "CREATE TABLE c PARTITION OF s.p FOR VALUES IN (1)",
            vec![
                "Remarkable new c a new table: nothing was observed of it",
                "Work new partition s.p c",
            ],
        ),
        ("CLUSTER s.t USING i", vec!["Work cluster s.t s.i"]),
        (
            "REINDEX INDEX CONCURRENTLY i",
            vec!["Work reindex i concurrently"],
        ),
        ("REINDEX TABLE t", vec!["Work reindex t"]),
        ("REINDEX DATABASE d", vec!["Work reindex"]),
        ("REINDEX SYSTEM d", vec![]),
        ("DROP TRIGGER x ON s.t", vec!["Work other s.t"]),
        ("SET search_path = app", vec!["SearchPath app"]),
        (
            "SET LOCAL search_path TO app, public",
            vec!["SearchPath local"],
        ),
        ("SET lock_timeout = '5s'", vec![]),
        ("COMMIT", vec!["TransactionEnd"]),
        ("BEGIN", vec![]),
        (
            "CREATE RULE r AS ON INSERT TO t DO INSTEAD NOTHING",
            vec!["Work rule t"],
        ),
        (
            "CREATE TRIGGER x AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()",
            vec!["Work set trigger t"],
        ),
        (
            "CREATE TABLE t (a int REFERENCES u)",
            vec![
                "Remarkable new t a new table: nothing was observed of it",
                "Work add foreign key t a u",
            ],
        ),
        (
            "CREATE SCHEMA s CREATE INDEX i ON t (a)",
            vec!["AddIndex index t i"],
        ),
        ("EXPLAIN ANALYZE SELECT 1", vec![]),
        ("SELECT lower(a), count(*) FROM t", vec![]),
        (
            "INSERT INTO t VALUES (now(), nextval('s'), lower('A'), gen_random_uuid(), \
             public.uuid_generate_v4(), crypt('a', gen_salt('bf')), CURRENT_DATE)",
            vec![],
        ),
        ("UPDATE t SET a = coalesce(a, 1)", vec![]),
        ("COPY t FROM STDIN", vec![]),
        ("DELETE FROM mine.pg_index", vec![]),
        ("SELECT count(*) FROM pg_index", vec![]),
        ("DROP VIEW v CASCADE", vec![]),
        ("DROP TYPE x", vec![]),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_is_not_seen_is_a_problem_with_its_name() {
    for (text, named) in [
        ("DO $$ BEGIN EXECUTE 'DROP TABLE t'; END $$", "DO:"),
        ("CALL s.p(1)", "CALL s.p:"),
        ("EXECUTE x", "EXECUTE x:"),
        (
            "SELECT create_hypertable('t', 'at')",
            "function create_hypertable:",
        ),
        ("SELECT lower(my.f(1)), g()", "functions my.f, g:"),
        ("EXPLAIN ANALYZE EXECUTE x", "EXECUTE x:"),
        ("INSERT INTO t SELECT f(a) FROM u", "function f:"),
        ("UPDATE t SET a = s.f(a)", "function s.f:"),
        ("DELETE FROM t WHERE f(a)", "function f:"),
        (
            "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED AND f(u.a) THEN DELETE",
            "function f:",
        ),
        ("DECLARE c CURSOR FOR SELECT f(1)", "function f:"),
        ("COPY (SELECT f(1)) TO STDOUT", "function f:"),
        (
            "UPDATE pg_index SET indisvalid = false",
            "writes to pg_index",
        ),
        (
            "WITH d AS (DELETE FROM pg_catalog.pg_depend RETURNING 1) SELECT 1 FROM d",
            "writes to pg_depend",
        ),
        ("COPY pg_catalog.pg_class FROM STDIN", "writes to pg_class"),
        (
            "ALTER TABLE ALL IN TABLESPACE a SET TABLESPACE b",
            "tablespace a",
        ),
        ("DROP SCHEMA s CASCADE", "DROP SCHEMA"),
        ("DROP TYPE x CASCADE", "DROP TYPE"),
        ("ALTER SCHEMA s RENAME TO r", "schema"),
        (
            "ALTER TABLE t SET (fillfactor = 7)",
            "fillfactor 7: expected a whole number",
        ),
        (
            "ALTER TABLE t ADD UNIQUE (a), FROBNICATE b, SET (fillfactor = 80)",
            "FROBNICATE b:",
        ),
    ] {
        let found = facts(text);
        let problems: Vec<&str> = found
            .iter()
            .filter(|f| f["action"] == "Problem")
            .filter_map(|f| f["text"].as_str())
            .collect();
        assert_eq!(problems.len(), 1, "{text}: {found:?}");
        assert!(problems[0].contains(named), "{text}: {problems:?}");
    }
    let found = facts("ALTER TABLE t ADD UNIQUE (a), FROBNICATE b, SET (fillfactor = 80)");
    assert_eq!(found.len(), 3);
    for text in [
        "FROBNICATE t",
        "CREATE INDEX i ON t (",
        "REPACK t",
        "ALTER TABLE t FROBNICATE",
    ] {
        assert!(facts_of(text).is_err());
    }
}

const WORDS: [&str; 40] = [
    "UPDATE",
    "t",
    "SET",
    "a",
    "=",
    "1",
    "WHERE",
    "'x",
    "'",
    "$1",
    "(",
    ")",
    ",",
    ";",
    "$$",
    "--",
    "\n",
    "/*",
    "*/",
    "\"",
    "WITH",
    "AS",
    "SELECT",
    "FROM",
    "INSERT INTO",
    "VALUES",
    "CREATE INDEX",
    "ON",
    "ALTER TABLE",
    "ADD",
    "int",
    "DROP",
    "CASE",
    "END",
    "\\d",
    ":v",
    "é",
    "\0",
    "E'\\",
    "[",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_text_is_answered(words in prop::collection::vec(0..WORDS.len(), 0..25)) {
        let text: Vec<&str> = words.into_iter().map(|word| WORDS[word]).collect();
        let text = text.join(" ");
        for part in split::split(&text, Options { commands: true, variables: true }) {
            prop_assert!(part.begin < part.end && part.end <= text.len());
            let _ = writes::writes_of(&part.text);
            let _ = facts_of(&part.text);
            let _ = columns::expression(&part.text, "t");
        }
        // A text without its constants has none to put away.
        if let Ok(found) = normal::normalized(&text, Options::default()) {
            for one in found {
                let again = normal::normalized(&one, Options::default());
                prop_assert_eq!(again, Ok(vec![one]));
            }
        }
    }

    #[test]
    fn any_characters_are_answered(text in "\\PC{0,60}") {
        let _ = facts_of(&text);
        let _ = writes::writes_of(&text);
    }

    /// Two lexers of one language: where the grammar's splitter gives an answer, ours is the same.
    #[test]
    fn statements_end_where_the_grammar_ends_them(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "SELECT 1", "SELECT ';'", "SELECT E'\\';'", "SELECT $q$;$q$", "SELECT $$;$$",
            "SELECT \";\"",
            "SELECT 'a'\n';'", "SELECT U&'\\003B'", "SELECT a$b$ FROM t",
            "SELECT /* ; /* ; */ ; */ 2",
            "CREATE RULE r AS ON UPDATE TO t DO ALSO (DELETE FROM u; DELETE FROM v)",
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE 1 WHEN 1 THEN 2 END; END",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1;'", "SELECT 1 -- ;\n",
            "BEGIN", "END",
            "SELECT 1.5e3, .5, 0x1F, a[1:2], $1",
        ]), 1..8)
    ) {
        let text = pieces.join(";\n");
        let ours: Vec<String> = split::split(&text, Options::default())
            .into_iter()
            .map(|part| text[part.begin..part.end].to_owned())
            .collect();
        let theirs: Vec<String> = pg_query::split_with_parser(&text)
            .unwrap()
            .into_iter()
            .map(|part| part.trim().to_owned())
            .collect();
        let without = |texts: Vec<String>| -> Vec<String> {
            texts.into_iter().map(|one| one.trim_end_matches("-- ;").trim().to_owned()).collect()
        };
        prop_assert_eq!(without(ours), without(theirs));
    }
}

#[test]
fn a_text_that_is_too_long_is_refused_before_it_is_parsed() {
    let text = format!("SELECT '{}'", "x".repeat(17 * 1024 * 1024));
    assert!(matches!(
        writes::writes_of(&text),
        Err(SqlError::TooLong { .. })
    ));
}
