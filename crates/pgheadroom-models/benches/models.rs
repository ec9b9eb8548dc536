//! What each model costs: the same run with it and without any, the exact path.
//!
//! ```text
//! a recorded profile with more rows and updates -> run::play, load and all
//! ```
//!
//! Time is that of the thread on a core, as other processes' work on the machine does not count.
//! A model's ratio is its time over that of `heap, local`, of the same call.

use std::path::PathBuf;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pgheadroom_models::{Engine, Storage};
use pgheadroom_twin::profile::{Monitor, ProfileSpec};
use pgheadroom_twin::reserve::Allocator;
use pgheadroom_twin::run::{Conditions, play};
use serde_json::Value;

/// As in the Python module.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const ROWS: u32 = 50_000;
const UPDATES: u32 = 200_000;

/// Updates of one row each, by key, at a fillfactor that leaves room.
fn profile() -> ProfileSpec {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/expected/18.4/profile-updates-full-pages.json");
    let text = std::fs::read_to_string(path).expect("a golden file");
    let mut recorded: Value = serde_json::from_str(&text).expect("JSON");
    let profile = &mut recorded["profile"];
    profile["table"][0]["rows"] = ROWS.into();
    profile["table"][0]["fillfactor"] = 90.into();
    profile["run"]["operations"] = UPDATES.into();
    serde_json::from_value(profile.take()).expect("a profile")
}

/// How long this thread has run on a core. Source: /proc/thread-self/schedstat, first number.
fn time_on_core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux's /proc");
    let first = text.split(' ').next();
    Duration::from_nanos(
        first
            .and_then(|number| number.parse().ok())
            .expect("nanoseconds"),
    )
}

fn played(spec: &ProfileSpec, engine: Engine, storage: Storage) -> Duration {
    let conditions = Conditions {
        models: engine.model().into_iter().chain(storage.model()).collect(),
        ..Conditions::default()
    };
    let version = "18.4".parse().expect("a version");
    let before = time_on_core();
    let (_, outcome) = play(spec, version, &conditions, &Monitor::default()).expect("a run");
    let time = time_on_core() - before;
    assert_eq!(outcome.tables[0].counters.n_tup_upd, u64::from(UPDATES));
    time
}

fn models(criterion: &mut Criterion) {
    let spec = profile();
    let mut group = criterion.benchmark_group("models");
    group
        .throughput(Throughput::Elements(u64::from(UPDATES)))
        .sample_size(10);
    let cases = [
        ("heap, local", Engine::Heap, Storage::Local),
        ("heap, log-structured", Engine::Heap, Storage::LogStructured),
        ("clustered", Engine::Clustered, Storage::Local),
        ("undo", Engine::Undo, Storage::Local),
    ];
    for (name, engine, storage) in cases {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| played(&spec, engine, storage)).sum());
        });
    }
    group.finish();
}

criterion_group!(benches, models);
criterion_main!(benches);
