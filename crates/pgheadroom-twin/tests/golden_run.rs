//! Whole pgbench runs of one client against servers: counters, pages, and records and bytes of
//! every WAL record type.
//!
//! Origin: `golden/expected/*/run-*.json`, written by `tools/record_run_golden.py` on 15.18, 16.14
//! and 18.4: 20000 transactions with `--random-seed`, index scans only.

mod common;

use std::collections::BTreeMap;

use pgheadroom_layout::{BlockNumber, HeapFillfactor, PgVersion};
use pgheadroom_twin::btree::Definition;
use pgheadroom_twin::check;
use pgheadroom_twin::executor::{Column, Database, IndexDefinition, TableDefinition, TableId};
use pgheadroom_twin::pgbench::{Builtin, Generators};
use pgheadroom_twin::run::{Summary, pgbench_tables, run};
use pgheadroom_twin::wal::WalSettings;
use pgheadroom_twin::workload::{
    Addition, Deed, End, Kind, Operation, PgbenchWorkload, Pick, ProfileOperation,
    ProfileTransaction, ProfileWorkload, Values, Workload,
};

const VERSIONS: [&str; 3] = ["15.18", "16.14", "18.4"];

fn database(version: &str, images: &str) -> Database {
    let version: PgVersion = version.parse().unwrap();
    let settings = WalSettings {
        full_page_writes: images == "on",
        hints_are_logged: version.behaviour().checksums_by_default,
    };
    Database::new(version.behaviour(), settings)
}

fn compare(what: &str, db: &Database, summary: &Summary, text: &str) {
    let table = |name| common::table(text, name);
    let counts = |number: u64| i64::try_from(number).unwrap();
    for (done, expected) in summary.tables.iter().zip(table("counters")) {
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
        assert_eq!(found[..], expected, "{what}: counters of {:?}", done.table);
    }
    let names = common::names(text, "wal_names");
    let expected: BTreeMap<String, Vec<i64>> = names.into_iter().zip(table("wal")).collect();
    let cleaning = db
        .table(TableId(0))
        .heap()
        .behaviour()
        .heap_cleaning_records;
    let found: BTreeMap<String, Vec<i64>> = db
        .wal()
        .by_type()
        .map(|(record, totals)| {
            let totals = vec![counts(totals.wal_records), counts(totals.wal_bytes)];
            (record.name(cleaning), totals)
        })
        .collect();
    assert_eq!(found, expected, "{what}: WAL");
    let heap = summary.tables.iter().map(|done| done.heap_pages);
    let index = summary.tables.iter().map(|done| done.index_pages);
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
            let text = common::golden(version, &name);
            let mut db = database(version, images);
            let fillfactor = HeapFillfactor::new(fillfactor).unwrap();
            let tables = pgbench_tables(&mut db, 2, fillfactor).unwrap();
            let mut workload = PgbenchWorkload::new(Builtin::TpcbLike, 2, tables, 42, 20_000);
            let summary = run(&mut db, &mut workload).unwrap();
            assert_eq!(summary.transactions, 20_000);
            compare(&format!("{version} {name}"), &db, &summary, &text);
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
    left: u32,
}

impl Workload for Mixed {
    fn next_transaction(&mut self, operations: &mut Vec<Operation>) -> Option<End> {
        self.left = self.left.checked_sub(1)?;
        let client = &mut self.generators.clients[0];
        let key = client.random(1, 5000);
        let what = client.random(1, 10);
        let fails = client.random(1, 10);
        let by_key = |high, deed| Operation::ByKey {
            table: self.table,
            low: key,
            high,
            deed,
        };
        let add = |column, addend| Addition { column, addend };
        operations.push(match what {
            ..=4 => by_key(key, Deed::Add(add(2, 1))),
            5 => by_key(key, Deed::Delete),
            6 | 7 => Operation::Upsert {
                table: self.table,
                values: Values::new(&[key, 5, 0]),
                addition: add(2, 1),
            },
            8 => by_key(key, Deed::Lock),
            9 => by_key(key, Deed::Add(add(1, 7))),
            _ => by_key(key + 9, Deed::Read),
        });
        Some(if fails == 1 {
            End::Rollback
        } else {
            End::Commit
        })
    }
}

