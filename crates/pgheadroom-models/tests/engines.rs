//! Engines under the recorded profiles: what has to hold whatever the engine.

use std::path::PathBuf;

use pgheadroom_layout::BlockNumber;
use pgheadroom_models::Engine;
use pgheadroom_twin::check;
use pgheadroom_twin::executor::Database;
use pgheadroom_twin::order::KeyOrder;
use pgheadroom_twin::profile::{Monitor, ProfileSpec};
use pgheadroom_twin::run::{Conditions, Outcome, play};
use pgheadroom_twin::wal::Totals;
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    profile: ProfileSpec,
}

/// The recorded profiles of 18.4, but for one whose tables are rewritten, which engines other than
/// heap refuse.
fn profiles() -> Vec<(String, ProfileSpec)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/expected/18.4");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name.starts_with("profile-") && name != "profile-toast-object-ids" {
            let text = std::fs::read_to_string(&path).unwrap();
            let recorded: Recorded = serde_json::from_str(&text).unwrap();
            found.push((name, recorded.profile));
        }
    }
    assert!(found.len() >= 30);
    found.sort_by(|one: &(String, ProfileSpec), other| one.0.cmp(&other.0));
    found
}

fn played(spec: &ProfileSpec, engine: Engine) -> (Database, Outcome) {
    let conditions = Conditions {
        models: engine.model().into_iter().collect(),
        order: true,
        ..Conditions::default()
    };
    play(
        spec,
        "18.4".parse().unwrap(),
        &conditions,
        &Monitor::default(),
    )
    .unwrap()
}

fn live_rows(db: &Database) -> Vec<Option<usize>> {
    let tables = db.tables();
    let rows = |table| {
        let column = db.table(table).order_column()?;
        Some(KeyOrder::of(db, table, column).rows())
    };
    tables.map(rows).collect()
}

/// Every profile on every engine: pages keep their invariants, statements find the same rows, and
/// the same rows are left; what is a model says so, and the heap does not. An engine that has no
/// HOT updates reports none, whatever the profile.
#[test]
fn engines_differ_in_storage_only() {
    let mut hot_updates = [0; 2];
    // Of a kind each third shows it; `make test-long` plays all.
    let every = if std::env::var_os("LONG").is_some() {
        1
    } else {
        3
    };
    for (name, spec) in profiles().into_iter().step_by(every) {
        let (heap, expected) = played(&spec, Engine::Heap);
        assert_eq!(expected.model, None);
        for engine in [Engine::Clustered, Engine::Undo] {
            let what = format!("{name}, {}", engine.name());
            let (db, outcome) = played(&spec, engine);
            let said = engine.model().and_then(|model| model.sentence());
            assert!(said.is_some() && outcome.model == said, "{what}");
            assert_eq!(live_rows(&db), live_rows(&heap), "{what}");
            let counters = outcome.tables.iter().map(|table| table.counters);
            hot_updates[usize::from(engine == Engine::Undo)] +=
                counters.map(|of| of.n_tup_hot_upd).sum::<u64>();
            let is_hot = |(record, _): &(String, Totals)| record.contains("HOT_UPDATE");
            assert!(engine != Engine::Undo || !outcome.by_record.iter().any(is_hot));
            for (one, other) in expected.tables.iter().zip(&outcome.tables) {
                let done = |of: &pgheadroom_twin::run::TableOutcome| {
                    let counters = of.counters;
                    (counters.n_tup_ins, counters.n_tup_upd, counters.n_tup_del)
                };
                assert_eq!(done(one), done(other), "{what}");
            }
            for table in db.tables() {
                for (block, page) in (0..).map(BlockNumber).zip(db.table(table).heap().pages()) {
                    let held = check::page_after(block, page, db.procs());
                    assert_eq!(held.map_err(|error| error.to_string()), Ok(()), "{what}");
                }
            }
        }
    }
    let [clustered, undo] = hot_updates;
    assert!(clustered > 0 && undo == 0, "{hot_updates:?}");
}

/// Updates in place leave rows and indexes alone: no new page, no entry, and no row out of order.
#[test]
fn updates_in_place_move_nothing() {
    let (_, spec) = profiles().remove(
        profiles()
            .iter()
            .position(|(name, _)| name == "profile-updates-small-rows")
            .unwrap(),
    );
    let (_, heap) = played(&spec, Engine::Heap);
    let (db, undo) = played(&spec, Engine::Undo);
    let (one, other) = (&heap.tables[0], &undo.tables[0]);
    assert!(
        one.counters.n_tup_newpage_upd > 0,
        "the heap has to move some"
    );
    assert_eq!(other.counters.n_tup_upd, one.counters.n_tup_upd);
    assert_eq!(other.counters.n_tup_newpage_upd, 0);
    assert!(other.heap_pages <= one.heap_pages && other.index_pages <= one.index_pages);
    let log = db.table(other.table).model().unwrap();
    assert!(log.pages() > 1);
    let [before, after] = undo.order[0];
    assert_eq!(before, after);
    let [before, after] = heap.order[0];
    assert!(before.unwrap().pages_per_range < after.unwrap().pages_per_range);
}

/// Nobody asked, nothing is measured.
#[test]
fn order_is_measured_on_request() {
    let (_, spec) = profiles().remove(0);
    let version = "18.4".parse().unwrap();
    let (_, outcome) = play(&spec, version, &Conditions::default(), &Monitor::default()).unwrap();
    assert!(outcome.order.is_empty());
}
