//! VACUUM of the heap: two passes with indexes, one without; freezing; the maps; the end cut off.
//!
//! ```text
//! pass 1: prune every page that is not skipped, freeze if that pays; pages without dead line
//!         pointers are done
//! (indexes lose the entries that point to dead line pointers)
//! pass 2: dead line pointers become unused; then the free space map learns of all of it,
//!         and empty pages at the end go, if they are many
//! ```
//!
//! Where memory for dead line pointers is full before pass 1 is at its end, indexes and pass 2 come
//! first, for what was found so far, and pass 1 goes on.
//!
//! [`VacuumLog`] hears of each change in the order of the WAL records. Left out: waiting for other
//! sessions.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::PageCleaning;

use crate::fsm::Modified;
use crate::heap::Heap;
use crate::prune::DeadRoots;
use crate::transaction::{Transactions, Xid};
use crate::vm::{ForkTruncation, Visibility};
use crate::watch::{self, EventKind};

mod dead_items;
mod dsa;
pub mod eager;
mod page;
mod scan;
mod second_pass;
mod tid_store;

pub use eager::EagerScan;
pub use page::FreezeKind;
pub(crate) use page::all_visible;
pub use scan::{ScanStep, VacuumScan};

/// Pages after which a table without indexes tells the free space map's upper levels: 8 GB.
///
/// Source: `VACUUM_FSM_EVERY_PAGES`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
const FSM_EVERY_PAGES: u32 = 1 << 20;

/// What has to be frozen.
///
/// Source: `struct VacuumCutoffs`, src/include/commands/vacuum.h (REL_16_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cutoffs {
    /// `FreezeLimit`: what transactions before this one have left has to go.
    pub freeze_limit: Xid,
    /// `MultiXactCutoff`: multixacts before this one have to go.
    pub multixact_cutoff: Xid,
    /// `OldestMxact`: no member of those before this one is in progress.
    pub oldest_multixact: Xid,
}

/// How a table is vacuumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VacuumOptions {
    /// Whether it has indexes; without any, one pass does everything.
    pub has_indexes: bool,
    /// VACUUM FREEZE: pages that are not frozen are not skipped, and everything old is frozen.
    pub freeze: bool,
    /// Whether pages that are not frozen are not skipped because the table's oldest transaction is
    /// old enough.
    pub aggressive: bool,
    /// What is so old that it has to be frozen.
    pub cutoffs: Cutoffs,
    /// Whether the table is so old that nothing but freezing is done: indexes keep their entries,
    /// dead line pointers stay, and so does the end.
    pub failsafe: bool,
    /// Which pages that could be skipped are looked at.
    pub eager: EagerScan,
    /// Whether autovacuum does it, by its own storage parameters.
    pub by_itself: bool,
    /// The option and reloption `vacuum_truncate`: empty pages at the end go.
    pub truncate: bool,
    /// What dead line pointers may take, in kB: `maintenance_work_mem` or `autovacuum_work_mem`.
    pub memory_kb: u32,
    /// The option PARALLEL: so many workers at most. Autovacuum's are a setting.
    pub max_workers: u32,
    /// Whether it has some, and dead line pointers are in memory that they share.
    pub shares_memory: bool,
}

impl VacuumOptions {
    const PLAIN: Self = Self {
        has_indexes: true,
        freeze: false,
        aggressive: false,
        cutoffs: Cutoffs {
            freeze_limit: Xid::INVALID,
            multixact_cutoff: Xid::INVALID,
            oldest_multixact: Xid::INVALID,
        },
        failsafe: false,
        eager: EagerScan::OFF,
        by_itself: false,
        truncate: true,
        memory_kb: 65_536,
        max_workers: 0,
        shares_memory: false,
    };
    /// Autovacuum's.
    pub const BY_ITSELF: Self = Self {
        by_itself: true,
        ..Self::PLAIN
    };
}

impl Default for VacuumOptions {
    /// Plain VACUUM of a table with indexes.
    fn default() -> Self {
        Self::PLAIN
    }
}

