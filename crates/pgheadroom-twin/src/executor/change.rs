//! What INSERT, UPDATE, DELETE and row locks do to heap, maps and indexes, and what they log.

use pgheadroom_layout::page::MAX_HEAP_TUPLE_SIZE;
use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;
use pgheadroom_layout::wal_record::{
    Page, SharedBytes, heap_delete, heap_insert, heap_lock, heap_update_cross_page,
    heap_update_same_page,
};
use pgheadroom_layout::{BlockNumber, LayoutError};

use crate::executor::concurrent_changes::ConcurrentChange;
use crate::executor::session_table::Entries;
use crate::executor::table::{Table, UpdateBuffers};
use crate::executor::toast::Writer;
use crate::executor::{Action, Assignments, Change, StatementError};
use crate::heap::{BulkInsert, Mode, Updated};
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::row::{Measured, NULL_SLOT};
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

/// A version that takes the place of another one.
pub(super) struct NextVersion<'a> {
    pub old: Tid,
    pub measured: Measured,
    pub hot_allowed: bool,
    pub needs_toast: bool,
    /// The SET clause, which says how strongly the row is locked.
    pub mode_of: &'a Assignments<'a>,
}

fn writer<'a>(procs: &'a mut ProcArray, wal: &'a mut Wal, statement: u32) -> Writer<'a> {
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
            (Err(StatementError::Waits(_)), Action::Lock(_, LockWaitPolicy::Skip)) => None,
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

    /// Inserts a row that was added; where it is.
    ///
    /// Source: `heap_insert`, src/backend/access/heap/heapam.c, and `ExecInsertIndexTuples`,
    /// src/backend/executor/execIndexing.c (REL_18_STABLE).
    pub(super) fn insert(
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
            &mut |block| wal.hint(fsm, block, 0),
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
        self.session.pending.inserted += 1;
        self.note_change(|table| ConcurrentChange::Insert(row, table.values_of(row)));
        let entries = Entries {
            tid: placed.tid,
            row,
            pinned: None,
            next: 0,
            has_values: false,
        };
        if !self.has_indexes() {
            self.values.rows.set_tid(row, placed.tid); // for an index that is built later
        }
        self.insert_entries(entries, None, procs, wal)?;
        self.queue_checks(row);
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

    /// Updates the row version at this TID.
    pub(super) fn update(
        &mut self,
        old: Tid,
        assignments: &Assignments<'_>,
        procs: &mut ProcArray,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<(), StatementError> {
        let row = self.row_at(old);
        if self.session.changed.has(row, statement) {
            return Ok(()); // this statement did so already (TM_SelfModified)
        }
        let is_own = self.is_own(old, procs);
        let mut scratch = std::mem::take(&mut self.scratch.update);
        let mut to = writer(procs, wal, statement);
        let done = match self.update_fixed((row, old), assignments, &mut to) {
            Ok(None) => self.update_row(row, old, assignments, &mut scratch, &mut to),
            done => {
                scratch.changed.clear();
                done
            }
        };
        self.scratch.update = scratch;
        let done = done?;
        self.session.changed.note(row, statement);
        self.note_change(|table| ConcurrentChange::Update(row, table.values_of(row)));
        self.queue_checks_of_update(row, is_own);
        let is_summarized = |&column: &usize| self.indexes.is_summarized[column];
        let informs_brin = self.scratch.update.changed.iter().any(is_summarized);
        self.counters.n_tup_upd += 1;
        self.session.pending.updated += 1;
        let Some(done) = done else {
            // A model's, in place: nothing new for the indexes, and no version to be HOT.
            if informs_brin {
                self.inform_brins(old, row, &mut writer(procs, wal, statement))?;
            }
            return Ok(());
        };
        self.counters.n_tup_hot_upd += u64::from(done.is_hot);
        self.counters.n_tup_newpage_upd += u64::from(done.is_newpage);
        if old.block.0 < self.class.old_pages {
            self.counters.on_old_page(done.is_hot);
        }
        if done.is_hot {
            if informs_brin {
                self.inform_brins(done.new.tid, row, &mut writer(procs, wal, statement))?;
            }
            self.hold_trigger_slot(old.block);
            return Ok(());
        }
        let assigned = Some(assignments);
        let entries = Entries {
            tid: done.new.tid,
            row,
            pinned: Some(old.block),
            next: 0,
            has_values: false,
        };
        self.insert_entries(entries, assigned, procs, wal)?;
        self.hold_trigger_slot(old.block);
        Ok(())
    }

    /// The heap's part of an update; the row has its new values afterwards. None when a model
    /// changed it where it is.
    ///
    /// Source: `heap_update`, src/backend/access/heap/heapam.c, and `ExecUpdateEpilogue`,
    /// src/backend/executor/nodeModifyTable.c (REL_18_STABLE).
    fn update_row(
        &mut self,
        row: u32,
        old: Tid,
        assignments: &Assignments<'_>,
        scratch: &mut UpdateBuffers,
        to: &mut Writer<'_>,
    ) -> Result<Option<Updated>, StatementError> {
        let UpdateBuffers {
            old: before,
            new: after,
            changed,
            bytes,
        } = scratch;
        before.clear();
        self.values.rows.kept(row).append_to(before);
        self.read_changed(before, assignments, to);
        self.values
            .row_type
            .change(before, after, assignments, changed, &mut self.values.texts)?;
        let blocks = |column: usize| self.indexes.blocks_hot[column];
        let keeps_keys = !changed.iter().any(|&column| blocks(column));
        let mut measured = self.measure_next(old, (before, after), changed);
        self.note_hints(old, to.procs, to.wal);
        to.procs.assign();
        // The row's LOCK record comes before those of its values; no page is in both.
        let needs_toast = self.needs_toast(before, after, measured);
        if needs_toast {
            self.toast_version(before, after, changed, to)?;
            measured = self.values.row_type.measure(after, &self.values.texts);
        }
        let tuple_bytes = page_bytes(measured)?;
        let wal = &mut *to.wal;
        if keeps_keys && !needs_toast {
            let values = (before.as_slice(), after.as_slice());
            if self.update_in_place(old, tuple_bytes, values, changed, wal) {
                self.set_slots(row, after, changed);
                return Ok(None);
            }
        }
        self.aim_at_chosen_page((row, old), (before, after), tuple_bytes, to.procs, wal)?;
        let hot_allowed = keeps_keys && self.has_hot_updates();
        let version = NextVersion {
            old,
            measured,
            hot_allowed,
            needs_toast,
            mode_of: assignments,
        };
        let data_bytes = measured.tuple_bytes - measured.hoff;
        let done = self.put_version(version, to, |table| {
            let (row_type, texts) = (&table.values.row_type, &table.values.texts);
            row_type.shared_bytes(before, after, changed, texts, data_bytes, bytes)
        })?;
        self.keep_replaced(old, row);
        self.set_slots(row, after, changed);
        Ok(Some(done))
    }

    /// Puts a version in the place of another one, and logs that; `shared` is what both have.
    pub(super) fn put_version(
        &mut self,
        version: NextVersion<'_>,
        to: &mut Writer<'_>,
        shared: impl FnOnce(&Self) -> SharedBytes,
    ) -> Result<Updated, StatementError> {
        let NextVersion { old, measured, .. } = version;
        let (xid, wal) = (to.procs.assign(), &mut *to.wal);
        let old_hole = self.hole(old);
        let is_settled = self.heap.pages()[old.block.0 as usize].is_settled(old.offset);
        let held = (!is_settled).then(|| self.tuple_at(old));
        let held = held.filter(|held| held.xmax.is_valid());
        let fsm = self.forks.fsm;
        let done = self.heap.update(
            &mut self.session.target,
            old,
            page_bytes(measured)?,
            version.hot_allowed,
            version.needs_toast,
            xid,
            &mut |block| wal.hint(fsm, block, 0),
        )?;
        if let Some(held) = held {
            let mode = self.update_mode(version.mode_of);
            self.keep_holders((&held, old, mode), &done, to.procs, wal);
        }
        self.log_lock(old, old_hole, &done, wal);
        let beside = self.log_beside(Some(old), wal);
        if done.is_newpage {
            self.log_update_cross_page(old, &done, measured, beside, wal);
        } else {
            let how = (old.block, done.is_hot, done.cleared_old_visibility);
            self.log_update_same_page(how, measured, || shared(self), beside, wal);
        }
        Ok(done)
    }

    /// How long the version after the one at this TID is, whose values are `before`.
    fn measure_next(
        &self,
        old: Tid,
        (before, after): (&[i64], &[i64]),
        changed: &[usize],
    ) -> Measured {
        let keeps_length = |&column: &usize| {
            let is_null = before[column] == NULL_SLOT || after[column] == NULL_SLOT;
            self.values.row_type.columns[column].width.is_some() && !is_null
        };
        let measure = || self.values.row_type.measure(after, &self.values.texts);
        if self.values.texts.has_forms() || !changed.iter().all(keeps_length) {
            return measure();
        }
        let measured = Measured {
            tuple_bytes: u32::from(self.heap.pages()[old.block.0 as usize].lp_len(old.offset)),
            hoff: self.values.row_type.hoff(after),
        };
        debug_assert_eq!(measured, measure(), "as long as the version before");
        measured
    }

    /// Reads the values out of line that an update computes new ones of.
    fn read_changed(&mut self, slots: &[i64], assigned: &Assignments<'_>, to: &mut Writer<'_>) {
        if !self.values.texts.has_forms() {
            return;
        }
        let changed = assigned.columns.iter();
        let changed = changed.filter(|one| !matches!(one.change, Change::Same));
        let ids: Vec<u32> = changed
            .filter_map(|one| self.external_id(one.column, slots[one.column]))
            .collect();
        self.read_values(&ids, false, to);
    }

    /// The LOCK record that comes first when the new version may go to another page.
    fn log_lock(&self, old: Tid, old_hole: u32, done: &Updated, wal: &mut Wal) {
        if let Some(cleared_frozen) = done.lock {
            let vm = self.log_visibility(cleared_frozen, old.block, wal);
            let page = wal.change(self.forks.main, old.block, old_hole);
            wal.record(RecordType::HeapLock, heap_lock(page, vm));
        }
    }

    /// Source: `log_heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(super) fn log_update_same_page(
        &self,
        (block, is_hot, cleared_visibility): (BlockNumber, bool, bool),
        measured: Measured,
        shared: impl FnOnce() -> SharedBytes,
        beside: u32,
        wal: &mut Wal,
    ) {
        let vm = self.log_visibility(cleared_visibility, block, wal);
        let hole = self.heap.pages()[block.0 as usize].exact_free_space();
        let page = wal.change_with_tuples(self.forks.main, block, hole);
        let shared = match page {
            Page::Change if wal.is_logical() => SharedBytes::default(),
            Page::Change => shared(),
            Page::Image(_) | Page::ImageAndChange(_) => SharedBytes::default(),
        };
        let record = if is_hot {
            RecordType::HeapHotUpdate
        } else {
            RecordType::HeapUpdate
        };
        let Measured { tuple_bytes, hoff } = measured;
        let bytes = heap_update_same_page(tuple_bytes, hoff, shared, page, vm);
        wal.record(record, bytes + beside);
    }

    /// Source: `log_heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    fn log_update_cross_page(
        &self,
        old: Tid,
        done: &Updated,
        measured: Measured,
        beside: u32,
        wal: &mut Wal,
    ) {
        let new = done.new.tid;
        let old_vm = self.log_visibility(done.cleared_old_visibility, old.block, wal);
        let shares_map_page = done.cleared_old_visibility
            && VisibilityMap::map_page(old.block) == VisibilityMap::map_page(new.block);
        let clears_other = done.new.cleared_visibility && !shares_map_page;
        let new_vm = self.log_visibility(clears_other, new.block, wal);
        let (record, new_page) = if done.new.initialises_page {
            (
                RecordType::HeapUpdateInit,
                wal.init(self.forks.main, new.block),
            )
        } else {
            let page = wal.change_with_tuples(self.forks.main, new.block, self.hole(new));
            (RecordType::HeapUpdate, page)
        };
        let old_page = wal.change(self.forks.main, old.block, self.hole(old));
        let length = measured.tuple_bytes;
        let bytes = heap_update_cross_page(length, new_page, old_page, [old_vm, new_vm]);
        wal.record(record, bytes + beside);
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
        self.session.pending.deleted += 1;
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
