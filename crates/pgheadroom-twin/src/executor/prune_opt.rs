//! Pruning by whoever comes to a page, and what is logged of it.
//!
//! Source: `heap_page_prune_opt`, src/backend/access/heap/pruneheap.c (REL_18_STABLE).

use std::cell::RefCell;

use pgheadroom_layout::wal_record::{Page, PageCleaning, heap_prune, heap_prune_and_visible};
use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::checkpoint::ForkId;
use crate::counters::TableCounters;
use crate::executor::fetch::HeapAccess;
use crate::executor::table::Table;
use crate::heap::Heap;
use crate::page::Settled;
use crate::procarray::ProcArray;
use crate::prune::PruneResult;
use crate::transaction::{Outcome, Transactions};
use crate::vacuum::all_visible;
use crate::vm::VisibilityMap;
use crate::wal::{RecordType, Wal};

/// Pruning of a page on which a deferred HOT update is all that there is to prune.
#[derive(Clone, Copy)]
struct DeferredPruning<'a> {
    procs: &'a ProcArray,
    main: ForkId,
    /// As [`simple_prune_bytes`] has them.
    prune_bytes: [u32; 2],
}

impl DeferredPruning<'_> {
    /// Prunes the page, with the record of that; `None` when it is not that simple, and nothing was
    /// done then. What is left open, [`HeapPage::leave_freed`](crate::page::HeapPage) writes, or a
    /// HOT update takes.
    ///
    /// As `HeapAccess::prune_by_plan` does, whose plan would be that.
    #[inline(always)]
    fn prune(
        self,
        heap: &mut Heap,
        counters: &mut TableCounters,
        wal: &mut Wal,
        block: BlockNumber,
    ) -> Option<Settled> {
        let updater = heap.pages()[block.0 as usize].prune_xid();
        if self.procs.outcome(updater) != Outcome::Committed || heap.is_any_watched() {
            return None;
        }
        if heap.behaviour().visibility_in_cleaning_records {
            heap.vm_mut().pin(block);
        }
        let main = self.main;
        let is_logged = wal.is_logged(main, block);
        let hole = |heap: &Heap| heap.pages()[block.0 as usize].exact_free_space();
        let before = if is_logged { 0 } else { hole(heap) };
        let settled = heap.prune_deferred(block)?;
        counters.pruned(1);
        if is_logged {
            let bytes = self.prune_bytes[usize::from(settled.frees_item)];
            wal.record_again(main, RecordType::HeapPrune, bytes);
        } else {
            wal.hint(main, block, before);
            let page = wal.change(main, block, hole(heap));
            let cleaning = simple_cleaning(settled.frees_item);
            let bytes = heap_prune(heap.behaviour(), cleaning, page);
            wal.record(RecordType::HeapPrune, bytes);
        }
        Some(settled)
    }
}

impl Table {
    /// A reader comes to a page and may prune it.
    pub fn prune_opt(&mut self, block: BlockNumber, procs: &ProcArray, wal: &mut Wal) {
        let wal = RefCell::new(wal);
        HeapAccess::new(self.heap_parts(), procs, &wal, None).prune_opt(block);
    }

    /// The same for an update of the page that follows at once, and takes the line pointer that is
    /// left open.
    ///
    /// Asked of a [`HeapAccess`], which would have to be made first, one client's update took
    /// 3.7 % more instructions (1,723 for 1,662).
    #[inline(always)]
    pub(super) fn prune_before_update(
        &mut self,
        block: BlockNumber,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> Settled {
        if !self.heap.is_worth_pruning(block, procs) {
            return Settled::NOTHING;
        }
        let main = self.forks.main;
        let pruning = DeferredPruning {
            procs,
            main,
            prune_bytes: self.scratch.prune_bytes,
        };
        if !procs.is_pinned(main, block)
            && let Some(settled) = pruning.prune(&mut self.heap, &mut self.counters, wal, block)
        {
            return settled;
        }
        self.prune_opt(block, procs, wal);
        Settled::NOTHING
    }
}

impl HeapAccess<'_, '_> {
    /// Prunes a page if worth while, for a statement that changes or locks rows.
    pub fn prune_opt(&mut self, block: BlockNumber) {
        self.prune_opt_for(block, false);
    }

    /// Prunes a page if worth while; from 19 on a statement that reads the table alone sets the
    /// page's visibility bit as well.
    pub fn prune_opt_for(&mut self, block: BlockNumber, is_read_only: bool) {
        if !self.is_worth_pruning(block) {
            return;
        }
        let sets_bits = is_read_only && self.sets_bits_here();
        let settled = (!sets_bits).then(|| self.prune_deferred(block)).flatten();
        match settled {
            Some(settled) => self.parts.heap.page_mut(block).leave_freed(settled),
            None => self.prune_by_plan(block, is_read_only),
        }
    }

    fn is_worth_pruning(&self, block: BlockNumber) -> bool {
        self.parts.heap.is_worth_pruning(block, self.procs)
            && !self.parts.pinned.contains(&Some(block))
            && !self.procs.is_pinned(self.parts.forks.main, block)
    }

