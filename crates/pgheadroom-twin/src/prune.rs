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

use crate::page::{HeapPage, LinePointer, Tuple, offset_of};
use crate::transaction::{Outcome, Transactions, Xid};

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
    /// (REL_18_STABLE). Differs: multixacts are left out.
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

    fn note_kept(&mut self, tuple: &Tuple, state: TupleState) {
        let soon = matches!(
            state,
            TupleState::RecentlyDead | TupleState::DeleteInProgress
        );
        if soon && (!self.new_prune_xid.is_valid() || tuple.xmax < self.new_prune_xid) {
            self.new_prune_xid = tuple.xmax;
        }
    }
}

/// What a reader's visit did to a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visit {
    /// Not worth pruning.
    Nothing,
    /// Nothing to remove, but hints were brought up to date (no WAL of its own).
    Hints,
    /// Pruned, with a WAL record.
    Pruned(PrunePlan),
}

/// Prunes a page if a reader would: something may be dead to everyone, and room is short.
///
/// The caller makes sure that nobody else has the page pinned; otherwise PostgreSQL does nothing.
///
/// Source: `heap_page_prune_opt`, src/backend/access/heap/pruneheap.c (REL_18_STABLE).
/// Differs: no.
pub fn visit(
    page: &mut HeapPage,
    behaviour: &Behaviour,
    fillfactor: HeapFillfactor,
    transactions: &impl Transactions,
) -> Visit {
    if !page.prune_xid().is_valid() || !transactions.is_removable(page.prune_xid()) {
        return Visit::Nothing;
    }
    let min_free = fillfactor.reserve_bytes().max(MIN_FREE_BYTES);
    if !page.is_full() && page.heap_free_space() >= min_free {
        return Visit::Nothing;
    }
    let plan = plan(page, transactions);
    let hints_changed = plan.apply(page, behaviour);
    if plan.changes_items() {
        Visit::Pruned(plan)
    } else if hints_changed {
        Visit::Hints
    } else {
        Visit::Nothing
    }
}

/// Says what pruning this page would change.
///
/// Source: `heap_page_prune_and_freeze` and `heap_prune_chain`,
/// src/backend/access/heap/pruneheap.c (REL_17_STABLE). Differs: no.
#[must_use]
pub fn plan(page: &HeapPage, transactions: &impl Transactions) -> PrunePlan {
    let states: Vec<Option<TupleState>> = page
        .items()
        .iter()
        .map(|item| match item {
            LinePointer::Normal(tuple) => Some(TupleState::of(tuple, transactions)),
            _ => None,
        })
        .collect();
    let mut planner = Planner {
        page,
        transactions,
        processed: vec![false; states.len()],
        states,
        plan: PrunePlan::default(),
    };
    for (position, item) in page.items().iter().enumerate() {
        let is_root = match item {
            LinePointer::Redirect(_) => true,
            LinePointer::Normal(tuple) => !tuple.is_heap_only,
            LinePointer::Unused | LinePointer::Dead => false,
        };
        if is_root {
            planner.prune_chain(offset_of(position));
        }
    }
    planner.prune_unreached();
    planner.plan
}

struct Planner<'a, T> {
    page: &'a HeapPage,
    transactions: &'a T,
    states: Vec<Option<TupleState>>,
    processed: Vec<bool>,
    plan: PrunePlan,
}

