//! Records of B-trees (`Btree`).

use crate::version::Behaviour;
use crate::wal_record::{Page, RecordSize};

/// B-tree INSERT_LEAF. Source: `_bt_insertonpg`, src/backend/access/nbtree/nbtinsert.c.
#[must_use]
pub const fn btree_insert_leaf(index_tuple_bytes: u32, page: Page) -> u32 {
    RecordSize::with_main_data(2)
        .block(page, index_tuple_bytes)
        .bytes()
}

/// B-tree INSERT_POST: an insertion that splits a posting list. Source: `_bt_insertonpg`.
#[must_use]
pub const fn btree_insert_post(index_tuple_bytes: u32, page: Page) -> u32 {
    RecordSize::with_main_data(2)
        .block(page, 2 + index_tuple_bytes)
        .bytes()
}

/// B-tree INSERT_UPPER: a downlink; the child is registered because its split is complete now.
///
/// Source: `_bt_insertonpg`, src/backend/access/nbtree/nbtinsert.c.
#[must_use]
pub const fn btree_insert_upper(pivot_tuple_bytes: u32, page: Page, child: Page) -> u32 {
    RecordSize::with_main_data(2)
        .block(page, pivot_tuple_bytes)
        .block(child, 0)
        .bytes()
}

/// What a B-tree page split logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Split {
    /// The left page's new high key.
    pub high_key_bytes: u32,
    /// The new entry, if it goes to the left page (or splits a posting list there).
    pub left_item_bytes: Option<u32>,
    /// All items of the right page, its high key included, without line pointers.
    pub right_items_bytes: u32,
    /// The left page, which was split.
    pub left: Page,
    /// The page right of both, if there is one.
    pub right_sibling: Option<Page>,
    /// The child whose downlink caused the split, on inner levels.
    pub child: Option<Page>,
}

/// B-tree SPLIT_L or SPLIT_R. Source: `_bt_split`, src/backend/access/nbtree/nbtinsert.c.
#[must_use]
pub const fn btree_split(split: &Split) -> u32 {
    let left_item = match split.left_item_bytes {
        Some(bytes) => bytes,
        None => 0,
    };
    RecordSize::with_main_data(10)
        .block(split.left, left_item + split.high_key_bytes)
        .block(Page::Change, split.right_items_bytes)
        .maybe_block(split.right_sibling, 0)
        .maybe_block(split.child, 0)
        .bytes()
}

/// B-tree NEWROOT of an empty index. Source: `_bt_getroot`, src/backend/access/nbtree/nbtpage.c.
#[must_use]
pub const fn btree_first_root(behaviour: &Behaviour) -> u32 {
    RecordSize::with_main_data(8)
        .block(Page::Change, 0)
        .block(Page::Change, behaviour.btree_metadata_bytes)
        .bytes()
}

/// B-tree NEWROOT after the root was split: two downlinks, the first without a key.
///
/// Source: `_bt_newlevel` (`_bt_newroot` before 17), src/backend/access/nbtree/nbtinsert.c.
#[must_use]
pub const fn btree_new_root(behaviour: &Behaviour, pivot_tuple_bytes: u32, left: Page) -> u32 {
    RecordSize::with_main_data(8)
        .block(Page::Change, 8 + pivot_tuple_bytes)
        .block(left, 0)
        .block(Page::Change, behaviour.btree_metadata_bytes)
        .bytes()
}

/// Entries that a deletion removes from a leaf: whole ones, and TIDs of posting lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LeafDeletion {
    /// Entries removed as a whole.
    pub deleted: u32,
    /// Posting lists that lose some of their TIDs.
    pub updated: u32,
    /// TIDs that these lose.
    pub updated_tids: u32,
}

impl LeafDeletion {
    const fn data_bytes(self) -> u32 {
        2 * self.deleted + 4 * self.updated + 2 * self.updated_tids
    }
}

/// B-tree DELETE. Source: `_bt_delitems_delete`, src/backend/access/nbtree/nbtpage.c.
#[must_use]
pub const fn btree_delete(behaviour: &Behaviour, deletion: LeafDeletion, page: Page) -> u32 {
    RecordSize::with_main_data(behaviour.btree_delete_main_bytes)
        .block(page, deletion.data_bytes())
        .bytes()
}

/// B-tree VACUUM. Source: `_bt_delitems_vacuum`, src/backend/access/nbtree/nbtpage.c.
#[must_use]
pub const fn btree_vacuum(deletion: LeafDeletion, page: Page) -> u32 {
    RecordSize::with_main_data(4)
        .block(page, deletion.data_bytes())
        .bytes()
}

/// B-tree DEDUP with so many merged groups. Source: `_bt_dedup_pass`, nbtdedup.c.
#[must_use]
pub const fn btree_dedup(intervals: u32, page: Page) -> u32 {
    RecordSize::with_main_data(2)
        .block(page, 4 * intervals)
        .bytes()
}

/// B-tree MARK_PAGE_HALFDEAD. Source: `_bt_mark_page_halfdead`, nbtpage.c (REL_14_STABLE).
#[must_use]
pub const fn btree_mark_page_halfdead(parent: Page) -> u32 {
    RecordSize::with_main_data(20)
        .block(Page::Change, 0)
        .block(parent, 0)
        .bytes()
}

/// B-tree UNLINK_PAGE. Source: `_bt_unlink_halfdead_page`, nbtpage.c (REL_14_STABLE).
#[must_use]
pub const fn btree_unlink_page(left_sibling: Option<Page>, right_sibling: Page) -> u32 {
    RecordSize::with_main_data(36)
        .block(Page::Change, 0)
        .maybe_block(left_sibling, 0)
        .block(right_sibling, 0)
        .bytes()
}

/// B-tree META_CLEANUP. Source: `_bt_set_cleanup_info`, nbtpage.c.
#[must_use]
pub const fn btree_meta_cleanup(behaviour: &Behaviour) -> u32 {
    RecordSize::with_main_data(0)
        .block(Page::Change, behaviour.btree_metadata_bytes)
        .bytes()
}