/// A change that has a WAL record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// The first pass pruned a page, and from 17 on froze tuples with it.
    Pruned(PageCleaning),
    /// Tuples were frozen (to 16): how many, and in how many ways.
    Frozen(u32, u32),
    /// The second pass freed so many dead line pointers.
    Cleaned(u32),
    /// Visibility bits were set (to 18).
    MadeVisible,
    /// Visibility bits were set by the first pass with whatever else it did (19 and later).
    PrunedVisible(PageCleaning),
    /// The same by the second pass.
    CleanedVisible(PageCleaning),
}

/// Told of what VACUUM does, in order. The methods have defaults that write no image, so that a
/// closure that hears of the free space map will do where WAL does not matter.
pub trait VacuumLog: Modified {
    /// Hints of a page changed; `hole_bytes` is the page's hole now. Says whether that wrote a
    /// full-page image.
    fn hinted(&mut self, _block: BlockNumber, _hole_bytes: u32) -> bool {
        false
    }

    /// A page changed; says whether its record carries a full-page image.
    fn changed(&mut self, _block: BlockNumber, _change: Change, _hole_bytes: u32) -> bool {
        false
    }

    /// Whether the next record of this page would carry a full-page image.
    fn owes_image(&self, _block: BlockNumber) -> bool {
        false
    }

    /// Whether hints are logged: checksums or `wal_log_hints`.
    fn logs_hints(&self) -> bool {
        false
    }

    /// Whether somebody else has the page pinned, so that it cannot be pruned.
    fn is_pinned(&self, _block: BlockNumber) -> bool {
        false
    }

    /// The table was cut.
    fn truncated(&mut self, _truncation: &Truncation) {}

    /// What two tuples must share to be frozen in one way, as far as the row decides.
    fn freeze_kind(&self, _row: u32) -> FreezeKind {
        FreezeKind::default()
    }
}

impl<F: FnMut(BlockNumber)> VacuumLog for F {}

/// How far a table was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Truncation {
    /// Pages of the table that stay.
    pub heap_pages: u32,
    /// The free space map's fork.
    pub fsm: Option<ForkTruncation>,
    /// The visibility map's fork.
    pub vm: Option<ForkTruncation>,
}

/// What a VACUUM did, page by page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vacuumed {
    /// Pages that were looked at.
    pub scanned_pages: u32,
    /// Pages that were pruned, and from 17 on frozen with it.
    pub pruned: Vec<(BlockNumber, PageCleaning)>,
    /// Pages that were frozen by a record of their own, and how many tuples of them.
    pub frozen: Vec<(BlockNumber, u32)>,
    /// Pages whose dead line pointers were freed, and how many.
    pub cleaned: Vec<(BlockNumber, u32)>,
    /// Pages whose visibility bits were set.
    pub made_visible: Vec<BlockNumber>,
    /// Whether the indexes and the second pass were skipped, so few pages had dead line pointers.
    pub bypassed_indexes: bool,
    /// The oldest transaction that is left on them, if any is.
    pub oldest_left: Option<Xid>,
    /// The same of multixacts.
    pub oldest_multixact_left: Option<Xid>,
    /// Whether pages were skipped that are not frozen.
    pub skipped_unfrozen: bool,
    /// Live tuples on the pages that were looked at.
    pub live_tuples: u64,
    /// Dead tuples that somebody may still see.
    pub recently_dead_tuples: u64,
    /// Dead tuples that stay because their page was pinned.
    pub missed_dead_tuples: u64,
    /// Whether the exclusive lock for cutting the end off was taken: VACUUM has a transaction
    /// number then.
    pub took_lock: bool,
    /// Pages before and after the end was cut off.
    pub truncated: Option<(u32, u32)>,
}

impl Heap {
    /// Vacuums a table with indexes. Sessions must forget their target blocks afterwards. The
    /// caller sees to the indexes: [`Heap::vacuum_scan`] and [`Heap::vacuum_reclaim`] let it do so
    /// in between.
    pub fn vacuum(
        &mut self,
        transactions: &impl Transactions,
        log: &mut impl VacuumLog,
    ) -> Vacuumed {
        let scanned = self.vacuum_scan(VacuumOptions::default(), transactions, log);
        self.vacuum_reclaim(scanned, transactions, log)
    }

