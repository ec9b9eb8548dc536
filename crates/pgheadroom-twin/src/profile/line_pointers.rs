//! In which order a page's rows are loaded, so that so many of its line pointers are unused in the
//! end: more than the fillers leave that are loaded with the rows.
//!
//! ```text
//! wave 0   row, narrow, narrow, row, narrow, ... row     fills the page
//!          narrow ones are deleted, VACUUM               room for their bytes; pointers stay
//! wave 1   row, filler, ...                              into these pointers, what has room
//!          fillers are deleted, VACUUM                   their pointers are unused too
//! ```
//!
//! A narrow row is of NULLs alone. VACUUM cuts off line pointers behind the last tuple, so a row is
//! last; one is first, for it has no room on the page before, where a narrow one may have.
//!
//! Source: `heap_page_prune_and_freeze` with `mark_unused_now`,
//! src/backend/access/heap/pruneheap.c; `PageAddItemExtended` and `PageTruncateLinePointerArray`,
//! src/backend/storage/page/bufpage.c (REL_18_STABLE).

use pgheadroom_layout::page::SIZE_OF_ITEM_ID;

use crate::profile::page_shape::{OfLoad, OfPage};

/// What is loaded at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A row that stays.
    Row,
    /// One with the values of the row before it, which goes when all are loaded.
    Filler,
    /// One of NULLs, which goes before the second wave.
    Narrow,
}

/// A page's positions in both waves: a row's number on the page, from 1, or that of the row before
/// it, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waves([Vec<(i64, Piece)>; 2]);

/// `SizeofHeapTupleHeader`, src/include/access/htup_details.h (REL_18_STABLE).
const HEADER_BYTES: i64 = 23;

impl Waves {
    /// Those of a page.
    #[must_use]
    pub fn of(of_load: OfLoad, page: OfPage) -> Self {
        let OfLoad { per_page, .. } = of_load;
        let Some(counts) = Counts::of(of_load, page) else {
            let rows = page.rows;
            let plain = (0..per_page).map(|position| {
                let (without, with) =
                    (position * rows / per_page, (position + 1) * rows / per_page);
                let is_row = with > without;
                (with, if is_row { Piece::Row } else { Piece::Filler })
            });
            return Self([plain.collect(), Vec::new()]);
        };
        let Counts {
            early,
            narrow,
            fillers,
            late,
            late_fillers,
        } = counts;
        let others = narrow + fillers;
        let all = early + others;
        let mut other = 0;
        let first = (0..all).map(|position| {
            // The first and the last, and those between evenly.
            let upto = |position: i64| match (early, position) {
                (1, _) => i64::from(position + 1 == all),
                (_, -1) => 0,
                _ => 1 + position * (early - 1) / (all - 1).max(1),
            };
            let number = upto(position);
            if number > upto(position - 1) {
                return (number, Piece::Row);
            }
            other += 1;
            let is_filler = other * fillers / others > (other - 1) * fillers / others;
            (
                number,
                if is_filler {
                    Piece::Filler
                } else {
                    Piece::Narrow
                },
            )
        });
        let first = first.collect();
        let all = late + late_fillers;
        let second = (0..all).map(|position| {
            let (without, with) = (position * late / all, (position + 1) * late / all);
            let is_row = with > without;
            (
                early + with,
                if is_row { Piece::Row } else { Piece::Filler },
            )
        });
        Self([first, second.collect()])
    }

    /// Whether there are rows of NULLs.
    #[must_use]
    pub fn has_narrow(&self) -> bool {
        self.0[0].iter().any(|&(_, piece)| piece == Piece::Narrow)
    }

    /// Of a wave, 0 or 1, in their order.
    pub fn positions(&self, wave: usize) -> impl Iterator<Item = (i64, Piece)> {
        self.0[wave].iter().copied()
    }
}

/// How many of each are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    early: i64,
    narrow: i64,
    fillers: i64,
    late: i64,
    late_fillers: i64,
}

