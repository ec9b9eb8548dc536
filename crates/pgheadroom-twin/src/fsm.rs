//! The free space map: a hint, page by page, where there may be room.
//!
//! ```text
//! level 2                  root page
//! level 1       page 0               page 1 ...      4069 slots each
//! level 0   page 0  page 1 ...       heap block b: slot b mod 4069 of page b / 4069
//! ```
//!
//! Each page is a tree of bytes: 4095 inner nodes, each the larger of its two children, above 4069
//! slots. Recording sets a bottom slot only; the levels above learn of it when a search fails or
//! VACUUM passes. Free space is kept in steps of 32 bytes. What is left out: torn pages, and
//! entries beyond the end of the table, which only a crash leaves behind.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::page::{BLCKSZ, MAX_HEAP_TUPLE_SIZE, SIZE_OF_PAGE_HEADER};

/// Bytes of free space that a category stands for.
///
/// Source: `FSM_CAT_STEP`, src/backend/storage/freespace/freespace.c (REL_18_STABLE).
pub const FSM_CAT_STEP: u32 = BLCKSZ / 256;
/// Nodes of a page's tree. Source: `NodesPerPage`, src/include/storage/fsm_internals.h.
const NODES_PER_PAGE: usize = (BLCKSZ - SIZE_OF_PAGE_HEADER - 4) as usize;
/// Inner nodes among them. Source: `NonLeafNodesPerPage`, fsm_internals.h.
const NON_LEAF_NODES: usize = (BLCKSZ / 2 - 1) as usize;
/// Slots of a page. Source: `LeafNodesPerPage`, fsm_internals.h.
pub const SLOTS_PER_PAGE: usize = NODES_PER_PAGE - NON_LEAF_NODES;
/// Levels of pages. Source: `FSM_TREE_DEPTH`, freespace.c.
const TREE_DEPTH: u32 = 3;
const ROOT_LEVEL: u32 = TREE_DEPTH - 1;
/// Searches give up after so many restarts. Source: `fsm_search`, freespace.c.
const MAX_RESTARTS: u32 = 10_000;

const _: () = assert!(FSM_CAT_STEP == 32);
const _: () = assert!(NODES_PER_PAGE == 8164 && NON_LEAF_NODES == 4095 && SLOTS_PER_PAGE == 4069);

/// Category of a page with so many free bytes, rounded down.
///
/// Source: `fsm_space_avail_to_cat`, src/backend/storage/freespace/freespace.c.
#[must_use]
pub fn available_category(free_bytes: u32) -> u8 {
    assert!(free_bytes < BLCKSZ);
    if free_bytes >= MAX_HEAP_TUPLE_SIZE {
        return u8::MAX;
    }
    u8::try_from(free_bytes / FSM_CAT_STEP)
        .unwrap_or(254)
        .min(254)
}

/// Smallest category that certainly has so many free bytes, rounded up.
///
/// Source: `fsm_space_needed_to_cat`, src/backend/storage/freespace/freespace.c.
#[must_use]
pub fn needed_category(needed_bytes: u32) -> u8 {
    assert!(
        needed_bytes <= MAX_HEAP_TUPLE_SIZE,
        "no page has that much room"
    );
    if needed_bytes == 0 {
        return 1;
    }
    u8::try_from(needed_bytes.div_ceil(FSM_CAT_STEP)).unwrap_or(u8::MAX)
}

/// One page of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FsmPage {
    nodes: Box<[u8; NODES_PER_PAGE]>,
    /// Where the next search starts (`fp_next_slot`).
    next: usize,
}

impl FsmPage {
    fn zeroed() -> Self {
        Self {
            nodes: Box::new([0; NODES_PER_PAGE]),
            next: 0,
        }
    }

    fn root(&self) -> u8 {
        self.nodes[0]
    }

    fn slot(&self, slot: usize) -> u8 {
        self.nodes[NON_LEAF_NODES + slot]
    }

