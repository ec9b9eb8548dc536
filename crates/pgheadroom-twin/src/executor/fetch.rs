//! Following HOT chains: what a snapshot sees at a TID, and pruning on the way.

use std::cell::RefCell;

use pgheadroom_layout::wal_record::{Page, PageCleaning, heap_prune, heap_prune_and_visible};
use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::checkpoint::ForkId;
use crate::counters::TableCounters;
use crate::executor::changed_rows::ChangedRows;
use crate::heap::Heap;
use crate::hint::{self, Check};
use crate::page::{LinePointer, Settled, Tid, Tuple, offset_of};
use crate::procarray::{Ended, ProcArray, Snapshot};
use crate::prune::{PruneResult, TupleState};
use crate::transaction::{Outcome, Transactions, Xid};
use crate::vacuum::all_visible;
use crate::vm::VisibilityMap;
use crate::wal::{RecordType, Wal};

/// What is at a TID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetched {
    /// The visible version is here.
    Found(Tid),
    /// No visible version, but somebody may see one.
    Invisible,
    /// Nobody can see any version.
    AllDead,
}

/// Its heap's forks, under which changes of pages are logged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forks {
    pub main: ForkId,
    pub fsm: ForkId,
    pub vm: ForkId,
}

/// What of a table a reader touches.
pub(super) struct HeapParts<'a> {
    pub heap: &'a mut Heap,
    pub counters: &'a mut TableCounters,
    /// Rows that the active session's last statement changed.
    pub changed: &'a ChangedRows,
    pub forks: Forks,
    /// Bytes of the record of a pruned HOT update, as [`simple_prune_bytes`] has them.
    pub prune_bytes: [u32; 2],
    /// Pages that the running statement has pinned besides that of its row.
    pub pinned: [Option<BlockNumber>; 3],
}

/// A reader of a table.
pub(super) struct HeapAccess<'a, 'w> {
    parts: HeapParts<'a>,
    pub procs: &'a ProcArray,
    wal: &'a RefCell<&'w mut Wal>,
    /// The page that this statement has pinned for its row, so that it cannot be pruned.
    pub pinned: Option<BlockNumber>,
}

/// Who comes to a page on which a HOT update may be all that there is to prune.
#[derive(Clone, Copy)]
pub(super) struct Updates<'a> {
    pub procs: &'a ProcArray,
    pub main: ForkId,
    /// As [`simple_prune_bytes`] has them.
    pub prune_bytes: [u32; 2],
}

impl Updates<'_> {
    /// Prunes a page on which a HOT update is all that a visitor finds, with the record of that;
    /// `None` when it is not that simple, and nothing was done then.
    ///
    /// As `HeapAccess::prune_by_plan` does, whose plan would be that.
    #[inline(always)]
    pub fn prune(
        self,
        heap: &mut Heap,
        counters: &mut TableCounters,
        wal: &mut Wal,
        block: BlockNumber,
    ) -> Option<Settled> {
        let updater = heap.pages()[block.0 as usize].prune_xid();
        if self.procs.outcome(updater) != Outcome::Committed || heap.is_any_watched() {
            return None;
        }
        if heap.behaviour().visibility_in_cleaning_records {
            heap.vm_mut().pin(block);
        }
        let main = self.main;
        let is_logged = wal.is_logged(main, block);
        let hole = |heap: &Heap| heap.pages()[block.0 as usize].exact_free_space();
        let before = if is_logged { 0 } else { hole(heap) };
        let settled = heap.prune_deferred(block)?;
        counters.pruned(1);
        if is_logged {
            let bytes = self.prune_bytes[usize::from(settled.frees_item)];
            wal.record_again(main, RecordType::HeapPrune, bytes);
        } else {
            wal.hint(main, block, before);
            let page = wal.change(main, block, hole(heap));
            let cleaning = simple_cleaning(settled.frees_item);
            let bytes = heap_prune(heap.behaviour(), cleaning, page);
            wal.record(RecordType::HeapPrune, bytes);
        }
        Some(settled)
    }
}

impl<'a, 'w> HeapAccess<'a, 'w> {
    pub fn new(
        parts: HeapParts<'a>,
        procs: &'a ProcArray,
        wal: &'a RefCell<&'w mut Wal>,
        pinned: Option<BlockNumber>,
    ) -> Self {
        Self {
            parts,
            procs,
            wal,
            pinned,
        }
    }