impl Counts {
    /// `None` where fillers leave enough, or a page has no room for so many line pointers.
    ///
    /// With *E* rows early and *U* line pointers for others, *t* and *n* bytes of a row and of a
    /// narrow one, and *r* the room of a page:
    ///
    /// ```text
    /// E + U                    all line pointers, rows + unused
    /// E (t + 4) + U (n + 4)    at most r: so E = (r - (rows + unused) (n + 4)) / (t - n)
    /// ```
    ///
    /// Where that is more than all rows, fillers take the rest of the page.
    fn of(of_load: OfLoad, page: OfPage) -> Option<Self> {
        let unused = page.unused_at_first(of_load.per_page)?;
        let item = i64::from(SIZE_OF_ITEM_ID);
        let room = of_load.room();
        let tuple = of_load.tuple_bytes();
        let narrow_tuple = (HEADER_BYTES + (of_load.columns + 7) / 8 + 7) / 8 * 8;
        let saved = tuple - narrow_tuple;
        let left = room - (page.rows + unused) * (narrow_tuple + item);
        if saved <= 0 || left < saved {
            return None;
        }
        let most = left / saved;
        let early = most.min(page.rows);
        let fillers = (most - early).min(unused);
        let narrow = page.rows + unused - early - fillers;
        if narrow <= 0 {
            return None;
        }
        let late = page.rows - early;
        let pointers = narrow.min((room - early * (tuple + item) - narrow * item) / tuple);
        if late > pointers {
            return None;
        }
        let all_late = if fillers > 0 { 0 } else { pointers };
        Some(Self {
            early,
            narrow,
            fillers,
            late,
            late_fillers: all_late - late,
        })
    }
}

/// The most unused line pointers that a page may have beside those rows.
#[must_use]
pub fn unused_max(of_load: OfLoad, rows: i64, redirects: i64) -> i64 {
    let of_fillers = (of_load.per_page - rows - redirects).max(0);
    let fits = |unused: i64| {
        let page = OfPage {
            rows,
            redirects,
            unused,
        };
        Counts::of(of_load, page).is_some()
    };
    let first = of_fillers + 1;
    let more = (first..=MOST).take_while(|&unused| rows > 0 && fits(unused));
    more.last().unwrap_or(of_fillers)
}

/// `MaxHeapTuplesPerPage`, src/include/access/htup_details.h (REL_18_STABLE).
const MOST: i64 = 291;

#[cfg(test)]
mod tests {
    use super::*;

    const OF_LOAD: OfLoad = OfLoad {
        per_page: 65,
        fillfactor: 100,
        columns: 3,
    };

    fn waves(rows: i64, redirects: i64, unused: i64) -> Waves {
        let page = OfPage {
            rows,
            redirects,
            unused,
        };
        Waves::of(OF_LOAD, page)
    }

    fn count(waves: &Waves, wave: usize, piece: Piece) -> usize {
        let of_wave = waves.positions(wave);
        of_wave.filter(|at| at.1 == piece).count()
    }

    /// A page of rows of 120 bytes, with 27 unused line pointers beside 64 of them.
    #[test]
    fn late_rows_take_line_pointers_of_narrow_ones() {
        let of = waves(64, 0, 27);
        assert_eq!(count(&of, 0, Piece::Row), 58);
        assert_eq!(count(&of, 0, Piece::Narrow), 33);
        assert_eq!(count(&of, 0, Piece::Filler), 0);
        assert_eq!(count(&of, 1, Piece::Row), 6);
        assert_eq!(count(&of, 1, Piece::Filler), 1);
        let first: Vec<_> = of.positions(0).collect();
        assert_eq!(first[0], (1, Piece::Row));
        assert_eq!(first.last(), Some(&(58, Piece::Row)));
        let late: Vec<_> = of.positions(1).collect();
        assert_eq!(late.last(), Some(&(64, Piece::Row)));
    }

    /// Where there is room for all rows at once, fillers take what narrow ones leave.
    #[test]
    fn fillers_take_the_rest() {
        let of = waves(30, 0, 60);
        assert_eq!(count(&of, 0, Piece::Row), 30);
        let others = [Piece::Narrow, Piece::Filler].map(|piece| count(&of, 0, piece));
        assert_eq!(others.iter().sum::<usize>(), 60);
        assert!(others.iter().all(|&count| count > 10), "{others:?}");
        assert_eq!(of.positions(1).count(), 0);
        let bytes = 30 * 124 + others[0] * 28 + others[1] * 124;
        assert!((8168 - 124..=8168).contains(&bytes), "{bytes}");
    }

    /// Redirects take unused line pointers, so there are so many more at first.
    #[test]
    fn redirects_take_theirs() {
        let of = waves(60, 20, 10);
        let pointers = of.positions(0).count();
        assert_eq!(pointers, 90);
        assert!(!waves(62, 61, 0).has_narrow());
    }

    /// No more than fillers leave: as without them; none beyond what a page holds.
    #[test]
    fn bounds() {
        assert_eq!(waves(40, 0, 25), waves(40, 0, 0));
        assert_ne!(waves(40, 0, 26), waves(40, 0, 0));
        let most = unused_max(OF_LOAD, 64, 0);
        assert!((50..59).contains(&most), "{most}"); // 488 bytes beside 64 rows, without theirs
        assert!(waves(64, 0, most).has_narrow());
        assert!(!waves(64, 0, most + 1).has_narrow());
        assert_eq!(unused_max(OF_LOAD, 0, 0), 65);
    }
}
