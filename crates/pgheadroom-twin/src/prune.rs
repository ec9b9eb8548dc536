//! On-access pruning: a reader removes dead row versions from the page it is looking at.
//!
//! ```text
//! before                                     after
//! 1 normal  dead, HOT-updated -> 2           1 redirect -> 3
//! 2 normal  dead, heap-only   -> 3           2 unused
//! 3 normal  live, heap-only                  3 normal
//! ```
//!
//! *Plan, then apply*: [`plan`] looks at a page and says what would change, [`PrunePlan::apply`]
//! does it. Index entries lead to roots, so a root's line pointer stays: as a redirect while a
//! version of its chain lives, as dead line pointer after that, until VACUUM. Freezing is left out.

use pgheadroom_layout::version::Behaviour;
use pgheadroom_layout::wal_record::PageCleaning;
use pgheadroom_layout::{HeapFillfactor, OffsetNumber};

use crate::page::{HeapPage, LinePointer, Tuple};
use crate::transaction::{Outcome, Transactions, Xid};

mod planner;

use planner::Planner;

/// Free bytes below which a page is pruned at any fillfactor: a tenth of it.
///
/// Source: `heap_page_prune_opt`, src/backend/access/heap/pruneheap.c (REL_18_STABLE).
pub const MIN_FREE_BYTES: u32 = 8192 / 10;

/// What a row version is to everyone.
///
/// Source: `HTSV_Result`, src/include/access/heapam.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TupleState {
    /// Nobody can see it.
    Dead,
    /// Deleted, but some snapshot may still see it.
    RecentlyDead,
    /// Visible to new snapshots.
    Live,
    /// Its inserter is running.
    InsertInProgress,
    /// Its deleter is running.
    DeleteInProgress,
}

impl TupleState {
    /// What this version is to everyone now.
    ///
    /// Source: `HeapTupleSatisfiesVacuumHorizon`, src/backend/access/heap/heapam_visibility.c
    /// (REL_18_STABLE).
    #[must_use]
    pub fn of(tuple: &Tuple, transactions: &impl Transactions) -> Self {
        let deleter = (tuple.xmax.is_valid() && !tuple.is_locked_only).then_some(tuple.xmax);
        match transactions.outcome(tuple.xmin) {
            Outcome::Aborted => return Self::Dead,
            Outcome::InProgress => {
                let deleted_by_itself = deleter.is_some_and(|xid| {
                    transactions.is_current(tuple.xmin) && transactions.is_current(xid)
                });
                return if deleted_by_itself {
                    Self::DeleteInProgress
                } else {
                    Self::InsertInProgress
                };
            }
            Outcome::Committed => {}
        }
        let Some(deleter) = deleter else {
            return Self::Live;
        };
        match transactions.outcome(deleter) {
            Outcome::InProgress => Self::DeleteInProgress,
            Outcome::Aborted => Self::Live,
            Outcome::Committed if transactions.is_removable(deleter) => Self::Dead,
            Outcome::Committed => Self::RecentlyDead,
        }
    }
}

/// What pruning would change on a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrunePlan {
    /// Roots and where they will lead.
    pub redirected: Vec<(OffsetNumber, OffsetNumber)>,
    /// Roots whose whole chain is gone.
    pub now_dead: Vec<OffsetNumber>,
    /// Heap-only versions that are gone.
    pub now_unused: Vec<OffsetNumber>,
    /// Tuples whose storage goes, dead line pointers' included.
    pub deleted_tuples: u32,
    /// The oldest transaction that may leave something to prune later.
    pub new_prune_xid: Xid,
    /// The newest transaction that removed something of what goes (`snapshotConflictHorizon`).
    pub conflict_xid: Xid,
}

impl PrunePlan {
    fn clear(&mut self) {
        self.redirected.clear();
        self.now_dead.clear();
        self.now_unused.clear();
        self.deleted_tuples = 0;
        self.new_prune_xid = Xid::INVALID;
        self.conflict_xid = Xid::INVALID;
    }

