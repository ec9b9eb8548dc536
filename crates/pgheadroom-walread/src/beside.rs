//! Parts of a log, read at the same time and joined where one ends and the next begins.
//!
//! A second of log is not like another: COPY's long records are read several times as fast as an
//! update's short ones. So there are more parts than threads, and who is done takes the next one.
//! Parts are joined in order as soon as they can be, so that few of them wait in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;

use pgheadroom_layout::Lsn;

use crate::chunk::Chunk;
use crate::detail::Wanted;
use crate::part::Part;
use crate::piece::Piece;
use crate::run::{Outcome, tally_of};
use crate::tally::{Range, Tally};

/// Parts that a thread has to read, where there are segments enough. At the end the others wait for
/// the last part, half of one in the mean; each part begins and ends with a page or two that
/// another one reads too.
const PARTS_EACH: usize = 16;

/// Sums pieces in several parts at the same time; None where the parts do not join, or a file
/// cannot be read, which reading one after another then explains.
///
/// # Arguments
/// * `pieces` - those that overlap `range`, in order.
/// * `threads` - how many read, this one among them.
pub(crate) fn side_by_side(
    pieces: &[Piece],
    range: Range,
    wanted: &Wanted,
    threads: usize,
    stop: &AtomicBool,
) -> Option<Outcome> {
    let parts = pieces.len().min(threads.saturating_mul(PARTS_EACH));
    let bound = |part: usize| part * pieces.len() / parts;
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
            let (begin, end) = (bound(at), bound(at + 1));
            let stop_at = pieces.get(end).map_or(Lsn(u64::MAX), |piece| piece.start);
            let first = &pieces[begin];
            let mut part = Part::new(first, tally_of(first, range, wanted, stop_at));
            let Ok(again) = part.read(&pieces[begin..], range, stop, chunk) else {
                front.lock().ok()?.is_over = true;
                return None;
            };
            chunk = again;
            front.lock().ok()?.add(at, part);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(parts) {
            scope.spawn(work);
        }
        work()
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
        let at = self.taken;
        (at < self.parts && !self.is_over).then(|| {
            self.taken += 1;
            at
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
#[path = "../tests/wal_writer/mod.rs"]
mod wal_writer;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::wal_writer::{Folder, SEGMENT, Writer, block, folder};
    use super::*;
    use crate::folder::choose;
    use crate::run::run;

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

    fn joined(pieces: &[Piece], threads: usize) -> Option<Outcome> {
        let stop = AtomicBool::new(false);
        side_by_side(pieces, Range::default(), &Wanted::default(), threads, &stop)
    }

    /// However many read, the parts join, and have what one reader has.
    #[test]
    fn parts_join() {
        let (_folder, pieces) = saved("parts-join", |_, _| {});
        let stop = AtomicBool::new(false);
        let alone = run(&pieces, Range::default(), &Wanted::default(), 1, &stop).unwrap();
        assert_eq!(alone.tally.total.records, 20_000);
        for threads in [1, 2, 3, 40] {
            let outcome = joined(&pieces, threads).unwrap();
            assert_eq!(outcome.tally.total, alone.tally.total);
            assert_eq!(outcome.tally.spans, alone.tally.spans);
            assert_eq!(outcome.tally.relations(), alone.tally.relations());
            assert_eq!(outcome.end, alone.end);
        }
    }

    /// Damage, a segment or a file that is not there: one reader has to look over it.
    #[test]
    fn parts_that_do_not_join() {
        let flip = |wal: &mut Writer, at: u64| {
            let place = usize::try_from(at - START).unwrap();
            wal.bytes[place + 60] ^= 1;
        };
        let (_folder, pieces) = saved("parts-damaged", flip);
        assert!(joined(&pieces, 2).is_none());
        let (_folder, mut pieces) = saved("parts-missing", |_, _| {});
        fs::remove_file(&pieces[4].path).unwrap();
        assert!(joined(&pieces, 2).is_none());
        pieces.remove(4);
        assert!(joined(&pieces, 2).is_none());
    }
}
