//! Bottom-up deletion: before a leaf is split because of old row versions, look for entries whose
//! versions are dead on a few promising heap pages.
//!
//! The index proposes all TIDs of the leaf, duplicates as promising; the heap decides which of
//! its pages are worth a visit and when to give up.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_ITEM_ID};

use crate::btree::dedup::{DedupState, is_duplicate};
use crate::btree::delete::Doomed;
use crate::btree::item::{Item, SIZE_OF_TID};
use crate::btree::record::{RecordKind, Sink};
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

/// A TID that might be deleted.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    tid: Tid,
    position: usize,
    is_promising: bool,
    free_bytes: u32,
}

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
        let (mut candidates, has_duplicates) = self.candidates(block);
        let target = new_bytes.max(BLCKSZ / 16);
        let mut doomed = visit_heap(&mut candidates, target, table);
        doomed.sort_unstable();
        self.remove_tids(block, &doomed, RecordKind::Delete, sink);
        if !has_duplicates {
            return true;
        }
        self.page(block).exact_free_space() >= new_bytes.max(BLCKSZ / 24)
    }

    /// All TIDs of a leaf, and whether any key occurs twice.
    fn candidates(&self, block: BlockNumber) -> (Vec<Candidate>, bool) {
        let page = self.page(block);
        let mut candidates = Vec::with_capacity(page.len());
        let mut has_duplicates = false;
        // Groups as deduplication forms them, up to a whole page of TIDs.
        let mut pending = DedupState::new(BLCKSZ);
        let mut base = page.first_data();
        pending.start(page.item(base));
        for position in base + 1..=page.len() {
            if position < page.len()
                && is_duplicate(page.key(base), page.key(position))
                && pending.add(page.item(position))
            {
                continue;
            }
            let is_duplicated = pending.items > 1;
            has_duplicates |= is_duplicated;
            for member in base..base + pending.items {
                propose(page.item(member), member, is_duplicated, &mut candidates);
            }
            if position < page.len() {
                base = position;
                pending.start(page.item(base));
            }
        }
        (candidates, has_duplicates)
    }
}

/// Adds the TIDs of an item. Of a posting list at most one is promising: an end at which half of
/// the list is on one heap page.
///
/// Source: `_bt_bottomupdel_finish_pending`, nbtdedup.c (REL_18_STABLE).
fn propose(item: Item<'_>, position: usize, is_duplicated: bool, to: &mut Vec<Candidate>) {
    let Some(tids) = item.posting() else {
        to.push(Candidate {
            tid: item.first_tid(),
            position,
            is_promising: is_duplicated,
            free_bytes: item.bytes() + SIZE_OF_ITEM_ID,
        });
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
    to.extend(tids.iter().enumerate().map(|(index, &tid)| Candidate {
        tid,
        position,
        is_promising: promising == Some(index),
        free_bytes: SIZE_OF_TID,
    }));
}

/// Visits promising heap pages until enough is free or a visit does not pay.
///
/// Source: `heap_index_delete_tuples`, src/backend/access/heap/heapam.c (REL_18_STABLE).
fn visit_heap(candidates: &mut [Candidate], target: u32, table: &mut impl Table) -> Vec<Doomed> {
    candidates.sort_unstable_by_key(|candidate| candidate.tid);
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
            if table.is_deletable(candidate.tid) {
                free += candidate.free_bytes;
                doomed.push((candidate.position, candidate.tid));
            }
        }
    }
    doomed
}

/// The heap pages worth a visit, the best first.
///
/// Source: `bottomup_sort_and_shrink`, src/backend/access/heap/heapam.c (REL_18_STABLE).
fn choose_blocks(candidates: &[Candidate]) -> Vec<HeapBlock> {
    let mut blocks: Vec<HeapBlock> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let promising = usize::from(candidate.is_promising);
        match blocks.last_mut() {
            Some(last) if last.block == { candidate.tid.block } => {
                last.tids += 1;
                last.promising += promising;
            }
            _ => blocks.push(HeapBlock {
                block: candidate.tid.block,
                first: index,
                tids: 1,
                promising,
            }),
        }
    }
    for block in &mut blocks {
        block.promising = block.promising.max(FEW_PROMISING).next_power_of_two();
    }
    blocks.sort_unstable_by(|one, other| {
        let by_promising = other.promising.cmp(&one.promising);
        let by_tids = || {
            let rounded = |block: &HeapBlock| block.tids.next_power_of_two();
            rounded(other).cmp(&rounded(one))
        };
        by_promising
            .then_with(by_tids)
            .then(one.first.cmp(&other.first))
    });
    blocks.truncate(MAX_BLOCKS);
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
