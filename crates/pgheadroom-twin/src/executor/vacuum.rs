//! VACUUM of a table and its indexes: what the heap's passes and the indexes log.

use std::cell::RefCell;

use pgheadroom_layout::version::OpportunisticFreeze;
use pgheadroom_layout::wal_record::{
    Page, heap_freeze, heap_prune, heap_prune_and_visible, heap_vacuum_cleanup, heap_visible,
};
use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::btree::{Btree, OpenDeletion};
use crate::checkpoint::ForkId;
use crate::executor::fetch::HeapAccess;
use crate::executor::rows::Rows;
use crate::executor::table::Table;
use crate::executor::{Database, FreezeAges, TableId};
use crate::fsm::Modified;
use crate::gin::{Surroundings, Vacuuming};
use crate::procarray::{ProcArray, SinceThen};
use crate::row::{Form, NULL_SLOT, RowType, Texts};
use crate::transaction::{Transactions, Xid};
use crate::vacuum::{
    Change, FreezeKind, Truncation, VacuumLog, VacuumOptions, VacuumScan, Vacuumed,
};
use crate::vm::{ForkTruncation, VisibilityMap};
use crate::wal::{IndexLog, RecordType, Wal};

/// In so many steps a pass over an index goes by, at most.
const STEPS_OF_A_PASS: u32 = 200;

/// A VACUUM of a table, or of its TOAST table, in progress.
#[derive(Debug)]
pub struct RunningVacuum {
    relation: Relation,
    oldest_xmin: Xid,
    scan: VacuumScan,
    phase: Phase,
    /// Whether autovacuum does it.
    by_itself: bool,
    /// What the pass over the index did, until its end.
    open: Option<OpenDeletion>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Scan,
    /// The index at this place.
    Index(usize),
    /// The pass over that index, which has come to this page.
    IndexPass(usize, BlockNumber),
    /// The end of the pass over that index, which others may have passed by meanwhile.
    IndexEnd(usize),
    Reclaim,
}

/// What a step of a VACUUM was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VacuumStep {
    /// So many pages of the table were looked at.
    Pages(u32),
    /// So many pages of an index.
    IndexPages(u32),
    /// It is over.
    Done(Vacuumed),
}

/// A table of the database, or its TOAST table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Relation {
    /// The table.
    pub table: TableId,
    /// Whether its TOAST table is meant.
    pub is_toast: bool,
}

impl Database {
    /// From now on VACUUM freezes by these ages.
    pub fn set_freeze_ages(&mut self, ages: FreezeAges<u32>) {
        self.freeze_ages = ages;
    }

    /// The options, with what has to be frozen now, and whether all pages are looked at.
    ///
    /// Source: `vacuum_get_cutoffs`, src/backend/commands/vacuum.c (REL_16_STABLE,
    /// REL_18_STABLE); `vacuum_set_xid_limits`, same file (REL_15_STABLE), which counts from the
    /// oldest transaction that somebody needs.
    fn by_age(&self, options: VacuumOptions, table: &Table, oldest_xmin: Xid) -> VacuumOptions {
        let own = table.class.parameters.freeze;
        let ages = if options.by_itself {
            FreezeAges {
                min: own.min.unwrap_or(self.freeze_ages.min),
                table: own.table.unwrap_or(self.freeze_ages.table),
            }
        } else {
            self.freeze_ages
        };
        let next = self.procs.next_xid();
        let counts_from_next =
            self.behaviour.opportunistic_freeze >= OpportunisticFreeze::WithImage;
        let from = if counts_from_next { next } else { oldest_xmin };
        VacuumOptions {
            aggressive: table.class.relfrozenxid.0 <= next.0.saturating_sub(ages.table),
            freeze_limit: Xid(from.0.saturating_sub(ages.min)).min(oldest_xmin),
            ..options
        }
    }

