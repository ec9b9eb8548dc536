//! One 8192-byte page: its header, its line pointers and how many rows fit.
//!
//! ```text
//! 0         24                    pd_lower          pd_upper                      8192
//! | header  | line pointer 1 2 3 ... | free space      | ... tuple 3 tuple 2 tuple 1 |
//!             4 bytes each  ->                      <-  each MAXALIGN(length) bytes
//! ```
//!
//! Arithmetic only: a page with contents lives in the twin. B-tree pages, which end in a special
//! area of 16 bytes, are in [`crate::btree`].

use crate::align::{MAXIMUM_ALIGNOF, maxalign};
use crate::error::LayoutError;

/// Bytes of a page. Source: `BLCKSZ`, configure (default; the only size modelled).
pub const BLCKSZ: u32 = 8192;
/// Bytes of the page header. Source: `SizeOfPageHeaderData`, src/include/storage/bufpage.h.
pub const SIZE_OF_PAGE_HEADER: u32 = 24;
/// Bytes of a line pointer. Source: `ItemIdData`, src/include/storage/itemid.h.
pub const SIZE_OF_ITEM_ID: u32 = 4;
/// Fixed part of the tuple header. Source: `SizeofHeapTupleHeader`, access/htup_details.h.
pub const SIZE_OF_HEAP_TUPLE_HEADER: u32 = 23;
/// Smallest `t_hoff`: the tuple header of 23 bytes without a null bitmap, aligned.
pub const SMALLEST_HOFF: u32 = maxalign(SIZE_OF_HEAP_TUPLE_HEADER);
/// Longest tuple that fits a page. Source: `MaxHeapTupleSize`, src/include/access/htup_details.h.
pub const MAX_HEAP_TUPLE_SIZE: u32 = BLCKSZ - maxalign(SIZE_OF_PAGE_HEADER + SIZE_OF_ITEM_ID);
/// Most line pointers of a heap page. Source: `MaxHeapTuplesPerPage`, htup_details.h.
pub const MAX_HEAP_TUPLES_PER_PAGE: u32 =
    (BLCKSZ - SIZE_OF_PAGE_HEADER) / (SMALLEST_HOFF + SIZE_OF_ITEM_ID);
/// Free bytes above which a page counts as nearly empty, so that a wide row may use it in spite
/// of the fillfactor (14 and later): an eighth of the line pointers may already exist.
///
/// Source: `nearlyEmptyFreeSpace` in `RelationGetBufferForTuple`, src/backend/access/heap/hio.c.
pub const NEARLY_EMPTY_FREE_SPACE: u32 =
    MAX_HEAP_TUPLE_SIZE - MAX_HEAP_TUPLES_PER_PAGE / 8 * SIZE_OF_ITEM_ID;
/// Smallest fillfactor of a heap. Source: `HEAP_MIN_FILLFACTOR`, src/include/utils/rel.h.
pub const HEAP_MIN_FILLFACTOR: u32 = 10;
/// Default fillfactor of a heap. Source: `HEAP_DEFAULT_FILLFACTOR`, src/include/utils/rel.h.
pub const HEAP_DEFAULT_FILLFACTOR: u32 = 100;
/// Pages that a relation can have. Source: `MaxBlockNumber`, src/include/storage/block.h.
pub const MAX_PAGES: u64 = 0xFFFF_FFFF;

const _: () = assert!(SIZE_OF_PAGE_HEADER.is_multiple_of(MAXIMUM_ALIGNOF));
const _: () = assert!(MAX_HEAP_TUPLE_SIZE == 8160);
const _: () = assert!(MAX_HEAP_TUPLES_PER_PAGE == 291);
const _: () = assert!(NEARLY_EMPTY_FREE_SPACE == 8016);
const _: () = assert!(NEARLY_EMPTY_FREE_SPACE < MAX_HEAP_TUPLE_SIZE);
// An empty page takes the longest tuple: its free space leaves room for one line pointer.
const _: () = assert!(MAX_HEAP_TUPLE_SIZE <= BLCKSZ - SIZE_OF_PAGE_HEADER - SIZE_OF_ITEM_ID);

/// Number of a page in its relation, from 0 (`blkno`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(pub u32);

