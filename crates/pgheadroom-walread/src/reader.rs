//! Pages become records: a state machine that is given one page after another.
//!
//! ```text
//! Seeking --first record of a page--> AtRecord --record crosses the page--> Within --> AtRecord
//!                                        |--switch of segments--> Switched --> AtRecord
//! ```
//!
//! Records that lie within a page are handed on where they are; only those that cross are put
//! together, and checked when they are whole. Of a record longer than [`KEPT_BYTES`] the beginning
//! is kept, which has its headers, and the checksum goes on from page to page: memory does not
//! depend on what a length claims.
//!
//! Source: src/backend/access/transam/xlogreader.c (REL_15_STABLE to REL_18_STABLE).

use pgheadroom_crc32c::{Place, count_holding, holds};
use pgheadroom_layout::Lsn;

use crate::error::Broken;
use crate::format::{PAGE_BYTES, PageHeader, RECORD_HEADER_BYTES, padded, u32_at};
use crate::page::{End, Found, check, find_records, is_switch};
use crate::record::{Block, Header, Record, crc_of};
use crate::rmgr::Rmgr;
use crate::sink::Sink;

/// How much of a record that crosses pages is kept. More than any record has whose main data are
/// looked at and lie behind images, and more than 33 images; arbitrary beyond that.
pub const KEPT_BYTES: usize = 512 * 1024;

/// What came of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The next page is wanted.
    Next,
    /// The sink has had enough.
    Stopped,
    /// Something is wrong: the end of the log, or damage.
    Broken(Broken),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first record: what a page goes on with is skipped.
    Seeking,
    /// The next page begins with a record.
    AtRecord,
    /// A record has begun that is not whole yet.
    Within {
        lsn: Lsn,
        total: u32,
        got: u32,
        /// Of what follows the header, where the record is too long to be kept.
        crc: u32,
    },
    /// The rest of the segment is empty.
    Switched { until: Lsn },
}

/// The state machine.
#[derive(Debug)]
pub struct Reader {
    magic: u16,
    segment_bytes: u64,
    state: State,
    kept: Vec<u8>,
    blocks: Vec<Block>,
    /// Of the page that is being read.
    found: Found,
    /// Where the last record begins; None before the first, and after a gap.
    prev: Option<Lsn>,
    /// Where the next record is expected.
    next: Option<Lsn>,
    /// Where the first record began.
    pub first: Option<(Lsn, Lsn)>,
    /// Where the first one since [`Reader::seek`] began, whole or not.
    begun: Option<Lsn>,
    /// The timeline that a record has said last: pages of earlier ones are none of this log.
    timeline: u32,
}

impl Reader {
    /// A reader of WAL with this page magic and segment size.
    #[must_use]
    pub fn new(magic: u16, segment_bytes: u64) -> Self {
        Self {
            magic,
            segment_bytes,
            state: State::Seeking,
            kept: Vec::new(),
            blocks: Vec::with_capacity(33),
            found: Found::new(),
            prev: None,
            next: None,
            first: None,
            begun: None,
            timeline: 0,
        }
    }

    /// Where the next record is expected, once one was seen; of one that is being read, its begin.
    #[must_use]
    pub const fn position(&self) -> Option<Lsn> {
        match self.state {
            State::Within { lsn, .. } => Some(lsn),
            _ => self.next,
        }
    }

    /// Where the last record begins.
    #[must_use]
    pub const fn last(&self) -> Option<Lsn> {
        self.prev
    }

    /// Where the first record begins that was met since [`Reader::seek`], whole or not.
    #[must_use]
    pub const fn begun(&self) -> Option<Lsn> {
        self.begun
    }

    /// Whether a record has begun that is not whole yet.
    #[must_use]
    pub const fn is_within(&self) -> bool {
        matches!(self.state, State::Within { .. })
    }

    /// How many bytes of the record that has begun are on the pages that follow.
    #[must_use]
    pub const fn left_bytes(&self) -> Option<u32> {
        match self.state {
            State::Within { total, got, .. } => Some(total - got),
            _ => None,
        }
    }

