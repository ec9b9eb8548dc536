//! What a snapshot, and what a VACUUM in progress, takes transactions for.

use crate::procarray::ProcArray;
use crate::transaction::{Outcome, Transactions, Xid};

/// What the active backend's snapshot shows: a transaction that it does not see as ended is in
/// progress.
///
/// Source: `HeapTupleSatisfiesMVCC`, src/backend/access/heap/heapam_visibility.c: such a one's
/// number is looked for in the snapshot first, and nothing is noted about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot<'a>(pub &'a ProcArray);

/// Whether a transaction has committed, for a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its number is below those of all that ran when the snapshot was taken, and of the own one.
    LongAgo,
    /// It ended before the snapshot was taken.
    Before,
    /// Neither is known.
    Unknown,
}

impl Snapshot<'_> {
    /// Whether this transaction has committed for the snapshot.
    #[inline]
    pub fn ended(&self, xid: Xid) -> Ended {
        let mine = &self.0.mine;
        let snapshot = &mine.snapshot;
        if xid < snapshot.xmin && mine.xid.is_none_or(|own| xid < own) && !self.0.has_aborted(xid) {
            Ended::LongAgo
        } else if !xid.is_multixact() && self.outcome(xid) == Outcome::Committed {
            Ended::Before
        } else {
            Ended::Unknown
        }
    }
}

impl Transactions for Snapshot<'_> {
    #[inline]
    fn outcome(&self, xid: Xid) -> Outcome {
        let snapshot = &self.0.mine.snapshot;
        if xid < snapshot.xmin && xid < self.0.all_committed_before {
            return Outcome::Committed;
        }
        let xid = self.0.updater(xid);
        if xid.is_multixact() {
            return self.0.outcome(xid);
        }
        let is_running = xid >= snapshot.xmax || snapshot.running.contains(&xid);
        // Of those before it that it does not have as running only its own are not over.
        if is_running || self.0.mine.owns(xid) {
            Outcome::InProgress
        } else if self.0.has_aborted(xid) {
            Outcome::Aborted
        } else {
            Outcome::Committed
        }
    }

    #[inline]
    fn is_current(&self, xid: Xid) -> bool {
        self.0.is_current(xid)
    }

    #[inline]
    fn is_removable(&self, xid: Xid) -> bool {
        self.0.is_removable(xid)
    }

    #[inline]
    fn updater(&self, xmax: Xid) -> Xid {
        self.0.updater(xmax)
    }

    // A snapshot notes nothing about multixacts.
    fn is_multixact_needed(&self, _: Xid) -> bool {
        true
    }
}

/// The view of a VACUUM in progress: it knows how transactions have ended by now, and removes
/// only what nobody could see any more when it began.
///
/// Source: `OldestXmin` in `vacuum_get_cutoffs`, src/backend/commands/vacuum.c (REL_18_STABLE).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SinceThen<'a> {
    pub procs: &'a ProcArray,
    pub oldest_xmin: Xid,
}

impl Transactions for SinceThen<'_> {
    #[inline]
    fn outcome(&self, xid: Xid) -> Outcome {
        self.procs.outcome(xid)
    }

    fn committed_before(&self) -> Xid {
        self.procs.committed_before()
    }

    fn is_current(&self, xid: Xid) -> bool {
        self.procs.is_current(xid)
    }

    fn is_removable(&self, xid: Xid) -> bool {
        if xid.is_multixact() {
            let members = self.procs.multixacts().members(xid).iter();
            let needed = |xid: Xid| xid >= self.oldest_xmin;
            return match self.procs.multixacts().updater(xid) {
                Some(updater) => !needed(updater),
                None => !members.map(|one| one.xid).any(needed),
            };
        }
        xid < self.oldest_xmin
    }

    fn updater(&self, xmax: Xid) -> Xid {
        self.procs.updater(xmax)
    }

    fn members(&self, multixact: Xid) -> Vec<(Xid, bool)> {
        let members = self.procs.multixacts().members(multixact).iter();
        members
            .map(|one| (one.xid, one.status.is_change()))
            .collect()
    }

    fn oldest_of(&self, xmax: Xid) -> Xid {
        if !xmax.is_multixact() {
            return xmax;
        }
        let members = self.procs.multixacts().members(xmax).iter();
        members.map(|one| one.xid).min().unwrap_or(xmax)
    }

    fn is_multixact_needed(&self, multixact: Xid) -> bool {
        self.procs.is_multixact_needed(multixact)
    }
}