/// Number of a line pointer on its page, from 1 (`offnum`); 0 is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetNumber(pub u16);

/// Which rule a page must pass before an insertion may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InsertTarget {
    /// 13: a row that together with the reserve exceeds an empty page always extends the table.
    ReserveOrExtend,
    /// 14 and later: such a row may also use a page that is nearly empty.
    NearlyEmptyPage,
}

/// Fillfactor of a heap that was checked: 10 to 100 percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeapFillfactor(u32);

impl HeapFillfactor {
    /// No byte is left free.
    pub const FULL: Self = Self(100);

    /// Takes a fillfactor in percent.
    ///
    /// # Errors
    /// [`LayoutError::OutOfRange`] outside 10 to 100.
    pub fn new(fillfactor: i64) -> Result<Self, LayoutError> {
        checked_fillfactor(fillfactor, HEAP_MIN_FILLFACTOR).map(Self)
    }

    /// The percentage.
    #[must_use]
    pub const fn percent(self) -> u32 {
        self.0
    }

    /// Bytes that insertions leave free on each page.
    ///
    /// Source: `RelationGetTargetPageFreeSpace`, src/include/utils/rel.h (REL_18_STABLE).
    #[must_use]
    pub const fn reserve_bytes(self) -> u32 {
        BLCKSZ * (100 - self.0) / 100
    }
}

/// Checks a fillfactor against the smallest that the kind of relation allows.
///
/// # Errors
/// [`LayoutError::OutOfRange`] outside `min` to 100.
pub(crate) fn checked_fillfactor(fillfactor: i64, min: u32) -> Result<u32, LayoutError> {
    u32::try_from(fillfactor)
        .ok()
        .filter(|percent| (min..=100).contains(percent))
        .ok_or(LayoutError::OutOfRange {
            what: "fillfactor",
            value: fillfactor,
            min: i64::from(min),
            max: 100,
        })
}

/// Free bytes that a page must have before an insertion of this tuple may use it; `None` when no
/// existing page can be used (13 only).
///
/// `tuple_bytes` need not be aligned. The answer is compared with the page's heap free space,
/// which already leaves room for one line pointer.
///
/// # Errors
/// [`LayoutError::TupleTooBig`] above 8160 bytes.
///
/// Source: `RelationGetBufferForTuple`, src/backend/access/heap/hio.c (REL_13_STABLE,
/// REL_14_STABLE, REL_18_STABLE). Differs: no.
pub fn target_free_space(
    tuple_bytes: u32,
    fillfactor: HeapFillfactor,
    rule: InsertTarget,
) -> Result<Option<u32>, LayoutError> {
    let len = fitting(tuple_bytes)?;
    let wanted = len + fillfactor.reserve_bytes();
    Ok(match rule {
        InsertTarget::NearlyEmptyPage if wanted > NEARLY_EMPTY_FREE_SPACE => {
            Some(len.max(NEARLY_EMPTY_FREE_SPACE))
        }
        InsertTarget::ReserveOrExtend if wanted > MAX_HEAP_TUPLE_SIZE => None,
        _ => Some(wanted),
    })
}

/// Rows of equal length that a page holds after loading with single-row insertions.
///
/// # Errors
/// [`LayoutError::TupleTooBig`] above 8160 bytes.
///
/// Source: follows from [`target_free_space`] and `PageGetHeapFreeSpace`.
pub fn rows_per_page(
    tuple_bytes: u32,
    fillfactor: HeapFillfactor,
    rule: InsertTarget,
) -> Result<u32, LayoutError> {
    let slot = fitting(tuple_bytes)? + SIZE_OF_ITEM_ID;
    let Some(target) = target_free_space(tuple_bytes, fillfactor, rule)? else {
        return Ok(1); // every row extends the table
    };
    // Row n + 1 is accepted while target <= 8168 - n * slot - 4; the first always is. The limit
    // of 291 line pointers never binds: the shortest tuple takes 28 bytes.
    let free_when_empty = BLCKSZ - SIZE_OF_PAGE_HEADER - SIZE_OF_ITEM_ID;
    Ok(free_when_empty.saturating_sub(target) / slot + 1)
}