    /// Whether the rest of the segment is empty.
    #[must_use]
    pub const fn is_switched(&self) -> bool {
        matches!(self.state, State::Switched { .. })
    }

    /// The timeline that the log is on, as far as its records have said; else 0.
    #[must_use]
    pub const fn timeline(&self) -> u32 {
        self.timeline
    }

    /// Forgets what came before: after a gap the next page's first record is looked for.
    pub fn seek(&mut self) {
        self.state = State::Seeking;
        self.prev = None;
    }

    /// Takes a page; `from` is where a record begins that was found on it after damage.
    pub fn take(
        &mut self,
        lsn: Lsn,
        page: &[u8; PAGE_BYTES],
        from: Option<usize>,
        sink: &mut impl Sink,
    ) -> Step {
        if let State::Switched { until } = self.state {
            if lsn < until {
                return Step::Next;
            }
            self.state = State::AtRecord;
        }
        let header = PageHeader::read(page);
        if !header.fits(self.magic, lsn, self.segment_bytes) {
            let why = if header.address == lsn {
                "a page whose header is damaged"
            } else {
                "a page that is not the expected one"
            };
            return self.broken(lsn, why);
        }
        if header.timeline < self.timeline {
            return self.broken(lsn, "a page of a timeline that was left");
        }
        let begin = match from {
            Some(at) => Ok(Some(at)),
            None => self.begin_page(lsn, page, header, sink),
        };
        if self.prev.is_none()
            && let Ok(Some(at)) = begin
        {
            self.begun = Some(Lsn(lsn.0 + at as u64));
        }
        match begin {
            Ok(Some(at)) => self.records(lsn, page, at, sink),
            Ok(None) => Step::Next,
            Err(step) => step,
        }
    }

    /// Deals with what a page goes on with; where its first record begins, None if not on it.
    fn begin_page(
        &mut self,
        lsn: Lsn,
        page: &[u8],
        header: PageHeader,
        sink: &mut impl Sink,
    ) -> Result<Option<usize>, Step> {
        let at = header.bytes();
        let room = PAGE_BYTES - at;
        match self.state {
            State::Within { total, got, .. } => {
                if header.gives_up() {
                    self.state = State::AtRecord;
                    self.prev = None;
                    return Ok(Some(at));
                }
                if !header.continues() || header.left_bytes != total - got {
                    return Err(
                        self.broken_record("a record that its next page does not go on with")
                    );
                }
                let taken = room.min((total - got) as usize);
                self.go_on(lsn, page, at, taken, sink)
            }
            _ if header.continues() => {
                if self.state == State::AtRecord {
                    return Err(
                        self.broken(lsn, "a page that goes on with a record where none began")
                    );
                }
                let left = header.left_bytes as usize;
                let skipped = left.next_multiple_of(8);
                Ok((left < room && skipped < room).then_some(at + skipped))
            }
            _ => Ok(Some(at)),
        }
    }

    /// Adds a page's part to the record that crosses it.
    fn go_on(
        &mut self,
        lsn: Lsn,
        page: &[u8],
        at: usize,
        taken: usize,
        sink: &mut impl Sink,
    ) -> Result<Option<usize>, Step> {
        let State::Within {
            lsn: begin,
            total,
            got,
            crc,
        } = self.state
        else {
            return Ok(Some(at));
        };
        let part = &page[at..at + taken];
        let had = got as usize;
        if self.kept.len() < KEPT_BYTES {
            let room = KEPT_BYTES - self.kept.len();
            self.kept.extend_from_slice(&part[..taken.min(room)]);
        }
        let is_long = total as usize > KEPT_BYTES;
        let crc = if is_long {
            let before_payload = RECORD_HEADER_BYTES.saturating_sub(had).min(taken);
            crc32c::crc32c_append(crc, &part[before_payload..])
        } else {
            crc
        };
        let got = got + u32::try_from(taken).unwrap_or(u32::MAX);
        self.state = State::Within {
            lsn: begin,
            total,
            got,
            crc,
        };
        if had < RECORD_HEADER_BYTES
            && got as usize >= RECORD_HEADER_BYTES
            && let Err(why) = check(self.prev, &Header::read(&self.kept), begin)
        {
            return Err(self.broken_record(why));
        }
        if got < total {
            return Ok(None);
        }
        let header = Header::read(&self.kept);
        let is_whole = if is_long {
            header.crc == crc_of(&self.kept, crc)
        } else {
            holds(&self.kept)
        };
        if !is_whole {
            return Err(self.broken_record("a record whose checksum does not hold"));
        }
        let end = Lsn(lsn.0 + (at + taken) as u64);
        let kept = std::mem::take(&mut self.kept);
        let step = self.hand_on_crossing(begin, header, &kept, end, sink);
        self.kept = kept;
        match step {
            None => {
                let next = (at + taken).next_multiple_of(8);
                let goes_on = self.state == State::AtRecord && next < PAGE_BYTES;
                Ok(goes_on.then_some(next))
            }
            Some(step) => Err(step),
        }
    }

