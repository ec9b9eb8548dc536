//! VACUUM of a table and its indexes: what the heap's passes and the indexes log.

use std::cell::Cell;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::version::OpportunisticFreeze;

use crate::btree::{BulkDeletion, OpenDeletion};
use crate::clock;
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::executor::{Ages, Database, FreezeAges, StatementError, TableId};
use crate::procarray::{ProcArray, SinceThen};
use crate::transaction::Xid;
use crate::vacuum::{Cutoffs, EagerScan, ScanStep, VacuumOptions, VacuumScan, Vacuumed, eager};
use crate::wal::Wal;

mod heap_log;
mod index_pass;
mod whole;
mod workers;

use heap_log::HeapLog;
pub(crate) use whole::WaitingVacuum;
pub use workers::ParallelSettings;

/// A VACUUM of a table, or of its TOAST table, in progress.
#[derive(Debug)]
pub struct RunningVacuum {
    relation: Relation,
    oldest_xmin: Xid,
    oldest_multixact: Xid,
    scan: VacuumScan,
    phase: Phase,
    /// Whether autovacuum does it.
    by_itself: bool,
    /// Parallel workers that it has for the indexes.
    workers: u32,
    /// What the pass over the index did, until its end.
    open: Option<OpenDeletion>,
    /// Whether the heap's first pass is at its end.
    is_last_round: bool,
    /// What the last pass over each B-tree found, if there was any.
    passes: Vec<Option<BulkDeletion>>,
    /// How often the lock on the table's end was asked for in vain.
    lock_retry: u32,
}

/// Seconds from one try to lock the table's end to the next.
///
/// Source: `VACUUM_TRUNCATE_LOCK_WAIT_INTERVAL`, src/backend/access/heap/vacuumlazy.c
/// (REL_15_STABLE, REL_18_STABLE), in milliseconds.
pub(crate) const LOCK_WAIT_INTERVAL_S: f64 = 0.05;
/// So many tries follow the first one; after them the end stays.
///
/// Source: `VACUUM_TRUNCATE_LOCK_TIMEOUT`, vacuumlazy.c, in these intervals.
pub(crate) const LOCK_RETRIES: u32 = 100;

impl RunningVacuum {
    /// Whether the table is so old that nothing but freezing is done, without sleeping.
    #[must_use]
    pub const fn hurries(&self) -> bool {
        self.scan.hurries()
    }

    /// It asks for the lock on the table's end no more.
    pub(super) const fn give_up_end(&mut self) {
        self.scan.keep_end();
    }

    /// Whether it has asked for the lock on the table's end in vain.
    #[must_use]
    pub const fn waits_for_lock(&self) -> bool {
        self.lock_retry > 0
    }
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
    /// What is left to do at the index at this place.
    Cleanup(usize),
    End,
}

/// What a step of a VACUUM was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VacuumStep {
    /// So many pages of the table were looked at.
    Pages(u32),
    /// So many pages of an index.
    IndexPages(u32),
    /// Nothing: the end would be cut off, but somebody is in a transaction that has locked the
    /// table. The next step asks again, which a server does [`LOCK_WAIT_INTERVAL_S`] later, and
    /// after [`LOCK_RETRIES`] more the end stays.
    Locked,
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

/// Where eager scans begin: a server draws that, from a seed that nobody knows.
#[derive(Debug, Clone)]
pub(super) struct EagerScans {
    fails_per_region: u32,
    seed: u64,
    begun: Cell<u64>,
}

impl Default for EagerScans {
    fn default() -> Self {
        Self {
            fails_per_region: eager::fails_per_region(0.03),
            seed: 0,
            begun: Cell::new(0),
        }
    }
}

/// One seed has draws so far apart; arbitrary.
const BETWEEN_DRAWS: u64 = 7_919;

