//! What nobody needs any more: the oldest xmin, and what a backend remembers of it.

use crate::procarray::{FIRST_NORMAL_XID, ProcArray};
use crate::transaction::Xid;

/// What a backend remembers of what nobody needs any more.
///
/// Source: `GlobalVisState`, procarray.c, and the variables beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GlobalVis {
    /// Transactions from here on are running for some backend.
    pub definitely_needed: Xid,
    /// Transactions before it are running for none.
    pub maybe_needed: Xid,
    /// The xmin of the last snapshot (`RecentXmin`).
    pub recent_xmin: Xid,
    /// The same when the horizons were computed last (`ComputeXidHorizonsResultLastXmin`).
    computed_at_xmin: Xid,
}

impl Default for GlobalVis {
    fn default() -> Self {
        Self {
            definitely_needed: FIRST_NORMAL_XID,
            maybe_needed: FIRST_NORMAL_XID,
            recent_xmin: Xid::INVALID,
            computed_at_xmin: Xid::INVALID,
        }
    }
}

/// What a backend knew of the horizons.
#[derive(Debug, Clone, Copy)]
pub struct KnownHorizons(GlobalVis);

impl ProcArray {
    /// The oldest transaction whose removals somebody may still have to see, all backends asked.
    ///
    /// Source: `data_oldest_nonremovable` in `ComputeXidHorizons`, procarray.c.
    #[must_use]
    pub fn oldest_xmin(&self) -> Xid {
        let own = self.mine.xid.unwrap_or(self.next);
        let own = self.mine.xmin.map_or(own, |xmin| xmin.min(own));
        own.min(self.oldest_other())
    }

    /// What the active backend knows is brought up to date; what it knew before.
    ///
    /// Source: `GetOldestNonRemovableTransactionId` and `GlobalVisUpdateApply`, procarray.c.
    pub fn compute_horizons(&self) -> KnownHorizons {
        let before = self.mine.global_vis.get();
        self.mine.global_vis.set(self.computed(before));
        KnownHorizons(before)
    }

    /// It was another backend that computed them.
    pub(crate) fn restore_horizons(&self, known: KnownHorizons) {
        self.mine.global_vis.set(known.0);
    }

    fn computed(&self, known: GlobalVis) -> GlobalVis {
        let maybe_needed = self.oldest_xmin();
        GlobalVis {
            maybe_needed,
            definitely_needed: known.definitely_needed.max(maybe_needed),
            computed_at_xmin: known.recent_xmin,
            ..known
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn recompute(&self, known: GlobalVis, xid: Xid) -> bool {
        let is_computed = known.computed_at_xmin.is_valid();
        if is_computed
            && (known.maybe_needed >= known.definitely_needed
                || known.recent_xmin == known.computed_at_xmin)
        {
            return false;
        }
        let computed = self.computed(known);
        self.mine.global_vis.set(computed);
        xid < computed.maybe_needed
    }
}
