//! Rows of random length are deleted, vacuumed away, and their room is used again (G8).
//!
//! Origin: physics, golden G8, which compared every ctid on servers: table
//! `v(id int PRIMARY KEY, p text)`, `CALL ins(first, last, seed, low, high)` between two DELETEs of
//! a third of the rows and VACUUM after each. 18.4 has checksums, 15.18 has none, both
//! `full_page_writes` off.

use crate::common::table;

use pgheadroom_layout::{HeapFillfactor, PgVersion};
use pgheadroom_twin::btree::RecordKind;
use pgheadroom_twin::executor::{
    Action, ColumnDefinition, Database, IndexDefinition, TableDefinition, TableId,
};
use pgheadroom_twin::value::{Text, Value};
use pgheadroom_twin::wal::{RecordType, WalSettings};
use table::Lcg;

/// The steps of the recording: rows of each load, and the lengths of the first and the later ones.
struct Case {
    version: &'static str,
    fillfactor: i64,
    loads: [i64; 3],
    lengths: [(u64, u64); 2],
}

struct Reused {
    db: Database,
    v: TableId,
}

impl Reused {
    fn of(&self, record: RecordType) -> (u64, u64) {
        let totals = self.db.wal().of(record);
        (totals.wal_records, totals.wal_bytes)
    }

    /// Pages of the table, its index and its free space map, and rows that are left.
    fn sizes(&mut self) -> (u32, u32, usize, u64) {
        let live = self.db.by_seq_scan(self.v, |_| true, &Action::Read);
        let table = self.db.table(self.v);
        let fsm = table.heap().fsm().page_count();
        let pages = table.heap().page_count();
        (pages, table.index_pages()[0], fsm, live.unwrap())
    }
}

impl Case {
    fn play(&self) -> Reused {
        let version: PgVersion = self.version.parse().unwrap();
        let settings = WalSettings {
            full_page_writes: false,
            hints_are_logged: version.behaviour().checksums_by_default,
            is_logical: false,
        };
        let mut db = Database::new(version.behaviour(), settings);
        let column = |name, type_name| ColumnDefinition::new(name, type_name).unwrap();
        let v = db
            .create_table(TableDefinition {
                columns: vec![column("id", "int4"), column("p", "text")],
                indexes: vec![IndexDefinition::on_columns(vec![0], true)],
                fillfactor: HeapFillfactor::new(self.fillfactor).unwrap(),
            })
            .unwrap();
        let mut last = 0;
        for (seed, (&rows, remainder)) in (1..).zip(self.loads.iter().zip([0, 1, 2])) {
            let (low, high) = self.lengths[usize::from(seed > 1)];
            let mut random = Lcg(seed);
            for id in last + 1..=last + rows {
                let number = u64::try_from(random.next()).unwrap();
                let length = u32::try_from(low + number % (high - low + 1)).unwrap();
                let text = Value::Text(Text::padded(b'x', length));
                db.insert(v, &[id.into(), text]).unwrap();
            }
            db.commit();
            last += rows;
            if seed == 3 {
                break; // nothing is deleted after the last load
            }
            let doomed = |id: i64| (id + remainder) % 3 == 0;
            db.by_seq_scan(v, |row| row.integer(0).is_some_and(doomed), &Action::Delete)
                .unwrap();
            db.commit();
            db.vacuum(v).unwrap();
        }
        Reused { db, v }
    }
}

const LONG: Case = Case {
    version: "18.4",
    fillfactor: 100,
    loads: [6000, 2000, 2000],
    lengths: [(20, 400), (20, 400)],
};

/// Filled pages: placement, sizes and every record on 18.4 and 15.18.
#[test]
fn filled_pages() {
    let mut done = LONG.play();
    assert_eq!(done.sizes(), (186, 29, 3, 5333));
    for (record, records, bytes) in [
        (RecordType::HeapInsert, 9814, 2_656_859),
        (RecordType::HeapInsertInit, 186, 65_685),
        (RecordType::HeapDelete, 4667, 252_018),
        (RecordType::HeapPruneVacuum, 371, 29_368),
        (RecordType::HeapVacuum, 371, 27_884),
        (RecordType::HeapVisible, 371, 21_889),
        (RecordType::Btree(RecordKind::InsertLeaf), 9974, 638_336),
        (RecordType::Btree(RecordKind::InsertUpper), 25, 1800),
        (RecordType::Btree(RecordKind::SplitR), 26, 19_552),
        (RecordType::Btree(RecordKind::NewRoot), 2, 212),
        (RecordType::Btree(RecordKind::Vacuum), 39, 11_284),
        (RecordType::FpiForHint, 3, 132),
    ] {
        assert_eq!(done.of(record), (records, bytes), "{record:?}");
    }
    let mut before = Case {
        version: "15.18",
        ..LONG
    }
    .play();
    assert_eq!(before.sizes(), (186, 29, 3, 5333));
    assert_eq!(before.of(RecordType::HeapPruneVacuum), (371, 29_368));
    assert_eq!(before.of(RecordType::HeapVacuum), (371, 27_142));
    assert_eq!(before.of(RecordType::FpiForHint), (0, 0));
}

/// A fifth of each page is kept free, and later rows are longer.
#[test]
fn reserve_and_longer_rows() {
    let case = Case {
        fillfactor: 80,
        lengths: [(20, 400), (100, 600)],
        ..LONG
    };
    let mut done = case.play();
    assert_eq!(done.sizes(), (282, 29, 3, 5333));
    for (record, records, bytes) in [
        (RecordType::HeapInsert, 9718, 3_163_098),
        (RecordType::HeapInsertInit, 282, 114_301),
        (RecordType::HeapPruneVacuum, 510, 36_874),
        (RecordType::HeapVacuum, 510, 34_834),
        (RecordType::HeapVisible, 510, 30_090),
    ] {
        assert_eq!(done.of(record), (records, bytes), "{record:?}");
    }
}

/// Half of each page is kept free, and rows are up to a quarter of a page.
#[test]
fn half_empty_pages_with_wide_rows() {
    let case = Case {
        fillfactor: 50,
        loads: [3000, 1000, 1000],
        lengths: [(100, 1900), (100, 1900)],
        ..LONG
    };
    assert_eq!(case.play().sizes(), (860, 16, 3, 2667));
}
