//! Updates per second of whole runs, in the build and the mode that equal servers to the byte.
//!
//! ```text
//! profile -> load, updates until the table is steady (not measured) -> run::run, so many updates
//! ```
//!
//! The table is pgbench_accounts of a million rows, keys are uniform, every update is a transaction
//! of its own, and every record is counted. Time is that of the thread on a core, as other
//! processes' work on the machine does not count. `PGHEADROOM_BENCH_ROWS` takes another size.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pgheadroom_twin::executor::Database;
use pgheadroom_twin::profile::{Monitor, ProfileSpec, load};
use pgheadroom_twin::reserve::Allocator;
use pgheadroom_twin::run::{Plan, run};
use pgheadroom_twin::workload::{ProfileWorkload, Workload};

/// As in the Python module.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Updates of one measurement: long enough that the clock's steps do not matter.
const UPDATES: u64 = 100_000;

struct Case {
    name: &'static str,
    fillfactor: u32,
    /// A second index on this column.
    second: Option<&'static str>,
    full_page_writes: bool,
}

const CASES: [Case; 5] = [
    Case {
        name: "steady, fillfactor 90",
        fillfactor: 90,
        second: None,
        full_page_writes: false,
    },
    Case {
        name: "steady, fillfactor 90, full_page_writes",
        fillfactor: 90,
        second: None,
        full_page_writes: true,
    },
    Case {
        name: "fillfactor 100",
        fillfactor: 100,
        second: None,
        full_page_writes: false,
    },
    Case {
        name: "fillfactor 100, second index unchanged",
        fillfactor: 100,
        second: Some("bid"),
        full_page_writes: false,
    },
    Case {
        name: "fillfactor 100, second index changed",
        fillfactor: 100,
        second: Some("abalance"),
        full_page_writes: false,
    },
];

/// The table under test; ended runs go on where they were.
struct Steady {
    db: Database,
    workload: ProfileWorkload,
    names: Vec<String>,
}

impl Steady {
    fn new(case: &Case, rows: u64) -> Self {
        let spec = ProfileSpec::from_json(&profile(case, rows)).expect("a profile");
        let monitor = Monitor::default();
        let mut db = load::database(&spec.server, "18.4".parse().expect("a version"));
        let loaded = load::load_tables(&mut db, &spec.table, &monitor).expect("a table");
        let workload = ProfileWorkload::new(&spec, &loaded, u64::MAX).expect("a workload");
        let names = vec!["accounts".to_owned()];
        let mut steady = Self {
            db,
            workload,
            names,
        };
        steady.update(5 * rows);
        steady
    }

    /// Time of so many updates.
    fn update(&mut self, updates: u64) -> Duration {
        assert_eq!(self.workload.clients(), 1);
        let plan = Plan::of_one_client(updates);
        let before = time_on_core();
        let outcome = run(
            &mut self.db,
            &mut self.workload,
            &self.names,
            &plan,
            &Monitor::default(),
        );
        let time = time_on_core() - before;
        let outcome = outcome.expect("a run");
        assert_eq!(outcome.tables[0].counters.n_tup_upd, updates);
        assert!(outcome.tables[0].wal.wal_records >= updates);
        time
    }
}

/// How long this thread has run on a core. Source: /proc/thread-self/schedstat, first number.
fn time_on_core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux's /proc");
    let first = text
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    Duration::from_nanos(first.expect("nanoseconds"))
}

fn profile(case: &Case, rows: u64) -> String {
    let index = |name: &str, column: &str, unique: bool| {
        format!(
            r#"{{"name": "{name}", "columns": ["{column}"], "expressions": [], "unique": {unique},
                "method": "btree", "include": [], "where": null, "fillfactor": null,
                "deduplicate_items": null}}"#
        )
    };
    let column = |name: &str, kind: &str, values: &str| {
        format!(
            r#"{{"name": "{name}", "type": "{kind}", "values": {values}, "width": null,
                "null_frac": 0.0}}"#
        )
    };
    let constant = r#"{"kind": "constant", "ndistinct": null}"#;
    let columns = [
        column("aid", "int4", r#"{"kind": "serial", "ndistinct": null}"#),
        column("bid", "int4", r#"{"kind": "random", "ndistinct": 10}"#),
        column("abalance", "int4", constant),
        column("filler", "bpchar(84)", constant),
    ]
    .join(", ");
    let mut indexes = index("accounts_pkey", "aid", true);
    if let Some(column) = case.second {
        indexes = format!("{indexes}, {}", index("accounts_second", column, false));
    }
    let Case {
        fillfactor,
        full_page_writes,
        ..
    } = case;
    format!(
        r#"{{"schema_version": 1,
        "server": {{"version": "18.4", "shared_buffers": "16GB",
            "full_page_writes": {full_page_writes}, "wal_level": "replica",
            "wal_compression": "off", "wal_log_hints": false, "data_checksums": true,
            "autovacuum": false, "autovacuum_naptime_s": null, "checkpoint_interval_s": null,
            "max_wal_size": null, "settings": {{}}}},
        "table": [{{"name": "accounts", "rows": {rows}, "fillfactor": {fillfactor},
            "reloptions": {{}}, "columns": [{columns}], "indexes": [{indexes}]}}],
        "operation": [{{"table": "accounts", "kind": "update", "weight": 1,
            "rows_per_statement": 1, "abort_frac": 0.0,
            "sets": {{"abalance": {{"changed_frac": 1.0, "grows_bytes": null}}}},
            "pick": {{"distribution": "uniform", "theta": null, "param": null,
                "rows_frac": null, "weight": null, "n": null, "scatter": false}},
            "find": "index", "transaction": null}}],
        "pgbench": null,
        "run": {{"operations": 1, "duration_s": null, "clients": 1, "seed": 1}}}}"#
    )
}

fn updates(criterion: &mut Criterion) {
    let rows = std::env::var("PGHEADROOM_BENCH_ROWS").ok();
    let rows: u64 = rows.map_or(1_000_000, |text| text.parse().expect("a number of rows"));
    let mut group = criterion.benchmark_group("updates");
    group
        .throughput(Throughput::Elements(UPDATES))
        .sample_size(10);
    for case in &CASES {
        let mut steady: Option<Steady> = None; // a case that is filtered out is not loaded
        group.bench_function(BenchmarkId::new(case.name, rows), |bencher| {
            let steady = steady.get_or_insert_with(|| Steady::new(case, rows));
            bencher.iter_custom(|rounds| (0..rounds).map(|_| steady.update(UPDATES)).sum());
        });
    }
    group.finish();
}

criterion_group!(benches, updates);
criterion_main!(benches);
