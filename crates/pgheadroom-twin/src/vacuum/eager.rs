//! The eager scan of 18: a VACUUM that may skip all-visible pages looks at some, to freeze them.
//!
//! ```text
//! block 0 .. draw .. draw + 4096 .. draw + 8192 ..      in each region, until as many pages as may
//! |--region--|------region------|------region---        fail were looked at and not frozen
//! ```
//!
//! Once a fifth of the pages that were all-visible and not frozen have been frozen, it is over.
//!
//! Source: `heap_vacuum_eager_scan_setup`, `find_next_unskippable_block` and `lazy_scan_heap`,
//! src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).

use crate::vm::VisibilityMap;
use pgheadroom_layout::BlockNumber;

/// Source: `EAGER_SCAN_REGION_SIZE`, vacuumlazy.c.
const EAGER_SCAN_REGION_SIZE: u32 = 4096;
/// Source: `MAX_EAGER_FREEZE_SUCCESS_RATE`, vacuumlazy.c.
const MAX_EAGER_FREEZE_SUCCESS_RATE: f64 = 0.2;
/// Tables of fewer pages are not scanned eagerly.
pub const LEAST_PAGES: u32 = 2 * EAGER_SCAN_REGION_SIZE;

/// How many pages of a region may be looked at and not frozen, of the share of them that may
/// (`vacuum_max_eager_freeze_failure_rate`).
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as there
pub fn fails_per_region(rate: f64) -> u32 {
    (rate * f64::from(EAGER_SCAN_REGION_SIZE)) as u32
}

/// How far an eager scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EagerScan {
    next_region: u32,
    fails_per_region: u32,
    fails_left: u32,
    successes_left: u32,
}

impl EagerScan {
    /// None.
    pub const OFF: Self = Self {
        next_region: u32::MAX,
        fails_per_region: 0,
        fails_left: 0,
        successes_left: 0,
    };

    /// The scan of a table whose map this is, if any page is to be frozen. `draw`, from 0 to below
    /// 1, says where the first region ends.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    pub fn begin(fails_per_region: u32, pages: u32, vm: &VisibilityMap, draw: f64) -> Option<Self> {
        let bits = (0..pages).map(|block| vm.get(BlockNumber(block)));
        let unfrozen = bits.filter(|bits| bits.all_visible && !bits.all_frozen);
        let successes = (MAX_EAGER_FREEZE_SUCCESS_RATE * unfrozen.count() as f64) as u32;
        let next_region = (draw * f64::from(EAGER_SCAN_REGION_SIZE)) as u32;
        let first_region_ratio = 1.0 - next_region as f32 / EAGER_SCAN_REGION_SIZE as f32;
        (successes > 0).then_some(Self {
            next_region,
            fails_per_region,
            fails_left: (fails_per_region as f32 * first_region_ratio) as u32,
            successes_left: successes,
        })
    }

    /// Whether there is one still.
    pub const fn is_on(&self) -> bool {
        self.successes_left > 0
    }

    /// The scan comes to this block: whether it is looked at though it is all-visible, if it is.
    pub const fn comes_to(&mut self, block: u32) -> bool {
        if block >= self.next_region {
            self.fails_left = self.fails_per_region;
            self.next_region = self.next_region.saturating_add(EAGER_SCAN_REGION_SIZE);
        }
        self.fails_left > 0
    }

    /// A page was looked at for it.
    pub const fn note(&mut self, is_frozen: bool) {
        if !is_frozen {
            self.fails_left = self.fails_left.saturating_sub(1);
            return;
        }
        self.successes_left = self.successes_left.saturating_sub(1);
        if self.successes_left == 0 {
            *self = Self::OFF;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::Visibility;

    fn map(pages: u32) -> VisibilityMap {
        let mut map = VisibilityMap::default();
        for block in 0..pages {
            map.pin(BlockNumber(block));
            let all_visible = true;
            let all_frozen = block % 2 == 1;
            let visibility = Visibility {
                all_visible,
                all_frozen,
            };
            map.set(BlockNumber(block), visibility);
        }
        map
    }

    /// 3 % of 4,096 pages may fail, fewer in a first region that is shorter; then the next begins.
    #[test]
    fn a_region_ends_with_its_failures() {
        assert_eq!(fails_per_region(0.03), 122);
        let mut scan = EagerScan::begin(122, 10_000, &map(10_000), 0.5).unwrap();
        let looks = (0..10_000).filter(|&block| {
            let looks = scan.comes_to(block);
            if looks {
                scan.note(false);
            }
            looks
        });
        let looks: Vec<u32> = looks.collect();
        let expected: Vec<u32> = (0..61)
            .chain(2048..2048 + 122)
            .chain(6144..6144 + 122)
            .collect();
        assert_eq!(looks, expected);
    }

    /// A fifth of what could be frozen is enough, for good.
    #[test]
    fn successes_end_it() {
        let mut scan = EagerScan::begin(122, 1000, &map(1000), 0.0).unwrap();
        for block in 0..100 {
            assert!(scan.is_on() && scan.comes_to(block));
            scan.note(true);
        }
        assert!(!scan.is_on() && !scan.comes_to(5000));
        assert_eq!(EagerScan::begin(122, 8, &map(8), 0.0), None);
    }
}
