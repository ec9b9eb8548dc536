//! What of a page's tuples is so old that it is frozen, and how.

use pgheadroom_layout::version::OpportunisticFreeze;

use crate::page::{HeapPage, Tid, Tuple, XmaxHint, XminHint};
use crate::transaction::{Outcome, Transactions, Xid};
use crate::vacuum::VacuumLog;
use crate::vacuum::page::{Cleaner, Survey};

/// What of a row's shape is in its tuple header: tuples that differ in it are frozen by separate
/// plans. Source: `t_infomask` and `t_infomask2`, src/include/access/htup_details.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FreezeKind {
    /// Whether it has a NULL.
    pub has_nulls: bool,
    /// Whether it has a value of variable width.
    pub has_var_width: bool,
    /// Whether it has a value out of line.
    pub has_external: bool,
}

/// What becomes of a tuple's `xmax` if it is frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Xmax {
    Stays,
    Goes,
    /// The updater of a multixact, and what is noted about it.
    Becomes(Xid, XmaxHint),
}

impl Cleaner<'_> {
    /// Whether a transaction has left something on the page that is so old that it has to be
    /// frozen.
    ///
    /// Source: `heap_tuple_should_freeze`, src/backend/access/heap/heapam.c (REL_16_STABLE).
    pub fn has_old(&self, page: &HeapPage, transactions: &impl Transactions) -> bool {
        let is_old = |xid: Xid| transactions.is_removable(xid) && self.is_old(xid, transactions);
        let mut tuples = page.offsets().filter_map(|offset| page.tuple(offset));
        tuples.any(|tuple| {
            let multixact = multixact_of(&tuple);
            unfrozen(&tuple, transactions)
                .into_iter()
                .flatten()
                .any(is_old)
                || multixact.is_some_and(|number| number < self.cutoffs.multixact_cutoff)
        })
    }

    /// Whether what this transaction has left has to be frozen.
    ///
    /// Source: `heap_tuple_should_freeze`, src/backend/access/heap/heapam.c (REL_16_STABLE).
    pub(super) fn is_old(&self, xid: Xid, transactions: &impl Transactions) -> bool {
        self.freeze || transactions.oldest_of(xid) < self.cutoffs.freeze_limit
    }

    /// Whether `xmin` is old enough to be frozen, and what becomes of `xmax`: before 16 only if
    /// they have to be, later if the page is.
    ///
    /// Source: `heap_prepare_freeze_tuple`, src/backend/access/heap/heapam.c (REL_15_STABLE,
    /// REL_16_STABLE).
    pub(super) fn freezable_parts(
        &self,
        tuple: &Tuple,
        transactions: &impl Transactions,
    ) -> (bool, Xmax) {
        let xmin = tuple.xmin_hint != XminHint::Frozen && self.may_go(tuple.xmin, transactions);
        let xmax = if tuple.xmax.is_multixact() {
            self.freeze_multixact(tuple, transactions)
        } else if tuple.xmax.is_valid() && self.may_go(tuple.xmax, transactions) {
            Xmax::Goes
        } else {
            Xmax::Stays
        };
        (xmin, xmax)
    }

    /// What becomes of a multixact. One that nobody in progress is in goes, or its updater alone
    /// stays; to 15 one with an updater only if it is old. Of others members are asked where one is
    /// old. Differs: what is left of such a one, with a locker in progress, would be a new
    /// multixact; it stays.
    ///
    /// Source: `FreezeMultiXactId`, src/backend/access/heap/heapam.c, and `GetMultiXactIdMembers`,
    /// src/backend/access/transam/multixact.c (REL_15_STABLE, REL_18_STABLE).
    fn freeze_multixact(&self, tuple: &Tuple, transactions: &impl Transactions) -> Xmax {
        let cutoffs = &self.cutoffs;
        let goes_with_page = self.behaviour.opportunistic_freeze >= OpportunisticFreeze::WithImage;
        let limit = if goes_with_page {
            cutoffs.oldest_multixact
        } else {
            cutoffs.multixact_cutoff
        };
        let members = transactions.members(tuple.xmax);
        let updater = members.iter().find(|(_, changes)| *changes);
        let updater = updater.map(|&(xid, _)| xid);
        if tuple.xmax < limit {
            return match updater {
                Some(updater) if !self.may_go(updater, transactions) => {
                    Xmax::Becomes(updater, XmaxHint::Unset)
                }
                _ => Xmax::Goes,
            };
        }
        // Whoever asks for its members is told that there are none.
        if tuple.is_locked_only && tuple.xmax < cutoffs.oldest_multixact {
            return Xmax::Goes;
        }
        if !members.iter().any(|(xid, _)| *xid < cutoffs.freeze_limit) {
            return Xmax::Stays;
        }
        let runs = |xid: Xid| transactions.outcome(xid) == Outcome::InProgress;
        let is_locked = members.iter().any(|&(xid, changes)| !changes && runs(xid));
        match updater.map(|xid| (xid, transactions.outcome(xid))) {
            _ if is_locked => Xmax::Stays,
            Some((xid, Outcome::Committed)) => Xmax::Becomes(xid, XmaxHint::Set),
            Some((xid, Outcome::InProgress)) => Xmax::Becomes(xid, XmaxHint::Unset),
            Some((_, Outcome::Aborted)) | None => Xmax::Goes,
        }
    }

    /// The same of one number.
    pub(super) fn may_go(&self, xid: Xid, transactions: &impl Transactions) -> bool {
        let with_page = self.behaviour.opportunistic_freeze >= OpportunisticFreeze::WithImage;
        transactions.is_removable(xid) && (with_page || self.is_old(xid, transactions))
    }

    /// Freezes what may be frozen; how many tuples, and in how many different ways.
    ///
    /// Source: `heap_freeze_prepared_tuples` and `heap_log_freeze_plan`,
    /// src/backend/access/heap/heapam.c, pruneheap.c (REL_16_STABLE, REL_18_STABLE).
    pub(super) fn freeze_tuples(
        &self,
        page: &mut HeapPage,
        survey: &Survey,
        transactions: &impl Transactions,
        log: &impl VacuumLog,
    ) -> (u32, u32) {
        let mut plans = Vec::with_capacity(survey.freezable.len());
        for &offset in &survey.freezable {
            let mut tuple = page.tuple_mut(offset);
            let (old_xmin, new_xmax) = self.freezable_parts(&tuple, transactions);
            if old_xmin {
                tuple.xmin_hint = XminHint::Frozen;
            }
            match new_xmax {
                Xmax::Stays => {}
                Xmax::Goes => clear_xmax(&mut tuple),
                Xmax::Becomes(updater, hint) => {
                    tuple.xmax = updater;
                    tuple.xmax_hint = hint;
                }
            }
            let this = Tid {
                block: self.block,
                offset,
            };
            let is_deleted = tuple.next == this && !tuple.is_locked_only;
            let xmax = tuple.xmax;
            plans.push((
                xmax,
                (tuple.xmin_hint as u8, tuple.xmax_hint as u8),
                xmax.is_valid() && (tuple.is_hot_updated || is_deleted),
                tuple.is_heap_only,
                tuple.is_updated,
                log.freeze_kind(tuple.row),
            ));
        }
        let tuples = plans.len();
        plans.sort_unstable();
        plans.dedup();
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        (count(tuples), count(plans.len()))
    }
}

