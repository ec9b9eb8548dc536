//! The visibility map: two bits for each heap page.
//!
//! VACUUM sets them, the first change of a page clears them. The map's own pages matter because
//! clearing a bit modifies one, and from 17.11 and 18.6 on a heap record names it.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_PAGE_HEADER};

/// Heap pages that one page of the map covers.
///
/// Source: `HEAPBLOCKS_PER_PAGE`, src/backend/access/heap/visibilitymap.c (REL_18_STABLE).
pub const HEAPBLOCKS_PER_PAGE: u32 = (BLCKSZ - SIZE_OF_PAGE_HEADER) * 4;

const _: () = assert!(HEAPBLOCKS_PER_PAGE == 32_672);

/// The bits of one heap page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Visibility {
    /// Every tuple is visible to everyone.
    pub all_visible: bool,
    /// Every tuple is frozen too.
    pub all_frozen: bool,
}

/// How a map's fork is cut with its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ForkTruncation {
    /// Pages that stay.
    pub pages: u32,
    /// The last of them, when a part of it was cleared.
    pub cut_page: Option<BlockNumber>,
}

/// The visibility map of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VisibilityMap {
    bits: Vec<Visibility>,
    page_count: u32,
}

impl VisibilityMap {
    /// The bits of a page; none when the map does not reach it.
    #[must_use]
    pub fn get(&self, block: BlockNumber) -> Visibility {
        self.bits.get(block.0 as usize).copied().unwrap_or_default()
    }

    /// Pages of the map's fork: none until a bit is set for the first time.
    #[must_use]
    pub const fn page_count(&self) -> u32 {
        self.page_count
    }

    /// The map's page that holds the bits of this heap page.
    #[must_use]
    pub const fn map_page(block: BlockNumber) -> BlockNumber {
        BlockNumber(block.0 / HEAPBLOCKS_PER_PAGE)
    }

    /// What a page of the map holds behind its header.
    pub(crate) fn page_bytes(&self, map_page: BlockNumber) -> Vec<u8> {
        let covered = map_page.0 as usize * HEAPBLOCKS_PER_PAGE as usize..;
        let pages = self.bits.get(covered).unwrap_or_default();
        let pages = &pages[..pages.len().min(HEAPBLOCKS_PER_PAGE as usize)];
        let bits = |of: &Visibility| u8::from(of.all_visible) | u8::from(of.all_frozen) << 1;
        let byte = |four: &[Visibility]| four.iter().rev().fold(0, |byte, of| byte << 2 | bits(of));
        pages.chunks(4).map(byte).collect()
    }

    /// Sets a page's bits; says whether that changed them.
    ///
    /// # Panics
    /// When the page is to be frozen but not visible.
    ///
    /// Source: `visibilitymap_set`, src/backend/access/heap/visibilitymap.c.
    pub fn set(&mut self, block: BlockNumber, visibility: Visibility) -> bool {
        assert!(visibility.all_visible || !visibility.all_frozen);
        let index = block.0 as usize;
        if index >= self.bits.len() {
            self.bits.resize(index + 1, Visibility::default());
        }
        self.page_count = self.page_count.max(Self::map_page(block).0 + 1);
        let changed = self.bits[index] != visibility;
        self.bits[index] = visibility;
        changed
    }

    /// Clears both bits; says whether one of them was set, that is, the map's page is modified.
    ///
    /// Source: `visibilitymap_clear`, src/backend/access/heap/visibilitymap.c.
    pub fn clear(&mut self, block: BlockNumber) -> bool {
        self.replace(block, Visibility::default())
    }

    /// Clears the frozen bit alone, as locking a row does; says whether it was set.
    pub fn clear_frozen(&mut self, block: BlockNumber) -> bool {
        let all_visible = self.get(block).all_visible;
        self.replace(
            block,
            Visibility {
                all_visible,
                all_frozen: false,
            },
        )
    }

    /// VACUUM looks at a page: the fork grows to reach its bits, set or not.
    ///
    /// Source: `visibilitymap_pin`, src/backend/access/heap/visibilitymap.c.
    pub fn pin(&mut self, block: BlockNumber) {
        self.page_count = self.page_count.max(Self::map_page(block).0 + 1);
    }

    /// The table was cut to so many pages; `None` when the map stays as it is.
    ///
    /// Source: `visibilitymap_prepare_truncate`, src/backend/access/heap/visibilitymap.c.
    pub fn truncate(&mut self, heap_pages: u32) -> Option<ForkTruncation> {
        self.bits.truncate(heap_pages as usize);
        let last = BlockNumber(heap_pages);
        let map_page = Self::map_page(last);
        if map_page.0 >= self.page_count {
            return None;
        }
        let is_cut = !heap_pages.is_multiple_of(HEAPBLOCKS_PER_PAGE);
        let truncation = ForkTruncation {
            pages: map_page.0 + u32::from(is_cut),
            cut_page: is_cut.then_some(map_page),
        };
        self.page_count = truncation.pages;
        Some(truncation)
    }

    fn replace(&mut self, block: BlockNumber, visibility: Visibility) -> bool {
        let Some(bits) = self.bits.get_mut(block.0 as usize) else {
            return false;
        };
        let changed = *bits != visibility;
        *bits = visibility;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits come and go, and each change is reported once.
    #[test]
    fn bits_are_set_and_cleared() {
        let mut map = VisibilityMap::default();
        assert!(!map.clear(BlockNumber(5)));
        let frozen = Visibility {
            all_visible: true,
            all_frozen: true,
        };
        assert!(map.set(BlockNumber(5), frozen));
        assert!(!map.set(BlockNumber(5), frozen));
        assert!(map.clear_frozen(BlockNumber(5)));
        assert!(map.get(BlockNumber(5)).all_visible);
        assert!(map.clear(BlockNumber(5)));
        assert!(!map.clear(BlockNumber(5)));
    }

    /// A page of the map covers 32672 heap pages.
    #[test]
    fn the_fork_grows_by_pages() {
        let mut map = VisibilityMap::default();
        assert_eq!(map.page_count(), 0);
        let visible = Visibility {
            all_visible: true,
            all_frozen: false,
        };
        map.set(BlockNumber(32_671), visible);
        assert_eq!(map.page_count(), 1);
        map.set(BlockNumber(32_672), visible);
        assert_eq!(map.page_count(), 2);
        map.pin(BlockNumber(2 * 32_672));
        assert_eq!(map.page_count(), 3);
    }

    /// A page of the map goes when the table ends at its boundary, and is cut otherwise.
    #[test]
    fn the_fork_is_cut_with_its_table() {
        let mut map = VisibilityMap::default();
        assert_eq!(map.truncate(0), None);
        map.pin(BlockNumber(40_000));
        let cut = map.truncate(32_673).unwrap();
        assert_eq!((cut.pages, cut.cut_page), (2, Some(BlockNumber(1))));
        let cut = map.truncate(32_672).unwrap();
        assert_eq!((cut.pages, cut.cut_page), (1, None));
        assert_eq!(map.truncate(32_672), None);
        assert_eq!(map.truncate(0).unwrap().pages, 0);
    }
}
