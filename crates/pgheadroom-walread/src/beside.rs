//! Parts of a log, read at the same time and joined where one ends and the next begins.
//!
//! A second of log is not like another: COPY's long records are read several times as fast as an
//! update's short ones. So there are more parts than threads, and who is done takes the next one.
//! Parts are joined in order as soon as they can be, so that few of them wait in memory.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;

use pgheadroom_layout::Lsn;

use crate::chunk::Chunk;
use crate::detail::Wanted;
use crate::outcome::{Outcome, tally_of};
use crate::part::Part;
use crate::piece::Piece;
use crate::tally::{Range, Tally};

/// Parts that a thread has to read, at most. Each begins and ends with a page or two that another
/// one reads too. Arbitrary: half as many measured alike.
const PARTS_EACH: usize = 16;
/// And together, whatever number of threads is asked for. Arbitrary.
const PARTS_MOST: usize = 4096;

/// A segment is cut into so many, which begin at pages: the smallest one, of 1 MB, into 128 kB. The
/// first and the last are not cut: what is asked for begins in one, and ends in the other.
const UNITS_EACH: usize = 8;

/// Where a part begins: the place of its first piece, and a position in it.
type Bound = (usize, Lsn);

/// Where parts of pieces begin. They become smaller towards the end, where whoever is done waits;
/// the last one, which may be a whole segment, is taken first. A part has a record: none begins in
/// what a switch left empty, nor within a record that is longer than most of a part.
fn bounds(pieces: &[Piece], threads: usize) -> Vec<Bound> {
    let is_cut = pieces.iter().all(Piece::is_whole_segment);
    let each = if is_cut { UNITS_EACH } else { 1 };
    let units = pieces.len() * each;
    let parts = threads
        .saturating_mul(PARTS_EACH)
        .min(PARTS_MOST)
        .min(units);
    let at = |unit: usize| {
        let piece = &pieces[unit / each];
        let within = piece.segment_bytes / each as u64 * (unit % each) as u64;
        (unit / each, Lsn(piece.start.0 + within))
    };
    // Behind part p is (1 - p / parts)^2 of the whole.
    let left = |part: usize| (units * (parts - part).pow(2)).div_ceil(parts.pow(2));
    let is_used = |(place, lsn): &Bound| {
        let piece = &pieces[*place];
        *lsn == piece.start
            || (*place > 0
                && *place + 1 < pieces.len()
                && piece.goes_on_at(*lsn, piece.segment_bytes / each as u64))
    };
    let found = (0..parts).map(|part| at(units - left(part)));
    let mut found: Vec<Bound> = found.filter(is_used).collect();
    let last = pieces.len() - 1;
    found.push((last, pieces[last].start));
    found.dedup();
    found
}

/// Sums pieces in several parts at the same time; None where the parts do not join, or a file
/// cannot be read, which reading one after another then explains.
///
/// # Arguments
/// * `pieces` - in order: the `overlapping` ones of `range`, and the one behind, if any.
/// * `threads` - how many read, all of them new ones.
pub(crate) fn side_by_side(
    pieces: &[Piece],
    overlapping: usize,
    range: Range,
    wanted: &Wanted,
    threads: usize,
    stop: &AtomicBool,
) -> Option<Outcome> {
    let bounds = bounds(&pieces[..overlapping], threads);
    let parts = bounds.len();
    let front = Mutex::new(Front {
        parts,
        ..Front::default()
    });
    let work = || {
        let mut chunk = Chunk::new();
        loop {
            let taken = front.lock().ok()?.take();
            let Some(at) = taken else {
                return Some(());
            };
            let (begin, from) = bounds[at];
            let stop_at = bounds.get(at + 1).map_or(Lsn(u64::MAX), |(_, lsn)| *lsn);
            let first = &pieces[begin];
            let mut part = Part::new(first, tally_of(first, range, wanted, stop_at));
            let begins = if at == 0 { range.from } else { from };
            let read = Range {
                from: range.from.max(begins),
                ..range
            };
            let Ok(again) = part.read(&pieces[begin..], read, stop, chunk) else {
                front.lock().ok()?.is_over = true;
                return None;
            };
            chunk = again;
            front.lock().ok()?.add(at, part);
        }
    };
    thread::scope(|scope| {
        // This thread only waits. Where it read too, the second one was often put on its core, and
        // came to run 1 to 4 ms later, which of 70 is much.
        let readers: Vec<_> = (0..threads.min(parts)).map(|_| scope.spawn(work)).collect();
        readers
            .into_iter()
            .try_for_each(|reader| match reader.join() {
                Ok(read) => read,
                Err(panic) => resume_unwind(panic),
            })
    })?;
    let front = front.into_inner().ok()?;
    let joined = front.joined.filter(|_| front.count == parts)?;
    joined.is_without_gap().then(|| joined.outcome())
}

/// What is taken, and what is joined.
#[derive(Default)]
struct Front {
    parts: usize,
    taken: usize,
    /// Parts that were read before the ones in front of them.
    waiting: BTreeMap<usize, Part<Tally>>,
    /// The first `count` parts.
    joined: Option<Part<Tally>>,
    count: usize,
    /// Two do not join, or a file cannot be read: the rest is of no use.
    is_over: bool,
}

impl Front {
    fn take(&mut self) -> Option<usize> {
        (self.taken < self.parts && !self.is_over).then(|| {
            self.taken += 1;
            (self.taken + self.parts - 2) % self.parts
        })
    }

