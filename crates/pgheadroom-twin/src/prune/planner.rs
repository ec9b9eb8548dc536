//! Deciding, chain by chain, which row versions go.

use pgheadroom_layout::OffsetNumber;
use pgheadroom_layout::version::Behaviour;

use crate::page::{HeapPage, LinePointer, Plain, Replaced, Tuple, offset_of};
use crate::prune::{DeadRoots, PrunePlan, TupleState};
use crate::transaction::{Outcome, Transactions, Xid};
use crate::unsettled::Unsettled;

/// Words of a bit for each line pointer that a page can have.
const PROCESSED_WORDS: usize = 5;

/// A plan in the making.
pub(super) struct Planner<'a, T> {
    page: &'a HeapPage,
    behaviour: &'a Behaviour,
    transactions: &'a T,
    dead_roots: DeadRoots,
    committed_before: Xid,
    /// A bit for each line pointer that was decided about.
    processed: [u64; PROCESSED_WORDS],
    plan: &'a mut PrunePlan,
}

impl<'a, T: Transactions> Planner<'a, T> {
    pub fn new(
        plan: &'a mut PrunePlan,
        page: &'a HeapPage,
        behaviour: &'a Behaviour,
        dead_roots: DeadRoots,
        transactions: &'a T,
    ) -> Self {
        plan.clear();
        Self {
            page,
            behaviour,
            transactions,
            dead_roots,
            committed_before: transactions.committed_before(),
            processed: [0; PROCESSED_WORDS],
            plan,
        }
    }

    /// Decides about all chains of the page.
    pub fn plan_all(&mut self) {
        let count = self.page.item_count() as usize;
        for position in 0..count {
            let item = self.page.item(offset_of(position));
            let is_root = match item {
                LinePointer::Redirect(_) => true,
                LinePointer::Normal(tuple) => !tuple.is_heap_only,
                LinePointer::Unused | LinePointer::Dead => false,
            };
            if is_root {
                self.prune_chain(offset_of(position));
            }
            if item == LinePointer::Dead && self.dead_roots == DeadRoots::Go {
                self.plan.now_unused.push(offset_of(position));
            }
        }
        for position in 0..count {
            self.prune_unreached(offset_of(position));
        }
    }

    /// Decides about all chains with one of these tuples, in the order of [`Planner::plan_all`];
    /// false if a root is not known.
    pub fn plan_touched(&mut self, touched: Unsettled) -> bool {
        let mut roots = Unsettled::NONE;
        for offset in touched.listed() {
            if self.stays(offset) {
                continue;
            }
            if self.page.row(offset).is_none() {
                continue;
            }
            let (_, root) = self.page.row_and_root(offset);
            if root.0 == 0 {
                return false; // it is not known
            }
            roots.add(root);
        }
        for root in roots.listed() {
            if self.leads(root) {
                self.prune_chain(root);
            }
        }
        for offset in touched.listed() {
            if !self.stays(offset) {
                self.prune_unreached(offset);
            }
        }
        true
    }

    /// Whether a tuple stays whatever chain it is in, and nothing is noted about it: its inserter
    /// has committed, and nobody has removed it.
    #[inline]
    fn stays(&self, offset: OffsetNumber) -> bool {
        let plain = self.page.plain(offset);
        plain.is_some_and(|Plain { xmin, .. }| {
            xmin < self.committed_before || self.transactions.outcome(xmin) == Outcome::Committed
        })
    }

    /// Whether index entries may lead to this line pointer, and it to tuples.
    fn leads(&self, root: OffsetNumber) -> bool {
        self.page.is_redirect(root)
            || (self.page.row(root).is_some() && !self.page.is_heap_only(root))
    }

