//! VACUUM of a table with indexes: two passes over the heap, the maps brought up to date.
//!
//! ```text
//! pass 1: prune every page that is not skipped; pages without dead line pointers are done
//! (indexes lose the entries that point to dead line pointers)
//! pass 2: dead line pointers become unused; then the free space map learns of all of it
//! ```
//!
//! Left out for now: freezing, truncation of empty pages at the end, tables without indexes, more
//! than one round for lack of memory, and the failsafe.

use pgheadroom_layout::wal_record::PageCleaning;
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::fsm::Modified;
use crate::heap::Heap;
use crate::page::{HeapPage, LinePointer, Tid};
use crate::prune::{self, TupleState};
use crate::transaction::{Outcome, Transactions};
use crate::vm::Visibility;

/// Shortest run of pages that VACUUM skips.
///
/// Source: `SKIP_PAGES_THRESHOLD`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
const SKIP_PAGES_THRESHOLD: u32 = 32;

/// What a VACUUM did, page by page, as its WAL records will say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vacuumed {
    /// Pages that were pruned.
    pub pruned: Vec<(BlockNumber, PageCleaning)>,
    /// Pages whose dead line pointers were freed, and how many.
    pub cleaned: Vec<(BlockNumber, u32)>,
    /// Pages whose visibility bits were set.
    pub made_visible: Vec<BlockNumber>,
    /// Whether the indexes and the second pass were skipped, so few pages had dead line pointers.
    pub bypassed_indexes: bool,
}

/// What the first pass found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VacuumScan {
    done: Vacuumed,
    with_dead: Vec<(BlockNumber, Vec<OffsetNumber>)>,
}

impl VacuumScan {
    /// What was done so far.
    #[must_use]
    pub const fn done(&self) -> &Vacuumed {
        &self.done
    }

    /// Whether the indexes have to lose entries before the second pass.
    #[must_use]
    pub fn needs_index_pass(&self) -> bool {
        !self.done.bypassed_indexes && !self.with_dead.is_empty()
    }

    /// Whether the line pointer at this TID is dead.
    #[must_use]
    pub fn is_dead(&self, tid: Tid) -> bool {
        let page = self
            .with_dead
            .binary_search_by_key(&tid.block, |page| page.0);
        page.is_ok_and(|page| self.with_dead[page].1.binary_search(&tid.offset).is_ok())
    }
}

impl Heap {
    /// Vacuums the table. Sessions must forget their target blocks afterwards. The caller sees to
    /// the indexes, if it has any: [`Heap::vacuum_scan`] and [`Heap::vacuum_reclaim`] let it do so
    /// in between.
    pub fn vacuum(
        &mut self,
        transactions: &impl Transactions,
        log: &mut impl Modified,
    ) -> Vacuumed {
        let scanned = self.vacuum_scan(transactions, log);
        self.vacuum_reclaim(scanned, transactions, log)
    }

    /// The first pass, over the pages that are not skipped.
    ///
    /// Source: `lazy_scan_heap` and `lazy_vacuum`, src/backend/access/heap/vacuumlazy.c
    /// (REL_18_STABLE). Differs: see the module.
    pub fn vacuum_scan(
        &mut self,
        transactions: &impl Transactions,
        log: &mut impl Modified,
    ) -> VacuumScan {
        let mut done = Vacuumed::default();
        let mut with_dead = Vec::new();
        for block in self.blocks_to_scan() {
            let behaviour = *self.behaviour();
            let page = self.page_mut(block);
            if page.is_new() {
                if self.fsm_mut().recorded(block) == 0 {
                    self.fsm_mut().record(block, 8168, log);
                }
                continue;
            }
            let plan = prune::plan(page, transactions);
            plan.apply(page, &behaviour);
            if plan.changes_items() {
                done.pruned.push((block, plan.cleaning()));
            }
            let dead = dead_items(self.page_mut(block));
            if dead.is_empty() {
                self.finish_page(block, transactions, &mut done, log);
            } else {
                with_dead.push((block, dead));
            }
        }
        // At most 2 % of the pages: an integer comparison of the truncated product.
        let few = with_dead.len() < self.pages().len() * 2 / 100;
        done.bypassed_indexes = self.behaviour().vacuum_bypasses_indexes && few;
        VacuumScan { done, with_dead }
    }

    /// The second pass, after the indexes have lost their entries; then the map learns of it all.
    ///
    /// Source: `lazy_vacuum_heap_rel`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    pub fn vacuum_reclaim(
        &mut self,
        scanned: VacuumScan,
        transactions: &impl Transactions,
        log: &mut impl Modified,
    ) -> Vacuumed {
        let VacuumScan {
            mut done,
            with_dead,
        } = scanned;
        if !done.bypassed_indexes {
            for (block, dead) in with_dead {
                let behaviour = *self.behaviour();
                self.page_mut(block).reclaim_dead(&behaviour, &dead);
                let count = u32::try_from(dead.len()).unwrap_or(u32::MAX);
                done.cleaned.push((block, count));
                self.finish_page(block, transactions, &mut done, log);
            }
        }
        self.fsm_mut().vacuum(BlockNumber(0), None, log);
        done
    }

    /// A page without dead line pointers: its bits are set if everyone sees everything, and its
    /// room is recorded.
    fn finish_page(
        &mut self,
        block: BlockNumber,
        transactions: &impl Transactions,
        done: &mut Vacuumed,
        log: &mut impl Modified,
    ) {
        let page = self.page_mut(block);
        let free = page.heap_free_space();
        if is_all_visible(page, transactions) {
            page.set_all_visible(true);
            let visibility = Visibility {
                all_visible: true,
                all_frozen: self.vm().get(block).all_frozen,
            };
            if self.vm_mut().set(block, visibility) {
                done.made_visible.push(block);
            }
        }
        self.fsm_mut().record(block, free, log);
    }

    /// Pages that are looked at: all but runs of at least 32 all-visible ones; always the last.
    ///
    /// Source: `heap_vac_scan_next_block`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    fn blocks_to_scan(&self) -> Vec<BlockNumber> {
        let count = self.page_count();
        let mut blocks = Vec::new();
        let mut next = 0;
        while next < count {
            let unskippable = (next..count)
                .find(|&block| block + 1 == count || !self.vm().get(BlockNumber(block)).all_visible)
                .unwrap_or(count);
            let first = if unskippable - next >= SKIP_PAGES_THRESHOLD {
                unskippable
            } else {
                next
            };
            blocks.extend((first..=unskippable.min(count - 1)).map(BlockNumber));
            next = unskippable + 1;
        }
        blocks
    }
}

fn dead_items(page: &HeapPage) -> Vec<OffsetNumber> {
    page.items()
        .iter()
        .enumerate()
        .filter(|(_, item)| **item == LinePointer::Dead)
        .map(|(position, _)| crate::page::offset_of(position))
        .collect()
}

/// Whether every tuple of the page is visible to every snapshot.
///
/// Source: `heap_page_is_all_visible`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
fn is_all_visible(page: &HeapPage, transactions: &impl Transactions) -> bool {
    page.items().iter().all(|item| match item {
        LinePointer::Normal(tuple) => {
            TupleState::of(tuple, transactions) == TupleState::Live
                && transactions.outcome(tuple.xmin) == Outcome::Committed
                && transactions.is_removable(tuple.xmin)
        }
        LinePointer::Unused | LinePointer::Redirect(_) => true,
        LinePointer::Dead => false,
    })
}