    /// Looks at a page and prunes it if worth while, for a statement that changes or locks rows.
    pub fn prune_opt(&mut self, block: BlockNumber) {
        self.prune_opt_for(block, false);
    }

    /// Looks at a page and prunes it if worth while; from 19 on a statement that reads the table
    /// alone sets the page's visibility bit as well.
    pub fn prune_opt_for(&mut self, block: BlockNumber, is_read_only: bool) {
        if !self.is_worth_pruning(block) {
            return;
        }
        let sets_bits = is_read_only && self.sets_bits_here();
        if sets_bits || !self.prune_deferred(block) {
            self.prune_by_plan(block, is_read_only);
        }
    }

    fn is_worth_pruning(&self, block: BlockNumber) -> bool {
        self.parts.heap.is_worth_pruning(block, self.procs)
            && !self.parts.pinned.contains(&Some(block))
            && !self.procs.is_pinned(self.parts.forks.main, block)
    }

    /// Whether pruning sets visibility bits.
    fn sets_bits_here(&self) -> bool {
        let behaviour = self.parts.heap.behaviour();
        behaviour.visibility_in_cleaning_records
    }

    /// Prunes a page on which a HOT update is all that a visitor finds; whether it was so.
    #[inline]
    fn prune_deferred(&mut self, block: BlockNumber) -> bool {
        let parts = &mut self.parts;
        let updates = Updates {
            procs: self.procs,
            main: parts.forks.main,
            prune_bytes: parts.prune_bytes,
        };
        let mut wal = self.wal.borrow_mut();
        let settled = updates.prune(parts.heap, parts.counters, &mut wal, block);
        if let Some(settled) = settled {
            parts.heap.page_mut(block).leave_freed(settled);
        }
        settled.is_some()
    }

    /// Prunes a page that is worth it, by a plan.
    ///
    /// Source: `heap_page_prune_opt`, src/backend/access/heap/pruneheap.c (REL_18_STABLE, and
    /// commit b46e1e54d07 before 19beta1).
    #[inline(never)]
    fn prune_by_plan(&mut self, block: BlockNumber, is_read_only: bool) {
        let sets_bits_here = self.sets_bits_here();
        if sets_bits_here {
            self.parts.heap.vm_mut().pin(block);
            if self.parts.heap.vm().get(block).all_visible {
                self.forget_prunable(block);
                return;
            }
        }
        if self.parts.heap.note_hints(block, self.procs) {
            self.hinted(block);
        }
        let visit = self.parts.heap.prune_opt(block, self.procs);
        if sets_bits_here && is_read_only && self.set_visible(block, visit == PruneResult::Pruned) {
            return;
        }
        if visit == PruneResult::Nothing {
            return;
        }
        let hole = self.parts.heap.pages()[block.0 as usize].exact_free_space();
        let mut wal = self.wal.borrow_mut();
        match visit {
            PruneResult::Pruned => {
                let plan = self.parts.heap.last_prune();
                let page = wal.change(self.parts.forks.main, block, hole);
                let behaviour = self.parts.heap.behaviour();
                let bytes = heap_prune(behaviour, plan.cleaning(), page);
                wal.record(RecordType::HeapPrune, bytes);
                self.parts.counters.pruned(plan.reclaimed_tuples());
            }
            PruneResult::Hints | PruneResult::Nothing => {
                wal.hint(self.parts.forks.main, block, hole)
            }
        }
    }

    /// Takes the mark of something to prune from a page that everyone sees all of.
    ///
    /// Source: `prune_freeze_fast_path`, src/backend/access/heap/pruneheap.c (commit 01b7e4a46d0
    /// before 19beta1).
    fn forget_prunable(&mut self, block: BlockNumber) {
        if self.parts.heap.page_mut(block).clear_prune_xid() {
            self.hinted(block);
        }
    }