    /// The records that begin on a page, from a place on it.
    ///
    /// First their headers, one naming where the next one begins; then all checksums, which do not
    /// wait for each other; then what is in them.
    fn records(
        &mut self,
        lsn: Lsn,
        page: &[u8; PAGE_BYTES],
        from: usize,
        sink: &mut impl Sink,
    ) -> Step {
        let mut found = std::mem::take(&mut self.found);
        let end = find_records(self.prev, lsn, page, from, &mut found);
        let step = self.hand_on_page(lsn, page, &found.places[..found.count], sink);
        self.found = found;
        if let Some(step) = step {
            return step;
        }
        match end {
            End::Page => Step::Next,
            End::Crossing { at, total } => {
                self.next = Some(Lsn(lsn.0 + at as u64));
                self.begin_crossing(Lsn(lsn.0 + at as u64), total, &page[at..]);
                Step::Next
            }
            End::Broken { at, why } => {
                self.state = State::AtRecord;
                self.next = Some(Lsn(lsn.0 + at as u64));
                self.broken(Lsn(lsn.0 + at as u64), why)
            }
        }
    }

    /// Hands on the records that lie within a page; None if all went well.
    fn hand_on_page(
        &mut self,
        lsn: Lsn,
        page: &[u8; PAGE_BYTES],
        found: &[Place],
        sink: &mut impl Sink,
    ) -> Option<Step> {
        let holding = count_holding(page, found);
        let page_end = Lsn(lsn.0.saturating_add(PAGE_BYTES as u64));
        let takes_simple = self.first.is_some() && sink.takes_simple(lsn, page_end);
        let mut simple = None;
        for place in &found[..holding] {
            let at = usize::from(place.at);
            let Some(record) = page.get(at..at + usize::from(place.bytes)) else {
                break;
            };
            if takes_simple && sink.simple(record) {
                simple = Some((Lsn(lsn.0 + at as u64), record));
                continue;
            }
            if let Some((begin, record)) = simple.take() {
                self.note_simple(begin, record, sink);
            }
            let begin = Lsn(lsn.0 + at as u64);
            let end = Lsn(begin.0 + u64::from(place.bytes));
            let step = self.hand_on(begin, Header::read(record), record, end, sink);
            if step.is_some() {
                return step;
            }
        }
        if let Some((begin, record)) = simple {
            self.note_simple(begin, record, sink);
        }
        let broken = found.get(holding)?;
        let begin = Lsn(lsn.0 + u64::from(broken.at));
        self.state = State::AtRecord;
        self.next = Some(begin);
        Some(self.broken(begin, "a record whose checksum does not hold"))
    }

    fn begin_crossing(&mut self, lsn: Lsn, total: u32, part: &[u8]) {
        self.kept.clear();
        self.kept.extend_from_slice(part);
        let payload = part.get(RECORD_HEADER_BYTES..).unwrap_or_default();
        let is_long = total as usize > KEPT_BYTES;
        self.state = State::Within {
            lsn,
            total,
            got: u32::try_from(part.len()).unwrap_or(u32::MAX),
            crc: if is_long { crc32c::crc32c(payload) } else { 0 },
        };
    }

