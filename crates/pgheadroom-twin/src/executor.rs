//! The order in which a statement touches pages.
//!
//! ```text
//! index scan:  leaf -> for each TID: prune its page, walk the HOT chain -> row found: change it
//!              -> entries after it are visited too -> dead ones are marked, if the leaf is as read
//! seq scan:    page by page: prune, collect visible rows, change them one by one
//! change:      [LOCK] heap -> every index in order of OID: uniqueness check, then the entry
//! ```
//!
//! That order decides which pages are pruned and which index entries die, so it decides sizes and
//! WAL. The plan (which scan) is given by the caller. Left out: bitmap and index-only scans,
//! synchronised scans, parallel plans, triggers, foreign keys, other sessions' locks and pins.

use std::cell::RefCell;

use pgheadroom_layout::wal_record::{COMMIT, heap_confirm};
use pgheadroom_layout::{Behaviour, BlockNumber, LayoutError};

use crate::btree::{self, UniqueViolation};
use crate::counters::TableCounters;
use crate::horizon::Horizon;
use crate::page::Tid;
use crate::transaction::Transactions;
use crate::wal::{IndexLog, RecordType, Wal, WalSettings};

mod change;
mod copy;
mod fetch;
mod table;
mod vacuum;

pub use copy::CopyRow;
pub use table::{Column, IndexDefinition, Table, TableDefinition};

use fetch::{Fetched, HeapAccess};

/// A table of a [`Database`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableId(pub usize);

/// Why a statement failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementError {
    /// A row does not fit a page, or the table cannot grow.
    Layout,
    /// The key is taken; the transaction has to be rolled back.
    Unique(UniqueViolation),
}

impl From<LayoutError> for StatementError {
    fn from(_: LayoutError) -> Self {
        Self::Layout
    }
}

impl From<UniqueViolation> for StatementError {
    fn from(error: UniqueViolation) -> Self {
        Self::Unique(error)
    }
}

/// How an UPDATE changes a row.
pub struct Assignments<'a> {
    /// Columns in the SET clause, by position; what an index learns of an update depends on them.
    pub assigned: &'a [usize],
    /// Turns the row's old values into the new ones.
    pub change: &'a dyn Fn(&mut [i64]),
}

/// What a statement does with the rows it finds.
pub enum Action<'a> {
    /// SELECT.
    Read,
    /// SELECT ... FOR UPDATE.
    Lock,
    /// DELETE.
    Delete,
    /// UPDATE.
    Update(Assignments<'a>),
}

/// Tables, their WAL, and one session that works on them.
#[derive(Debug)]
pub struct Database {
    behaviour: Behaviour,
    horizon: Horizon,
    wal: Wal,
    tables: Vec<Table>,
    /// Number of the running statement: its own changes are invisible to it.
    statement: u32,
}

impl Database {
    /// A database without tables.
    #[must_use]
    pub fn new(behaviour: Behaviour, settings: WalSettings) -> Self {
        Self {
            behaviour,
            horizon: Horizon::default(),
            wal: Wal::new(settings),
            tables: Vec::new(),
            statement: 0,
        }
    }

    /// CREATE TABLE, with its indexes in the order of their creation.
    pub fn create_table(&mut self, definition: TableDefinition) -> TableId {
        let table = Table::new(self.behaviour, definition, &mut self.wal);
        self.tables.push(table);
        TableId(self.tables.len() - 1)
    }

    /// CREATE INDEX on a table that nothing was updated in or deleted from.
    ///
    /// # Panics
    /// When the table has versions that index entries do not point to.
    ///
    /// Source: `heapam_index_build_range_scan`, src/backend/access/heap/heapam_handler.c
    /// (REL_18_STABLE). Differs: its WAL is not counted, nor are its pages dirty afterwards.
    pub fn create_index(&mut self, table: TableId, definition: IndexDefinition) {
        self.tables[table.0].build_index(self.behaviour, definition, &mut self.wal);
        self.forget_target_blocks();
    }

