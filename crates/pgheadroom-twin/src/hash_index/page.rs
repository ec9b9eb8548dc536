//! A page of a bucket: entries in the order of their hash codes.

use pgheadroom_layout::hash_index::{HASH_ENTRY_BYTES, SIZE_OF_HASH_PAGE_OPAQUE};
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER};

use crate::page::Tid;

/// Bytes of an entry and its line pointer.
const ENTRY_BYTES: u32 = HASH_ENTRY_BYTES + SIZE_OF_ITEM_ID;
/// Bytes of an empty page's hole.
pub(super) const EMPTY_HOLE_BYTES: u32 = BLCKSZ - SIZE_OF_PAGE_HEADER - SIZE_OF_HASH_PAGE_OPAQUE;
/// Entries that a page has room for.
const ENTRIES_MAX: usize = (EMPTY_HOLE_BYTES / ENTRY_BYTES) as usize;

/// A page of a bucket, or one that none has.
#[derive(Debug, Default)]
pub(super) struct BucketPage {
    /// Its bucket.
    pub bucket: Option<u32>,
    /// Hash codes in their order, and the row versions.
    pub entries: Vec<(u32, Tid)>,
    /// Whether its first entries came from another bucket, in the order of their codes.
    pub is_of_split: bool,
    /// The page before it in its bucket; a bucket's first page has none.
    pub previous: Option<u32>,
    /// The page behind it.
    pub next: Option<u32>,
}

impl BucketPage {
    /// Whether so many entries fit in beside those that are there.
    pub fn has_room(&self, entries: usize) -> bool {
        self.entries.len() + entries <= ENTRIES_MAX
    }

    /// Puts an entry before those of its code.
    ///
    /// Source: `_hash_pgaddtup`, src/backend/access/hash/hashinsert.c (REL_18_STABLE).
    pub fn add(&mut self, code: u32, tid: Tid) {
        let place = self.entries.partition_point(|(other, _)| *other < code);
        self.entries.insert(place, (code, tid));
    }

    pub fn hole_bytes(&self) -> u32 {
        let entries = u32::try_from(self.entries.len()).expect("entries of a page");
        EMPTY_HOLE_BYTES - entries * ENTRY_BYTES
    }
}
