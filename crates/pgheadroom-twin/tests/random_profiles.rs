//! Whole profiles, sensible, odd and absurd: each is played or refused by name, none is a panic.
//!
//! Every choice is taken from a list of numbers, so that a failing profile shrinks with them.
//! `make fuzz-twin COUNT=20000 SEED=2` plays others, and more of them, than `make test` does.

use crate::common::random_profile;

use pgheadroom_twin::profile::{Monitor, ProfileError, ProfileSpec};
use pgheadroom_twin::run::{Conditions, play};
use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use random_profile::{Choices, profile};
use serde_json::{Value, json};

/// A number of the environment.
fn given(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// Whatever stands in a profile, it is played or refused with what was found; one in five at least
/// is played.
#[test]
fn no_profile_panics() {
    let cases = u32::try_from(given("PROFILES", 400)).unwrap();
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(given("SEED", 1)),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let played = Cell::new(0);
    let choices = prop::collection::vec(any::<u16>(), 0..300);
    let done = runner.run(&(choices, 0..3_usize), |(choices, version)| {
        let profile = profile(&mut Choices::of_numbers(choices));
        let version = ["15.18", "16.14", "18.4"][version].parse().unwrap();
        match ProfileSpec::from_json(&profile.to_string()) {
            Err(error) => {
                let is_named = matches!(error, ProfileError::NotAProfile { .. });
                prop_assert!(is_named, "{error}");
            }
            Ok(spec) => match play(&spec, version, &Conditions::default(), &Monitor::default()) {
                Ok(_) => played.set(played.get() + 1),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            },
        }
        Ok(())
    });
    done.unwrap();
    assert!(
        played.get() >= cases / 5,
        "{} of {cases} played",
        played.get()
    );
}

/// Three strings of 1 to 400 bytes in an index gave more sizes of its entries than there was room
/// for the number of, and the run ended in a panic. They now have three bytes.
#[test]
fn many_sizes_of_entries() {
    let columns: Vec<Value> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            let values = json!({"kind": "random", "ndistinct": 1_000_000});
            json!({"name": name, "type": "text", "values": values,
                "width": {"min_bytes": 1, "max_bytes": 400}, "null_frac": 0.0})
        })
        .collect();
    let mut all = vec![
        json!({"name": "k", "type": "int4", "values": {"kind": "serial"},
        "null_frac": 0.0}),
    ];
    all.extend(columns);
    let profile = json!({"schema_version": 1,
        "server": {"version": "18.4", "shared_buffers": "1GB", "full_page_writes": false,
            "wal_level": "replica", "wal_compression": "off", "wal_log_hints": false,
            "autovacuum": false},
        "table": [{"name": "t", "rows": 90_000, "fillfactor": 100, "columns": all,
            "indexes": [{"name": "i", "columns": ["a", "b", "c"], "unique": false,
                "method": "btree"}]}],
        "operation": [{"table": "t", "kind": "insert", "weight": 1, "rows_per_statement": 1,
            "abort_frac": 0}],
        "run": {"operations": 10, "clients": 1, "seed": 1}});
    let spec = ProfileSpec::from_json(&profile.to_string()).unwrap();
    let version = "18.4".parse().unwrap();
    let (_, outcome) = play(&spec, version, &Conditions::default(), &Monitor::default()).unwrap();
    assert!(outcome.tables[0].index_pages > 7000, "{:?}", outcome.tables);
}
