//! How long a statement takes beside an UPDATE by key that is a transaction of its own.
//!
//! On a server (15.18, a prepared statement of one session, processor time of its backend) that
//! took 16 to 21 us, a sequential scan 0.036 us a row version more and 0.2 us a page, a row beyond
//! the first 1.5 to 1.9 us where it was updated and 0.5 where it was put in. That is a time of a
//! processor, so it has the same share in all others where these are scarce.
//!
//! By time at work (pg_stat_database, 18.4 and 15.18, one client) such an UPDATE took 15.2 and
//! 15.7 us, one more in the same transaction 7.0 and 8.6, an INSERT that commits 10.3 and 10.1, a
//! SELECT by key 2.9 and 3.1, BEGIN with an empty COMMIT 1.0 and 1.2. So COMMIT is more than half
//! of it, with fsync off as in all runs of `prove`.
//!
//! ```text
//! |B|======= looks for its row =======|R|== changes it ==|======= COMMIT =======|A|
//!    snapshot                          its number, and the row's lock ...... until here
//! ```
//!
//! Which part of the time at work a session has a snapshot and a number was looked at in
//! pg_stat_activity, 48,000 to 98,000 times for each of six scripts (18.4, 15.18, one client,
//! 100,000 rows): [`BEFORE`], [`REACHES`] and [`AFTER`].

use crate::executor::Scanned;

/// In times of an UPDATE by key that is a transaction of its own: the statement itself, its COMMIT,
/// and a SELECT.
pub(super) const STATEMENT: f64 = 0.45;
pub(super) const COMMIT: f64 = 1.0 - STATEMENT;
const READS: f64 = 0.2;
/// In the same: a page and a row version that a sequential scan reads, and a row beyond the first.
const SCANS_PAGE: f64 = 0.012;
const SCANS_ROW: f64 = 0.002;
const CHANGES_ROW: f64 = 0.1;
/// In the same: how long a statement has no snapshot yet, 5 % of an UPDATE in a transaction (18.4
/// and 15.18), and how long a COMMIT goes on when its transaction is over, 17 and 23 % of an END.
/// Of an UPDATE that is a transaction of its own both together are 10 and 11 %.
pub(super) const BEFORE: f64 = 0.05 * STATEMENT;
pub(super) const AFTER: f64 = 0.17 * COMMIT;
/// When an UPDATE by key comes to its row, and gets its transaction a number (`heap_update`): a
/// transaction's first one has none for 79 and 77 % of its time behind its snapshot.
pub(super) const REACHES: f64 = 0.78 * STATEMENT;
/// How long after an upsert has read its index it has the row that it found there, and how much
/// later for each more entry: of one row with up to 1,000 versions that somebody may still see an
/// upsert took 0.08 to 0.13 us a version longer (18.4 and 15.18), where an UPDATE took 15.5 us.
pub(super) const FETCHES: f64 = 0.02;
pub(super) const FETCHES_ENTRY: f64 = 0.007;
/// Which part of its time an UPDATE that is a transaction of its own has a page of the heap locked
/// for itself. Of 2 clients that upsert eight rows (18.4, 17,600 a second) 0.06 were seen to wait
/// for a page's lock at a time, which is 3.4 us an upsert, where 0.15 others were at work: with a
/// wake-up of 30 to 60 us each time 0.4 to 0.8 waits for each other one, on some six pages.
pub(super) const LOCKS_PAGE: f64 = 0.1;
/// How long pgbench is at work for one more statement when it is awake: of one client of 18.4 on
/// two busy cores 6.8 to 7.1 us of processor time, where an UPDATE that is a transaction of its own
/// took 16.5 us.
pub(super) const SENDS: f64 = 0.43;

/// What a statement has done.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Work {
    /// Whether it gives its transaction a number.
    pub writes: bool,
    /// Whether it commits too.
    pub commits: bool,
    /// Rows that it has found, or put in.
    pub rows: u64,
    pub scanned: Scanned,
    /// Entries that it moves out of pending lists of GINs.
    pub moved: u64,
    /// How much longer it takes, since it waits for others that extend a table.
    pub waited: f64,
}

impl Work {
    /// One UPDATE of a row by its key, which commits.
    pub const UPDATE_ALONE: Self = Self {
        writes: true,
        commits: true,
        rows: 1,
        scanned: Scanned { pages: 0, rows: 0 },
        moved: 0,
        waited: 0.0,
    };

    /// In times of an UPDATE by key that is a transaction of its own, without what it moves and its
    /// waits; the statement of such a one takes `statement`, its COMMIT `commit`.
    #[allow(clippy::cast_precision_loss)] // fewer than 2^53
    pub fn time(self, statement: f64, commit: f64) -> f64 {
        let more = time_to_scan(self.scanned) + CHANGES_ROW * self.rows.saturating_sub(1) as f64;
        let own = if self.writes { STATEMENT } else { READS };
        let end = if self.writes && self.commits {
            commit
        } else {
            0.0
        };
        statement / STATEMENT * (own + more) + end
    }
}

/// The time that a sequential scan takes for these pages and row versions, in the same unit.
#[allow(clippy::cast_precision_loss)] // fewer than 2^53
pub(super) fn time_to_scan(scanned: Scanned) -> f64 {
    SCANS_PAGE * scanned.pages as f64 + SCANS_ROW * scanned.rows as f64
}
