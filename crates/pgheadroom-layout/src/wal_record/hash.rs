//! Records of hash indexes.

use crate::hash_index::HASH_ENTRY_BYTES;
use crate::wal_record::{Page, RecordSize};

const OFFSET_BYTES: u32 = 2;
const WORD_BYTES: u32 = 4;

/// HASH INSERT of an entry into a page; the metapage counts it.
///
/// Source: `_hash_doinsert`, src/backend/access/hash/hashinsert.c (REL_18_STABLE).
#[must_use]
pub const fn hash_insert(page: Page, meta: Page) -> u32 {
    RecordSize::with_main_data(2)
        .block(page, HASH_ENTRY_BYTES)
        .block(meta, 0)
        .bytes()
}

/// HASH `ADD_OVFL_PAGE`: a page behind `tail`; `map` is the bitmap's page in which a free one was
/// found, `new_map` a page of the bitmap that is made for it.
///
/// Source: `_hash_addovflpage`, src/backend/access/hash/hashovfl.c (REL_18_STABLE).
#[must_use]
pub const fn hash_add_ovfl_page(
    new: Page,
    tail: Page,
    map: Option<Page>,
    new_map: Option<Page>,
    meta: Page,
) -> u32 {
    let mut size = RecordSize::with_main_data(3)
        .block(new, WORD_BYTES)
        .block(tail, 0);
    if let Some(map) = map {
        size = size.block(map, WORD_BYTES);
    }
    if let Some(new_map) = new_map {
        size = size.block(new_map, 0);
    }
    size.block(meta, WORD_BYTES).bytes()
}

/// HASH `SPLIT_ALLOCATE_PAGE`: a new bucket; whether the masks change, and the split point.
///
/// Source: `_hash_expandtable`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
#[must_use]
pub const fn hash_split_allocate_page(
    old: Page,
    new: Page,
    meta: Page,
    new_masks: bool,
    new_split_point: bool,
) -> u32 {
    let words = 2 * (new_masks as u32 + new_split_point as u32);
    RecordSize::with_main_data(9)
        .block(old, 0)
        .block(new, 0)
        .block(meta, words * WORD_BYTES)
        .bytes()
}

/// HASH `SPLIT_PAGE`: a page of the new bucket, whole.
///
/// Source: `log_split_page`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
#[must_use]
pub const fn hash_split_page(image: Page) -> u32 {
    RecordSize::with_main_data(0).block(image, 0).bytes()
}

/// HASH `SPLIT_COMPLETE`.
///
/// Source: `_hash_splitbucket`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
#[must_use]
pub const fn hash_split_complete(old: Page, new: Page) -> u32 {
    RecordSize::with_main_data(4)
        .block(old, 0)
        .block(new, 0)
        .bytes()
}

/// HASH `MOVE_PAGE_CONTENTS`: so many entries go from `read` to `write`, with the bucket's first
/// page where that is neither.
///
/// Source: `_hash_squeezebucket`, src/backend/access/hash/hashovfl.c (REL_18_STABLE).
#[must_use]
pub const fn hash_move_page_contents(
    bucket: Option<Page>,
    write: Page,
    read: Page,
    entries: u32,
) -> u32 {
    let mut size = RecordSize::with_main_data(3);
    if let Some(bucket) = bucket {
        size = size.block(bucket, 0);
    }
    size.block(write, entries * (OFFSET_BYTES + HASH_ENTRY_BYTES))
        .block(read, entries * OFFSET_BYTES)
        .bytes()
}

/// Pages that a HASH `SQUEEZE_PAGE` names, in the order of their numbers in the record.
#[derive(Debug, Clone, Copy, Default)]
pub struct Squeezed {
    /// The bucket's first page, where entries go to another one.
    pub bucket: Option<Page>,
    /// The page to which entries go.
    pub write: Option<Page>,
    /// The page before it, where that is not the one to which entries go.
    pub previous: Option<Page>,
    /// The page behind it.
    pub next: Option<Page>,
    /// The metapage, where the first free page is another one now.
    pub meta: Option<Page>,
}

/// HASH `SQUEEZE_PAGE`: an overflow page is freed, and so many entries go from it to another page.
///
/// Source: `_hash_freeovflpage`, src/backend/access/hash/hashovfl.c (REL_18_STABLE).
#[must_use]
pub const fn hash_squeeze_page(pages: &Squeezed, freed: Page, map: Page, entries: u32) -> u32 {
    let mut size = RecordSize::with_main_data(12);
    if let Some(bucket) = pages.bucket {
        size = size.block(bucket, 0);
    }
    if let Some(write) = pages.write {
        size = size.block(write, entries * (OFFSET_BYTES + HASH_ENTRY_BYTES));
    }
    size = size.block(freed, 0);
    if let Some(previous) = pages.previous {
        size = size.block(previous, 0);
    }
    if let Some(next) = pages.next {
        size = size.block(next, 0);
    }
    size = size.block(map, WORD_BYTES);
    if let Some(meta) = pages.meta {
        size = size.block(meta, WORD_BYTES);
    }
    size.bytes()
}

/// HASH DELETE of so many entries of a page, with the bucket's first page where it is another one.
///
/// Source: `hashbucketcleanup`, src/backend/access/hash/hash.c (REL_18_STABLE).
#[must_use]
pub const fn hash_delete(bucket: Option<Page>, page: Page, entries: u32) -> u32 {
    let mut size = RecordSize::with_main_data(2);
    if let Some(bucket) = bucket {
        size = size.block(bucket, 0);
    }
    size.block(page, entries * OFFSET_BYTES).bytes()
}

/// HASH `SPLIT_CLEANUP`.
///
/// Source: `hashbucketcleanup`, src/backend/access/hash/hash.c (REL_18_STABLE).
#[must_use]
pub const fn hash_split_cleanup(bucket: Page) -> u32 {
    RecordSize::with_main_data(0).block(bucket, 0).bytes()
}

/// HASH `UPDATE_META_PAGE`.
///
/// Source: `hashbulkdelete`, src/backend/access/hash/hash.c (REL_18_STABLE).
#[must_use]
pub const fn hash_update_meta_page(meta: Page) -> u32 {
    RecordSize::with_main_data(8).block(meta, 0).bytes()
}

/// HASH `INIT_META_PAGE`.
///
/// Source: `_hash_init`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
#[must_use]
pub const fn hash_init_meta_page(meta: Page) -> u32 {
    RecordSize::with_main_data(14).block(meta, 0).bytes()
}

/// HASH `INIT_BITMAP_PAGE`.
///
/// Source: `_hash_init`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
#[must_use]
pub const fn hash_init_bitmap_page(map: Page, meta: Page) -> u32 {
    RecordSize::with_main_data(2)
        .block(map, 0)
        .block(meta, 0)
        .bytes()
}
