//! How far a VACUUM has come: which page is next, and what was found so far.
//!
//! A VACUUM may go page by page while others change the table: it looks at the pages that were
//! there when it began, and at the visibility map when it comes to it.

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::page::Tid;
use crate::vacuum::{VacuumOptions, Vacuumed};
use crate::vm::VisibilityMap;

/// Shortest run of pages that VACUUM skips.
///
/// Source: `SKIP_PAGES_THRESHOLD`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
const SKIP_PAGES_THRESHOLD: u32 = 32;

/// What the first pass found, and how far both passes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VacuumScan {
    pub(super) options: VacuumOptions,
    pub(super) done: Vacuumed,
    pub(super) with_dead: Vec<(BlockNumber, Vec<OffsetNumber>)>,
    /// Pages of those that the second pass is done with.
    pub(super) reclaimed: usize,
    /// One more than the last page that is known to have tuples.
    pub(super) nonempty_pages: u32,
    /// Where the free space map's upper levels are up to date to.
    pub(super) fsm_vacuumed_to: u32,
    /// Pages when it began; what is added later is not looked at.
    pub(super) rel_pages: u32,
    next: u32,
    /// One more than the last page before the next look at the visibility map.
    run_end: u32,
}

impl VacuumScan {
    /// A VACUUM of a table of so many pages that is about to begin.
    pub(crate) fn new(options: VacuumOptions, rel_pages: u32) -> Self {
        Self {
            options,
            done: Vacuumed::default(),
            with_dead: Vec::new(),
            reclaimed: 0,
            nonempty_pages: 0,
            fsm_vacuumed_to: 0,
            rel_pages,
            next: 0,
            run_end: 0,
        }
    }

    /// What was done so far.
    #[must_use]
    pub const fn done(&self) -> &Vacuumed {
        &self.done
    }

    /// Pages of the table when it began.
    #[must_use]
    pub const fn rel_pages(&self) -> u32 {
        self.rel_pages
    }

    /// Whether the indexes have to lose entries before the second pass.
    #[must_use]
    pub fn needs_index_pass(&self) -> bool {
        !self.done.bypassed_indexes && !self.with_dead.is_empty()
    }

    /// Pages that the first pass will look at, if the map stays as it is, or that the second one
    /// has left.
    pub(crate) fn pages_left(&self, vm: &VisibilityMap) -> usize {
        let mut ahead = Self {
            next: self.next,
            run_end: self.run_end,
            ..Self::new(self.options, self.rel_pages)
        };
        let scanned = std::iter::from_fn(|| ahead.next_block(vm)).count();
        if self.done.bypassed_indexes {
            return scanned;
        }
        scanned + self.with_dead.len() - self.reclaimed
    }

    /// Whether the line pointer at this TID is dead.
    #[must_use]
    pub fn is_dead(&self, tid: Tid) -> bool {
        let page = self
            .with_dead
            .binary_search_by_key(&{ tid.block }, |page| page.0);
        page.is_ok_and(|page| self.with_dead[page].1.binary_search(&tid.offset).is_ok())
    }

    /// The next page to look at: all but runs of at least 32 that may be skipped; always the last.
    ///
    /// Source: `heap_vac_scan_next_block` and `find_next_unskippable_block`,
    /// src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    pub(super) fn next_block(&mut self, vm: &VisibilityMap) -> Option<BlockNumber> {
        if self.next >= self.run_end {
            if self.next >= self.rel_pages {
                return None;
            }
            let looks_at_all = self.options.freeze || self.options.aggressive;
            let may_skip = |block| {
                let bits = vm.get(BlockNumber(block));
                bits.all_frozen || (bits.all_visible && !looks_at_all)
            };
            let unskippable = (self.next..self.rel_pages)
                .find(|&block| block + 1 == self.rel_pages || !may_skip(block))
                .unwrap_or(self.rel_pages);
            if unskippable - self.next >= SKIP_PAGES_THRESHOLD {
                let is_frozen = |block| vm.get(BlockNumber(block)).all_frozen;
                self.done.skipped_unfrozen |= !(self.next..unskippable).all(is_frozen);
                self.next = unskippable;
            }
            self.run_end = unskippable + 1;
        }
        let block = self.next;
        self.next += 1;
        Some(BlockNumber(block))
    }
}
