//! Following HOT chains: what a snapshot sees at a TID.

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;

use crate::btree;
use crate::checkpoint::ForkId;
use crate::counters::TableCounters;
use crate::executor::changed_rows::ChangedRows;
use crate::heap::Heap;
use crate::hint::{self, Check};
use crate::page::{LinePointer, Tid, Tuple, offset_of};
use crate::procarray::{Ended, ProcArray, Snapshot};
use crate::prune::TupleState;
use crate::transaction::{Outcome, Transactions, Xid};
use crate::wal::Wal;

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
    pub(super) parts: HeapParts<'a>,
    pub procs: &'a ProcArray,
    pub(super) wal: &'a RefCell<&'w mut Wal>,
    /// The page that this statement has pinned for its row, so that it cannot be pruned.
    pub pinned: Option<BlockNumber>,
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

    /// Hint bits of a page were set.
    pub(super) fn hinted(&self, block: BlockNumber) {
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

/// Source: `HeapTupleHeaderIsHotUpdated`, src/include/access/htup_details.h (REL_18_STABLE).
fn is_hot_updated(tuple: &Tuple, transactions: &impl Transactions) -> bool {
    tuple.is_hot_updated
        && transactions.outcome(tuple.xmin) != Outcome::Aborted
        && transactions.outcome(tuple.xmax) != Outcome::Aborted
}

/// What a B-tree asks about the table it belongs to.
impl btree::Table for HeapAccess<'_, '_> {
    fn prefetch_page(&self, block: BlockNumber) {
        HeapAccess::prefetch_page(self, block);
    }

    fn prefetch_tuple(&self, tid: Tid) {
        HeapAccess::prefetch_tuple(self, tid);
    }

    fn fetch_for_uniqueness(&mut self, tid: Tid) -> btree::UniqueFetch {
        let is_pinned = self.pinned == Some(tid.block);
        if !is_pinned {
            self.prune_opt(tid.block);
        }
        match self.fetch_dirty(tid) {
            Fetched::Found(found) => match self.undecided(found) {
                Some(xid) => btree::UniqueFetch::InProgress(xid),
                None => btree::UniqueFetch::Conflict,
            },
            Fetched::Invisible => btree::UniqueFetch::Invisible,
            Fetched::AllDead => btree::UniqueFetch::AllDead,
        }
    }

    fn is_deletable(&mut self, tid: Tid) -> bool {
        self.is_chain_dead(tid)
    }

    fn is_removable(&self, xid: Xid) -> bool {
        self.procs.is_removable(xid)
    }
}