    /// Sets the visibility bit of a page that everyone sees all of, in the record of what was
    /// pruned or in one of its own; says whether it was set. Nothing is set where that would be the
    /// page's first change or would want an image.
    ///
    /// Source: `heap_page_will_set_vm`, src/backend/access/heap/pruneheap.c (commit b46e1e54d07
    /// before 19beta1).
    fn set_visible(&mut self, block: BlockNumber, is_pruned: bool) -> bool {
        let main = self.parts.forks.main;
        let mut wal = self.wal.borrow_mut();
        let is_cheap = is_pruned || (wal.is_dirty(main, block) && !wal.owes_image(main, block));
        let page = &self.parts.heap.pages()[block.0 as usize];
        let Some(found) = all_visible(page, self.procs).filter(|_| is_cheap) else {
            return false;
        };
        let hole = page.exact_free_space();
        let free = page.heap_free_space();
        let plan = self.parts.heap.last_prune();
        let mut cleaning = if is_pruned {
            self.parts.counters.pruned(plan.reclaimed_tuples());
            plan.cleaning()
        } else {
            PageCleaning::default()
        };
        cleaning.has_conflict_horizon |= found.has_visible_xid;
        let page = if is_pruned || wal.hints_are_logged() {
            wal.change(main, block, hole)
        } else {
            wal.name(main, block)
        };
        let vm_page = wal.change(self.parts.forks.vm, VisibilityMap::map_page(block), 0);
        let bytes = heap_prune_and_visible(cleaning, page, vm_page);
        wal.record(RecordType::HeapPrune, bytes);
        self.parts.heap.set_visible_by_reader(block);
        let fsm = self.parts.forks.fsm;
        let mut log = |fsm_block: BlockNumber| wal.hint(fsm, fsm_block, 0);
        self.parts.heap.fsm_mut().record(block, free, &mut log);
        true
    }

    /// Hint bits of a page were set.
    fn hinted(&self, block: BlockNumber) {
        let hole = self.parts.heap.pages()[block.0 as usize].exact_free_space();
        self.wal
            .borrow_mut()
            .hint(self.parts.forks.main, block, hole);
    }

    /// Prefetches a page's header.
    pub fn prefetch_page(&self, block: BlockNumber) {
        if let Some(page) = self.parts.heap.pages().get(block.0 as usize) {
            page.prefetch_header();
        }
    }

    /// Prefetches a tuple on a page that was prefetched.
    pub fn prefetch_tuple(&self, tid: Tid) {
        if let Some(page) = self.parts.heap.pages().get(tid.block.0 as usize) {
            page.prefetch_tuple(tid.offset);
        }
    }

    /// Whether the active transaction has made this version by a simple update, so that its next
    /// statement sees it and no version before it.
    #[inline]
    pub fn is_own_simple_update(&self, tid: Tid) -> bool {
        let page = self.parts.heap.pages().get(tid.block.0 as usize);
        let made_by = page.and_then(|page| page.made_simply_by(tid.offset));
        made_by.is_some_and(|xid| self.procs.is_current(xid))
    }

    /// The version at a TID that the running statement sees.
    pub fn fetch(&mut self, tid: Tid, statement: u32) -> Fetched {
        let snapshot = Snapshot(self.procs);
        let ended = |xmax: Xid| snapshot.ended(xmax);
        self.walk(tid, Check::Snapshot, &snapshot, ended, |this, tuple| {
            this.is_visible(tuple, statement)
        })
    }

    /// The version at a TID that is live or may become so, own changes included.
    ///
    /// Source: `HeapTupleSatisfiesDirty`, src/backend/access/heap/heapam_visibility.c
    /// (REL_18_STABLE).
    pub fn fetch_dirty(&mut self, tid: Tid) -> Fetched {
        let never = |_: Xid| Ended::Unknown;
        self.walk(tid, Check::Thorough, self.procs, never, |this, tuple| {
            let is_gone = |xid: Xid| match this.procs.outcome(xid) {
                _ if !xid.is_valid() => false,
                Outcome::Aborted => false,
                Outcome::Committed => true,
                Outcome::InProgress => this.procs.is_current(xid),
            };
            this.procs.outcome(tuple.xmin) != Outcome::Aborted
                && (tuple.is_locked_only || !is_gone(tuple.xmax))
        })
    }

    /// The transaction of another session that decides whether this version stays: the one that
    /// made it or that replaced or deleted it, as long as it is in progress.
    ///
    /// Source: `xmin` and `xmax` of a dirty snapshot, `HeapTupleSatisfiesDirty`,
    /// src/backend/access/heap/heapam_visibility.c (REL_18_STABLE).
    pub fn undecided(&self, tid: Tid) -> Option<Xid> {
        let page = &self.parts.heap.pages()[tid.block.0 as usize];
        let tuple = page.tuple(tid.offset)?;
        let removed_by = (!tuple.is_locked_only).then_some(tuple.xmax);
        let mut parties = [Some(tuple.xmin), removed_by].into_iter().flatten();
        parties.find(|&xid| self.procs.runs_elsewhere(xid))
    }

