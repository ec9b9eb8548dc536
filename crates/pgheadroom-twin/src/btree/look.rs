//! A leaf's memory, asked for ahead of time; changes nothing.

use pgheadroom_layout::BlockNumber;

use crate::btree::Btree;
use crate::btree::key::SearchKey;
use crate::btree::page::BtreePage;
use crate::btree::search::{Tie, guess, lower_bound};
use crate::btree::slots::tid_of;
use crate::memory::prefetch;
use crate::page::Tid;

/// So many entries of a key are looked at.
const FEW: usize = 8;

/// What a search of a leaf will need, in the order in which one thing tells where the next is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeafPart {
    /// Its first and last key, and of a search for a TID its first and last entry too.
    Ends,
    /// Keys and items near the place of the key.
    Middle,
    /// Of a search for a TID: the posting list around it.
    List,
    /// Places in that list.
    Tids,
}

impl Btree {
    /// The leaf where a key of one column most likely belongs; asks for its header.
    pub(crate) fn look_for_leaf(&self, key: i64, tid: Option<Tid>) -> Option<BlockNumber> {
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
                self.known_page(block)?.look_at_header();
            }
        }
        Some(block)
    }

    /// Asks for a part of that leaf, which a search for this key needs.
    pub(crate) fn look_at_leaf(&self, leaf: BlockNumber, key: i64, part: LeafPart) {
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
                page.slots().look_at_rest(page.first_data() + position);
            }
            LeafPart::List | LeafPart::Tids => {}
        }
    }

    /// The same of a search for this key and TID, whose place is noted once it is known.
    pub(crate) fn look_at_place(
        &self,
        (leaf, place): (BlockNumber, &mut usize),
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
                page.slots().look_at_ends();
            }
            LeafPart::Middle => {}
            LeafPart::List => {
                let search = SearchKey {
                    values: &[key],
                    tid: Some(tid),
                };
                *place = lower_bound(search, page, Tie::PivotIsSmaller);
                page.slots().look_at_list(*place);
            }
            LeafPart::Tids => page.slots().look_at_tids(*place),
        }
    }

    /// What entries with this key on a leaf lead to, those apart that scans found dead; a few are
    /// enough. Where the first entry is.
    pub(crate) fn each_ahead(
        &self,
        leaf: BlockNumber,
        key: i64,
        mut look: impl FnMut(Tid),
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
            look(tid_of(slots.tid_number(position).cast_unsigned()));
            slots.look_at_list(position);
        }
        first
    }

    /// Asks for the TIDs of posting lists with this key, whose first entry is at this place.
    pub(crate) fn look_at_lists(&self, leaf: BlockNumber, position: usize, key: i64) {
        if let Some(page) = self.known_page(leaf).filter(|page| page.is_leaf()) {
            let of_key = page.codes().iter().skip(position).take(FEW);
            let count = of_key.take_while(|&&code| code == key).count();
            let lists = position..position + count;
            lists.for_each(|position| page.slots().look_at_tids(position));
        }
    }

    /// A page that may be none of the tree any more.
    pub(super) fn known_page(&self, block: BlockNumber) -> Option<&BtreePage> {
        self.pages.get((block.0 as usize).checked_sub(1)?)
    }
}