    /// Whether any line pointer changes.
    #[must_use]
    pub fn changes_items(&self) -> bool {
        !(self.redirected.is_empty() && self.now_dead.is_empty() && self.now_unused.is_empty())
    }

    /// Tuples that the statistics stop counting as dead: those that leave nothing for VACUUM.
    ///
    /// Source: `pgstat_update_heap_dead_tuples` in `heap_page_prune_opt`, pruneheap.c.
    #[must_use]
    pub fn reclaimed_tuples(&self) -> u32 {
        self.deleted_tuples.saturating_sub(count(&self.now_dead))
    }

    /// What the WAL record of this will contain.
    #[must_use]
    pub fn cleaning(&self) -> PageCleaning {
        PageCleaning {
            redirected: count(&self.redirected),
            dead: count(&self.now_dead),
            unused: count(&self.now_unused),
            has_conflict_horizon: self.conflict_xid.is_valid(),
            ..PageCleaning::default()
        }
    }

    /// Carries the plan out; says whether the page's hints changed.
    ///
    /// Source: `heap_page_prune_and_freeze`, src/backend/access/heap/pruneheap.c (REL_17_STABLE).
    pub fn apply(&self, page: &mut HeapPage, behaviour: &Behaviour) -> bool {
        if self.changes_items() {
            let redirected = self
                .redirected
                .iter()
                .map(|&(root, target)| (root, LinePointer::Redirect(target)));
            let dead = self.now_dead.iter().map(|&at| (at, LinePointer::Dead));
            let unused = self.now_unused.iter().map(|&at| (at, LinePointer::Unused));
            page.apply_prune(behaviour, redirected.chain(dead).chain(unused));
        }
        page.set_prune_hints(self.new_prune_xid)
    }

    fn note_removed(&mut self, tuple: &Tuple, transactions: &impl Transactions) {
        let committed = transactions.outcome(tuple.xmin) == Outcome::Committed;
        if committed && tuple.xmax != tuple.xmin && tuple.xmax > self.conflict_xid {
            self.conflict_xid = tuple.xmax;
        }
    }

    fn note_kept(&mut self, tuple: &Tuple, state: TupleState, behaviour: &Behaviour) {
        let decided_by = match state {
            TupleState::RecentlyDead | TupleState::DeleteInProgress => tuple.xmax,
            TupleState::InsertInProgress if behaviour.insert_sets_prune_xid => tuple.xmin,
            _ => return,
        };
        if !self.new_prune_xid.is_valid() || decided_by < self.new_prune_xid {
            self.new_prune_xid = decided_by;
        }
    }
}

/// What becomes of a line pointer that index entries may point to when its row is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeadRoots {
    /// Dead, until the index entries are gone.
    Stay,
    /// Unused at once, earlier dead ones too: there is no index.
    ///
    /// Source: `HEAP_PAGE_PRUNE_MARK_UNUSED_NOW`, src/include/access/heapam.h (REL_17_STABLE).
    Go,
}

/// What a reader's visit did to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneResult {
    /// Not worth pruning.
    Nothing,
    /// Nothing to remove, but hints were brought up to date (no WAL of its own).
    Hints,
    /// Pruned, with a WAL record.
    Pruned,
}

/// Prunes a page if a reader would: something may be dead to everyone, and room is short. What
/// was done is left in `plan`.
///
/// The caller makes sure that nobody else has the page pinned; otherwise PostgreSQL does nothing.
///
/// Source: `heap_page_prune_opt`, src/backend/access/heap/pruneheap.c (REL_18_STABLE).
/// Differs: no.
pub fn prune_opt(
    page: &mut HeapPage,
    behaviour: &Behaviour,
    fillfactor: HeapFillfactor,
    transactions: &impl Transactions,
    plan: &mut PrunePlan,
) -> PruneResult {
    if !is_worth_while(page, fillfactor, transactions) {
        return PruneResult::Nothing;
    }
    plan_into(plan, page, behaviour, DeadRoots::Stay, transactions);
    let hints_changed = plan.apply(page, behaviour);
    if plan.changes_items() {
        PruneResult::Pruned
    } else if hints_changed {
        PruneResult::Hints
    } else {
        PruneResult::Nothing
    }
}