    /// Whether every version of the chain is dead to everyone.
    ///
    /// Source: `heap_index_delete_tuples`, src/backend/access/heap/heapam.c, with
    /// `HeapTupleSatisfiesNonVacuumable`, heapam_visibility.c (REL_18_STABLE).
    pub fn is_chain_dead(&mut self, tid: Tid) -> bool {
        let page = &self.parts.heap.pages()[tid.block.0 as usize];
        if page.is_dead(tid.offset) {
            return true;
        }
        let is_root = !page.is_heap_only(tid.offset);
        if let Some(plain) = page.plain(tid.offset).filter(|_| is_root)
            && self.procs.outcome(plain.xmin) == Outcome::Committed
        {
            return false; // live
        }
        let never = |_: Xid| Ended::Unknown;
        let found = self.walk(tid, Check::Thorough, self.procs, never, |this, tuple| {
            TupleState::of(tuple, this.procs) != TupleState::Dead
        });
        !matches!(found, Fetched::Found(_))
    }

    /// All versions on a page that the running statement sees. A page that everyone sees all of
    /// is not checked tuple by tuple.
    pub fn visible_tuples(&mut self, block: BlockNumber, statement: u32, found: &mut Vec<Tid>) {
        let page = self.parts.heap.page_mut(block);
        if !page.is_all_visible() {
            let is_new = hint::note_all(page, Check::Snapshot, &Snapshot(self.procs));
            if is_new {
                self.hinted(block);
            }
        }
        let items = self.parts.heap.pages()[block.0 as usize].items();
        for (position, item) in items.iter().enumerate() {
            if let LinePointer::Normal(tuple) = item
                && self.is_visible(tuple, statement)
            {
                let offset = offset_of(position);
                found.push(Tid { block, offset });
            }
        }
    }

