//! Autovacuum on the clock: a launcher, workers, and what they do to tables meanwhile.
//!
//! ```text
//! every naptime: a worker, which lists the tables that need something
//! worker: for each table: look again -> VACUUM page by page -> ANALYZE
//!         pages cost credit; when the limit is used up, it sleeps
//! ```
//!
//! A VACUUM removes what nobody could see when it began; clients go on between its pages. Left
//! out: catalogues (their vacuums take workers and time), other databases, and waiting for locks
//! and pins.
//!
//! Source: `AutoVacLauncherMain`, `do_autovacuum` and `AutoVacuumUpdateCostLimit`,
//! src/backend/postmaster/autovacuum.c; `vacuum_delay_point`, src/backend/commands/vacuum.c
//! (REL_15_STABLE, REL_18_STABLE, 19rc1).

mod age;
mod options;
mod score;
mod statistics;
mod threshold;
mod worker;

pub use options::{CostLimit, Named, Settings, Thresholds};
pub use score::ScoreWeights;
pub use statistics::{Shown, Statistics};
pub use threshold::{Class, Needs, estimated_rows};

use crate::executor::{Database, Relation, StatementError, TableId};
use crate::profile::settings::{bytes_of, parameters};
use crate::profile::{ProfileError, ProfileSpec};
use age::{DatabaseAges, is_older};
use worker::Worker;

/// What autovacuum did to a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Maintained {
    /// VACUUM; else ANALYZE.
    pub is_vacuum: bool,
    /// The table, by its place among the database's.
    pub relation: Relation,
    /// When it began, in seconds of the run.
    pub began_s: f64,
    /// When it ended; absent when that was after the run.
    pub ended_s: Option<f64>,
    /// Pages of the table that were looked at.
    pub scanned_pages: u32,
}

/// A table as autovacuum knows it.
#[derive(Debug, Clone)]
struct Known {
    relation: Relation,
    thresholds: Thresholds,
    cost_limit: CostLimit,
    class: Class,
    /// `autovacuum_freeze_max_age` and that of multixacts, its own or the server's.
    max_ages: [u32; 2],
}

/// Launcher, workers and statistics.
#[derive(Debug)]
pub struct Autovacuum {
    settings: Settings,
    shared_pages: f64,
    by_unfrozen_share: bool,
    known: Vec<Known>,
    statistics: Statistics,
    launch_s: f64,
    ages: DatabaseAges,
    workers: Vec<Worker>,
    done: Vec<Maintained>,
}

impl Autovacuum {
    /// Autovacuum of freshly loaded, vacuumed and analyzed tables. `phase` is how much of the
    /// first naptime has passed.
    ///
    /// # Errors
    /// [`ProfileError::Unsupported`]: a setting or storage parameter that is no number.
    pub fn new(spec: &ProfileSpec, db: &Database, phase: f64) -> Result<Self, ProfileError> {
        let settings = Settings::new(&spec.server, db.behaviour())?;
        let shared = bytes_of(&spec.server.shared_buffers).ok_or_else(|| {
            ProfileError::unsupported(
                "server.shared_buffers",
                &spec.server.shared_buffers,
                "a size",
            )
        })?;
        let mut known = Vec::new();
        // A worker takes all tables before it takes TOAST tables.
        for is_toast in [false, true] {
            for table in db.tables() {
                if is_toast && db.table(table).toast().is_none() {
                    continue;
                }
                let none = Named::new();
                let reloptions = spec.table.get(table.0).map_or(&none, |of| &of.reloptions);
                let has_own = reloptions.keys().any(|name| name.starts_with("toast."));
                let prefix = if is_toast && has_own { "toast." } else { "" };
                let relation = Relation { table, is_toast };
                let own = parameters(reloptions, prefix).freeze;
                let least = |own: Option<u32>, max: u32| own.map_or(max, |own| own.min(max));
                known.push(Known {
                    max_ages: [
                        least(own.xid.max, settings.freeze_ages.xid.max),
                        least(own.multixact.max, settings.freeze_ages.multixact.max),
                    ],
                    relation,
                    thresholds: settings.thresholds(reloptions, prefix)?,
                    cost_limit: settings.cost_limit(reloptions, prefix)?,
                    class: class_of(db, relation),
                });
            }
        }
        let relations = known.iter().map(|known| known.relation).collect();
        #[allow(clippy::cast_precision_loss)] // fewer than 2^53
        Ok(Self {
            by_unfrozen_share: db.behaviour().insert_threshold_by_unfrozen_share,
            shared_pages: (shared / 8192) as f64,
            statistics: Statistics::new(relations, spec.run.clients as usize, db),
            launch_s: if settings.is_active {
                settings.naptime_s * (1.0 - phase)
            } else {
                f64::INFINITY
            },
            ages: DatabaseAges::new(&settings.freeze_ages),
            settings,
            known,
            workers: Vec::new(),
            done: Vec::new(),
        })
    }

    /// When something is to be done next.
    #[must_use]
    pub fn due_s(&self) -> f64 {
        let workers = self.workers.iter().map(|worker| worker.due_s);
        workers.fold(self.launch_s, f64::min)
    }

    /// Whether a worker waits for the lock on a table's end.
    #[must_use]
    pub fn waits_for_lock(&self) -> bool {
        self.workers.iter().any(Worker::waits_for_lock)
    }

    /// Does what is due first.
    ///
    /// # Errors
    /// What a VACUUM meets that the twin cannot play, and its table.
    pub fn step(&mut self, db: &mut Database) -> Result<(), (StatementError, TableId)> {
        let due_s = self.due_s();
        let position = self.workers.iter().position(|work| work.due_s <= due_s);
        match position {
            Some(position) => self.work(position, db)?,
            None => self.launch(db),
        }
        Ok(())
    }

