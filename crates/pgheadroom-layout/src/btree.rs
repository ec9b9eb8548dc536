//! Pages of a B-tree: what fits a leaf, and how many pages a fresh build has.
//!
//! ```text
//! block 0: metapage                  leaf, not the rightmost
//! block 1: first leaf ...            | header | 1 2 3 ... | free | ... 3 2 | special |
//!                                      24       item 1 is            8176    16 bytes
//!                                               the high key
//! ```
//!
//! Builds of distinct keys only; posting lists, splits and deletion are the twin's part.

use crate::error::LayoutError;
use crate::index_tuple::{BT_MAX_ITEM_SIZE, SIZE_OF_INDEX_TUPLE_HEADER};
use crate::page::{
    BLCKSZ, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER, checked_fillfactor, checked_pages,
};

/// Special area at a page's end. Source: `BTPageOpaqueData`, src/include/access/nbtree.h.
pub const SIZE_OF_BT_PAGE_OPAQUE: u32 = 16;
/// Smallest fillfactor. Source: `BTREE_MIN_FILLFACTOR`, src/include/access/nbtree.h.
pub const BTREE_MIN_FILLFACTOR: u32 = 10;
/// Default fillfactor of leaves. Source: `BTREE_DEFAULT_FILLFACTOR`, nbtree.h.
pub const BTREE_DEFAULT_FILLFACTOR: u32 = 90;
/// Fillfactor of inner pages, not an option. Source: `BTREE_NONLEAF_FILLFACTOR`, nbtree.h.
pub const BTREE_NONLEAF_FILLFACTOR: u32 = 70;
/// Room for a heap TID that truncation may have to append to a high key, aligned.
///
/// Source: `MAXALIGN(sizeof(ItemPointerData))` in `_bt_buildadd`, nbtsort.c.
const HEAP_TID_ROOM: u32 = 8;
/// Bytes of a page that items and line pointers can use.
pub const USABLE_BYTES: u32 = BLCKSZ - SIZE_OF_PAGE_HEADER - SIZE_OF_BT_PAGE_OPAQUE;

const _: () = assert!(USABLE_BYTES == 8152);

/// Fillfactor of a B-tree that was checked: 10 to 100 percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BtreeFillfactor(u32);

impl BtreeFillfactor {
    /// Takes a fillfactor in percent.
    ///
    /// # Errors
    /// [`LayoutError::OutOfRange`] outside 10 to 100.
    pub fn new(fillfactor: i64) -> Result<Self, LayoutError> {
        checked_fillfactor(fillfactor, BTREE_MIN_FILLFACTOR).map(Self)
    }

    /// The percentage.
    #[must_use]
    pub const fn percent(self) -> u32 {
        self.0
    }

    /// Free bytes below which the build starts a new leaf.
    const fn full_below(self) -> u32 {
        BLCKSZ * (100 - self.0) / 100
    }
}

/// Pages of a B-tree that CREATE INDEX builds, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BtreeBuild {
    /// Pages on each level, leaves first; empty for an empty table.
    pub level_pages: Vec<u64>,
}

impl BtreeBuild {
    /// All pages, the metapage included.
    #[must_use]
    pub fn pages(&self) -> u64 {
        1 + self.level_pages.iter().sum::<u64>()
    }
}

/// Pages of a B-tree built by CREATE INDEX on `rows` rows with distinct keys.
///
/// `index_tuple_bytes` is a leaf tuple, `pivot_tuple_bytes` a downlink in an inner page: as wide
/// as the leaf tuple without its INCLUDE columns and without trailing key columns that are not
/// needed to tell neighbours apart.
///
/// Loading ascending keys by INSERT gives as many leaves (366 of the 16-byte tuples on each); the
/// inner levels of such an index can differ.
///
/// # Errors
/// [`LayoutError::OutOfRange`] for tuples that are not a multiple of 8 between 8 and 2704 bytes,
/// [`LayoutError::TooManyPages`] beyond 32 TiB.
///
/// Source: `_bt_buildadd` and `_bt_uppershutdown`, src/backend/access/nbtree/nbtsort.c
/// (REL_18_STABLE). Differs: distinct keys of one width only.
pub fn build(
    rows: u64,
    index_tuple_bytes: u32,
    pivot_tuple_bytes: u32,
    fillfactor: BtreeFillfactor,
) -> Result<BtreeBuild, LayoutError> {
    check_item("index_tuple_bytes", index_tuple_bytes)?;
    check_item("pivot_tuple_bytes", pivot_tuple_bytes)?;
    let mut level_pages = Vec::new();
    let leaf = LevelShape {
        first_item: index_tuple_bytes,
        item: index_tuple_bytes,
        tid_room: HEAP_TID_ROOM,
        full_below: fillfactor.full_below(),
    };
    // Inner pages begin with a downlink without key: everything smaller lies under it.
    let inner = LevelShape {
        first_item: SIZE_OF_INDEX_TUPLE_HEADER,
        item: pivot_tuple_bytes,
        tid_room: 0,
        full_below: BLCKSZ * (100 - BTREE_NONLEAF_FILLFACTOR) / 100,
    };
    let mut items = rows;
    let mut shape = &leaf;
    while items > 0 {
        let pages = shape.pages(items);
        level_pages.push(pages);
        if pages == 1 {
            break;
        }
        items = pages;
        shape = &inner;
    }
    let result = BtreeBuild { level_pages };
    checked_pages(result.pages())?;
    Ok(result)
}

