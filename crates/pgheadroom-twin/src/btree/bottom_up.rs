//! Bottom-up deletion: before a leaf is split because of old row versions, look for entries whose
//! versions are dead on a few promising heap pages.
//!
//! The index proposes all TIDs of the leaf, duplicates as promising; the heap decides which of
//! its pages are worth a visit and when to give up.

use std::cmp::Reverse;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_ITEM_ID};

use crate::btree::delete::{Candidate, Doomed};
use crate::btree::item::SIZE_OF_TID;
use crate::btree::page::BtreePage;
use crate::btree::record::{RecordKind, Sink};
use crate::btree::slots::tid_number;
use crate::btree::{Btree, Table};
use crate::page::Tid;

/// Most heap pages visited. Source: `BOTTOMUP_MAX_NBLOCKS`, heapam.c.
const MAX_BLOCKS: usize = 6;
/// Distance at which heap pages count as neighbours.
///
/// Source: `BOTTOMUP_TOLERANCE_NBLOCKS`, heapam.c.
const TOLERANCE_BLOCKS: u32 = 3;
/// Promising TIDs that all count alike, arbitrary there. Source: `bottomup_sort_and_shrink`.
const FEW_PROMISING: usize = 4;

/// TIDs of one heap page, in the order of TIDs.
#[derive(Debug, Clone, Copy)]
struct HeapBlock {
    block: BlockNumber,
    first: usize,
    tids: usize,
    promising: usize,
}

impl Btree {
    /// Tries to make room for an item of `new_bytes` bytes (aligned, without its line pointer).
    /// Whether the caller should not go on to merge duplicates.
    ///
    /// Source: `_bt_bottomupdel_pass`, src/backend/access/nbtree/nbtdedup.c (REL_18_STABLE).
    pub(super) fn bottom_up_deletion(
        &mut self,
        block: BlockNumber,
        new_bytes: u32,
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) -> bool {
        let new_bytes = new_bytes + SIZE_OF_ITEM_ID;
        let page = self.page(block);
        let (mut candidates, has_duplicates) = candidates(page);
        candidates.sort_unstable();
        let target = new_bytes.max(BLCKSZ / 16);
        let mut doomed = index_delete_tuples(&candidates, page, target, table);
        doomed.sort_unstable();
        self.remove_tids(block, &doomed, RecordKind::Delete, sink);
        if !has_duplicates {
            return true;
        }
        self.page(block).exact_free_space() >= new_bytes.max(BLCKSZ / 24)
    }
}

/// A TID that might be deleted, in the order of TIDs.
///
/// ```text
/// | block 4 | offset number 2 | promising 1 bit, position 15 bits |
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Proposal(Candidate);

/// Marks a promising TID in the place of its item's position.
const PROMISING: usize = 1 << 15;

impl Proposal {
    #[inline]
    fn new(tid_number: u64, position: usize, is_promising: bool) -> Self {
        let mark = if is_promising { PROMISING } else { 0 };
        Self(Candidate::new(tid_number, position | mark))
    }

    #[inline]
    const fn tid(self) -> Tid {
        self.0.tid()
    }

    #[inline]
    const fn position(self) -> usize {
        self.0.position() & !PROMISING
    }

    #[inline]
    const fn is_promising(self) -> bool {
        self.0.position() & PROMISING != 0
    }
}

/// All TIDs of a leaf, and whether any key occurs twice. Groups are those of deduplication up to a
/// whole page of TIDs, which a page has not: all items of a key.
fn candidates(page: &BtreePage) -> (Vec<Proposal>, bool) {
    let mut proposals = Vec::with_capacity(page.len());
    let mut has_duplicates = false;
    let mut base = page.first_data();
    while base < page.len() {
        let end = page.end_of_key(base);
        let is_duplicated = end > base + 1;
        has_duplicates |= is_duplicated;
        for position in base..end {
            propose(page, position, is_duplicated, &mut proposals);
        }
        base = end;
    }
    (proposals, has_duplicates)
}

