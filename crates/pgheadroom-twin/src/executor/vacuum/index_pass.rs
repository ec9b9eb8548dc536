//! What a VACUUM does to a table's indexes.

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;

use crate::btree::Btree;
use crate::executor::fetch::HeapAccess;
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::executor::vacuum::{Phase, RunningVacuum, VacuumStep};
use crate::executor::{SessionId, StatementError};
use crate::gin::{Surroundings, Vacuuming};
use crate::heap::Heap;
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::prune::TupleState;
use crate::transaction::Transactions;
use crate::wal::{IndexLog, Wal};

/// In so many steps a pass over an index goes by, at most.
const STEPS_OF_A_PASS: u32 = 200;

/// An index, by its position among those of its method.
enum IndexOfMethod {
    Btree(usize),
    Hash(usize),
    Gin(usize),
    Brin(usize),
}

impl Table {
    /// Which index is at this place in the order of VACUUM, if there are so many.
    fn index_at(&self, position: usize) -> Option<IndexOfMethod> {
        let (btrees, hashes) = (self.indexes.btrees.len(), self.indexes.hashes.len());
        if position < btrees {
            return Some(IndexOfMethod::Btree(position));
        }
        let others = position - btrees;
        if others < hashes {
            return Some(IndexOfMethod::Hash(others));
        }
        let others = others - hashes;
        let gins = self.indexes.gins.len();
        if others < gins {
            return Some(IndexOfMethod::Gin(others));
        }
        let brin = others - gins;
        (brin < self.indexes.brins.len()).then_some(IndexOfMethod::Brin(brin))
    }

    /// The pass over an index: of a B-tree it begins, of others it is over at once.
    ///
    /// Source: `lazy_vacuum_all_indexes`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    pub(super) fn begin_index(
        &mut self,
        position: usize,
        running: &mut RunningVacuum,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> VacuumStep {
        running.phase = Phase::Index(position + 1);
        match self.index_at(position) {
            Some(IndexOfMethod::Btree(position)) => {
                running.phase = Phase::IndexPass(position, BlockNumber(0));
                self.vacuum_btree(position, running, procs, wal)
            }
            Some(IndexOfMethod::Hash(position)) => {
                let scan = &running.scan;
                let index = &mut self.indexes.hashes[position].index;
                index.bulk_delete(|tid| scan.is_dead(tid), wal);
                VacuumStep::IndexPages(index.page_count())
            }
            Some(IndexOfMethod::Gin(position)) => self.vacuum_gin(position, running, procs, wal),
            // It names no rows.
            Some(IndexOfMethod::Brin(_)) => VacuumStep::IndexPages(0),
            None => {
                running.phase = Phase::Reclaim;
                VacuumStep::IndexPages(0)
            }
        }
    }