/// One level during a build: how wide its items are and when a page is full.
struct LevelShape {
    first_item: u32,
    item: u32,
    tid_room: u32,
    full_below: u32,
}

impl LevelShape {
    /// Items that a page holds when the next one makes it close.
    fn capacity(&self) -> u64 {
        // The high key's line pointer is reserved from the start.
        let mut free = USABLE_BYTES - SIZE_OF_ITEM_ID - (self.first_item + SIZE_OF_ITEM_ID);
        let mut items = 1;
        loop {
            let usable = free.saturating_sub(SIZE_OF_ITEM_ID);
            let no_room = usable < self.item + self.tid_room;
            let full_enough = usable < self.full_below && items >= 2;
            if no_room || full_enough {
                return items;
            }
            free -= self.item + SIZE_OF_ITEM_ID;
            items += 1;
        }
    }

    /// Pages that `items` items need: on closing, a page's last item moves to the next page and
    /// stays behind as the high key, so all pages but the last keep one item less than they held.
    fn pages(&self, items: u64) -> u64 {
        let held = self.capacity();
        if items <= held {
            1
        } else {
            1 + (items - held).div_ceil(held - 1)
        }
    }
}

/// Refuses item sizes that no index tuple has.
fn check_item(what: &'static str, bytes: u32) -> Result<(), LayoutError> {
    if !bytes.is_multiple_of(8) || !(SIZE_OF_INDEX_TUPLE_HEADER..=BT_MAX_ITEM_SIZE).contains(&bytes)
    {
        return Err(LayoutError::OutOfRange {
            what,
            value: i64::from(bytes),
            min: i64::from(SIZE_OF_INDEX_TUPLE_HEADER),
            max: i64::from(BT_MAX_ITEM_SIZE),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pages(rows: u64, bytes: u32) -> u64 {
        let fillfactor = BtreeFillfactor::new(90).unwrap();
        build(rows, bytes, bytes, fillfactor).unwrap().pages()
    }

    /// 366 entries of 16 bytes on each leaf but the last, which keeps 367.
    #[test]
    fn leaves_of_sixteen_byte_entries() {
        assert_eq!(pages(0, 16), 1);
        assert_eq!(pages(1, 16), 2);
        assert_eq!(pages(367, 16), 2);
        assert_eq!(pages(368, 16), 4);
    }

    /// Golden G3: CREATE UNIQUE INDEX on 60000 ints has 166 pages; G1: the seed's key indexes.
    #[test]
    fn golden_builds() {
        assert_eq!(pages(60_000, 16), 166);
        assert_eq!(pages(100_000, 16), 276);
        assert_eq!(pages(1_000_000, 16), 2745);
        // Two bigint columns: 24 bytes (golden G3, second table, 60000 rows).
        assert_eq!(pages(60_000, 24), 234);
    }

    /// Impossible sizes are refused.
    #[test]
    fn impossible_items_are_refused() {
        let fillfactor = BtreeFillfactor::new(90).unwrap();
        for bytes in [0, 7, 12, 2712] {
            assert!(build(1, bytes, 16, fillfactor).is_err(), "{bytes}");
        }
        assert!(BtreeFillfactor::new(9).is_err());
    }

    proptest! {
        /// Every level is smaller than the one below and ends in one root.
        #[test]
        fn levels_narrow_to_a_root(
            rows in 1_u64..10_000_000, eighths in 1_u32..=338, percent in 10_i64..=100
        ) {
            let bytes = eighths * 8;
            let fillfactor = BtreeFillfactor::new(percent).unwrap();
            let built = build(rows, bytes, bytes, fillfactor).unwrap();
            prop_assert_eq!(built.level_pages.last(), Some(&1));
            prop_assert!(built.level_pages.windows(2).all(|pair| pair[1] < pair[0]));
        }
    }
}
