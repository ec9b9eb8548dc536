//! Reads pieces in order, over gaps and damage, on several threads where that can be.
//!
//! A bad record is the end of the log only if nothing valid follows at its address; else it is a
//! gap from there to the first record that is whole again. So is a segment that is missing.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pgheadroom_layout::Lsn;

use crate::chunk::Chunk;
use crate::cut;
use crate::detail::Wanted;
use crate::error::{Broken, WalError};
use crate::format::{LONG_HEADER_BYTES, PAGE_BYTES};
use crate::piece::{Pages, Piece};
use crate::reader::{Reader, Step};
use crate::resume::{crossing_after, record_after};
use crate::sink::Sink;
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
    /// Stretches that could not be read.
    pub gaps: Vec<Gap>,
    /// Where reading ended, and what is there instead of a record; None where the input ends, or
    /// the range that was asked for.
    pub end: Option<Broken>,
}

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
    let read: Vec<Piece> = pieces
        .iter()
        .filter(|piece| overlaps(piece, range))
        .cloned()
        .collect();
    // What a record's time is, and a transaction's sum, is known from what comes before it.
    let parts = if range.times.is_some() || wanted.transactions {
        1
    } else {
        threads.min(read.len() / 2)
    };
    if parts > 1
        && let Some(outcome) = side_by_side(&read, range, wanted, parts, stop)?
    {
        return Ok(outcome);
    }
    let first = read.first().or(pieces.first());
    let Some(first) = first else {
        return Err(WalError::Nothing {
            what: "the input".to_owned(),
            problem: "there is no file".to_owned(),
        });
    };
    let mut part = Part::new(first, tally_of(first, range, wanted, Lsn(u64::MAX)));
    part.read(&read, range, stop)?;
    Ok(part.outcome())
}

/// Hands the records of pieces on, one after another, from the page on which `range` begins.
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
) -> Result<S, WalError> {
    let read: Vec<Piece> = pieces
        .iter()
        .filter(|piece| overlaps(piece, range))
        .cloned()
        .collect();
    let Some(first) = read.first() else {
        return Ok(sink);
    };
    let mut part = Part::new(first, sink);
    part.read(&read, range, stop)?;
    Ok(part.sink)
}

fn tally_of(first: &Piece, range: Range, wanted: &Wanted, stop_at: Lsn) -> Tally {
    Tally::new(first.major, first.segment_bytes, range, wanted, stop_at)
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
    part.read_pages(&mut pages, shown, stop)?;
    if open_end {
        part.cut_at = None;
    }
    part.finish(range);
    Ok((piece, part.outcome()))
}

fn overlaps(piece: &Piece, range: Range) -> bool {
    let has_end = piece.name.is_some() || !piece.is_plain();
    piece.start < range.to && !(has_end && piece.end() <= range.from)
}

