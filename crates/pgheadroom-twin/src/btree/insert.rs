//! Insertion of one entry.
//!
//! ```text
//! find the leaf -> unique: look for live duplicates -> no room: delete or merge entries
//!               -> room: add the entry               -> still none: split, downlink to the parent
//! ```

use std::cmp::Ordering;

use pgheadroom_layout::BlockNumber;

use crate::btree::item::OwnedItem;
use crate::btree::key::{SearchKey, has_null};
use crate::btree::record::{Record, RecordKind, Sink};
use crate::btree::search::{Stack, Tie, compare, lower_bound_near};
use crate::btree::unique::Equals;
use crate::btree::{Btree, Entry, Table};
use crate::page::Tid;
use crate::transaction::Xid;

/// The key is in a unique index already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniqueViolation {
    /// The row version that has the key.
    pub tid: Tid,
    /// The transaction that decides whether it stays, if that is open: the insertion has to be
    /// tried again when it has ended (`xwait` in `_bt_doinsert`).
    pub in_progress: Option<Xid>,
}

/// What happens when a new entry's key is in a unique index already.
///
/// Source: `IndexUniqueCheck`, src/include/access/genam.h (REL_18_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UniqueCheck {
    /// It is not inserted (`UNIQUE_CHECK_YES`).
    Yes,
    /// It is, and who asks looks after it (`UNIQUE_CHECK_PARTIAL`).
    Partial,
}

/// An item on its way to a page, and where it goes.
pub(super) struct Insertion {
    pub block: BlockNumber,
    pub position: usize,
    pub item: OwnedItem,
    /// The child whose split made this downlink; `None` on leaves.
    pub child: Option<BlockNumber>,
    /// Where in the posting list before `position` the new TID went; the item is what came out.
    pub posting_offset: Option<usize>,
    /// Whether the child was alone on its level.
    pub child_was_only: bool,
}

/// What an insertion knows about duplicates when it lacks room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Duplicates {
    pub checking_unique: bool,
    /// A duplicate was seen, or the entry's key was not changed by its UPDATE.
    pub unique_duplicate: bool,
    pub index_unchanged: bool,
}

impl Btree {
    /// Inserts an entry; whether a look for its key in this unique index found no other.
    ///
    /// `check` says whether it is inserted if that finds a live one. `index_unchanged` is the
    /// executor's hint that an UPDATE left the index's columns alone; what it is worth depends on
    /// the version (`Behaviour::index_unchanged_hint`).
    ///
    /// # Errors
    /// [`UniqueViolation`] when another live row has the key; nothing was inserted.
    ///
    /// Source: `_bt_doinsert` and `_bt_findinsertloc`, src/backend/access/nbtree/nbtinsert.c
    /// (REL_18_STABLE). Differs: the cached rightmost leaf is not kept, which saves time only.
    pub fn insert(
        &mut self,
        entry: Entry<'_>,
        check: UniqueCheck,
        index_unchanged: bool,
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) -> Result<bool, UniqueViolation> {
        let checking_unique = self.definition.is_unique
            && (self.definition.nulls_not_distinct || !has_null(entry.key));
        self.ensure_root(table, sink);
        let full = SearchKey {
            values: entry.key,
            tid: Some(entry.tid),
        };
        let first = SearchKey {
            tid: full.tid.filter(|_| !checking_unique),
            ..full
        };
        let mut block = self
            .find_leaf(first, Tie::PivotIsSmaller)
            .expect("the tree has a root");
        // 13 knows no such hint.
        let index_unchanged = index_unchanged && self.behaviour.btree_bottom_up_deletion;
        let mut duplicates = Duplicates {
            checking_unique,
            unique_duplicate: index_unchanged,
            index_unchanged,
        };
        let mut is_only = false;
        if checking_unique {
            let checked = self.check_unique(block, entry.key, table, sink);
            let equals = match (checked, check) {
                (Err(_), UniqueCheck::Partial) => Equals::CONFLICT,
                (checked, _) => checked?,
            };
            is_only = !equals.on_first_page && !equals.looked_further;
            duplicates.unique_duplicate |= equals.on_first_page;
            let start = block;
            while self.is_beyond(full, block) {
                block = self.page(block).next;
            }
            duplicates.unique_duplicate |= block != start;
        }
        let bytes = self.shapes.get(entry.shape).leaf_bytes();
        if self.page(block).free_space() < u32::from(bytes) {
            self.delete_or_dedup(block, entry, duplicates, table, sink);
        }
        self.insert_on_leaf(block, first, (entry, bytes), table, sink);
        Ok(is_only)
    }

    /// Whether a key belongs to a page further right.
    fn is_beyond(&self, search: SearchKey<'_>, block: BlockNumber) -> bool {
        let page = self.page(block);
        !page.is_rightmost()
            && (page.is_ignored() || compare(search, page, 0, Tie::PivotIsSmaller).is_gt())
    }