    fn child_or_zero(&self, node: usize) -> u8 {
        self.nodes.get(node).copied().unwrap_or(0)
    }

    /// Sets a slot and what follows for its parents; says whether the page changed.
    ///
    /// Source: `fsm_set_avail`, src/backend/storage/freespace/fsmpage.c.
    fn set_slot(&mut self, slot: usize, value: u8) -> bool {
        let mut node = NON_LEAF_NODES + slot;
        if self.nodes[node] == value && value <= self.root() {
            return false;
        }
        self.nodes[node] = value;
        while node > 0 {
            node = (node - 1) / 2;
            let larger = self
                .child_or_zero(2 * node + 1)
                .max(self.child_or_zero(2 * node + 2));
            if self.nodes[node] == larger {
                break;
            }
            self.nodes[node] = larger;
        }
        assert!(
            value <= self.root(),
            "only a torn page has a root below a slot"
        );
        true
    }

    /// Finds a slot of at least this category, from `next` to the right and around, and moves
    /// `next` there, or behind it when `advance` is set.
    ///
    /// Source: `fsm_search_avail`, src/backend/storage/freespace/fsmpage.c.
    fn search(&mut self, category: u8, advance: bool) -> Option<usize> {
        if self.root() < category {
            return None;
        }
        let start = if self.next < SLOTS_PER_PAGE {
            self.next
        } else {
            0
        };
        let mut node = NON_LEAF_NODES + start;
        while node > 0 && self.nodes[node] < category {
            node = (right_neighbour(node) - 1) / 2;
        }
        while node < NON_LEAF_NODES {
            let left = 2 * node + 1;
            node = if self.child_or_zero(left) >= category {
                left
            } else {
                assert!(self.child_or_zero(left + 1) >= category, "torn page");
                left + 1
            };
        }
        let slot = node - NON_LEAF_NODES;
        self.next = slot + usize::from(advance);
        Some(slot)
    }
}

/// The node to the right on the same level of a page's tree, around its end.
///
/// Source: `rightneighbor`, src/backend/storage/freespace/fsmpage.c.
fn right_neighbour(node: usize) -> usize {
    let next = node + 1;
    // The leftmost nodes of the levels are 0, 1, 3, 7, ...: one less than a power of two.
    if (next + 1).is_power_of_two() {
        (next - 1) / 2
    } else {
        next
    }
}

/// A page of the map by its place in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Address {
    level: u32,
    number: usize,
}

impl Address {
    const ROOT: Self = Self {
        level: ROOT_LEVEL,
        number: 0,
    };

    /// Page and slot of a heap block.
    fn of_block(block: BlockNumber) -> (Self, usize) {
        let block = block.0 as usize;
        let number = block / SLOTS_PER_PAGE;
        (Self { level: 0, number }, block % SLOTS_PER_PAGE)
    }

    fn parent(self) -> (Self, usize) {
        let parent = Self {
            level: self.level + 1,
            number: self.number / SLOTS_PER_PAGE,
        };
        (parent, self.number % SLOTS_PER_PAGE)
    }

    fn child(self, slot: usize) -> Self {
        Self {
            level: self.level - 1,
            number: self.number * SLOTS_PER_PAGE + slot,
        }
    }

    /// The heap block of a slot of this bottom page.
    fn block(self, slot: usize) -> BlockNumber {
        assert_eq!(self.level, 0);
        let block = self.number * SLOTS_PER_PAGE + slot;
        BlockNumber(u32::try_from(block).unwrap_or(u32::MAX))
    }

    /// Where the page lies in the fork.
    ///
    /// Source: `fsm_logical_to_physical`, src/backend/storage/freespace/freespace.c.
    fn physical(self) -> usize {
        let mut leaf = self.number;
        for _ in 0..self.level {
            leaf *= SLOTS_PER_PAGE;
        }
        let mut pages = 0;
        for _ in 0..TREE_DEPTH {
            pages += leaf + 1;
            leaf /= SLOTS_PER_PAGE;
        }
        pages - self.level as usize - 1
    }
}

