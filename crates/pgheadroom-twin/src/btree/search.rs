//! Finding the leaf and the place on it.

use std::cmp::Ordering;
use std::ops::Range;

use pgheadroom_layout::BlockNumber;

use crate::btree::Btree;
use crate::btree::key::{MINUS_INFINITY, SearchKey};
use crate::btree::page::BtreePage;
use crate::page::Tid;

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

/// So few numbers are searched by halves.
const FEW: usize = 8;

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
    let by_key = page.compare_key(search.values, position);
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
    lower_bound_near(search, page, tie, None)
}

/// The same where the first item of the key may well be at `guess`.
pub(crate) fn lower_bound_near(
    search: SearchKey<'_>,
    page: &BtreePage,
    tie: Tie,
    guess: Option<usize>,
) -> usize {
    let (mut low, mut high) = (page.first_data(), page.len());
    if let [value] = *search.values {
        // One column: codes lie side by side.
        let codes = page.codes();
        let is_first = |&at: &usize| {
            (low + 1..high).contains(&at) && codes[at - 1] < value && codes[at] == value
        };
        low = guess
            .filter(is_first)
            .unwrap_or_else(|| partition_point(low..high, value, |at| codes[at]));
        if low == high || codes[low] != value {
            return low;
        }
        if search.tid.is_none() && page.is_leaf() {
            return low; // all its equals are equal to it
        }
        if codes[high - 1] != value {
            // Keys with few entries are the commonest.
            let few = &codes[low..high.min(low + FEW)];
            high = match few.iter().position(|&code| code != value) {
                Some(count) => low + count,
                None => low + codes[low..high].partition_point(|&code| code == value),
            };
        }
        if let Some(tid) = search.tid {
            return lower_bound_of_tid(search, tid, page, (low, high), tie);
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

/// The same among items whose keys are equal to it in all columns: they ascend by TID, and at most
/// the last one that does not begin behind the TID may be a posting list around it.
fn lower_bound_of_tid(
    search: SearchKey<'_>,
    tid: Tid,
    page: &BtreePage,
    (low, high): (usize, usize),
    tie: Tie,
) -> usize {
    let number = i64::from(tid.block.0) << 16 | i64::from(tid.offset.0);
    let slots = page.slots();
    let behind = partition_point(low..high, number + 1, |at| slots.tid_number(at));
    if behind == low || compare(search, page, behind - 1, tie).is_gt() {
        behind
    } else {
        behind - 1
    }
}

/// The first place of these at which an ascending number is not smaller than `wanted`; found
/// quickly where numbers ascend evenly, as keys and TIDs mostly do: each look is a cache miss.
fn partition_point(places: Range<usize>, wanted: i64, number: impl Fn(usize) -> i64) -> usize {
    let (mut low, mut high) = (places.start, places.end);
    if high - low > FEW && number(low) == MINUS_INFINITY {
        low += usize::from(wanted > MINUS_INFINITY); // an inner page's first item
    }
    if high - low > FEW {
        let (first, last) = (number(low), number(high - 1));
        if wanted <= first {
            return low;
        }
        if wanted > last {
            return high;
        }
        // From a guess outwards in growing steps, until it lies between.
        let guess = low + guess((first, last), wanted, high - 1 - low);
        let mut step = 4;
        if number(guess) < wanted {
            low = guess + 1;
            while low + step < high && number(low + step) < wanted {
                low += step + 1;
                step *= 4;
            }
            high = high.min(low + step + 1);
        } else {
            high = guess;
            while high >= low + step && number(high - step) >= wanted {
                high -= step;
                step *= 4;
            }
            low = low.max((high + 1).saturating_sub(step));
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if number(middle) < wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// How many of so many steps an even way from one number to another has made when it passes
/// `wanted`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)] // a guess
pub(super) fn guess((first, last): (i64, i64), wanted: i64, steps: usize) -> usize {
    let share = (wanted as f64 - first as f64) / (last as f64 - first as f64);
    ((share * steps as f64) as usize).min(steps)
}

impl Btree {
    /// The next search may well end at this leaf, with the first entry of its key at this place;
    /// changes no result.
    pub(crate) fn expect_at(&mut self, leaf: BlockNumber, position: usize) {
        self.expected = Some((leaf, position));
    }

    /// The next search may well end at this leaf.
    pub(crate) fn expect_leaf(&mut self, leaf: BlockNumber) {
        if self.expected_position(leaf).is_none() {
            self.expect_at(leaf, 0);
        }
    }

    /// At which position of a page the first entry of a key that is searched for may well be.
    pub(super) fn expected_position(&self, block: BlockNumber) -> Option<usize> {
        let expected = self.expected.filter(|&(leaf, _)| leaf == block);
        expected.map(|(_, position)| position)
    }

    /// The leaf where a key belongs: the one that is expected, if it has what comes before the key
    /// and nothing on the level to its right may have the key, so that each way down ends there.
    pub(crate) fn find_leaf(&self, search: SearchKey<'_>, tie: Tie) -> Option<BlockNumber> {
        let expected = self.expected.map(|(leaf, _)| leaf);
        let expected = expected.filter(|&leaf| self.is_leaf_of(search, leaf, tie));
        expected.or_else(|| self.descend(search, tie).map(|(leaf, _)| leaf))
    }

    /// Whether a key belongs behind the first entry of a leaf, and on that leaf.
    fn is_leaf_of(&self, search: SearchKey<'_>, leaf: BlockNumber, tie: Tie) -> bool {
        let Some(page) = self.known_page(leaf).filter(|page| page.is_leaf()) else {
            return false;
        };
        if page.is_ignored() || page.is_empty() {
            return false;
        }
        let first = page.first_data();
        let is_behind = match page.compare_key(search.values, first) {
            Ordering::Less => false,
            Ordering::Equal => search.tid > page.item(first).tid(),
            Ordering::Greater => true,
        };
        is_behind && (page.is_rightmost() || !compare(search, page, 0, tie).is_gt())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the numbers, the place is the one that halving finds.
    #[test]
    fn places_are_those_of_halving() {
        let shapes: [fn(i64) -> i64; 5] = [
            |at| at,
            |at| at * at * at,
            |at| at / 40,
            |at| if at == 0 { i64::MIN } else { at * 7 - 500 },
            |at| i64::MAX / 300 * (at - 150),
        ];
        for shape in shapes {
            for len in [0, 1, 2, 7, 9, 10, 100, 300] {
                let numbers: Vec<i64> = (0..len).map(shape).collect();
                let near = numbers.iter().flat_map(|&number| {
                    [number.saturating_sub(1), number, number.saturating_add(1)]
                });
                for wanted in near.chain([i64::MIN + 1, -3, 0, 5, i64::MAX]) {
                    let found = partition_point(0..numbers.len(), wanted, |at| numbers[at]);
                    let expected = numbers.partition_point(|&number| number < wanted);
                    assert_eq!(found, expected, "{wanted} among {numbers:?}");
                }
            }
        }
    }
}