/// Whether a reader prunes the page that it looks at.
///
/// Source: `heap_page_prune_opt`, src/backend/access/heap/pruneheap.c (REL_18_STABLE).
#[must_use]
#[inline]
pub fn is_worth_while(
    page: &HeapPage,
    fillfactor: HeapFillfactor,
    transactions: &impl Transactions,
) -> bool {
    if !page.prune_xid().is_valid() || !transactions.is_removable(page.prune_xid()) {
        return false;
    }
    page.is_full() || page.heap_free_space() < min_free_bytes(fillfactor)
}

/// Free bytes below which a reader prunes.
pub(crate) fn min_free_bytes(fillfactor: HeapFillfactor) -> u32 {
    fillfactor.reserve_bytes().max(MIN_FREE_BYTES)
}

/// Says what pruning this page would change.
///
/// Source: `heap_page_prune_and_freeze` and `heap_prune_chain`,
/// src/backend/access/heap/pruneheap.c (REL_17_STABLE). Differs: no.
#[must_use]
pub fn plan(
    page: &HeapPage,
    behaviour: &Behaviour,
    dead_roots: DeadRoots,
    transactions: &impl Transactions,
) -> PrunePlan {
    let mut plan = PrunePlan::default();
    plan_into(&mut plan, page, behaviour, dead_roots, transactions);
    plan
}

/// As [`plan`], but without believing the page's list of touched tuples: the plan must be the
/// same, in another order.
#[must_use]
pub fn plan_of_all(
    page: &HeapPage,
    behaviour: &Behaviour,
    transactions: &impl Transactions,
) -> PrunePlan {
    let mut plan = PrunePlan::default();
    Planner::new(&mut plan, page, behaviour, DeadRoots::Stay, transactions).plan_all();
    plan
}

/// As [`plan`], into a plan whose memory is used again.
fn plan_into(
    plan: &mut PrunePlan,
    page: &HeapPage,
    behaviour: &Behaviour,
    dead_roots: DeadRoots,
    transactions: &impl Transactions,
) {
    let mut planner = Planner::new(plan, page, behaviour, dead_roots, transactions);
    let is_done = dead_roots == DeadRoots::Stay && planner.plan_touched(page.unsettled());
    if !is_done {
        Planner::new(plan, page, behaviour, dead_roots, transactions).plan_all();
    }
}

