//! Upserts beside other sessions: what one does that finds its row after others have been there.

use std::cell::Cell;

use pgheadroom_layout::{BlockNumber, HeapFillfactor, PgVersion};
use pgheadroom_twin::btree::{self, RecordKind};
use pgheadroom_twin::check;
use pgheadroom_twin::executor::{
    Action, Assignment, Assignments, Change, ColumnDefinition, Database, IndexDefinition, Row,
    SessionId, StatementError, TableDefinition, TableId,
};
use pgheadroom_twin::procarray::Isolation;
use pgheadroom_twin::run::{perform, resume};
use pgheadroom_twin::value::{Text, Value};
use pgheadroom_twin::wal::{RecordType, WalSettings};
use pgheadroom_twin::workload::Operation;

const FIRST: SessionId = SessionId(0);
const V: usize = 1;
const ADD_ONE: [Assignment<'static>; 1] = [Assignment {
    column: V,
    change: Change::Add(1),
}];

/// It has read so many entries, all of rows on the first page.
fn fetches(entries: usize) -> Result<u64, StatementError> {
    let last = (entries > 0).then_some(BlockNumber(0));
    Err(StatementError::Fetches { entries, last })
}

struct Table {
    db: Database,
    t: TableId,
    second: SessionId,
}

impl Table {
    /// `t(k int, v int, f char(100))` with a unique index of k and, if it `indexes_v`, before that
    /// one of v, of two sessions.
    fn new(indexes_v: bool) -> Self {
        let behaviour = PgVersion::new(15, 18).unwrap().behaviour();
        let settings = WalSettings {
            full_page_writes: false,
            hints_are_logged: false,
            is_logical: false,
        };
        let mut db = Database::new(behaviour, settings);
        let column = |name, kind| ColumnDefinition::new(name, kind).unwrap();
        let of_v = indexes_v.then(|| IndexDefinition::on_columns(vec![V], false));
        let key = IndexDefinition::on_columns(vec![0], true);
        let t = db
            .create_table(TableDefinition {
                columns: vec![
                    column("k", "int4"),
                    column("v", "int4"),
                    column("f", "bpchar(100)"),
                ],
                indexes: of_v.into_iter().chain([key]).collect(),
                fillfactor: HeapFillfactor::new(100).unwrap(),
            })
            .unwrap();
        let second = db.open_session();
        db.ask_on_arrival();
        Self { db, t, second }
    }

    /// The same with row 1, whose upsert by the first session has read the index; the second one
    /// is active.
    fn with_upsert(indexes_v: bool) -> (Self, Operation) {
        let mut table = Self::new(indexes_v);
        table.insert();
        table.db.commit();
        let upsert = table.upsert();
        assert_eq!(perform(&mut table.db, &upsert), fetches(1));
        table.db.switch_to(table.second);
        (table, upsert)
    }

    fn values(k: i64, v: i64) -> [Value; 3] {
        [k.into(), v.into(), Value::Text(Text::padded(b' ', 100))]
    }

    fn key_index(&self) -> usize {
        self.db.table(self.t).index_pages().len() - 1
    }

    fn insert(&mut self) {
        self.db.insert(self.t, &Self::values(1, 0)).unwrap();
    }

    fn update(&mut self) {
        let index = self.key_index();
        let action = Action::Update(Assignments { columns: &ADD_ONE });
        let done = self.db.by_index(self.t, index, &[1], &[1], &action);
        assert_eq!(done, Ok(1));
    }

    /// Row 1 is inserted with v = 10, or one is added to its v.
    fn upsert(&self) -> Operation {
        Operation::Upsert {
            table: self.t,
            index: self.key_index(),
            rows: vec![Self::values(1, 10).to_vec()],
            sets: ADD_ONE.into_iter().collect(),
        }
    }

    fn v(&mut self) -> Option<i64> {
        let seen = Cell::new(None);
        let wanted = |row: Row<'_>| {
            seen.set(row.integer(V));
            false
        };
        self.db.by_seq_scan(self.t, wanted, &Action::Read).unwrap();
        seen.get()
    }

    fn check(&self) {
        let table = self.db.table(self.t);
        for (block, page) in (0..).zip(table.heap().pages()) {
            check::page(BlockNumber(block), page).unwrap();
        }
        for index in 0..table.index_pages().len() {
            btree::check::tree(table.index_tree(index)).unwrap();
        }
    }

    fn counted(&self) -> [u64; 3] {
        let counters = self.db.table(self.t).counters();
        [counters.n_tup_ins, counters.n_tup_upd, counters.n_tup_del]
    }

    /// Records of a kind, and their bytes.
    fn records(&self, of: RecordType) -> (u64, u64) {
        let mut counted = self.db.wal().counted_by_type();
        counted
            .find(|(record, _)| *record == of)
            .map_or((0, 0), |(_, totals)| (totals.wal_records, totals.wal_bytes))
    }
}

