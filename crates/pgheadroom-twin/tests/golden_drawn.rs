//! What a server draws, to the page: VACUUM's eager scan, wherever it begins.
//!
//! Origin: `golden/expected/*/drawn-*.json`, written by `tools/record_drawn_golden.py`, which plays
//! `golden/drawn/*.toml` on 18.4, 18.6 and 19rc1. A file has the seeds of the twin that write the
//! WAL which the server wrote; one of them has the server's visibility map, page by page.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pgheadroom_twin::places::{self, Places};
use pgheadroom_twin::profile::{Monitor, ProfileSpec};
use pgheadroom_twin::run::{Conditions, Outcome, play};
use serde::Deserialize;

/// A golden file.
#[derive(Deserialize)]
struct Recorded {
    profile: ProfileSpec,
    transactions: u64,
    by_record: BTreeMap<String, [u64; 3]>,
    maps: Places,
    seeds: Vec<u64>,
}

fn recorded(version: &str) -> Recorded {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/expected")
        .join(version)
        .join("drawn-eager-scan.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A run of the twin, and its visibility maps.
fn played(spec: &ProfileSpec, version: &str, seed: u64) -> (Outcome, Places) {
    let conditions = Conditions {
        interleaving: seed,
        ..Conditions::default()
    };
    let version = version.parse().unwrap();
    let (db, outcome) = play(spec, version, &conditions, &Monitor::default()).unwrap();
    let mut maps = Places::new();
    for (table, id) in spec.table.iter().zip(db.tables()) {
        let indexes: Vec<&str> = table.indexes.iter().map(|one| one.name.as_str()).collect();
        maps.extend(places::of_table(db.table(id), &table.name, &indexes));
    }
    maps.retain(|name, _| name.ends_with(":vm"));
    (outcome, maps)
}

/// A seed has the server's WAL by kind of record, and one of those that do has its map.
#[test]
fn eager_scans_freeze_the_same_pages() {
    for version in ["18.4", "18.6", "19rc1"] {
        let recorded = recorded(version);
        let is_found = recorded.seeds.iter().any(|&seed| {
            let (outcome, maps) = played(&recorded.profile, version, seed);
            assert_eq!(outcome.transactions, recorded.transactions, "{version}");
            let wal = outcome.by_record.iter().map(|(name, sums)| {
                let sums = [sums.wal_records, sums.wal_bytes, sums.wal_fpi_bytes];
                (name.clone(), sums)
            });
            let wal: BTreeMap<String, [u64; 3]> = wal.collect();
            assert_eq!(wal, recorded.by_record, "{version}: seed {seed}");
            maps == recorded.maps
        });
        assert!(is_found, "{version}: no seed of {:?}", recorded.seeds);
    }
}