    /// Decides about a root and the versions that follow it on this page.
    fn prune_chain(&mut self, root: OffsetNumber) {
        let mut chain = Chain::new();
        let dead_members = self.walk(root, &mut chain);
        let chain = chain.members();
        let root_is_tuple = self.page.row(root).is_some();
        if !root_is_tuple && chain.len() < 2 {
            self.remove_root(root, false); // a redirect to nothing
            return;
        }
        if dead_members == 0 {
            for &member in chain {
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

    /// Collects a root's chain, the root first; how many members lead up to and include the last
    /// dead one.
    fn walk(&mut self, root: OffsetNumber, chain: &mut Chain) -> usize {
        let mut dead_members = 0;
        let mut prior_xmax = Xid::INVALID;
        let mut at = root;
        loop {
            let position = usize::from(at.0) - 1;
            if let Some(version) = self.page.replaced(at)
                && !self.is_processed(position)
                && self.is_dead(&version)
            {
                // What most chains begin with: nothing of it is to be asked again.
                if prior_xmax.is_valid() && version.xmin != prior_xmax {
                    break;
                }
                chain.push(at);
                dead_members = chain.len();
                if version.xmax != version.xmin {
                    self.plan.conflict_xid = self.plan.conflict_xid.max(version.xmax);
                }
                prior_xmax = version.xmax;
                at = version.next;
                continue;
            }
            let tuple = match self.page.get(at) {
                Some(LinePointer::Redirect(target)) if chain.is_empty() => {
                    chain.push(at);
                    at = target;
                    continue;
                }
                Some(LinePointer::Normal(tuple)) if !self.is_processed(position) => tuple,
                _ => break,
            };
            if prior_xmax.is_valid() && tuple.xmin != prior_xmax {
                break;
            }
            chain.push(at);
            match TupleState::of(&tuple, self.transactions) {
                TupleState::Dead => {
                    dead_members = chain.len();
                    self.note_removed(tuple);
                }
                TupleState::RecentlyDead => {}
                _ => break,
            }
            if !self.is_hot_updated(&tuple) {
                break;
            }
            prior_xmax = self.transactions.updater(tuple.xmax);
            at = tuple.next.offset;
        }
        dead_members
    }

    /// Whether nobody can see a replaced version any more, and both its maker and its replacer are
    /// known to have committed without a further look.
    #[inline]
    fn is_dead(&self, version: &Replaced) -> bool {
        version.xmin < self.committed_before
            && version.xmax < self.committed_before
            && self.transactions.is_removable(version.xmax)
    }

    /// Decides about a version if no chain reached it: left by an update that was rolled back.
    fn prune_unreached(&mut self, offset: OffsetNumber) {
        if self.is_processed(usize::from(offset.0) - 1) {
            return;
        }
        let Some(tuple) = self.page.tuple(offset) else {
            return;
        };
        if TupleState::of(&tuple, self.transactions) == TupleState::Dead {
            assert!(
                !self.is_hot_updated(&tuple),
                "dead heap-only tuple outside any chain"
            );
            self.note_removed(tuple);
            self.remove_heap_only(offset);
        } else {
            self.keep(offset);
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

    fn note_removed(&mut self, mut tuple: Tuple) {
        tuple.xmax = self.transactions.updater(tuple.xmax);
        self.plan.note_removed(&tuple, self.transactions);
    }

    fn is_processed(&self, position: usize) -> bool {
        self.processed[position / 64] & (1 << (position % 64)) != 0
    }

    fn mark(&mut self, offset: OffsetNumber) {
        let position = usize::from(offset.0) - 1;
        assert!(
            !self.is_processed(position),
            "item {} decided twice",
            offset.0
        );
        self.processed[position / 64] |= 1 << (position % 64);
    }

    fn keep(&mut self, offset: OffsetNumber) {
        self.mark(offset);
        if self.stays(offset) {
            return; // nothing to note
        }
        if let Some(mut tuple) = self.page.tuple(offset) {
            let state = TupleState::of(&tuple, self.transactions);
            tuple.xmax = self.transactions.updater(tuple.xmax);
            self.plan.note_kept(&tuple, state, self.behaviour);
        }
    }

    fn remove_root(&mut self, offset: OffsetNumber, was_tuple: bool) {
        self.mark(offset);
        match self.dead_roots {
            DeadRoots::Stay => self.plan.now_dead.push(offset),
            DeadRoots::Go => self.plan.now_unused.push(offset),
        }
        self.plan.deleted_tuples += u32::from(was_tuple);
    }

    fn remove_heap_only(&mut self, offset: OffsetNumber) {
        self.mark(offset);
        self.plan.now_unused.push(offset);
        self.plan.deleted_tuples += 1;
    }
}

/// Members of a chain: few, so that they need no memory of their own.
struct Chain {
    first: [OffsetNumber; Self::FEW],
    len: usize,
    /// All of them, once they are many.
    all: Vec<OffsetNumber>,
}

impl Chain {
    const FEW: usize = 16;

    const fn new() -> Self {
        Self {
            first: [OffsetNumber(0); Self::FEW],
            len: 0,
            all: Vec::new(),
        }
    }

    fn push(&mut self, member: OffsetNumber) {
        if self.len < Self::FEW {
            self.first[self.len] = member;
        } else {
            if self.all.is_empty() {
                self.all.extend_from_slice(&self.first);
            }
            self.all.push(member);
        }
        self.len += 1;
    }

    const fn len(&self) -> usize {
        self.len
    }

    const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn members(&self) -> &[OffsetNumber] {
        if self.all.is_empty() {
            &self.first[..self.len]
        } else {
            &self.all
        }
    }
}