impl Survey {
    /// What a tuple has that is not frozen, and of that what stays so if the page is frozen.
    pub(super) fn note_ages(
        &mut self,
        tuple: &Tuple,
        (old_xmin, new_xmax): (bool, Xmax),
        transactions: &impl Transactions,
    ) {
        let [xmin, xmax] = unfrozen(tuple, transactions);
        let xmax_after = match new_xmax {
            Xmax::Stays => xmax,
            Xmax::Goes => None,
            Xmax::Becomes(updater, _) => Some(updater),
        };
        let [before, after] = &mut self.oldest;
        note_oldest(before, xmin);
        note_oldest(before, xmax);
        note_oldest(after, xmin.filter(|_| !old_xmin));
        note_oldest(after, xmax_after);
        let multixact = multixact_of(tuple);
        let [before, after] = &mut self.oldest_multixact;
        note_oldest(before, multixact);
        note_oldest(after, multixact.filter(|_| new_xmax == Xmax::Stays));
    }
}

/// The transactions that a tuple names and that are not frozen: of its insertion, and the oldest of
/// its replacement, deletion or lock.
pub(super) fn unfrozen(tuple: &Tuple, transactions: &impl Transactions) -> [Option<Xid>; 2] {
    let xmin = tuple.xmin_hint != XminHint::Frozen;
    let xmax = tuple.xmax.is_valid();
    [
        xmin.then_some(tuple.xmin),
        xmax.then(|| transactions.oldest_of(tuple.xmax)),
    ]
}

/// The multixact that a tuple names.
pub(super) fn multixact_of(tuple: &Tuple) -> Option<Xid> {
    tuple.xmax.is_multixact().then_some(tuple.xmax)
}

pub(super) fn note_oldest(known: &mut Option<Xid>, one: Option<Xid>) {
    *known = known.iter().copied().chain(one).min();
}

/// Nothing is left of a locker that has ended or a deleter that failed; only the link to a next
/// version stays, which means nothing now.
fn clear_xmax(tuple: &mut Tuple) {
    tuple.xmax = Xid::INVALID;
    tuple.xmax_hint = XmaxHint::Set;
    tuple.is_locked_only = false;
    tuple.is_hot_updated = false;
}
