//! BRIN indexes in whole runs, where versions differ and where a server would fail.

use pgheadroom_twin::profile::{Monitor, ProfileError, ProfileSpec};
use pgheadroom_twin::run::support::check;
use pgheadroom_twin::run::{Conditions, Outcome, play};

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
        let records = |wanted: &str| {
            let mut found = outcome.by_record.iter().filter(|(name, _)| name == wanted);
            found.next().map_or(0, |(_, totals)| totals.wal_records)
        };
        let found = (records("BRIN/INSERT"), records("BRIN/SAMEPAGE_UPDATE"));
        assert_eq!(found, (inserted, updated), "{version}");
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

/// A server says "index row size 8400 exceeds maximum 8152", or the like.
#[test]
fn a_summary_above_a_page_is_refused() {
    let names: Vec<String> = (0..32).map(|number| format!("c{number}")).collect();
    let column = |name: &String| {
        format!(
            r#"{{"name": "{name}", "type": "text", "width": {{"min_bytes": 130, "max_bytes": 130}},
            "values": {{"kind": "random", "ndistinct": 1000}}, "null_frac": 0.8}}"#
        )
    };
    let columns: Vec<String> = names.iter().map(column).collect();
    let brin =
        format!(r#"{{"name": "b", "columns": {names:?}, "unique": false, "method": "brin"}}"#);
    let spec = profile(80, &columns.join(", "), &brin, INSERT);
    let error = run(&spec, "18.4").unwrap_err().to_string();
    assert!(error.contains("of which PostgreSQL takes 8152"), "{error}");
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
