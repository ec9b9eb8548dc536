//! Prefetching a leaf's memory into the processor's cache; changes nothing.

use pgheadroom_layout::BlockNumber;

use crate::btree::Btree;
use crate::btree::key::SearchKey;
use crate::btree::page::BtreePage;
use crate::btree::search::{Tie, guess, lower_bound};
use crate::btree::slots::tid_of;
use crate::memory::prefetch;
use crate::page::Tid;

/// So many entries of a key are prefetched.
const FEW: usize = 8;

/// What a search of a leaf will need, in the order in which one thing tells where the next is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeafPart {
    /// Its first and last key, and of a search for a TID its first and last entry too.
    Ends,
    /// Keys and items near the position of the key.
    Middle,
    /// Of a search for a TID: the posting list around it.
    List,
    /// TIDs of that list.
    Tids,
}

impl Btree {
    /// The leaf where a key of one column most likely belongs; prefetches its header.
    pub(crate) fn prefetch_leaf(&self, key: i64, tid: Option<Tid>) -> Option<BlockNumber> {
        if self.definition.key_columns != 1 {
            return None;
        }
        let search = SearchKey {
            values: &[key],
            tid,
        };
        let mut block = self.meta.fast_root?;
        for level in (0..self.meta.fast_level).rev() {
            let page = self.page(block);
            let position = lower_bound(search, page, Tie::PivotIsSmaller).checked_sub(1)?;
            block = (position < page.len()).then(|| page.item(position).child())?;
            if level == 0 {
                self.known_page(block)?.prefetch_header();
            }
        }
        Some(block)
    }

    /// Prefetches a part of that leaf, which a search for this key needs.
    pub(crate) fn prefetch_leaf_part(&self, leaf: BlockNumber, key: i64, part: LeafPart) {
        let Some(page) = self.known_page(leaf).filter(|page| !page.is_empty()) else {
            return;
        };
        let codes = &page.codes()[page.first_data()..];
        let (Some(first), Some(last)) = (codes.first(), codes.last()) else {
            return;
        };
        match part {
            LeafPart::Ends => {
                prefetch(&page.codes()[0]); // the high key
                prefetch(last);
            }
            LeafPart::Middle => {
                let position = guess((*first, *last), key, codes.len() - 1);
                // From there on all move to make room for an entry.
                codes[position..].iter().step_by(8).for_each(prefetch);
                page.slots().prefetch_from(page.first_data() + position);
            }
            LeafPart::List | LeafPart::Tids => {}
        }
    }

    /// The same of a search for where an entry with this key and TID is inserted, whose position is
    /// noted once it is known.
    pub(crate) fn prefetch_insert_location(
        &self,
        (leaf, position): (BlockNumber, &mut usize),
        (key, tid): (i64, Tid),
        part: LeafPart,
    ) {
        let page = self.known_page(leaf);
        let Some(page) = page.filter(|page| page.is_leaf() && !page.is_empty()) else {
            return;
        };
        match part {
            LeafPart::Ends => {
                prefetch(&page.codes()[0]);
                prefetch(&page.codes()[page.len() - 1]);
                page.slots().prefetch_ends();
            }
            LeafPart::Middle => {}
            LeafPart::List => {
                let search = SearchKey {
                    values: &[key],
                    tid: Some(tid),
                };
                *position = lower_bound(search, page, Tie::PivotIsSmaller);
                page.slots().prefetch_posting_list(*position);
            }
            LeafPart::Tids => page.slots().prefetch_posting_tids(*position),
        }
    }

    /// Calls `prefetch` for what entries with this key on a leaf lead to, those apart that scans
    /// found dead, and prefetches their posting lists; a few are enough. Where the first entry is.
    pub(crate) fn prefetch_heap_tids(
        &self,
        leaf: BlockNumber,
        key: i64,
        mut prefetch: impl FnMut(Tid),
    ) -> usize {
        let page = self.known_page(leaf);
        let Some(page) = page.filter(|page| page.is_leaf() && !page.is_empty()) else {
            return 0;
        };
        let search = SearchKey {
            values: &[key],
            tid: None,
        };
        let (codes, slots) = (page.codes(), page.slots());
        let first = lower_bound(search, page, Tie::PivotIsSmaller);
        let equal = (first..page.len()).take_while(|&position| codes[position] == key);
        for position in equal.filter(|&position| !slots.is_dead(position)).take(FEW) {
            prefetch(tid_of(slots.tid_number(position).cast_unsigned()));
            slots.prefetch_posting_list(position);
        }
        first
    }

    /// Prefetches the TIDs of posting lists with this key, whose first entry is at this position.
    pub(crate) fn prefetch_posting_lists(&self, leaf: BlockNumber, position: usize, key: i64) {
        if let Some(page) = self.known_page(leaf).filter(|page| page.is_leaf()) {
            let of_key = page.codes().iter().skip(position).take(FEW);
            let count = of_key.take_while(|&&code| code == key).count();
            let lists = position..position + count;
            lists.for_each(|position| page.slots().prefetch_posting_tids(position));
        }
    }

    /// A page that may be none of the tree any more.
    pub(super) fn known_page(&self, block: BlockNumber) -> Option<&BtreePage> {
        self.pages.get((block.0 as usize).checked_sub(1)?)
    }
}