    fn add(&mut self, at: usize, part: Part<Tally>) {
        if at + 1 < self.parts && !part.went_on() {
            self.is_over = true;
            return;
        }
        self.waiting.insert(at, part);
        while let Some(part) = self.waiting.remove(&self.count) {
            match self.joined.as_mut() {
                None => self.joined = Some(part),
                Some(before) if before.joins(&part) => before.append(part),
                Some(_) => {
                    self.is_over = true;
                    return;
                }
            }
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::folder::choose;
    use crate::run::run;
    use crate::wal_writer::{Folder, SEGMENT, Writer, block, folder};

    const START: u64 = 3 * SEGMENT;

    /// Six segments and a bit, and where a record in the middle lies.
    fn saved(test: &str, change: impl FnOnce(&mut Writer, u64)) -> (Folder, Vec<Piece>) {
        let folder = folder(test);
        let mut wal = Writer::new(START);
        let places: Vec<u64> = (0..20_000_u32)
            .map(|n| wal.record(10, 0x40, &[block(n % 5 + 1, 260)], &[0; 14]).0)
            .collect();
        change(&mut wal, places[10_000]);
        wal.save(&folder);
        let pieces = choose(&[folder.to_path_buf()], None).unwrap().pieces;
        assert_eq!(pieces.len(), 7);
        (folder, pieces)
    }

    fn joined(pieces: &[Piece], range: Range, threads: usize) -> Option<Outcome> {
        let stop = AtomicBool::new(false);
        side_by_side(
            pieces,
            pieces.len(),
            range,
            &Wanted::default(),
            threads,
            &stop,
        )
    }

    /// However many read, and from and to wherever, the parts join, and have what one reader has.
    #[test]
    fn parts_join() {
        let (_folder, pieces) = saved("parts-join", |_, _| {});
        let whole = Range::default();
        let within = |from: u64, to: u64| Range {
            from: Lsn(START + from),
            to: Lsn(START + to),
            times: None,
        };
        let half = SEGMENT / 2;
        let ranges = [
            (whole, 0, 7),
            (within(half, 6 * SEGMENT + half), 0, 7),
            (within(SEGMENT + 999, 5 * SEGMENT - 1), 1, 5),
            (within(half, SEGMENT + 9000), 0, 2),
        ];
        for (range, first, end) in ranges {
            let pieces = &pieces[first..end];
            let stop = AtomicBool::new(false);
            let alone = run(pieces, range, &Wanted::default(), 1, &stop).unwrap();
            for threads in [1, 2, 3, 40, usize::MAX] {
                let outcome = joined(pieces, range, threads).unwrap();
                assert_eq!(outcome.tally.total, alone.tally.total);
                assert_eq!(outcome.tally.spans, alone.tally.spans);
                assert_eq!(outcome.tally.relations(), alone.tally.relations());
                assert_eq!(outcome.end, alone.end);
            }
        }
    }

    /// Segments that were switched early, and a record longer than a part, as archives have them.
    #[test]
    fn parts_join_over_what_has_no_record() {
        let folder = folder("parts-switched");
        let mut wal = Writer::new(START);
        for n in 0..24_000_u32 {
            if [4000, 5000, 5001, 12_000].contains(&n) {
                wal.switch();
            }
            let main = vec![0; if n == 16_000 { 300_000 } else { 14 }];
            wal.record(10, 0x40, &[block(n % 5 + 1, 260)], &main);
        }
        wal.save(&folder);
        let pieces = choose(&[folder.to_path_buf()], None).unwrap().pieces;
        let (range, stop) = (Range::default(), AtomicBool::new(false));
        let alone = run(&pieces, range, &Wanted::default(), 1, &stop).unwrap();
        assert!(alone.gaps.is_empty());
        for threads in [2, 3, 40] {
            let outcome = joined(&pieces, range, threads).expect("no part is without a record");
            assert_eq!(outcome.tally.total, alone.tally.total);
            assert_eq!(outcome.tally.relations(), alone.tally.relations());
            assert_eq!(outcome.end, alone.end);
        }
    }

    /// Parts are not longer towards the end, but for the last; the whole is in them.
    #[test]
    fn parts_become_smaller() {
        let (_folder, pieces) = saved("parts-smaller", |_, _| {});
        let found = bounds(&pieces, 2);
        assert_eq!(found[0], (0, pieces[0].start));
        assert_eq!(found[found.len() - 1], (6, pieces[6].start));
        assert!(found.len() > 12, "{found:?}");
        let lengths: Vec<u64> = found
            .windows(2)
            .map(|two| two[1].1.0 - two[0].1.0)
            .collect();
        assert!(
            lengths
                .iter()
                .all(|length| length.is_multiple_of(128 * 1024))
        );
        assert!(lengths[0] >= SEGMENT, "{lengths:?}");
        assert!(lengths[lengths.len() - 1] <= SEGMENT / 4, "{lengths:?}");
        assert_eq!(
            bounds(&pieces[..2], 9).len(),
            2,
            "neither the first nor the last is cut"
        );
    }

    /// Damage, a segment or a file that is not there: one reader has to look over it.
    #[test]
    fn parts_that_do_not_join() {
        let flip = |wal: &mut Writer, at: u64| {
            let place = usize::try_from(at - START).unwrap();
            wal.bytes[place + 60] ^= 1;
        };
        let (_folder, pieces) = saved("parts-damaged", flip);
        assert!(joined(&pieces, Range::default(), 2).is_none());
        let (_folder, mut pieces) = saved("parts-missing", |_, _| {});
        fs::remove_file(&pieces[4].path).unwrap();
        assert!(joined(&pieces, Range::default(), 2).is_none());
        pieces.remove(4);
        assert!(joined(&pieces, Range::default(), 2).is_none());
    }
}
