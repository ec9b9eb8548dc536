//! One heap page: its line pointers, its tuples, and the room that is left.
//!
//! ```text
//! items:   1 redirect -> 3 | 2 normal | 3 normal (heap-only) | 4 unused | 5 dead
//!          pd_lower = 24 + 4 * 5        pd_upper = 8192 - lengths of 2 and 3
//! ```
//!
//! Keeps what decides placement: lengths, states, transactions and chains. Where on the page a
//! tuple's bytes lie is left out, since nothing but their sum matters.

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::{
    BLCKSZ, MAX_HEAP_TUPLE_SIZE, MAX_HEAP_TUPLES_PER_PAGE, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER,
    page_free_space,
};
use pgheadroom_layout::version::{Behaviour, LinePointerTruncation};
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::transaction::Xid;

/// Where a tuple is: block and line pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid {
    /// The page.
    pub block: BlockNumber,
    /// The line pointer on it.
    pub offset: OffsetNumber,
}

/// One row version. 28 bytes, so that a page's tuples stay in a few cache lines.
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
    /// Whether `xmax` only locked the row.
    pub is_locked_only: bool,
    /// Whether the next version is on this page and index entries lead to it through this one.
    pub is_hot_updated: bool,
    /// Whether no index entry points here.
    pub is_heap_only: bool,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapPage {
    items: Vec<LinePointer>,
    pd_upper: u32,
    prune_xid: Xid,
    has_free_lines: bool,
    is_full: bool,
    is_all_visible: bool,
    is_new: bool,
}

impl HeapPage {
    /// A page of zeros: part of the file, never used.
    #[must_use]
    pub const fn never_initialised() -> Self {
        Self {
            items: Vec::new(),
            pd_upper: BLCKSZ,
            prune_xid: Xid::INVALID,
            has_free_lines: false,
            is_full: false,
            is_all_visible: false,
            is_new: true,
        }
    }

    /// An empty page with a header.
    #[must_use]
    pub const fn empty() -> Self {
        let mut page = Self::never_initialised();
        page.is_new = false;
        page
    }

    /// Gives a page of zeros its header; leaves others as they are.
    ///
    /// Source: `PageInit`, src/backend/storage/page/bufpage.c.
    pub fn initialise(&mut self) {
        self.is_new = false;
    }

    /// Whether the page was never used (`PageIsNew`).
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// The line pointers in order; number 1 comes first.
    #[must_use]
    pub fn items(&self) -> &[LinePointer] {
        &self.items
    }