    /// Follows a chain from its root to the version that is wanted. None is that a transaction has
    /// replaced of which `ended` knows, and nothing is left to be noted of those whose
    /// transactions' ends are noted: they are walked by, and the next walk begins behind those that
    /// ended long ago.
    ///
    /// Source: `heap_hot_search_buffer`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    fn walk(
        &mut self,
        tid: Tid,
        check: Check,
        transactions: &impl Transactions,
        ended: impl Fn(Xid) -> Ended,
        is_wanted: impl Fn(&Self, &Tuple) -> bool,
    ) -> Fetched {
        let mut is_new = false;
        let mut all_dead = true;
        let mut at_start = true;
        let mut prior_xmax = Xid::INVALID;
        let mut offset = tid.offset;
        // The newest transaction that replaced a version on the way, as long as all ended long ago.
        let mut newest = Some(Xid::INVALID);
        let walked = self.parts.heap.pages()[tid.block.0 as usize].walked_to(offset);
        if let Some(walked) = walked.filter(|walked| ended(walked.newest) == Ended::LongAgo) {
            // If that one's is, all they removed is removable; and what is not known about one of
            // them is found out by asking about it.
            all_dead = transactions.is_removable(walked.newest);
            offset = walked.at;
            at_start = false;
            prior_xmax = walked.made_by;
            newest = Some(walked.newest);
        }
        let found = loop {
            let page = self.parts.heap.page_mut(tid.block);
            if let Some(version) = page.replaced(offset)
                && let how = ended(version.xmax)
                && how != Ended::Unknown
            {
                let is_foreign = (at_start && version.is_heap_only)
                    || (prior_xmax.is_valid() && version.xmin != prior_xmax);
                if is_foreign {
                    break None;
                }
                if how == Ended::LongAgo {
                    newest = newest.map(|newest| newest.max(version.xmax));
                } else if let Some(newest) = newest.take().filter(|newest| newest.is_valid()) {
                    page.note_walk(tid.offset, offset, newest);
                }
                all_dead = all_dead && transactions.is_removable(version.xmax);
                offset = version.next;
                at_start = false;
                prior_xmax = version.xmax;
                continue;
            }
            if let Some(tuple) = page.settled_tuple(offset) {
                // What most chains end with: nothing to note, nowhere to go on.
                let is_foreign = (at_start && tuple.is_heap_only)
                    || (prior_xmax.is_valid() && tuple.xmin != prior_xmax);
                if is_foreign {
                    break None;
                }
                if let Some(newest) = newest.filter(|newest| newest.is_valid()) {
                    page.note_walk(tid.offset, offset, newest);
                }
                if is_wanted(self, &tuple) {
                    break Some(offset);
                }
                all_dead = all_dead && TupleState::of(&tuple, transactions) == TupleState::Dead;
                break None;
            }
            match page.get(offset) {
                Some(LinePointer::Redirect(target)) if at_start => {
                    offset = target;
                    at_start = false;
                }
                Some(LinePointer::Normal(mut tuple)) => {
                    let is_foreign = (at_start && tuple.is_heap_only)
                        || (prior_xmax.is_valid() && tuple.xmin != prior_xmax);
                    if is_foreign {
                        break None;
                    }
                    if let Some(newest) = newest.take().filter(|newest| newest.is_valid()) {
                        page.note_walk(tid.offset, offset, newest);
                    }
                    if hint::note(&mut tuple, check, transactions) {
                        page.put_hints(offset, &tuple);
                        is_new = true;
                    }
                    if is_wanted(self, &tuple) {
                        break Some(offset);
                    }
                    all_dead = all_dead && TupleState::of(&tuple, transactions) == TupleState::Dead;
                    if !is_hot_updated(&tuple, transactions) {
                        break None;
                    }
                    offset = tuple.next.offset;
                    at_start = false;
                    prior_xmax = transactions.updater(tuple.xmax);
                }
                _ => break None,
            }
        };
        if is_new {
            self.hinted(tid.block);
        }
        let block = tid.block;
        match found {
            Some(offset) => Fetched::Found(Tid { block, offset }),
            None if all_dead => Fetched::AllDead,
            None => Fetched::Invisible,
        }
    }

    /// Whether the running statement sees this version: made and not removed before it began.
    ///
    /// Source: `HeapTupleSatisfiesMVCC`, src/backend/access/heap/heapam_visibility.c
    /// (REL_18_STABLE); "before" by the rows that it has changed, as it changes each of them once.
    fn is_visible(&self, tuple: &Tuple, statement: u32) -> bool {
        let changed_now = || self.parts.changed.has(tuple.row, statement);
        let snapshot = Snapshot(self.procs);
        match snapshot.outcome(tuple.xmin) {
            Outcome::Aborted => return false,
            Outcome::InProgress if !snapshot.is_current(tuple.xmin) => return false,
            Outcome::InProgress => {
                let is_newest = !tuple.xmax.is_valid() || tuple.is_locked_only;
                let made_now = is_newest && changed_now();
                if made_now {
                    return false;
                }
            }
            Outcome::Committed => {}
        }
        if !tuple.xmax.is_valid() || tuple.is_locked_only {
            return true;
        }
        match snapshot.outcome(tuple.xmax) {
            Outcome::Aborted => true,
            Outcome::Committed => false,
            Outcome::InProgress if !snapshot.is_current(tuple.xmax) => true,
            // The version that this very statement replaces is still what its snapshot sees.
            Outcome::InProgress => changed_now() && self.is_latest_removed(tuple),
        }
    }

    /// Whether this is the version that the row's last change replaced.
    fn is_latest_removed(&self, tuple: &Tuple) -> bool {
        let next = self.parts.heap.pages()[tuple.next.block.0 as usize].tuple(tuple.next.offset);
        next.is_none_or(|next| next.row != tuple.row || !next.xmax.is_valid())
    }
}

/// Pruning of one dead version: its root becomes a redirect, or leads further; then the dead
/// version's own line pointer is free.
fn simple_cleaning(frees_item: bool) -> PageCleaning {
    PageCleaning {
        redirected: 1,
        unused: u32::from(frees_item),
        has_conflict_horizon: true,
        ..PageCleaning::default()
    }
}

/// Bytes of the record of pruning one dead version, without an image: of the root itself, or of a
/// version whose line pointer is free then.
pub(super) fn simple_prune_bytes(behaviour: &Behaviour) -> [u32; 2] {
    [false, true].map(|frees_item| heap_prune(behaviour, simple_cleaning(frees_item), Page::Change))
}

/// Source: `HeapTupleHeaderIsHotUpdated`, src/include/access/htup_details.h (REL_18_STABLE).
fn is_hot_updated(tuple: &Tuple, transactions: &impl Transactions) -> bool {
    tuple.is_hot_updated
        && transactions.outcome(tuple.xmin) != Outcome::Aborted
        && transactions.outcome(tuple.xmax) != Outcome::Aborted
}