    /// Hands on a record that was put together, as one that lies within a page; None to go on.
    fn hand_on_crossing(
        &mut self,
        lsn: Lsn,
        header: Header,
        bytes: &[u8],
        end: Lsn,
        sink: &mut impl Sink,
    ) -> Option<Step> {
        if self.first.is_some() && sink.takes_simple(lsn, end) && sink.simple(bytes) {
            sink.simple_to(end);
            self.note(lsn, &header, end);
            return None;
        }
        self.hand_on(lsn, header, bytes, end, sink)
    }

    /// Takes a whole record apart and hands it on; None to go on.
    #[inline]
    fn hand_on(
        &mut self,
        lsn: Lsn,
        header: Header,
        bytes: &[u8],
        end: Lsn,
        sink: &mut impl Sink,
    ) -> Option<Step> {
        let mut blocks = std::mem::take(&mut self.blocks);
        let outcome = match Record::decode(lsn, header, bytes, &mut blocks) {
            Err(why) => Err(why),
            Ok(record) if !sink.record(&record, end) => Ok(None),
            Ok(record) => {
                let timeline = timeline_of(&record).unwrap_or_default();
                self.timeline = self.timeline.max(timeline);
                Ok(Some(record.header))
            }
        };
        self.blocks = blocks;
        match outcome {
            Err(why) => {
                self.state = State::AtRecord;
                self.next = Some(lsn);
                Some(self.broken(lsn, why))
            }
            Ok(None) => {
                self.next = Some(lsn);
                Some(Step::Stopped)
            }
            Ok(Some(header)) => {
                self.note(lsn, &header, end);
                None
            }
        }
    }

    /// Goes on behind a record.
    #[inline]
    fn note(&mut self, lsn: Lsn, header: &Header, end: Lsn) {
        self.first.get_or_insert((lsn, header.prev));
        self.prev = Some(lsn);
        self.next = Some(Lsn(padded(end.0)));
        self.state = State::AtRecord;
        if is_switch(header) {
            let until = end.0.next_multiple_of(self.segment_bytes);
            self.state = State::Switched { until: Lsn(until) };
            self.next = Some(Lsn(until));
        }
    }

    /// Goes on behind records that the sink took as they are; given is the last of them.
    fn note_simple(&mut self, lsn: Lsn, record: &[u8], sink: &mut impl Sink) {
        let end = Lsn(lsn.0 + record.len() as u64);
        sink.simple_to(end);
        self.note(lsn, &Header::read(record), end);
    }

    fn broken(&self, lsn: Lsn, why: &'static str) -> Step {
        match self.state {
            State::Within { lsn, .. } => Step::Broken(Broken { lsn, why }),
            _ => Step::Broken(Broken { lsn, why }),
        }
    }

    fn broken_record(&self, why: &'static str) -> Step {
        self.broken(self.position().unwrap_or_default(), why)
    }
}

/// The timeline that a record says it is on: a checkpoint's, or that of a recovery's end.
///
/// Source: `CheckPoint.ThisTimeLineID`, `xl_end_of_recovery.ThisTimeLineID`,
/// src/include/catalog/pg_control.h and src/include/access/xlog_internal.h (`REL_15_STABLE` to
/// `REL_18_STABLE`): behind eight bytes in each.
fn timeline_of(record: &Record<'_>) -> Option<u32> {
    const CHECKPOINT_SHUTDOWN: u8 = 0x00;
    const CHECKPOINT_ONLINE: u8 = 0x10;
    const END_OF_RECOVERY: u8 = 0x90;
    let is_said = Rmgr::of(record.header.rmgr) == Rmgr::Xlog
        && matches!(
            record.info(),
            CHECKPOINT_SHUTDOWN | CHECKPOINT_ONLINE | END_OF_RECOVERY
        );
    let timeline = record.main().get(8..12).filter(|_| is_said)?;
    Some(u32_at(timeline, 0))
}
