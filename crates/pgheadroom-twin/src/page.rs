//! One heap page: its line pointers, its tuples, and the room that is left.
//!
//! ```text
//! items:   1 redirect -> 3 | 2 normal | 3 normal (heap-only) | 4 unused | 5 dead
//!          pd_lower = 24 + 4 * 5        pd_upper = 8192 - lengths of 2 and 3
//! ```
//!
//! Keeps what decides placement: lengths, states, transactions and chains. Where on the page a
//! tuple's bytes lie is left out, since nothing but their sum matters. How it is kept in few cache
//! lines is `packed`; the way of an update that touches the fewest is `deferred`.

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::{BLCKSZ, MAX_HEAP_TUPLES_PER_PAGE};
use pgheadroom_layout::version::{Behaviour, LinePointerTruncation};
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::transaction::Xid;

mod deferred;
mod free_space;
mod loaded;
mod packed;
mod prefetch;
mod settling;
mod state;
mod touched;

pub(crate) use deferred::Settled;
pub use packed::TupleMut;
pub(crate) use packed::{Plain, Replaced};

use deferred::DeferredUpdate;
use packed::Packed;
use state::{Flag, State};
use touched::Touched;

/// Where the first tuple's bytes end.
#[allow(clippy::cast_possible_truncation)] // 8192
const END: u16 = BLCKSZ as u16;

/// Where a tuple is: block and line pointer. 6 bytes, as PostgreSQL packs it.
///
/// Source: `ItemPointerData`, src/include/storage/itemptr.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(Rust, packed(2))]
pub struct Tid {
    /// The page.
    pub block: BlockNumber,
    /// The line pointer on it.
    pub offset: OffsetNumber,
}

impl Tid {
    /// Whether both are on one page.
    #[must_use]
    pub const fn shares_page(self, other: Self) -> bool {
        self.block.0 == other.block.0
    }
}

/// What a tuple's header says about its inserter without asking anybody.
///
/// Source: `HEAP_XMIN_COMMITTED`, `HEAP_XMIN_INVALID` and `HEAP_XMIN_FROZEN`,
/// src/include/access/htup_details.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum XminHint {
    /// Nothing yet.
    #[default]
    Unset,
    /// How the transaction ended.
    Set,
    /// Committed so long ago that its number does not matter any more.
    Frozen,
}

/// What a tuple's header says about `xmax` without asking anybody.
///
/// Source: `HEAP_XMAX_COMMITTED` and `HEAP_XMAX_INVALID`, src/include/access/htup_details.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum XmaxHint {
    /// How the transaction ended, or that there is none.
    #[default]
    Set,
    /// Nothing yet.
    Unset,
    /// Nothing yet; it is a row lock of the weakest kind, FOR KEY SHARE
    /// (`HEAP_XMAX_KEYSHR_LOCK`): a foreign key's, or one carried over from the version before.
    UnsetKeyShare,
    /// Nothing yet; it is a row lock FOR SHARE.
    UnsetShare,
    /// Nothing yet; it is a row lock FOR NO KEY UPDATE.
    UnsetNoKeyUpdate,
}

/// One row version; what a page keeps of it is smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Which row this is a version of; the twin's own number, nothing on disk.
    pub row: u32,
    /// The transaction that made it.
    pub xmin: Xid,
    /// The transaction that replaced, removed or locked it.
    pub xmax: Xid,
    /// The next version (`t_ctid`), itself when there is none.
    pub next: Tid,
    /// Length, not rounded (`lp_len`).
    pub lp_len: u16,
    /// A heap-only tuple's root: the line pointer that index entries lead to; 0 if not known.
    pub root: OffsetNumber,
    /// Whether `xmax` only locked the row.
    pub is_locked_only: bool,
    /// Whether the next version is on this page and index entries lead to it through this one.
    pub is_hot_updated: bool,
    /// Whether no index entry points here.
    pub is_heap_only: bool,
    /// Whether an UPDATE made it (`HEAP_UPDATED`).
    pub is_updated: bool,
    /// What is noted about `xmin`.
    pub xmin_hint: XminHint,
    /// What is noted about `xmax`.
    pub xmax_hint: XmaxHint,
}

impl Tuple {
    /// A tuple as INSERT makes it; its place is set when it is put on a page.
    #[must_use]
    pub const fn new(row: u32, lp_len: u16, xmin: Xid) -> Self {
        Self {
            row,
            xmin,
            xmax: Xid::INVALID,
            next: Tid {
                block: BlockNumber(0),
                offset: OffsetNumber(0),
            },
            lp_len,
            root: OffsetNumber(0),
            is_locked_only: false,
            is_hot_updated: false,
            is_heap_only: false,
            is_updated: false,
            xmin_hint: XminHint::Unset,
            xmax_hint: XmaxHint::Set,
        }
    }

