//! What the active backend finds out about a transaction.

use crate::procarray::ProcArray;
use crate::transaction::{Outcome, Transactions, Xid};

impl Transactions for ProcArray {
    #[inline]
    fn outcome(&self, xid: Xid) -> Outcome {
        if xid < self.all_committed_before {
            Outcome::Committed
        } else if xid.is_multixact() {
            self.outcome_of_multixact(xid)
        } else if xid >= self.next || self.running.contains(&xid) {
            Outcome::InProgress
        } else if self.has_aborted(xid) {
            Outcome::Aborted
        } else {
            Outcome::Committed
        }
    }

    #[inline]
    fn committed_before(&self) -> Xid {
        let xmin = self.xmin();
        self.aborted.first().map_or(xmin, |&xid| xid.min(xmin))
    }

    #[inline]
    fn is_current(&self, xid: Xid) -> bool {
        self.mine.owns(self.updater(xid))
    }

    #[inline]
    fn is_removable(&self, xid: Xid) -> bool {
        if xid.is_multixact() {
            return self.is_multixact_removable(xid);
        }
        let known = self.mine.global_vis.get();
        if xid < known.maybe_needed {
            return true;
        }
        xid < known.definitely_needed && self.recompute(known, xid)
    }

    #[inline]
    fn updater(&self, xmax: Xid) -> Xid {
        if !xmax.is_multixact() {
            return xmax;
        }
        self.multixacts.updater(xmax).unwrap_or(xmax)
    }

    fn is_multixact_needed(&self, multixact: Xid) -> bool {
        let mut members = self.multixacts.members(multixact).iter();
        members.any(|one| match self.outcome(one.xid) {
            Outcome::InProgress => true,
            Outcome::Committed => one.status.is_change(),
            Outcome::Aborted => false,
        })
    }
}
