//! What a row and a page take, by what is allocated for them.

use serde_json::{Value, json};

use crate::executor::Database;
use crate::executor::table::Table;
use crate::profile::{Monitor, ProfileSpec, load};
use crate::run::{Plan, run};
use crate::workload::ProfileWorkload;

/// `pgbench_accounts` and the commonest transaction.
fn accounts(fillfactor: u32, rows: u64) -> ProfileSpec {
    let column = |name: &str, type_name: &str, kind: &str| {
        let values = json!({"kind": kind});
        json!({"name": name, "type": type_name, "values": values, "null_frac": 0})
    };
    let columns = json!([
        column("aid", "int4", "serial"),
        column("bid", "int4", "constant"),
        column("abalance", "int4", "constant"),
        column("filler", "bpchar(84)", "constant"),
    ]);
    let profile = json!({"schema_version": 1,
        "server": {"version": "18.4", "shared_buffers": "16GB", "full_page_writes": true,
            "wal_level": "replica", "wal_compression": "off", "wal_log_hints": false,
            "data_checksums": true, "autovacuum": false, "settings": {}},
        "table": [{"name": "accounts", "rows": rows, "fillfactor": fillfactor,
            "columns": columns, "indexes": [{"name": "accounts_pkey", "columns": ["aid"],
                "unique": true, "method": "btree"}]}],
        "operation": [{"table": "accounts", "kind": "update", "weight": 1,
            "rows_per_statement": 1, "abort_frac": 0.0,
            "sets": {"abalance": {"changed_frac": 1.0, "grows_bytes": Value::Null}},
            "pick": {"distribution": "uniform", "scatter": false}, "find": "index"}],
        "run": {"operations": 1, "clients": 1, "seed": 1}});
    ProfileSpec::from_json(&profile.to_string()).expect("a profile")
}

/// Bytes a row without its items, a line pointer, and a page without its items.
#[allow(clippy::cast_precision_loss)] // few
fn sizes(table: &Table) -> [f64; 3] {
    let pages = table.heap.pages();
    let each = |bytes: usize, count: usize| bytes as f64 / count as f64;
    let items: usize = pages.iter().map(|page| page.offsets().count()).sum();
    let of_items: usize = pages.iter().map(|page| page.allocated_bytes()[0]).sum();
    let of_pages: usize = pages.iter().map(|page| page.allocated_bytes()[1]).sum();
    [
        each(
            table.values.rows.allocated_bytes(),
            table.values.count() as usize,
        ),
        each(of_items, items),
        each(of_pages, pages.len()),
    ]
}

/// 24 bytes a row and 16 for its item; a page whose tuples are settled has its header besides. So
/// it is after a load and, but for a page or two, after HOT updates of every page.
#[test]
fn a_row_and_a_page() {
    let rows = 50_000;
    for (fillfactor, room, updates) in [(100, 1.01, 0), (90, 1.15, 0), (90, 1.15, 5 * rows)] {
        let spec = accounts(fillfactor, rows);
        let monitor = Monitor::default();
        let mut db: Database = load::database(&spec.server, "18.4".parse().expect("a version"));
        let loaded = load::load_tables(&mut db, &spec.table, &monitor).expect("a table");
        let mut workload = ProfileWorkload::new(&spec, &loaded, u64::MAX).expect("a workload");
        let names = ["accounts".to_owned()];
        let plan = Plan::of_one_client(updates);
        run(&mut db, &mut workload, &names, &plan, &monitor).expect("a run");
        let [row, item, page] = sizes(&db.tables[0]);
        let found = format!("{updates} updates at {fillfactor}: {row} {item} {page}");
        assert!(row <= 24.0, "a row: {found}");
        let items = 16.0..=16.0 * room;
        assert!(items.contains(&item), "a line pointer: {found}");
        assert!(page <= 64.0 + 1.0, "a page: {found}");
    }
}
