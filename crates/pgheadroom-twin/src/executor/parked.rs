//! Statements as far as they have come: scans, and what waits for another session.

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::btree::ScannedPage;
use crate::executor::{Scanned, SessionId, TableId};
use crate::page::Tid;
use crate::transaction::Xid;

/// An index scan, as far as it has come.
#[derive(Debug)]
pub(super) struct IndexScan {
    pub table: TableId,
    pub index: usize,
    pub statement: u32,
    pub found_rows: u64,
    pub entry_count: usize,
    /// Whether it has waited, or stopped for a cursor: others may have added entries meanwhile.
    pub has_stopped: bool,
    /// The row found last and its newest version.
    pub only: Option<(u32, Tid)>,
    pub next: Option<BlockNumber>,
    pub last_block: Option<BlockNumber>,
    /// The slot of the last row found keeps its page pinned until the next one is found, so
    /// a range scan that comes back to that page over dead entries does not prune it.
    pub slot_block: Option<BlockNumber>,
    pub dead: Vec<(OffsetNumber, Tid)>,
    /// While it waits: its leaf, the entry on it, and the version that somebody holds; of a cursor
    /// none.
    pub stopped: Option<(ScannedPage, usize, Option<Tid>)>,
    /// After so many rows a cursor stops.
    pub limit: u64,
    /// While it waits: its keys.
    pub keys: [Vec<i64>; 2],
}

/// A sequential scan, as far as it has come.
#[derive(Debug)]
pub(super) struct SeqScan {
    pub table: TableId,
    pub statement: u32,
    pub found_rows: u64,
    pub block: u32,
    pub pages: u32,
    /// What it sees on the page, and how many of it are done; none before it looks.
    pub visible: Option<(Vec<Tid>, usize)>,
    /// What it has read since it stopped for others last.
    pub part: Scanned,
    /// After so many rows a cursor stops.
    pub limit: u64,
}

/// A scan of a bitmap, as far as it has come.
#[derive(Debug)]
pub(super) struct BitmapScan {
    pub table: TableId,
    pub index: usize,
    pub statement: u32,
    pub found_rows: u64,
    /// The bitmap, ascending.
    pub tids: Vec<Tid>,
    /// How much of it lies on pages that were looked at.
    pub done: usize,
    /// What it sees on the page, and how much of that is done; none before it looks.
    pub visible: Option<(Vec<Tid>, usize)>,
    pub keys: [Vec<i64>; 2],
}

/// A statement by one key that has come to its row by the TID that is cached of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByCachedTid {
    pub table: TableId,
    /// Of the B-tree.
    pub index: usize,
    pub key: i64,
    pub statement: u32,
    /// The version that it sees.
    pub tid: Tid,
    pub has_waited: bool,
}

/// Where the query stopped: a leaf of an index, with the entries found dead on it.
pub(super) type Stopped = Option<(usize, ScannedPage, Vec<(OffsetNumber, Tid)>)>;

/// How a queue's statement ends.
#[derive(Debug)]
pub(super) struct EndOfHead {
    pub found: u64,
    pub stopped: Stopped,
}

/// A statement that waits, as far as it has come.
#[derive(Debug)]
pub(super) enum Parked {
    /// An INSERT of one row.
    Insert(TableId),
    /// One with ON CONFLICT DO UPDATE, by its number; it begins again.
    Upsert(TableId, u32),
    /// The same, which comes to the rows of these entries, if its index has a leaf.
    Fetch(TableId, u32, Option<Box<ScannedPage>>),
    Index(Box<IndexScan>),
    ByCachedTid(ByCachedTid),
    Seq(Box<SeqScan>),
    Bitmap(Box<BitmapScan>),
    /// A queue's, by its number, which is on its way to its rows and looks for them then.
    HeadQuery(u32),
    /// A queue's, whose rows are changed.
    Head(TableId, EndOfHead),
    /// One whose triggers fire.
    End(TableId),
}

