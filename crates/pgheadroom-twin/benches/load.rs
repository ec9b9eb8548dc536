//! How fast a profile's tables are loaded, by rows: rows, indexes, VACUUM.
//!
//! ```text
//! cargo bench --bench load
//! ```

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pgheadroom_twin::profile::{Monitor, ProfileSpec, load};
use serde_json::{Value, json};

const ROWS: u64 = 1_000_000;

struct Case {
    name: &'static str,
    fillfactor: u32,
    columns: Value,
    indexes: Value,
}

fn column(name: &str, kind: &str, values: &str, width: &Value) -> Value {
    let ndistinct = (values == "random").then_some(ROWS / 10);
    json!({"name": name, "type": kind, "values": {"kind": values, "ndistinct": ndistinct},
        "width": width, "null_frac": 0.0})
}

fn index(name: &str, column: &str, is_unique: bool) -> Value {
    json!({"name": name, "columns": [column], "expressions": [], "unique": is_unique,
        "method": "btree", "include": [], "where": null, "fillfactor": null,
        "deduplicate_items": null})
}

fn cases() -> [Case; 3] {
    let none = Value::Null;
    let plain = json!([
        column("aid", "int4", "serial", &none),
        column("bid", "int4", "constant", &none),
        column("abalance", "int4", "constant", &none),
        column("filler", "bpchar(84)", "constant", &none),
    ]);
    let strings = json!([
        column("id", "int8", "serial", &none),
        column("owner", "int4", "random", &none),
        column(
            "note",
            "text",
            "random",
            &json!({"min_bytes": 20, "max_bytes": 120})
        ),
    ]);
    let key = index("accounts_pkey", "aid", true);
    [
        Case {
            name: "rows of one length",
            fillfactor: 100,
            columns: plain.clone(),
            indexes: json!([key]),
        },
        Case {
            name: "rows of one length at 50",
            fillfactor: 50,
            columns: plain,
            indexes: json!([key]),
        },
        Case {
            name: "strings and a second index",
            fillfactor: 90,
            columns: strings,
            indexes: json!([index("pkey", "id", true), index("owner", "owner", false)]),
        },
    ]
}

fn spec(case: &Case) -> ProfileSpec {
    let name = &case.columns[0]["name"];
    let profile = json!({"schema_version": 1,
        "server": {"version": "18.4", "shared_buffers": "16GB", "full_page_writes": true,
            "wal_level": "replica", "wal_compression": "off", "wal_log_hints": false,
            "data_checksums": true, "autovacuum": false, "settings": {}},
        "table": [{"name": "t", "rows": ROWS, "fillfactor": case.fillfactor, "reloptions": {},
            "columns": case.columns, "indexes": case.indexes}],
        "operation": [{"table": "t", "kind": "select", "weight": 1, "rows_per_statement": 1,
            "abort_frac": 0.0, "pick": {"distribution": "uniform", "scatter": false},
            "find": "index"}],
        "run": {"operations": 1, "clients": 1, "seed": 1}});
    ProfileSpec::from_json(&profile.to_string())
        .unwrap_or_else(|error| panic!("{}, by {name}: {error}", case.name))
}

fn loads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.throughput(Throughput::Elements(ROWS)).sample_size(10);
    for case in &cases() {
        let spec = spec(case);
        group.bench_function(BenchmarkId::new(case.name, ROWS), |bencher| {
            bencher.iter_with_large_drop(|| {
                let mut db = load::database(&spec.server, "18.4".parse().expect("a version"));
                let loaded = load::load_tables(&mut db, &spec.table, &Monitor::default());
                loaded.expect("a table");
                db
            });
        });
    }
    group.finish();
}

criterion_group!(benches, loads);
criterion_main!(benches);
