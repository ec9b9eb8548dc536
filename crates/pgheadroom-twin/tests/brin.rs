//! BRIN indexes in whole runs, where versions differ and where a server would fail.

use std::ops::RangeInclusive;

use pgheadroom_layout::{HeapFillfactor, PgVersion};
use pgheadroom_twin::clock::Pace;
use pgheadroom_twin::executor::{
    Action, Assignment, Assignments, Change, ColumnDefinition, Database, IndexDefinition, IndexKey,
    IndexMethod, Relation, SessionId, StatementError, TableDefinition, TableId, VacuumStep,
};
use pgheadroom_twin::expression::Expression;
use pgheadroom_twin::profile::{Monitor, ProfileError, ProfileSpec};
use pgheadroom_twin::run::support::check;
use pgheadroom_twin::run::{Conditions, Outcome, Timing, play};
use pgheadroom_twin::vacuum::VacuumOptions;
use pgheadroom_twin::value::{Text, Value, ValueError};
use pgheadroom_twin::wal::{RecordType, WalSettings};

const NUMBER: &str = r#"{"name": "n", "type": "int4", "null_frac": 0,
    "values": {"kind": "random", "ndistinct": 1000}}"#;
const INSERT: &str = r#"{"table": "t", "weight": 1, "rows_per_statement": 1, "abort_frac": 0,
    "kind": "insert"}"#;
const UPDATE: &str = r#"{"table": "t", "weight": 1, "rows_per_statement": 1, "abort_frac": 0,
    "kind": "update", "sets": {"n": {"changed_frac": 1}}, "pick": {"distribution": "uniform"},
    "find": "index"}"#;

/// A table of so many rows with a VACUUM in the middle of 3,000 operations.
fn profile(rows: u32, columns: &str, brins: &str, operations: &str) -> ProfileSpec {
    let text = format!(
        r#"{{"schema_version": 1, "server": {{"version": "18.4", "shared_buffers": "128MB",
        "full_page_writes": true, "wal_level": "replica", "wal_compression": "off",
        "wal_log_hints": false, "autovacuum": false, "settings": {{}}}},
        "table": [{{"name": "t", "rows": {rows}, "fillfactor": 100, "reloptions": {{}},
        "columns": [
            {{"name": "id", "type": "int4", "values": {{"kind": "serial"}}, "null_frac": 0}},
            {columns}],
        "indexes": [{{"name": "t_pkey", "columns": ["id"], "unique": true, "method": "btree"}},
            {brins}]}}],
        "operation": [{operations}],
        "run": {{"operations": 3000, "clients": 1, "seed": 5,
        "maintenance": [{{"do": "vacuum", "table": "t", "at_frac": 0.5}}]}}}}"#,
    );
    ProfileSpec::from_json(&text).unwrap()
}

fn run(spec: &ProfileSpec, version: &str) -> Result<Outcome, ProfileError> {
    let version = version.parse().unwrap();
    let played = play(spec, version, &Conditions::default(), &Monitor::default());
    played.map(|(_, outcome)| outcome)
}

fn records(outcome: &Outcome, wanted: &str) -> u64 {
    let mut found = outcome.by_record.iter().filter(|(name, _)| name == wanted);
    found.next().map_or(0, |(_, totals)| totals.wal_records)
}

/// To 16 CREATE INDEX summarises no range behind the last row of a partial index.
///
/// Seen on servers: these numbers. What happened: none and 69 on 15.18.
#[test]
fn a_partial_index_ends_where_its_rows_do() {
    let brins = r#"{"name": "b", "columns": ["n"], "unique": false, "method": "brin",
            "where": "id < 5000", "pages_per_range": 4},
        {"name": "b2", "columns": ["n"], "unique": false, "method": "brin",
            "where": "id > 20100", "pages_per_range": 4}"#;
    let spec = profile(20_000, NUMBER, brins, &[INSERT, UPDATE].join(", "));
    for (version, inserted, updated) in [
        ("15.18", 2, 49),
        ("16.14", 2, 50),
        ("17.12", 0, 70),
        ("18.4", 0, 70),
    ] {
        let outcome = run(&spec, version).unwrap();
        let found = ["BRIN/INSERT", "BRIN/SAMEPAGE_UPDATE"].map(|name| records(&outcome, name));
        assert_eq!(found, [inserted, updated], "{version}");
    }
}

/// What an expression is has to be known of a row that no range summarises yet: a server divides by
/// zero at its insertion.
#[test]
fn rows_behind_the_ranges_are_evaluated() {
    let brin = r#"{"name": "b", "expressions": ["100 / (id - 3000)"], "unique": false,
        "method": "brin", "columns": [], "pages_per_range": 4}"#;
    let error = run(&profile(1000, NUMBER, brin, INSERT), "18.4").unwrap_err();
    assert!(error.to_string().contains("divides by zero"), "{error}");
}

