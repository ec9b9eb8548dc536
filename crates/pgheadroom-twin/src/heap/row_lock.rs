//! Row locks: how strong they are, and what they write into a tuple.

use crate::heap::Heap;
use crate::page::{Tid, XmaxHint};
use crate::procarray::NewXmax;
use crate::transaction::Xid;
use crate::watch::EventKind;

/// How strongly a row is locked.
///
/// Source: `LockTupleMode`, src/include/nodes/lockoptions.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowLock {
    /// FOR KEY SHARE: the row stays, and its key as it is.
    KeyShare,
    /// FOR SHARE.
    Share,
    /// FOR NO KEY UPDATE; an UPDATE of columns that no foreign key could refer to.
    NoKeyUpdate,
    /// FOR UPDATE; a DELETE.
    Update,
}

impl RowLock {
    /// Whether two transactions cannot have both at once.
    ///
    /// Source: `tupleLockExtraInfo`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    #[must_use]
    pub const fn conflicts_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Update, _) | (_, Self::Update) => true,
            (Self::KeyShare, _) | (_, Self::KeyShare) => false,
            (Self::NoKeyUpdate, _) | (_, Self::NoKeyUpdate) => true,
            (Self::Share, Self::Share) => false,
        }
    }
}

/// What a statement does about a row that another transaction holds.
///
/// Source: `LockWaitPolicy`, src/include/nodes/lockoptions.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitPolicy {
    /// It waits.
    Block,
    /// SKIP LOCKED.
    Skip,
    /// NOWAIT.
    Error,
}

impl Heap {
    /// Locks a row version; says whether that cleared the page's frozen bit.
    ///
    /// # Panics
    /// When there is no tuple.
    ///
    /// Source: `heap_lock_tuple`, src/backend/access/heap/heapam.c (REL_18_STABLE): a second
    /// locker replaces the first; [`Heap::lock_with`] has both.
    pub fn lock(&mut self, tid: Tid, mode: RowLock, xid: Xid) -> bool {
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
            RowLock::KeyShare if new.is_locked_only => XmaxHint::UnsetKeyShare,
            RowLock::Share if new.is_locked_only => XmaxHint::UnsetShare,
            RowLock::NoKeyUpdate if new.is_locked_only => XmaxHint::UnsetNoKeyUpdate,
            _ => XmaxHint::Unset,
        };
    }
}
