//! How well a table's rows lie in the order of their keys.
//!
//! Two measures: the distinct heap pages that the rows of a range of keys lie on, which is what a
//! range query reads, and the correlation of place and key, which is what PostgreSQL's planner
//! knows. The second falls little where the first has long grown, so it comes second.

use pgheadroom_layout::BlockNumber;

use crate::executor::{Database, TableId};
use crate::page::LinePointer;
use crate::transaction::{Outcome, Transactions};

/// Keys of a range, where nobody asks for another number.
pub const RANGE_KEYS: i64 = 1000;

/// Live rows by key: keys, and the pages that they lie on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOrder {
    /// Ascending by key; of equal keys in the order of their places.
    rows: Vec<(i64, BlockNumber)>,
    /// Of each row in that order, its position in the table.
    places: Vec<u32>,
}

impl KeyOrder {
    /// The live rows of a table by an integer column; rows without a key are left out.
    ///
    /// # Panics
    /// When the column is none of integers.
    #[must_use]
    pub fn of(db: &Database, table: TableId, column: usize) -> Self {
        let of = db.table(table);
        let mut found = Vec::new();
        let mut place = 0;
        for (block, page) in (0..).map(BlockNumber).zip(of.heap().pages()) {
            for item in page.items() {
                let LinePointer::Normal(tuple) = item else {
                    continue;
                };
                let ended = |xid| db.procs().outcome(xid) == Outcome::Committed;
                let is_gone = tuple.xmax.is_valid() && !tuple.is_locked_only && ended(tuple.xmax);
                if !ended(tuple.xmin) || is_gone {
                    continue;
                }
                if let Some(key) = of.row_view(tuple.row).integer(column) {
                    found.push((key, place, block));
                    place += 1;
                }
            }
        }
        found.sort_unstable();
        Self {
            rows: found.iter().map(|&(key, _, block)| (key, block)).collect(),
            places: found.iter().map(|&(_, place, _)| place).collect(),
        }
    }

    /// Live rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Distinct pages that the rows with keys from `low` to `high` lie on.
    #[must_use]
    pub fn pages_in(&self, low: i64, high: i64) -> usize {
        let from = self.rows.partition_point(|&(key, _)| key < low);
        let to = self.rows.partition_point(|&(key, _)| key <= high);
        let mut blocks: Vec<BlockNumber> = self.rows[from..to].iter().map(|row| row.1).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len()
    }

    /// The mean of that over ranges of so many keys, side by side from the first key on; a last
    /// one that is not full is left out, unless it is the only one. None without rows.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // far fewer than 2^52 pages
    pub fn pages_per_range(&self, keys: i64) -> Option<f64> {
        let (first, last) = (self.rows.first()?.0, self.rows.last()?.0);
        let ranges = ((last - first + 1) / keys).max(1);
        let pages = (0..ranges).map(|range| {
            let low = first + range * keys;
            self.pages_in(low, low + keys - 1)
        });
        Some(pages.sum::<usize>() as f64 / ranges as f64)
    }

    /// Correlation of key and place, 1 for a table in order; none with fewer than two rows.
    ///
    /// Source: `compute_scalar_stats`, src/backend/commands/analyze.c (REL_18_STABLE). Differs:
    /// of all rows, where ANALYZE takes a sample.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // as there
    pub fn correlation(&self) -> Option<f64> {
        let count = self.places.len() as f64;
        if count < 2.0 {
            return None;
        }
        let places = self.places.iter().enumerate();
        let sum_xy: f64 = places
            .map(|(key, &place)| key as f64 * f64::from(place))
            .sum();
        let sum_x = (count - 1.0) * count / 2.0;
        let sum_x2 = (count - 1.0) * count * (2.0 * count - 1.0) / 6.0;
        Some((count * sum_xy - sum_x * sum_x) / (count * sum_x2 - sum_x * sum_x))
    }
}

/// The measures of one state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Order {
    /// Distinct heap pages of a range of [`RANGE_KEYS`] keys, on average.
    pub pages_per_range: f64,
    /// Correlation of key and place; none with fewer than two rows.
    pub correlation: Option<f64>,
}

/// The order of a table by its key: the first column of the index that gives it (see
/// `Table::order_column`); none without such an index, or without rows.
#[must_use]
pub fn order_of(db: &Database, table: TableId) -> Option<Order> {
    let column = db.table(table).order_column()?;
    let rows = KeyOrder::of(db, table, column);
    Some(Order {
        pages_per_range: rows.pages_per_range(RANGE_KEYS)?,
        correlation: rows.correlation(),
    })
}