/// 32 columns of long strings, most of them NULL, and a BRIN over those of rows behind `after`: two
/// different strings a column are more than a page of the index takes.
fn long_summaries(rows: u32, after: u32) -> ProfileSpec {
    let names: Vec<String> = (0..32).map(|number| format!("c{number}")).collect();
    let column = |name: &String| {
        format!(
            r#"{{"name": "{name}", "type": "text", "width": {{"min_bytes": 130, "max_bytes": 130}},
            "values": {{"kind": "random", "ndistinct": 1000}}, "null_frac": 0.8}}"#
        )
    };
    let columns: Vec<String> = names.iter().map(column).collect();
    let brin = format!(
        r#"{{"name": "b", "columns": {names:?}, "unique": false, "method": "brin",
            "where": "id > {after}", "pages_per_range": 16}}"#
    );
    profile(rows, &columns.join(", "), &brin, INSERT)
}

/// A server says "index row size 8528 exceeds maximum 8152", or the like, at CREATE INDEX and at an
/// INSERT; so does the twin, by the index's name.
#[test]
fn a_summary_above_a_page_is_refused() {
    let said = "exceeds maximum 8152 for index \"b\": leave columns out of it";
    let error = run(&long_summaries(160, 0), "18.4").unwrap_err();
    assert!(
        matches!(
            &error,
            ProfileError::StatementFails { table, transaction: 0, reason }
                if table == "t" && reason.contains(said)
        ),
        "{error}"
    );
    let error = run(&long_summaries(80, 81), "18.4").unwrap_err();
    assert!(
        matches!(
            &error,
            ProfileError::StatementFails { table, transaction: 2.., reason }
                if table == "t" && reason.contains(said)
        ),
        "{error}"
    );
}

