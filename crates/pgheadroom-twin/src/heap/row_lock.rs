//! What a row lock writes into a tuple.

use crate::heap::Heap;
use crate::lock_options::LockTupleMode;
use crate::page::{Tid, XmaxHint};
use crate::procarray::NewXmax;
use crate::transaction::Xid;
use crate::watch::EventKind;

impl Heap {
    /// Locks a row version; says whether that cleared the page's frozen bit.
    ///
    /// # Panics
    /// When there is no tuple.
    ///
    /// Source: `heap_lock_tuple`, src/backend/access/heap/heapam.c (REL_18_STABLE): a second
    /// locker replaces the first; [`Heap::lock_with`] has both.
    pub fn lock(&mut self, tid: Tid, mode: LockTupleMode, xid: Xid) -> bool {
        let alone = NewXmax {
            xmax: xid,
            is_locked_only: true,
            mode,
        };
        self.lock_with(tid, alone)
    }

    /// The same, with what `xmax` becomes.
    pub(crate) fn lock_with(&mut self, tid: Tid, new: NewXmax) -> bool {
        let mut tuple = self.pages[tid.block.0 as usize].tuple_mut(tid.offset);
        if new.is_locked_only {
            tuple.is_hot_updated = false;
            tuple.next = tid;
        }
        drop(tuple);
        self.set_xmax(tid, new);
        let item = tid.offset.0;
        self.note(tid.block, || EventKind::Lock { item });
        self.vm.clear_frozen(tid.block)
    }

    /// Says who holds a tuple; its successor stays.
    ///
    /// # Panics
    /// When there is no tuple.
    pub(crate) fn set_xmax(&mut self, tid: Tid, new: NewXmax) {
        let mut tuple = self.pages[tid.block.0 as usize].tuple_mut(tid.offset);
        tuple.xmax = new.xmax;
        tuple.is_locked_only = new.is_locked_only;
        tuple.xmax_hint = match new.mode {
            LockTupleMode::KeyShare if new.is_locked_only => XmaxHint::UnsetKeyShare,
            LockTupleMode::Share if new.is_locked_only => XmaxHint::UnsetShare,
            LockTupleMode::NoKeyUpdate if new.is_locked_only => XmaxHint::UnsetNoKeyUpdate,
            _ => XmaxHint::Unset,
        };
    }
}
