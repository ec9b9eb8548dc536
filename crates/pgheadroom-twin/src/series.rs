//! A run over simulated time: the same figures as at its end, at the end of each window.
//!
//! Figures are sums from the start, so that a window is the difference of two points; pages named
//! are those of the window alone.

use crate::counters::TableCounters;
use crate::executor::Database;
use crate::wal::Totals;

/// A table at the end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TablePoint {
    /// Its counters since the start.
    pub counters: TableCounters,
    /// Pages of its main fork.
    pub heap_pages: u32,
    /// Pages of all its indexes.
    pub index_pages: u32,
    /// Records that name its pages, since the start.
    pub wal: Totals,
    /// What statements that update its rows have logged since the start, images apart.
    pub update_bytes: u64,
    /// Distinct pages that records of this window name.
    pub pages_modified: usize,
}

/// The end of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// When, in seconds of the run.
    pub t_s: f64,
    /// Transactions that had begun by then.
    pub transactions: u64,
    /// Each table, in their order.
    pub tables: Vec<TablePoint>,
    /// Records that end transactions, since the start.
    pub transaction_wal: Totals,
}

/// Windows of equal length.
#[derive(Debug)]
pub struct Recorder {
    duration_s: f64,
    every_s: f64,
    windows: u32,
    points: Vec<Point>,
}

impl Recorder {
    /// So many windows of a run of so many seconds.
    #[must_use]
    pub fn new(duration_s: f64, windows: u32) -> Self {
        Self {
            duration_s,
            every_s: duration_s / f64::from(windows.max(1)),
            windows,
            points: Vec::new(),
        }
    }

    /// When the current window ends; infinity after the last.
    #[must_use]
    pub fn due_s(&self) -> f64 {
        let done = u32::try_from(self.points.len()).unwrap_or(u32::MAX);
        if done >= self.windows {
            return f64::INFINITY;
        }
        if done + 1 == self.windows {
            // Not a product, which may round to a moment after the run's end.
            return self.duration_s;
        }
        self.every_s * f64::from(done + 1)
    }

    /// Ends the current window.
    pub fn end_window(&mut self, transactions: u64, db: &mut Database) {
        let t_s = self.due_s();
        let mut tables = Vec::new();
        for table in db.tables() {
            let pages_modified = db.wal_mut().end_slice(table.0);
            let of = db.table(table);
            tables.push(TablePoint {
                counters: *of.counters(),
                heap_pages: of.heap().page_count(),
                index_pages: of.index_pages().iter().sum(),
                wal: db.wal().of_table(table.0),
                update_bytes: db.wal().update_bytes(table.0),
                pages_modified,
            });
        }
        self.points.push(Point {
            t_s,
            transactions,
            tables,
            transaction_wal: db.wal().of_transactions(),
        });
    }

    /// All windows that have ended.
    #[must_use]
    pub fn into_points(self) -> Vec<Point> {
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a run ended eight of nine windows: a ninth of 1350.0000820156527 s, taken nine
    /// times, is more than that.
    #[test]
    fn the_last_window_ends_with_the_run() {
        let duration_s = 1_350.000_082_015_652_7;
        let mut recorder = Recorder::new(duration_s, 9);
        for _ in 0..8 {
            recorder.points.push(Point {
                t_s: 0.0,
                transactions: 0,
                tables: Vec::new(),
                transaction_wal: Totals::default(),
            });
        }
        assert!(duration_s / 9.0 * 9.0 > duration_s, "the case that failed");
        assert!(recorder.due_s() <= duration_s);
    }
}
