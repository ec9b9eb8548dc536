//! How far a VACUUM has come: which page is next, and what was found so far.
//!
//! A VACUUM may go page by page while others change the table: it looks at the pages that were
//! there when it began, and at the visibility map when it comes to it.

use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::page::Tid;
use crate::vacuum::dead_items::DeadItems;
use crate::vacuum::{EagerScan, VacuumOptions, Vacuumed};
use crate::vm::VisibilityMap;

/// Shortest run of pages that VACUUM skips.
///
/// Source: `SKIP_PAGES_THRESHOLD`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
const SKIP_PAGES_THRESHOLD: u32 = 32;

/// What a VACUUM's first pass came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanStep {
    /// A page.
    Page,
    /// The memory for dead line pointers is full: indexes and second pass come before it goes on.
    Full,
    /// Its end.
    End,
}

/// What the first pass found, and how far both passes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VacuumScan {
    pub(super) options: VacuumOptions,
    pub(super) done: Vacuumed,
    pub(super) dead_items: DeadItems,
    /// Pages of those that have some that the second pass is done with.
    pub(super) reclaimed: usize,
    /// How often the indexes were passed over before the first pass was at its end.
    pub(super) early_rounds: u32,
    /// One more than the last page that is known to have tuples.
    pub(super) nonempty_pages: u32,
    /// Where the free space map's upper levels are up to date to.
    pub(super) fsm_vacuumed_to: u32,
    /// Pages when it began; what is added later is not looked at.
    pub(super) rel_pages: u32,
    /// The page that was looked at last.
    pub(super) last_scanned: BlockNumber,
    position: ScanPosition,
}

/// Where the first pass is, and which page comes next: the state of `heap_vac_scan_next_block`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ScanPosition {
    /// The page that comes next, where it was known before the memory was found to be full.
    held: Option<BlockNumber>,
    next: u32,
    /// One more than the last page before the next look at the visibility map.
    run_end: u32,
    skipped_unfrozen: bool,
    /// Whether the last page of the run is looked at by the eager scan.
    is_eager: bool,
    eager: EagerScan,
    /// The page that a read stream with an eager scan has asked for before the one before it was
    /// looked at: `None` where it has not begun or there is no such scan.
    streamed: Option<Option<(BlockNumber, bool)>>,
}