    /// Whether pruning sets visibility bits.
    fn sets_bits_here(&self) -> bool {
        let behaviour = self.parts.heap.behaviour();
        behaviour.visibility_in_cleaning_records
    }

    /// As [`DeferredPruning::prune`].
    #[inline]
    fn prune_deferred(&mut self, block: BlockNumber) -> Option<Settled> {
        let parts = &mut self.parts;
        let pruning = DeferredPruning {
            procs: self.procs,
            main: parts.forks.main,
            prune_bytes: parts.prune_bytes,
        };
        let mut wal = self.wal.borrow_mut();
        pruning.prune(parts.heap, parts.counters, &mut wal, block)
    }

    /// Prunes a page that is worth it, by a plan.
    ///
    /// Source: `heap_page_prune_opt`, src/backend/access/heap/pruneheap.c (REL_18_STABLE, and
    /// commit b46e1e54d07 before 19beta1).
    #[inline(never)]
    fn prune_by_plan(&mut self, block: BlockNumber, is_read_only: bool) {
        let sets_bits_here = self.sets_bits_here();
        if sets_bits_here {
            self.parts.heap.vm_mut().pin(block);
            if self.parts.heap.vm().get(block).all_visible {
                self.forget_prunable(block);
                return;
            }
        }
        if self.parts.heap.note_hints(block, self.procs) {
            self.hinted(block);
        }
        let visit = self.parts.heap.prune_opt(block, self.procs);
        if sets_bits_here && is_read_only && self.set_visible(block, visit == PruneResult::Pruned) {
            return;
        }
        if visit == PruneResult::Nothing {
            return;
        }
        let hole = self.parts.heap.pages()[block.0 as usize].exact_free_space();
        let mut wal = self.wal.borrow_mut();
        match visit {
            PruneResult::Pruned => {
                let plan = self.parts.heap.last_prune();
                let page = wal.change(self.parts.forks.main, block, hole);
                let behaviour = self.parts.heap.behaviour();
                let bytes = heap_prune(behaviour, plan.cleaning(), page);
                wal.record(RecordType::HeapPrune, bytes);
                self.parts.counters.pruned(plan.reclaimed_tuples());
            }
            PruneResult::Hints | PruneResult::Nothing => {
                wal.hint(self.parts.forks.main, block, hole)
            }
        }
    }

    /// Takes the mark of something to prune from a page that everyone sees all of.
    ///
    /// Source: `prune_freeze_fast_path`, src/backend/access/heap/pruneheap.c (commit 01b7e4a46d0
    /// before 19beta1).
    fn forget_prunable(&mut self, block: BlockNumber) {
        if self.parts.heap.page_mut(block).clear_prune_xid() {
            self.hinted(block);
        }
    }

    /// Sets the visibility bit of a page that everyone sees all of, in the record of what was
    /// pruned or in one of its own; says whether it was set. Nothing is set where that would be the
    /// page's first change or would want an image.
    ///
    /// Source: `heap_page_will_set_vm`, src/backend/access/heap/pruneheap.c (commit b46e1e54d07
    /// before 19beta1).
    fn set_visible(&mut self, block: BlockNumber, is_pruned: bool) -> bool {
        let main = self.parts.forks.main;
        let mut wal = self.wal.borrow_mut();
        let is_cheap = is_pruned || (wal.is_dirty(main, block) && !wal.owes_image(main, block));
        let page = &self.parts.heap.pages()[block.0 as usize];
        let Some(found) = all_visible(page, self.procs).filter(|_| is_cheap) else {
            return false;
        };
        let hole = page.exact_free_space();
        let free = page.heap_free_space();
        let plan = self.parts.heap.last_prune();
        let mut cleaning = if is_pruned {
            self.parts.counters.pruned(plan.reclaimed_tuples());
            plan.cleaning()
        } else {
            PageCleaning::default()
        };
        cleaning.has_conflict_horizon |= found.has_visible_xid;
        let page = if is_pruned || wal.hints_are_logged() {
            wal.change(main, block, hole)
        } else {
            wal.name(main, block)
        };
        let vm_page = wal.change(self.parts.forks.vm, VisibilityMap::map_page(block), 0);
        let bytes = heap_prune_and_visible(cleaning, page, vm_page);
        wal.record(RecordType::HeapPrune, bytes);
        self.parts.heap.set_visible_by_reader(block);
        let fsm = self.parts.forks.fsm;
        let mut log = |fsm_block: BlockNumber| wal.hint(fsm, fsm_block, 0);
        self.parts.heap.fsm_mut().record(block, free, &mut log);
        true
    }
}

/// Pruning of one dead version: its root becomes a redirect, or leads further; then the dead
/// version's own line pointer is free.
fn simple_cleaning(frees_item: bool) -> PageCleaning {
    PageCleaning {
        redirected: 1,
        unused: u32::from(frees_item),
        has_conflict_horizon: true,
        ..PageCleaning::default()
    }
}

/// Bytes of the record of pruning one dead version, without an image: of the root itself, or of a
/// version whose line pointer is free then.
pub(super) fn simple_prune_bytes(behaviour: &Behaviour) -> [u32; 2] {
    [false, true].map(|frees_item| heap_prune(behaviour, simple_cleaning(frees_item), Page::Change))
}