    /// VACUUM.
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
        let done = self.vacuum_whole(table, false, options);
        self.vacuum_toast(table, options);
        done
    }

    /// What follows a table's own VACUUM with default options: that of its TOAST table.
    pub(crate) fn end_vacuum(&mut self, table: TableId) {
        self.vacuum_toast(table, VacuumOptions::default());
    }

    fn vacuum_toast(&mut self, table: TableId, options: VacuumOptions) {
        if self.tables[table.0].toast.is_some() {
            self.vacuum_whole(table, true, options);
        }
    }

    fn vacuum_whole(&mut self, table: TableId, is_toast: bool, options: VacuumOptions) -> Vacuumed {
        self.procs.begin_statement();
        self.procs.compute_horizons();
        let mut running = self.begin_vacuum(Relation { table, is_toast }, options);
        loop {
            if let VacuumStep::Done(done) = self.vacuum_step(&mut running) {
                self.procs.commit(); // its snapshot goes, and the horizon with it
                return done;
            }
        }
    }

    /// A VACUUM that removes what nobody can see now, and is carried out by
    /// [`Database::vacuum_step`].
    ///
    /// # Panics
    /// Inside a transaction, or when there is no such relation.
    #[must_use]
    pub fn begin_vacuum(&self, relation: Relation, options: VacuumOptions) -> RunningVacuum {
        assert!(self.procs.current().is_none(), "VACUUM in a transaction");
        let oldest_xmin = self.procs.oldest_xmin();
        let table = self.relation(relation);
        let options = VacuumOptions {
            has_indexes: table.has_indexes(),
            truncate: options.truncate && table.class.parameters.truncates,
            ..self.by_age(options, table, oldest_xmin)
        };
        RunningVacuum {
            relation,
            oldest_xmin,
            scan: VacuumScan::new(options, table.heap.page_count()),
            phase: Phase::Scan,
            by_itself: options.by_itself,
            open: None,
        }
    }

    /// The next page of the table or pages of an index, or the end: sessions forget then where they
    /// inserted last, if the catalogue's entry of the table has changed.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn vacuum_step(&mut self, running: &mut RunningVacuum) -> VacuumStep {
        assert!(self.procs.current().is_none(), "VACUUM in a transaction");
        let since_then = SinceThen {
            procs: &self.procs,
            oldest_xmin: running.oldest_xmin,
        };
        let table = &mut self.tables[running.relation.table.0];
        let table = if running.relation.is_toast {
            &mut table.toast.as_mut().expect("a TOAST table").table
        } else {
            table
        };
        // Who vacuums has a backend of its own, except where the active session does.
        let known = self.procs.compute_horizons();
        let step = table.vacuum_step(running, &since_then, &mut self.wal);
        self.procs.restore_horizons(known);
        if let VacuumStep::Done(done) = &step {
            if table.note_vacuumed(done, running.oldest_xmin) {
                self.forget_target_blocks_of(running.relation);
            }
            if done.took_lock {
                self.procs.assign(); // exclusive locks are logged with their holder's number
                self.procs.commit();
            }
        }
        step
    }

    /// About how many pages of the table and its indexes a VACUUM has before it. How many of those
    /// of the first pass the second one comes back to is known when the first is over; until then
    /// it is taken to be half of them.
    ///
    /// # Panics
    /// When there is no such relation.
    #[must_use]
    pub fn vacuum_pages_left(&self, running: &RunningVacuum) -> u64 {
        let table = self.relation(running.relation);
        let heap = running.scan.pages_left(table.heap().vm());
        let indexes: u64 = table.index_pages().into_iter().map(u64::from).sum();
        match running.phase {
            Phase::Scan => (heap + heap / 2) as u64 + indexes,
            _ if running.scan.needs_index_pass() => heap as u64 + indexes,
            _ => heap as u64,
        }
    }

    /// The table, or its TOAST table.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    pub fn relation(&self, relation: Relation) -> &Table {
        let table = &self.tables[relation.table.0];
        if relation.is_toast {
            table.toast().expect("a TOAST table")
        } else {
            table
        }
    }
}

impl Table {
    /// It is new: nothing older than this is on its pages.
    pub(super) fn begin_ages(&mut self, xid: Xid) {
        self.class.relfrozenxid = xid;
        if let Some(toast) = &mut self.toast {
            toast.table.class.relfrozenxid = xid;
        }
    }