impl<T: Transactions> Planner<'_, T> {
    /// Decides about a root and the versions that follow it on this page.
    fn prune_chain(&mut self, root: OffsetNumber) {
        let (chain, dead_members) = self.walk(root);
        let root_is_tuple = self.page.tuple(root).is_some();
        if !root_is_tuple && chain.len() < 2 {
            self.remove_root(root, false); // a redirect to nothing
            return;
        }
        if dead_members == 0 {
            for &member in &chain {
                self.keep(member);
            }
            return;
        }
        if dead_members == chain.len() {
            self.remove_root(root, root_is_tuple);
        } else {
            self.mark(root);
            self.plan.redirected.push((root, chain[dead_members]));
            self.plan.deleted_tuples += u32::from(root_is_tuple);
        }
        for &member in &chain[1..dead_members] {
            self.remove_heap_only(member);
        }
        for &member in &chain[dead_members..] {
            self.keep(member);
        }
    }

    /// Members of a root's chain, the root first, and how many of them lead up to and include the
    /// last dead one.
    fn walk(&mut self, root: OffsetNumber) -> (Vec<OffsetNumber>, usize) {
        let mut chain = Vec::new();
        let mut dead_members = 0;
        let mut prior_xmax = Xid::INVALID;
        let mut at = root;
        loop {
            let position = usize::from(at.0) - 1;
            let tuple = match self.page.items().get(position) {
                Some(&LinePointer::Redirect(target)) if chain.is_empty() => {
                    chain.push(at);
                    at = target;
                    continue;
                }
                Some(LinePointer::Normal(tuple)) if !self.processed[position] => tuple,
                _ => break,
            };
            if prior_xmax.is_valid() && tuple.xmin != prior_xmax {
                break;
            }
            chain.push(at);
            match self.states[position] {
                Some(TupleState::Dead) => {
                    dead_members = chain.len();
                    self.plan.note_removed(tuple, self.transactions);
                }
                Some(TupleState::RecentlyDead) => {}
                _ => break,
            }
            if !self.is_hot_updated(tuple) {
                break;
            }
            prior_xmax = tuple.xmax;
            at = tuple.next.offset;
        }
        (chain, dead_members)
    }

    /// Heap-only versions that no chain reached: left by updates that were rolled back.
    fn prune_unreached(&mut self) {
        for position in 0..self.states.len() {
            let (Some(state), false) = (self.states[position], self.processed[position]) else {
                continue;
            };
            let offset = offset_of(position);
            let Some(&tuple) = self.page.tuple(offset) else {
                continue;
            };
            if state == TupleState::Dead {
                assert!(
                    !self.is_hot_updated(&tuple),
                    "dead heap-only tuple outside any chain"
                );
                self.plan.note_removed(&tuple, self.transactions);
                self.remove_heap_only(offset);
            } else {
                self.keep(offset);
            }
        }
    }

    /// Whether a HOT update of this version counts: neither its maker nor its replacer failed.
    ///
    /// Source: `HeapTupleHeaderIsHotUpdated`, src/include/access/htup_details.h; the hints that it
    /// reads were set when the tuple's state was determined.
    fn is_hot_updated(&self, tuple: &Tuple) -> bool {
        tuple.is_hot_updated
            && self.transactions.outcome(tuple.xmin) != Outcome::Aborted
            && self.transactions.outcome(tuple.xmax) != Outcome::Aborted
    }

    fn mark(&mut self, offset: OffsetNumber) {
        let processed = &mut self.processed[usize::from(offset.0) - 1];
        assert!(!*processed, "item {} decided twice", offset.0);
        *processed = true;
    }

    fn keep(&mut self, offset: OffsetNumber) {
        self.mark(offset);
        let position = usize::from(offset.0) - 1;
        if let (Some(tuple), Some(state)) = (self.page.tuple(offset), self.states[position]) {
            self.plan.note_kept(tuple, state);
        }
    }

    fn remove_root(&mut self, offset: OffsetNumber, was_tuple: bool) {
        self.mark(offset);
        self.plan.now_dead.push(offset);
        self.plan.deleted_tuples += u32::from(was_tuple);
    }

    fn remove_heap_only(&mut self, offset: OffsetNumber) {
        self.mark(offset);
        self.plan.now_unused.push(offset);
        self.plan.deleted_tuples += 1;
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
                let old = page.tuple_mut(at(version - 1));
                old.xmax = Xid(10 + u32::from(version));
                old.is_hot_updated = true;
                old.next = Tid {
                    block: BLOCK,
                    offset,
                };
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
        let planned = plan(&page, &session(99));
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
        let planned = plan(&page, &session(99));
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
        let planned = plan(&chain_of(4), &held);
        assert_eq!(planned.redirected, [(at(1), at(2))]);
        assert_eq!(planned.now_unused, []);
        assert_eq!(planned.new_prune_xid, Xid(13));
    }

    /// A deleted row leaves a dead line pointer for its index entries.
    #[test]
    fn deleted_root_stays_as_a_dead_line_pointer() {
        let mut page = chain_of(1);
        page.tuple_mut(at(1)).xmax = Xid(20);
        let planned = plan(&page, &session(99));
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
        let planned = plan(&chain_of(2), &Aborted(Xid(12)));
        assert_eq!(planned.now_unused, [at(2)]);
        assert_eq!(planned.redirected, []);
        assert_eq!(planned.conflict_xid, Xid::INVALID);
    }

    /// Nothing happens while there is room, unless an update failed to find any.
    #[test]
    fn room_decides_about_a_visit() {
        let full = HeapFillfactor::new(100).unwrap();
        let mut page = chain_of(2);
        assert_eq!(
            visit(&mut page, &behaviour(), full, &session(99)),
            Visit::Nothing
        );
        page.set_full();
        assert_eq!(
            visit(&mut page, &behaviour(), full, &session(12)),
            Visit::Nothing
        );
        let done = visit(&mut page, &behaviour(), full, &session(99));
        assert!(matches!(done, Visit::Pruned(_)));
        assert!(!page.is_full());
        assert_eq!(
            visit(&mut page, &behaviour(), full, &session(99)),
            Visit::Nothing
        );
    }
}
