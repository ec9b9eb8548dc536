//! Which rows the running statement has changed: what it did itself it does not see, nor change
//! again.
//!
//! Kept of a session's last statement alone. Of earlier ones nobody asks: a statement that waits
//! keeps its session from beginning another, and a cursor's query changes nothing.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Rows of a table that a session's last statement has changed.
#[derive(Debug, Default)]
pub(super) struct ChangedRows {
    /// 0 between transactions.
    statement: u32,
    /// The first so many.
    few: Vec<u32>,
    /// All others.
    many: HashSet<u32, BuildHasherDefault<RowHasher>>,
}

/// Rows that are looked through one by one: a statement by key has one.
const FEW_ROWS: usize = 8;

/// Puts rows that follow each other side by side, as statements over many rows change them; the
/// highest bits, which tell rows of a group apart, depend on all of a number.
#[derive(Debug, Default, Clone, Copy)]
struct RowHasher(u64);

impl Hasher for RowHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("rows are numbers");
    }

    fn write_u32(&mut self, row: u32) {
        let row = u64::from(row);
        self.0 = row | (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) & 0x7F << 57);
    }
}

impl ChangedRows {
    /// The last statement that changed a row.
    pub const fn statement(&self) -> u32 {
        self.statement
    }

    /// Whether this statement has changed this row.
    #[inline]
    pub fn has(&self, row: u32, statement: u32) -> bool {
        statement == self.statement && (self.few.contains(&row) || self.is_among_many(row))
    }

    fn is_among_many(&self, row: u32) -> bool {
        !self.many.is_empty() && self.many.contains(&row)
    }

    /// A statement, the last one or a later one, has changed a row.
    #[inline]
    pub fn note(&mut self, row: u32, statement: u32) {
        self.begin(statement);
        if self.few.len() < FEW_ROWS {
            self.few.push(row);
        } else {
            self.many.insert(row);
        }
    }

    /// A statement, the last one or a later one, changes rows.
    #[inline]
    pub fn begin(&mut self, statement: u32) {
        if statement != self.statement {
            self.statement = statement;
            self.few.clear();
            if !self.many.is_empty() {
                self.many.clear();
            }
        }
    }

    /// The transaction is over.
    pub fn end(&mut self) {
        self.statement = 0;
        self.few.clear();
        if !self.many.is_empty() {
            self.many = HashSet::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rows of the last statement, however many, and none of another.
    #[test]
    fn of_the_last_statement() {
        let mut changed = ChangedRows::default();
        for (statement, rows) in [(3, 20), (4, 1), (7, 9)] {
            for row in 0..rows {
                assert!(!changed.has(row * 5, statement));
                changed.note(row * 5, statement);
            }
            assert!(
                (0..100).all(|row| changed.has(row, statement) == (row % 5 == 0 && row < 5 * rows))
            );
            assert!(!changed.has(0, statement - 1));
            assert_eq!(changed.statement(), statement);
        }
        changed.end();
        assert!(!changed.has(0, 7));
        assert_eq!(changed.statement(), 0);
    }
}
