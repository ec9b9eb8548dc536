//! Sums a log out of its pieces, on several threads where that can be, or out of a stream.
//!
//! A bad record is the end of the log only if nothing valid follows at its address; else it is a
//! gap from there to the first record that is whole again. So is a segment that is missing.

use std::io::Read;
use std::sync::atomic::AtomicBool;

use pgheadroom_layout::Lsn;

use crate::beside::side_by_side;
use crate::chunk::Chunk;
use crate::detail::Wanted;
use crate::error::{Broken, WalError};
use crate::format::{LONG_HEADER_BYTES, PAGE_BYTES};
use crate::outcome::{Gap, Outcome, tally_of};
use crate::pages::Pages;
use crate::part::Part;
use crate::piece::Piece;
use crate::sink::Sink;
use crate::starts::Starts;
use crate::tally::Range;

const BEFORE_START: &str = "a record from before the server started, left out as all behind it,";
const MEANWHILE: &str = "a record that was written while this was read, left out as all behind it,";

/// How far before the first gap the start is looked for that tells records from before a crash.
/// They lie where the server has not got to again: it flushes a segment before it begins the next
/// one, so a crash loses little. Two segments of the largest size; arbitrary beyond that, and read
/// within a second.
const LOOK_BACK_BYTES: u64 = 2 << 30;

/// Sums the records of pieces that lie in a range.
///
/// # Arguments
/// * `pieces` - of one server, in order ([`crate::choose`]); not empty.
/// * `wanted` - what is asked for beside the sums by relation.
/// * `threads` - how many read side by side where there are segments enough.
/// * `stop` - set it from elsewhere to end early; what came of it is then of no use.
///
/// # Errors
/// [`WalError`] for files that cannot be read.
pub fn run(
    pieces: &[Piece],
    range: Range,
    wanted: &Wanted,
    threads: usize,
    stop: &AtomicBool,
) -> Result<Outcome, WalError> {
    let outcome = sums(pieces, range, wanted, threads, stop)?;
    if outcome.gaps.is_empty() {
        return Ok(outcome);
    }
    let Some(end) = end_before_gap(pieces, range, &outcome.gaps, stop) else {
        return Ok(outcome);
    };
    let range = Range {
        to: end.lsn,
        ..range
    };
    Ok(Outcome {
        end: Some(end),
        ..sums(pieces, range, wanted, threads, stop)?
    })
}

/// Where the log ends, if it does at a gap: whole records behind are from before the server's last
/// start, or the server wrote on while it was read, and what was a gap is none any more.
fn end_before_gap(
    pieces: &[Piece],
    range: Range,
    gaps: &[Gap],
    stop: &AtomicBool,
) -> Option<Broken> {
    let starts = read_again(pieces, range, gaps, stop)?;
    let ends = [(starts.end, BEFORE_START), (starts.grown, MEANWHILE)];
    let found = ends.into_iter().filter_map(|(end, why)| Some((end?, why)));
    found.min().map(|(lsn, why)| Broken { lsn, why })
}

/// Reads from before the first gap on, up to where it is known what lies behind the last one.
fn read_again(pieces: &[Piece], range: Range, gaps: &[Gap], stop: &AtomicBool) -> Option<Starts> {
    let (first, first_gap) = (pieces.first()?, gaps.first()?);
    let froms = gaps.iter().map(|gap| gap.from).collect();
    let starts = Starts::new(first.major, first.segment_bytes, range.to, froms);
    let range = Range {
        from: Lsn(first_gap.from.0.saturating_sub(LOOK_BACK_BYTES)),
        to: range.to,
        times: None,
    };
    run_sink(pieces, range, starts, stop)
        .ok()
        .map(|read| read.0)
}

fn sums(
    pieces: &[Piece],
    range: Range,
    wanted: &Wanted,
    threads: usize,
    stop: &AtomicBool,
) -> Result<Outcome, WalError> {
    let read = Reach::of(pieces, range);
    // What a record's time is, and a transaction's sum, is known from what comes before it.
    let is_in_parts = range.times.is_none() && !wanted.transactions;
    if is_in_parts
        && threads.min(read.overlapping) > 1
        && let Some(outcome) =
            side_by_side(read.pieces, read.overlapping, range, wanted, threads, stop)
    {
        return Ok(outcome);
    }
    let Some(first) = read.begins(range) else {
        return Err(WalError::Nothing {
            what: "the input".to_owned(),
            problem: "there is no file".to_owned(),
        });
    };
    let mut part = Part::new(first, tally_of(first, range, wanted, Lsn(u64::MAX)));
    part.read(read.pieces, range, stop, Chunk::new())?;
    Ok(part.outcome())
}

