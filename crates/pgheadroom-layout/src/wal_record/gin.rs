//! Records of GIN indexes.
//!
//! Source: src/include/access/ginxlog.h (REL_15_STABLE, REL_18_STABLE).

use crate::gin::{SIZE_OF_GIN_META_PAGE, SIZE_OF_POSTING_ITEM};
use crate::wal_record::{Page, RecordSize};

/// Numbers of two child pages, each as `BlockIdData`.
const CHILDREN_BYTES: u32 = 8;
/// What stands before an entry: its place, and whether it replaces one.
const ENTRY_HEAD_BYTES: u32 = 4;

/// What an insertion puts on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// An entry of so many bytes.
    Entry(u32),
    /// Changes to the lists of a posting tree's leaf, of so many bytes.
    Lists(u32),
    /// An item of a posting tree's inner page.
    PostingItem,
}

impl Inserted {
    const fn bytes(self) -> u32 {
        match self {
            Self::Entry(bytes) => ENTRY_HEAD_BYTES + bytes,
            Self::Lists(bytes) => bytes,
            Self::PostingItem => 2 + SIZE_OF_POSTING_ITEM,
        }
    }
}

/// GIN INSERT; `child` is the page whose split it makes known, on an inner page.
///
/// Source: `ginPlaceToPage`, src/backend/access/gin/ginbtree.c (REL_18_STABLE).
#[must_use]
pub const fn gin_insert(page: Page, inserted: Inserted, child: Option<Page>) -> u32 {
    let children = if child.is_some() { CHILDREN_BYTES } else { 0 };
    RecordSize::with_main_data(2 + children)
        .block(page, inserted.bytes())
        .maybe_block(child, 0)
        .bytes()
}

/// GIN SPLIT: both halves, the new root if the root was split, each as it is, and the child whose
/// split it makes known.
///
/// Source: `ginPlaceToPage`, src/backend/access/gin/ginbtree.c (REL_18_STABLE).
#[must_use]
pub const fn gin_split(left: Page, right: Page, root: Option<Page>, child: Option<Page>) -> u32 {
    RecordSize::with_main_data(28)
        .block(left, 0)
        .block(right, 0)
        .maybe_block(root, 0)
        .maybe_block(child, 0)
        .bytes()
}

/// GIN `CREATE_PTREE` with so many bytes of posting lists.
///
/// Source: `createPostingTree`, src/backend/access/gin/gindatapage.c (REL_18_STABLE).
#[must_use]
pub const fn gin_create_posting_tree(root: Page, list_bytes: u32) -> u32 {
    RecordSize::with_main_data(4 + list_bytes)
        .block(root, 0)
        .bytes()
}

/// GIN `VACUUM_PAGE`: a leaf of entries, whole.
///
/// Source: `xlogVacuumPage`, src/backend/access/gin/ginvacuum.c (REL_18_STABLE).
#[must_use]
pub const fn gin_vacuum_page(image: Page) -> u32 {
    RecordSize::with_main_data(0).block(image, 0).bytes()
}

/// GIN `VACUUM_DATA_LEAF_PAGE`: changes of so many bytes to the lists of a posting tree's leaf.
///
/// Source: `ginVacuumPostingTreeLeaf`, src/backend/access/gin/gindatapage.c (REL_18_STABLE).
#[must_use]
pub const fn gin_vacuum_data_leaf_page(leaf: Page, changes: u32) -> u32 {
    RecordSize::with_main_data(0).block(leaf, changes).bytes()
}

/// GIN `DELETE_PAGE` of a posting tree.
///
/// Source: `ginDeletePage`, src/backend/access/gin/ginvacuum.c (REL_18_STABLE).
#[must_use]
pub const fn gin_delete_page(deleted: Page, parent: Page, left: Page) -> u32 {
    RecordSize::with_main_data(12)
        .block(deleted, 0)
        .block(parent, 0)
        .block(left, 0)
        .bytes()
}

/// GIN `UPDATE_META_PAGE`; `tail` is the page to which so many bytes are added, or which leads to
/// a new one.
///
/// Source: `ginHeapTupleFastInsert`, src/backend/access/gin/ginfast.c; `ginUpdateStats`,
/// src/backend/access/gin/ginutil.c (REL_18_STABLE).
#[must_use]
pub const fn gin_update_meta_page(meta: Page, tail: Option<(Page, u32)>) -> u32 {
    // The relation (12, padded), the metapage, two blocks and a number (12, padded).
    let size = RecordSize::with_main_data(16 + SIZE_OF_GIN_META_PAGE + 16).block(meta, 0);
    match tail {
        Some((page, bytes)) => size.block(page, bytes).bytes(),
        None => size.bytes(),
    }
}

/// GIN `INSERT_LISTPAGE`: a page of the pending list, with tuples of so many bytes.
///
/// Source: `writeListPage`, src/backend/access/gin/ginfast.c (REL_18_STABLE).
#[must_use]
pub const fn gin_insert_list_page(page: Page, tuple_bytes: u32) -> u32 {
    RecordSize::with_main_data(8)
        .block(page, tuple_bytes)
        .bytes()
}

/// GIN `DELETE_LISTPAGE` of so many pages of the pending list.
///
/// Source: `shiftList`, src/backend/access/gin/ginfast.c (REL_18_STABLE).
#[must_use]
pub const fn gin_delete_list_pages(meta: Page, pages: u32) -> u32 {
    let mut size = RecordSize::with_main_data(SIZE_OF_GIN_META_PAGE + 8).block(meta, 0);
    let mut page = 0;
    while page < pages {
        size = size.block(Page::Change, 0);
        page += 1;
    }
    size.bytes()
}
