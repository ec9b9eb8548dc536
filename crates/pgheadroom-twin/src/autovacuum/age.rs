//! When autovacuum comes by age, to prevent that numbers wrap around.
//!
//! ```text
//! on:   a launch while a database is too old is for the oldest one
//! off:  the next multiple of 65,536 after the limit wakes the launcher, for one worker; that one's
//!       end, while a database is too old, wakes it again
//! ```
//!
//! A new cluster has four databases of one age: three come first, that of the tables last. Their
//! catalogues are as old as the cluster.
//!
//! Source: `GetNewTransactionId` and `SetTransactionIdLimit`,
//! src/backend/access/transam/varsup.c; `GetNewMultiXactId`, multixact.c; `do_start_worker`,
//! src/backend/postmaster/autovacuum.c (REL_15_STABLE, REL_18_STABLE). Differs: the other
//! databases' vacuums take a time that is assumed.

use crate::executor::FreezeAges;
use crate::procarray::{FIRST_NORMAL_XID, ProcArray};
use crate::profile::ages::WOKEN_EVERY;
use crate::transaction::Xid;

/// How many databases come before that of the tables: both templates, and `postgres`.
const OTHERS: u32 = 3;
/// How long after the launcher was woken a worker has come to the tables.
pub(super) const OTHERS_S: f64 = 1.0;
/// How much of `autovacuum_naptime` each takes while autovacuum is on.
pub(super) const NAPTIMES_OF_OTHER: f64 = 0.5;
/// Numbers of a cluster's own transactions, which the twin's do not count.
const NUMBERS_BEFORE: u64 = 740;

/// How old the database is, and who was woken for that.
#[derive(Debug, Clone)]
pub(super) struct DatabaseAges {
    max: [u32; 2],
    /// The next numbers when that was asked last: of a transaction, and of a multixact.
    next: [u64; 2],
    /// Whether a worker has been in the database: its catalogue is not the oldest then.
    was_vacuumed: bool,
    others: u32,
}

impl DatabaseAges {
    pub const fn new(ages: &FreezeAges<u32>) -> Self {
        Self {
            max: [ages.xid.max, ages.multixact.max],
            next: [0; 2],
            was_vacuumed: false,
            others: OTHERS,
        }
    }

    /// Numbers were taken: whether that has woken the launcher, though autovacuum is off. The ages
    /// are those of the oldest tables.
    pub fn wakes_launcher(&mut self, oldest: [u32; 2], procs: &ProcArray) -> bool {
        let next = [
            u64::from(procs.next_xid().0) + NUMBERS_BEFORE,
            u64::from(procs.next_multixact().0 - Xid::FIRST_MULTIXACT.0),
        ];
        let before = std::mem::replace(&mut self.next, next);
        let passes = |place: usize| next[place] / WOKEN_EVERY > before[place] / WOKEN_EVERY;
        (passes(0) || passes(1)) && self.is_at_risk(oldest, procs)
    }

    /// Whether a launch is for another database.
    pub fn others_come_first(&mut self, oldest: [u32; 2], procs: &ProcArray) -> bool {
        if !self.is_at_risk(oldest, procs) {
            self.others = OTHERS;
            return false;
        }
        let is_other = self.others > 0;
        self.others = self.others.saturating_sub(1);
        is_other
    }

    /// A worker comes to the tables, woken by age or in its turn; it vacuums the catalogue where
    /// the database is too old.
    ///
    /// Source: `do_autovacuum`, src/backend/postmaster/autovacuum.c (REL_18_STABLE).
    pub const fn do_autovacuum(&mut self, is_forced: bool) {
        self.was_vacuumed |= is_forced || self.others == 0;
    }

    fn is_at_risk(&self, oldest: [u32; 2], procs: &ProcArray) -> bool {
        if self.was_vacuumed {
            return is_older(oldest, self.max);
        }
        let catalogue = [
            procs.next_xid().0 - FIRST_NORMAL_XID.0,
            procs.next_multixact().0 - Xid::FIRST_MULTIXACT.0,
        ];
        is_older(catalogue, self.max)
    }
}

/// Whether one of these ages is above what it may be.
pub(super) fn is_older(ages: [u32; 2], max: [u32; 2]) -> bool {
    ages[0] > max[0] || ages[1] > max[1]
}