    fn vacuum_step(
        &mut self,
        running: &mut RunningVacuum,
        since_then: &SinceThen<'_>,
        wal: &mut Wal,
    ) -> VacuumStep {
        if let Phase::Index(position) = running.phase {
            if position < self.indexes.btrees.len() {
                running.phase = Phase::IndexPass(position, BlockNumber(0));
                return self.vacuum_index(position, running, since_then.procs, wal);
            }
            let others = position - self.indexes.btrees.len();
            let hashes = self.indexes.hashes.len();
            if others < hashes {
                running.phase = Phase::Index(position + 1);
                return self.vacuum_hash(others, running, wal);
            }
            if others < hashes + self.indexes.gins.len() {
                running.phase = Phase::Index(position + 1);
                return self.vacuum_gin(others - hashes, running, since_then.procs, wal);
            }
            running.phase = Phase::Reclaim;
        }
        if let Phase::IndexPass(position, from) = running.phase {
            return self.pass_index(position, from, running, since_then.procs);
        }
        if let Phase::IndexEnd(position) = running.phase {
            running.phase = Phase::Index(position + 1);
            return self.end_index(position, running.open.take(), since_then.procs, wal);
        }
        let mut log = HeapLog {
            wal,
            behaviour: *self.heap.behaviour(),
            main: self.forks.main,
            fsm: self.forks.fsm,
            vm: self.forks.vm,
            row_type: &self.values.row_type,
            rows: &self.values.rows,
            texts: &self.values.texts,
        };
        let scan = &mut running.scan;
        let goes_on = match running.phase {
            Phase::Scan => {
                if !self.heap.vacuum_scan_next(scan, since_then, &mut log) {
                    running.phase = Phase::Index(0);
                    return VacuumStep::Pages(0);
                }
                true
            }
            _ => self.heap.vacuum_reclaim_next(scan, since_then, &mut log),
        };
        if goes_on {
            return VacuumStep::Pages(1);
        }
        let scan = std::mem::replace(scan, VacuumScan::new(VacuumOptions::default(), 0));
        let done = self.heap.vacuum_end(scan, &mut log);
        self.counters.n_dead_tup = i64::try_from(done.recently_dead_tuples).unwrap_or(i64::MAX);
        self.counters.n_ins_since_vacuum = 0;
        VacuumStep::Done(done)
    }

    /// The pass over an index, if it needs one.
    ///
    /// Source: `lazy_vacuum_all_indexes`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    /// Differs: entries go at its beginning, whichever page they lie on.
    fn vacuum_index(
        &mut self,
        position: usize,
        running: &mut RunningVacuum,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> VacuumStep {
        let scan = &running.scan;
        if !scan.needs_index_pass() {
            return VacuumStep::IndexPages(0);
        }
        let is_dead = |tid| scan.is_dead(tid);
        running.open = Some(self.with_index(position, procs, wal, |tree, heap, log| {
            tree.begin_bulk_delete(is_dead, procs.next_xid(), heap, log)
        }));
        VacuumStep::IndexPages(0)
    }

    /// The pass comes to the next pages: those that it deletes remember who is next by then.
    fn pass_index(
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

    /// The pass over a hash index, if it needs one, at once.
    fn vacuum_hash(
        &mut self,
        position: usize,
        running: &RunningVacuum,
        wal: &mut Wal,
    ) -> VacuumStep {
        let index = &mut self.indexes.hashes[position].index;
        let scan = &running.scan;
        if !scan.needs_index_pass() {
            return VacuumStep::IndexPages(0);
        }
        index.bulk_delete(|tid| scan.is_dead(tid), wal);
        VacuumStep::IndexPages(index.page_count())
    }

    /// The pass over a GIN, if it needs one, and its end, at once.
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
        };
        let has_removed = scan.needs_index_pass();
        if has_removed {
            let vacuuming = Vacuuming {
                is_autovacuum: running.by_itself,
                next_xid: procs.next_xid(),
                is_dead: &|tid| scan.is_dead(tid),
            };
            index.bulk_delete(&vacuuming, around);
        }
        index.vacuum_cleanup(has_removed, running.by_itself, around);
        VacuumStep::IndexPages(index.page_count())
    }

    /// Source: `lazy_cleanup_all_indexes`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    fn end_index(
        &mut self,
        position: usize,
        open: Option<OpenDeletion>,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> VacuumStep {
        self.with_index(position, procs, wal, |tree, heap, log| {
            let bulk = open.map(|open| tree.end_bulk_delete(open, heap, log));
            tree.vacuum_cleanup(bulk, procs.next_xid(), heap, log);
        });
        VacuumStep::IndexPages(0)
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

/// Writes the records of a VACUUM of a heap.
struct HeapLog<'a> {
    wal: &'a mut Wal,
    behaviour: Behaviour,
    main: ForkId,
    fsm: ForkId,
    vm: ForkId,
    row_type: &'a RowType,
    rows: &'a Rows,
    texts: &'a Texts,
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
        let slots = self.rows.slots(row);
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