/// Told of each page of the map (its block in the fork) that an operation changes.
///
/// Such a change is a hint: no WAL, unless checksums or `wal_log_hints` ask for an image.
pub trait Modified {
    /// This page changed.
    fn modified(&mut self, fsm_block: BlockNumber);
}

impl<F: FnMut(BlockNumber)> Modified for F {
    fn modified(&mut self, fsm_block: BlockNumber) {
        self(fsm_block);
    }
}

/// The free space map of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FreeSpaceMap {
    /// The fork's pages in physical order.
    pages: Vec<FsmPage>,
}

impl FreeSpaceMap {
    /// Pages of the fork; none until something is recorded.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// What is recorded for a heap page.
    #[must_use]
    pub fn recorded(&self, block: BlockNumber) -> u8 {
        let (address, slot) = Address::of_block(block);
        self.pages
            .get(address.physical())
            .map_or(0, |page| page.slot(slot))
    }

    /// Records the free bytes of a heap page. Searches from the root do not see an increase
    /// before [`FreeSpaceMap::vacuum`].
    ///
    /// Source: `RecordPageWithFreeSpace`, src/backend/storage/freespace/freespace.c.
    pub fn record(&mut self, block: BlockNumber, free_bytes: u32, log: &mut impl Modified) {
        let (address, slot) = Address::of_block(block);
        self.set(address, slot, available_category(free_bytes), log);
    }

    /// Records the free bytes of a page that was too full, and looks for another: first on the
    /// same page of the map, then from the root.
    ///
    /// Source: `RecordAndGetPageWithFreeSpace`, src/backend/storage/freespace/freespace.c.
    pub fn record_and_get(
        &mut self,
        block: BlockNumber,
        free_bytes: u32,
        needed_bytes: u32,
        log: &mut impl Modified,
    ) -> Option<BlockNumber> {
        let (address, slot) = Address::of_block(block);
        let needed = needed_category(needed_bytes);
        self.set(address, slot, available_category(free_bytes), log);
        match self.pages[address.physical()].search(needed, true) {
            Some(found) => Some(address.block(found)),
            None => self.search(needed, log),
        }
    }

    /// Looks for a page with so many free bytes.
    ///
    /// Source: `GetPageWithFreeSpace`, src/backend/storage/freespace/freespace.c.
    pub fn get(&mut self, needed_bytes: u32, log: &mut impl Modified) -> Option<BlockNumber> {
        self.search(needed_category(needed_bytes), log)
    }

    /// Brings the upper levels up to date for the heap blocks from `start` to before `end`, and
    /// makes searches start at the left again. `None`: to the end of the map.
    ///
    /// Source: `FreeSpaceMapVacuum` and `FreeSpaceMapVacuumRange`, freespace.c.
    pub fn vacuum(
        &mut self,
        start: BlockNumber,
        end: Option<BlockNumber>,
        log: &mut impl Modified,
    ) {
        let last = match end {
            Some(end) if end <= start => return,
            Some(end) => BlockNumber(end.0 - 1),
            None => BlockNumber(u32::MAX - 1),
        };
        self.vacuum_page(Address::ROOT, start, last, log);
    }

    /// Sets a slot; the fork grows to reach it.
    fn set(&mut self, address: Address, slot: usize, value: u8, log: &mut impl Modified) {
        let physical = address.physical();
        if physical >= self.pages.len() {
            self.pages.resize_with(physical + 1, FsmPage::zeroed);
        }
        if self.pages[physical].set_slot(slot, value) {
            log.modified(fork_block(physical));
        }
    }

