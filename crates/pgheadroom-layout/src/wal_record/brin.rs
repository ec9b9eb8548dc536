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
