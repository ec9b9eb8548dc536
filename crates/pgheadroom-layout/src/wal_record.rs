//! Size of every WAL record kind that heap, B-tree and their maps write (`xl_tot_len`).
//!
//! ```text
//! | header 24 | block 0 header | block 1 header ... | main data header | block data | main data |
//!               4 + 12 relation  4 (same relation)    0, 2 or 5
//!                 + 4 block        + 4 block
//!                 + 5 image
//! ```
//!
//! A block's data is dropped when its full-page image is taken, except for tuples at
//! `wal_level = logical`. The caller says what happens to each page by [`Page`]; which pages owe an
//! image is the twin's business. Sizes are sums as `pg_stat_wal` and EXPLAIN count them.

use crate::page::BLCKSZ;
use crate::version::Behaviour;

mod brin;
mod btree;
mod gin;
mod hash;
mod heap;
#[cfg(test)]
mod tests;

pub use brin::{brin_insert, brin_samepage_update, brin_update};
pub use btree::{
    LeafDeletion, Split, btree_dedup, btree_delete, btree_first_root, btree_insert_leaf,
    btree_insert_post, btree_insert_upper, btree_mark_page_halfdead, btree_meta_cleanup,
    btree_new_root, btree_split, btree_unlink_page, btree_vacuum,
};
pub use gin::{
    Inserted as GinInserted, gin_create_posting_tree, gin_delete_list_pages, gin_delete_page,
    gin_insert, gin_insert_list_page, gin_split, gin_update_meta_page, gin_vacuum_data_leaf_page,
    gin_vacuum_page,
};
pub use hash::{
    Squeezed, hash_add_ovfl_page, hash_delete, hash_init_bitmap_page, hash_init_meta_page,
    hash_insert, hash_move_page_contents, hash_split_allocate_page, hash_split_cleanup,
    hash_split_complete, hash_split_page, hash_squeeze_page, hash_update_meta_page,
};
pub use heap::{
    HEAP_CLEANUP_INFO, PageCleaning, SharedBytes, heap_confirm, heap_delete, heap_freeze,
    heap_insert, heap_lock, heap_multi_insert, heap_prune, heap_prune_and_visible,
    heap_update_cross_page, heap_update_same_page, heap_vacuum_cleanup, heap_visible,
};

/// Header of a record. Source: `SizeOfXLogRecord`, src/include/access/xlogrecord.h.
pub const SIZE_OF_XLOG_RECORD: u32 = 24;
/// Header of a block. Source: `SizeOfXLogRecordBlockHeader`, xlogrecord.h.
const SIZE_OF_BLOCK_HEADER: u32 = 4;
/// Which relation, and which block of it. Source: `RelFileLocator`, `BlockNumber`, xlogrecord.h.
const SIZE_OF_RELATION: u32 = 12;
const SIZE_OF_BLOCK_NUMBER: u32 = 4;
/// Header of an image. Source: `SizeOfXLogRecordBlockImageHeader`, xlogrecord.h.
const SIZE_OF_IMAGE_HEADER: u32 = 5;
/// Length of the hole of a compressed image. Source: `SizeOfXLogRecordBlockCompressHeader`.
const SIZE_OF_COMPRESS_HEADER: u32 = 2;
/// A full-page image as stored in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Image {
    stored_bytes: u32,
    has_compressed_hole: bool,
}

impl Image {
    /// An image without compression of a page with a hole of `hole_bytes` between its line
    /// pointers and its items; 0 for the pages of free space and visibility maps.
    ///
    /// # Panics
    /// When the hole is larger than a page.
    #[must_use]
    pub const fn plain(hole_bytes: u32) -> Self {
        assert!(hole_bytes <= BLCKSZ, "a hole is part of a page");
        Self {
            stored_bytes: BLCKSZ - hole_bytes,
            has_compressed_hole: false,
        }
    }

    /// An image that compression (`wal_compression`) reduced to `stored_bytes`.
    #[must_use]
    pub const fn compressed(stored_bytes: u32, has_hole: bool) -> Self {
        Self {
            stored_bytes,
            has_compressed_hole: has_hole,
        }
    }

    /// Bytes of the image itself (`fpi_bytes`).
    #[must_use]
    pub const fn stored_bytes(self) -> u32 {
        self.stored_bytes
    }

    /// Bytes of a record that it takes, with its headers.
    ///
    /// Source: `XLogRecordBlockImageHeader`, src/include/access/xlogrecord.h (REL_18_STABLE).
    #[must_use]
    pub const fn record_bytes(self) -> u32 {
        let hole = if self.has_compressed_hole {
            SIZE_OF_COMPRESS_HEADER
        } else {
            0
        };
        SIZE_OF_IMAGE_HEADER + hole + self.stored_bytes
    }
}

/// What a record carries of a page it registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Page {
    /// The change only.
    Change,
    /// The page's image instead of the change.
    Image(Image),
    /// The page's image and the change (tuples at `wal_level = logical`).
    ImageAndChange(Image),
}

/// A record's length, summed up block by block.
///
/// Source: `XLogRecordAssemble`, src/backend/access/transam/xloginsert.c (REL_18_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordSize {
    bytes: u32,
    has_block: bool,
}

impl RecordSize {
    /// A record with so many bytes of main data and no block yet.
    #[must_use]
    #[inline]
    pub const fn with_main_data(main_bytes: u32) -> Self {
        let header = match main_bytes {
            0 => 0,
            1..=255 => 2,
            256.. => 5,
        };
        Self {
            bytes: SIZE_OF_XLOG_RECORD + header + main_bytes,
            has_block: false,
        }
    }

