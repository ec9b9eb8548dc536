//! A worker of autovacuum: one table after the other, at the pace of its cost limit.

use std::collections::VecDeque;

use crate::autovacuum::threshold::{Class, estimated_rows};
use crate::autovacuum::{Autovacuum, Maintained, all_frozen_pages, class_of};
use crate::executor::{
    Analyzed, Database, LOCK_WAIT_INTERVAL_S, Relation, RunningVacuum, StatementError, TableId,
    VacuumStep,
};
use crate::procarray::HeldSnapshot;
use crate::vacuum::{VacuumOptions, Vacuumed};

/// Processor time of a page, beside what sleeping takes; with the times in docs/method/clock.md.
const PAGE_S: f64 = 10e-6;
/// Processor time of a row in ANALYZE's sample, which is copied, sorted and compared.
const SAMPLED_ROW_S: f64 = 2.5e-6;
/// Rows in that sample, and at most as many pages, for each of `default_statistics_target`.
///
/// Source: `std_typanalyze`, src/backend/commands/analyze.c (REL_18_STABLE).
const SAMPLED: f64 = 300.0;

/// A worker.
#[derive(Debug)]
pub(super) struct Worker {
    /// When it does something next.
    pub due_s: f64,
    queue: VecDeque<usize>,
    job: Option<Job>,
}

/// What a worker is at.
#[derive(Debug)]
struct Job {
    place: usize,
    relation: Relation,
    began_s: f64,
    scanned_pages: u32,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Vacuum {
        running: Box<RunningVacuum>,
        then_analyze: bool,
    },
    /// ANALYZE has read the table, and its snapshot is held until it is done.
    Analyze {
        found: Analyzed,
        snapshot: HeldSnapshot,
        after_vacuum: bool,
    },
}

impl Worker {
    pub fn new(queue: VecDeque<usize>, now_s: f64) -> Self {
        Self {
            due_s: now_s,
            queue,
            job: None,
        }
    }

    /// Whether it waits for the lock on its table's end.
    pub fn waits_for_lock(&self) -> bool {
        let kind = self.job.as_ref().map(|job| &job.kind);
        matches!(kind, Some(Kind::Vacuum { running, .. }) if running.waits_for_lock())
    }

    /// What it has begun and not ended.
    pub fn unfinished(&self) -> Option<Maintained> {
        let job = self.job.as_ref()?;
        Some(Maintained {
            is_vacuum: matches!(job.kind, Kind::Vacuum { .. }),
            relation: job.relation,
            began_s: job.began_s,
            ended_s: None,
            scanned_pages: job.scanned_pages,
        })
    }
}

