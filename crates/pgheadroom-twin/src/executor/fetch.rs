//! Following HOT chains: what a snapshot sees at a TID, and pruning on the way.

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::heap_prune;

use crate::checkpoint::ForkId;
use crate::counters::TableCounters;
use crate::heap::Heap;
use crate::horizon::Horizon;
use crate::page::{LinePointer, Tid, Tuple, offset_of};
use crate::prune::{TupleState, Visit};
use crate::transaction::{Outcome, Transactions, Xid};
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

/// What of a table a reader touches.
pub(super) struct HeapParts<'a> {
    pub heap: &'a mut Heap,
    pub counters: &'a mut TableCounters,
    /// By row: the last statement that changed it.
    pub changed_by: &'a [u32],
    pub main: ForkId,
}

/// A reader of a table.
pub(super) struct HeapAccess<'a, 'w> {
    parts: HeapParts<'a>,
    pub horizon: &'a Horizon,
    wal: &'a RefCell<&'w mut Wal>,
    /// The page that this statement has pinned for its row, so that it cannot be pruned.
    pub pinned: Option<BlockNumber>,
}

impl<'a, 'w> HeapAccess<'a, 'w> {
    pub fn new(
        parts: HeapParts<'a>,
        horizon: &'a Horizon,
        wal: &'a RefCell<&'w mut Wal>,
        pinned: Option<BlockNumber>,
    ) -> Self {
        Self {
            parts,
            horizon,
            wal,
            pinned,
        }
    }

    /// Looks at a page and prunes it if worth while.
    ///
    /// Source: `heap_page_prune_opt`, src/backend/access/heap/pruneheap.c (REL_18_STABLE).
    pub fn visit(&mut self, block: BlockNumber) {
        let visit = self.parts.heap.visit(block, self.horizon);
        if visit == Visit::Nothing {
            return;
        }
        let hole = self.parts.heap.pages()[block.0 as usize].exact_free_space();
        let mut wal = self.wal.borrow_mut();
        match visit {
            Visit::Pruned(plan) => {
                let page = wal.change(self.parts.main, block, hole);
                let behaviour = self.parts.heap.behaviour();
                let bytes = heap_prune(behaviour, plan.cleaning(), page);
                wal.record(RecordType::HeapPrune, bytes);
                self.parts.counters.pruned(plan.reclaimed_tuples());
            }
            Visit::Hints | Visit::Nothing => wal.hint(self.parts.main, block, hole),
        }
    }

    /// The version at a TID that the running statement sees.
    pub fn fetch(&self, tid: Tid, statement: u32) -> Fetched {
        self.walk(tid, |tuple| self.is_visible(tuple, statement))
    }

    /// The version at a TID that is live or may become so, own changes included.
    ///
    /// Source: `HeapTupleSatisfiesDirty`, src/backend/access/heap/heapam_visibility.c
    /// (REL_18_STABLE).
    pub fn fetch_dirty(&self, tid: Tid) -> Fetched {
        self.walk(tid, |tuple| {
            let is_gone =
                |xid: Xid| xid.is_valid() && self.horizon.outcome(xid) != Outcome::Aborted;
            self.horizon.outcome(tuple.xmin) != Outcome::Aborted
                && (tuple.is_locked_only || !is_gone(tuple.xmax))
        })
    }

    /// Whether every version of the chain is dead to everyone.
    ///
    /// Source: `heap_index_delete_tuples`, src/backend/access/heap/heapam.c, with
    /// `HeapTupleSatisfiesNonVacuumable`, heapam_visibility.c (REL_18_STABLE).
    pub fn is_chain_dead(&self, tid: Tid) -> bool {
        let alive = |tuple: &Tuple| TupleState::of(tuple, self.horizon) != TupleState::Dead;
        !matches!(self.walk(tid, alive), Fetched::Found(_))
    }

    /// All versions on a page that the running statement sees.
    pub fn visible_tuples(&self, block: BlockNumber, statement: u32, found: &mut Vec<Tid>) {
        let items = self.parts.heap.pages()[block.0 as usize].items();
        for (position, item) in items.iter().enumerate() {
            if let LinePointer::Normal(tuple) = item {
                if self.is_visible(tuple, statement) {
                    let offset = offset_of(position);
                    found.push(Tid { block, offset });
                }
            }
        }
    }

    /// Source: `heap_hot_search_buffer`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    fn walk(&self, tid: Tid, is_wanted: impl Fn(&Tuple) -> bool) -> Fetched {
        let page = &self.parts.heap.pages()[tid.block.0 as usize];
        let mut all_dead = true;
        let mut at_start = true;
        let mut prior_xmax = Xid::INVALID;
        let mut offset = tid.offset;
        loop {
            match page.items().get(usize::from(offset.0) - 1) {
                Some(&LinePointer::Redirect(target)) if at_start => {
                    offset = target;
                    at_start = false;
                }
                Some(LinePointer::Normal(tuple)) => {
                    let is_foreign = (at_start && tuple.is_heap_only)
                        || (prior_xmax.is_valid() && tuple.xmin != prior_xmax);
                    if is_foreign {
                        break;
                    }
                    if is_wanted(tuple) {
                        let block = tid.block;
                        return Fetched::Found(Tid { block, offset });
                    }
                    all_dead &= TupleState::of(tuple, self.horizon) == TupleState::Dead;
                    if !self.is_hot_updated(tuple) {
                        break;
                    }
                    offset = tuple.next.offset;
                    at_start = false;
                    prior_xmax = tuple.xmax;
                }
                _ => break,
            }
        }
        if all_dead {
            Fetched::AllDead
        } else {
            Fetched::Invisible
        }
    }

    /// Source: `HeapTupleHeaderIsHotUpdated`, src/include/access/htup_details.h (REL_18_STABLE).
    fn is_hot_updated(&self, tuple: &Tuple) -> bool {
        tuple.is_hot_updated
            && self.horizon.outcome(tuple.xmin) != Outcome::Aborted
            && self.horizon.outcome(tuple.xmax) != Outcome::Aborted
    }

    /// Whether the running statement sees this version: made and not removed before it began.
    ///
    /// Source: `HeapTupleSatisfiesMVCC`, src/backend/access/heap/heapam_visibility.c
    /// (REL_18_STABLE); "before" by the row's last change, since a statement changes a row once.
    fn is_visible(&self, tuple: &Tuple, statement: u32) -> bool {
        let changed_now = self.parts.changed_by[tuple.row as usize] == statement;
        match self.horizon.outcome(tuple.xmin) {
            Outcome::Aborted => return false,
            Outcome::InProgress => {
                let made_now = changed_now && !tuple.xmax.is_valid();
                if made_now {
                    return false;
                }
            }
            Outcome::Committed => {}
        }
        if !tuple.xmax.is_valid() || tuple.is_locked_only {
            return true;
        }
        match self.horizon.outcome(tuple.xmax) {
            Outcome::Aborted => true,
            Outcome::Committed => false,
            // The version that this very statement replaces is still what its snapshot sees.
            Outcome::InProgress => changed_now && self.is_latest_removed(tuple),
        }
    }

    /// Whether this is the version that the row's last change replaced.
    fn is_latest_removed(&self, tuple: &Tuple) -> bool {
        let next = self.parts.heap.pages()[tuple.next.block.0 as usize].tuple(tuple.next.offset);
        next.is_none_or(|next| next.row != tuple.row || !next.xmax.is_valid())
    }
}