    /// Adds a block of the same relation as the blocks before it; forks do not matter.
    #[must_use]
    #[inline]
    pub const fn block(self, page: Page, data_bytes: u32) -> Self {
        let relation = if self.has_block { 0 } else { SIZE_OF_RELATION };
        let contents = match page {
            Page::Change => data_bytes,
            Page::Image(image) => image.record_bytes(),
            Page::ImageAndChange(image) => image.record_bytes() + data_bytes,
        };
        Self {
            bytes: self.bytes + SIZE_OF_BLOCK_HEADER + relation + SIZE_OF_BLOCK_NUMBER + contents,
            has_block: true,
        }
    }

    /// Adds a block if there is one.
    #[must_use]
    pub(crate) const fn maybe_block(self, page: Option<Page>, data_bytes: u32) -> Self {
        match page {
            Some(page) => self.block(page, data_bytes),
            None => self,
        }
    }

    /// `xl_tot_len`.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.bytes
    }
}

/// XLOG FPI_FOR_HINT; without an image when `full_page_writes` is off.
///
/// Source: `XLogSaveBufferForHint`, src/backend/access/transam/xloginsert.c.
#[must_use]
pub const fn fpi_for_hint(page: Page) -> u32 {
    RecordSize::with_main_data(0).block(page, 0).bytes()
}

/// XLOG FPI records of an index build that writes pages with these images, all together.
///
/// Source: `log_newpages`, src/backend/access/transam/xloginsert.c; `smgr_bulk_flush`,
/// src/backend/storage/smgr/bulk_write.c (REL_17_STABLE).
#[must_use]
pub fn index_build(behaviour: &Behaviour, images: &[Image]) -> (usize, u64) {
    let per_record = behaviour.index_build_pages_per_record as usize;
    let records = images.chunks(per_record);
    let count = records.len();
    let bytes = records
        .map(|pages| u64::from(index_build_record(pages)))
        .sum();
    (count, bytes)
}

/// One such record: whole pages of one relation, at most 32.
///
/// Source: `log_newpage` and `log_newpages`, src/backend/access/transam/xloginsert.c.
#[must_use]
pub fn index_build_record(images: &[Image]) -> u32 {
    let record = images
        .iter()
        .fold(RecordSize::with_main_data(0), |record, &image| {
            record.block(Page::Image(image), 0)
        });
    record.bytes()
}

/// Transaction COMMIT without invalidations, dropped relations or subtransactions.
///
/// Source: `XactLogCommitRecord`, src/backend/access/transam/xact.c.
pub const COMMIT: u32 = RecordSize::with_main_data(8).bytes();
/// Transaction COMMIT at `wal_level = logical`, which names the database.
///
/// Source: `XactLogCommitRecord` (`xl_xact_dbinfo`), src/backend/access/transam/xact.c.
pub const COMMIT_LOGICAL: u32 = RecordSize::with_main_data(8 + 4 + 8).bytes();
/// What the numbers of subtransactions add to a COMMIT or ABORT.
///
/// Source: `xl_xact_xinfo` and `xl_xact_subxacts` in `XactLogCommitRecord`,
/// src/backend/access/transam/xact.c.
#[must_use]
pub const fn subtransactions(count: u32, is_logical: bool) -> u32 {
    match (count, is_logical) {
        (0, _) => 0,
        (count, true) => 4 + 4 * count,
        (count, false) => 4 + 4 + 4 * count,
    }
}

/// MultiXact CREATE_ID: number, place of the first member, how many, and each with what it does.
///
/// Source: `MultiXactIdCreateFromMembers`, src/backend/access/transam/multixact.c.
#[must_use]
pub const fn multixact_create(members: u32, offset_bytes: u32) -> u32 {
    // The place is aligned to its own size.
    let header = if offset_bytes == 8 { 20 } else { 12 };
    RecordSize::with_main_data(header + 8 * members).bytes()
}

/// MultiXact ZERO_MEM_PAGE and ZERO_OFF_PAGE: the page's number.
///
/// Source: `WriteMZeroPageXlogRec`, src/backend/access/transam/multixact.c.
#[must_use]
pub const fn multixact_zero_page(number_bytes: u32) -> u32 {
    RecordSize::with_main_data(number_bytes).bytes()
}

/// Sequence LOG, once every 32 values. Source: `nextval_internal`, src/backend/commands/sequence.c.
pub const SEQUENCE_LOG: u32 = RecordSize::with_main_data(12 + 24 + 17)
    .block(Page::Change, 0)
    .bytes();
/// Standby LOCK of one relation. Source: `LogAccessExclusiveLock`, storage/ipc/standby.c.
pub const STANDBY_LOCK: u32 = RecordSize::with_main_data(16).bytes();
/// Storage TRUNCATE. Source: `RelationTruncate`, src/backend/catalog/storage.c.
pub const STORAGE_TRUNCATE: u32 = RecordSize::with_main_data(20).bytes();
/// Storage CREATE. Source: `log_smgrcreate`, src/backend/catalog/storage.c.
pub const STORAGE_CREATE: u32 = RecordSize::with_main_data(16).bytes();

const _: () = assert!(COMMIT == 34);
const _: () = assert!(multixact_create(2, 4) == 54 && multixact_create(3, 4) == 62);
const _: () = assert!(multixact_create(2, 8) == 62);
const _: () = assert!(multixact_zero_page(4) == 30 && multixact_zero_page(8) == 34);
const _: () = assert!(SEQUENCE_LOG == 99);
const _: () = assert!(STANDBY_LOCK == 42 && STORAGE_TRUNCATE == 46 && STORAGE_CREATE == 42);
