//! Whole pgbench runs of one client against servers: counters, pages, and records and bytes of
//! every WAL record type.
//!
//! Origin: `golden/expected/*/run-*.json`, written by `tools/record_run_golden.py` on 15.18, 16.14
//! and 18.4: 20000 transactions with `--random-seed`, index scans only.

use crate::common;

use std::collections::BTreeMap;

use pgheadroom_layout::{BlockNumber, HeapFillfactor, PgVersion};
use pgheadroom_twin::check;
use pgheadroom_twin::executor::{
    Assignment, Change, ColumnDefinition, Database, IndexDefinition, TableDefinition, TableId,
};
use pgheadroom_twin::lock_options::{LockTupleMode, LockWaitPolicy};
use pgheadroom_twin::pgbench::{Builtin, Generators};
use pgheadroom_twin::profile::{BuiltinName, Monitor, PgbenchSpec, load};
use pgheadroom_twin::run::{Outcome, Plan, run};
use pgheadroom_twin::value::{Text, Value};
use pgheadroom_twin::wal::WalSettings;
use pgheadroom_twin::workload::{Access, CmdType, End, Operation, PgbenchWorkload, Sets, Workload};

const VERSIONS: [&str; 3] = ["15.18", "16.14", "18.4"];

fn database(version: &str, images: &str) -> Database {
    let version: PgVersion = version.parse().unwrap();
    let settings = WalSettings {
        full_page_writes: images == "on",
        hints_are_logged: version.behaviour().checksums_by_default,
        is_logical: false,
    };
    Database::new(version.behaviour(), settings)
}

fn compare(what: &str, outcome: &Outcome, text: &str) {
    let table = |name| common::table(text, name);
    let counts = |number: u64| i64::try_from(number).unwrap();
    for (name, expected) in common::names(text, "tables").iter().zip(table("counters")) {
        let mut tables = outcome.tables.iter();
        let done = tables.find(|done| done.name == *name).unwrap();
        let counters = done.counters;
        let newpage = if expected[4] < 0 {
            -1 // 15 does not count them
        } else {
            counts(counters.n_tup_newpage_upd)
        };
        let found = [
            counts(counters.n_tup_ins),
            counts(counters.n_tup_upd),
            counts(counters.n_tup_del),
            counts(counters.n_tup_hot_upd),
            newpage,
        ];
        assert_eq!(found[..], expected, "{what}: counters of {name}");
    }
    let names = common::names(text, "wal_names");
    let expected: BTreeMap<String, Vec<i64>> = names.into_iter().zip(table("wal")).collect();
    let found: BTreeMap<String, Vec<i64>> = outcome
        .by_record
        .iter()
        .map(|(name, totals)| {
            let totals = vec![counts(totals.wal_records), counts(totals.wal_bytes)];
            (name.clone(), totals)
        })
        .collect();
    assert_eq!(found, expected, "{what}: WAL");
    let heap = outcome.tables.iter().map(|done| done.heap_pages);
    let index = outcome.tables.iter().map(|done| done.index_pages);
    let expected: i64 = table("pages").iter().map(|row| row[0]).sum();
    assert_eq!(
        i64::from(heap.chain(index).sum::<u32>()),
        expected,
        "{what}: pages"
    );
}

/// `pgbench -b tpcb-like -s 2 --random-seed=42`.
#[test]
fn tpcb_like() {
    for version in VERSIONS {
        for (fillfactor, images) in [(100, "off"), (90, "off"), (100, "on")] {
            let name = format!("run-tpcb-{fillfactor}-fpw-{images}.json");
            let text = common::golden(&format!("expected/{version}"), &name);
            let mut db = database(version, images);
            // As with `pgbench -F`: the history is always filled up.
            let narrowed = load::PGBENCH_TABLES[..3].iter();
            let spec = PgbenchSpec {
                builtin: BuiltinName::TpcbLike,
                scale: 2,
                fillfactor: narrowed
                    .map(|name| ((*name).to_owned(), fillfactor))
                    .collect(),
            };
            let monitor = Monitor::default();
            let tables = load::load_pgbench(&mut db, &spec, spec.scale, &monitor).unwrap();
            let mut workload = PgbenchWorkload::new(Builtin::TpcbLike, 2, tables, 42, 1, 20_000);
            let plan = Plan::of_one_client(20_000);
            let names = load::PGBENCH_TABLES.map(str::to_owned);
            let outcome = run(&mut db, &mut workload, &names, &plan, &monitor).unwrap();
            assert_eq!(outcome.transactions, 20_000);
            compare(&format!("{version} {name}"), &outcome, &text);
            for id in db.tables() {
                for (block, page) in (0..).zip(db.table(id).heap().pages()) {
                    check::page(BlockNumber(block), page).unwrap();
                }
            }
        }
    }
}