/// Another session inserts the row between an upsert's look into the index and its rows: it inserts
/// one too, kills it and begins again, by the records of 15.18 (`test_upsert_collision_live.py`).
#[test]
fn an_upsert_that_comes_too_late_kills_its_row() {
    let mut table = Table::new(true);
    let upsert = table.upsert();
    assert_eq!(perform(&mut table.db, &upsert), fetches(0));
    table.db.switch_to(table.second);
    table.insert();
    table.db.commit();
    table.db.switch_to(FIRST);
    assert_eq!(resume(&mut table.db, &upsert), fetches(2), "its own, too");
    assert_eq!(table.counted(), [2, 0, 1]);
    assert_eq!(resume(&mut table.db, &upsert), Ok(1));
    table.db.commit();
    assert_eq!(table.counted(), [2, 1, 1]);
    assert_eq!(table.v(), Some(1));
    let expected = [
        (RecordType::HeapInsertInit, (1, 164)),
        (RecordType::HeapInsert, (1, 164)),
        (RecordType::HeapDelete, (1, 54)),
        (RecordType::HeapLock, (1, 54)),
        (RecordType::HeapUpdate, (1, 71)),
        (RecordType::HeapConfirm, (0, 0)),
        (RecordType::Btree(RecordKind::InsertLeaf), (6, 6 * 64)),
    ];
    for (of, count) in expected {
        assert_eq!(table.records(of), count, "{of:?}");
    }
    table.check();
}

/// A row that another session replaces and commits meanwhile is in nobody's entries but the newer
/// one's, unless that is a HOT version.
#[test]
fn only_a_version_with_an_entry_of_its_own_is_missed() {
    for indexes_v in [true, false] {
        let (mut table, upsert) = Table::with_upsert(indexes_v);
        table.update();
        table.db.commit();
        table.db.switch_to(FIRST);
        let again = resume(&mut table.db, &upsert);
        if indexes_v {
            assert!(
                matches!(again, Err(StatementError::Fetches { .. })),
                "{again:?}"
            );
            assert_eq!(resume(&mut table.db, &upsert), Ok(1));
        } else {
            assert_eq!(again, Ok(1));
        }
        table.db.commit();
        let killed = u64::from(indexes_v);
        assert_eq!(table.counted(), [1 + killed, 2, killed]);
        assert_eq!(table.v(), Some(2));
        table.check();
    }
}

/// Who still has the row is waited for; then the upsert begins again, and what was rolled back is
/// in nobody's way.
#[test]
fn an_upsert_waits_for_who_has_the_row_and_begins_again() {
    for (commits, v) in [(true, 2), (false, 1)] {
        let (mut table, upsert) = Table::with_upsert(true);
        table.update();
        table.db.switch_to(FIRST);
        assert!(matches!(
            resume(&mut table.db, &upsert),
            Err(StatementError::Waits(_))
        ));
        table.db.switch_to(table.second);
        let woken = if commits {
            table.db.commit()
        } else {
            table.db.rollback()
        };
        assert_eq!(woken, [FIRST]);
        table.db.switch_to(FIRST);
        assert_eq!(resume(&mut table.db, &upsert), fetches(2));
        assert_eq!(resume(&mut table.db, &upsert), Ok(1));
        table.db.commit();
        assert_eq!(table.counted(), [1, 2, 0]);
        assert_eq!(table.v(), Some(v));
        table.check();
    }
}

/// What is killed is dead for everybody at once, in a repeatable read transaction too, whose
/// snapshot does not show the row that it then wants to change.
#[test]
fn a_killed_row_is_seen_by_nobody() {
    let mut table = Table::new(true);
    table.db.set_isolation(Isolation::RepeatableRead);
    let upsert = table.upsert();
    assert_eq!(perform(&mut table.db, &upsert), fetches(0));
    table.db.switch_to(table.second);
    table.insert();
    table.db.commit();
    table.db.switch_to(FIRST);
    assert_eq!(resume(&mut table.db, &upsert), fetches(2));
    let done = resume(&mut table.db, &upsert);
    assert_eq!(done, Err(StatementError::Serialization));
    table.db.rollback();
    assert_eq!(table.counted(), [2, 0, 1]);
    assert_eq!(table.v(), Some(0), "the other session's row");
    table.db.commit();
    table.db.vacuum(table.t).unwrap();
    let page = &table.db.table(table.t).heap().pages()[0];
    assert_eq!(
        page.item_count(),
        1,
        "the killed row's line pointer is gone"
    );
    table.check();
}
