//! Statistics as autovacuum sees them: what each session has reported.
//!
//! ```text
//! transactions --> counters of the table --(a second after the session's last report)--> shown
//! ```
//!
//! A session reports at the end of a transaction, if its last report is at least a second ago.
//! VACUUM and ANALYZE set what is shown; what sessions have not reported yet is added later.
//!
//! Source: `pgstat_report_stat`, src/backend/utils/activity/pgstat.c; `pgstat_report_vacuum` and
//! `pgstat_report_analyze`, pgstat_relation.c (REL_15_STABLE, REL_18_STABLE).

use crate::counters::TableCounters;
use crate::executor::{Database, Relation};

/// A busy session reports so often.
///
/// Source: `PGSTAT_MIN_INTERVAL`, src/backend/utils/activity/pgstat.c (REL_18_STABLE).
const REPORT_EVERY_S: f64 = 1.0;

/// What `pg_stat_all_tables` shows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shown {
    /// `n_dead_tup`.
    pub dead: i64,
    /// `n_mod_since_analyze`.
    pub modified: i64,
    /// `n_ins_since_vacuum`.
    pub inserted: i64,
}

impl Shown {
    fn of(counters: &TableCounters) -> Self {
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Self {
            dead: counters.n_dead_tup,
            modified: count(counters.n_mod_since_analyze),
            inserted: count(counters.n_ins_since_vacuum),
        }
    }

    const fn add(&mut self, more: Self) {
        self.dead += more.dead;
        self.modified += more.modified;
        self.inserted += more.inserted;
    }

    const fn less(self, other: Self) -> Self {
        Self {
            dead: self.dead - other.dead,
            modified: self.modified - other.modified,
            inserted: self.inserted - other.inserted,
        }
    }
}

/// Statistics of several relations, and what sessions keep back.
#[derive(Debug, Clone)]
pub struct Statistics {
    relations: Vec<Relation>,
    shown: Vec<Shown>,
    /// The tables' own counters, as read last.
    read: Vec<Shown>,
    /// By session and relation.
    kept: Vec<Vec<Shown>>,
    /// By session.
    reported_s: Vec<f64>,
}

impl Statistics {
    /// Nothing is shown yet; the counters count from now on.
    #[must_use]
    pub fn new(relations: Vec<Relation>, sessions: usize, db: &Database) -> Self {
        let read = relations
            .iter()
            .map(|&relation| Shown::of(db.relation(relation).counters()))
            .collect();
        Self {
            shown: vec![Shown::default(); relations.len()],
            read,
            kept: vec![vec![Shown::default(); relations.len()]; sessions],
            reported_s: vec![f64::NEG_INFINITY; sessions],
            relations,
        }
    }

    /// What is shown of the relation at this place.
    #[must_use]
    pub fn shown(&self, place: usize) -> Shown {
        self.shown[place]
    }

    /// A session has ended a transaction.
    pub fn end_transaction(&mut self, session: usize, now_s: f64, db: &Database) {
        let kept = &mut self.kept[session];
        for (place, &relation) in self.relations.iter().enumerate() {
            let counted = Shown::of(db.relation(relation).counters());
            kept[place].add(counted.less(self.read[place]));
            self.read[place] = counted;
        }
        if now_s - self.reported_s[session] < REPORT_EVERY_S {
            return;
        }
        self.reported_s[session] = now_s;
        for (shown, kept) in self.shown.iter_mut().zip(kept) {
            shown.add(std::mem::take(kept));
            // Pruning by one session may be reported before the update by another.
            shown.dead = shown.dead.max(0);
        }
    }

    /// VACUUM has ended and left so many dead rows.
    pub fn vacuumed(&mut self, place: usize, dead: u64, db: &Database) {
        self.shown[place].dead = i64::try_from(dead).unwrap_or(i64::MAX);
        self.shown[place].inserted = 0;
        // The table's own counters were set too.
        self.read[place] = Shown::of(db.relation(self.relations[place]).counters());
    }

    /// ANALYZE has ended and found so many dead rows.
    #[allow(clippy::cast_possible_truncation)] // rows of a table
    pub fn analyzed(&mut self, place: usize, dead: f64) {
        self.shown[place].dead = dead.round() as i64;
        self.shown[place].modified = 0;
    }
}
