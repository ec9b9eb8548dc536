//! VACUUM of a table and its indexes: what the heap's passes and the indexes log.

use std::cell::RefCell;

use pgheadroom_layout::wal_record::{
    Page, heap_freeze, heap_prune, heap_vacuum_cleanup, heap_visible,
};
use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::checkpoint::ForkId;
use crate::executor::fetch::HeapAccess;
use crate::executor::table::Table;
use crate::executor::{Database, TableId};
use crate::fsm::Modified;
use crate::horizon::Horizon;
use crate::row::{NULL_SLOT, RowType};
use crate::rules::{Rule, on};
use crate::vacuum::{
    Change, FreezeKind, Truncation, VacuumLog, VacuumOptions, VacuumScan, Vacuumed,
};
use crate::vm::{ForkTruncation, VisibilityMap};
use crate::wal::{IndexLog, RecordType, Wal};

impl Database {
    /// VACUUM. All sessions forget where they inserted last.
    ///
    /// # Panics
    /// Inside a transaction.
    ///
    /// Source: `heap_vacuum_rel`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    /// Differs: as `crate::vacuum`; records of the catalogue are left out.
    pub fn vacuum(&mut self, table: TableId) {
        self.vacuum_as(table, VacuumOptions::default());
    }

    /// VACUUM with options; whether there are indexes is taken from the table.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn vacuum_as(&mut self, table: TableId, options: VacuumOptions) -> Vacuumed {
        assert!(self.horizon.current().is_none(), "VACUUM in a transaction");
        let horizon = if on(Rule::VacuumKeepsRecentlyDead) {
            self.horizon.clone()
        } else {
            self.horizon.without_snapshots()
        };
        let done = self.tables[table.0].vacuum(options, &horizon, &mut self.wal);
        if done.took_lock {
            self.horizon.assign(); // exclusive locks are logged with their holder's number
            self.horizon.commit();
        }
        if on(Rule::TargetBlockForgotten) {
            self.forget_target_blocks();
        }
        done
    }
}

impl Table {
    fn vacuum(&mut self, options: VacuumOptions, horizon: &Horizon, wal: &mut Wal) -> Vacuumed {
        let options = VacuumOptions {
            has_indexes: !self.indexes.is_empty() || !self.brins.is_empty(),
            ..options
        };
        let mut log = HeapLog {
            wal,
            behaviour: *self.heap.behaviour(),
            main: self.main,
            fsm: self.fsm,
            vm: self.vm,
            row_type: &self.row_type,
            slots: &self.slots,
        };
        let scanned = self.heap.vacuum_scan(options, horizon, &mut log);
        self.vacuum_indexes(&scanned, horizon, wal);
        let mut log = HeapLog {
            wal,
            behaviour: *self.heap.behaviour(),
            main: self.main,
            fsm: self.fsm,
            vm: self.vm,
            row_type: &self.row_type,
            slots: &self.slots,
        };
        let done = self.heap.vacuum_reclaim(scanned, horizon, &mut log);
        self.counters.n_dead_tup = i64::try_from(done.recently_dead_tuples).unwrap_or(i64::MAX);
        self.counters.n_ins_since_vacuum = 0;
        if let Some(toast) = &mut self.toast {
            toast.table.vacuum(options, horizon, wal);
        }
        done
    }

    /// Source: `lazy_vacuum_all_indexes` and `lazy_cleanup_all_indexes`,
    /// src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    fn vacuum_indexes(&mut self, scanned: &VacuumScan, horizon: &Horizon, wal: &mut Wal) {
        let next_xid = horizon.next_xid();
        let wal = RefCell::new(wal);
        let mut indexes = std::mem::take(&mut self.indexes);
        for index in &mut indexes {
            let heap = HeapAccess::new(self.heap_parts(), horizon, &wal, None);
            let mut log = IndexLog {
                wal: &wal,
                main: index.main,
                fsm: index.fsm,
            };
            let is_dead = |tid| scanned.is_dead(tid);
            let tree = &mut index.tree;
            let bulk = scanned
                .needs_index_pass()
                .then(|| tree.bulk_delete(None, is_dead, next_xid, &heap, &mut log));
            tree.vacuum_cleanup(bulk, next_xid, &heap, &mut log);
        }
        self.indexes = indexes;
    }
}

/// Writes the records of a VACUUM of a heap.
struct HeapLog<'a> {
    wal: &'a mut Wal,
    behaviour: Behaviour,
    main: ForkId,
    fsm: ForkId,
    vm: ForkId,
    row_type: &'a RowType,
    slots: &'a [i64],
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
            Change::MadeVisible => unreachable!("handled above"),
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
        let slots = &self.slots[row as usize * columns.len()..][..columns.len()];
        let is_null = |slot: &i64| *slot == NULL_SLOT;
        let mut filled = columns.iter().zip(slots).filter(|(_, slot)| !is_null(slot));
        FreezeKind {
            has_nulls: slots.iter().any(is_null),
            has_var_width: filled.any(|(column, _)| column.width.is_none()),
            has_external: false,
        }
    }
}