/// Hands the records of pieces on, one after another, from the page on which `range` begins; and
/// says what of the range could not be read.
///
/// # Arguments
/// * `pieces` - of one server, in order ([`crate::choose`]).
/// * `range` - which pieces are read; the sink looks at positions and times itself.
///
/// # Errors
/// [`WalError`] for files that cannot be read.
pub fn run_sink<S: Sink>(
    pieces: &[Piece],
    range: Range,
    sink: S,
    stop: &AtomicBool,
) -> Result<(S, Vec<Gap>), WalError> {
    let read = Reach::of(pieces, range);
    let Some(first) = read.begins(range) else {
        return Ok((sink, Vec::new()));
    };
    let mut part = Part::new(first, sink);
    part.read(read.pieces, range, stop, Chunk::new())?;
    Ok(part.into_sink())
}

/// Hands on the records of pages one after another, as of one file; and what could not be read.
///
/// # Arguments
/// * `start` - the first page's position.
/// * `magic` - of the pages.
pub fn run_pages<'a, S: Sink>(
    start: Lsn,
    pages: impl IntoIterator<Item = &'a [u8; PAGE_BYTES]>,
    (magic, segment_bytes): (u16, u64),
    sink: S,
) -> (S, Vec<Gap>) {
    let mut part = Part::of(magic, segment_bytes, sink, String::new());
    let mut lsn = start;
    for page in pages {
        if part.is_stopped() {
            break;
        }
        part.take_page(lsn, page, PAGE_BYTES, "");
        lsn = Lsn(lsn.0.saturating_add(PAGE_BYTES as u64));
    }
    part.finish(Range::default());
    part.into_sink()
}

/// Sums the records of a stream, segments one after another.
///
/// # Arguments
/// * `open_end` - the stream ends where the log does, in a segment's middle too.
///
/// # Errors
/// [`WalError`] for a stream that cannot be read or is no WAL.
pub fn run_stream(
    shown: &str,
    mut bytes: Box<dyn Read + Send>,
    range: Range,
    wanted: &Wanted,
    open_end: bool,
    stop: &AtomicBool,
) -> Result<(Piece, Outcome), WalError> {
    let mut head = Vec::new();
    (&mut bytes)
        .take(LONG_HEADER_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(|error| WalError::Unreadable {
            path: shown.to_owned(),
            problem: error.to_string(),
        })?;
    let piece = Piece::of_stream(shown, &head)?;
    let mut part = Part::new(&piece, tally_of(&piece, range, wanted, Lsn(u64::MAX)));
    let whole: Box<dyn Read + Send> = Box::new(std::io::Cursor::new(head).chain(bytes));
    let mut pages = Pages::of_bytes(&piece, piece.start, whole, Chunk::new());
    part.begin(range, piece.start);
    part.read_pages(&mut pages, shown, stop)?;
    if open_end {
        part.end_open();
    }
    part.finish(range);
    Ok((piece, part.outcome()))
}

/// Which pieces are read for a range.
struct Reach<'a> {
    /// Those that overlap it, and the one behind, which says whether the log goes on.
    pieces: &'a [Piece],
    overlapping: usize,
    before: Option<&'a Piece>,
}

impl<'a> Reach<'a> {
    fn of(pieces: &'a [Piece], range: Range) -> Self {
        let behind = pieces.partition_point(|piece| piece.start < range.to);
        let overlaps = |piece: &Piece| piece.is_stream() || piece.end() > range.from;
        let first = pieces[..behind].iter().position(overlaps);
        let first = first.unwrap_or(behind);
        Self {
            pieces: &pieces[first..pieces.len().min(behind + 1)],
            overlapping: behind - first,
            before: first.checked_sub(1).map(|before| &pieces[before]),
        }
    }