    /// Differs: entries go at the beginning of the pass, whichever page they lie on.
    fn vacuum_btree(
        &mut self,
        position: usize,
        running: &mut RunningVacuum,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> VacuumStep {
        let scan = &running.scan;
        let is_dead = |tid| scan.is_dead(tid);
        running.open = Some(self.with_index(position, procs, wal, |tree, heap, log| {
            tree.begin_bulk_delete(is_dead, procs.next_xid(), heap, log)
        }));
        VacuumStep::IndexPages(0)
    }

    /// The pass comes to the next pages: those that it deletes remember who is next by then.
    pub(super) fn pass_index(
        &mut self,
        position: usize,
        from: BlockNumber,
        running: &mut RunningVacuum,
        procs: &ProcArray,
    ) -> VacuumStep {
        let tree = &mut self.indexes.btrees[position].tree;
        let pages = tree.page_count();
        let Some(open) = running.open.as_mut() else {
            running.phase = Phase::IndexEnd(position);
            return VacuumStep::IndexPages(1);
        };
        let to = from
            .0
            .saturating_add(pages.div_ceil(STEPS_OF_A_PASS))
            .min(pages);
        tree.delete_again(open, from..BlockNumber(to), procs.next_xid());
        running.phase = if to < pages {
            Phase::IndexPass(position, BlockNumber(to))
        } else {
            Phase::IndexEnd(position)
        };
        VacuumStep::IndexPages(to - from.0)
    }

    /// A page that the pass has deleted may be free by now.
    pub(super) fn end_index(
        &mut self,
        position: usize,
        running: &mut RunningVacuum,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> VacuumStep {
        running.phase = Phase::Index(position + 1);
        if let Some(open) = running.open.take() {
            let end = |tree: &mut Btree, heap: &HeapAccess<'_, '_>, log: &mut IndexLog<'_, '_>| {
                tree.end_bulk_delete(open, heap, log)
            };
            running.passes[position] = Some(self.with_index(position, procs, wal, end));
        }
        VacuumStep::IndexPages(0)
    }

    /// The pass over a GIN, at once.
    fn vacuum_gin(
        &mut self,
        position: usize,
        running: &RunningVacuum,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> VacuumStep {
        let index = &mut self.indexes.gins[position].index;
        let scan = &running.scan;
        let around = &mut Surroundings {
            wal,
            is_removable: &|xid| procs.is_removable(xid),
            session: SessionId(procs.active()),
        };
        let vacuuming = Vacuuming {
            is_autovacuum: running.by_itself,
            is_first_pass: scan.is_first_round(),
            next_xid: procs.next_xid(),
            is_dead: &|tid| scan.is_dead(tid),
        };
        index.bulk_delete(&vacuuming, around);
        VacuumStep::IndexPages(index.page_count())
    }

    /// Where the next step summarises ranges of a BRIN, it reads what their rows keep out of line.
    ///
    /// Source: `summarize_range`, src/backend/access/brin/brin.c, by
    /// `heapam_index_build_range_scan`, src/backend/access/heap/heapam_handler.c (REL_15_STABLE,
    /// REL_18_STABLE). Differs: of each version, dead ones too, the row's newest values are read.
    pub(super) fn read_for_summaries(&mut self, running: &RunningVacuum, to: &mut Writer<'_>) {
        let Phase::Cleanup(position) = running.phase else {
            return;
        };
        let Some(IndexOfMethod::Brin(position)) = self.index_at(position) else {
            return;
        };
        if !self.values.texts.has_forms() {
            return;
        }
        let brins = std::mem::take(&mut self.indexes.brins);
        let brin = &brins[position];
        for block in brin.full_ranges(self.heap.page_count()) {
            let rows = summarized_rows(&self.heap, BlockNumber(block), to.procs);
            for (row, ..) in rows.collect::<Vec<_>>() {
                // Where it fails the row has not been in the index: its insertion waits, and
                // VACUUM ends there.
                let _ = self.read_for_index(row, brin.sources(), None, to);
            }
        }
        self.indexes.brins = brins;
    }

    /// Ranges of a BRIN index that have become full are summarised.
    ///
    /// Source: `brinvacuumcleanup`, src/backend/access/brin/brin.c (REL_18_STABLE).
    ///
    /// # Errors
    /// As [`Brin::summarize`].
    fn vacuum_brin(
        &mut self,
        position: usize,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let mut brins = std::mem::take(&mut self.indexes.brins);
        let brin = &mut brins[position];
        brin.vacuum(wal);
        let mut done = Ok(());
        while let (Ok(()), Some(blocks)) = (&done, brin.next_full_range(self.heap.page_count())) {
            let rows = blocks
                .map(BlockNumber)
                .flat_map(|block| summarized_rows(&self.heap, block, procs));
            let rows = rows.map(|(row, tid, was_replaced)| (self.row_view(row), tid, was_replaced));
            done = brin.summarize(rows, wal);
        }
        if done.is_ok() {
            brin.end_vacuum();
        }
        self.indexes.brins = brins;
        done
    }

    /// What VACUUM does to each index at its end.
    ///
    /// Source: `lazy_cleanup_all_indexes`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    /// Differs: a server takes them in the order of their making, so that one that ends at a BRIN
    /// has left out those behind it; here these come first.
    ///
    /// # Errors
    /// As [`Brin::summarize`].
    pub(super) fn cleanup_index(
        &mut self,
        position: usize,
        running: &mut RunningVacuum,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> Result<VacuumStep, StatementError> {
        running.phase = Phase::Cleanup(position + 1);
        let had_pass = running.scan.has_passed_indexes();
        let pages = match self.index_at(position) {
            Some(IndexOfMethod::Btree(position)) => {
                let bulk = running.passes[position].take();
                self.with_index(position, procs, wal, |tree, heap, log| {
                    tree.vacuum_cleanup(bulk, procs.next_xid(), heap, log);
                });
                u32::from(!had_pass)
            }
            Some(IndexOfMethod::Hash(_)) => 0,
            Some(IndexOfMethod::Brin(position)) => {
                self.vacuum_brin(position, procs, wal)?;
                0
            }
            Some(IndexOfMethod::Gin(position)) => {
                let index = &mut self.indexes.gins[position].index;
                let around = &mut Surroundings {
                    wal,
                    is_removable: &|xid| procs.is_removable(xid),
                    session: SessionId(procs.active()),
                };
                index.vacuum_cleanup(had_pass, running.by_itself, around);
                if had_pass { 0 } else { index.page_count() }
            }
            None => {
                running.phase = Phase::End;
                0
            }
        };
        Ok(VacuumStep::IndexPages(pages))
    }

    fn with_index<R>(
        &mut self,
        position: usize,
        procs: &ProcArray,
        wal: &mut Wal,
        work: impl FnOnce(&mut Btree, &HeapAccess<'_, '_>, &mut IndexLog<'_, '_>) -> R,
    ) -> R {
        let wal = RefCell::new(wal);
        let mut indexes = std::mem::take(&mut self.indexes.btrees);
        let index = &mut indexes[position];
        let heap = HeapAccess::new(self.heap_parts(), procs, &wal, None);
        let mut log = index.log(&wal);
        let done = work(&mut index.tree, &heap, &mut log);
        self.indexes.btrees = indexes;
        done
    }
}

/// Rows of the versions on a page that a summary is made of, and whether another replaces it.
///
/// Source: `heapam_index_build_range_scan` with `anyvisible`,
/// src/backend/access/heap/heapam_handler.c (REL_15_STABLE, REL_18_STABLE).
fn summarized_rows(
    heap: &Heap,
    block: BlockNumber,
    procs: &ProcArray,
) -> impl Iterator<Item = (u32, Tid, bool)> {
    let page = &heap.pages()[block.0 as usize];
    page.offsets().filter_map(move |offset| {
        let tuple = page.tuple(offset)?;
        let was_replaced = tuple.xmax.is_valid() && !tuple.is_locked_only;
        let is_dead = TupleState::of(&tuple, procs) == TupleState::Dead;
        (!is_dead).then_some((tuple.row, Tid { block, offset }, was_replaced))
    })
}
