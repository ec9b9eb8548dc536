//! The churn program: plain heap, sorted inserts and the clustered engine, at a tenth of the
//! document's rows.
//!
//! That plain heap's figures are a server's, state by state, is
//! `tests/postgres/test_lab_cluster_decay.py`; that those of the clustered engine are the
//! extension's, with the same random numbers, `tests/extension/test_lab_engine.py`. Origin of the
//! measured ones for the extension: `cluster_quality` on 18.4, 200,000 rows with other random
//! numbers (extension/clustered_heap/README.md, What it costs); the correlation is
//! `cluster-decay`'s there, 100,000 rows.

use pgheadroom_models::Engine;
use pgheadroom_models::decay::{Program, Round, State, play};
use pgheadroom_twin::profile::{Monitor, ProfileError, ProfileSpec};

const ROWS: i64 = 100_000;

/// The document's table, 21 rows a page. Text of one length is stored as bpchar is, and takes no
/// place of its own here.
fn profile(fillfactor: i64) -> ProfileSpec {
    let text = format!(
        r#"{{"schema_version": 1,
        "server": {{"version": "18.4", "shared_buffers": "128MB", "full_page_writes": false,
            "wal_level": "replica", "wal_compression": "off", "wal_log_hints": false,
            "data_checksums": false, "autovacuum": false, "autovacuum_naptime_s": null,
            "checkpoint_interval_s": null, "max_wal_size": null, "settings": {{}}}},
        "table": [{{"name": "testtab", "rows": {ROWS}, "fillfactor": {fillfactor},
            "reloptions": {{}},
            "columns": [
                {{"name": "k", "type": "int4", "width": null, "null_frac": 0.0,
                    "values": {{"kind": "serial", "ndistinct": null}}}},
                {{"name": "d", "type": "bpchar(350)", "width": null, "null_frac": 0.0,
                    "values": {{"kind": "constant", "ndistinct": null}}}}],
            "indexes": [{{"name": "testtabi", "columns": ["k"], "expressions": [],
                "unique": false, "method": "btree", "include": [], "where": null,
                "fillfactor": null, "deduplicate_items": null}}]}}],
        "operation": [], "pgbench": null,
        "run": {{"operations": 1, "duration_s": null, "clients": 1, "seed": 1}}}}"#
    );
    ProfileSpec::from_json(&text).unwrap()
}

fn program(engine: Engine, is_sorted: bool, fillfactor: i64) -> Program {
    let starts: Vec<i64> = (0..50).map(|n| 1 + n * 1900).collect();
    let rounds = (1..=10).map(|n| Round {
        delete_seed: f64::from(n) / 11.0,
        insert_seed: -f64::from(n) / 12.0,
        starts: starts.clone(),
    });
    Program {
        profile: profile(fillfactor),
        range_span: 1000,
        engine,
        is_sorted,
        churn_frac: 0.02,
        starts: starts.clone(),
        rounds: rounds.collect(),
    }
}

fn played(program: &Program) -> Vec<State> {
    let monitor = Monitor::default();
    let states = play(program, "18.4".parse().unwrap(), &monitor).unwrap();
    assert_eq!(
        monitor.done(),
        monitor.total(),
        "progress ends at the whole"
    );
    states
}

fn pages(state: &State) -> f64 {
    state.pages_per_range.unwrap()
}

/// 1,001 rows of 21 a page begin on 48 or 49 pages. Of plain heap each new row of a range is on a
/// page of its own, nearly; beside its key it is on few more; sorted inserts lie between.
#[test]
fn order_decays_by_engine() {
    let heap = played(&program(Engine::Heap, false, 100));
    let sorted = played(&program(Engine::Heap, true, 100));
    let clustered = played(&program(Engine::Clustered, false, 100));
    for states in [&heap, &sorted, &clustered] {
        assert_eq!(states.len(), 11);
        assert!((48.0..=49.0).contains(&pages(&states[0])));
        assert_eq!(states[0].correlation, Some(1.0));
        let steps = states.windows(2);
        assert!(steps.clone().all(|two| pages(&two[0]) < pages(&two[1])));
    }
    assert!((220.0..235.0).contains(&pages(&heap[10])), "{:?}", heap[10]);
    assert!((135.0..180.0).contains(&pages(&sorted[10])));
    assert!(
        heap[10].heap_pages < 4770,
        "deleted rows' room is used again"
    );
    assert!(
        sorted[10].correlation > Some(0.999),
        "which correlation does not show"
    );
}

/// The extension's figures: pages of a range after five and ten rounds within 2 %, and the size,
/// 9,972 pages where plain heap has 9,529, within half a per cent.
#[test]
fn clustered_inserts_are_as_measured() {
    let states = played(&program(Engine::Clustered, false, 100));
    for (round, measured) in [(0, 48.6), (5, 54.3), (10, 56.4)] {
        let found = pages(&states[round]);
        assert!((found / measured - 1.0).abs() < 0.02, "{round}: {found}");
    }
    let larger = f64::from(states[10].heap_pages) / f64::from(states[0].heap_pages);
    assert!((larger - 9972.0 / 9529.0).abs() < 0.005, "{larger}");
    let correlation = states[10].correlation.unwrap();
    assert!((correlation - 0.913).abs() < 0.015, "{correlation}");
}

/// A reserve that inserts respect helps none of the engines to use it, so clustered rows still go
/// to overflow pages; the rows are the same whatever the engine.
#[test]
fn engines_have_the_same_rows() {
    for fillfactor in [90, 100] {
        let heap = played(&program(Engine::Heap, false, fillfactor));
        for engine in [Engine::Clustered, Engine::Undo] {
            let other = played(&program(engine, false, fillfactor));
            let rows = |states: &[State]| states[0].live_rows;
            assert_eq!(rows(&heap), rows(&other));
            for (one, two) in heap.iter().zip(&other) {
                let off = one.live_rows.abs_diff(two.live_rows);
                // The engines' scans meet the rows in another order, and delete others.
                assert!(
                    off < 300,
                    "{engine:?}: {} and {}",
                    one.live_rows,
                    two.live_rows
                );
            }
        }
    }
}

/// The same draws give the same states; a run that is told to stop stops.
#[test]
fn runs_repeat_and_stop() {
    let wanted = program(Engine::Clustered, true, 100);
    assert_eq!(played(&wanted), played(&wanted));
    let monitor = Monitor::default();
    monitor.cancel();
    let stopped = play(&wanted, "18.4".parse().unwrap(), &monitor);
    assert!(matches!(stopped, Err(ProfileError::Cancelled)));
}