/// Reads parts of the pieces at the same time; None where they do not join, which reading one
/// after another then explains.
fn side_by_side(
    pieces: &[Piece],
    range: Range,
    wanted: &Wanted,
    parts: usize,
    stop: &AtomicBool,
) -> Result<Option<Outcome>, WalError> {
    let bounds: Vec<usize> = (0..=parts)
        .map(|part| part * pieces.len() / parts)
        .collect();
    let mut read: Vec<Result<Part<Tally>, WalError>> = Vec::with_capacity(parts);
    thread::scope(|scope| {
        let started: Vec<_> = (0..parts)
            .map(|at| {
                let (begin, end) = (bounds[at], bounds[at + 1]);
                let stop_at = pieces.get(end).map_or(Lsn(u64::MAX), |piece| piece.start);
                scope.spawn(move || {
                    let tally = tally_of(&pieces[begin], range, wanted, stop_at);
                    let mut part = Part::new(&pieces[begin], tally);
                    part.read(&pieces[begin..], range, stop).map(|()| part)
                })
            })
            .collect();
        for handle in started {
            match handle.join() {
                Ok(part) => read.push(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let mut joined: Option<Part<Tally>> = None;
    for part in read {
        let part = part?;
        match joined.as_mut() {
            None => joined = Some(part),
            Some(before) => {
                if !before.joins(&part) {
                    return Ok(None);
                }
                before.append(part);
            }
        }
    }
    let whole = joined.filter(|part| part.gaps.is_empty());
    Ok(whole.map(Part::outcome))
}

/// What one thread reads.
struct Part<S> {
    reader: Reader,
    sink: S,
    magic: u16,
    segment_bytes: u64,
    gaps: Vec<Gap>,
    /// Damage, or the end: not yet known which.
    broken: Option<(Broken, String)>,
    /// Broken too, but a record has begun behind that shows whether it is damage.
    tried: Option<(Broken, String, Lsn)>,
    expected: Option<Lsn>,
    /// Where the last file ends, if within its segment.
    cut_at: Option<Lsn>,
    is_stopped: bool,
    path: String,
}

impl<S: Sink> Part<S> {
    fn new(first: &Piece, sink: S) -> Self {
        Self {
            reader: Reader::new(first.magic, first.segment_bytes),
            sink,
            magic: first.magic,
            segment_bytes: first.segment_bytes,
            gaps: Vec::new(),
            broken: None,
            tried: None,
            expected: None,
            cut_at: None,
            is_stopped: false,
            path: first.path.display().to_string(),
        }
    }

    fn read(&mut self, pieces: &[Piece], range: Range, stop: &AtomicBool) -> Result<(), WalError> {
        let mut chunk = Chunk::new();
        for piece in pieces {
            let shown = piece.path.display().to_string();
            let mut pages = Pages::of(piece, range.from.max(piece.start), chunk)?;
            self.read_pages(&mut pages, &shown, stop)?;
            chunk = pages.into_chunk();
            if self.is_stopped {
                break;
            }
        }
        self.finish(range);
        Ok(())
    }

    fn read_pages(
        &mut self,
        pages: &mut Pages,
        shown: &str,
        stop: &AtomicBool,
    ) -> Result<(), WalError> {
        while !self.is_stopped && !stop.load(Ordering::Relaxed) {
            let Some((lsn, page, there)) = pages.next_page()? else {
                break;
            };
            if self.expected.is_some_and(|expected| expected != lsn) {
                self.miss(lsn);
            }
            if self.path != shown {
                shown.clone_into(&mut self.path);
            }
            let was_broken = self.broken.is_some();
            self.take(lsn, page);
            let part = cut::Part { lsn, page, there };
            if !was_broken
                && let Some((broken, _)) = &self.broken
                && part.breaks(broken.lsn, self.reader.last())
            {
                self.broken = None;
            }
            self.expected = Some(Lsn(lsn.0.saturating_add(PAGE_BYTES as u64)));
        }
        self.cut_at = pages.cut_at();
        Ok(())
    }

    /// Pages are missing before this one.
    fn miss(&mut self, lsn: Lsn) {
        if let Some((broken, path, _)) = self.tried.take() {
            self.broken = Some((broken, path));
        } else if self.broken.is_none() {
            let from = self.reader.position().or(self.expected).unwrap_or(lsn);
            self.gap(from, lsn, "segments, or a part of one, are missing");
            self.reader.seek();
        }
    }

    fn gap(&mut self, from: Lsn, to: Lsn, why: &'static str) {
        // The next segment joins where the last one's rest is empty.
        if from < to {
            self.gaps.push(Gap {
                from,
                to,
                path: self.path.clone(),
                why,
            });
        }
        self.sink.gap();
    }

    fn take(&mut self, lsn: Lsn, page: &[u8; PAGE_BYTES]) {
        let mut from = None;
        loop {
            if let Some((broken, path)) = self.broken.take() {
                let (magic, segment_bytes) = (self.magic, self.segment_bytes);
                let whole = record_after(broken.lsn, lsn, page, magic, segment_bytes);
                let found =
                    whole.or_else(|| crossing_after(broken.lsn, lsn, page, magic, segment_bytes));
                let Some(at) = found else {
                    self.broken = Some((broken, path));
                    return;
                };
                self.tried = Some((broken, path, Lsn(lsn.0 + at as u64)));
                self.sink.gap();
                self.reader.seek();
                from = Some(at);
            }
            let step = self.reader.take(lsn, page, from, &mut self.sink);
            from = None;
            if let Some((broken, path, to)) = self.tried.take() {
                if self.reader.last().is_some() || step == Step::Stopped {
                    let (from, why) = (broken.lsn, broken.why);
                    self.gaps.push(Gap {
                        from,
                        to,
                        path,
                        why,
                    });
                } else if let Step::Broken(_) = step {
                    // No record of this log after all. The search goes on with the next page:
                    // this one has no whole record.
                    self.broken = Some((broken, path));
                    return;
                } else {
                    self.tried = Some((broken, path, to));
                }
            }
            match step {
                Step::Next => return,
                Step::Stopped => {
                    self.is_stopped = true;
                    return;
                }
                Step::Broken(broken) => self.broken = Some((broken, self.path.clone())),
            }
        }
    }

    fn finish(&mut self, range: Range) {
        self.sink.settle();
        if let Some(at) = self.cut_at.filter(|_| !self.is_stopped)
            && !self.reader.is_switched()
            && self.broken.is_none()
        {
            let tried = self.tried.take().map(|(broken, _, _)| broken.lsn);
            let from = tried.or(self.reader.position()).unwrap_or(at);
            if from < range.to {
                let to = Lsn(at.0.next_multiple_of(self.segment_bytes));
                self.gap(from, to, "the file ends within its segment");
            }
        } else if let Some((broken, path, _)) = self.tried.take() {
            self.broken = Some((broken, path));
        } else if self.broken.is_none()
            && !self.is_stopped
            && self.reader.is_within()
            && let Some(lsn) = self.reader.position()
        {
            let why = "a record that the input cuts off";
            self.broken = Some((Broken { lsn, why }, self.path.clone()));
        }
    }

    /// Whether what another part has read begins where this one stopped.
    fn joins(&self, next: &Self) -> bool {
        let went_on = self.is_stopped && self.gaps.is_empty() && self.broken.is_none();
        went_on
            && next.reader.first.is_some_and(|(lsn, prev)| {
                self.reader.last() == Some(prev) && self.reader.position() == Some(lsn)
            })
    }
}

impl Part<Tally> {
    fn append(&mut self, next: Self) {
        self.sink.merge(&next.sink);
        self.reader = next.reader;
        self.gaps.extend(next.gaps);
        self.broken = next.broken;
        self.is_stopped = next.is_stopped;
    }

    fn outcome(self) -> Outcome {
        Outcome {
            tally: self.sink,
            gaps: self.gaps,
            end: self.broken.map(|(broken, _)| broken),
        }
    }
}