    /// Whether its inserter is frozen and nothing is left of a deleter or locker.
    ///
    /// Source: `heap_tuple_needs_eventual_freeze`, src/backend/access/heap/heapam.c.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.xmin_hint == XminHint::Frozen && !self.xmax.is_valid()
    }
}

/// A line pointer.
///
/// Source: `ItemIdData` and `LP_*`, src/include/storage/itemid.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinePointer {
    /// Free for a new tuple.
    Unused,
    /// Points to a tuple.
    Normal(Tuple),
    /// Leads to a heap-only tuple of this page, its root being gone.
    Redirect(OffsetNumber),
    /// No tuple, but index entries may still point here.
    Dead,
}

/// A heap page.
///
/// Its header fits a cache line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct HeapPage {
    items: Vec<Packed>,
    /// What has no place in the items; where nothing has, none.
    touched: Option<Box<Touched>>,
    prune_xid: Xid,
    block: BlockNumber,
    /// A HOT update that is not written into the items yet.
    deferred: DeferredUpdate,
    state: State,
    pd_upper: u16,
    /// No unused line pointer stands at a lower position.
    unused_from: u16,
}

const _: () = assert!(size_of::<HeapPage>() == 64);

impl HeapPage {
    /// A page of zeros: part of the file, never used.
    #[must_use]
    pub const fn never_initialised() -> Self {
        Self {
            items: Vec::new(),
            deferred: DeferredUpdate::NONE,
            prune_xid: Xid::INVALID,
            block: BlockNumber(0),
            pd_upper: END,
            unused_from: 0,
            state: State::NEW,
            touched: None,
        }
    }

    /// An empty page with a header.
    #[must_use]
    pub const fn empty() -> Self {
        let mut page = Self::never_initialised();
        page.initialise();
        page
    }

    /// Gives a page of zeros its header; leaves others as they are.
    ///
    /// Source: `PageInit`, src/backend/storage/page/bufpage.c.
    pub const fn initialise(&mut self) {
        self.state.set(Flag::IsNew, false);
    }