impl Autovacuum {
    /// The worker at this position does its next step. A VACUUM that fails is over, and counted
    /// nowhere; the worker takes its next table.
    ///
    /// Source: `do_autovacuum`, src/backend/postmaster/autovacuum.c (REL_18_STABLE).
    pub(super) fn work(
        &mut self,
        position: usize,
        db: &mut Database,
    ) -> Result<(), (StatementError, TableId)> {
        match self.workers[position].job.take() {
            None => self.next_table(position, db),
            Some(mut job) => match &mut job.kind {
                Kind::Vacuum {
                    running,
                    then_analyze,
                } => {
                    let before = db.wal().pages().dirtied();
                    let speedup = db.vacuum_index_speedup(running);
                    let step = match db.vacuum_step(running) {
                        Err(error) if error.ends_vacuum() => return Ok(()),
                        step => step.map_err(|error| (error, job.relation.table))?,
                    };
                    let dirtied = db.wal().pages().dirtied() - before;
                    // Itself, and in the heap its entry in the free space map.
                    let read = match step {
                        VacuumStep::Pages(pages) => (pages, 2),
                        VacuumStep::IndexPages(pages) => (pages, 1),
                        VacuumStep::Locked | VacuumStep::Done(_) => (0, 0),
                    };
                    let hurries = running.hurries();
                    match step {
                        VacuumStep::Pages(_) | VacuumStep::IndexPages(_) => {
                            // Each process sleeps for its own share of the cost.
                            let at_once = if matches!(step, VacuumStep::IndexPages(_)) {
                                speedup
                            } else {
                                1.0
                            };
                            job.scanned_pages += if read.1 == 2 { read.0 } else { 0 };
                            let cost_s = if hurries {
                                f64::from(read.0) * PAGE_S
                            } else {
                                self.cost_s(job.place, read, dirtied, db)
                            };
                            self.go_on(position, job, cost_s / at_once);
                        }
                        VacuumStep::Locked => self.go_on(position, job, LOCK_WAIT_INTERVAL_S),
                        VacuumStep::Done(done) => {
                            let then_analyze = *then_analyze;
                            self.end_vacuum(position, &job, &done, db);
                            if then_analyze {
                                self.begin_analyze(position, job.place, true, db);
                            }
                        }
                    }
                }
                Kind::Analyze {
                    found,
                    snapshot,
                    after_vacuum,
                } => {
                    db.procs_mut().release(*snapshot);
                    let found = *found;
                    // Source: `do_analyze_rel`, src/backend/commands/analyze.c: not with
                    // `VACOPT_VACUUM`, as VACUUM did it.
                    if !*after_vacuum {
                        db.clean_pending_lists(job.relation.table);
                    }
                    self.end_analyze(position, &job, found, db);
                }
            },
        }
        Ok(())
    }

    /// A table has new files: who works on it gives up, as a rewrite's lock makes it; the catalogue
    /// has its new size. What the statistics show stays.
    ///
    /// Source: `swap_relation_files`, src/backend/commands/cluster.c; `DS_BLOCKED_BY_AUTOVACUUM`,
    /// src/backend/storage/lmgr/proc.c (REL_18_STABLE), `deadlock_timeout` later there.
    pub(crate) fn rewritten(&mut self, table: TableId, now_s: f64, db: &mut Database) {
        for worker in &mut self.workers {
            if worker
                .job
                .as_ref()
                .is_none_or(|job| job.relation.table != table)
            {
                continue;
            }
            worker.due_s = worker.due_s.min(now_s);
            if let Some(Job {
                kind: Kind::Analyze { snapshot, .. },
                ..
            }) = worker.job.take()
            {
                db.procs_mut().release(snapshot);
            }
        }
        for known in &mut self.known {
            if known.relation.table == table {
                known.class = class_of(db, known.relation);
            }
        }
    }

    fn go_on(&mut self, position: usize, job: Job, cost_s: f64) {
        let worker = &mut self.workers[position];
        worker.due_s += cost_s;
        worker.job = Some(job);
    }

    /// Takes the next table of the list that still needs something and that no other worker has.
    fn next_table(&mut self, position: usize, db: &mut Database) {
        while let Some(place) = self.workers[position].queue.pop_front() {
            let jobs = self.workers.iter().filter_map(|worker| worker.job.as_ref());
            if jobs.into_iter().any(|job| job.place == place) {
                continue;
            }
            let needs = self.needs(place, db);
            if needs.vacuum {
                let relation = self.known[place].relation;
                let running = Box::new(db.begin_vacuum(relation, VacuumOptions::BY_ITSELF));
                let worker = &mut self.workers[position];
                worker.job = Some(Job {
                    place,
                    relation,
                    began_s: worker.due_s,
                    scanned_pages: 0,
                    kind: Kind::Vacuum {
                        running,
                        then_analyze: needs.analyze,
                    },
                });
                return;
            }
            if needs.analyze {
                self.begin_analyze(position, place, false, db);
                return;
            }
        }
        self.workers.remove(position);
    }

