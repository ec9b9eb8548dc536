//! The new version of a row: put on its page or another, and logged.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::{
    Page, SharedBytes, heap_lock, heap_update_cross_page, heap_update_same_page,
};

use crate::executor::change::page_bytes;
use crate::executor::extensions::Place;
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::executor::{Assignments, StatementError};
use crate::heap::Updated;
use crate::page::Tid;
use crate::row::Measured;
use crate::vm::VisibilityMap;
use crate::wal::{RecordType, Wal};

/// A version that takes the place of another one.
pub(in crate::executor) struct NextVersion<'a> {
    pub old: Tid,
    pub measured: Measured,
    pub hot_allowed: bool,
    pub needs_toast: bool,
    /// The SET clause, which says how strongly the row is locked.
    pub mode_of: &'a Assignments<'a>,
}

impl Table {
    /// Puts a version in the place of another one, and logs that; `shared` is what both have.
    pub(in crate::executor) fn put_version(
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
            &mut Place::new(fsm, wal, to.procs),
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

    /// The LOCK record that comes first when the new version may go to another page.
    fn log_lock(&self, old: Tid, old_hole: u32, done: &Updated, wal: &mut Wal) {
        if let Some(cleared_frozen) = done.lock {
            let vm = self.log_visibility(cleared_frozen, old.block, wal);
            let page = wal.change(self.forks.main, old.block, old_hole);
            wal.record(RecordType::HeapLock, heap_lock(page, vm));
        }
    }

    /// Logs an update that stays on its page.
    ///
    /// Source: `log_heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    #[inline(always)]
    pub(super) fn log_update_same_page(
        &self,
        (block, is_hot, cleared_visibility): (BlockNumber, bool, bool),
        measured: Measured,
        shared: impl FnOnce() -> SharedBytes,
        beside: u32,
        wal: &mut Wal,
    ) {
        let record = if is_hot {
            RecordType::HeapHotUpdate
        } else {
            RecordType::HeapUpdate
        };
        let main = self.forks.main;
        let Measured { tuple_bytes, hoff } = measured;
        // What most are: one page, without an image.
        if !cleared_visibility && !wal.is_logical() && wal.is_logged_alone(main, block) {
            let bytes = heap_update_same_page(tuple_bytes, hoff, shared(), Page::Change, None);
            wal.record_again(main, record, bytes + beside);
            return;
        }
        let vm = self.log_visibility(cleared_visibility, block, wal);
        let hole = self.heap.pages()[block.0 as usize].exact_free_space();
        let page = wal.change_with_tuples(main, block, hole);
        let shared = match page {
            Page::Change if !wal.is_logical() => shared(),
            _ => SharedBytes::default(),
        };
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
}