    /// The end of `_bt_findinsertloc`, and posting list splits of `_bt_insertonpg`. `first` is what
    /// the leaf was found by: the way to it is asked for again where it is needed.
    fn insert_on_leaf(
        &mut self,
        block: BlockNumber,
        first: SearchKey<'_>,
        (entry, bytes): (Entry<'_>, u16),
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) {
        let search = SearchKey {
            values: entry.key,
            tid: Some(entry.tid),
        };
        let place = |tree: &Self| {
            let page = tree.page(block);
            let near = tree.expected_position(block);
            let position = lower_bound_near(search, page, Tie::PivotIsSmaller, near);
            let is_inside = position < page.len()
                && compare(search, page, position, Tie::PivotIsSmaller) == Ordering::Equal;
            (position, is_inside)
        };
        let (mut position, mut is_inside) = place(self);
        if is_inside && self.page(block).item(position).is_dead() {
            self.simple_deletion(block, entry.tid, table, sink);
            (position, is_inside) = place(self);
        }
        let columns = self.definition.key_columns;
        let mut tid = entry.tid;
        let mut posting_offset = None;
        if is_inside {
            let item = self.page(block).item(position);
            let tids = item.posting().expect("a TID is inserted only once");
            let offset = tids.partition_point(|&other| other < tid);
            let slots = self.page_mut(block).slots_mut();
            tid = slots.posting_mut(position).swap(offset, tid);
            posting_offset = Some(offset);
            position += 1;
        }
        let insertion = Insertion {
            block,
            position,
            item: OwnedItem::leaf(tid, entry.shape, bytes, columns),
            child: None,
            posting_offset,
            child_was_only: false,
        };
        if self.page(block).free_space() >= u32::from(bytes) {
            self.add_to_page(insertion, entry.key, sink);
            return;
        }
        let (_, stack) = self
            .descend(first, Tie::PivotIsSmaller)
            .expect("the tree has a root");
        self.split_and_link(insertion, entry.key, stack, table, sink);
    }

    /// Adds an item to a page, splitting it if there is no room.
    ///
    /// Source: `_bt_insertonpg`, src/backend/access/nbtree/nbtinsert.c (REL_18_STABLE).
    pub(super) fn insert_on_page(
        &mut self,
        insertion: Insertion,
        key: &[i64],
        stack: Stack,
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) {
        if self.page(insertion.block).free_space() < insertion.item.bytes() {
            self.split_and_link(insertion, key, stack, table, sink);
        } else {
            self.add_to_page(insertion, key, sink);
        }
    }

    /// The same where there is room.
    fn add_to_page(&mut self, insertion: Insertion, key: &[i64], sink: &mut impl Sink) {
        let block = insertion.block;
        let bytes = insertion.item.bytes();
        let page = self.page_mut(block);
        page.insert(insertion.position, insertion.item, key);
        let level = page.level;
        let record = match insertion.child {
            None if insertion.posting_offset.is_none() => {
                Record::new(RecordKind::InsertLeaf, 2).change(block, self.page(block), bytes)
            }
            None => {
                Record::new(RecordKind::InsertPost, 2).change(block, self.page(block), 2 + bytes)
            }
            Some(child) => {
                let moves_fast_root = insertion.child_was_only && self.meta.fast_level < level;
                let kind = if moves_fast_root {
                    RecordKind::InsertMeta
                } else {
                    RecordKind::InsertUpper
                };
                let record = Record::new(kind, 2)
                    .change(block, self.page(block), bytes)
                    .change(child, self.page(child), 0);
                if moves_fast_root {
                    self.meta.fast_root = Some(block);
                    self.meta.fast_level = level;
                    record.metapage(self.behaviour.btree_metadata_bytes)
                } else {
                    record
                }
            }
        };
        self.log(sink, &record);
    }

    /// Makes room without a split, if it can.
    ///
    /// Source: `_bt_delete_or_dedup_one_page`, nbtinsert.c (REL_18_STABLE).
    fn delete_or_dedup(
        &mut self,
        block: BlockNumber,
        entry: Entry<'_>,
        duplicates: Duplicates,
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) {
        let mut unique_duplicate = duplicates.unique_duplicate;
        let bytes = u32::from(self.shapes.get(entry.shape).leaf_bytes());
        if self.simple_deletion(block, entry.tid, table, sink) {
            if self.page(block).free_space() >= bytes {
                return;
            }
            unique_duplicate = true;
        }
        if duplicates.checking_unique && !unique_duplicate {
            return;
        }
        let tries_bottom_up = (duplicates.index_unchanged || unique_duplicate)
            && self.behaviour.btree_bottom_up_deletion;
        if tries_bottom_up && self.bottom_up_deletion(block, bytes, table, sink) {
            return;
        }
        if self.definition.deduplicate_items && self.definition.all_equal_image {
            let single_value = !tries_bottom_up
                && (self.behaviour.btree_bottom_up_deletion || !duplicates.checking_unique);
            self.deduplicate(block, entry.key, bytes, single_value, sink);
        }
    }
}