/// Pages of a table after loading `rows` rows of equal length with single-row insertions.
///
/// # Errors
/// [`LayoutError::TupleTooBig`] above 8160 bytes; [`LayoutError::TooManyPages`] beyond 32 TiB.
pub fn heap_pages(
    rows: u64,
    tuple_bytes: u32,
    fillfactor: HeapFillfactor,
    rule: InsertTarget,
) -> Result<u64, LayoutError> {
    let per_page = rows_per_page(tuple_bytes, fillfactor, rule)?;
    checked_pages(rows.div_ceil(u64::from(per_page)))
}

/// Further versions of a row of this length that fit the room left on a freshly loaded, full page.
///
/// An update stays on its page as long as the new version fits, whatever the fillfactor; so this
/// is how many updates a page takes, pruning aside, before a row must leave it.
///
/// # Errors
/// [`LayoutError::TupleTooBig`] above 8160 bytes.
///
/// Source: `heap_update`, src/backend/access/heap/heapam.c; `PageGetHeapFreeSpace`, bufpage.c.
pub fn spare_versions(
    tuple_bytes: u32,
    fillfactor: HeapFillfactor,
    rule: InsertTarget,
) -> Result<u32, LayoutError> {
    let slot = fitting(tuple_bytes)? + SIZE_OF_ITEM_ID;
    let loaded = rows_per_page(tuple_bytes, fillfactor, rule)?;
    let room = BLCKSZ - SIZE_OF_PAGE_HEADER - loaded * slot;
    Ok((room / slot).min(MAX_HEAP_TUPLES_PER_PAGE - loaded))
}

/// Free bytes that a new tuple may use on a page, room for its line pointer left out; the plain
/// form without the limit on line pointers.
///
/// Source: `PageGetFreeSpace`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
#[must_use]
pub const fn page_free_space(pd_lower: u32, pd_upper: u32) -> u32 {
    pd_upper
        .saturating_sub(pd_lower)
        .saturating_sub(SIZE_OF_ITEM_ID)
}

/// The aligned length of a tuple that fits a page.
fn fitting(tuple_bytes: u32) -> Result<u32, LayoutError> {
    let smallest = SMALLEST_HOFF;
    if tuple_bytes < smallest {
        return Err(LayoutError::OutOfRange {
            what: "tuple_bytes",
            value: i64::from(tuple_bytes),
            min: i64::from(smallest),
            max: i64::from(MAX_HEAP_TUPLE_SIZE),
        });
    }
    if tuple_bytes > MAX_HEAP_TUPLE_SIZE {
        return Err(LayoutError::TupleTooBig {
            tuple_bytes: u64::from(tuple_bytes),
            max_bytes: MAX_HEAP_TUPLE_SIZE,
        });
    }
    Ok(maxalign(tuple_bytes))
}

