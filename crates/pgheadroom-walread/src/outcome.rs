//! What came of reading: sums, and what could not be read.

use pgheadroom_layout::Lsn;

use crate::detail::Wanted;
use crate::error::Broken;
use crate::piece::Piece;
use crate::tally::{Range, Tally};

/// A stretch that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Where it begins.
    pub from: Lsn,
    /// The first position that could be read again.
    pub to: Lsn,
    /// The file in which it begins.
    pub path: String,
    /// What is wrong there.
    pub why: &'static str,
}

/// What was read.
pub struct Outcome {
    /// The sums.
    pub tally: Tally,
    /// Stretches that could not be read, in order and disjoint: with the sums' spans they are all
    /// from the first record or stretch to the last, but for headers of pages.
    pub gaps: Vec<Gap>,
    /// Where reading ended, and what is there instead of a record; None where the input ends, or
    /// the range that was asked for.
    pub end: Option<Broken>,
}

/// Sums of nothing yet, for the log of this piece.
pub(crate) fn tally_of(first: &Piece, range: Range, wanted: &Wanted, stop_at: Lsn) -> Tally {
    Tally::new(first.major, first.segment_bytes, range, wanted, stop_at)
}