/// Adds the TIDs of an item. Of a posting list at most one is promising: an end at which half of
/// the list is on one heap page.
///
/// Source: `_bt_bottomupdel_finish_pending`, nbtdedup.c (REL_18_STABLE).
#[inline]
fn propose(page: &BtreePage, position: usize, is_duplicated: bool, to: &mut Vec<Proposal>) {
    let slots = page.slots();
    let Some(tids) = slots.posting(position) else {
        let tid = slots.tid_number(position).cast_unsigned();
        to.push(Proposal::new(tid, position, is_duplicated));
        return;
    };
    let last = tids.len() - 1;
    let (low, middle, high) = (tids[0].block, tids[tids.len() / 2].block, tids[last].block);
    let promising = if !is_duplicated {
        None
    } else if low == middle {
        Some(0)
    } else if middle == high {
        Some(last)
    } else {
        None
    };
    let proposals = tids
        .iter()
        .enumerate()
        .map(|(index, &tid)| Proposal::new(tid_number(tid), position, promising == Some(index)));
    to.extend(proposals);
}

/// Which TIDs go: promising heap pages are visited until enough is free or a visit does not pay.
///
/// Source: `heap_index_delete_tuples`, src/backend/access/heap/heapam.c (REL_18_STABLE).
fn index_delete_tuples(
    candidates: &[Proposal],
    page: &BtreePage,
    target: u32,
    table: &mut impl Table,
) -> Vec<Doomed> {
    let blocks = choose_blocks(candidates);
    let favourable = favourable_blocks(&blocks);
    let mut target = target;
    let (mut free, mut free_before) = (0, 0);
    let mut doomed = Vec::new();
    for (visited, block) in blocks.iter().enumerate() {
        let gives_up = free == free_before;
        if visited >= 1 && (free >= target || gives_up) {
            break;
        }
        free_before = free;
        if visited >= favourable {
            target /= 2;
        }
        for candidate in &candidates[block.first..block.first + block.tids] {
            if table.is_deletable(candidate.tid()) {
                let item = page.item(candidate.position());
                free += if item.is_posting() {
                    SIZE_OF_TID
                } else {
                    item.bytes() + SIZE_OF_ITEM_ID
                };
                doomed.push(
                    Candidate::new(tid_number(candidate.tid()), candidate.position()).doomed(),
                );
            }
        }
    }
    doomed
}

/// The heap pages worth a visit, the best first.
///
/// Source: `bottomup_sort_and_shrink`, src/backend/access/heap/heapam.c (REL_18_STABLE).
fn choose_blocks(candidates: &[Proposal]) -> Vec<HeapBlock> {
    let mut blocks: Vec<HeapBlock> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let promising = usize::from(candidate.is_promising());
        let heap_block = candidate.tid().block;
        match blocks.last_mut() {
            Some(last) if last.block == heap_block => {
                last.tids += 1;
                last.promising += promising;
            }
            _ => blocks.push(HeapBlock {
                block: heap_block,
                first: index,
                tids: 1,
                promising,
            }),
        }
    }
    // The best come first: more that are promising, more TIDs, both as powers of two, in order.
    let rank = |block: &HeapBlock| {
        let promising = block.promising.max(FEW_PROMISING).next_power_of_two();
        (
            Reverse((promising, block.tids.next_power_of_two())),
            block.first,
        )
    };
    if blocks.len() > MAX_BLOCKS {
        blocks.select_nth_unstable_by_key(MAX_BLOCKS, rank);
    }
    blocks.truncate(MAX_BLOCKS);
    blocks.sort_unstable_by_key(rank);
    blocks
}

/// Leading pages that are near each other, whose visit costs little.
///
/// Source: `bottomup_nblocksfavorable`, src/backend/access/heap/heapam.c (REL_18_STABLE).
fn favourable_blocks(blocks: &[HeapBlock]) -> usize {
    let far = |pair: &[HeapBlock]| pair[0].block.0.abs_diff(pair[1].block.0) > TOLERANCE_BLOCKS;
    blocks
        .windows(2)
        .position(far)
        .map_or(blocks.len(), |index| index + 1)
}
