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

use crate::vm::ForkTruncation;

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
    let steps = free_bytes / FSM_CAT_STEP;
    u8::try_from(steps).unwrap_or(254).min(254)
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
    let steps = needed_bytes.div_ceil(FSM_CAT_STEP);
    u8::try_from(steps).unwrap_or(u8::MAX)
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

    /// Clears this slot and all behind it.
    ///
    /// Source: `fsm_truncate_avail` and `fsm_rebuild_page`,
    /// src/backend/storage/freespace/fsmpage.c.
    fn clear_from(&mut self, slot: usize) {
        self.nodes[NON_LEAF_NODES + slot..].fill(0);
        for node in (0..NON_LEAF_NODES).rev() {
            let (left, right) = (2 * node + 1, 2 * node + 2);
            self.nodes[node] = self.child_or_zero(left).max(self.child_or_zero(right));
        }
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

    /// The slots of each page of the fork, in physical order.
    pub fn page_slots(&self) -> impl Iterator<Item = &[u8]> {
        self.pages.iter().map(|page| &page.nodes[NON_LEAF_NODES..])
    }

    /// What a page of the fork holds behind its header; none past the fork's end.
    ///
    /// Source: `FSMPageData`, src/include/storage/fsm_internals.h (REL_18_STABLE).
    pub(crate) fn page_bytes(&self, block: BlockNumber) -> Option<Vec<u8>> {
        let page = self.pages.get(block.0 as usize)?;
        let next = u32::try_from(page.next).unwrap_or(0);
        Some([&next.to_le_bytes(), &page.nodes[..]].concat())
    }

    /// What is recorded for a heap page.
    #[must_use]
    pub fn recorded(&self, block: BlockNumber) -> u8 {
        let (address, slot) = Address::of_block(block);
        self.pages
            .get(address.physical())
            .map_or(0, |page| page.slot(slot))
    }

    /// What is recorded for a heap page, in bytes: rounded down by up to 32.
    ///
    /// Source: `GetRecordedFreeSpace` and `fsm_space_cat_to_avail`, freespace.c.
    #[must_use]
    pub fn recorded_bytes(&self, block: BlockNumber) -> u32 {
        match self.recorded(block) {
            u8::MAX => MAX_HEAP_TUPLE_SIZE,
            category => u32::from(category) * FSM_CAT_STEP,
        }
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
        let (address, _) = Address::of_block(block);
        let needed = needed_category(needed_bytes);
        self.record(block, free_bytes, log);
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

    /// The table was cut to so many pages; `None` when the map stays as it is. Upper levels learn
    /// of it by [`FreeSpaceMap::vacuum`].
    ///
    /// Source: `FreeSpaceMapPrepareTruncateRel`, src/backend/storage/freespace/freespace.c
    /// (REL_15_STABLE).
    pub fn truncate(&mut self, heap_pages: u32) -> Option<ForkTruncation> {
        let (address, slot) = Address::of_block(BlockNumber(heap_pages));
        let physical = address.physical();
        if physical >= self.pages.len() {
            return None;
        }
        if slot > 0 {
            self.pages[physical].clear_from(slot);
        }
        let pages = physical + usize::from(slot > 0);
        self.pages.truncate(pages);
        Some(ForkTruncation {
            pages: fork_block(pages).0,
            cut_page: (slot > 0).then(|| fork_block(physical)),
        })
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
mod tests;
