//! Hash indexes: what lies on their pages, and how many buckets there are for how many rows.
//!
//! Source: src/include/access/hash.h; src/backend/access/hash/hashutil.c, hashpage.c
//! (REL_15_STABLE, REL_18_STABLE).

use crate::page::{BLCKSZ, SIZE_OF_ITEM_ID};

/// Bytes at the end of each page. Source: `HashPageOpaqueData`.
pub const SIZE_OF_HASH_PAGE_OPAQUE: u32 = 16;
/// `hasho_page_id`. Source: `HASHO_PAGE_ID`.
pub const HASHO_PAGE_ID: u16 = 0xFF80;
/// `hasho_flag` of an overflow page.
pub const LH_OVERFLOW_PAGE: u16 = 1;
/// `hasho_flag` of a bucket's first page.
pub const LH_BUCKET_PAGE: u16 = 2;
/// `hasho_flag` of a page of the bitmap.
pub const LH_BITMAP_PAGE: u16 = 4;
/// `hasho_flag` of the metapage.
pub const LH_META_PAGE: u16 = 8;
/// Bytes of the metapage's data. Source: `HashMetaPageData`.
pub const SIZE_OF_HASH_META_PAGE: u32 = 4544;
/// Bytes of a page of the bitmap, and its bits as a power of 2. Source: `_hash_init_metabuffer`.
pub const BITMAP_BYTES: u32 = 4096;
/// See [`BITMAP_BYTES`].
pub const BITMAP_SHIFT: u32 = 15;
/// Bytes of an entry: a TID and its flags, and the hash code, aligned.
pub const HASH_ENTRY_BYTES: u32 = 16;
/// Split points, of which the first ten have one phase and the others four.
///
/// Source: `HASH_MAX_SPLITPOINTS`.
pub const SPLIT_POINTS: usize = 98;

const GROUPS_OF_ONE_PHASE: u32 = 10;
const PHASE_BITS: u32 = 2;
const PHASE_MASK: u32 = (1 << PHASE_BITS) - 1;
/// Fewest entries a bucket, and most buckets. Source: `_hash_init`, `_hash_init_metabuffer`.
const FFACTOR_MIN: u32 = 10;
const BUCKETS_MAX: u32 = 1 << 30;

/// Entries a bucket at which a further one is made.
///
/// Source: `_hash_init`, `HashGetTargetPageUsage`.
#[must_use]
pub fn ffactor(fillfactor: u32) -> u32 {
    let target = BLCKSZ * fillfactor / 100;
    (target / (HASH_ENTRY_BYTES + SIZE_OF_ITEM_ID)).max(FFACTOR_MIN)
}

/// Buckets that an index is built with for so many rows.
///
/// Source: `_hash_init_metabuffer`.
#[must_use]
pub fn buckets(rows: u64, ffactor: u32) -> u32 {
    if rows <= 2 * u64::from(ffactor) {
        return 2;
    }
    let wanted = u32::try_from(rows / u64::from(ffactor)).unwrap_or(BUCKETS_MAX);
    total_buckets(spare_index(wanted.min(BUCKETS_MAX)))
}

/// The split point, by phases, of so many buckets.
///
/// Source: `_hash_spareindex`.
#[must_use]
pub fn spare_index(buckets: u32) -> u32 {
    let group = buckets.next_power_of_two().ilog2();
    if group < GROUPS_OF_ONE_PHASE {
        return group;
    }
    let phase = ((buckets - 1) >> (group - (PHASE_BITS + 1))) & PHASE_MASK;
    GROUPS_OF_ONE_PHASE + ((group - GROUPS_OF_ONE_PHASE) << PHASE_BITS) + phase
}

/// Buckets up to a split point.
///
/// Source: `_hash_get_totalbuckets`.
#[must_use]
pub const fn total_buckets(point: u32) -> u32 {
    if point < GROUPS_OF_ONE_PHASE {
        return 1 << point;
    }
    let group = GROUPS_OF_ONE_PHASE + ((point - GROUPS_OF_ONE_PHASE) >> PHASE_BITS);
    let before = 1 << (group - 1);
    let phases = ((point - GROUPS_OF_ONE_PHASE) & PHASE_MASK) + 1;
    before + (before >> PHASE_BITS) * phases
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups below 1024 buckets double, those above grow by quarters.
    #[test]
    fn split_points_and_their_buckets() {
        for (buckets, point) in [
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (512, 9),
            (513, 10),
            (640, 10),
        ] {
            assert_eq!(spare_index(buckets), point, "{buckets}");
        }
        for (point, buckets) in [
            (0, 1),
            (9, 512),
            (10, 640),
            (11, 768),
            (13, 1024),
            (14, 1280),
        ] {
            assert_eq!(total_buckets(point), buckets, "{point}");
            assert_eq!(spare_index(buckets), point);
        }
        assert_eq!(ffactor(75), 307);
        assert_eq!(
            [0, 614, 615, 30_000, 330_000].map(|rows| buckets(rows, 307)),
            [2, 2, 2, 128, 1280]
        );
    }
}