    /// Descends from the root; what turns out to be outdated is corrected on the way.
    ///
    /// Source: `fsm_search`, src/backend/storage/freespace/freespace.c.
    fn search(&mut self, category: u8, log: &mut impl Modified) -> Option<BlockNumber> {
        let mut address = Address::ROOT;
        let mut restarts = 0;
        loop {
            let page = self.pages.get_mut(address.physical());
            let (found, largest) = page.map_or((None, 0), |page| {
                (page.search(category, address.level == 0), page.root())
            });
            match found {
                Some(slot) if address.level == 0 => return Some(address.block(slot)),
                Some(slot) => address = address.child(slot),
                None if address.level == ROOT_LEVEL => return None,
                None => {
                    let (parent, slot) = address.parent();
                    self.set(parent, slot, largest, log);
                    restarts += 1;
                    if restarts > MAX_RESTARTS {
                        return None;
                    }
                    address = Address::ROOT;
                }
            }
        }
    }

    /// Updates one page and those below it; the largest value on it, `None` past the fork's end.
    ///
    /// Source: `fsm_vacuum_page`, src/backend/storage/freespace/freespace.c.
    fn vacuum_page(
        &mut self,
        address: Address,
        first: BlockNumber,
        last: BlockNumber,
        log: &mut impl Modified,
    ) -> Option<u8> {
        let physical = address.physical();
        if physical >= self.pages.len() {
            return None;
        }
        if address.level > 0 {
            let mut at_end = false;
            for slot in slots_between(address, first, last) {
                let below = if at_end {
                    None
                } else {
                    self.vacuum_page(address.child(slot), first, last, log)
                };
                at_end |= below.is_none();
                let value = below.unwrap_or(0);
                let page = &mut self.pages[physical];
                if page.slot(slot) != value && page.set_slot(slot, value) {
                    log.modified(fork_block(physical));
                }
            }
        }
        let page = &mut self.pages[physical];
        page.next = 0;
        Some(page.root())
    }
}

/// Slots of an upper page that cover these heap blocks.
fn slots_between(
    address: Address,
    first: BlockNumber,
    last: BlockNumber,
) -> std::ops::Range<usize> {
    let ancestor = |block: BlockNumber| {
        let (mut page, mut slot) = Address::of_block(block);
        while page.level < address.level {
            (page, slot) = page.parent();
        }
        (page.number, slot)
    };
    let (first_page, first_slot) = ancestor(first);
    let (last_page, last_slot) = ancestor(last);
    let start = match first_page.cmp(&address.number) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => first_slot,
        std::cmp::Ordering::Greater => SLOTS_PER_PAGE,
    };
    let end = match last_page.cmp(&address.number) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => last_slot + 1,
        std::cmp::Ordering::Greater => SLOTS_PER_PAGE,
    };
    start..end
}

