//! INSERT ... ON CONFLICT DO UPDATE.
//!
//! ```text
//! entries of the key in the index -> their rows, one by one -> a live one: locked and updated
//!                                                           -> none: inserted, with its entries
//! ```
//!
//! Between index and rows another session may replace a row and commit: none of the entries that
//! were read has a live version then. So the row is inserted, its entry meets the newer one, and it
//! is killed; then all begins again.
//!
//! Source: `ExecInsert` and `ExecOnConflictUpdate`, src/backend/executor/nodeModifyTable.c;
//! `check_exclusion_or_unique_constraint`, execIndexing.c (REL_18_STABLE).

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::{heap_confirm, heap_delete};

use crate::btree::{ScannedPage, UniqueCheck};
use crate::executor::change::writer;
use crate::executor::fetch::{Fetched, HeapAccess};
use crate::executor::parked::Parked;
use crate::executor::table::Table;
use crate::executor::{Assignments, Database, SessionId, StatementError, TableId};
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::value::Value;
use crate::wal::{RecordType, Wal};

impl Database {
    /// INSERT ... ON CONFLICT DO UPDATE of one row, by the unique index of this position;
    /// [`Database::end_statement`] follows the last of a statement.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    pub fn upsert(
        &mut self,
        table: TableId,
        index: usize,
        values: &[Value],
        assignments: &Assignments<'_>,
    ) -> Result<(), StatementError> {
        let statement = self.begin_statement_on(table);
        self.begin_upsert((table, index), values, assignments, statement)
    }

    /// The same, from its beginning, in a statement that has begun: where rows are asked for on
    /// arrival it stops when it has read the index.
    pub(super) fn begin_upsert(
        &mut self,
        (id, index): (TableId, usize),
        values: &[Value],
        assignments: &Assignments<'_>,
        statement: u32,
    ) -> Result<(), StatementError> {
        if self.sessions.asks_on_arrival {
            let table = &mut self.tables[id.0];
            let position = table.btree_position(index);
            let row = table.values.add(values)?;
            let entry = table.entry_of(position, row)?;
            table.values.take_back(row);
            let entry = entry.expect("ON CONFLICT takes no partial index");
            let key = entry.key.values();
            let tree = &table.indexes.btrees[position].tree;
            let leaf = tree.scan_start(key);
            let scanned = leaf.map(|leaf| Box::new(tree.scan_page(leaf, key, key)));
            let entries = scanned.as_ref().map_or(&[][..], |scanned| &scanned.entries);
            let stops: Result<(), _> = Err(StatementError::Fetches {
                entries: entries.len(),
                last: entries.last().map(|&(_, tid)| tid.block),
            });
            return self.park(stops, || Parked::Fetch(id, statement, scanned));
        }
        let done = self.upsert_row((id, index), values, assignments, (statement, None));
        self.park(done.map(|_| ()), || Parked::Upsert(id, statement))
    }

    /// Whether the last statement of a session has found its row on this page of the table.
    pub(crate) fn has_come_to(&self, session: SessionId, id: TableId, block: BlockNumber) -> bool {
        let table = &self.tables[id.0];
        let SessionId(number) = session;
        table.session.has_upserted_at(number, block)
            || self.procs.has_slot_on(number, table.forks.main, block)
    }

    /// An upsert comes to the rows of the entries that it has read; it begins again where it was
    /// too late.
    pub(super) fn go_on_with_upsert(
        &mut self,
        (id, index): (TableId, usize),
        values: &[Value],
        assignments: &Assignments<'_>,
        (statement, scanned): (u32, Option<Box<ScannedPage>>),
    ) -> Result<(), StatementError> {
        let seen = Some(scanned.map(|scanned| *scanned));
        let done = self.upsert_row((id, index), values, assignments, (statement, seen));
        if done == Ok(false) {
            return self.begin_upsert((id, index), values, assignments, statement);
        }
        self.park(done.map(|_| ()), || Parked::Upsert(id, statement))
    }

    /// Whether the row has been inserted or updated. `seen` is what was read of the index before:
    /// if the row that is in the way is none of it, a version was inserted and killed.
    fn upsert_row(
        &mut self,
        (id, index): (TableId, usize),
        values: &[Value],
        assignments: &Assignments<'_>,
        (statement, seen): (u32, Option<Option<ScannedPage>>),
    ) -> Result<bool, StatementError> {
        let table = &mut self.tables[id.0];
        let mode = table.update_mode(assignments);
        let index = table.btree_position(index);
        let row = table.values.add(values)?;
        let entry = table.entry_of(index, row)?;
        let entry = entry.expect("ON CONFLICT takes no partial index");
        let key = entry.key.values();
        let (procs, wal) = (&mut self.procs, &mut self.wal);
        let has_read = seen.is_some();
        if let Some(tid) = table.find_conflict(index, key, seen, procs, wal) {
            table.values.take_back(row);
            if let Some(xid) = table.holder(tid, mode, procs) {
                return Err(StatementError::Waits(xid));
            }
            table.session.upserted = Some(tid.block);
            table.lock(tid, mode, procs, wal);
            if !table.may_update_conflict(tid, procs) {
                return Err(StatementError::Serialization);
            }
            table.update(tid, assignments, procs, wal, statement)?;
            return Ok(true);
        }
        if has_read && table.find_conflict(index, key, None, procs, wal).is_some() {
            table.insert_and_kill(row, procs, wal, statement)?;
            return Ok(false);
        }
        let tid = table.insert(row, procs, wal, statement)?;
        let hole = table.hole(tid);
        let page = wal.change(table.forks.main, tid.block, hole);
        wal.record(RecordType::HeapConfirm, heap_confirm(page));
        Ok(true)
    }
}