impl VacuumScan {
    /// A VACUUM of a table of so many pages that is about to begin.
    pub(crate) fn new(behaviour: &Behaviour, options: VacuumOptions, rel_pages: u32) -> Self {
        Self {
            options,
            done: Vacuumed::default(),
            dead_items: DeadItems::new(
                behaviour,
                options.memory_kb,
                rel_pages,
                options.shares_memory,
            ),
            reclaimed: 0,
            early_rounds: 0,
            nonempty_pages: 0,
            fsm_vacuumed_to: 0,
            rel_pages,
            last_scanned: BlockNumber(0),
            position: ScanPosition::new(options.eager),
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
        let are_left = self.done.bypassed_indexes || self.options.failsafe;
        !are_left && !self.dead_items.pages().is_empty()
    }

    /// Whether the first pass was not interrupted so far.
    #[must_use]
    pub const fn is_first_round(&self) -> bool {
        self.early_rounds == 0
    }

    /// Whether the indexes have lost entries.
    #[must_use]
    pub fn has_passed_indexes(&self) -> bool {
        !self.is_first_round() || self.needs_index_pass()
    }

    /// Pages that the first pass will look at, if the map stays as it is, or that the second one
    /// has left.
    pub(crate) fn pages_left(&self, vm: &VisibilityMap) -> usize {
        let mut position = ScanPosition {
            eager: EagerScan::OFF, // what it will come to depends on what it finds
            ..self.position
        };
        let next = || position.next_block(self.options, self.rel_pages, vm);
        let scanned = std::iter::from_fn(next).count();
        if self.done.bypassed_indexes {
            return scanned;
        }
        scanned + self.dead_items.pages().len() - self.reclaimed
    }

    /// Its end is not cut off.
    pub(crate) const fn keep_end(&mut self) {
        self.options.truncate = false;
    }

    /// From now on nothing but freezing is done.
    ///
    /// Source: `lazy_check_wraparound_failsafe`, src/backend/access/heap/vacuumlazy.c
    /// (REL_18_STABLE).
    pub(crate) const fn hurry(&mut self) {
        self.options.failsafe = true;
    }

    /// Whether that is so.
    #[must_use]
    pub const fn hurries(&self) -> bool {
        self.options.failsafe
    }

    /// Whether the line pointer at this TID is dead.
    #[must_use]
    pub fn is_dead(&self, tid: Tid) -> bool {
        self.dead_items.has(tid)
    }

    /// The next page, and whether the eager scan looks at it. With one, a page is asked for before
    /// it is known what became of the page before, since a read stream is one page ahead.
    ///
    /// Source: `read_stream_next_buffer`, src/backend/storage/aio/read_stream.c (REL_18_STABLE).
    /// Differs: where pages are read from disk, it is further ahead.
    pub(super) fn next_block(&mut self, vm: &VisibilityMap) -> Option<(BlockNumber, bool)> {
        let (options, pages) = (self.options, self.rel_pages);
        let position = &mut self.position;
        let block = if options.eager.is_on() {
            let block = match position.streamed.take() {
                Some(block) => block,
                None => position.next_block(options, pages, vm),
            };
            let next = block.and_then(|_| position.next_block(options, pages, vm));
            position.streamed = Some(next);
            block
        } else {
            position.next_block(options, pages, vm)
        };
        self.done.skipped_unfrozen = self.position.skipped_unfrozen;
        block
    }

    /// The eager scan has looked at a page, and it was frozen or not.
    pub(super) const fn note_eager(&mut self, is_frozen: bool) {
        self.position.eager.note(is_frozen);
    }

    /// The page comes next, after another round.
    pub(super) const fn hold(&mut self, block: BlockNumber) {
        self.position.held = Some(block);
    }

    /// The page that is held.
    pub(super) const fn held(&self) -> Option<BlockNumber> {
        self.position.held
    }
}

impl ScanPosition {
    const fn new(eager: EagerScan) -> Self {
        Self {
            held: None,
            next: 0,
            run_end: 0,
            skipped_unfrozen: false,
            is_eager: false,
            eager,
            streamed: None,
        }
    }

    /// The next page to look at: all but runs of at least 32 that may be skipped; always the last.
    ///
    /// Source: `heap_vac_scan_next_block` and `find_next_unskippable_block`,
    /// src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    fn next_block(
        &mut self,
        options: VacuumOptions,
        rel_pages: u32,
        vm: &VisibilityMap,
    ) -> Option<(BlockNumber, bool)> {
        if let Some(held) = self.held.take() {
            return Some((held, false));
        }
        if self.next >= self.run_end {
            if self.next >= rel_pages {
                return None;
            }
            let scans_all_visible = options.freeze || options.aggressive;
            let mut is_eager = false;
            let mut may_skip = |block| {
                let is_wanted = self.eager.comes_to(block);
                let bits = vm.get(BlockNumber(block));
                is_eager = is_wanted && bits.all_visible && !bits.all_frozen;
                bits.all_frozen || (bits.all_visible && !scans_all_visible && !is_eager)
            };
            let unskippable = (self.next..rel_pages)
                .find(|&block| !may_skip(block) || block + 1 == rel_pages)
                .unwrap_or(rel_pages);
            self.is_eager = is_eager && unskippable + 1 < rel_pages;
            if unskippable - self.next >= SKIP_PAGES_THRESHOLD {
                let is_frozen = |block| vm.get(BlockNumber(block)).all_frozen;
                self.skipped_unfrozen |= !(self.next..unskippable).all(is_frozen);
                self.next = unskippable;
            }
            self.run_end = unskippable + 1;
        }
        let block = self.next;
        self.next += 1;
        Some((
            BlockNumber(block),
            self.is_eager && self.next == self.run_end,
        ))
    }
}
