//! Runs on the simulated clock: what autovacuum and the checkpointer do, and when.
//!
//! Beside a server: `tests/postgres/test_clock.py`.

use pgheadroom_twin::clock::Pace;
use pgheadroom_twin::profile::{Monitor, ProfileSpec};
use pgheadroom_twin::run::{Conditions, Happened, Outcome, Timing, play};

const TABLE: &str = r#"{"name": "t", "rows": ROWS, "fillfactor": 90,
    "reloptions": {RELOPTIONS},
    "columns": [
        {"name": "aid", "type": "int4", "values": {"kind": "serial"}, "null_frac": 0},
        {"name": "bid", "type": "int4", "values": {"kind": "constant"}, "null_frac": 0},
        {"name": "abalance", "type": "int4", "values": {"kind": "constant"}, "null_frac": 0},
        {"name": "filler", "type": "bpchar(84)", "values": {"kind": "constant"}, "null_frac": 0}],
    "indexes": [
        {"name": "t_pkey", "columns": ["aid"], "unique": true, "method": "btree"},
        {"name": "t_bal", "columns": ["abalance"], "unique": false, "method": "btree"}]}"#;
const UPDATE: &str = r#"{"table": "t", "kind": "update", "weight": 1, "rows_per_statement": 1,
    "abort_frac": 0, "sets": {"COLUMN": {"changed_frac": 1}},
    "pick": {"distribution": "uniform"}, "find": "index"}"#;

/// Updates of a column in one client; `server` are further fields of the server.
fn profile(rows: u32, operations: u32, (column, reloptions, server): (&str, &str, &str)) -> String {
    let table = TABLE.replace("ROWS", &rows.to_string());
    let table = table.replace("RELOPTIONS", reloptions);
    let update = UPDATE.replace("COLUMN", column);
    format!(
        r#"{{"schema_version": 1, "server": {{"version": "18.4", "shared_buffers": "1GB",
        "full_page_writes": true, "wal_level": "replica", "wal_compression": "off",
        "wal_log_hints": false, {server}}}, "table": [{table}], "operation": [{update}],
        "run": {{"operations": {operations}, "clients": 1, "seed": 11}}}}"#
    )
}

fn played(text: &str, per_s: f64, seed: u64, windows: u32) -> Outcome {
    played_on("18.4", text, per_s, seed, windows)
}

fn played_on(version: &str, text: &str, per_s: f64, seed: u64, windows: u32) -> Outcome {
    let spec = ProfileSpec::from_json(text).unwrap();
    let conditions = Conditions {
        interleaving: seed,
        timing: Some(Timing {
            pace: Pace::Even { per_s },
            windows,
            drives_server: true,
        }),
        ..Conditions::default()
    };
    let version = version.parse().unwrap();
    let (_, outcome) = play(&spec, version, &conditions, &Monitor::default()).unwrap();
    outcome
}

fn happened(outcome: &Outcome) -> &Happened {
    outcome.happened.as_ref().expect("a clock")
}

/// 2,050 changed rows make an analyze due: at 500 a second after 4.1 s, seen at the next look.
#[test]
fn autovacuum_looks_when_the_rhythm_says() {
    let server = r#""autovacuum": true, "autovacuum_naptime_s": 2, "settings": {}"#;
    let text = profile(20_000, 6_000, ("abalance", "", server));
    for seed in 0..5 {
        let outcome = played(&text, 500.0, seed, 0);
        let first = &happened(&outcome).maintained[0];
        assert!(!first.is_vacuum, "analyze comes first");
        // Up to a naptime for the look, and a second for the session's report.
        assert!((4.1..=7.2).contains(&first.began_s), "{}", first.began_s);
        let vacuums = &happened(&outcome).maintained;
        let vacuum = vacuums.iter().find(|done| done.is_vacuum).unwrap();
        assert!((8.1..=11.2).contains(&vacuum.began_s), "4,050 dead rows");
        assert_eq!(vacuum.scanned_pages, 364, "every page was changed");
    }
}

/// Storage parameters decide: a table that is left out is left alone.
#[test]
fn reloptions_switch_it_off() {
    let server = r#""autovacuum": true, "autovacuum_naptime_s": 2, "settings": {}"#;
    let off = r#""autovacuum_enabled": "off""#;
    let outcome = played(
        &profile(20_000, 6_000, ("abalance", off, server)),
        500.0,
        1,
        0,
    );
    assert_eq!(happened(&outcome).maintained, []);
}

/// Twenty times the delay: a vacuum takes as much longer as its pages cost, and clients go on.
#[test]
fn the_cost_limit_stretches_a_vacuum() {
    let lasted = |delay: &str| {
        let server = format!(
            r#""autovacuum": true, "autovacuum_naptime_s": 2,
            "settings": {{"autovacuum_vacuum_cost_delay": "{delay}"}}"#
        );
        let outcome = played(
            &profile(20_000, 12_000, ("abalance", "", &server)),
            500.0,
            1,
            0,
        );
        let all = &happened(&outcome).maintained;
        let vacuum = all.iter().find(|done| done.is_vacuum).unwrap();
        vacuum.ended_s.unwrap() - vacuum.began_s
    };
    let (none, short, long) = (lasted("0"), lasted("1ms"), lasted("20ms"));
    assert!(none < 0.02, "{none}");
    assert!(short > none);
    let ratio = (long - none) / (short - none);
    assert!((15.0..=25.0).contains(&ratio), "{ratio}");
}

