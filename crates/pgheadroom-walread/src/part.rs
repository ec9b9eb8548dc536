//! What one thread reads: pieces in order, over gaps and damage.
//!
//! ```text
//! reading --damage, missing pages, a file's end within its segment--> lost at a position
//! lost    --a record is read again--> reading; from there to the record is a gap
//! lost    --no more pages--> the log's end, or where something is missing for sure a gap
//! ```
//!
//! So gaps are in order and disjoint, and each position from the first record on lies in a span of
//! records that were read, or in a gap.

use std::sync::atomic::{AtomicBool, Ordering};

use pgheadroom_layout::Lsn;

use crate::chunk::Chunk;
use crate::cut;
use crate::error::{Broken, WalError};
use crate::format::{PAGE_BYTES, PageHeader};
use crate::outcome::{Gap, Outcome};
use crate::pages::{Cut, Pages};
use crate::piece::Piece;
use crate::reader::{Reader, Step};
use crate::resume::Behind;
use crate::sink::Sink;
use crate::tally::{Range, Tally};

const TORN: &str = "the file does not unpack any further";
const NO_ARCHIVE: &str = "the file does not unpack at all";
const SHORT: &str = "the file ends within its segment";
const GONE: &str = "the file was removed before it was read";
const NO_RECORD: &str = "a segment without a whole record";
const MISSING: &str = "segments, or a part of one, are missing";

/// Where the log cannot be read on.
struct Lost {
    from: Lsn,
    /// No record behind names one before this position.
    floor: Lsn,
    path: String,
    why: &'static str,
    /// Something is missing whatever follows; else it may be the log's end.
    is_sure: bool,
    /// The reader begins with what may be a record again.
    is_tried: bool,
    /// The first page that came then.
    resumed: Option<Lsn>,
    /// A segment that the log has reached since, by its first page.
    reached: Option<Lsn>,
    /// The page is empty from there on, as a server leaves it where its log ends.
    is_end: bool,
    /// What is there may be what the log's end leaves; no file lacks anything.
    is_like_end: bool,
}

impl Lost {
    /// The segment that the log has reached, whose records cannot be read. A first page alone is
    /// none: one from before a crash of the operating system lies behind the log's end too.
    fn reached(&self) -> Option<Lsn> {
        self.reached.filter(|_| !self.is_end)
    }
}

/// What one thread reads.
pub(crate) struct Part<S> {
    reader: Reader,
    sink: S,
    magic: u16,
    segment_bytes: u64,
    gaps: Vec<Gap>,
    lost: Option<Lost>,
    expected: Option<Lsn>,
    /// Of the last page the file had a part only.
    is_partial: bool,
    /// Where the last file ends, if within its segment.
    cut: Option<Cut>,
    is_stopped: bool,
    path: String,
}

impl<S: Sink> Part<S> {
    /// Before the first page of a piece.
    pub(crate) fn new(first: &Piece, sink: S) -> Self {
        let path = first.path.display().to_string();
        Self::of(first.magic, first.segment_bytes, sink, path)
    }

