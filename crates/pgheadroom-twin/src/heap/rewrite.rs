//! A table's rows copied to a new file, page after page: VACUUM FULL and CLUSTER.
//!
//! ```text
//! old: 1 dead | 2 live, heap-only | 3 recently dead -> 4 | 4 live
//! new: 1 live (2) | 2 live (4) | 3 recently dead (3) -> 2
//! ```
//!
//! Rows keep the order of their versions in the old file; the fillfactor's reserve stays free on
//! each page. No version is heap-only any more, and what everybody sees is frozen. There is no
//! free space map and no visibility map until the next VACUUM.

use std::collections::BTreeMap;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::align::maxalign;

use crate::heap::Heap;
use crate::page::{HeapPage, Tid, Tuple, XmaxHint, XminHint};
use crate::prune::TupleState;
use crate::transaction::{Outcome, Transactions, Xid};

/// A pair of an old version and the next one, by the next one: the transaction that made it, and
/// where it was.
type Pair = (Xid, Tid);

/// A new file in the making.
///
/// Source: `RewriteStateData`, src/backend/access/heap/rewriteheap.c (REL_18_STABLE).
#[derive(Debug)]
pub(crate) struct Rewrite {
    heap: Heap,
    oldest_xmin: Xid,
    /// Versions that wait for the place of the next one, and where they were.
    unresolved: BTreeMap<Pair, (Tuple, Tid)>,
    /// New places of versions whose forerunner was not seen yet.
    placed: BTreeMap<Pair, Tid>,
    /// Versions copied so far.
    pub copied: u64,
    /// Of them, those that only older snapshots see.
    pub recently_dead: u64,
}

impl Rewrite {
    /// An empty file of the same table; older transactions than this are seen by everyone.
    pub fn new(old: &Heap, oldest_xmin: Xid) -> Self {
        Self {
            heap: Heap::new(*old.behaviour(), old.fillfactor),
            oldest_xmin,
            unresolved: BTreeMap::new(),
            placed: BTreeMap::new(),
            copied: 0,
            recently_dead: 0,
        }
    }

    /// The next version of the old file, in the order of pages and line pointers; `tuple_bytes`
    /// is its length in the new file.
    ///
    /// Source: `heapam_relation_copy_for_cluster`, src/backend/access/heap/heapam_handler.c;
    /// `rewrite_heap_tuple` and `rewrite_heap_dead_tuple`, rewriteheap.c (REL_18_STABLE).
    pub fn add(
        &mut self,
        old: Tid,
        tuple: &Tuple,
        tuple_bytes: u16,
        transactions: &impl Transactions,
    ) {
        let state = TupleState::of(tuple, transactions);
        if state == TupleState::Dead {
            self.unresolved.remove(&(tuple.xmin, old));
            return;
        }
        self.copied += 1;
        self.recently_dead += u64::from(state == TupleState::RecentlyDead);
        let mut new = self.copy_of(tuple, tuple_bytes, transactions);
        let mut next = None;
        let has_next = new.xmax.is_valid() && !new.is_locked_only && tuple.next != old;
        if has_next {
            let pair = (tuple.xmax, tuple.next);
            next = self.placed.remove(&pair);
            if next.is_none() {
                self.unresolved.insert(pair, (new, old));
                return;
            }
        }
        let mut from = old;
        loop {
            let to = self.heap.append(new, next);
            if !new.is_updated || new.xmin < self.oldest_xmin {
                return;
            }
            let pair = (new.xmin, from);
            match self.unresolved.remove(&pair) {
                Some((waiting, place)) => {
                    (new, from, next) = (waiting, place, Some(to));
                }
                None => {
                    self.placed.insert(pair, to);
                    return;
                }
            }
        }
    }

    /// The new file. Versions whose successor never came lead nowhere.
    pub fn end(mut self) -> Heap {
        for (_, (tuple, _)) in std::mem::take(&mut self.unresolved) {
            self.heap.append(tuple, None);
        }
        self.heap
    }

    /// Source: `rewrite_heap_tuple`, rewriteheap.c, and `heap_freeze_tuple`, heapam.c
    /// (REL_18_STABLE): the cutoff is the oldest transaction that somebody may still see.
    fn copy_of(&self, tuple: &Tuple, tuple_bytes: u16, transactions: &impl Transactions) -> Tuple {
        let mut new = Tuple::new(tuple.row, tuple_bytes, tuple.xmin);
        new.is_updated = tuple.is_updated;
        new.xmin_hint = tuple.xmin_hint;
        if tuple.xmin < self.oldest_xmin {
            new.xmin_hint = XminHint::Frozen;
        }
        let is_gone = tuple.is_locked_only
            || tuple.xmax.is_valid() && transactions.outcome(tuple.xmax) == Outcome::Aborted;
        if tuple.xmax.is_valid() && !(is_gone && tuple.xmax < self.oldest_xmin) {
            new.xmax = tuple.xmax;
            new.is_locked_only = is_gone;
            new.xmax_hint = match tuple.xmax_hint {
                XmaxHint::Set => XmaxHint::Set,
                _ => XmaxHint::Unset,
            };
        }
        new
    }
}

impl Heap {
    /// Puts a tuple on the last page, or on a new one when its reserve would be touched.
    ///
    /// Source: `raw_heap_insert`, src/backend/access/heap/rewriteheap.c (REL_18_STABLE).
    fn append(&mut self, tuple: Tuple, next: Option<Tid>) -> Tid {
        let reserve = self.fillfactor.reserve_bytes();
        let wanted = maxalign(u32::from(tuple.lp_len)) + reserve;
        let is_full = |page: &HeapPage| wanted > page.heap_free_space();
        if self.pages.last().is_none_or(is_full) {
            self.pages.push(HeapPage::empty());
        }
        let block = BlockNumber(self.page_count() - 1);
        let page = &mut self.pages[block.0 as usize];
        let offset = page.add(block, tuple);
        if let Some(next) = next {
            page.tuple_mut(offset).next = next;
        }
        Tid { block, offset }
    }
}
