//! How full a loaded table's pages are: which positions of the load are rows, and which are fillers
//! that are deleted again; which of the rows are HOT updated then, so that they are behind
//! redirects.
//!
//! ```text
//! positions   | 0 1 2 ... P-1 | P ...      | ...        P = rows_per_page
//! blocks      | 0             | 1          | 2 ...
//! kind        the first whose bound is above (block * 2654435769 mod 2^32) * 10^6 / 2^32
//! row         position i of a block of r rows is one if (i+1) * r / P > i * r / P, whole numbers
//! number      of a row: rows up to it; of a filler: that of the row before it, of the first ones 1
//! redirect    row j of a block's r is behind one of its R if (j+1) * R / r > j * R / r
//! round       in which it is updated: half of the versions that fit beside, rounded up, in each
//! narrow      a row of NULLs, where more line pointers are to be unused than fillers leave
//! late        rows and fillers for which narrow ones leave no room at first (`line_pointers.rs`)
//! ```
//!
//! The last position is that of the last row. Bounds are the sums of the shares so far, in
//! millionths; multiples of 2^32 by the golden ratio are spread evenly whatever their number is.
//!
//! Source: `play/page_kinds.py` of the Python side, which says so to a server by the same rounds.

use pgheadroom_layout::page::{MAX_HEAP_TUPLES_PER_PAGE, SIZE_OF_ITEM_ID};

use crate::profile::line_pointers::{Piece, Waves};
use crate::profile::page_shape::{OfLoad, OfPage, USABLE};
use crate::profile::{PageKindSpec, TableSpec};

const MILLION: i64 = 1_000_000;
/// 2^32 by the golden ratio.
const STEP: i64 = 2_654_435_769;

/// What kinds of pages there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageKinds {
    kinds: Vec<Kind>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    /// Millionths up to which blocks are of it.
    bound: i64,
    rows: i64,
    waves: Waves,
    /// By row: in which round it is HOT updated, from 1; 0 never.
    rounds: Vec<u16>,
}

impl PageKinds {
    /// Those of a table; `None` where it is loaded without gaps.
    #[must_use]
    pub fn of(table: &TableSpec) -> Option<Self> {
        let rows_per_page = table.rows_per_page.filter(|_| !table.pages.is_empty())?;
        let mut sum = 0.0;
        let kinds = table.pages.iter().map(|kind| {
            sum += kind.pages_frac;
            #[allow(clippy::cast_possible_truncation)] // 0 to a million
            let bound = (sum * 1e6).round_ties_even() as i64;
            let of_load = OfLoad {
                per_page: rows_per_page,
                fillfactor: table.fillfactor,
                columns: i64::try_from(table.columns.len()).unwrap_or(i64::MAX),
            };
            Kind {
                bound,
                rows: kind.rows,
                waves: Waves::of(of_load, kind.into()),
                rounds: redirect_rounds(of_load, kind.into()),
            }
        });
        let mut kinds: Vec<_> = kinds.collect();
        kinds.last_mut()?.bound = MILLION; // whatever the sum was rounded to
        Some(Self { kinds })
    }

    fn of_block(&self, block: i64) -> &Kind {
        let place = ((block.wrapping_mul(STEP) & 0xffff_ffff) * MILLION) >> 32;
        let kind = self.kinds.iter().find(|kind| kind.bound > place);
        kind.expect("the last bound is above all")
    }

    /// Rounds of HOT updates that a load has; 0 where no row is behind a redirect.
    #[must_use]
    pub fn last_round(&self) -> u16 {
        let rounds = self.kinds.iter().flat_map(|kind| &kind.rounds);
        rounds.copied().max().unwrap_or(0)
    }

    /// Of each of so many rows in their order the round in which it is HOT updated, from 1; 0
    /// never.
    pub fn rounds(&self, rows: u32) -> impl Iterator<Item = u16> {
        let of_blocks = (0..).flat_map(|block| self.of_block(block).rounds.iter().copied());
        of_blocks.take(rows as usize)
    }

    /// Whether there are narrow rows, and so a second wave.
    #[must_use]
    pub fn has_narrow(&self) -> bool {
        self.kinds.iter().any(|kind| kind.waves.has_narrow())
    }

    /// The positions of a wave of a load of so many rows in their order: a number, and whether the
    /// row of this number is there, or a filler with its values, or one of NULLs.
    pub fn positions(&self, wave: usize, rows: i64) -> impl Iterator<Item = (i64, Piece)> {
        let mut before = 0;
        let blocks = (0..).map_while(move |block| {
            let kind = self.of_block(block);
            let first = before;
            before += kind.rows;
            (first < rows).then_some((first, kind))
        });
        let positions = blocks.flat_map(move |(first, kind)| {
            let of_block = kind.waves.positions(wave);
            of_block.map(move |(number, piece)| (first + number, piece))
        });
        let positions = positions.filter(move |&(number, piece)| {
            number < rows || (number == rows && piece == Piece::Row)
        });
        positions.map(|(number, piece)| (number.max(1), piece))
    }
}

