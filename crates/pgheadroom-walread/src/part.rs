//! What one thread reads: pieces in order, over gaps and damage.

use std::sync::atomic::{AtomicBool, Ordering};

use pgheadroom_layout::Lsn;

use crate::chunk::Chunk;
use crate::cut;
use crate::error::{Broken, WalError};
use crate::format::PAGE_BYTES;
use crate::outcome::{Gap, Outcome};
use crate::piece::{Pages, Piece};
use crate::reader::{Reader, Step};
use crate::resume::{crossing_after, record_after};
use crate::sink::Sink;
use crate::tally::{Range, Tally};

const TORN: &str = "the file does not unpack any further";

/// What one thread reads.
pub(crate) struct Part<S> {
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
    /// Where the last file ends, if within its segment, and whether it does not unpack further.
    cut_at: Option<Lsn>,
    is_torn: bool,
    is_stopped: bool,
    path: String,
}

impl<S: Sink> Part<S> {
    /// Before the first page of a piece.
    pub(crate) fn new(first: &Piece, sink: S) -> Self {
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
            is_torn: false,
            is_stopped: false,
            path: first.path.display().to_string(),
        }
    }

    /// Reads pieces to their end, or to where the sink has had enough; gives back the memory.
    pub(crate) fn read(
        &mut self,
        pieces: &[Piece],
        range: Range,
        stop: &AtomicBool,
        mut chunk: Chunk,
    ) -> Result<Chunk, WalError> {
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
        Ok(chunk)
    }

    /// Reads the pages of one piece.
    pub(crate) fn read_pages(
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
        (self.cut_at, self.is_torn) = (pages.cut_at(), pages.is_torn());
        Ok(())
    }

    /// Pages are missing before this one.
    fn miss(&mut self, lsn: Lsn) {
        if let Some((broken, path, _)) = self.tried.take() {
            self.broken = Some((broken, path));
        } else if self.broken.is_none() {
            let from = self.reader.position().or(self.expected).unwrap_or(lsn);
            let why = if self.is_torn {
                TORN
            } else {
                "segments, or a part of one, are missing"
            };
            self.gap(from, lsn, why);
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

    /// The input ends where the log does, in a segment's middle too.
    pub(crate) fn end_open(&mut self) {
        self.cut_at = None;
    }

    /// What the records were handed to.
    pub(crate) fn into_sink(self) -> S {
        self.sink
    }

    /// Whether everything could be read.
    pub(crate) fn is_without_gap(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Says what is at the end, once there are no more pages.
    pub(crate) fn finish(&mut self, range: Range) {
        self.sink.settle();
        if let Some(at) = self.cut_at.filter(|_| !self.is_stopped)
            && !self.reader.is_switched()
            && self.broken.is_none()
        {
            let tried = self.tried.take().map(|(broken, _, _)| broken.lsn);
            let from = tried.or(self.reader.position()).unwrap_or(at);
            if from < range.to {
                let to = Lsn(at.0.next_multiple_of(self.segment_bytes));
                let why = if self.is_torn {
                    TORN
                } else {
                    "the file ends within its segment"
                };
                self.gap(from, to, why);
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

    /// Whether it read everything up to where another part goes on.
    pub(crate) fn went_on(&self) -> bool {
        self.is_stopped && self.gaps.is_empty() && self.broken.is_none()
    }

    /// Whether what another part has read begins where this one stopped.
    pub(crate) fn joins(&self, next: &Self) -> bool {
        self.went_on()
            && next.reader.first.is_some_and(|(lsn, prev)| {
                self.reader.last() == Some(prev) && self.reader.position() == Some(lsn)
            })
    }
}

impl Part<Tally> {
    /// Takes in what the next part has read.
    pub(crate) fn append(&mut self, next: Self) {
        self.sink.merge(&next.sink);
        self.reader = next.reader;
        self.gaps.extend(next.gaps);
        self.broken = next.broken;
        self.is_stopped = next.is_stopped;
    }

    /// What came of it.
    pub(crate) fn outcome(self) -> Outcome {
        Outcome {
            tally: self.sink,
            gaps: self.gaps,
            end: self.broken.map(|(broken, _)| broken),
        }
    }
}