fn fork_block(physical: usize) -> BlockNumber {
    BlockNumber(u32::try_from(physical).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ignore(_: BlockNumber) {}

    /// Rounded down when recorded, up when needed; so up to 62 bytes of real room are not found.
    #[test]
    fn categories() {
        assert_eq!(available_category(8160), 255);
        assert_eq!(available_category(8159), 254);
        assert_eq!(available_category(63), 1);
        assert_eq!(needed_category(0), 1);
        assert_eq!(needed_category(33), 2);
        assert_eq!(needed_category(8160), 255);
    }

    /// The fork of N heap pages has 3 + (N - 1) / 4069 pages; golden G1's figures.
    #[test]
    fn fork_sizes() {
        for (heap_pages, fork_pages) in [
            (1, 3),
            (4069, 3),
            (4070, 4),
            (13_334, 6),
            (16_667, 7),
            (21_277, 8),
            (27_028, 9),
        ] {
            let mut map = FreeSpaceMap::default();
            assert_eq!(map.page_count(), 0);
            map.record(BlockNumber(heap_pages - 1), 100, &mut ignore);
            assert_eq!(map.page_count(), fork_pages, "{heap_pages}");
        }
        // The 4070th page of the lowest level lies behind a second page of the middle one.
        let far = Address {
            level: 0,
            number: SLOTS_PER_PAGE,
        };
        assert_eq!(far.physical(), SLOTS_PER_PAGE + 3);
    }

    /// What is recorded is found only after the upper levels know it.
    #[test]
    fn increases_are_hidden_until_vacuum() {
        let mut map = FreeSpaceMap::default();
        assert_eq!(map.get(100, &mut ignore), None);
        map.record(BlockNumber(7), 4000, &mut ignore);
        assert_eq!(map.get(100, &mut ignore), None);
        map.vacuum(BlockNumber(0), None, &mut ignore);
        assert_eq!(map.get(100, &mut ignore), Some(BlockNumber(7)));
    }

    /// A failed search corrects the levels above: the three pages that the seed experiment dirties.
    #[test]
    fn failed_search_corrects_upwards() {
        let mut map = FreeSpaceMap::default();
        map.record(BlockNumber(1333), 2756, &mut ignore);
        map.vacuum(BlockNumber(0), None, &mut ignore);
        let mut dirty = Vec::new();
        let mut log = |block: BlockNumber| dirty.push(block.0);
        assert_eq!(
            map.record_and_get(BlockNumber(1333), 92, 104, &mut log),
            None
        );
        assert_eq!(dirty, [2, 1, 0]);
        dirty.clear();
        let mut log = |block: BlockNumber| dirty.push(block.0);
        assert_eq!(
            map.record_and_get(BlockNumber(1334), 60, 104, &mut log),
            None
        );
        assert_eq!(dirty, [2]);
    }

    /// Searches advance, so that sessions spread over the table, and wrap around.
    #[test]
    fn searches_advance_and_wrap() {
        let mut map = FreeSpaceMap::default();
        for block in [3, 9, 4068] {
            map.record(BlockNumber(block), 1000, &mut ignore);
        }
        map.vacuum(BlockNumber(0), None, &mut ignore);
        let found: Vec<_> = (0..4)
            .map(|_| map.get(500, &mut ignore).unwrap().0)
            .collect();
        assert_eq!(found, [3, 9, 4068, 3]);
        map.vacuum(BlockNumber(0), None, &mut ignore);
        assert_eq!(map.get(500, &mut ignore), Some(BlockNumber(3)));
    }

    /// A vacuum of a range leaves what lies outside it alone.
    #[test]
    fn vacuum_of_a_range() {
        let mut map = FreeSpaceMap::default();
        map.record(BlockNumber(1), 1000, &mut ignore);
        map.record(BlockNumber(5000), 1000, &mut ignore);
        map.vacuum(BlockNumber(4999), Some(BlockNumber(5001)), &mut ignore);
        assert_eq!(map.get(500, &mut ignore), Some(BlockNumber(5000)));
        map.vacuum(BlockNumber(10), Some(BlockNumber(10)), &mut ignore);
        map.record(BlockNumber(5000), 0, &mut ignore);
        assert_eq!(map.get(500, &mut ignore), None);
    }

    proptest! {
        /// Every node is the larger of its children, and a search finds a slot iff there is one,
        /// the first to the right of `next`.
        #[test]
        fn page_against_a_plain_list(
            writes in proptest::collection::vec((0..SLOTS_PER_PAGE, 0_u8..=255), 1..60),
            next in 0..SLOTS_PER_PAGE + 1,
            category in 1_u8..=255,
        ) {
            let mut page = FsmPage::zeroed();
            let mut plain = vec![0_u8; SLOTS_PER_PAGE];
            for (slot, value) in writes {
                let changed = plain[slot] != value;
                plain[slot] = value;
                prop_assert_eq!(page.set_slot(slot, value), changed);
            }
            for node in 0..NON_LEAF_NODES {
                let larger = page.child_or_zero(2 * node + 1).max(page.child_or_zero(2 * node + 2));
                prop_assert_eq!(page.nodes[node], larger);
            }
            page.next = next;
            let start = if next < SLOTS_PER_PAGE { next } else { 0 };
            let expected = (start..SLOTS_PER_PAGE).chain(0..start).find(|&s| plain[s] >= category);
            prop_assert_eq!(page.search(category, true), expected);
        }
    }
}
