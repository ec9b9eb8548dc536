//! How full a loaded table's pages are: which positions of the load are rows, and which are fillers
//! that are deleted again.
//!
//! ```text
//! positions   | 0 1 2 ... P-1 | P ...      | ...        P = rows_per_page
//! blocks      | 0             | 1          | 2 ...
//! kind        the first whose bound is above (block * 2654435769 mod 2^32) * 10^6 / 2^32
//! row         position i of a block of r rows is one if (i+1) * r / P > i * r / P, whole numbers
//! number      of a row: rows up to it; of a filler: that of the row before it, of the first ones 1
//! ```
//!
//! The last position is that of the last row. Bounds are the sums of the shares so far, in
//! millionths; multiples of 2^32 by the golden ratio are spread evenly whatever their number is.
//!
//! Source: `play/page_kinds.py` of the Python side, which says so to a server.

use crate::profile::{PageKindSpec, TableSpec};

const MILLION: i64 = 1_000_000;
/// 2^32 by the golden ratio.
const STEP: i64 = 2_654_435_769;

/// What kinds of pages there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageKinds {
    rows_per_page: i64,
    /// Millionths up to which blocks are of this kind, and its rows.
    kinds: Vec<(i64, i64)>,
}

impl PageKinds {
    /// Those of a table; `None` where it is loaded without gaps.
    #[must_use]
    pub fn of(table: &TableSpec) -> Option<Self> {
        let rows_per_page = table.rows_per_page.filter(|_| !table.pages.is_empty())?;
        let mut sum = 0.0;
        let bounds = table.pages.iter().map(|kind| {
            sum += kind.pages_frac;
            #[allow(clippy::cast_possible_truncation)] // 0 to a million
            ((sum * 1e6).round_ties_even() as i64, kind.rows)
        });
        let mut kinds: Vec<_> = bounds.collect();
        kinds.last_mut()?.0 = MILLION; // whatever the sum was rounded to
        Some(Self {
            rows_per_page,
            kinds,
        })
    }

    fn rows_of_block(&self, block: i64) -> i64 {
        let place = ((block.wrapping_mul(STEP) & 0xffff_ffff) * MILLION) >> 32;
        let kind = self.kinds.iter().find(|&&(bound, _)| bound > place);
        kind.expect("the last bound is above all").1
    }

    /// The positions of a load of so many rows in their order: a number, and whether the row of
    /// this number is there, or a filler with its values.
    pub fn positions(&self, rows: i64) -> impl Iterator<Item = (i64, bool)> {
        let per_page = self.rows_per_page;
        let mut before = 0;
        let blocks = (0..).map_while(move |block| {
            let of_block = self.rows_of_block(block);
            let first = before;
            before += of_block;
            (first < rows).then_some((first, of_block))
        });
        let positions = blocks.flat_map(move |(first, of_block)| {
            (0..per_page).map(move |position| {
                let (without, with) = (
                    position * of_block / per_page,
                    (position + 1) * of_block / per_page,
                );
                (first + with, with > without)
            })
        });
        let positions = positions
            .take_while(move |&(number, is_row)| number < rows || (number == rows && is_row));
        positions.map(|(number, is_row)| (number.max(1), is_row))
    }
}

/// Rows of the mean block, as blocks are drawn: what is beyond the whole never is, and the last
/// kind takes what is left.
#[allow(clippy::cast_precision_loss)] // at most 291
pub(super) fn mean_rows(pages: &[PageKindSpec]) -> f64 {
    let (mut mean, mut sum) = (0.0, 0.0_f64);
    for (number, kind) in pages.iter().enumerate() {
        let before = sum.min(1.0);
        sum += kind.pages_frac;
        let is_last = number + 1 == pages.len();
        let upto = if is_last { 1.0 } else { sum.min(1.0) };
        mean += (upto - before) * kind.rows as f64;
    }
    mean
}

/// Rows that are loaded and deleted again, about.
#[allow(clippy::cast_precision_loss)] // an estimate
pub(super) fn fillers(table: &TableSpec) -> f64 {
    let mean = mean_rows(&table.pages);
    let per_page = table.rows_per_page.unwrap_or(0) as f64;
    if mean > 0.0 {
        (table.rows as f64 * (per_page / mean - 1.0)).max(0.0) + per_page
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(rows_per_page: i64, kinds: &[(i64, i64)]) -> PageKinds {
        PageKinds {
            rows_per_page,
            kinds: kinds.to_vec(),
        }
    }

    /// Each row once and in order, as many fillers as the kinds say, and none behind the last row.
    #[test]
    fn positions() {
        let of = kinds(5, &[(500_000, 2), (1_000_000, 5)]);
        let all: Vec<_> = of.positions(100).collect();
        let rows: Vec<_> = all.iter().filter(|at| at.1).map(|at| at.0).collect();
        assert_eq!(rows, (1..=100).collect::<Vec<_>>());
        assert_eq!(all.last(), Some(&(100, true)));
        let fillers = all.len() - rows.len();
        assert!((40..=46).contains(&fillers), "{fillers}"); // 100 rows by 3.5 a block of 5
        assert!(all.iter().any(|&(number, is_row)| number == 1 && !is_row));
    }

    /// Shares are kept among few blocks too.
    #[test]
    fn shares() {
        let of = kinds(10, &[(300_000, 0), (1_000_000, 10)]);
        for blocks in [10, 30, 100, 1000] {
            let empty = (0..blocks).filter(|&block| of.rows_of_block(block) == 0);
            let found = empty.count().cast_signed();
            let wanted = blocks * 3 / 10;
            assert!((found - isize::try_from(wanted).unwrap()).abs() <= 2);
        }
    }

    /// Kinds behind the whole have no blocks, so a load of empty ones before them has no end.
    #[test]
    fn mean_of_blocks_that_are_drawn() {
        let kind = |pages_frac, rows| PageKindSpec { pages_frac, rows };
        assert!(mean_rows(&[kind(1.0, 0), kind(0.01, 100)]).abs() < 1e-9);
        assert!((mean_rows(&[kind(0.33, 0), kind(0.66, 10)]) - 6.7).abs() < 1e-9);
    }
}
