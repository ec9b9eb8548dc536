//! What INSERT, DELETE and row locks do to heap, maps and indexes, and what they log; UPDATE is in
//! `update`.

use pgheadroom_layout::page::MAX_HEAP_TUPLE_SIZE;
use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;
use pgheadroom_layout::wal_record::{Page, heap_delete, heap_insert, heap_lock};
use pgheadroom_layout::{BlockNumber, LayoutError};

use crate::btree::UniqueCheck;
use crate::executor::concurrent_changes::ConcurrentChange;
use crate::executor::extensions::Place;
use crate::executor::session_table::Entries;
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::executor::{Action, StatementError};
use crate::heap::{BulkInsert, Mode};
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::row::Measured;
use crate::vm::VisibilityMap;
use crate::wal::{RecordType, Wal};

/// A tuple's length.
///
/// # Errors
/// [`LayoutError::TupleTooBig`] when even TOAST cannot make it fit a page.
pub(super) fn page_bytes(measured: Measured) -> Result<u16, StatementError> {
    let bytes = measured.tuple_bytes;
    u16::try_from(bytes)
        .ok()
        .filter(|_| bytes <= MAX_HEAP_TUPLE_SIZE)
        .ok_or_else(|| {
            StatementError::Layout(LayoutError::TupleTooBig {
                tuple_bytes: u64::from(bytes),
                max_bytes: MAX_HEAP_TUPLE_SIZE,
            })
        })
}

pub(super) fn writer<'a>(procs: &'a mut ProcArray, wal: &'a mut Wal, statement: u32) -> Writer<'a> {
    Writer {
        procs,
        wal,
        statement,
    }
}

impl Table {
    /// Does what the statement does to a row that it found, at once or after a wait for who holds
    /// it; which version it was, if it is wanted still.
    #[inline]
    pub(super) fn take(
        &mut self,
        tid: Tid,
        action: &Action<'_>,
        still_wanted: impl FnOnce(&mut Self, u32) -> Result<bool, StatementError>,
        (procs, wal, statement): (&mut ProcArray, &mut Wal, u32),
    ) -> Result<Option<Tid>, StatementError> {
        if self.session.entries.is_some() {
            let Action::Update(assigned) = action else {
                unreachable!("an update's entries");
            };
            self.resume_entries(Some(assigned), procs, wal)?;
            return Ok(Some(tid));
        }
        let held = self.held_version(tid, action, still_wanted, procs, wal);
        let held = match (held, action) {
            (Err(StatementError::Waits(_)), Action::Lock(_, LockWaitPolicy::Skip)) => {
                self.wait_for_nobody();
                None
            }
            (Err(StatementError::Waits(_)), Action::Lock(_, LockWaitPolicy::Error)) => {
                return Err(StatementError::NotAvailable);
            }
            (held, _) => held?,
        };
        if let Some(held) = held {
            self.apply(held, action, procs, wal, statement)?;
        }
        Ok(held)
    }