/// So many numbers before this one; that of a multixact stays one.
fn before(number: Xid, age: u32) -> Xid {
    let first = if number.is_multixact() {
        Xid::FIRST_MULTIXACT
    } else {
        Xid::INVALID
    };
    Xid(number.0.saturating_sub(age)).max(first)
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
    /// oldest number that somebody needs.
    fn by_age(&self, options: VacuumOptions, table: &Table, oldest_xmin: Xid) -> VacuumOptions {
        let whole = Ages {
            min: Some(0),
            table: Some(0),
            ..Ages::default()
        };
        let own = match (options.freeze, options.by_itself) {
            (true, _) => FreezeAges {
                xid: whole,
                multixact: whole,
            },
            (false, true) => table.class.parameters.freeze,
            (false, false) => FreezeAges::default(),
        };
        let xid = self.freeze_ages.xid.of_vacuum(own.xid);
        let multixact = self.freeze_ages.multixact.of_vacuum(own.multixact);
        let oldest_multixact = self.procs.oldest_multixact();
        let next = [self.procs.next_xid(), self.procs.next_multixact()];
        let counts_from_next =
            self.behaviour.opportunistic_freeze >= OpportunisticFreeze::WithImage;
        let [freeze_limit, multixact_cutoff] = if counts_from_next {
            [
                before(next[0], xid.min).min(oldest_xmin),
                before(next[1], multixact.min).min(oldest_multixact),
            ]
        } else {
            let safe = before(next[0], xid.max);
            let limit = before(oldest_xmin, xid.min);
            let safe_multixact = before(next[1], multixact.max);
            let cutoff = before(oldest_multixact, multixact.min);
            [
                if limit < safe { oldest_xmin } else { limit },
                cutoff.max(safe_multixact).min(oldest_multixact),
            ]
        };
        let [age, multixact_age] = table.ages(&self.procs);
        // 0, which is none, counts as the first multixact.
        let is_first = u32::from(table.class.relminmxid == Xid::FIRST_MULTIXACT);
        VacuumOptions {
            aggressive: age >= xid.table || multixact_age + is_first >= multixact.table,
            failsafe: self.is_in_danger(table),
            cutoffs: Cutoffs {
                freeze_limit,
                multixact_cutoff,
                oldest_multixact,
            },
            ..options
        }
    }

    /// So many pages of a region an eager scan may look at in vain.
    pub fn set_eager_fails(&mut self, fails_per_region: u32) {
        self.eager.fails_per_region = fails_per_region;
    }

    /// Where eager scans begin is drawn from this seed.
    pub fn draw_eager_scans(&mut self, seed: u64) {
        self.eager.seed = seed;
        self.eager.begun.set(0);
    }

    /// How many VACUUMs have scanned eagerly since then.
    #[must_use]
    pub const fn eager_scans(&self) -> u64 {
        self.eager.begun.get()
    }

    /// The eager scan of a VACUUM with these options.
    ///
    /// Source: `heap_vacuum_eager_scan_setup`, src/backend/access/heap/vacuumlazy.c
    /// (REL_18_STABLE).
    fn eager_scan(&self, options: &VacuumOptions, table: &Table) -> EagerScan {
        let fails = table.class.parameters.eager_fails;
        let fails = fails.unwrap_or(self.eager.fails_per_region);
        let pages = table.heap.page_count();
        let is_wanted = self.behaviour.opportunistic_freeze >= OpportunisticFreeze::EagerScan
            && fails > 0
            && !options.aggressive
            && pages >= eager::LEAST_PAGES
            && (table.class.relfrozenxid < options.cutoffs.freeze_limit
                || table.class.relminmxid < options.cutoffs.multixact_cutoff);
        if !is_wanted {
            return EagerScan::OFF;
        }
        let begun = self.eager.begun.get();
        let seed = self
            .eager
            .seed
            .wrapping_add(begun.wrapping_mul(BETWEEN_DRAWS));
        let draw = clock::phase(seed, clock::Phase::EagerScan);
        let Some(scan) = EagerScan::begin(fails, pages, table.heap.vm(), draw) else {
            return EagerScan::OFF;
        };
        self.eager.begun.set(begun + 1);
        scan
    }

    /// Whether a table is so old that VACUUM hurries.
    ///
    /// Source: `vacuum_xid_failsafe_check`, src/backend/commands/vacuum.c (REL_18_STABLE).
    fn is_in_danger(&self, table: &Table) -> bool {
        let [age, multixact_age] = table.ages(&self.procs);
        age > self.freeze_ages.xid.of_failsafe()
            || multixact_age > self.freeze_ages.multixact.of_failsafe()
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
        let workers = self.parallel_workers(&options, table);
        let options = VacuumOptions {
            has_indexes: table.has_indexes(),
            truncate: options.truncate && table.class.parameters.truncates,
            memory_kb: self.memory_settings.of_vacuum(options.by_itself),
            shares_memory: workers > 0,
            ..self.by_age(options, table, oldest_xmin)
        };
        let options = VacuumOptions {
            eager: self.eager_scan(&options, table),
            ..options
        };
        RunningVacuum {
            relation,
            oldest_xmin,
            oldest_multixact: options.cutoffs.oldest_multixact,
            scan: VacuumScan::new(&self.behaviour, options, table.heap.page_count()),
            phase: Phase::Scan,
            by_itself: options.by_itself,
            workers,
            open: None,
            is_last_round: false,
            passes: vec![None; table.indexes.btrees.len()],
            lock_retry: 0,
        }
    }

    /// The next page of the table or pages of an index, or the end: sessions forget then where they
    /// inserted last, if the catalogue's entry of the table has changed.
    ///
    /// # Errors
    /// [`StatementError::Vacuum`] where a BRIN's summary cannot be made: the VACUUM is over, what
    /// it did to pages stays, and nothing says that it took place.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn vacuum_step(
        &mut self,
        running: &mut RunningVacuum,
    ) -> Result<VacuumStep, StatementError> {
        assert!(self.procs.current().is_none(), "VACUUM in a transaction");
        if running.phase == Phase::Index(0) && self.is_in_danger(self.relation(running.relation)) {
            running.scan.hurry();
            running.phase = Phase::Reclaim;
        }
        if running.phase == Phase::End && !self.may_cut_end(running) {
            return Ok(VacuumStep::Locked);
        }
        let table = &mut self.tables[running.relation.table.0];
        let table = if running.relation.is_toast {
            &mut table.toast.as_mut().expect("a TOAST table").table
        } else {
            table
        };
        // Who vacuums has a backend of its own, except where the active session does.
        let known = self.procs.compute_horizons();
        let mut to = Writer {
            procs: &mut self.procs,
            wal: &mut self.wal,
            statement: 0, // nothing is stored
        };
        table.read_for_summaries(running, &mut to);
        let since_then = SinceThen {
            procs: &self.procs,
            oldest_xmin: running.oldest_xmin,
        };
        let step = table.vacuum_step(running, &since_then, &mut self.wal);
        self.procs.restore_horizons(known);
        if let Ok(VacuumStep::Done(done)) = &step {
            if table.note_vacuumed(done, running.oldest_xmin, running.oldest_multixact) {
                self.forget_target_blocks_of(running.relation);
            }
            // Exclusive locks are logged with their holder's number, but for wal_level minimal
            // (XLogStandbyInfoActive in LockAcquireExtended, src/backend/storage/lmgr/lock.c).
            if done.took_lock && !self.wal.skips_new_relations() {
                self.procs.assign();
                self.procs.commit();
            }
        }
        step
    }

    /// Whether a VACUUM that is at its end need not wait for a lock any more: nobody has one who
    /// would be in the way, or nothing is to be cut off, as when it has waited long enough.
    ///
    /// Source: `lazy_truncate_heap`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE,
    /// REL_18_STABLE). Differs: who waits meanwhile for the lock that it has got does not make it
    /// stop (`VACUUM_TRUNCATE_LOCK_CHECK_INTERVAL`).
    fn may_cut_end(&self, running: &mut RunningVacuum) -> bool {
        let is_locked = running.scan.should_attempt_truncation()
            && self
                .relation(running.relation)
                .session
                .are_locked_beside(&self.procs);
        if !is_locked {
            return true;
        }
        running.lock_retry += 1;
        let gives_up = running.lock_retry > LOCK_RETRIES;
        if gives_up {
            running.scan.keep_end();
        }
        gives_up
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

    /// How many times as fast as one process a VACUUM's processes go over the indexes.
    #[must_use]
    pub fn vacuum_index_speedup(&self, running: &RunningVacuum) -> f64 {
        self.index_speedup(running.workers, self.relation(running.relation))
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
    pub(super) fn begin_ages(&mut self, xid: Xid, procs: &ProcArray) {
        let toast = self.toast.as_mut().map(|toast| &mut toast.table.class);
        for class in [&mut self.class].into_iter().chain(toast) {
            class.relfrozenxid = xid;
            class.relminmxid = procs.oldest_multixact();
        }
    }

    fn vacuum_step(
        &mut self,
        running: &mut RunningVacuum,
        since_then: &SinceThen<'_>,
        wal: &mut Wal,
    ) -> Result<VacuumStep, StatementError> {
        Ok(match running.phase {
            Phase::Index(position) => self.begin_index(position, running, since_then.procs, wal),
            Phase::IndexPass(position, from) => {
                self.pass_index(position, from, running, since_then.procs)
            }
            Phase::IndexEnd(position) => self.end_index(position, running, since_then.procs, wal),
            Phase::Cleanup(position) => {
                self.cleanup_index(position, running, since_then.procs, wal)?
            }
            Phase::Scan | Phase::Reclaim | Phase::End => self.vacuum_heap(running, since_then, wal),
        })
    }

    /// A page of one of the heap's passes, or what comes at its end.
    ///
    /// Source: `lazy_scan_heap` and `lazy_vacuum_heap_rel`,
    /// src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    fn vacuum_heap(
        &mut self,
        running: &mut RunningVacuum,
        since_then: &SinceThen<'_>,
        wal: &mut Wal,
    ) -> VacuumStep {
        let mut log = HeapLog {
            wal,
            behaviour: *self.heap.behaviour(),
            main: self.forks.main,
            fsm: self.forks.fsm,
            vm: self.forks.vm,
            row_type: &self.values.row_type,
            rows: &self.values.rows,
            texts: &self.values.texts,
            procs: since_then.procs,
            by_itself: running.by_itself,
        };
        let scan = &mut running.scan;
        match running.phase {
            Phase::Scan => match self.heap.vacuum_scan_next(scan, since_then, &mut log) {
                ScanStep::Page => VacuumStep::Pages(1),
                step @ (ScanStep::Full | ScanStep::End) => {
                    running.is_last_round = step == ScanStep::End;
                    running.phase = if scan.needs_index_pass() {
                        Phase::Index(0)
                    } else {
                        Phase::Reclaim
                    };
                    VacuumStep::Pages(0)
                }
            },
            Phase::Reclaim => {
                if self.heap.vacuum_reclaim_next(scan, since_then, &mut log) {
                    return VacuumStep::Pages(1);
                }
                running.phase = if running.is_last_round {
                    self.heap.vacuum_rest_of_fsm(scan, &mut log);
                    if scan.hurries() {
                        Phase::End
                    } else {
                        Phase::Cleanup(0)
                    }
                } else {
                    self.heap.vacuum_round_end(scan, &mut log);
                    Phase::Scan
                };
                VacuumStep::Pages(0)
            }
            _ => {
                let none = VacuumScan::new(self.heap.behaviour(), VacuumOptions::default(), 0);
                let scan = std::mem::replace(scan, none);
                let done = self.heap.vacuum_end(scan, &mut log);
                let left = done.recently_dead_tuples + done.missed_dead_tuples;
                self.counters.n_dead_tup = i64::try_from(left).unwrap_or(i64::MAX);
                self.counters.n_ins_since_vacuum = 0;
                VacuumStep::Done(done)
            }
        }
    }
}