    /// The file in which the log of the range begins, or behind which it is missing.
    fn begins(&self, range: Range) -> Option<&'a Piece> {
        let is_there = |piece: &&Piece| piece.start <= range.from;
        let first = self.pieces.first();
        first.filter(is_there).or(self.before).or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::choose;
    use crate::wal_writer::{Folder, SEGMENT, Writer, block, folder};

    const START: u64 = 3 * SEGMENT;

    fn gap(from: u64) -> Gap {
        Gap {
            from: Lsn(from),
            to: Lsn(from + 9_000),
            path: String::new(),
            why: "no record",
        }
    }

    /// Segments and a bit with a start, and transactions that end behind it; where records end.
    fn started(test: &str) -> (Folder, Writer, Vec<u64>) {
        let mut wal = Writer::new(START);
        let ends = (0..9_000_u32)
            .map(|n| {
                let since_2000 = i64::from(n) * 1_000_000;
                match n {
                    0 => {
                        let mut main = [0; 88];
                        main[64..72].copy_from_slice(&946_684_800_u64.to_le_bytes());
                        wal.record(0, 0, &[], &main)
                    }
                    n if n % 2 == 1 => wal.record(1, 0, &[], &since_2000.to_le_bytes()),
                    n => wal.record(10, 0x40, &[block(n % 5 + 1, 260)], &[0; 14]),
                };
                wal.position()
            })
            .collect();
        (folder(test), wal, ends)
    }

    /// Where there is a gap the log is read again, but not all of it: up to a record behind the
    /// last gap of which is known what it is.
    #[test]
    fn read_again_up_to_behind_the_last_gap() {
        let (folder, mut wal, ends) = started("read-again");
        for n in [2_000, 4_000] {
            let at = usize::try_from(ends[n] - START).unwrap();
            wal.bytes[at + 30..at + 60].fill(7);
        }
        wal.save(&folder);
        let pieces = choose(&[folder.to_path_buf()], None).unwrap().pieces;
        let (range, stop) = (Range::default(), AtomicBool::new(false));
        let gaps = sums(&pieces, range, &Wanted::default(), 1, &stop)
            .unwrap()
            .gaps;
        assert_eq!(gaps.len(), 2);
        let starts = read_again(&pieces, range, &gaps, &stop).unwrap();
        assert_eq!((starts.end, starts.grown), (None, None));
        let behind = starts.last_end.unwrap().0;
        assert!(
            (ends[4_000]..ends[4_100]).contains(&behind),
            "{behind} of {}",
            ends[8_999]
        );
    }

    /// What was a gap, and is none when the log is read again, was the log's end; a gap that is one
    /// still is none, and neither is one that lies before the log.
    #[test]
    fn written_meanwhile() {
        let folder = folder("written-meanwhile");
        let mut wal = Writer::new(START);
        let ends: Vec<u64> = (0..9_000_u32)
            .map(|n| {
                wal.record(10, 0x40, &[block(n % 5 + 1, 260)], &[0; 14]);
                wal.position()
            })
            .collect();
        let damaged = usize::try_from(ends[4_000] - START).unwrap();
        wal.bytes[damaged + 30..damaged + 60].fill(7);
        wal.save(&folder);
        let pieces = choose(&[folder.to_path_buf()], None).unwrap().pieces;
        let stop = AtomicBool::new(false);
        let end = |gaps: &[Gap]| {
            let found = end_before_gap(&pieces, Range::default(), gaps, &stop)?;
            assert_eq!(found.why, MEANWHILE);
            Some(found.lsn.0)
        };
        assert_eq!(end(&[gap(ends[4_000])]), None);
        assert_eq!(end(&[gap(START - 9_000), gap(START - 100)]), None);
        for at in [3_000, 5_000] {
            let (before, behind) = (gap(ends[4_000]), gap(ends[at]));
            let mut gaps = [before, behind];
            gaps.sort_by_key(|gap| gap.from);
            assert_eq!(end(&gaps), Some(ends[at]));
        }
        // Where a page begins.
        let at_page = ends.iter().find(|end| end.is_multiple_of(8_192)).unwrap();
        assert_eq!(end(&[gap(*at_page)]), Some(*at_page));
    }
}
