//! Transactions as the heap sees them: whether one has ended, how, and who still sees its rows.
//!
//! The heap asks through [`Transactions`]; simulated sessions and snapshots answer, who know of
//! subtransactions too.

/// A transaction's number; 0 is none. The twin does not wrap them around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Xid(pub u32);

impl Xid {
    /// No transaction. Source: `InvalidTransactionId`, src/include/access/transam.h.
    pub const INVALID: Self = Self(0);

    /// The first multixact's; transactions have lower ones.
    pub const FIRST_MULTIXACT: Self = Self(1 << 31);

    /// Whether this is the number of a multixact.
    #[must_use]
    pub const fn is_multixact(self) -> bool {
        self.0 >= Self::FIRST_MULTIXACT.0
    }

    /// Whether this is a transaction.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 != 0
    }
}

/// A transaction among those of its session, whether it has a number or not; 0 is none.
///
/// Source: `LocalTransactionId`, src/include/c.h, and `lxid` of `PGPROC`,
/// src/include/storage/proc.h (REL_18_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LocalTransactionId(pub u64);

/// How a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Still running, or the one that asks.
    InProgress,
    /// Committed.
    Committed,
    /// Rolled back.
    Aborted,
}

/// What the heap has to know about transactions.
pub trait Transactions {
    /// How a transaction stands.
    fn outcome(&self, xid: Xid) -> Outcome;

    /// All transactions with lower numbers have committed: known at once, where a whole page is
    /// asked about. Others may have, too.
    fn committed_before(&self) -> Xid {
        Xid::INVALID
    }

    /// Whether this is the transaction that asks.
    fn is_current(&self, xid: Xid) -> bool;

    /// Whether every snapshot, present or future, sees this transaction as ended: what it removed,
    /// if it committed, nobody can see.
    ///
    /// Source: `GlobalVisTestIsRemovableXid`, src/backend/storage/ipc/procarray.c (REL_18_STABLE).
    fn is_removable(&self, xid: Xid) -> bool;

    /// The transaction that replaced or removed a version with this `xmax`: its own number but for
    /// multixacts.
    ///
    /// Source: `HeapTupleHeaderGetUpdateXid`, src/include/access/htup_details.h.
    fn updater(&self, xmax: Xid) -> Xid {
        xmax
    }

    /// The oldest transaction that this number stands for: its own but for multixacts, whose
    /// members' it is.
    fn oldest_of(&self, xmax: Xid) -> Xid {
        xmax
    }

    /// The transactions of a multixact, and whether each has changed the row.
    fn members(&self, multixact: Xid) -> Vec<(Xid, bool)> {
        let _ = multixact;
        Vec::new()
    }

    /// Whether a multixact means something still: a member runs, or its updater has committed.
    fn is_multixact_needed(&self, multixact: Xid) -> bool {
        let _ = multixact;
        false
    }
}

/// One session in autocommit: everything below the running transaction is committed and seen by
/// everyone, except what a snapshot held elsewhere may still see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SingleSession {
    /// The transaction that runs now.
    pub current: Xid,
    /// The oldest transaction that some other snapshot does not see as ended.
    pub held_xmin: Option<Xid>,
}

impl Transactions for SingleSession {
    fn outcome(&self, xid: Xid) -> Outcome {
        if xid < self.current {
            Outcome::Committed
        } else {
            Outcome::InProgress
        }
    }

    fn is_current(&self, xid: Xid) -> bool {
        xid == self.current
    }

    fn is_removable(&self, xid: Xid) -> bool {
        xid < self
            .held_xmin
            .map_or(self.current, |held| held.min(self.current))
    }
}