    /// Does what the statement does to a row that it found and nobody else holds.
    pub(super) fn apply(
        &mut self,
        tid: Tid,
        action: &Action<'_>,
        procs: &mut ProcArray,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<(), StatementError> {
        match action {
            Action::Read => self.read_out_of_line(tid, &mut writer(procs, wal, statement)),
            Action::Lock(mode, _) => {
                self.lock(tid, *mode, procs, wal);
                self.read_out_of_line(tid, &mut writer(procs, wal, statement));
            }
            Action::Delete => self.delete(tid, procs, wal, statement),
            Action::Update(assignments) => {
                self.update(tid, assignments, procs, wal, statement)?;
            }
        }
        Ok(())
    }

    /// Inserts a row that was added, with its entries in indexes; where it is.
    pub(super) fn insert(
        &mut self,
        row: u32,
        procs: &mut ProcArray,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<Tid, StatementError> {
        let tid = self.insert_tuple(row, procs, wal, statement)?;
        self.note_change(|table| ConcurrentChange::Insert(row, table.values_of(row)));
        self.add_entries((tid, row), UniqueCheck::Yes, procs, wal)?;
        self.queue_checks(row);
        Ok(tid)
    }

    /// A new row gets its entries in indexes.
    ///
    /// Source: `ExecInsertIndexTuples`, src/backend/executor/execIndexing.c (REL_18_STABLE).
    pub(super) fn add_entries(
        &mut self,
        (tid, row): (Tid, u32),
        check: UniqueCheck,
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let entries = Entries {
            tid,
            row,
            pinned: None,
            next: 0,
            has_values: false,
            check,
        };
        if !self.has_indexes() {
            self.values.rows.set_tid(row, tid); // for an index that is built later
        }
        self.insert_entries(entries, None, procs, wal)
    }

    /// Inserts a row that was added into the heap; where it is.
    ///
    /// Source: `heap_insert`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(super) fn insert_tuple(
        &mut self,
        row: u32,
        procs: &mut ProcArray,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<Tid, StatementError> {
        let tuple_bytes = self.prepare_row(row, &mut writer(procs, wal, statement))?;
        let xid = procs.assign();
        let fsm = self.forks.fsm;
        let chosen = self.chosen_page((row, None), tuple_bytes, procs, wal)?;
        let mut target = chosen.unwrap_or(self.session.target);
        let mut bulk = BulkInsert::default();
        let placed = self.heap.insert(
            &mut target,
            if self.class.skips_fsm {
                Mode::WithoutFsm(&mut bulk)
            } else {
                Mode::Row
            },
            row,
            tuple_bytes,
            xid,
            &mut Place::new(fsm, wal, procs),
        )?;
        self.session.target = target;
        let beside = self.log_beside(None, wal);
        let hole = self.hole(placed.tid);
        let vm = self.log_visibility(placed.cleared_visibility, placed.tid.block, wal);
        let length = u32::from(tuple_bytes);
        if placed.initialises_page {
            let page = wal.init(self.forks.main, placed.tid.block);
            wal.record(
                RecordType::HeapInsertInit,
                heap_insert(length, page, vm) + beside,
            );
        } else {
            let page = wal.change_with_tuples(self.forks.main, placed.tid.block, hole);
            wal.record(
                RecordType::HeapInsert,
                heap_insert(length, page, vm) + beside,
            );
        }
        self.session.changed.note(row, statement);
        self.counters.n_tup_ins += 1;
        self.session.trans.inserted += 1;
        Ok(placed.tid)
    }

    /// Moves a new row's long values out of line; its length.
    ///
    /// Source: `heap_prepare_insert`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(super) fn prepare_row(
        &mut self,
        row: u32,
        to: &mut Writer<'_>,
    ) -> Result<u16, StatementError> {
        let measured = self
            .values
            .row_type
            .measure(&self.values.slots(row), &self.values.texts);
        if measured.tuple_bytes <= TOAST_TUPLE_THRESHOLD {
            return page_bytes(measured);
        }
        let mut slots = self.values.slots(row).to_vec();
        self.toast_version(&[], &mut slots, &mut Vec::new(), to)?;
        self.values.store(row, &slots);
        page_bytes(self.values.row_type.measure(&slots, &self.values.texts))
    }

    /// Source: `heap_delete`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(super) fn delete(
        &mut self,
        tid: Tid,
        procs: &mut ProcArray,
        wal: &mut Wal,
        statement: u32,
    ) {
        let row = self.row_at(tid);
        self.note_hints(tid, procs, wal);
        let xid = procs.assign();
        let beside = self.log_beside(Some(tid), wal);
        let held = self.tuple_at(tid);
        let cleared = self.heap.delete(tid, xid);
        if held.xmax.is_valid() {
            let (new, created) = procs.new_xmax(&held, tid, LockTupleMode::Update, true);
            wal.record_multixact(created, self.heap.behaviour());
            self.heap.set_xmax(tid, new);
        }
        let vm = self.log_visibility(cleared, tid.block, wal);
        let page = wal.change(self.forks.main, tid.block, self.hole(tid));
        wal.record(RecordType::HeapDelete, heap_delete(page, vm) + beside);
        self.session.changed.note(row, statement);
        self.counters.n_tup_del += 1;
        self.session.trans.deleted += 1;
        self.note_change(|_| ConcurrentChange::Delete(row));
        if self.values.texts.has_forms() {
            self.delete_out_of_line(row, &mut writer(procs, wal, statement));
        }
    }

    /// Source: `heap_lock_tuple`, src/backend/access/heap/heapam.c (REL_18_STABLE): nothing when
    /// this transaction has the lock already, or a stronger one; an update carries a lock over to
    /// the new version as the weakest.
    pub(super) fn lock(
        &mut self,
        tid: Tid,
        mode: LockTupleMode,
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) {
        self.note_hints(tid, procs, wal);
        let tuple = self.tuple_at(tid);
        if procs.has_locked(&tuple, tid, mode) {
            return;
        }
        if tuple.xmax.is_valid() && !tuple.is_locked_only && tuple.next != tid {
            self.lock_updated(&tuple, mode, procs, wal);
        }
        let (new, created) = procs.new_xmax(&tuple, tid, mode, false);
        wal.record_multixact(created, self.heap.behaviour());
        let cleared = self.heap.lock_with(tid, new);
        let vm = self.log_visibility(cleared, tid.block, wal);
        let page = wal.change(self.forks.main, tid.block, self.hole(tid));
        wal.record(RecordType::HeapLock, heap_lock(page, vm));
    }

    /// Whoever is about to change or lock a tuple looks at its transactions first.
    pub(super) fn note_hints(&mut self, tid: Tid, procs: &ProcArray, wal: &mut Wal) {
        if self.heap.note_hints_of(tid, procs) {
            wal.hint(self.forks.main, tid.block, self.hole(tid));
        }
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
            return Some(wal.change(self.forks.vm, map_page, 0));
        }
        wal.change_unlogged(self.forks.vm, map_page);
        None
    }
}
