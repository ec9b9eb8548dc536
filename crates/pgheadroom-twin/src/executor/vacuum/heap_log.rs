//! Writes the records of a VACUUM of a heap.

use pgheadroom_layout::wal_record::{
    Page, heap_freeze, heap_prune, heap_prune_and_visible, heap_vacuum_cleanup, heap_visible,
};
use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::checkpoint::ForkId;
use crate::executor::rows::Rows;
use crate::fsm::Modified;
use crate::procarray::ProcArray;
use crate::row::{Form, NULL_SLOT, RowType, Texts};
use crate::vacuum::{Change, FreezeKind, Truncation, VacuumLog};
use crate::vm::{ForkTruncation, VisibilityMap};
use crate::wal::{RecordType, Wal};

/// Writes the records of a VACUUM of a heap.
pub(super) struct HeapLog<'a> {
    pub wal: &'a mut Wal,
    pub behaviour: Behaviour,
    pub main: ForkId,
    pub fsm: ForkId,
    pub vm: ForkId,
    pub row_type: &'a RowType,
    pub rows: &'a Rows,
    pub texts: &'a Texts,
    pub procs: &'a ProcArray,
    /// Whether a backend vacuums that is none of the sessions.
    pub by_itself: bool,
}

impl HeapLog<'_> {
    /// A map's page whose tail was cleared is logged whole where hints are logged.
    ///
    /// Source: `FreeSpaceMapPrepareTruncateRel`, src/backend/storage/freespace/freespace.c;
    /// `visibilitymap_prepare_truncate`, src/backend/access/heap/visibilitymap.c
    /// (REL_15_STABLE, REL_18_STABLE).
    fn truncate_map(&mut self, fork: ForkId, truncation: ForkTruncation) {
        if let Some(block) = truncation.cut_page {
            if self.wal.hints_are_logged() {
                self.wal.whole_page(fork, block, 0);
            } else {
                self.wal.change_unlogged(fork, block);
            }
        }
        self.wal.truncate(fork, truncation.pages);
    }
}

impl Modified for HeapLog<'_> {
    fn modified(&mut self, fsm_block: BlockNumber) {
        self.wal.hint(self.fsm, fsm_block, 0);
    }
}

impl VacuumLog for HeapLog<'_> {
    fn hinted(&mut self, block: BlockNumber, hole_bytes: u32) -> bool {
        self.wal.hint_image(self.main, block, hole_bytes)
    }

    fn changed(&mut self, block: BlockNumber, change: Change, hole_bytes: u32) -> bool {
        if change == Change::MadeVisible {
            let vm_page = self.wal.change(self.vm, VisibilityMap::map_page(block), 0);
            let page = if self.wal.hints_are_logged() {
                self.wal.change(self.main, block, hole_bytes)
            } else {
                self.wal.name(self.main, block)
            };
            self.wal
                .record(RecordType::HeapVisible, heap_visible(vm_page, page));
            return page != Page::Change;
        }
        if let Change::PrunedVisible(cleaning) | Change::CleanedVisible(cleaning) = change {
            let changes_page = cleaning.changes_items() || cleaning.frozen > 0;
            let page = if changes_page || self.wal.hints_are_logged() {
                self.wal.change(self.main, block, hole_bytes)
            } else {
                self.wal.name(self.main, block)
            };
            let vm_page = self.wal.change(self.vm, VisibilityMap::map_page(block), 0);
            let record = match change {
                Change::CleanedVisible(_) => RecordType::HeapVacuum,
                _ => RecordType::HeapPruneVacuum,
            };
            self.wal
                .record(record, heap_prune_and_visible(cleaning, page, vm_page));
            return page != Page::Change;
        }
        let page = self.wal.change(self.main, block, hole_bytes);
        let behaviour = &self.behaviour;
        let (record, bytes) = match change {
            Change::Pruned(cleaning) => (
                RecordType::HeapPruneVacuum,
                heap_prune(behaviour, cleaning, page),
            ),
            Change::Frozen(tuples, plans) => {
                let bytes = heap_freeze(behaviour, tuples, plans, page);
                (RecordType::HeapFreeze, bytes.expect("a version to 16"))
            }
            Change::Cleaned(unused) => (
                RecordType::HeapVacuum,
                heap_vacuum_cleanup(behaviour, unused, page),
            ),
            Change::MadeVisible | Change::PrunedVisible(_) | Change::CleanedVisible(_) => {
                unreachable!("handled above")
            }
        };
        self.wal.record(record, bytes);
        page != Page::Change
    }

    fn owes_image(&self, block: BlockNumber) -> bool {
        self.wal.owes_image(self.main, block)
    }

    fn logs_hints(&self) -> bool {
        self.wal.hints_are_logged()
    }

    fn is_pinned(&self, block: BlockNumber) -> bool {
        if self.by_itself {
            self.procs.is_pinned_by_any(self.main, block)
        } else {
            self.procs.is_pinned(self.main, block)
        }
    }

    fn truncated(&mut self, truncation: &Truncation) {
        if let Some(fsm) = truncation.fsm {
            self.truncate_map(self.fsm, fsm);
        }
        if let Some(vm) = truncation.vm {
            self.truncate_map(self.vm, vm);
        }
        self.wal.truncate(self.main, truncation.heap_pages);
    }

    fn freeze_kind(&self, row: u32) -> FreezeKind {
        let columns = &self.row_type.columns;
        let slots = &self.rows.slots(row)[..];
        let is_null = |slot: &i64| *slot == NULL_SLOT;
        let mut filled = columns.iter().zip(slots).filter(|(_, slot)| !is_null(slot));
        let mut kept = columns.iter().zip(slots).filter(|(column, slot)| {
            column.kind.is_kept() && column.width.is_none() && !is_null(slot)
        });
        let is_external = |slot| {
            matches!(
                self.texts.form_in_slot(slot, None),
                Some(Form::External { .. })
            )
        };
        FreezeKind {
            has_nulls: slots.iter().any(is_null),
            has_var_width: filled.any(|(column, _)| column.width.is_none()),
            has_external: self.texts.has_forms() && kept.any(|(_, &slot)| is_external(slot)),
        }
    }
}