    /// All tables in the order of their creation.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + use<> {
        (0..self.tables.len()).map(TableId)
    }

    /// A table.
    #[must_use]
    pub fn table(&self, table: TableId) -> &Table {
        &self.tables[table.0]
    }

    /// The log.
    #[must_use]
    pub const fn wal(&self) -> &Wal {
        &self.wal
    }

    /// The log, to start counting anew.
    pub const fn wal_mut(&mut self) -> &mut Wal {
        &mut self.wal
    }

    /// Transactions and held snapshots.
    pub const fn horizon_mut(&mut self) -> &mut Horizon {
        &mut self.horizon
    }

    /// CHECKPOINT.
    pub fn checkpoint(&mut self) {
        self.wal.checkpoint();
    }

    /// A new session, or one that was told of a change to the table's catalogue entry: the pages
    /// where it inserted last are forgotten.
    pub fn forget_target_blocks(&mut self) {
        for table in &mut self.tables {
            table.target = crate::heap::InsertTargetBlock::default();
        }
    }

    /// Starts counting rows anew, as the difference to counters read now.
    pub fn reset_counters(&mut self) {
        for table in &mut self.tables {
            table.counters = TableCounters::default();
        }
    }

    /// COMMIT, or the end of a statement outside a transaction.
    ///
    /// Source: `RecordTransactionCommit`, src/backend/access/transam/xact.c (REL_18_STABLE): no
    /// record without a transaction number.
    pub fn commit(&mut self) {
        if self.horizon.commit().is_some() {
            self.wal.record(RecordType::Commit, COMMIT);
        }
        for table in &mut self.tables {
            table.end_transaction(true);
        }
    }

    /// ROLLBACK.
    ///
    /// Source: `RecordTransactionAbort`, src/backend/access/transam/xact.c (REL_18_STABLE).
    pub fn rollback(&mut self) {
        if self.horizon.abort().is_some() {
            self.wal.record(RecordType::Abort, COMMIT); // the same shape
        }
        for table in &mut self.tables {
            table.end_transaction(false);
        }
    }

    /// INSERT of one row.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    ///
    /// Source: `ExecInsert`, src/backend/executor/nodeModifyTable.c (REL_18_STABLE).
    pub fn insert(&mut self, table: TableId, values: &[i64]) -> Result<(), StatementError> {
        self.statement += 1;
        let table = &mut self.tables[table.0];
        table.insert(values, &mut self.horizon, &mut self.wal, self.statement)?;
        Ok(())
    }

    /// INSERT ... ON CONFLICT DO UPDATE of one row, by the unique index of this position.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    ///
    /// Source: `ExecInsert` and `ExecOnConflictUpdate`, src/backend/executor/nodeModifyTable.c;
    /// `check_exclusion_or_unique_constraint`, execIndexing.c (REL_18_STABLE).
    pub fn upsert(
        &mut self,
        table: TableId,
        index: usize,
        values: &[i64],
        assignments: &Assignments<'_>,
    ) -> Result<(), StatementError> {
        self.statement += 1;
        let statement = self.statement;
        let table = &mut self.tables[table.0];
        let key = table.indexes[index].key_of(values);
        let conflict = table.find_conflict(index, key.values(), &self.horizon, &mut self.wal);
        if let Some(tid) = conflict {
            let action = Action::Lock;
            table.apply(tid, &action, &mut self.horizon, &mut self.wal, statement)?;
            return table.update(
                tid,
                assignments,
                &mut self.horizon,
                &mut self.wal,
                statement,
            );
        }
        let tid = table.insert(values, &mut self.horizon, &mut self.wal, statement)?;
        let hole = table.heap.pages()[tid.block.0 as usize].exact_free_space();
        let page = self.wal.change(table.main, tid.block, hole);
        self.wal.record(RecordType::HeapConfirm, heap_confirm(page));
        Ok(())
    }

    /// A statement that finds rows by keys from `low` to `high` of an index; number of rows.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    ///
    /// Source: `IndexNext`, src/backend/executor/nodeIndexscan.c; `heapam_index_fetch_tuple`,
    /// src/backend/access/heap/heapam_handler.c; `ConditionalLockBufferForCleanup`,
    /// src/backend/storage/buffer/bufmgr.c (REL_18_STABLE).
    pub fn by_index(
        &mut self,
        table: TableId,
        index: usize,
        low: &[i64],
        high: &[i64],
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        self.statement += 1;
        let statement = self.statement;
        let table = &mut self.tables[table.0];
        let mut found_rows = 0;
        let mut next = table.indexes[index].tree.scan_start(low);
        let mut last_block = None;
        // The slot of the last row found keeps its page pinned until the next one is found, so
        // a range scan that comes back to that page over dead entries does not prune it.
        let mut slot_block = None;
        let mut dead = std::mem::take(&mut table.dead_entries);
        while let Some(leaf) = next {
            let scanned = table.indexes[index].tree.scan_page(leaf, low, high);
            dead.clear();
            for &(offset, tid) in &scanned.entries {
                let wal = RefCell::new(&mut self.wal);
                let mut heap = HeapAccess::new(table.heap_parts(), &self.horizon, &wal, None);
                let is_other = last_block.replace(tid.block) != Some(tid.block);
                if is_other && slot_block != Some(tid.block) {
                    heap.visit(tid.block);
                }
                match heap.fetch(tid, statement) {
                    Fetched::Found(found) => {
                        slot_block = Some(found.block);
                        found_rows += 1;
                        table.apply(found, action, &mut self.horizon, &mut self.wal, statement)?;
                    }
                    Fetched::AllDead => dead.push((offset, tid)),
                    Fetched::Invisible => {}
                }
            }
            let wal = RefCell::new(&mut self.wal);
            let index = &mut table.indexes[index];
            let mut log = IndexLog {
                wal: &wal,
                main: index.main,
                fsm: index.fsm,
            };
            index.tree.kill(&scanned, &dead, false, &mut log);
            next = scanned.next;
        }
        table.dead_entries = dead;
        Ok(found_rows)
    }

    /// A statement that reads the whole table and acts on the rows that `wanted` accepts.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    ///
    /// Source: `heap_prepare_pagescan`, src/backend/access/heap/heapam.c (REL_18_STABLE;
    /// `heapgetpage` before).
    pub fn by_seq_scan(
        &mut self,
        table: TableId,
        wanted: impl Fn(&[i64]) -> bool,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        self.statement += 1;
        let statement = self.statement;
        let table = &mut self.tables[table.0];
        let mut found_rows = 0;
        let mut visible: Vec<Tid> = Vec::new();
        for block in (0..table.heap.page_count()).map(BlockNumber) {
            visible.clear();
            let wal = RefCell::new(&mut self.wal);
            let mut heap = HeapAccess::new(table.heap_parts(), &self.horizon, &wal, None);
            heap.visit(block);
            heap.visible_tuples(block, statement, &mut visible);
            for &tid in &visible {
                if wanted(table.values_at(tid)) {
                    found_rows += 1;
                    table.apply(tid, action, &mut self.horizon, &mut self.wal, statement)?;
                }
            }
        }
        Ok(found_rows)
    }
}

/// What a B-tree asks about the table it belongs to.
impl btree::Table for HeapAccess<'_, '_> {
    fn fetch_for_uniqueness(&mut self, tid: Tid) -> btree::UniqueFetch {
        if self.pinned != Some(tid.block) {
            self.visit(tid.block);
        }
        match self.fetch_dirty(tid) {
            Fetched::Found(_) => btree::UniqueFetch::Conflict,
            Fetched::Invisible => btree::UniqueFetch::Invisible,
            Fetched::AllDead => btree::UniqueFetch::AllDead,
        }
    }

    fn is_deletable(&mut self, tid: Tid) -> bool {
        self.is_chain_dead(tid)
    }

    fn is_removable(&self, xid: crate::transaction::Xid) -> bool {
        self.horizon.is_removable(xid)
    }
}
