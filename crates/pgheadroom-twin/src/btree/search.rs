//! Finding the leaf and the place on it.

use std::cmp::Ordering;

use pgheadroom_layout::BlockNumber;

use crate::btree::Btree;
use crate::btree::key::SearchKey;
use crate::btree::page::BtreePage;

/// An inner page on the way down, and which of its items was followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackEntry {
    pub block: BlockNumber,
    pub position: usize,
}

/// Deepest tree that the stack has room for: 32 TiB of widest items need fewer levels.
const MAX_LEVELS: usize = 24;

/// The way from the fast root to a leaf, the uppermost page first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack {
    entries: [StackEntry; MAX_LEVELS],
    len: usize,
}

impl Stack {
    const fn new() -> Self {
        let nowhere = StackEntry {
            block: BlockNumber(0),
            position: 0,
        };
        Self {
            entries: [nowhere; MAX_LEVELS],
            len: 0,
        }
    }

    fn push(&mut self, entry: StackEntry) {
        self.entries[self.len] = entry;
        self.len += 1;
    }

    /// Takes the lowest page off the stack.
    pub fn pop(&mut self) -> Option<StackEntry> {
        self.len = self.len.checked_sub(1)?;
        Some(self.entries[self.len])
    }
}

/// What follows from a key that is equal in all columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tie {
    /// A pivot without TID is smaller, so that a search need not go left of it.
    PivotIsSmaller,
    /// It is equal: finds the page of which it is the high key.
    PivotIsEqual,
}

/// Compares a search key with an item. An item inside whose posting list the TID falls is equal.
///
/// Source: `_bt_compare`, src/backend/access/nbtree/nbtsearch.c (REL_18_STABLE).
pub(crate) fn compare(
    search: SearchKey<'_>,
    page: &BtreePage,
    position: usize,
    tie: Tie,
) -> Ordering {
    if !page.is_leaf() && position == page.first_data() {
        return Ordering::Greater;
    }
    let by_key = search.values.cmp(page.key(position));
    if by_key.is_ne() {
        return by_key;
    }
    let item = page.item(position);
    match (search.tid, item.tid()) {
        (None, None) if tie == Tie::PivotIsSmaller => Ordering::Greater,
        (None, _) => Ordering::Equal,
        (Some(_), None) => Ordering::Greater,
        (Some(tid), Some(first)) => {
            if tid <= first || !item.is_posting() {
                tid.cmp(&first)
            } else if Some(tid) > item.last_tid() {
                Ordering::Greater
            } else {
                Ordering::Equal
            }
        }
    }
}

/// Position of the first item that is not smaller than the key. An inner page's first item has
/// the smallest possible key, so that it needs no special case.
///
/// Source: `_bt_binsrch`, src/backend/access/nbtree/nbtsearch.c (REL_18_STABLE).
pub(crate) fn lower_bound(search: SearchKey<'_>, page: &BtreePage, tie: Tie) -> usize {
    let (mut low, mut high) = (page.first_data(), page.len());
    if let [value] = *search.values {
        // One column: codes lie side by side, and ties are rare.
        let codes = page.codes();
        low += codes[low..].partition_point(|&code| code < value);
        high = low;
        if codes.get(low) == Some(&value) {
            high += codes[low..].partition_point(|&code| code == value);
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if compare(search, page, middle, tie).is_gt() {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl Btree {
    /// The leaf where a key belongs, and the way to it.
    ///
    /// Source: `_bt_search`, src/backend/access/nbtree/nbtsearch.c (REL_18_STABLE).
    pub(crate) fn descend(&self, search: SearchKey<'_>, tie: Tie) -> Option<(BlockNumber, Stack)> {
        let mut stack = Stack::new();
        let mut block = self.meta.fast_root?;
        loop {
            block = self.move_right(search, block, tie);
            let page = self.page(block);
            if page.is_leaf() {
                return Some((block, stack));
            }
            let position = lower_bound(search, page, tie) - 1;
            stack.push(StackEntry { block, position });
            block = page.item(position).child();
        }
    }

    /// The page of this level where a key belongs, this one or one to the right.
    ///
    /// Source: `_bt_moveright`, src/backend/access/nbtree/nbtsearch.c (REL_18_STABLE).
    fn move_right(&self, search: SearchKey<'_>, block: BlockNumber, tie: Tie) -> BlockNumber {
        let mut block = block;
        loop {
            let page = self.page(block);
            let beyond = !page.is_rightmost()
                && (page.is_ignored() || compare(search, page, 0, tie).is_gt());
            if !beyond {
                assert!(!page.is_ignored(), "the rightmost page is never deleted");
                return block;
            }
            block = page.next;
        }
    }

    /// The item that leads to a child, which may have moved since the way down was taken.
    ///
    /// Source: `_bt_getstackbuf`, src/backend/access/nbtree/nbtinsert.c (REL_18_STABLE).
    pub(crate) fn refind(&self, hint: StackEntry, child: BlockNumber) -> StackEntry {
        let StackEntry {
            mut block,
            position,
        } = hint;
        let mut start = position;
        loop {
            let page = self.page(block);
            let first = page.first_data();
            let leads = |position: &usize| page.item(*position).child() == child;
            let start_here = start.clamp(first, page.len());
            let found = (start_here..page.len())
                .find(leads)
                .or_else(|| (first..start_here).rev().find(leads));
            if let Some(position) = found {
                return StackEntry { block, position };
            }
            assert!(!page.is_rightmost(), "every page but the root has a parent");
            block = page.next;
            start = 0;
        }
    }

    /// The leftmost live page of a level.
    ///
    /// Source: `_bt_get_endpoint`, src/backend/access/nbtree/nbtsearch.c (REL_18_STABLE).
    pub(crate) fn leftmost(&self, level: u32) -> Option<BlockNumber> {
        let mut block = self.meta.root?;
        loop {
            while self.page(block).is_ignored() {
                block = self.page(block).next;
            }
            let page = self.page(block);
            if page.level == level {
                return Some(block);
            }
            block = page.item(page.first_data()).child();
        }
    }
}