    /// Whether the page was never used (`PageIsNew`).
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.state.has(Flag::IsNew)
    }

    /// The line pointers in order, put together; number 1 comes first.
    #[must_use]
    pub fn items(&self) -> Vec<LinePointer> {
        self.each_item().map(|(_, item)| item).collect()
    }

    /// The line pointers in order, one after the other, with their numbers.
    pub(crate) fn each_item(&self) -> impl Iterator<Item = (OffsetNumber, LinePointer)> {
        self.offsets().map(|offset| (offset, self.item_at(offset)))
    }

    /// The numbers of its line pointers, in order.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = OffsetNumber> + Clone + use<> {
        (0..self.items.len()).map(offset_of)
    }

    /// Line pointers of the page, `PageGetMaxOffsetNumber`.
    #[must_use]
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // never above 291 on a heap page
    pub fn item_count(&self) -> u32 {
        self.items.len() as u32
    }

    /// The line pointer of this number.
    ///
    /// # Panics
    /// When the page has none such: the twin's own state would be wrong.
    #[must_use]
    pub fn item(&self, offset: OffsetNumber) -> LinePointer {
        assert!(index_of(offset) < self.items.len(), "item {}", offset.0);
        self.item_at(offset)
    }

    /// The line pointer of this number; none beyond the last.
    #[inline]
    pub(crate) fn get(&self, offset: OffsetNumber) -> Option<LinePointer> {
        (index_of(offset) < self.items.len()).then(|| self.item_at(offset))
    }

    /// The tuple of this number, if the line pointer has one.
    #[must_use]
    #[inline]
    pub fn tuple(&self, offset: OffsetNumber) -> Option<Tuple> {
        match self.get(offset) {
            Some(LinePointer::Normal(tuple)) => Some(tuple),
            _ => None,
        }
    }

    /// The tuple of this number, to be changed.
    ///
    /// # Panics
    /// When there is no tuple.
    pub fn tuple_mut(&mut self, offset: OffsetNumber) -> TupleMut<'_> {
        self.write_out_deferred();
        self.unsettle(offset);
        match self.item(offset) {
            LinePointer::Normal(tuple) => TupleMut {
                page: self,
                offset,
                tuple,
            },
            other => panic!("line pointer {} is {other:?}, not a tuple", offset.0),
        }
    }

    /// Notes in a tuple how its transactions ended, as the hints of `tuple` have it.
    pub(crate) fn put_hints(&mut self, offset: OffsetNumber, tuple: &Tuple) {
        self.write_out_deferred();
        self.items[index_of(offset)].set_hints(tuple.xmin_hint, tuple.xmax_hint);
    }

    /// The oldest transaction that may have left something to prune (`pd_prune_xid`).
    #[must_use]
    pub const fn prune_xid(&self) -> Xid {
        self.prune_xid
    }

    /// Notes that this transaction leaves something to prune.
    ///
    /// Source: `PageSetPrunable`, src/include/storage/bufpage.h.
    pub fn set_prunable(&mut self, xid: Xid) {
        assert!(xid.is_valid());
        if !self.prune_xid.is_valid() || xid < self.prune_xid {
            self.prune_xid = xid;
        }
    }

    /// Nothing is left to prune; says whether something was noted.
    pub(crate) fn clear_prune_xid(&mut self) -> bool {
        let had = self.prune_xid.is_valid();
        self.prune_xid = Xid::INVALID;
        had
    }

    /// Whether an update found no room here (`PD_PAGE_FULL`).
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.state.has(Flag::IsFull)
    }

    /// Notes that an update found no room here.
    pub fn set_full(&mut self) {
        self.state.set(Flag::IsFull, true);
    }

    /// Whether every tuple is visible to everyone (`PD_ALL_VISIBLE`).
    #[must_use]
    pub const fn is_all_visible(&self) -> bool {
        self.state.has(Flag::IsAllVisible)
    }

    /// Sets or clears `PD_ALL_VISIBLE`.
    pub fn set_all_visible(&mut self, all_visible: bool) {
        self.state.set(Flag::IsAllVisible, all_visible);
    }

    /// After pruning: new states of line pointers take effect, storage is packed together.
    ///
    /// Source: `heap_page_prune_execute`, src/backend/access/heap/pruneheap.c, and
    /// `PageRepairFragmentation`, src/backend/storage/page/bufpage.c (REL_14_STABLE,
    /// REL_18_STABLE).
    pub(crate) fn apply_prune(
        &mut self,
        behaviour: &Behaviour,
        changes: impl Iterator<Item = (OffsetNumber, LinePointer)>,
    ) {
        self.write_out_deferred();
        for (offset, item) in changes {
            let packed = &self.items[index_of(offset)];
            if packed.row().is_some() {
                self.pd_upper += aligned(packed.lp_len);
            }
            self.set_item(offset, item);
        }
        self.after_prune(behaviour);
    }

    /// Cuts unused line pointers off the end, and says whether there are others.
    #[inline]
    fn after_prune(&mut self, behaviour: &Behaviour) {
        let has_unused = self.state.unused() > 0;
        if has_unused && behaviour.line_pointer_truncation == LinePointerTruncation::VacuumAndPrune
        {
            self.truncate_line_pointers(0);
        }
        self.state.set(Flag::HasFreeLines, self.state.unused() > 0);
    }

    /// Puts something without a tuple in the place of a line pointer that is in use.
    fn set_item(&mut self, offset: OffsetNumber, item: LinePointer) {
        let was_unused = self.items[index_of(offset)].is_unused();
        assert!(!was_unused, "item {}", offset.0);
        self.put(offset, item);
        if item == LinePointer::Unused {
            self.count_unused(offset);
        }
    }

    /// New hints after pruning looked at every tuple: when there is something to prune next, and
    /// that there may be room. Says whether that changed the page.
    pub(crate) fn set_prune_hints(&mut self, prune_xid: Xid) -> bool {
        self.write_out_deferred();
        let changed = self.prune_xid != prune_xid || self.state.has(Flag::IsFull);
        self.prune_xid = prune_xid;
        self.state.set(Flag::IsFull, false);
        self.forget_settled();
        changed
    }

    /// VACUUM's second pass: dead line pointers become unused; storage stays as it is.
    ///
    /// Source: `lazy_vacuum_heap_page`, src/backend/access/heap/vacuumlazy.c, and
    /// `PageTruncateLinePointerArray`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
    ///
    /// # Panics
    /// When one of them is not dead.
    pub fn reclaim_dead(&mut self, behaviour: &Behaviour, dead: &[OffsetNumber]) {
        self.write_out_deferred();
        for &offset in dead {
            assert_eq!(self.item(offset), LinePointer::Dead, "item {}", offset.0);
            self.set_item(offset, LinePointer::Unused);
        }
        if behaviour.line_pointer_truncation >= LinePointerTruncation::Vacuum {
            self.truncate_line_pointers(1);
        }
        self.state.set(Flag::HasFreeLines, self.state.unused() > 0);
    }
}

/// Length of a tuple with the bytes that align the next one.
#[inline]
#[allow(clippy::cast_possible_truncation)] // callers compare it with the page's room
fn aligned(lp_len: u16) -> u16 {
    maxalign(u32::from(lp_len)) as u16
}

/// Position in the array of a line pointer's number, which counts from 1.
#[inline]
pub(crate) fn index_of(offset: OffsetNumber) -> usize {
    assert!(offset.0 >= 1, "offset number 0 is invalid");
    usize::from(offset.0) - 1
}

/// Number of the line pointer at this position.
#[allow(clippy::cast_possible_truncation)] // never above 291 on a heap page
pub(crate) fn offset_of(position: usize) -> OffsetNumber {
    debug_assert!(position < MAX_HEAP_TUPLES_PER_PAGE as usize);
    OffsetNumber(position as u16 + 1)
}

#[cfg(test)]
pub(crate) mod tests;