    /// Line pointers of the page, `PageGetMaxOffsetNumber`.
    #[must_use]
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
        self.items[index_of(offset)]
    }

    /// The tuple of this number, if the line pointer has one.
    #[must_use]
    pub fn tuple(&self, offset: OffsetNumber) -> Option<&Tuple> {
        match self.items.get(index_of(offset)) {
            Some(LinePointer::Normal(tuple)) => Some(tuple),
            _ => None,
        }
    }

    /// The tuple of this number, to be changed.
    ///
    /// # Panics
    /// When there is no tuple.
    pub fn tuple_mut(&mut self, offset: OffsetNumber) -> &mut Tuple {
        match &mut self.items[index_of(offset)] {
            LinePointer::Normal(tuple) => tuple,
            other => panic!("line pointer {} is {other:?}, not a tuple", offset.0),
        }
    }

    /// End of the line pointers.
    #[must_use]
    pub fn pd_lower(&self) -> u32 {
        SIZE_OF_PAGE_HEADER + SIZE_OF_ITEM_ID * self.item_count()
    }

    /// Start of the tuples.
    #[must_use]
    pub const fn pd_upper(&self) -> u32 {
        self.pd_upper
    }

    /// Bytes between line pointers and tuples; a full-page image leaves them out.
    ///
    /// Source: `PageGetExactFreeSpace`, src/backend/storage/page/bufpage.c.
    #[must_use]
    pub fn exact_free_space(&self) -> u32 {
        self.pd_upper - self.pd_lower()
    }

    /// Free bytes that a new tuple may use on this heap page.
    ///
    /// Leaves room for one more line pointer, even when an unused one will be taken; 0 when the
    /// page already has 291 line pointers and none is free. As PostgreSQL does, believes the
    /// `PD_HAS_FREE_LINES` hint when it is unset, even if it is wrong, and looks when it is set.
    ///
    /// Source: `PageGetHeapFreeSpace`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
    /// Differs: no.
    #[must_use]
    pub fn heap_free_space(&self) -> u32 {
        let space = page_free_space(self.pd_lower(), self.pd_upper);
        if space > 0 && self.item_count() >= MAX_HEAP_TUPLES_PER_PAGE {
            let has_unused = self.has_free_lines && self.items.contains(&LinePointer::Unused);
            return if has_unused { space } else { 0 };
        }
        space
    }

    /// Puts a tuple on the page and says where; its `next` is set to itself.
    ///
    /// # Panics
    /// When it does not fit: callers ask [`HeapPage::heap_free_space`] before.
    ///
    /// Source: `PageAddItemExtended`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
    pub fn add(&mut self, block: BlockNumber, mut tuple: Tuple) -> OffsetNumber {
        let aligned = maxalign(u32::from(tuple.lp_len));
        assert!(aligned <= MAX_HEAP_TUPLE_SIZE, "tuple longer than a page");
        assert!(!self.is_new, "tuple for a page without header");
        let unused = if self.has_free_lines {
            self.items
                .iter()
                .position(|&item| item == LinePointer::Unused)
        } else {
            None
        };
        let position = unused.unwrap_or_else(|| {
            self.has_free_lines = false;
            self.items.push(LinePointer::Unused);
            self.items.len() - 1
        });
        assert!(self.items.len() <= MAX_HEAP_TUPLES_PER_PAGE as usize);
        assert!(
            self.pd_lower() + aligned <= self.pd_upper,
            "tuple does not fit"
        );
        let offset = offset_of(position);
        tuple.next = Tid { block, offset };
        self.pd_upper -= aligned;
        self.items[position] = LinePointer::Normal(tuple);
        offset
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

    /// Whether an update found no room here (`PD_PAGE_FULL`).
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Notes that an update found no room here.
    pub fn set_full(&mut self) {
        self.is_full = true;
    }

    /// Whether every tuple is visible to everyone (`PD_ALL_VISIBLE`).
    #[must_use]
    pub const fn is_all_visible(&self) -> bool {
        self.is_all_visible
    }

    /// Sets or clears `PD_ALL_VISIBLE`.
    pub fn set_all_visible(&mut self, all_visible: bool) {
        self.is_all_visible = all_visible;
    }

    /// Whether the page is believed to have unused line pointers (`PD_HAS_FREE_LINES`).
    #[must_use]
    pub const fn has_free_lines(&self) -> bool {
        self.has_free_lines
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
        for (offset, item) in changes {
            self.items[index_of(offset)] = item;
        }
        if behaviour.line_pointer_truncation == LinePointerTruncation::VacuumAndPrune {
            self.truncate_line_pointers(0);
        }
        let stored: u32 = self.stored_lengths().sum();
        self.pd_upper = BLCKSZ - stored;
        self.has_free_lines = self.items.contains(&LinePointer::Unused);
    }

    /// New hints after pruning looked at every tuple: when there is something to prune next, and
    /// that there may be room. Says whether that changed the page.
    pub(crate) fn set_prune_hints(&mut self, prune_xid: Xid) -> bool {
        let changed = self.prune_xid != prune_xid || self.is_full;
        self.prune_xid = prune_xid;
        self.is_full = false;
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
        for &offset in dead {
            assert_eq!(self.item(offset), LinePointer::Dead, "item {}", offset.0);
            self.items[index_of(offset)] = LinePointer::Unused;
        }
        if behaviour.line_pointer_truncation >= LinePointerTruncation::Vacuum {
            self.truncate_line_pointers(1);
        }
        self.has_free_lines = self.items.contains(&LinePointer::Unused);
    }

    /// Aligned lengths of the tuples.
    pub(crate) fn stored_lengths(&self) -> impl Iterator<Item = u32> {
        self.items.iter().map(|item| match item {
            LinePointer::Normal(tuple) => maxalign(u32::from(tuple.lp_len)),
            _ => 0,
        })
    }

    /// Removes unused line pointers at the end, down to `keep`.
    fn truncate_line_pointers(&mut self, keep: usize) {
        while self.items.len() > keep && self.items.last() == Some(&LinePointer::Unused) {
            self.items.pop();
        }
    }
}