/// What happened: a VACUUM that summarised a range of long strings ended the twin with a failed
/// check. Why: a server's VACUUM ends there too, which nothing could say. Fix: it ends the run with
/// the server's words.
#[test]
fn a_summary_above_a_page_ends_a_vacuum() {
    for version in ["15.18", "18.4"] {
        let error = run(&long_summaries(1000, 1400), version).unwrap_err();
        let ProfileError::StatementFails {
            reason,
            transaction: 1500,
            table,
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(table, "t");
        let begins = "while VACUUM cleans up index \"b\": index row size ";
        assert!(reason.starts_with(begins), "{reason}");
        assert!(
            reason.contains("exceeds maximum 8152 for index \"b\""),
            "{reason}"
        );
    }
}

/// Autovacuum says it in a server's log, and nothing stops: each range fails once, since its
/// placeholder stays, and the VACUUM behind the last one is the first that is counted. Seen on
/// servers by `tests/postgres/test_brin_fails.py`.
#[test]
fn a_summary_above_a_page_does_not_end_autovacuum() {
    let mut spec = long_summaries(1000, 1400);
    spec.run.maintenance.clear();
    spec.server.autovacuum = true;
    spec.server.autovacuum_naptime_s = Some(1.0);
    let conditions = Conditions {
        timing: Some(Timing {
            pace: Pace::Even { per_s: 100.0 },
            windows: 0,
            drives_server: true,
        }),
        ..Conditions::default()
    };
    let version = "18.4".parse().unwrap();
    let (_, outcome) = play(&spec, version, &conditions, &Monitor::default()).unwrap();
    let maintained = &outcome.happened.as_ref().unwrap().maintained;
    assert!(maintained.iter().any(|done| !done.is_vacuum), "it analyzes");
    let placeholders = records(&outcome, "BRIN/INSERT");
    let summaries = records(&outcome, "BRIN/SAMEPAGE_UPDATE") + records(&outcome, "BRIN/UPDATE");
    assert!(placeholders > summaries, "{placeholders} and {summaries}");
}

/// A table whose BRIN over `a / b` has ranges of so many pages: 100 rows that it has summarised,
/// 100 more, and three sessions, of which the first one inserts key 1000 and holds it.
fn divided(pages_per_range: u32) -> (Database, TableId) {
    let version: PgVersion = "18.4".parse().unwrap();
    let settings = WalSettings {
        full_page_writes: true,
        hints_are_logged: true,
        is_logical: false,
    };
    let mut db = Database::new(version.behaviour(), settings);
    let columns = [
        ("id", "int4"),
        ("a", "int4"),
        ("b", "int4"),
        ("pad", "bpchar(500)"),
    ];
    let columns: Vec<_> = columns
        .iter()
        .map(|(name, of)| ColumnDefinition::new(name, of).unwrap())
        .collect();
    let quotient = Expression::parse("a / b", &columns).unwrap();
    let definition = TableDefinition {
        columns,
        indexes: vec![IndexDefinition::on_columns(vec![0], true)],
        fillfactor: HeapFillfactor::new(100).unwrap(),
    };
    let table = db.create_table(definition).unwrap();
    insert(&mut db, table, 1..=100);
    let ranges = IndexDefinition {
        name: "er".to_owned(),
        method: IndexMethod::Brin,
        keys: vec![IndexKey::Expression(quotient)],
        pages_per_range,
        ..IndexDefinition::on_columns(vec![0], false)
    };
    db.create_index(table, ranges).unwrap();
    insert(&mut db, table, 101..=200);
    db.insert(table, &divided_row(1000, 1)).unwrap();
    db.open_session();
    db.open_session();
    (db, table)
}

fn divided_row(id: i64, b: i64) -> [Value; 4] {
    let pad = Value::Text(Text::padded(b'x', 500));
    [id.into(), 1.into(), b.into(), pad]
}

fn insert(db: &mut Database, table: TableId, ids: RangeInclusive<i64>) {
    for id in ids {
        db.insert(table, &divided_row(id, 1)).unwrap();
    }
    db.commit();
}

const HOLDS: SessionId = SessionId(0);
const WAITS: SessionId = SessionId(1);
const VACUUMS: SessionId = SessionId(2);

/// A row that cannot be evaluated, whose insertion waits at another index: VACUUM comes to it
/// first, and ends there; the next one finds the placeholder. Seen on servers, as above.
///
/// What happened: the twin ended with a failed check.
#[test]
fn a_row_that_waits_ends_a_vacuum() {
    let (mut db, table) = divided(1);
    db.switch_to(WAITS);
    let waiting = db.insert(table, &divided_row(1000, 0));
    assert!(
        matches!(waiting, Err(StatementError::Waits(_))),
        "{waiting:?}"
    );
    db.switch_to(VACUUMS);
    insert(&mut db, table, 201..=300);
    let error = db.vacuum(table).unwrap_err();
    assert!(
        matches!(&error, StatementError::Vacuum { index, error }
            if index == "er" && **error == StatementError::Value(ValueError::DivisionByZero)),
        "{error}"
    );
    db.vacuum(table).unwrap();
    db.switch_to(HOLDS);
    assert_eq!(db.rollback(), [WAITS]);
    db.switch_to(WAITS);
    let failed = db.resume_insert(None).unwrap_err();
    assert_eq!(failed, StatementError::Value(ValueError::DivisionByZero));
    db.rollback();
    db.vacuum(table).unwrap();
    // Where it lay there is room for a row, the first one that the placeholder hears of.
    let updates = |db: &Database| {
        let mut counted = db.wal().counted_by_type();
        let found = counted.find(|(record, _)| *record == RecordType::BrinSamepageUpdate);
        found.map_or(0, |(_, totals)| totals.wal_records)
    };
    let before = updates(&db);
    insert(&mut db, table, 301..=340);
    assert_eq!(updates(&db) - before, 1);
    db.reindex(table, None).unwrap();
}

/// The version that an UPDATE replaces has its own values, by which VACUUM summarises its range:
/// the new one, which cannot be evaluated, is in the last range, which is not full.
#[test]
fn a_version_before_an_update_that_waits_ends_no_vacuum() {
    let (mut db, table) = divided(4);
    db.switch_to(WAITS);
    let add = |column, number| Assignment {
        column,
        change: Change::Add(number),
    };
    let columns = [add(0, 850), add(2, -1)];
    let update = Action::Update(Assignments { columns: &columns });
    let waiting = db.by_index(table, 0, &[150], &[150], &update);
    assert!(
        matches!(waiting, Err(StatementError::Waits(_))),
        "{waiting:?}"
    );
    db.switch_to(VACUUMS);
    db.vacuum(table).unwrap();
    // The range of the new version becomes full.
    insert(&mut db, table, 201..=300);
    assert!(matches!(
        db.vacuum(table),
        Err(StatementError::Vacuum { .. })
    ));
}

/// A version that is dead by the time that its range is summarised is passed over, whatever is in
/// it: its inserter was rolled back behind the heap's pass of the same VACUUM.
#[test]
fn a_dead_row_ends_no_vacuum() {
    let (mut db, table) = divided(1);
    db.switch_to(WAITS);
    assert!(db.insert(table, &divided_row(1000, 0)).is_err(), "it waits");
    db.switch_to(VACUUMS);
    insert(&mut db, table, 201..=300);
    let relation = Relation {
        table,
        is_toast: false,
    };
    let mut running = db.begin_vacuum(relation, VacuumOptions::default());
    for _ in 0..db.table(table).heap().page_count() {
        let step = db.vacuum_step(&mut running).unwrap();
        assert_eq!(step, VacuumStep::Pages(1));
    }
    db.switch_to(WAITS);
    db.rollback();
    db.switch_to(VACUUMS);
    while !matches!(db.vacuum_step(&mut running).unwrap(), VacuumStep::Done(_)) {}
}

/// Above 1,360 ranges summaries make room for the range map, which is not played: it is said.
#[test]
fn a_second_page_of_the_range_map_is_an_approximation() {
    let said = |pages_per_range: u32| {
        let brin = format!(
            r#"{{"name": "b", "columns": ["n"], "unique": false, "method": "brin",
                "pages_per_range": {pages_per_range}}}"#
        );
        let spec = profile(400_000, NUMBER, &brin, INSERT);
        check(&spec, &Conditions::default()).unwrap().1
    };
    assert_eq!(said(2), Vec::<String>::new());
    assert!(said(1)[0].contains("range map"), "{:?}", said(1));
}
