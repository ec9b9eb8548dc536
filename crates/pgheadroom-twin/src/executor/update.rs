//! UPDATE of a row that a statement has found: its new version, counters and index entries.
//!
//! ```text
//! key, cached TID --fast_path--> new_values -> pruning -> HOT update on its page -> log
//! any scan -> TID -> fixed columns: new_values -+-> new_version: heap, holders, log -> indexes
//!                 -> any: all columns, TOAST ---+
//! ```
//!
//! Whichever way an update takes, its steps are the same functions; what the fast path leaves out
//! is to ask what is known.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;

use crate::btree::UniqueCheck;
use crate::executor::change::{page_bytes, writer};
use crate::executor::concurrent_changes::ConcurrentChange;
use crate::executor::session_table::Entries;
use crate::executor::table::{Table, UpdateBuffers};
use crate::executor::toast::Writer;
use crate::executor::{Assignments, StatementError};
use crate::heap::Updated;
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::wal::Wal;

mod fast_path;
mod new_values;
mod new_version;

pub(crate) use fast_path::Target;
pub(super) use new_version::NextVersion;

impl Table {
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
        self.session.trans.updated += 1;
        let Some(done) = done else {
            // A model's, in place: nothing new for the indexes, and no version to be HOT.
            self.counters.n_tup_upd += 1;
            if informs_brin {
                self.inform_brins(old, row, &mut writer(procs, wal, statement))?;
            }
            return Ok(());
        };
        self.count_update(old.block, done.is_hot, done.is_newpage);
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
            check: UniqueCheck::Yes,
        };
        self.insert_entries(entries, assigned, procs, wal)?;
        self.hold_trigger_slot(old.block);
        Ok(())
    }

    /// Counts the update of a version on this page.
    ///
    /// Source: `pgstat_count_heap_update`, src/backend/utils/activity/pgstat_relation.c
    /// (REL_18_STABLE).
    #[inline(always)]
    fn count_update(&mut self, old: BlockNumber, is_hot: bool, is_newpage: bool) {
        self.counters.n_tup_upd += 1;
        self.counters.n_tup_hot_upd += u64::from(is_hot);
        self.counters.n_tup_newpage_upd += u64::from(is_newpage);
        if old.0 < self.class.old_pages {
            self.counters.on_old_page(is_hot);
        }
    }

    /// As [`Table::update_row`], where the SET clause has fixed columns alone; `None` when the
    /// update is not that simple, and nothing was done then.
    fn update_fixed(
        &mut self,
        (row, old): (u32, Tid),
        assignments: &Assignments<'_>,
        to: &mut Writer<'_>,
    ) -> Result<Option<Updated>, StatementError> {
        let sets = assignments.columns;
        let lp_len = self.heap.pages()[old.block.0 as usize].lp_len(old.offset);
        let tuple_bytes = u32::from(lp_len);
        let may = !self.scratch.without_fast_path && self.model.is_none();
        if !self.sets_fixed(sets)
            || !may
            || self.values.texts.has_forms()
            || tuple_bytes > TOAST_TUPLE_THRESHOLD
        {
            return Ok(None);
        }
        let Some(values) = self.fixed_values(row, sets) else {
            return Ok(None);
        };
        self.note_hints(old, to.procs, to.wal);
        let version = NextVersion {
            old,
            measured: values.measured(tuple_bytes),
            hot_allowed: true,
            needs_toast: false,
            mode_of: assignments,
        };
        let done = self.put_version(version, to, |_| values.shared(tuple_bytes))?;
        self.keep_replaced(old, row);
        self.keep_old_slots(row);
        self.store_fixed(row, sets, &values);
        Ok(Some(done))
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
}