/// The table of the mixed runs, loaded.
fn mixed_table(version: &str, images: &str) -> (Database, TableId) {
    let mut db = database(version, images);
    let column = |offset_bytes| Column {
        offset_bytes,
        width_bytes: 4,
    };
    let table = db.create_table(TableDefinition {
        tuple_bytes: 24 + 12 + 65,
        hoff: 24,
        fillfactor: HeapFillfactor::new(90).unwrap(),
        columns: vec![column(0), column(4), column(8)],
        indexes: Vec::new(),
    });
    for id in 1..=5000 {
        db.insert(table, &[id, id % 1000, 0]).unwrap();
    }
    db.commit();
    for (column, is_unique) in [(0, true), (1, false)] {
        let tree = Definition::new(1, is_unique);
        let columns = vec![column];
        db.create_index(table, IndexDefinition { columns, tree });
    }
    db.vacuum(table);
    db.checkpoint();
    (db, table)
}

/// Updates, deletes, upserts, locks and reads with rollbacks, on a table with two indexes.
#[test]
fn mixed() {
    for version in VERSIONS {
        for images in ["off", "on"] {
            let text = common::golden(version, &format!("run-mixed-fpw-{images}.json"));
            let (mut db, table) = mixed_table(version, images);
            let mut workload = Mixed {
                table,
                generators: Generators::new(7, 1),
                left: 20_000,
            };
            let summary = run(&mut db, &mut workload).unwrap();
            compare(&format!("{version} {images}"), &db, &summary, &text);
        }
    }
}

/// Every way to pick keys, in weighted transactions; scripts stand in the golden file.
#[test]
fn profile() {
    for version in VERSIONS {
        let text = common::golden(version, "run-profile.json");
        let (mut db, table) = mixed_table(version, "off");
        let operation = |kind, pick| ProfileOperation {
            table,
            rows: 5000,
            kind,
            pick,
            scatter: false,
            rows_per_statement: 1,
            by_seq_scan: false,
        };
        let update = |column, changed_frac| Kind::Update {
            column,
            changed_frac,
        };
        let hot = Pick::HotSet {
            rows_frac: 0.1,
            weight: 0.8,
        };
        let scattered = ProfileOperation {
            scatter: true,
            ..operation(update(1, 1.0), Pick::Zipfian(1.1))
        };
        let inserted = ProfileOperation {
            rows_per_statement: 3,
            ..operation(Kind::Insert(Values::new(&[0, 5, 0])), Pick::Newest)
        };
        let range = ProfileOperation {
            rows_per_statement: 10,
            ..operation(update(2, 1.0), Pick::Sequential)
        };
        let gaussian = operation(update(1, 0.5), Pick::Gaussian(2.5));
        let transaction = |operations, weight, abort_frac| ProfileTransaction {
            operations,
            weight,
            abort_frac,
        };
        let transactions = vec![
            transaction(vec![operation(update(2, 1.0), hot)], 5, 0.0),
            transaction(vec![scattered], 3, 0.0),
            transaction(vec![inserted], 1, 0.1),
            transaction(vec![operation(Kind::Delete, Pick::Oldest)], 2, 0.0),
            transaction(vec![range], 4, 0.0),
            transaction(vec![operation(Kind::Lock, Pick::Newest), gaussian], 6, 0.0),
        ];
        let mut workload = ProfileWorkload::new(transactions, 11, 10_000);
        let summary = run(&mut db, &mut workload).unwrap();
        compare(&format!("{version} profile"), &db, &summary, &text);
    }
}