/// `pages` if a relation can have so many.
pub(crate) fn checked_pages(pages: u64) -> Result<u64, LayoutError> {
    if pages > MAX_PAGES {
        return Err(LayoutError::TooManyPages {
            pages,
            max: MAX_PAGES,
        });
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: InsertTarget = InsertTarget::NearlyEmptyPage;

    fn ff(percent: i64) -> HeapFillfactor {
        HeapFillfactor::new(percent).unwrap()
    }

    /// The physics' worked numbers: rows per page for pgbench-like widths.
    #[test]
    fn rows_per_page_of_the_worked_examples() {
        for (tuple_bytes, percent, rows) in [
            (104, 100, 75),
            (104, 90, 68),
            (104, 80, 60),
            (168, 100, 47),
            (168, 80, 37),
            (93, 100, 81),
            (24, 100, 291),
            (8160, 100, 1),
            (8160, 10, 1),
        ] {
            let found = rows_per_page(tuple_bytes, ff(percent), RULE).unwrap();
            assert_eq!(found, rows, "{tuple_bytes} bytes at {percent} %");
        }
    }

    /// Pages of the seed experiment at scale 10 (golden G1), for every width and fillfactor.
    #[test]
    fn heap_pages_of_the_seed_experiment() {
        for (tuple_bytes, percent, pages) in [
            (104, 100, 13334),
            (104, 80, 16667),
            (168, 100, 21277),
            (168, 80, 27028),
        ] {
            let found = heap_pages(1_000_000, tuple_bytes, ff(percent), RULE).unwrap();
            assert_eq!(found, pages, "{tuple_bytes} bytes at {percent} %");
        }
    }

    /// At 100 the seed's rows have no room for a second version; at 80 a page takes 15 more.
    #[test]
    fn spare_versions_of_the_seed_experiment() {
        assert_eq!(spare_versions(104, ff(100), RULE), Ok(0));
        assert_eq!(spare_versions(104, ff(80), RULE), Ok(15));
        assert_eq!(spare_versions(168, ff(80), RULE), Ok(10));
    }

    /// 13 never puts a second row beside one whose length and reserve exceed a page; 14 does not
    /// either unless the page is nearly empty.
    #[test]
    fn wide_rows_at_a_low_fillfactor() {
        let old = InsertTarget::ReserveOrExtend;
        assert_eq!(target_free_space(900, ff(10), old), Ok(None));
        assert_eq!(target_free_space(900, ff(10), RULE), Ok(Some(8016)));
        assert_eq!(target_free_space(8100, ff(10), RULE), Ok(Some(8104)));
        assert_eq!(rows_per_page(900, ff(10), old), Ok(1));
        assert_eq!(rows_per_page(900, ff(10), RULE), Ok(1));
    }

    /// A narrow row may join others on a nearly empty page in 14, but extends the table in 13.
    #[test]
    fn nearly_empty_pages_take_narrow_rows() {
        // 787 + reserve 7372 exceeds 8016 but not 8160.
        assert_eq!(target_free_space(784, ff(10), RULE), Ok(Some(8016)));
        assert_eq!(
            target_free_space(784, ff(10), InsertTarget::ReserveOrExtend),
            Ok(Some(8156))
        );
    }

    /// What does not fit is refused with the limit, and so are impossible fillfactors.
    #[test]
    fn impossible_questions_are_refused() {
        assert!(matches!(
            rows_per_page(8161, ff(100), RULE),
            Err(LayoutError::TupleTooBig {
                max_bytes: 8160,
                ..
            })
        ));
        assert!(rows_per_page(23, ff(100), RULE).is_err());
        for percent in [-1, 0, 9, 101, i64::MAX] {
            assert!(HeapFillfactor::new(percent).is_err(), "{percent}");
        }
        assert!(matches!(
            heap_pages(u64::MAX, 24, ff(100), RULE),
            Err(LayoutError::TooManyPages { .. })
        ));
    }

    proptest! {
        /// The closed form agrees with loading a page row by row.
        #[test]
        fn rows_per_page_equals_loading(tuple_bytes in 24_u32..=8160, percent in 10_i64..=100) {
            let target = target_free_space(tuple_bytes, ff(percent), RULE).unwrap().unwrap();
            let slot = maxalign(tuple_bytes) + 4;
            let mut rows = 1;
            while rows < 291 && 8168_u32.saturating_sub(rows * slot + 4) >= target {
                rows += 1;
            }
            prop_assert_eq!(rows_per_page(tuple_bytes, ff(percent), RULE).unwrap(), rows);
        }

        /// Loaded rows and spare versions together fit, and one more does not.
        #[test]
        fn spare_versions_fill_the_page(tuple_bytes in 24_u32..=8160, percent in 10_i64..=100) {
            let slot = maxalign(tuple_bytes) + 4;
            let loaded = rows_per_page(tuple_bytes, ff(percent), RULE).unwrap();
            let spare = spare_versions(tuple_bytes, ff(percent), RULE).unwrap();
            let all = loaded + spare;
            prop_assert!(all <= 291 && all * slot <= 8168);
            prop_assert!(all == 291 || (all + 1) * slot > 8168);
        }

        /// A lower fillfactor never packs more rows on a page.
        #[test]
        fn fillfactor_is_monotonic(tuple_bytes in 24_u32..=8160, percent in 10_i64..100) {
            prop_assert!(
                rows_per_page(tuple_bytes, ff(percent), RULE).unwrap()
                    <= rows_per_page(tuple_bytes, ff(percent + 1), RULE).unwrap()
            );
        }
    }
}