/// The script of the mixed run.
struct Mixed {
    table: TableId,
    generators: Generators,
    left: u64,
}

impl Workload for Mixed {
    fn clients(&self) -> usize {
        1
    }

    fn transactions_left(&self) -> u64 {
        self.left
    }

    fn next_transaction(&mut self, client: usize, operations: &mut Vec<Operation>) -> Option<End> {
        operations.clear();
        self.left = self.left.checked_sub(1)?;
        let client = &mut self.generators.clients[client];
        let key = client.random(1, 5000);
        let what = client.random(1, 10);
        let fails = client.random(1, 10);
        let by_key = |high, cmd_type| Operation::Find {
            table: self.table,
            by: Access::Index(0),
            low: key,
            high,
            cmd_type,
            number: 0,
        };
        let add = |column, addend| {
            let change = Change::Add(addend);
            Sets::from(vec![Assignment { column, change }])
        };
        operations.push(match what {
            ..=4 => by_key(key, CmdType::Update(add(2, 1))),
            5 => by_key(key, CmdType::Delete),
            6 | 7 => Operation::Upsert {
                table: self.table,
                index: 0,
                rows: vec![row(key, 5)],
                sets: add(2, 1),
            },
            8 => by_key(
                key,
                CmdType::Lock(LockTupleMode::Update, LockWaitPolicy::Block),
            ),
            9 => by_key(key, CmdType::Update(add(1, 7))),
            _ => by_key(key + 9, CmdType::Read),
        });
        Some(if fails == 1 {
            End::Rollback
        } else {
            End::Commit
        })
    }
}

/// Values of a row of the mixed runs.
fn row(id: i64, n: i64) -> Vec<Value> {
    let filler = Value::Text(Text::padded(b' ', 64));
    vec![id.into(), n.into(), 0.into(), filler]
}

/// The table of the mixed runs, loaded.
fn mixed_table(version: &str, images: &str) -> (Database, TableId) {
    let mut db = database(version, images);
    let column = |name, type_name| ColumnDefinition::new(name, type_name).unwrap();
    let table = db
        .create_table(TableDefinition {
            columns: vec![
                column("id", "int4"),
                column("n", "int4"),
                column("v", "int4"),
                column("f", "bpchar(64)"),
            ],
            indexes: Vec::new(),
            fillfactor: HeapFillfactor::new(90).unwrap(),
        })
        .unwrap();
    for id in 1..=5000_i64 {
        db.insert(table, &row(id, id % 1000)).unwrap();
    }
    db.commit();
    for (column, is_unique) in [(0, true), (1, false)] {
        let index = IndexDefinition::on_columns(vec![column], is_unique);
        db.create_index(table, index).unwrap();
    }
    db.vacuum(table).unwrap();
    db.checkpoint();
    (db, table)
}

/// Updates, deletes, upserts, locks and reads with rollbacks, on a table with two indexes.
#[test]
fn mixed() {
    for version in VERSIONS {
        for images in ["off", "on"] {
            let text = common::golden(
                &format!("expected/{version}"),
                &format!("run-mixed-fpw-{images}.json"),
            );
            let (mut db, table) = mixed_table(version, images);
            let mut workload = Mixed {
                table,
                generators: Generators::new(7, 1),
                left: 20_000,
            };
            let names = ["m".to_owned()];
            let plan = Plan::of_one_client(20_000);
            let outcome = run(&mut db, &mut workload, &names, &plan, &Monitor::default()).unwrap();
            compare(&format!("{version} {images}"), &outcome, &text);
        }
    }
}