    /// The first pass, over the pages that are not skipped.
    ///
    /// # Panics
    /// When the memory for dead line pointers does not suffice for one round.
    ///
    /// Source: `lazy_scan_heap` and `lazy_vacuum`, src/backend/access/heap/vacuumlazy.c
    /// (REL_15_STABLE, REL_18_STABLE). Differs: see the module.
    pub fn vacuum_scan(
        &mut self,
        options: VacuumOptions,
        transactions: &impl Transactions,
        log: &mut impl VacuumLog,
    ) -> VacuumScan {
        let mut scan = VacuumScan::new(self.behaviour(), options, self.page_count());
        loop {
            match self.vacuum_scan_next(&mut scan, transactions, log) {
                ScanStep::Page => {}
                ScanStep::Full => panic!("memory for more than one round"),
                ScanStep::End => return scan,
            }
        }
    }

    /// The next page of the first pass, unless there is none, or what was found has to go first.
    pub fn vacuum_scan_next(
        &mut self,
        scan: &mut VacuumScan,
        transactions: &impl Transactions,
        log: &mut impl VacuumLog,
    ) -> ScanStep {
        let asks_first = self.behaviour().vacuum_asks_memory_before_next_page;
        if asks_first && scan.dead_items.are_enough() {
            return ScanStep::Full;
        }
        let Some((block, is_eager)) = scan.next_block(self.vm()) else {
            self.consider_bypass(scan);
            return ScanStep::End;
        };
        if scan.dead_items.are_enough() {
            scan.hold(block);
            return ScanStep::Full;
        }
        let was_visible = self.vm().get(block).all_visible;
        scan.done.scanned_pages += 1;
        scan.last_scanned = block;
        self.vm_mut().pin(block);
        let is_eager = is_eager && !log.is_pinned(block);
        let page = self.page_mut(block);
        if page.is_new() {
            if self.fsm_mut().recorded(block) == 0 {
                self.fsm_mut().record(block, 8168, log);
            }
        } else if page.item_count() == 0 {
            if !page.is_all_visible() {
                self.set_visible(block, true, &mut scan.done);
                let change = if self.behaviour().visibility_in_cleaning_records {
                    Change::PrunedVisible(PageCleaning::default())
                } else {
                    Change::MadeVisible
                };
                log.changed(block, change, self.page_mut(block).exact_free_space());
            }
            self.record_free(block, log);
        } else {
            self.scan_page(block, was_visible, scan, transactions, log);
            if is_eager {
                scan.note_eager(self.vm().get(block).all_frozen);
            }
        }
        ScanStep::Page
    }

    /// Whether so few pages have dead line pointers that the indexes are left alone.
    ///
    /// Source: `lazy_vacuum`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE, REL_18_STABLE).
    fn consider_bypass(&self, scan: &mut VacuumScan) {
        let pages = scan.dead_items.pages().len();
        // At most 2 % of the pages: an integer comparison of the truncated product.
        let are_few = pages < scan.rel_pages as usize * 2 / 100 && scan.dead_items.are_few();
        let is_only_round = pages > 0 && scan.early_rounds == 0;
        scan.done.bypassed_indexes =
            self.behaviour().vacuum_bypasses_indexes && is_only_round && are_few;
    }

    /// The end of a round that memory forced: what was found is forgotten, and the free space map's
    /// upper levels learn of it.
    ///
    /// Source: `lazy_scan_heap`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE, where the
    /// next page is known; REL_18_STABLE, where the last one is).
    pub fn vacuum_round_end(&mut self, scan: &mut VacuumScan, log: &mut impl VacuumLog) {
        let (end, next) = match scan.held() {
            Some(block) => (block.0, block.0),
            None => (scan.last_scanned.0 + 1, scan.last_scanned.0),
        };
        let start = BlockNumber(scan.fsm_vacuumed_to);
        self.fsm_mut().vacuum(start, Some(BlockNumber(end)), log);
        scan.fsm_vacuumed_to = next;
        scan.dead_items.reset();
        scan.reclaimed = 0;
        scan.early_rounds += 1;
    }

