//! What INSERT, UPDATE, DELETE and row locks do to heap, maps and indexes, and what they log.

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::version::IndexUnchangedHint;
use pgheadroom_layout::wal_record::{
    Page, heap_delete, heap_insert, heap_lock, heap_update_cross_page, heap_update_same_page,
};

use crate::btree::Entry;
use crate::executor::fetch::{Fetched, HeapAccess};
use crate::executor::table::Table;
use crate::executor::{Action, Assignments, StatementError};
use crate::heap::{Mode, Updated};
use crate::horizon::Horizon;
use crate::page::Tid;
use crate::vm::VisibilityMap;
use crate::wal::{IndexLog, RecordType, Wal};

/// Most columns of a table whose values are kept.
pub(super) const MAX_COLUMNS: usize = 32;

impl Table {
    /// Does what the statement does to a row that it found.
    pub(super) fn apply(
        &mut self,
        tid: Tid,
        action: &Action<'_>,
        horizon: &mut Horizon,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<(), StatementError> {
        match action {
            Action::Read => {}
            Action::Lock => self.lock(tid, horizon, wal),
            Action::Delete => self.delete(tid, horizon, wal, statement),
            Action::Update(assignments) => {
                self.update(tid, assignments, horizon, wal, statement)?;
            }
        }
        Ok(())
    }

    /// Inserts a row; where it is.
    ///
    /// Source: `heap_insert`, src/backend/access/heap/heapam.c, and `ExecInsertIndexTuples`,
    /// src/backend/executor/execIndexing.c (REL_18_STABLE).
    pub(super) fn insert(
        &mut self,
        values: &[i64],
        horizon: &mut Horizon,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<Tid, StatementError> {
        let row = self.add_row(values, statement);
        let xid = horizon.assign();
        let fsm = self.fsm;
        let placed = self.heap.insert(
            &mut self.target,
            Mode::Row,
            row,
            self.tuple_bytes,
            xid,
            &mut |block| wal.hint(fsm, block, 0),
        )?;
        let hole = self.hole(placed.tid);
        let vm = self.log_visibility(placed.cleared_visibility, placed.tid.block, wal);
        let length = u32::from(self.tuple_bytes);
        if placed.initialises_page {
            let page = wal.init(self.main, placed.tid.block);
            wal.record(RecordType::HeapInsertInit, heap_insert(length, page, vm));
        } else {
            let page = wal.change(self.main, placed.tid.block, hole);
            wal.record(RecordType::HeapInsert, heap_insert(length, page, vm));
        }
        self.counters.n_tup_ins += 1;
        self.pending.inserted += 1;
        self.insert_entries(placed.tid, values, None, None, horizon, wal)?;
        Ok(placed.tid)
    }

    /// Updates the row version at this TID.
    ///
    /// Source: `heap_update`, src/backend/access/heap/heapam.c, and `ExecUpdateEpilogue`,
    /// src/backend/executor/nodeModifyTable.c (REL_18_STABLE).
    pub(super) fn update(
        &mut self,
        old: Tid,
        assignments: &Assignments<'_>,
        horizon: &mut Horizon,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<(), StatementError> {
        let row = self.row_at(old);
        if self.changed_by[row as usize] == statement {
            return Ok(()); // this statement did so already (TM_SelfModified)
        }
        let width = self.columns.len();
        let mut old_values = [0; MAX_COLUMNS];
        old_values[..width].copy_from_slice(self.values_of(row));
        let mut new_values = old_values;
        (assignments.change)(&mut new_values[..width]);
        let (before, after) = (&old_values[..width], &new_values[..width]);
        let keeps_keys = self.indexes.iter().all(|index| {
            let mut columns = index.columns.iter();
            columns.all(|&column| before[column] == after[column])
        });
        let xid = horizon.assign();
        let old_hole = self.hole(old);
        let fsm = self.fsm;
        let done = self.heap.update(
            &mut self.target,
            old,
            self.tuple_bytes,
            keeps_keys,
            false,
            xid,
            &mut |block| wal.hint(fsm, block, 0),
        )?;
        self.log_update(old, old_hole, &done, before, after, wal);
        self.set_values(row, after);
        self.changed_by[row as usize] = statement;
        self.counters.n_tup_upd += 1;
        self.counters.n_tup_hot_upd += u64::from(done.is_hot);
        self.counters.n_tup_newpage_upd += u64::from(done.is_newpage);
        self.pending.updated += 1;
        if done.is_hot {
            return Ok(());
        }
        let assigned = Some(assignments.assigned);
        self.insert_entries(done.new.tid, after, assigned, Some(old.block), horizon, wal)
    }

    /// Source: `log_heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    fn log_update(
        &self,
        old: Tid,
        old_hole: u32,
        done: &Updated,
        before: &[i64],
        after: &[i64],
        wal: &mut Wal,
    ) {
        if let Some(cleared_frozen) = done.lock {
            let vm = self.log_visibility(cleared_frozen, old.block, wal);
            let page = wal.change(self.main, old.block, old_hole);
            wal.record(RecordType::HeapLock, heap_lock(page, vm));
        }
        let new = done.new.tid;
        let length = u32::from(self.tuple_bytes);
        let old_vm = self.log_visibility(done.cleared_old_visibility, old.block, wal);
        if !done.is_newpage {
            let page = wal.change(self.main, old.block, self.hole(old));
            let shared = match page {
                Page::Change => self.shared_bytes(before, after),
                Page::Image(_) | Page::ImageAndChange(_) => Default::default(),
            };
            let record = if done.is_hot {
                RecordType::HeapHotUpdate
            } else {
                RecordType::HeapUpdate
            };
            let hoff = u32::from(self.hoff);
            let bytes = heap_update_same_page(length, hoff, shared, page, old_vm);
            wal.record(record, bytes);
            return;
        }
        let shares_map_page = done.cleared_old_visibility
            && VisibilityMap::map_page(old.block) == VisibilityMap::map_page(new.block);
        let clears_other = done.new.cleared_visibility && !shares_map_page;
        let new_vm = self.log_visibility(clears_other, new.block, wal);
        let (record, new_page) = if done.new.initialises_page {
            (RecordType::HeapUpdateInit, wal.init(self.main, new.block))
        } else {
            let page = wal.change(self.main, new.block, self.hole(new));
            (RecordType::HeapUpdate, page)
        };
        let old_page = wal.change(self.main, old.block, self.hole(old));
        let bytes = heap_update_cross_page(length, new_page, old_page, [old_vm, new_vm]);
        wal.record(record, bytes);
    }

    /// Source: `heap_delete`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    fn delete(&mut self, tid: Tid, horizon: &mut Horizon, wal: &mut Wal, statement: u32) {
        let row = self.row_at(tid);
        let xid = horizon.assign();
        let cleared = self.heap.delete(tid, xid);
        let vm = self.log_visibility(cleared, tid.block, wal);
        let page = wal.change(self.main, tid.block, self.hole(tid));
        wal.record(RecordType::HeapDelete, heap_delete(page, vm));
        self.changed_by[row as usize] = statement;
        self.counters.n_tup_del += 1;
        self.pending.deleted += 1;
    }

    /// Source: `heap_lock_tuple`, src/backend/access/heap/heapam.c (REL_18_STABLE): nothing when
    /// this transaction has the lock already.
    fn lock(&mut self, tid: Tid, horizon: &mut Horizon, wal: &mut Wal) {
        let xid = horizon.assign();
        let page = &self.heap.pages()[tid.block.0 as usize];
        let tuple = page.tuple(tid.offset).expect("a visible tuple");
        if tuple.is_locked_only && tuple.xmax == xid {
            return;
        }
        let cleared = self.heap.lock(tid, xid);
        let vm = self.log_visibility(cleared, tid.block, wal);
        let page = wal.change(self.main, tid.block, self.hole(tid));
        wal.record(RecordType::HeapLock, heap_lock(page, vm));
    }

    /// A visibility map's page whose bits were cleared: dirty, and in some versions part of the
    /// record ([`vm_block_in_heap_records`](pgheadroom_layout::Behaviour)).
    pub(super) fn log_visibility(
        &self,
        cleared: bool,
        block: BlockNumber,
        wal: &mut Wal,
    ) -> Option<Page> {
        if !cleared {
            return None;
        }
        let map_page = VisibilityMap::map_page(block);
        if self.heap.behaviour().vm_block_in_heap_records {
            return Some(wal.change(self.vm, map_page, 0));
        }
        wal.change_unlogged(self.vm, map_page);
        None
    }

    /// An entry for a new row version in every index.
    ///
    /// `assigned` are an UPDATE's columns. Source: `ExecInsertIndexTuples` and
    /// `index_unchanged_by_update`, src/backend/executor/execIndexing.c (REL_15_STABLE,
    /// REL_18_STABLE).
    fn insert_entries(
        &mut self,
        tid: Tid,
        values: &[i64],
        assigned: Option<&[usize]>,
        pinned: Option<BlockNumber>,
        horizon: &Horizon,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let hint = self.heap.behaviour().index_unchanged_hint;
        let wal = RefCell::new(wal);
        let mut indexes = std::mem::take(&mut self.indexes);
        let mut result = Ok(());
        for index in &mut indexes {
            let is_unchanged = assigned.is_some_and(|assigned| match hint {
                IndexUnchangedHint::None => false,
                IndexUnchangedHint::AlwaysTrue => true,
                IndexUnchangedHint::Real => {
                    !index.columns.iter().any(|column| assigned.contains(column))
                }
            });
            let key = index.key_of(values);
            let entry = Entry {
                key: key.values(),
                shape: index.shape,
                tid,
            };
            let mut log = IndexLog {
                wal: &wal,
                main: index.main,
                fsm: index.fsm,
            };
            let mut heap = HeapAccess::new(self.heap_parts(), horizon, &wal, pinned);
            result = index.tree.insert(entry, is_unchanged, &mut heap, &mut log);
            if result.is_err() {
                break;
            }
        }
        self.indexes = indexes;
        Ok(result?)
    }

    /// An entry for a row just inserted in every index.
    pub(super) fn insert_row_entries(
        &mut self,
        tid: Tid,
        row: u32,
        horizon: &Horizon,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        if self.indexes.is_empty() {
            return Ok(());
        }
        let width = self.columns.len();
        let mut values = [0; MAX_COLUMNS];
        values[..width].copy_from_slice(self.values_of(row));
        self.insert_entries(tid, &values[..width], None, None, horizon, wal)
    }

    /// The row that would conflict with a new one in a unique index; entries after it are not
    /// looked at.
    pub(super) fn find_conflict(
        &mut self,
        index: usize,
        key: &[i64],
        horizon: &Horizon,
        wal: &mut Wal,
    ) -> Option<Tid> {
        let wal = RefCell::new(wal);
        let mut next = self.indexes[index].tree.scan_start(key);
        let mut last_block = None;
        let mut conflict = None;
        while let (Some(leaf), None) = (next, conflict) {
            let scanned = self.indexes[index].tree.scan_page(leaf, key, key);
            let mut dead = Vec::new();
            for &(offset, tid) in &scanned.entries {
                let mut heap = HeapAccess::new(self.heap_parts(), horizon, &wal, None);
                if last_block.replace(tid.block) != Some(tid.block) {
                    heap.visit(tid.block);
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
            let index = &mut self.indexes[index];
            let mut log = IndexLog {
                wal: &wal,
                main: index.main,
                fsm: index.fsm,
            };
            index.tree.kill(&scanned, &dead, false, &mut log);
            next = scanned.next;
        }
        conflict
    }
}
