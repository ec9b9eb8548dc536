//! Transactions per second of several clients, whose statements overlap.
//!
//! ```text
//! profile -> load, some transactions each row (not measured) -> run::run, so many transactions
//! ```
//!
//! As `updates`, of which each row has a single client: the same build and mode, every record and
//! image counted, time that of the thread on a core. `PGHEADROOM_BENCH_ROWS` takes another size.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pgheadroom_twin::executor::Database;
use pgheadroom_twin::pgbench::Builtin;
use pgheadroom_twin::profile::{Monitor, PgbenchSpec, ProfileSpec, load};
use pgheadroom_twin::reserve::Allocator;
use pgheadroom_twin::run::{Plan, run};
use pgheadroom_twin::workload::{PgbenchWorkload, ProfileWorkload, Workload};
use serde_json::{Value, json};

/// As in the Python module.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Transactions of one measurement.
const TRANSACTIONS: u64 = 50_000;

fn rows() -> u64 {
    let rows = std::env::var("PGHEADROOM_BENCH_ROWS").ok();
    rows.map_or(1_000_000, |text| text.parse().expect("a number of rows"))
}

/// Tables under test; ended runs go on where they were.
struct Steady<W> {
    db: Database,
    workload: W,
    names: Vec<String>,
}

impl<W: Workload> Steady<W> {
    /// Time of so many transactions.
    fn play(&mut self, transactions: u64) -> Duration {
        let plan = Plan::of_one_client(transactions);
        let before = time_on_core();
        let monitor = Monitor::default();
        let outcome = run(
            &mut self.db,
            &mut self.workload,
            &self.names,
            &plan,
            &monitor,
        );
        let time = time_on_core() - before;
        assert_eq!(outcome.expect("a run").transactions, transactions);
        time
    }
}

/// Measures what `make` makes, once it is asked for: benchmarks that are not chosen load nothing.
fn bench<W: Workload>(
    criterion: &mut Criterion,
    (name, clients): (&str, u64),
    make: impl Fn() -> Steady<W>,
) {
    let mut made = None;
    let mut group = criterion.benchmark_group(name);
    let group = group.throughput(Throughput::Elements(TRANSACTIONS));
    group
        .sample_size(10)
        .bench_function(BenchmarkId::new("clients", clients), |bencher| {
            let steady = made.get_or_insert_with(&make);
            bencher.iter_custom(|rounds| (0..rounds).map(|_| steady.play(TRANSACTIONS)).sum());
        });
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

fn server() -> Value {
    json!({"version": "18.4", "shared_buffers": "16GB", "full_page_writes": true,
        "wal_level": "replica", "wal_compression": "off", "wal_log_hints": false,
        "data_checksums": true, "autovacuum": false, "settings": {}})
}

fn column(name: &str, kind: &str, values: &str) -> Value {
    json!({"name": name, "type": kind, "values": {"kind": values, "ndistinct": null},
        "width": null, "null_frac": 0.0})
}

fn of_profile(table: &Value, operations: &Value, clients: u64) -> Steady<ProfileWorkload> {
    let profile = json!({"schema_version": 1, "server": server(), "table": [table],
        "operation": operations, "run": {"operations": 1, "clients": clients, "seed": 1}});
    let spec = ProfileSpec::from_json(&profile.to_string()).expect("a profile");
    let monitor = Monitor::default();
    let mut db = load::database(&spec.server, "18.4".parse().expect("a version"));
    let loaded = load::load_tables(&mut db, &spec.table, &monitor).expect("a table");
    let workload = ProfileWorkload::new(&spec, &loaded, u64::MAX / clients).expect("a workload");
    Steady {
        db,
        workload,
        names: vec!["accounts".to_owned()],
    }
}

fn accounts(fillfactor: u32, columns: &Value) -> Value {
    json!({"name": "accounts", "rows": rows(), "fillfactor": fillfactor, "reloptions": {},
        "columns": columns, "indexes": [{"name": "accounts_pkey", "columns": ["aid"],
            "expressions": [], "unique": true, "method": "btree", "include": [], "where": null,
            "fillfactor": null, "deduplicate_items": null}]})
}

fn operation(kind: &str, sets: &Value, pick: &Value) -> Value {
    json!({"table": "accounts", "kind": kind, "weight": 1, "rows_per_statement": 1,
        "abort_frac": 0.0, "sets": sets, "pick": pick, "find": "index"})
}

fn updates_by_key(criterion: &mut Criterion) {
    let columns = json!([
        column("aid", "int4", "serial"),
        column("bid", "int4", "constant"),
        column("abalance", "int4", "constant"),
        column("filler", "bpchar(84)", "constant"),
    ]);
    let sets = json!({"abalance": {"changed_frac": 1.0, "grows_bytes": null}});
    let pick = json!({"distribution": "uniform", "scatter": false});
    let operations = json!([operation("update", &sets, &pick)]);
    for clients in [2, 4, 8] {
        bench(criterion, ("UPDATE by key", clients), || {
            let mut steady = of_profile(&accounts(90, &columns), &operations, clients);
            steady.play(3 * rows());
            steady
        });
    }
}

fn queue(criterion: &mut Criterion) {
    let columns = json!([
        column("aid", "int8", "serial"),
        column("state", "int2", "constant"),
        column("filler", "bpchar(84)", "constant"),
    ]);
    let sets = json!({"state": {"changed_frac": 1.0, "grows_bytes": null}});
    let youngest = json!({"distribution": "age", "min": 0, "max": 1000});
    let operations = json!([
        operation("insert", &json!({}), &Value::Null),
        operation("update", &sets, &youngest),
        operation("delete", &json!({}), &json!({"distribution": "oldest"})),
    ]);
    let name = "queue: insert, update, delete the oldest";
    bench(criterion, (name, 4), || {
        let mut steady = of_profile(&accounts(90, &columns), &operations, 4);
        steady.play(rows() / 2);
        steady
    });
}

fn tpcb_like(criterion: &mut Criterion) {
    let name = "tpcb-like, transactions of 5 statements";
    bench(criterion, (name, 8), || {
        let mut steady = of_tpcb_like(8);
        steady.play(rows() / 5);
        steady
    });
}

fn of_tpcb_like(clients: u64) -> Steady<PgbenchWorkload> {
    let scale = i64::try_from(rows().div_ceil(100_000)).expect("a small scale");
    let pgbench: PgbenchSpec =
        serde_json::from_value(json!({"builtin": "tpcb-like", "scale": scale, "fillfactor": {}}))
            .expect("a script");
    let monitor = Monitor::default();
    let spec = serde_json::from_value(server()).expect("settings");
    let mut db = load::database(&spec, "18.4".parse().expect("a version"));
    let tables = load::load_pgbench(&mut db, &pgbench, scale, &monitor).expect("tables");
    let count = usize::try_from(clients).expect("a few clients");
    let each = u64::MAX / clients;
    let workload = PgbenchWorkload::new(Builtin::TpcbLike, scale, tables, 1, count, each);
    Steady {
        db,
        workload,
        names: load::PGBENCH_TABLES.map(str::to_owned).to_vec(),
    }
}

criterion_group!(benches, updates_by_key, tpcb_like, queue);
criterion_main!(benches);
