//! How transactions end: their numbers are in progress no more, and known as aborted if they are.

use crate::procarray::{NO_SLOT, NO_XID, ProcArray};
use crate::transaction::{LocalTransactionId, Xid};

impl ProcArray {
    /// Ends the transaction; its number, if it had one.
    ///
    /// Source: `ProcArrayEndTransaction`, procarray.c.
    pub fn commit(&mut self) -> Option<Xid> {
        self.mine.ended += 1;
        self.mine.cursor = None;
        self.mine.cursor_slot = None;
        self.mine.xmin = None;
        self.mine.slot = None;
        self.mine.fetched = None;
        self.multixacts.end_transaction(self.active);
        let xid = self.mine.xid.take()?;
        self.end_running(xid);
        Some(xid)
    }

    /// Ends the transaction of any backend, which need not be active for that: it has changed
    /// something, its statement is over, and it has no parts and no cursor. Its number.
    ///
    /// # Panics
    /// When it has none.
    pub(crate) fn commit_of(&mut self, backend: usize) -> Xid {
        let xid = if backend == self.active {
            self.commit()
        } else {
            let other = &mut self.others[backend];
            other.ended += 1;
            (other.xmin, other.slot, other.fetched) = (None, None, None);
            (self.oldest[backend], self.slots[backend]) = (NO_XID, NO_SLOT);
            let xid = other.xid.take();
            self.multixacts.end_transaction(backend);
            if let Some(xid) = xid {
                self.end_running(xid);
            }
            xid
        };
        xid.expect("a transaction that has changed something")
    }

    /// The transaction that the active backend is in, or begins next.
    #[inline]
    pub(crate) const fn lxid(&self) -> LocalTransactionId {
        LocalTransactionId(self.mine.ended + 1)
    }

    /// Whether a backend other than the active one is in this transaction.
    pub(crate) fn runs_beside(&self, backend: usize, lxid: LocalTransactionId) -> bool {
        backend != self.active && self.others[backend].ended + 1 == lxid.0
    }

    /// The next transaction has begun, changed something, and ended: of the only backend, nobody
    /// beside which asks for its locks.
    ///
    /// # Panics
    /// As [`ProcArray::assign`].
    #[inline]
    pub(crate) fn commit_next(&mut self) {
        let xid = self.next;
        assert!(!xid.is_multixact(), "transaction numbers are used up");
        self.next = Xid(xid.0 + 1);
        self.mine.xmin = None;
    }

    /// Ends the transaction; what it did has not happened.
    pub fn abort(&mut self) -> Option<Xid> {
        let xid = self.commit()?;
        self.note_aborted(&[xid]);
        Some(xid)
    }

    /// Whether a transaction has been rolled back.
    #[inline]
    pub(super) fn has_aborted(&self, xid: Xid) -> bool {
        !self.aborted.is_empty() && self.aborted.binary_search(&xid).is_ok()
    }

    /// A transaction, or a part of one, has ended.
    #[inline]
    pub(super) fn end_running(&mut self, ended: Xid) {
        if let Some(place) = self.running.iter().position(|&xid| xid == ended) {
            self.running.remove(place);
        }
    }

    /// These have been rolled back.
    pub(super) fn note_aborted(&mut self, xids: &[Xid]) {
        for &xid in xids {
            let position = self.aborted.partition_point(|&other| other < xid);
            self.aborted.insert(position, xid);
        }
    }
}
