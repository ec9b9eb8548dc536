//! VACUUM of a table and its indexes: what the heap's passes and the indexes log.

use std::cell::RefCell;

use pgheadroom_layout::wal_record::{Page, heap_prune, heap_vacuum_cleanup, heap_visible};
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::executor::fetch::HeapAccess;
use crate::executor::table::Table;
use crate::executor::{Database, TableId};
use crate::horizon::Horizon;
use crate::page::Tid;
use crate::vacuum::{VacuumScan, Vacuumed};
use crate::vm::VisibilityMap;
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
        assert!(self.horizon.current().is_none(), "VACUUM in a transaction");
        self.tables[table.0].vacuum(&self.horizon, &mut self.wal);
        self.forget_target_blocks();
    }
}

impl Table {
    fn vacuum(&mut self, horizon: &Horizon, wal: &mut Wal) {
        let fsm = self.fsm;
        let mut hint = |block| wal.hint(fsm, block, 0);
        let scanned = self.heap.vacuum_scan(horizon, &mut hint);
        self.log_prunes(scanned.done(), wal);
        self.vacuum_indexes(&scanned, horizon, wal);
        let mut hint = |block| wal.hint(fsm, block, 0);
        let done = self.heap.vacuum_reclaim(scanned, horizon, &mut hint);
        let behaviour = *self.heap.behaviour();
        for &(block, unused) in &done.cleaned {
            let page = wal.change(self.main, block, self.hole_of(block));
            let bytes = heap_vacuum_cleanup(&behaviour, unused, page);
            wal.record(RecordType::HeapVacuum, bytes);
        }
        for &block in &done.made_visible {
            let vm_page = wal.change(self.vm, VisibilityMap::map_page(block), 0);
            let heap_page = if wal.hints_are_logged() {
                wal.change(self.main, block, self.hole_of(block))
            } else {
                wal.change_unlogged(self.main, block);
                Page::Change
            };
            wal.record(RecordType::HeapVisible, heap_visible(vm_page, heap_page));
        }
        self.counters.n_dead_tup = 0;
        self.counters.n_ins_since_vacuum = 0;
    }

    fn log_prunes(&self, done: &Vacuumed, wal: &mut Wal) {
        for &(block, cleaning) in &done.pruned {
            let page = wal.change(self.main, block, self.hole_of(block));
            let bytes = heap_prune(self.heap.behaviour(), cleaning, page);
            wal.record(RecordType::HeapPruneVacuum, bytes);
        }
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

    fn hole_of(&self, block: BlockNumber) -> u32 {
        let offset = OffsetNumber(1);
        self.hole(Tid { block, offset })
    }
}