impl Parked {
    /// The table whose rows it looks for, if it does.
    pub const fn table(&self) -> Option<TableId> {
        match self {
            Self::Index(scan) => Some(scan.table),
            Self::ByCachedTid(at) => Some(at.table),
            Self::Seq(scan) => Some(scan.table),
            Self::Bitmap(scan) => Some(scan.table),
            _ => None,
        }
    }
}

/// A session that waits, or stops for others to do something.
#[derive(Debug)]
pub(super) struct Waiting {
    pub session: SessionId,
    /// Whose end it waits for; none in a scan that has read a part of its table, and on the way to
    /// a row.
    pub xid: Xid,
    /// The version in whose line it stands: that of its snapshot, or a newer one that is locked.
    /// None where it has come to a newer one that is being replaced: then all go on at once.
    ///
    /// Source: src/backend/access/heap/ (REL_18_STABLE). `heap_acquire_tuplock`, heapam.c: the
    /// first who waits for a transaction that holds a version has the tuple's lock, and the others
    /// wait for that. `heapam_tuple_lock`, heapam_handler.c: the xmax of a dirty snapshot is waited
    /// for without it.
    pub version: Option<(TableId, Tid)>,
    pub statement: Parked,
    /// Rows of an INSERT that are in the table, or on their way to it.
    pub rows_done: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::{
        Action, Assignment, Assignments, Change, ColumnDefinition, Database, IndexDefinition,
        StatementError, TableDefinition,
    };
    use crate::wal::WalSettings;
    use pgheadroom_layout::{HeapFillfactor, PgVersion};

    /// The end of a table stays while a scan waits that has entries for it, and is cut off by the
    /// next VACUUM.
    #[test]
    fn a_scan_that_waits_keeps_the_end() {
        let settings = WalSettings {
            full_page_writes: true,
            hints_are_logged: true,
            is_logical: false,
        };
        let behaviour = PgVersion::new(18, 4).unwrap().behaviour();
        let mut db = Database::new(behaviour, settings);
        let column = |name, kind| ColumnDefinition::new(name, kind).unwrap();
        let table = db
            .create_table(TableDefinition {
                columns: vec![column("k", "int4"), column("f", "bpchar(900)")],
                indexes: vec![IndexDefinition::on_columns(vec![0], true)],
                fillfactor: HeapFillfactor::new(50).unwrap(),
            })
            .unwrap();
        let filler = crate::text::Text::padded(b' ', 900);
        for key in 1..=200_i64 {
            let values = [key.into(), crate::value::Value::Text(filler.clone())];
            db.insert(table, &values).unwrap();
        }
        db.commit();
        let deleted = db.by_index(table, 0, &[21], &[200], &Action::Delete);
        assert_eq!(deleted, Ok(180));
        db.commit();
        let sets = [Assignment {
            column: 1,
            change: Change::Next { grows_bytes: 0 },
        }];
        let update = Action::Update(Assignments { columns: &sets });
        assert_eq!(db.by_index(table, 0, &[1], &[1], &update), Ok(1));
        let waits = db.open_session();
        db.switch_to(waits);
        let waiting = db.by_index(table, 0, &[1], &[200], &update);
        assert!(matches!(waiting, Err(StatementError::Waits(_))));
        let vacuums = db.open_session();
        db.switch_to(vacuums);
        let pages = db.table(table).heap().page_count();
        db.vacuum(table).unwrap();
        assert_eq!(db.table(table).heap().page_count(), pages, "it waits");
        db.switch_to(SessionId(0));
        assert_eq!(db.commit(), [waits]);
        db.switch_to(waits);
        assert_eq!(db.resume_scan(&update, |_| unreachable!("by key")), Ok(20));
        db.commit();
        db.switch_to(vacuums);
        db.vacuum(table).unwrap();
        assert!(
            db.table(table).heap().page_count() < pages / 4,
            "nobody waits"
        );
    }
}
