//! Records of BRIN.

use crate::wal_record::{Page, RecordSize};

/// BRIN SAMEPAGE_UPDATE: a range's summary of `tuple_bytes` replaces the old one on its page.
///
/// Source: `brin_doupdate`, src/backend/access/brin/brin_pageops.c (REL_18_STABLE).
#[must_use]
pub const fn brin_samepage_update(tuple_bytes: u32, page: Page) -> u32 {
    RecordSize::with_main_data(2)
        .block(page, tuple_bytes)
        .bytes()
}

/// Main data of an insertion: a heap block, the pages of a range, an offset.
///
/// Source: `SizeOfBrinInsert`, src/include/access/brin_xlog.h (REL_18_STABLE).
const INSERT_BYTES: u32 = 10;

/// BRIN INSERT: the summary of a range that had none, and its place in the range map.
///
/// Source: `brin_doinsert`, src/backend/access/brin/brin_pageops.c (REL_18_STABLE).
#[must_use]
pub const fn brin_insert(tuple_bytes: u32, page: Page, revmap: Page) -> u32 {
    RecordSize::with_main_data(INSERT_BYTES)
        .block(page, tuple_bytes)
        .block(revmap, 0)
        .bytes()
}

/// BRIN UPDATE: a summary that has no room on its page any more comes to another.
///
/// Source: `brin_doupdate`, src/backend/access/brin/brin_pageops.c (REL_18_STABLE).
#[must_use]
pub const fn brin_update(tuple_bytes: u32, page: Page, revmap: Page, old: Page) -> u32 {
    // The old offset is padded to the insertion's alignment.
    RecordSize::with_main_data(4 + INSERT_BYTES)
        .block(page, tuple_bytes)
        .block(revmap, 0)
        .block(old, 0)
        .bytes()
}
