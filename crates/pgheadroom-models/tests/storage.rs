//! Log-structured storage against local: no image and no checkpoint, and the same pages.
//!
//! That the figures are those of a server without images, checksums and checkpoints is
//! `tests/postgres/test_variants_live.py`.

use std::path::PathBuf;

use pgheadroom_models::Storage;
use pgheadroom_twin::profile::{Monitor, ProfileSpec};
use pgheadroom_twin::run::{Conditions, Event, EventKind, Outcome, play};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    profile: ProfileSpec,
}

/// A recorded profile of 18.4.
fn profile(name: &str) -> ProfileSpec {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/expected/18.4")
        .join(format!("profile-{name}.json"));
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<Recorded>(&text).unwrap().profile
}

fn played(spec: &ProfileSpec, storage: Storage, checkpoints: &[f64]) -> Outcome {
    let events = checkpoints.iter().map(|&at_frac| Event {
        at_frac,
        kind: EventKind::CheckpointStarting,
        table: None,
    });
    let conditions = Conditions {
        events: Some(events.collect()),
        models: storage.model().into_iter().collect(),
        ..Conditions::default()
    };
    let version = "18.4".parse().unwrap();
    let (_, outcome) = play(spec, version, &conditions, &Monitor::default()).unwrap();
    outcome
}

/// What is left without images is what a local server writes with everything switched off that
/// protects pages; counters and sizes do not depend on it.
#[test]
fn nothing_but_protection_of_pages_goes() {
    let names = ["updates-full-pages", "updates-log-hints", "every-kind"];
    for name in names {
        let mut spec = profile(name);
        spec.server.full_page_writes = true;
        spec.server.data_checksums = Some(true);
        let local = played(&spec, Storage::Local, &[]);
        let found = played(&spec, Storage::LogStructured, &[]);
        spec.server.full_page_writes = false;
        spec.server.data_checksums = Some(false);
        spec.server.wal_log_hints = false;
        let bare = played(&spec, Storage::Local, &[]);
        assert_eq!(found, bare, "{name}");
        let images = |outcome: &Outcome| outcome.tables.iter().map(|table| table.wal.wal_fpi).sum();
        let (with, without): (u64, u64) = (images(&local), images(&found));
        assert!(with > 0 && without == 0, "{name}: {with} and {without}");
        assert!(
            !found
                .by_record
                .iter()
                .any(|(kind, _)| kind == "XLOG/FPI_FOR_HINT")
        );
        for (one, other) in local.tables.iter().zip(&found.tables) {
            assert_eq!(one.counters, other.counters, "{name}");
            assert_eq!(one.heap_pages, other.heap_pages, "{name}");
            assert_eq!(one.index_pages, other.index_pages, "{name}");
        }
    }
}

/// Checkpoints cost images on local storage and nothing on the other, which has none.
#[test]
fn checkpoints_do_not_take_place() {
    let spec = profile("updates-full-pages");
    let quiet = played(&spec, Storage::LogStructured, &[]);
    let busy = played(&spec, Storage::LogStructured, &[0.25, 0.5, 0.75]);
    assert_eq!(quiet.tables, busy.tables);
    let quiet = played(&spec, Storage::Local, &[]);
    let busy = played(&spec, Storage::Local, &[0.25, 0.5, 0.75]);
    assert!(busy.tables[0].wal.wal_fpi > quiet.tables[0].wal.wal_fpi);
}

/// A profile that asks for checkpoints is refused on local storage, since nobody knows when they
/// come; here there are none to know of.
#[test]
fn checkpoints_need_not_be_known() {
    let mut spec = profile("updates-full-pages");
    spec.server.checkpoint_interval_s = Some(30.0);
    spec.server.max_wal_size = Some("1GB".to_owned());
    let version = "18.4".parse().unwrap();
    let mut conditions = Conditions::default();
    let local = play(&spec, version, &conditions, &Monitor::default());
    assert!(local.is_err());
    conditions.models = Storage::LogStructured.model().into_iter().collect();
    let (_, outcome) = play(&spec, version, &conditions, &Monitor::default()).unwrap();
    assert_eq!(outcome.approximations, Vec::<String>::new());
}

/// Names are those of options.
#[test]
fn storages_are_known_by_name() {
    for storage in Storage::ALL {
        assert_eq!(Storage::of(storage.name()), Some(storage));
    }
    assert_eq!(Storage::of("aurora"), None);
}