impl Table {
    /// The row that would conflict with a new one in a unique index; entries after it are not
    /// looked at, nor those of the first leaf that came there since it was read, if it was `seen`.
    fn find_conflict(
        &mut self,
        index: usize,
        key: &[i64],
        seen: Option<Option<ScannedPage>>,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> Option<Tid> {
        let mut wal = RefCell::new(wal);
        let mut next = match seen {
            Some(first) => first,
            None => self.scan_leaf(index, self.indexes.btrees[index].tree.scan_start(key), key),
        };
        let mut last_block = None;
        while let Some(scanned) = next {
            let mut dead = Vec::new();
            let mut conflict = None;
            for &(offset, tid) in &scanned.entries {
                let mut heap = HeapAccess::new(self.heap_parts(), procs, &wal, None);
                if last_block.replace(tid.block) != Some(tid.block) {
                    heap.prune_opt(tid.block);
                }
                match heap.fetch_dirty(tid) {
                    Fetched::Found(found) => {
                        conflict = Some(found);
                        break;
                    }
                    Fetched::AllDead => dead.push((offset, tid)),
                    Fetched::Invisible => {}
                }
            }
            self.indexes.btrees[index].kill(&scanned, &dead, wal.get_mut());
            if conflict.is_some() {
                return conflict;
            }
            next = self.scan_leaf(index, scanned.next, key);
        }
        None
    }

    /// What a leaf has of this key.
    fn scan_leaf(
        &self,
        index: usize,
        leaf: Option<BlockNumber>,
        key: &[i64],
    ) -> Option<ScannedPage> {
        let tree = &self.indexes.btrees[index].tree;
        leaf.map(|leaf| tree.scan_page(leaf, key, key))
    }

    /// A row is inserted with its entries, which meet one of the same key, and is dead then for
    /// everybody. A server leaves no transaction's number on it; here it has one of its own that
    /// is rolled back.
    ///
    /// Source: `heap_abort_speculative`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    fn insert_and_kill(
        &mut self,
        row: u32,
        procs: &mut ProcArray,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<(), StatementError> {
        procs.begin_part();
        self.mark_part();
        let done = self.insert_speculatively(row, procs, wal, statement);
        procs.abort_part();
        self.undo_part();
        let tid = done?;
        self.heap.kill(tid, procs.transaction_xmin());
        let page = wal.change(self.forks.main, tid.block, self.hole(tid));
        wal.record(RecordType::HeapDelete, heap_delete(page, None));
        self.counters.n_tup_del += 1;
        self.session.trans.deleted += 1;
        Ok(())
    }

    fn insert_speculatively(
        &mut self,
        row: u32,
        procs: &mut ProcArray,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<Tid, StatementError> {
        let tid = self.insert_tuple(row, procs, wal, statement)?;
        self.add_entries((tid, row), UniqueCheck::Partial, procs, wal)?;
        if self.values.texts.has_forms() {
            self.delete_out_of_line(row, &mut writer(procs, wal, statement));
        }
        Ok(tid)
    }
}