#[allow(clippy::cast_possible_truncation)] // at most 291 line pointers
fn count<T>(items: &[T]) -> u32 {
    items.len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Tid;
    use crate::page::tests::tuple;
    use crate::transaction::SingleSession;
    use pgheadroom_layout::{BlockNumber, PgVersion};

    const BLOCK: BlockNumber = BlockNumber(0);

    fn at(offset: u16) -> OffsetNumber {
        OffsetNumber(offset)
    }

    /// A page with one chain of HOT versions; version n is made by transaction 10 + n.
    fn chain_of(versions: u16) -> HeapPage {
        let mut page = HeapPage::empty();
        for version in 1..=versions {
            let mut new = tuple(100);
            new.xmin = Xid(10 + u32::from(version));
            new.is_heap_only = version > 1;
            let offset = page.add(BLOCK, new);
            if version > 1 {
                let mut old = page.tuple_mut(at(version - 1));
                old.xmax = Xid(10 + u32::from(version));
                old.is_hot_updated = true;
                old.next = Tid {
                    block: BLOCK,
                    offset,
                };
                drop(old);
                page.set_prunable(Xid(10 + u32::from(version)));
            }
        }
        page
    }

    fn session(current: u32) -> SingleSession {
        SingleSession {
            current: Xid(current),
            held_xmin: None,
        }
    }

    fn behaviour() -> Behaviour {
        PgVersion::new(18, 4).unwrap().behaviour()
    }

    /// The root becomes a redirect to the live version; what lies between is free.
    #[test]
    fn dead_versions_before_a_live_one() {
        let mut page = chain_of(4);
        let planned = plan(&page, &behaviour(), DeadRoots::Stay, &session(99));
        assert_eq!(planned.redirected, [(at(1), at(4))]);
        assert_eq!(planned.now_unused, [at(2), at(3)]);
        assert_eq!((planned.deleted_tuples, planned.reclaimed_tuples()), (3, 3));
        assert_eq!(planned.conflict_xid, Xid(14));
        planned.apply(&mut page, &behaviour());
        assert_eq!(page.pd_upper(), 8192 - 104);
        assert!(page.has_free_lines());
        assert_eq!(page.prune_xid(), Xid::INVALID);
        // The redirect is followed when the live version dies in turn.
        page.tuple_mut(at(4)).xmax = Xid(50);
        let planned = plan(&page, &behaviour(), DeadRoots::Stay, &session(99));
        assert_eq!(
            (planned.now_dead, planned.now_unused),
            (vec![at(1)], vec![at(4)])
        );
        assert_eq!(planned.deleted_tuples, 1);
    }

    /// A snapshot held elsewhere protects what it may see, and the page is looked at again.
    #[test]
    fn horizon_protects_recently_dead_versions() {
        let held = SingleSession {
            current: Xid(99),
            held_xmin: Some(Xid(13)),
        };
        let planned = plan(&chain_of(4), &behaviour(), DeadRoots::Stay, &held);
        assert_eq!(planned.redirected, [(at(1), at(2))]);
        assert_eq!(planned.now_unused, []);
        assert_eq!(planned.new_prune_xid, Xid(13));
    }

    /// A deleted row leaves a dead line pointer for its index entries.
    #[test]
    fn deleted_root_stays_as_a_dead_line_pointer() {
        let mut page = chain_of(1);
        page.tuple_mut(at(1)).xmax = Xid(20);
        let planned = plan(&page, &behaviour(), DeadRoots::Stay, &session(99));
        assert_eq!(planned.now_dead, [at(1)]);
        assert_eq!(planned.reclaimed_tuples(), 0);
    }

    /// A version left by a rolled back update hangs on no chain and goes alone.
    #[test]
    fn aborted_updates_are_reaped() {
        struct Aborted(Xid);
        impl Transactions for Aborted {
            fn outcome(&self, xid: Xid) -> Outcome {
                if xid == self.0 {
                    Outcome::Aborted
                } else {
                    Outcome::Committed
                }
            }
            fn is_current(&self, _: Xid) -> bool {
                false
            }
            fn is_removable(&self, _: Xid) -> bool {
                true
            }
        }
        let planned = plan(
            &chain_of(2),
            &behaviour(),
            DeadRoots::Stay,
            &Aborted(Xid(12)),
        );
        assert_eq!(planned.now_unused, [at(2)]);
        assert_eq!(planned.redirected, []);
        assert_eq!(planned.conflict_xid, Xid::INVALID);
    }

    /// Nothing happens while there is room, unless an update failed to find any.
    #[test]
    fn room_decides_about_a_visit() {
        let full = HeapFillfactor::new(100).unwrap();
        let mut page = chain_of(2);
        let mut plan = PrunePlan::default();
        assert_eq!(
            prune_opt(&mut page, &behaviour(), full, &session(99), &mut plan),
            PruneResult::Nothing
        );
        page.set_full();
        assert_eq!(
            prune_opt(&mut page, &behaviour(), full, &session(12), &mut plan),
            PruneResult::Nothing
        );
        let done = prune_opt(&mut page, &behaviour(), full, &session(99), &mut plan);
        assert_eq!(done, PruneResult::Pruned);
        assert!(!page.is_full());
        assert_eq!(
            prune_opt(&mut page, &behaviour(), full, &session(99), &mut plan),
            PruneResult::Nothing
        );
    }
}