/// By row of a block: the round of HOT updates that puts it behind a redirect, from 1; 0 none.
///
/// Tuples are taken to be as long as so many on a page let them be, and each round makes half of
/// the versions for which there is room beside: rows have several lengths. What has no room is not
/// updated.
///
/// Source: for the room `PageGetHeapFreeSpace`, src/backend/storage/page/bufpage.c
/// (REL_18_STABLE).
#[must_use]
pub fn redirect_rounds(of_load: OfLoad, page: OfPage) -> Vec<u16> {
    let OfPage {
        rows, redirects, ..
    } = page;
    let item = i64::from(SIZE_OF_ITEM_ID);
    let usable = USABLE;
    let tuple = of_load.tuple_bytes();
    let unused = page.unused_at_first(of_load.per_page);
    let has_items_for = of_load.per_page.max(rows + unused.unwrap_or(0));
    let has_room = |more: i64, done: i64| {
        let items = has_items_for.max(rows + done + more);
        let has_items = items > rows + done + more || items < i64::from(MAX_HEAP_TUPLES_PER_PAGE);
        has_items && tuple * (rows + more + 1) + item * (items + 1) <= usable
    };
    let mut of_redirects = Vec::new();
    for round in 1..=u16::MAX {
        let done = of_redirects.len();
        let left = usize::try_from(redirects).unwrap_or(0) - done;
        let made = i64::try_from(done).expect("at most 291");
        let room = (0..rows).take_while(|&more| has_room(more, made)).count();
        if left == 0 || room == 0 {
            break;
        }
        of_redirects.resize(done + room.div_ceil(2).min(left), round);
    }
    let mut of_rows = Vec::new();
    for row in 0..rows {
        let before = row * redirects / rows;
        let is_redirected = (row + 1) * redirects / rows > before;
        let place = usize::try_from(before).expect("not negative");
        let round = of_redirects.get(place).filter(|_| is_redirected);
        of_rows.push(round.copied().unwrap_or(0));
    }
    of_rows
}

/// Rows that are behind a redirect, about.
#[allow(clippy::cast_precision_loss)] // an estimate
pub(super) fn redirected(table: &TableSpec) -> f64 {
    let mean = mean_rows(&table.pages);
    let of_kinds = table.pages.iter();
    let redirects: f64 = of_kinds
        .map(|kind| kind.pages_frac * kind.redirects as f64)
        .sum();
    if mean > 0.0 {
        table.rows as f64 * (redirects / mean).min(1.0)
    } else {
        0.0
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
        let of_load = of_load(rows_per_page, 100);
        let of = |&(bound, rows)| {
            let page = of_page(rows, rows / 2);
            Kind {
                bound,
                rows,
                waves: Waves::of(of_load, page),
                rounds: redirect_rounds(of_load, page),
            }
        };
        PageKinds {
            kinds: kinds.iter().map(of).collect(),
        }
    }

    fn of_load(per_page: i64, fillfactor: i64) -> OfLoad {
        OfLoad {
            per_page,
            fillfactor,
            columns: 3,
        }
    }

    fn of_page(rows: i64, redirects: i64) -> OfPage {
        OfPage {
            rows,
            redirects,
            unused: 0,
        }
    }

    /// Each row once and in order, as many fillers as the kinds say, and none behind the last row.
    #[test]
    fn positions() {
        let of = kinds(5, &[(500_000, 2), (1_000_000, 5)]);
        let all: Vec<_> = of.positions(0, 100).collect();
        let rows = all.iter().filter(|at| at.1 == Piece::Row);
        let rows: Vec<_> = rows.map(|at| at.0).collect();
        assert_eq!(rows, (1..=100).collect::<Vec<_>>());
        assert_eq!(all.last(), Some(&(100, Piece::Row)));
        assert_eq!(of.positions(1, 100).count(), 0);
        assert!(!of.has_narrow());
        let fillers = all.len() - rows.len();
        assert!((40..=46).contains(&fillers), "{fillers}"); // 100 rows by 3.5 a block of 5
        assert!(all.contains(&(1, Piece::Filler)));
    }

    /// Shares are kept among few blocks too.
    #[test]
    fn shares() {
        let of = kinds(10, &[(300_000, 0), (1_000_000, 10)]);
        for blocks in [10, 30, 100, 1000] {
            let empty = (0..blocks).filter(|&block| of.of_block(block).rows == 0);
            let found = empty.count().cast_signed();
            let wanted = blocks * 3 / 10;
            assert!((found - isize::try_from(wanted).unwrap()).abs() <= 2);
        }
    }

    /// Kinds behind the whole have no blocks, so a load of empty ones before them has no end.
    #[test]
    fn mean_of_blocks_that_are_drawn() {
        let kind = |pages_frac, rows| PageKindSpec {
            pages_frac,
            rows,
            redirects: 0,
            unused: 0,
        };
        assert!(mean_rows(&[kind(1.0, 0), kind(0.01, 100)]).abs() < 1e-9);
        assert!((mean_rows(&[kind(0.33, 0), kind(0.66, 10)]) - 6.7).abs() < 1e-9);
    }

    /// Pages with room for three versions of 120 bytes, and for fewer as redirects come.
    #[test]
    fn rounds_as_there_is_room() {
        let of = redirect_rounds(of_load(65, 100), of_page(62, 62));
        assert!(of.iter().all(|&round| round > 0));
        let of_round = |round| of.iter().filter(|&&one| one == round).count();
        assert_eq!((of_round(1), of_round(29)), (2, 1));
        let full = redirect_rounds(of_load(65, 100), of_page(65, 10));
        assert!(
            full.iter().all(|&round| round == 0),
            "no room for a version"
        );
        let reserved = redirect_rounds(of_load(59, 90), of_page(59, 10));
        assert_eq!(reserved.iter().filter(|&&round| round > 0).count(), 10);
    }

    /// As many rows as the kinds say, each of a block that is there.
    #[test]
    fn rounds_of_rows() {
        let of = kinds(10, &[(300_000, 0), (1_000_000, 8)]);
        let rounds: Vec<_> = of.rounds(100).collect();
        assert_eq!(rounds.len(), 100);
        assert_eq!(rounds.iter().filter(|&&round| round > 0).count(), 50);
        assert!(of.last_round() >= 1);
    }
}
