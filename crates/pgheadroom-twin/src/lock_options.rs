//! How strongly rows are locked, and what a statement does that finds one locked.
//!
//! Source: src/include/nodes/lockoptions.h.

/// How strongly a row is locked.
///
/// Source: `LockTupleMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockTupleMode {
    /// FOR KEY SHARE: the row stays, and its key as it is.
    KeyShare,
    /// FOR SHARE.
    Share,
    /// FOR NO KEY UPDATE; an UPDATE of columns that no foreign key could refer to.
    NoKeyUpdate,
    /// FOR UPDATE; a DELETE.
    Update,
}

impl LockTupleMode {
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
/// Source: `LockWaitPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockWaitPolicy {
    /// It waits.
    Block,
    /// SKIP LOCKED.
    Skip,
    /// NOWAIT.
    Error,
}