    /// A session has ended a transaction.
    pub fn end_transaction(&mut self, session: usize, now_s: f64, db: &Database) {
        self.statistics.end_transaction(session, now_s, db);
        if !self.settings.is_active && self.ages.wakes_launcher(self.oldest(db), db.procs()) {
            self.launch_s = self.launch_s.min(now_s + age::OTHERS_S);
        }
    }

    /// What was done, in the order of its end; what is in progress comes last, without an end.
    #[must_use]
    pub fn into_done(self) -> Vec<Maintained> {
        let running = self.workers.iter().filter_map(Worker::unfinished);
        let running: Vec<Maintained> = running.collect();
        let mut done = self.done;
        done.extend(running);
        done
    }

    /// What a table needs: by its statistics, if autovacuum is on, and by its age in any case.
    ///
    /// Source: `relation_needs_vacanalyze`, src/backend/postmaster/autovacuum.c (REL_18_STABLE).
    fn needs(&self, place: usize, db: &Database) -> Needs {
        let known = &self.known[place];
        let ages = db.relation(known.relation).ages(db.procs());
        let is_old = is_older(ages, known.max_ages);
        let mut needs = Needs::default();
        if self.settings.is_active {
            let thresholds = Thresholds {
                is_enabled: known.thresholds.is_enabled || is_old,
                ..known.thresholds
            };
            let shown = self.statistics.shown(place);
            needs = thresholds.needs(shown, known.class, self.by_unfrozen_share);
        }
        needs.vacuum |= is_old;
        needs.analyze &= !known.relation.is_toast; // TOAST tables are never analyzed
        needs
    }

    /// How far over its thresholds a table is, by which from 19 on the farthest comes first.
    ///
    /// Source: `relation_needs_vacanalyze`, src/backend/postmaster/autovacuum.c (19rc1).
    fn score(&self, place: usize, weights: &ScoreWeights, db: &Database) -> f64 {
        let known = &self.known[place];
        let ages = db.relation(known.relation).ages(db.procs());
        let of_ages = weights.of_ages(ages, known.max_ages, self.settings.failsafe_ages());
        let counted = (self.statistics.shown(place), known.class);
        let is_toast = known.relation.is_toast;
        let thresholds = &known.thresholds;
        of_ages.max(thresholds.score(counted, self.by_unfrozen_share, weights, is_toast))
    }

    /// Places of the list in the order in which a worker takes them.
    ///
    /// Source: `do_autovacuum` and `TableToProcessComparator`, as above.
    fn in_order(&self, mut listed: Vec<usize>, db: &Database) -> Vec<usize> {
        if let Some(weights) = &self.settings.score_weights {
            let scored = |&place: &usize| self.score(place, weights, db);
            listed.sort_by(|one, other| scored(other).total_cmp(&scored(one)));
        }
        listed
    }

    /// Ages of the oldest tables.
    fn oldest(&self, db: &Database) -> [u32; 2] {
        let known = self.known.iter();
        let ages = known.map(|known| db.relation(known.relation).ages(db.procs()));
        ages.fold([0; 2], |one, other| {
            [one[0].max(other[0]), one[1].max(other[1])]
        })
    }

    /// A worker lists the tables that need something, if there is a free one.
    fn launch(&mut self, db: &Database) {
        let now_s = self.launch_s;
        if self.settings.is_active && self.ages.others_come_first(self.oldest(db), db.procs()) {
            self.launch_s = now_s + self.settings.naptime_s * age::NAPTIMES_OF_OTHER;
        } else if self.workers.len() < self.settings.max_workers {
            let listed = (0..self.known.len()).filter(|&place| {
                let needs = self.needs(place, db);
                needs.vacuum || needs.analyze
            });
            let queue = self.in_order(listed.collect(), db);
            if !queue.is_empty() {
                self.workers.push(Worker::new(queue.into(), now_s));
            }
            self.ages.do_autovacuum(!self.settings.is_active);
            self.launch_s = if self.settings.is_active {
                now_s + self.settings.naptime_s
            } else {
                f64::INFINITY
            };
        } else {
            // The launcher waits for a worker to end.
            let workers = self.workers.iter().map(|worker| worker.due_s);
            self.launch_s = workers.fold(f64::INFINITY, f64::min).max(now_s) + RETRY_S;
        }
    }
}

/// A launcher that finds no free worker looks again so soon.
///
/// Source: `MIN_AUTOVAC_SLEEPTIME`, src/backend/postmaster/autovacuum.c (REL_18_STABLE).
const RETRY_S: f64 = 0.1;

/// What the catalogue has after VACUUM ANALYZE of a freshly loaded table, or after a rewrite.
fn class_of(db: &Database, relation: Relation) -> Class {
    let table = db.relation(relation);
    let heap = table.heap();
    let rows: usize = heap
        .pages()
        .iter()
        .map(|page| {
            let items = page.items().into_iter();
            items
                .filter(|item| matches!(item, crate::page::LinePointer::Normal(_)))
                .count()
        })
        .sum();
    #[allow(clippy::cast_precision_loss)] // rows of a table
    Class {
        reltuples: rows as f64,
        relpages: heap.page_count(),
        relallfrozen: all_frozen_pages(db, relation),
    }
}

/// Source: `visibilitymap_count`, src/backend/access/heap/visibilitymap.c (REL_18_STABLE).
fn all_frozen_pages(db: &Database, relation: Relation) -> u32 {
    let heap = db.relation(relation).heap();
    let blocks = (0..heap.page_count()).map(pgheadroom_layout::BlockNumber);
    let frozen = blocks.filter(|&block| heap.vm().get(block).all_frozen);
    u32::try_from(frozen.count()).unwrap_or(u32::MAX)
}
