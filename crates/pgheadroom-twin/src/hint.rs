//! Hint bits: whoever checks a tuple's visibility notes in its header how a transaction ended.
//!
//! ```text
//! inserted         xmin unknown, no xmax         deleted, locked   xmax unknown
//! after a check    xmin committed or invalid     after a check     xmax committed or invalid
//! ```
//!
//! A note dirties the page without a record of its own, except that with checksums (or
//! `wal_log_hints`) a page that is clean, and was last changed before the last checkpoint, is
//! logged whole. So the notes decide what a reader writes after a checkpoint, and nothing else:
//! what a tuple is to whom is asked of the transactions. Left out: asynchronous commits, which
//! delay the notes.

use pgheadroom_layout::OffsetNumber;

use crate::page::{HeapPage, LinePointer, Tuple, XmaxHint, XminHint};
use crate::transaction::{Outcome, Transactions, Xid};

/// Who checks a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Check {
    /// A snapshot; it does not look at row locks.
    Snapshot,
    /// Pruning, VACUUM, index deletion, uniqueness checks, and whoever is about to change or lock
    /// the row.
    Thorough,
}

/// Notes what a check of this tuple finds out; says whether that is new.
///
/// Source: `HeapTupleSatisfiesMVCC` for a snapshot; `HeapTupleSatisfiesVacuumHorizon`,
/// `HeapTupleSatisfiesUpdate` and `HeapTupleSatisfiesDirty` for the rest,
/// src/backend/access/heap/heapam_visibility.c (REL_15_STABLE, REL_18_STABLE). Differs: no.
pub fn note(tuple: &mut Tuple, check: Check, transactions: &impl Transactions) -> bool {
    let is_noted = tuple.xmin_hint != XminHint::Unset && tuple.xmax_hint == XmaxHint::Set;
    if is_noted {
        return false;
    }
    let mut is_new = false;
    let inserter = transactions.outcome(tuple.xmin);
    if tuple.xmin_hint == XminHint::Unset && inserter != Outcome::InProgress {
        tuple.xmin_hint = XminHint::Set;
        is_new = true;
    }
    // Behind an inserter that failed or runs, nobody looks at the deleter.
    let checks_xmax = inserter == Outcome::Committed
        && tuple.xmax_hint != XmaxHint::Set
        && (check == Check::Thorough || !tuple.is_locked_only);
    let is_over = |xmax: Xid| {
        if xmax.is_multixact() {
            check == Check::Thorough && !transactions.is_multixact_needed(xmax)
        } else {
            transactions.outcome(xmax) != Outcome::InProgress
        }
    };
    if checks_xmax && is_over(tuple.xmax) {
        tuple.xmax_hint = XmaxHint::Set;
        is_new = true;
    }
    is_new
}

/// Notes what a check of every tuple of a page finds out; says whether any of that is new.
pub(crate) fn note_all(
    page: &mut HeapPage,
    check: Check,
    transactions: &impl Transactions,
) -> bool {
    note_some(page, page.offsets(), check, transactions)
}

/// The same of these tuples.
pub(crate) fn note_some(
    page: &mut HeapPage,
    offsets: impl Iterator<Item = OffsetNumber>,
    check: Check,
    transactions: &impl Transactions,
) -> bool {
    let mut is_new = false;
    for offset in offsets {
        if page.plain(offset).is_some() || page.replaced(offset).is_some() {
            continue; // all is noted
        }
        if let Some(LinePointer::Normal(mut tuple)) = page.get(offset)
            && note(&mut tuple, check, transactions)
        {
            page.put_hints(offset, &tuple);
            is_new = true;
        }
    }
    is_new
}

/// Notes how the transactions of every tuple of a page ended, as far as
/// it is not settled; says whether any note is new.
pub(crate) fn note_unsettled(page: &mut HeapPage, transactions: &impl Transactions) -> bool {
    note_some(
        page,
        page.unsettled().listed(),
        Check::Thorough,
        transactions,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::SingleSession;

    fn session(current: u32) -> SingleSession {
        SingleSession {
            current: Xid(current),
            held_xmin: None,
        }
    }

    /// The first check after the inserter's end notes it, the second finds the note.
    #[test]
    fn inserters_are_noted_once() {
        let mut tuple = Tuple::new(1, 100, Xid(5));
        assert!(!note(&mut tuple, Check::Snapshot, &session(5)));
        assert!(note(&mut tuple, Check::Snapshot, &session(6)));
        assert!(!note(&mut tuple, Check::Thorough, &session(6)));
    }

    /// A snapshot sees a locked row without looking at the lock; whoever changes it looks.
    #[test]
    fn row_locks_are_noted_by_thorough_checks_only() {
        let mut tuple = Tuple::new(1, 100, Xid(5));
        tuple.xmin_hint = XminHint::Set;
        tuple.xmax = Xid(6);
        tuple.is_locked_only = true;
        tuple.xmax_hint = XmaxHint::Unset;
        assert!(!note(&mut tuple, Check::Snapshot, &session(9)));
        assert!(!note(&mut tuple, Check::Thorough, &session(6)));
        assert!(note(&mut tuple, Check::Thorough, &session(9)));
    }
}
