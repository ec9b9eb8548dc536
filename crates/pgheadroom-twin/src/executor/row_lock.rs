//! Rows that several transactions hold at once.

use pgheadroom_layout::wal_record::heap_lock;

use crate::executor::table::Table;
use crate::heap::Updated;
use crate::lock_options::LockTupleMode;
use crate::page::{Tid, Tuple};
use crate::procarray::ProcArray;
use crate::transaction::{Outcome, Transactions};
use crate::wal::{RecordType, Wal};

impl Table {
    /// The tuple at a TID.
    pub(super) fn tuple_at(&self, tid: Tid) -> Tuple {
        let page = &self.heap.pages()[tid.block.0 as usize];
        page.tuple(tid.offset).expect("a tuple")
    }

    /// A version that was locked, by others or by the updater, is replaced: their locks are kept
    /// beside its change, and with the new version, as the weakest kind.
    ///
    /// Source: `heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(super) fn keep_holders(
        &mut self,
        (held, old, mode): (&Tuple, Tid, LockTupleMode),
        done: &Updated,
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) {
        let carried = procs.xmax_carried_over(held);
        let (new, created) = procs.new_xmax(held, old, mode, true);
        wal.record_multixact(created, self.heap.behaviour());
        if done.lock.is_some() {
            let (_, created) = procs.new_xmax(held, old, mode, false);
            wal.record_multixact(created, self.heap.behaviour());
        }
        self.heap.set_xmax(old, new);
        if let Some(carried) = carried {
            self.heap.set_xmax(done.new.tid, carried);
        }
    }

    /// Locks the versions that a running transaction has put in the place of one that is about to
    /// be locked.
    ///
    /// Source: `heap_lock_updated_tuple_rec`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(super) fn lock_updated(
        &mut self,
        replaced: &Tuple,
        mode: LockTupleMode,
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) {
        let mut before = *replaced;
        loop {
            let tid = before.next;
            let page = self.heap.pages().get(tid.block.0 as usize);
            let Some(tuple) = page.and_then(|page| page.tuple(tid.offset)) else {
                return;
            };
            let is_its_next = tuple.xmin == procs.updater(before.xmax);
            if !is_its_next || procs.outcome(tuple.xmin) == Outcome::Aborted {
                return;
            }
            if procs.conflicts(&tuple, tid, mode) {
                return;
            }
            if !procs.has_locked(&tuple, tid, mode) {
                let (new, created) = procs.new_xmax(&tuple, tid, mode, false);
                wal.record_multixact(created, self.heap.behaviour());
                self.heap.set_xmax(tid, new);
                let cleared = self.heap.vm_mut().clear_frozen(tid.block);
                let vm = self.log_visibility(cleared, tid.block, wal);
                let page = wal.change(self.forks.main, tid.block, self.hole(tid));
                wal.record(RecordType::HeapLockUpdated, heap_lock(page, vm));
            }
            if !tuple.xmax.is_valid() || tuple.is_locked_only || tuple.next == tid {
                return;
            }
            before = tuple;
        }
    }
}
