//! Deletion of entries that scans found dead, and of others on the same heap pages.

use pgheadroom_layout::BlockNumber;

use crate::btree::delete::{Candidate, Doomed};
use crate::btree::record::{RecordKind, Sink};
use crate::btree::slots::tid_of;
use crate::btree::{Btree, Table};
use crate::page::Tid;

/// How many entries before it is looked at a row version is asked for, its page as many before
/// that. Arbitrary.
const AHEAD: usize = 8;

impl Btree {
    /// Deletes the entries marked dead and, from 14 on, every other entry whose heap page one of
    /// them or the new row uses and whose versions are all dead. Whether there were any.
    ///
    /// Source: `_bt_simpledel_pass` and `_bt_deadblocks`, src/backend/access/nbtree/nbtinsert.c;
    /// `heap_index_delete_tuples`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(super) fn simple_deletion(
        &mut self,
        block: BlockNumber,
        new_tid: Tid,
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) -> bool {
        let page = self.page(block);
        if !page.slots().any_dead() {
            return false;
        }
        let heap_blocks = self.dead_blocks(block, new_tid);
        let also_others = self.behaviour.btree_bottom_up_deletion;
        let mut doomed: Vec<Doomed> = Vec::new();
        let mut candidates: Vec<Candidate> = Vec::new();
        let slots = page.slots();
        for position in page.first_data()..page.len() {
            if slots.is_dead(position) {
                slots.each_tid_number(position, |tid| {
                    doomed.push(Candidate::new(tid, position).doomed());
                });
            } else if also_others {
                slots.each_tid_number(position, |tid| {
                    if heap_blocks.contains(tid_of(tid).block) {
                        candidates.push(Candidate::new(tid, position));
                    }
                });
            }
        }
        // The heap is visited in its own order.
        candidates.sort_unstable();
        for (number, candidate) in candidates.iter().enumerate() {
            if let Some(later) = candidates.get(number + 2 * AHEAD) {
                table.prefetch_page(later.tid().block);
            }
            if let Some(later) = candidates.get(number + AHEAD) {
                table.prefetch_tuple(later.tid());
            }
            if table.is_deletable(candidate.tid()) {
                doomed.push(candidate.doomed());
            }
        }
        doomed.sort_unstable();
        self.remove_tids(block, &doomed, RecordKind::Delete, sink);
        true
    }

    /// Heap pages of the new row and of all entries marked dead, in order.
    fn dead_blocks(&self, block: BlockNumber, new_tid: Tid) -> HeapBlocks {
        let page = self.page(block);
        let slots = page.slots();
        let mut blocks = vec![new_tid.block];
        for position in page.first_data()..page.len() {
            if slots.is_dead(position) {
                slots.each_tid_number(position, |tid| blocks.push(tid_of(tid).block));
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        HeapBlocks::of(blocks)
    }
}

/// Words of a bit for each remainder of block numbers.
const WORDS: u32 = 16;

/// Some heap pages, of which every entry of a leaf asks; most are on another page, which the bits
/// say at once.
struct HeapBlocks {
    ascending: Vec<BlockNumber>,
    remainders: [u64; WORDS as usize],
}

impl HeapBlocks {
    fn of(ascending: Vec<BlockNumber>) -> Self {
        let mut remainders = [0; WORDS as usize];
        for &block in &ascending {
            let (word, bit) = Self::word_and_bit(block);
            remainders[word] |= bit;
        }
        Self {
            ascending,
            remainders,
        }
    }

    #[inline]
    fn contains(&self, block: BlockNumber) -> bool {
        let (word, bit) = Self::word_and_bit(block);
        self.remainders[word] & bit != 0 && self.ascending.binary_search(&block).is_ok()
    }

    #[inline]
    const fn word_and_bit(block: BlockNumber) -> (usize, u64) {
        ((block.0 / 64 % WORDS) as usize, 1 << (block.0 % 64))
    }
}