/// Position in the array of a line pointer's number, which counts from 1.
fn index_of(offset: OffsetNumber) -> usize {
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
pub(crate) mod tests {
    use super::*;
    use pgheadroom_layout::PgVersion;

    pub(crate) fn tuple(lp_len: u16) -> Tuple {
        Tuple {
            row: 0,
            xmin: Xid(3),
            xmax: Xid::INVALID,
            next: Tid {
                block: BlockNumber(0),
                offset: OffsetNumber(1),
            },
            lp_len,
            is_locked_only: false,
            is_hot_updated: false,
            is_heap_only: false,
        }
    }

    /// The struct stays small: a full page of the usual rows is a few kilobytes.
    #[test]
    fn line_pointers_are_compact() {
        assert!(size_of::<LinePointer>() <= 28);
    }

    /// A page takes as many rows as the layout says, and the room is what is left.
    #[test]
    fn fills_as_the_layout_says() {
        let mut page = HeapPage::empty();
        assert_eq!(page.heap_free_space(), 8164);
        for _ in 0..75 {
            assert!(page.heap_free_space() >= 104);
            page.add(BlockNumber(0), tuple(101));
        }
        assert_eq!(page.pd_lower(), 24 + 300);
        assert_eq!(page.heap_free_space(), 8168 - 75 * 108 - 4);
    }

    /// 291 line pointers are the limit even when bytes are left; a free one lifts it only while
    /// the hint says so.
    #[test]
    fn line_pointers_run_out() {
        let behaviour = PgVersion::new(18, 4).unwrap().behaviour();
        let mut page = HeapPage::empty();
        for _ in 0..291 {
            page.add(BlockNumber(0), tuple(24));
        }
        assert_eq!(page.heap_free_space(), 0);
        let gone = [(OffsetNumber(7), LinePointer::Unused)];
        page.apply_prune(&behaviour, gone.into_iter());
        assert_eq!(page.heap_free_space(), 8168 - 291 * 4 - 290 * 24 - 4);
        assert_eq!(page.add(BlockNumber(0), tuple(24)), OffsetNumber(7));
        assert_eq!(page.heap_free_space(), 0);
    }

    /// Trailing line pointers: 13 keeps them, 14 frees them in VACUUM, 15 when pruning too.
    #[test]
    fn trailing_line_pointers() {
        for (major, after_prune, after_vacuum) in [(13, 3, 3), (14, 3, 1), (15, 2, 1)] {
            let behaviour = PgVersion::new(major, 4).unwrap().behaviour();
            let mut page = HeapPage::empty();
            for _ in 0..3 {
                page.add(BlockNumber(0), tuple(100));
            }
            let changes = [
                (OffsetNumber(2), LinePointer::Dead),
                (OffsetNumber(3), LinePointer::Unused),
            ];
            page.apply_prune(&behaviour, changes.into_iter());
            assert_eq!(page.item_count(), after_prune, "{major}");
            assert_eq!(page.pd_upper(), 8192 - 104);
            page.reclaim_dead(&behaviour, &[OffsetNumber(2)]);
            assert_eq!(page.item_count(), after_vacuum, "{major}");
        }
    }
}