    fn end_vacuum(&mut self, position: usize, job: &Job, done: &Vacuumed, db: &mut Database) {
        let known = &mut self.known[job.place];
        let pages = done.truncated.map_or_else(
            || db.relation(job.relation).heap().page_count(),
            |(_, after)| after,
        );
        #[allow(clippy::cast_precision_loss)] // rows of a table
        let live = done.live_tuples as f64;
        known.class = Class {
            reltuples: estimated_rows(known.class, pages, done.scanned_pages, live),
            relpages: pages,
            relallfrozen: all_frozen_pages(db, job.relation),
        };
        let place = job.place;
        self.statistics
            .vacuumed(place, done.recently_dead_tuples, db);
        db.forget_target_blocks_of(job.relation);
        self.done.push(Maintained {
            is_vacuum: true,
            relation: job.relation,
            began_s: job.began_s,
            ended_s: Some(self.workers[position].due_s),
            scanned_pages: done.scanned_pages,
        });
    }

    fn begin_analyze(
        &mut self,
        position: usize,
        place: usize,
        after_vacuum: bool,
        db: &mut Database,
    ) {
        let relation = self.known[place].relation;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let max_pages = (SAMPLED * self.settings.statistics_target) as u32;
        let snapshot = db.procs_mut().hold();
        let before = db.wal().pages().dirtied();
        let found = db.analyze(relation.table, max_pages);
        let dirtied = db.wal().pages().dirtied() - before;
        let sampled = found.live_rows.min(f64::from(max_pages));
        let pages = (found.pages_read, 1);
        let cost_s = self.cost_s(place, pages, dirtied, db) + sampled * SAMPLED_ROW_S;
        let worker = &mut self.workers[position];
        worker.job = Some(Job {
            place,
            relation,
            began_s: worker.due_s,
            scanned_pages: found.pages_read,
            kind: Kind::Analyze {
                found,
                snapshot,
                after_vacuum,
            },
        });
        worker.due_s += cost_s;
    }

    fn end_analyze(&mut self, position: usize, job: &Job, found: Analyzed, db: &mut Database) {
        self.known[job.place].class = Class {
            reltuples: found.live_rows,
            relpages: db.relation(job.relation).heap().page_count(),
            relallfrozen: all_frozen_pages(db, job.relation),
        };
        self.statistics.analyzed(job.place, found.dead_rows);
        db.forget_target_blocks_of(job.relation);
        self.done.push(Maintained {
            is_vacuum: false,
            relation: job.relation,
            began_s: job.began_s,
            ended_s: Some(self.workers[position].due_s),
            scanned_pages: found.pages_read,
        });
    }

    /// How long pages take that were read, and of which so many became dirty. `asked` is how many
    /// buffers each page asks for; the page itself is in shared buffers with the probability that
    /// the tables' pages fit there.
    ///
    /// Source: `vacuum_delay_point` and `AutoVacuumUpdateCostLimit` (the limit is shared by the
    /// workers that have none of their own).
    #[allow(clippy::cast_precision_loss)] // pages
    fn cost_s(&self, place: usize, (pages, asked): (u32, u32), dirtied: u64, db: &Database) -> f64 {
        let settings = &self.settings;
        let all: u64 = db
            .tables()
            .map(|table| {
                let table = db.table(table);
                let indexes = table.index_pages();
                u64::from(table.heap().page_count())
                    + indexes.into_iter().map(u64::from).sum::<u64>()
            })
            .sum();
        let missing = (1.0 - self.shared_pages / (all as f64).max(1.0)).max(0.0);
        let pages = f64::from(pages);
        let reads = settings.page_hit + (settings.page_miss - settings.page_hit) * missing;
        let hits = f64::from(asked - 1) * settings.page_hit;
        let cost = pages * (reads + hits) + dirtied as f64 * settings.page_dirty;
        let known = &self.known[place];
        let mut limit = known.cost_limit.limit;
        if !known.cost_limit.is_own {
            let jobs = self.workers.iter().filter_map(|worker| worker.job.as_ref());
            let sharing = jobs.filter(|job| !self.known[job.place].cost_limit.is_own);
            // The worker that asks has put its job aside.
            limit = (limit / (sharing.count() + 1) as f64).floor().max(1.0);
        }
        let slept_s = cost / limit * known.cost_limit.delay_ms / 1000.0;
        slept_s + pages * PAGE_S
    }
}