    /// One page of the first pass.
    fn scan_page(
        &mut self,
        block: BlockNumber,
        was_visible: bool,
        scan: &mut VacuumScan,
        transactions: &impl Transactions,
        log: &mut impl VacuumLog,
    ) {
        let behaviour = *self.behaviour();
        let one_pass = !scan.options.has_indexes;
        let dead_roots = if one_pass && behaviour.vacuum_one_pass_in_prune_record {
            DeadRoots::Go
        } else {
            DeadRoots::Stay
        };
        let cleaner = page::Cleaner {
            behaviour: &behaviour,
            block,
            dead_roots,
            freeze: scan.options.freeze,
            cutoffs: scan.options.cutoffs,
            visibility: self.vm().get(block),
        };
        let page = self.page_mut(block);
        let before = page.pd_upper();
        // An aggressive VACUUM would wait for the pin's end if there is something to freeze.
        let is_noprune = log.is_pinned(block)
            && !((scan.options.aggressive || scan.options.freeze)
                && cleaner.has_old(page, transactions));
        let mut found = if is_noprune {
            cleaner.scan_noprune(page, transactions, &mut scan.done, log)
        } else {
            cleaner.prune_and_freeze(page, transactions, &mut scan.done, log)
        };
        if is_noprune && one_pass {
            scan.done.missed_dead_tuples += found.dead.len() as u64;
            found.has_tuples |= !found.dead.is_empty();
            found.dead.clear();
        }
        self.note_first_pass(block, &found, before);
        if found.has_tuples {
            scan.nonempty_pages = block.0 + 1;
        }
        if one_pass && !found.dead.is_empty() {
            self.reclaim_page(block, &found.dead, &mut scan.done, transactions, log);
        } else if !found.dead.is_empty() && !scan.options.failsafe {
            scan.dead_items.add(block, found.dead);
            return; // the second pass will tell the map
        } else if found.all_visible {
            let is_new = !was_visible || (found.all_frozen && !self.vm().get(block).all_frozen);
            if is_new {
                self.set_visible_logged(block, found.all_frozen, &mut scan.done, log);
            }
        }
        let removed_some = found.plan.deleted_tuples > 0;
        if one_pass && removed_some && block.0 - scan.fsm_vacuumed_to >= FSM_EVERY_PAGES {
            let start = BlockNumber(scan.fsm_vacuumed_to);
            self.fsm_mut().vacuum(start, Some(block), log);
            scan.fsm_vacuumed_to = block.0;
        }
        self.record_free(block, log);
    }

    /// What a watcher of the page learns of the first pass.
    fn note_first_pass(&mut self, block: BlockNumber, found: &page::Found, upper_before: u32) {
        if !self.is_watched(block) {
            return;
        }
        let freed = self.page_mut(block).pd_upper() - upper_before;
        if found.plan.changes_items() {
            self.note(block, || watch::pruned(&found.plan, freed, true));
        }
        if found.frozen_tuples > 0 {
            let frozen_tuples = found.frozen_tuples;
            self.note(block, || EventKind::Frozen { frozen_tuples });
        }
    }

    /// Sets a page's flag and its bits, with a record of its own unless an earlier one has them.
    fn set_visible_logged(
        &mut self,
        block: BlockNumber,
        all_frozen: bool,
        done: &mut Vacuumed,
        log: &mut impl VacuumLog,
    ) {
        let is_new = self.set_visible(block, all_frozen, done);
        if is_new && !self.behaviour().visibility_in_cleaning_records {
            let hole_bytes = self.page_mut(block).exact_free_space();
            log.changed(block, Change::MadeVisible, hole_bytes);
        }
    }

    /// Sets a page's flag and its bits; says whether the bits are new.
    fn set_visible(&mut self, block: BlockNumber, all_frozen: bool, done: &mut Vacuumed) -> bool {
        self.page_mut(block).set_all_visible(true);
        let visibility = Visibility {
            all_visible: true,
            all_frozen: all_frozen || self.vm().get(block).all_frozen,
        };
        let is_new = self.vm_mut().set(block, visibility);
        if is_new {
            done.made_visible.push(block);
            let all_frozen = visibility.all_frozen;
            self.note(block, || EventKind::MadeVisible { all_frozen });
        }
        is_new
    }

    fn record_free(&mut self, block: BlockNumber, log: &mut impl VacuumLog) {
        let free = self.page_mut(block).heap_free_space();
        self.fsm_mut().record(block, free, log);
    }
}
