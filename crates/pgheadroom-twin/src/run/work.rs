//! How long a statement takes beside one that finds its row by its key.
//!
//! On a server (15.18, a prepared statement of one session, processor time of its backend) an
//! UPDATE by key took 16 to 21 us, a sequential scan 0.036 us a row version more and 0.2 us a page,
//! a row beyond the first 1.5 to 1.9 us where it was updated and 0.5 where it was put in. That is
//! a time of a processor, so it has the same share in all others where these are scarce.

use crate::executor::Scanned;

/// In times of an UPDATE by key: a page and a row version that a sequential scan reads, and a row
/// beyond the first.
const SCANS_PAGE: f64 = 0.012;
const SCANS_ROW: f64 = 0.002;
const CHANGES_ROW: f64 = 0.1;

/// What a statement has done.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Work {
    /// Rows that it has found, or put in.
    pub rows: u64,
    pub scanned: Scanned,
    /// Entries that it moves out of pending lists of GINs.
    pub moved: u64,
}

impl Work {
    /// In times of a statement by key, without what it moves.
    #[allow(clippy::cast_precision_loss)] // fewer than 2^53
    pub fn time(self) -> f64 {
        1.0 + time_to_scan(self.scanned) + CHANGES_ROW * self.rows.saturating_sub(1) as f64
    }
}

/// The time that a sequential scan takes for these pages and row versions, in the same unit.
#[allow(clippy::cast_precision_loss)] // fewer than 2^53
pub(super) fn time_to_scan(scanned: Scanned) -> f64 {
    SCANS_PAGE * scanned.pages as f64 + SCANS_ROW * scanned.rows as f64
}
