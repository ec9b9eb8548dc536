//! The table of the recordings, loaded as there, and what the twin counts about it.

#![allow(dead_code)] // each test file uses a part of it

use pgheadroom_layout::{HeapFillfactor, PgVersion};
use pgheadroom_twin::check;
use pgheadroom_twin::executor::{
    Action, Assignment, Assignments, Change, ColumnDefinition, Database, IndexDefinition,
    TableDefinition, TableId,
};
use pgheadroom_twin::value::{Text, Value};
use pgheadroom_twin::wal::{RecordType, WalSettings};

/// Positions of the columns.
pub const AID: usize = 0;
pub const BID: usize = 1;
pub const ABALANCE: usize = 3;

/// `t(aid int PRIMARY KEY, bid int, filler char(n), abalance int)` with further indexes.
pub struct Fixture {
    pub db: Database,
    pub t: TableId,
}

/// How the table is made.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub version: &'a str,
    pub rows: i64,
    pub fillfactor: i64,
    pub filler: u16,
    pub full_page_writes: bool,
    pub indexes_abalance: bool,
}

impl Shape<'_> {
    pub fn loaded(&self) -> Fixture {
        let version: PgVersion = self.version.parse().unwrap();
        let settings = WalSettings {
            full_page_writes: self.full_page_writes,
            hints_are_logged: version.behaviour().checksums_by_default,
            is_logical: false,
        };
        let mut db = Database::new(version.behaviour(), settings);
        let filler = format!("bpchar({})", self.filler);
        let column = |name, type_name| ColumnDefinition::new(name, type_name).unwrap();
        let mut indexes = vec![IndexDefinition::on_columns(vec![AID], true)];
        if self.indexes_abalance {
            indexes.push(IndexDefinition::on_columns(vec![ABALANCE], false));
        }
        let t = db
            .create_table(TableDefinition {
                columns: vec![
                    column("aid", "int4"),
                    column("bid", "int4"),
                    column("filler", &filler),
                    column("abalance", "int4"),
                ],
                indexes,
                fillfactor: HeapFillfactor::new(self.fillfactor).unwrap(),
            })
            .unwrap();
        for aid in 1..=self.rows {
            let filler = Value::Text(Text::padded(b' ', u32::from(self.filler)));
            let bid = (aid - 1) / 100_000 + 1;
            db.insert(t, &[aid.into(), bid.into(), filler, 0.into()])
                .unwrap();
        }
        db.commit();
        db.vacuum(t).unwrap();
        db.checkpoint();
        db.wal_mut().reset_totals();
        db.reset_counters();
        Fixture { db, t }
    }
}

impl Fixture {
    pub fn heap_pages(&self) -> u32 {
        self.db.table(self.t).heap().page_count()
    }

    pub fn index_pages(&self) -> Vec<u32> {
        self.db.table(self.t).index_pages()
    }

    pub fn of(&self, record: RecordType) -> (u64, u64) {
        let totals = self.db.wal().of(record);
        (totals.wal_records, totals.wal_bytes)
    }

    pub fn expect(&self, what: &str, expected: &[(RecordType, u64, u64)]) {
        for &(record, records, bytes) in expected {
            assert_eq!(self.of(record), (records, bytes), "{what}: {record:?}");
        }
        let sum: u64 = expected.iter().map(|&(_, records, _)| records).sum();
        let all = self.db.wal().relation_totals().wal_records;
        assert_eq!(all, sum, "{what}: records of other types");
    }

    pub fn check(&self) {
        let table = self.db.table(self.t);
        for (block, page) in (0..).zip(table.heap().pages()) {
            check::page(pgheadroom_layout::BlockNumber(block), page).unwrap();
        }
    }

    /// An UPDATE by the primary key, committed.
    pub fn update_one(&mut self, aid: i64, columns: &[Assignment<'_>]) {
        let action = Action::Update(Assignments { columns });
        let found = self.db.by_index(self.t, 0, &[aid], &[aid], &action);
        assert_eq!(found, Ok(1), "row {aid}");
        self.db.commit();
    }

    /// The procedure `churn` of the recordings.
    pub fn churn(&mut self, count: u32, rows: i64, seed: u64) {
        let mut random = Lcg(seed);
        for _ in 0..count {
            let aid = 1 + random.next() % rows;
            self.update_one(aid, &[add(ABALANCE, 1)]);
        }
    }
}

/// `SET column = column + addend`.
pub const fn add<'a>(column: usize, addend: i64) -> Assignment<'a> {
    Assignment {
        column,
        change: Change::Add(addend),
    }
}

/// `s <- (s * 1103515245 + 12345) mod 2^31`, of which the upper bits are used.
pub struct Lcg(pub u64);

impl Lcg {
    pub fn next(&mut self) -> i64 {
        self.0 = (self.0 * 1_103_515_245 + 12_345) % (1 << 31);
        i64::try_from(self.0 / 65_536).unwrap()
    }
}
