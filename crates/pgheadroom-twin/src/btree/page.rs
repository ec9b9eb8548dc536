//! One B-tree page: its line pointers, its keys, and the room that is left.
//!
//! ```text
//! not rightmost: | high key | item | item | ...      rightmost: | item | item | ...
//! position         0          1      2                            0      1
//! offset number    1          2      3                            1      2
//! ```
//!
//! Keys are one flat array, `key_columns` codes for each item: binary search touches nothing
//! else until keys are equal. Where an item's bytes lie is left out.

use std::cmp::Ordering;

use pgheadroom_layout::btree::SIZE_OF_BT_PAGE_OPAQUE;
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER};
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::btree::item::{Form, Item, OwnedItem};
use crate::btree::slots::Slots;
use crate::memory::{Pieces, prefetch};
use crate::page::Tid;
use crate::transaction::Xid;

/// No sibling, since block 0 is the metapage. Source: `P_NONE`, src/include/access/nbtree.h.
pub(crate) const NO_BLOCK: BlockNumber = BlockNumber(0);
/// Where items end. Source: `pd_special` of a B-tree page.
const SPECIAL: u32 = BLCKSZ - SIZE_OF_BT_PAGE_OPAQUE;

/// What a page is used for.
///
/// Source: `BTP_HALF_DEAD` and `BTP_DELETED`, src/include/access/nbtree.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageState {
    /// Part of the tree.
    Live,
    /// Empty and without a downlink; a whole subtree above it may have to go with it.
    HalfDead {
        /// The topmost page to be deleted with it, if that is not the leaf itself.
        top_parent: Option<BlockNumber>,
    },
    /// No longer linked; free once nobody can be on the way to it.
    Deleted {
        /// The next transaction when it was unlinked.
        safe_xid: Xid,
    },
}

/// A B-tree page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(align(64))]
pub struct BtreePage {
    pub(crate) level: u32,
    pub(crate) is_root: bool,
    pub(crate) prev: BlockNumber,
    pub(crate) next: BlockNumber,
    pub(crate) state: PageState,
    /// Counts the records about this page; stands for its LSN.
    pub(crate) lsn: u64,
    slots: Slots,
    keys: Vec<i64>,
    key_columns: u8,
    item_bytes: u32,
}

const _: () = assert!(size_of::<BtreePage>() == 128);

impl BtreePage {
    /// An empty page without siblings.
    pub(crate) fn new(level: u32, key_columns: usize) -> Self {
        Self {
            level,
            is_root: false,
            prev: NO_BLOCK,
            next: NO_BLOCK,
            state: PageState::Live,
            lsn: 0,
            slots: Slots::new(),
            keys: Vec::new(),
            key_columns: u8::try_from(key_columns).expect("at most 32 columns"),
            item_bytes: 0,
        }
    }

    /// Level above the leaves, which are 0.
    #[must_use]
    pub const fn level(&self) -> u32 {
        self.level
    }

    /// Whether this is a leaf.
    #[must_use]
    pub const fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// Whether nothing is to the right on this level.
    #[must_use]
    pub fn is_rightmost(&self) -> bool {
        self.next == NO_BLOCK
    }