    /// Before the first page of a log.
    pub(crate) fn of(magic: u16, segment_bytes: u64, sink: S, path: String) -> Self {
        Self {
            reader: Reader::new(magic, segment_bytes),
            sink,
            magic,
            segment_bytes,
            gaps: Vec::new(),
            lost: None,
            expected: None,
            is_partial: false,
            cut: None,
            is_stopped: false,
            path,
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
        if let Some(first) = pieces.first() {
            self.begin(range, first.start);
        }
        for piece in pieces {
            let shown = piece.path.display().to_string();
            let mut pages = Pages::of(piece, range.from.max(piece.start), chunk)?;
            self.read_pages(&mut pages, &shown, stop)?;
            chunk = pages.into_chunk();
            // Of a file whose first page is damaged, and that has no record, more was expected.
            if let Some(lost) = self.lost.as_mut().filter(|_| piece.is_damaged)
                && lost.from <= piece.start
            {
                lost.is_sure = true;
            }
            if self.is_stopped {
                break;
            }
        }
        if pieces.last().is_some_and(Piece::is_being_packed) {
            self.end_open();
        }
        self.finish(range);
        Ok(chunk)
    }

    /// Of what was asked for, the log may begin later.
    pub(crate) fn begin(&mut self, range: Range, start: Lsn) {
        if range.from > Lsn(0) && range.from < start {
            self.lose(range.from, MISSING);
        }
    }

    /// Reads the pages of one piece.
    pub(crate) fn read_pages(
        &mut self,
        pages: &mut Pages,
        shown: &str,
        stop: &AtomicBool,
    ) -> Result<(), WalError> {
        if let Some(cut) = self.cut.take() {
            self.lose_rest(cut);
        }
        while !self.is_stopped && !stop.load(Ordering::Relaxed) {
            let Some((lsn, page, there)) = pages.next_page(self.reader.timeline())? else {
                break;
            };
            self.take_page(lsn, page, there, shown);
        }
        if self.path != shown {
            shown.clone_into(&mut self.path);
        }
        self.cut = pages.cut();
        Ok(())
    }

    /// Reads a page, of which the file named has so many bytes.
    pub(crate) fn take_page(
        &mut self,
        lsn: Lsn,
        page: &[u8; PAGE_BYTES],
        there: usize,
        shown: &str,
    ) {
        if self.is_partial || self.expected.is_some_and(|expected| expected != lsn) {
            self.miss(lsn);
        }
        if self.path != shown {
            shown.clone_into(&mut self.path);
        }
        if let Some(lost) = &mut self.lost {
            lost.resumed.get_or_insert(lsn);
            let header = PageHeader::read(page);
            if lsn.0.is_multiple_of(self.segment_bytes)
                && header.fits(self.magic, lsn, self.segment_bytes)
                && header.timeline >= self.reader.timeline()
            {
                lost.reached = Some(lsn);
            }
        }
        self.take(cut::Part { lsn, page, there });
        self.is_partial = there < PAGE_BYTES;
        self.expected = Some(Lsn(lsn.0.saturating_add(PAGE_BYTES as u64)));
    }

    /// Pages are missing before this one, or a part of the last one.
    fn miss(&mut self, lsn: Lsn) {
        let joins = self.reader.is_switched() && self.reader.position() == Some(lsn);
        let at = self.reader.position().or(self.expected).unwrap_or(lsn);
        match &mut self.lost {
            None if joins => {}
            None => self.lose(at, MISSING),
            // Its file was cut short, and that is said.
            Some(lost) if lost.is_sure && lost.resumed.is_none() => {}
            Some(lost) if lost.is_sure => {
                let at = lost.resumed.unwrap_or(lsn);
                self.lose(at, MISSING);
            }
            Some(lost) => (lost.is_tried, lost.is_like_end) = (false, false),
        }
    }

    /// More was expected of a file.
    fn lose_rest(&mut self, cut: Cut) {
        let why = match cut {
            Cut { is_gone: true, .. } => GONE,
            Cut { is_torn: false, .. } => SHORT,
            Cut { is_empty: true, .. } => NO_ARCHIVE,
            Cut { .. } => TORN,
        };
        match &mut self.lost {
            // Behind a switch the rest of a segment is empty.
            None if self.reader.is_switched() && self.reader.position() > Some(cut.at) => {}
            None => {
                let at = self.reader.position().unwrap_or(cut.at);
                self.lose(at, why);
            }
            Some(lost) if lost.is_sure => {
                let at = lost.resumed.unwrap_or(cut.at);
                self.lose(at, why);
            }
            Some(Lost {
                reached: Some(reached),
                ..
            }) => {
                let at = *reached;
                self.lose(at, why);
            }
            Some(lost) => (lost.is_tried, lost.is_like_end) = (false, false),
        }
    }

    /// Something is missing from a position on.
    fn lose(&mut self, at: Lsn, why: &'static str) {
        let known = self.reader.last().map(|_| at);
        let floor = self.close(at).or(known);
        self.lost = Some(Lost {
            is_sure: true,
            is_tried: true,
            ..self.lost_at(at, floor, why)
        });
        self.reader.seek();
        self.sink.gap(false);
    }

    /// A record, or a page, is broken; false where what is missing of the file breaks it. `left` is
    /// what the page had to bring of a record that began before it.
    fn lose_broken(&mut self, broken: &Broken, part: cut::Part<'_>, left: Option<u32>) -> bool {
        let is_cut = part.breaks(broken.lsn, self.reader.last());
        let floor = match &mut self.lost {
            Some(lost) if !lost.is_sure => {
                lost.is_tried = false;
                return true;
            }
            _ if is_cut => return false,
            Some(_) => None,
            None => self.reader.last().map(|_| broken.lsn),
        };
        let floor = self.close(broken.lsn).or(floor);
        self.lost = Some(Lost {
            is_end: part.is_empty_from(broken.lsn),
            is_like_end: part.is_like_end(broken.lsn, left),
            ..self.lost_at(broken.lsn, floor, broken.why)
        });
        true
    }

    /// What may be the end; without a floor where nothing is known of what came before.
    fn lost_at(&self, from: Lsn, floor: Option<Lsn>, why: &'static str) -> Lost {
        Lost {
            from,
            floor: floor.unwrap_or_default(),
            path: self.path.clone(),
            why,
            is_sure: false,
            is_tried: false,
            resumed: None,
            reached: None,
            is_end: false,
            is_like_end: false,
        }
    }

    /// What was lost reaches to a position; its floor.
    fn close(&mut self, to: Lsn) -> Option<Lsn> {
        let lost = self.lost.take()?;
        // The next segment joins where the last one's rest is empty.
        if lost.from < to {
            self.gaps.push(Gap {
                from: lost.from,
                to,
                path: lost.path,
                why: lost.why,
            });
        }
        Some(lost.floor)
    }

    fn take(&mut self, part: cut::Part<'_>) {
        let cut::Part { lsn, page, .. } = part;
        let mut from = 0;
        loop {
            let mut begin = None;
            if self.lost.as_ref().is_some_and(|lost| !lost.is_tried) {
                begin = self.try_behind(lsn, page, from);
                if begin.is_none() {
                    return;
                }
            }
            let left = self.reader.left_bytes();
            let step = self.reader.take(lsn, page, begin, &mut self.sink);
            let is_read = self.reader.last().is_some() || step == Step::Stopped;
            if self.lost.is_some() && is_read {
                self.close(self.reader.begun().unwrap_or(lsn));
            }
            match step {
                Step::Next => return,
                Step::Stopped => {
                    self.is_stopped = true;
                    return;
                }
                Step::Broken(broken) => {
                    if !self.lose_broken(&broken, part, left) {
                        return;
                    }
                    from = match broken.lsn.0.checked_sub(lsn.0) {
                        Some(at) => usize::try_from(at).unwrap_or(PAGE_BYTES).saturating_add(8),
                        None => 0,
                    };
                }
            }
        }
    }

    /// Where on a page, from a place on, the reader may begin again.
    fn try_behind(&mut self, lsn: Lsn, page: &[u8; PAGE_BYTES], from: usize) -> Option<usize> {
        let lost = self.lost.as_mut()?;
        let behind = Behind {
            floor: lost.floor,
            magic: self.magic,
            segment_bytes: self.segment_bytes,
            timeline: self.reader.timeline(),
        };
        let begin = behind.begin(lsn, page, from)?;
        lost.is_tried = true;
        let is_like_end = lost.is_like_end;
        self.reader.seek();
        self.sink.gap(is_like_end);
        Some(begin)
    }

    /// The input ends where the log does, in a segment's middle too.
    pub(crate) fn end_open(&mut self) {
        self.cut = None;
    }

    /// What the records were handed to, and what could not be read.
    pub(crate) fn into_sink(self) -> (S, Vec<Gap>) {
        (self.sink, self.gaps)
    }

    /// Whether the sink has had enough.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Whether everything could be read.
    pub(crate) fn is_without_gap(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Says what is at the end, once there are no more pages.
    pub(crate) fn finish(&mut self, range: Range) {
        self.sink.settle();
        if !self.is_stopped {
            self.finish_lost();
        }
        for gap in &mut self.gaps {
            (gap.from, gap.to) = (gap.from.max(range.from), gap.to.min(range.to));
        }
        self.gaps.retain(|gap| gap.from < gap.to);
    }

    fn finish_lost(&mut self) {
        let cut = self.cut.take();
        let mut end = self.expected.unwrap_or_default();
        if let Some(cut) = cut {
            // What is broken and has nothing behind it is the log's end, before the file's.
            if let Some(lost) = self.lost.as_mut().filter(|lost| !lost.is_sure)
                && lost.is_tried
            {
                (lost.is_sure, lost.why) = (true, SHORT);
            } else {
                self.lose_rest(cut);
            }
            let behind = cut.at.0.saturating_add(1);
            let end_of_segment = behind.checked_next_multiple_of(self.segment_bytes);
            end = Lsn(end_of_segment.unwrap_or(u64::MAX));
        }
        if self.lost.as_ref().is_some_and(|lost| lost.is_sure) {
            self.close(end);
        } else if let Some(reached) = self.lost.as_ref().and_then(Lost::reached) {
            // What is broken there is where the log ends, not what was broken before.
            self.close(reached);
            self.lost = Some(self.lost_at(reached, None, NO_RECORD));
        } else if self.lost.is_none() && self.reader.is_within() {
            let from = self.reader.position().unwrap_or(end);
            self.lost = Some(self.lost_at(from, None, "a record that the input cuts off"));
        }
    }

    /// Whether it read everything up to where another part goes on.
    pub(crate) fn went_on(&self) -> bool {
        self.is_stopped && self.gaps.is_empty() && self.lost.is_none()
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
        self.lost = next.lost;
        self.is_stopped = next.is_stopped;
    }

    /// What came of it.
    pub(crate) fn outcome(self) -> Outcome {
        Outcome {
            tally: self.sink,
            gaps: self.gaps,
            end: self.lost.map(|lost| Broken {
                lsn: lost.from,
                why: lost.why,
            }),
        }
    }
}