/// From 19 on autovacuum's workers have parallel ones for indexes, unless the table says 0: a
/// vacuum does the same, and is over sooner.
#[test]
fn parallel_workers_shorten_a_vacuum() {
    let vacuumed = |workers: u32, least: &str, own: &str| {
        let server = format!(
            r#""autovacuum": true, "autovacuum_naptime_s": 2,
            "settings": {{"autovacuum_vacuum_cost_delay": "20ms",
                "autovacuum_max_parallel_workers": "{workers}",
                "min_parallel_index_scan_size": "{least}"}}"#
        );
        let text = profile(20_000, 9_000, ("abalance", own, &server));
        let outcome = played_on("19rc1", &text, 500.0, 1, 0);
        let all = &happened(&outcome).maintained;
        let vacuum = all.iter().find(|done| done.is_vacuum).unwrap();
        (
            vacuum.scanned_pages,
            vacuum.ended_s.unwrap() - vacuum.began_s,
        )
    };
    let none = vacuumed(0, "0", "");
    let some = vacuumed(4, "0", "");
    assert_eq!(none.0, some.0);
    assert!(some.1 < none.1, "{some:?} {none:?}");
    let small = vacuumed(4, "512kB", "");
    let own = r#""autovacuum_parallel_workers": "0""#;
    assert_eq!(small, none, "its indexes are small");
    assert_eq!(vacuumed(4, "0", own), none);
}

/// Checkpoints by time, and by WAL; the images that follow them.
#[test]
fn checkpoints_by_time_and_by_wal() {
    let timed = r#""autovacuum": false, "checkpoint_interval_s": 3, "settings": {}"#;
    let never = r#""autovacuum": false, "settings": {}"#;
    let by_wal = r#""autovacuum": false, "max_wal_size": "64MB", "settings": {}"#;
    let run = |server| played(&profile(20_000, 5_000, ("bid", "", server)), 500.0, 1, 0);
    let (timed, never, by_wal) = (run(timed), run(never), run(by_wal));
    let times: Vec<f64> = happened(&timed)
        .checkpoints
        .iter()
        .map(|checkpoint| checkpoint.began_s)
        .collect();
    assert_eq!((times.len(), times[0]), (3, 3.05));
    // The checkpointer counts whole seconds: it may be up to one early.
    assert!(
        times
            .windows(2)
            .all(|pair| (2.0..=3.1).contains(&(pair[1] - pair[0])))
    );
    assert!(happened(&never).checkpoints.is_empty());
    assert!(
        happened(&by_wal).checkpoints.is_empty(),
        "too little WAL for 16 MB"
    );
    let images = |outcome: &Outcome| outcome.tables[0].wal.wal_fpi;
    assert!(images(&timed) > 3 * images(&never));
    let server = r#""autovacuum": false, "max_wal_size": "64MB", "settings": {}"#;
    let more = played(&profile(20_000, 800_000, ("bid", "", server)), 500.0, 1, 0);
    let wal = more.tables[0].wal.wal_bytes + more.transaction_wal.wal_bytes;
    // 64 MB at a target of 0.9 are two segments: a checkpoint each time two are full.
    let pairs = usize::try_from(wal >> 25).unwrap();
    let found = happened(&more).checkpoints.len();
    assert!(
        pairs >= 4 && found.abs_diff(pairs) <= 1,
        "{found} of {pairs}"
    );
}

/// Windows add up to the run, and the last one is its end.
#[test]
fn windows_add_up() {
    let server = r#""autovacuum": true, "autovacuum_naptime_s": 2, "settings": {}"#;
    let outcome = played(
        &profile(20_000, 6_000, ("abalance", "", server)),
        500.0,
        2,
        7,
    );
    let points = &happened(&outcome).points;
    assert_eq!(points.len(), 7);
    let (last, table) = (&points[6].tables[0], &outcome.tables[0]);
    assert_eq!(last.counters, table.counters);
    assert_eq!((last.wal, last.heap_pages), (table.wal, table.heap_pages));
    assert!(
        points
            .iter()
            .all(|point| point.tables[0].pages_modified <= table.pages_modified)
    );
    let of_windows: usize = points
        .iter()
        .map(|point| point.tables[0].pages_modified)
        .sum();
    assert!(of_windows >= table.pages_modified);
}

/// A clock alone changes nothing: one client without autovacuum and checkpoints stays exact.
#[test]
fn a_clock_alone_changes_nothing() {
    let text = profile(
        5_000,
        3_000,
        ("bid", "", r#""autovacuum": false, "settings": {}"#),
    );
    let spec = ProfileSpec::from_json(&text).unwrap();
    let version = "18.4".parse().unwrap();
    let (_, without) = play(&spec, version, &Conditions::default(), &Monitor::default()).unwrap();
    let mut with = played(&text, 1.0, 0, 10);
    with.happened = None;
    assert_eq!(with, without);
    assert!(without.approximations.is_empty());
}