    /// Whether this is the root.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.is_root
    }

    /// What the page is used for.
    #[must_use]
    pub const fn state(&self) -> PageState {
        self.state
    }

    /// Left and right sibling.
    #[must_use]
    pub fn siblings(&self) -> (Option<BlockNumber>, Option<BlockNumber>) {
        let known = |block| (block != NO_BLOCK).then_some(block);
        (known(self.prev), known(self.next))
    }

    /// Whether scans and insertions pass this page by. Source: `P_IGNORE`, nbtree.h.
    pub(crate) fn is_ignored(&self) -> bool {
        self.state != PageState::Live
    }

    /// Position of the first item that is no high key. Source: `P_FIRSTDATAKEY`, nbtree.h.
    #[must_use]
    pub fn first_data(&self) -> usize {
        usize::from(!self.is_rightmost())
    }

    /// All items, the high key first if there is one.
    pub fn items(&self) -> impl ExactSizeIterator<Item = Item<'_>> + Clone {
        (0..self.len()).map(|position| self.slots.get(position))
    }

    /// Those that are no high key, with their positions.
    pub fn data(&self) -> impl Iterator<Item = (usize, Item<'_>)> + Clone {
        self.items().enumerate().skip(self.first_data())
    }

    /// The item at a position.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    #[inline]
    pub fn item(&self, position: usize) -> Item<'_> {
        self.slots.get(position)
    }

    /// The entries without their keys.
    #[inline]
    pub(super) const fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The same, to be changed where nothing about their sizes changes.
    pub(super) const fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    #[inline]
    fn columns(&self) -> usize {
        usize::from(self.key_columns)
    }

    /// The key at a position; truncated columns are smaller than any value.
    #[must_use]
    pub fn key(&self, position: usize) -> &[i64] {
        &self.keys[position * self.columns()..(position + 1) * self.columns()]
    }

    /// Compares a key with that of an item.
    #[inline]
    pub(super) fn compare_key(&self, key: &[i64], position: usize) -> Ordering {
        match *key {
            [value] => value.cmp(&self.keys[position]),
            _ => key.cmp(self.key(position)),
        }
    }

    /// Where the items of the key at a position end.
    #[inline]
    pub(super) fn end_of_key(&self, position: usize) -> usize {
        let is_other = |other: &usize| match self.columns() {
            1 => self.keys[*other] != self.keys[position],
            _ => self.key(*other) != self.key(position),
        };
        let mut behind = position + 1..self.len();
        behind.find(is_other).unwrap_or(self.len())
    }

    /// The keys of all items, one after the other.
    pub(crate) fn codes(&self) -> &[i64] {
        &self.keys
    }

    /// The codes of one key column.
    pub(crate) fn codes_of_column_mut(&mut self, column: usize) -> impl Iterator<Item = &mut i64> {
        let columns = self.columns();
        self.keys.iter_mut().skip(column).step_by(columns)
    }

    /// Number of items, the high key included.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the page holds nothing but perhaps a high key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() <= self.first_data()
    }

    /// Bytes of all items, without line pointers.
    pub(crate) const fn item_bytes(&self) -> u32 {
        self.item_bytes
    }

    /// Bytes between line pointers and items. Source: `PageGetExactFreeSpace`, bufpage.c.
    #[must_use]
    pub fn exact_free_space(&self) -> u32 {
        let lower = SIZE_OF_PAGE_HEADER + SIZE_OF_ITEM_ID * count(self.len());
        let upper = SPECIAL - self.item_bytes;
        assert!(lower <= upper, "items overlap line pointers");
        upper - lower
    }

    /// Bytes that a new item may have. Source: `PageGetFreeSpace`, bufpage.c.
    #[must_use]
    pub fn free_space(&self) -> u32 {
        self.exact_free_space().saturating_sub(SIZE_OF_ITEM_ID)
    }

    /// Room for as many items, should they come.
    pub(crate) fn expect_items(&mut self, count: usize) {
        self.slots.reserve_exact(count);
        self.keys.reserve_exact(count * self.columns());
    }

    /// Adds an item at a position, where those behind move on.
    pub(crate) fn insert(&mut self, position: usize, item: OwnedItem, key: &[i64]) {
        assert_eq!(key.len(), self.columns(), "a code for each key column");
        self.item_bytes += item.bytes();
        let is_high_key = position < self.first_data();
        self.slots.insert(position, item, is_high_key);
        let start = position * self.columns();
        if let [value] = *key {
            self.keys.insert(start, value);
        } else {
            self.keys.splice(start..start, key.iter().copied());
        }
    }

    /// Adds an item behind all others.
    pub(crate) fn push(&mut self, item: OwnedItem, key: &[i64]) {
        assert_eq!(key.len(), self.columns(), "a code for each key column");
        self.item_bytes += item.bytes();
        let is_high_key = self.len() < self.first_data();
        self.slots.push(item, is_high_key);
        self.keys.extend_from_slice(key);
    }

    /// Adds a leaf tuple behind all others, if the page has tuples of this form; whether it has.
    #[inline]
    pub(super) fn push_usual(&mut self, tid: Tid, form: Form, key: &[i64]) -> bool {
        assert_eq!(key.len(), self.columns(), "a code for each key column");
        if !self.slots.push_usual(tid, form) {
            return false;
        }
        self.item_bytes += u32::from(form.bytes);
        if let [value] = *key {
            self.keys.push(value);
        } else {
            self.keys.extend_from_slice(key);
        }
        true
    }

    /// Removes the item at a position.
    pub(crate) fn remove(&mut self, position: usize) -> OwnedItem {
        let start = position * self.columns();
        self.keys.drain(start..start + self.columns());
        let item = self.slots.remove(position);
        self.item_bytes -= item.bytes();
        item
    }

    /// Puts another item with the same key at a position.
    ///
    /// Source: `PageIndexTupleOverwrite`, src/backend/storage/page/bufpage.c.
    pub(crate) fn replace(&mut self, position: usize, item: OwnedItem) {
        self.item_bytes = self.item_bytes - self.item(position).bytes() + item.bytes();
        self.slots.replace(position, item);
    }

    /// Puts another item with another key at a position.
    pub(crate) fn overwrite(&mut self, position: usize, item: OwnedItem, key: &[i64]) {
        self.replace(position, item);
        let columns = self.columns();
        self.keys[position * columns..(position + 1) * columns].copy_from_slice(key);
    }

    /// Removes the items at these positions, which ascend.
    ///
    /// Source: `PageIndexMultiDelete`, src/backend/storage/page/bufpage.c.
    pub(crate) fn remove_many(&mut self, positions: &[usize]) {
        let Some(&first) = positions.first() else {
            return;
        };
        let columns = self.columns();
        let mut kept = first;
        for (number, &position) in positions.iter().enumerate() {
            self.item_bytes -= self.item(position).bytes();
            self.slots.discard(position);
            let next = positions.get(number + 1).copied();
            let stay = position + 1..next.unwrap_or(self.len());
            self.slots.move_down(stay.clone(), kept);
            let keys = stay.start * columns..stay.end * columns;
            self.keys.copy_within(keys, kept * columns);
            kept += stay.len();
        }
        self.slots.truncate(kept);
        self.keys.truncate(kept * columns);
    }

    /// Prefetches all that a page is but for its items.
    pub(super) fn prefetch_header(&self) {
        prefetch(self);
        prefetch(&self.keys);
    }

    /// The memory of its items.
    pub(crate) fn pieces(&self, pieces: &mut Pieces) {
        self.slots.pieces(pieces);
        pieces.add(&self.keys);
    }

    /// Takes all items off the page, with their keys.
    pub(super) fn take_items(&mut self) -> (Slots, Vec<i64>) {
        self.item_bytes = 0;
        (
            std::mem::replace(&mut self.slots, Slots::new()),
            std::mem::take(&mut self.keys),
        )
    }
}

#[allow(clippy::cast_possible_truncation)] // at most 1020 line pointers
fn count(items: usize) -> u32 {
    items as u32
}

/// The offset number of a position.
#[allow(clippy::cast_possible_truncation)] // as above
pub(crate) fn offset_at(position: usize) -> OffsetNumber {
    OffsetNumber(position as u16 + 1)
}
