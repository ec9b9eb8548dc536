//! Merging duplicates of a leaf into posting lists.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::btree::USABLE_BYTES;
use pgheadroom_layout::index_tuple::BT_MAX_ITEM_SIZE;
use pgheadroom_layout::page::SIZE_OF_ITEM_ID;

use crate::btree::Btree;
use crate::btree::item::{Item, OwnedItem, SIZE_OF_TID};
use crate::btree::key::keep_natts;
use crate::btree::page::BtreePage;
use crate::btree::record::{Record, RecordKind, Sink};

/// TIDs above which a posting list that found no room for more counts as full.
///
/// Source: `_bt_dedup_save_htid`, src/backend/access/nbtree/nbtdedup.c: 50, arbitrary there.
const MANY_TIDS: usize = 50;
/// Full posting lists before which the last list on a page of one value is made smaller.
///
/// Source: `_bt_dedup_pass`, nbtdedup.c.
const FULL_LISTS: u32 = 5;

/// A group of equal items that are to become one posting list.
///
/// Source: `BTDedupStateData`, src/include/access/nbtree.h.
#[derive(Debug, Clone)]
pub(super) struct DedupState {
    pub max_posting_bytes: u32,
    /// Lists so far that were full.
    pub full_lists: u32,
    /// TIDs of the group.
    tids: usize,
    /// Items in the group.
    pub items: usize,
    base_bytes: u32,
}

impl DedupState {
    pub fn new(max_posting_bytes: u32) -> Self {
        Self {
            max_posting_bytes,
            full_lists: 0,
            tids: 0,
            items: 0,
            base_bytes: 0,
        }
    }

    /// Begins a group. Source: `_bt_dedup_start_pending`, nbtdedup.c (REL_18_STABLE).
    pub fn start(&mut self, base: Item<'_>) {
        self.tids = base.tid_count();
        self.items = 1;
        self.base_bytes = u32::from(base.base_bytes());
    }

    /// Takes an item into the group unless its posting list would be too long.
    ///
    /// Source: `_bt_dedup_save_htid`, nbtdedup.c (REL_18_STABLE).
    pub fn add(&mut self, item: Item<'_>) -> bool {
        let together = self.tids + item.tid_count();
        let tids = u32::try_from(together).expect("TIDs of a page");
        if maxalign(self.base_bytes + tids * SIZE_OF_TID) > self.max_posting_bytes {
            if self.tids > MANY_TIDS {
                self.full_lists += 1;
            }
            return false;
        }
        self.items += 1;
        self.tids = together;
        true
    }

    /// Leaves less room for the next list, so that the page will be split 96 to 4.
    ///
    /// Source: `_bt_singleval_fillfactor`, nbtdedup.c (REL_18_STABLE).
    fn shrink(&mut self, new_bytes: u32) {
        let left_free = USABLE_BYTES - (new_bytes + 8);
        // 4 % in floating point, truncated, as there.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let reduction = (f64::from(left_free) * (4.0 / 100.0)) as u32;
        self.max_posting_bytes = self.max_posting_bytes.saturating_sub(reduction);
    }
}

/// Whether two keys are equal.
pub(super) fn is_duplicate(one: &[i64], other: &[i64]) -> bool {
    keep_natts(one, other) > one.len()
}

impl Btree {
    /// Merges what can be merged on a leaf. `new_bytes` is the size of the item that needs room,
    /// aligned, without its line pointer.
    ///
    /// Source: `_bt_dedup_pass`, src/backend/access/nbtree/nbtdedup.c (REL_18_STABLE).
    pub(super) fn deduplicate(
        &mut self,
        block: BlockNumber,
        new_key: &[i64],
        new_bytes: u32,
        single_value_allowed: bool,
        sink: &mut impl Sink,
    ) {
        let page = self.page(block);
        let mut single_value = single_value_allowed && holds_only(page, new_key);
        let mut merges = true;
        let mut pending = DedupState::new(BT_MAX_ITEM_SIZE / 2);
        let mut groups: Vec<(usize, usize)> = Vec::new();
        let first = page.first_data();
        let mut base = first;
        pending.start(page.item(first));
        for position in first + 1..page.len() {
            let item = page.item(position);
            if merges && is_duplicate(page.key(base), page.key(position)) && pending.add(item) {
                continue;
            }
            groups.push((base, pending.items));
            if single_value && pending.full_lists == FULL_LISTS {
                pending.shrink(new_bytes + SIZE_OF_ITEM_ID);
            } else if single_value && pending.full_lists == FULL_LISTS + 1 {
                merges = false;
                single_value = false;
            }
            base = position;
            pending.start(item);
        }
        groups.push((base, pending.items));
        self.merge_groups(block, &groups, sink);
    }

    fn merge_groups(
        &mut self,
        block: BlockNumber,
        groups: &[(usize, usize)],
        sink: &mut impl Sink,
    ) {
        let merged = groups.iter().filter(|&&(_, items)| items > 1).count();
        if merged == 0 {
            return;
        }
        let page = self.page_mut(block);
        let mut doomed = Vec::new();
        for &(base, items) in groups.iter().filter(|&&(_, items)| items > 1) {
            let members = (base..base + items).map(|member| page.item(member));
            let count = members.clone().map(Item::tid_count).sum();
            let mut tids = Vec::with_capacity(count);
            tids.extend(members.flat_map(Item::each_tid));
            let posting = OwnedItem::with_tids(page.item(base), tids);
            page.replace(base, posting);
            doomed.extend(base + 1..base + items);
        }
        page.remove_many(&doomed);
        let intervals = u32::try_from(merged).expect("items of a page");
        let record =
            Record::new(RecordKind::Dedup, 2).change(block, self.page(block), 4 * intervals);
        self.log(sink, &record);
    }
}

/// Whether a page seems to hold nothing but this key.
///
/// Source: `_bt_do_singleval`, nbtdedup.c (REL_18_STABLE).
fn holds_only(page: &BtreePage, key: &[i64]) -> bool {
    is_duplicate(key, page.key(page.first_data())) && is_duplicate(key, page.key(page.len() - 1))
}
