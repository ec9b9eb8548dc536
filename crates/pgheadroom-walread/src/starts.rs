//! Where the log ends, if it does where there seems to be a gap: in a second reading.
//!
//! A server that writes on while its log is read leaves a gap between a page that was read before
//! it was full and the next one; what follows there when it is read again was written meanwhile.
//!
//! A crash of the operating system may lose a page of the log and keep later ones. Recovery ends at
//! the first record that is not whole, and the server goes on there, on the same timeline: until it
//! gets that far, whole records from before the crash lie behind the end of its log, at their right
//! addresses. Nothing in their headers tells them apart. But a start writes a checkpoint first, and
//! after it no transaction has a number below its next one, and none ends before its time:
//!
//! ```text
//! records | lost | records of before        -- as the crash left it
//! records | start, records | of before      -- later; what is behind contradicts the start
//! ```
//!
//! So it is where a log's end left that place, alone: where a file is missing or cut off, or a
//! damaged record stands, a time from before the start tells of a clock that was set back.
//!
//! Source: `StartupXLOG` (`PerformRecoveryXLogAction`) and `CreateCheckPoint`,
//! src/backend/access/transam/xlog.c (`REL_15_STABLE` to `REL_18_STABLE`).

use pgheadroom_layout::Lsn;

use crate::detail::redo_point;
use crate::format::{LONG_HEADER_BYTES, Major, padded, u32_at, u64_at};
use crate::record::Record;
use crate::rmgr::Rmgr;
use crate::sink::Sink;
use crate::sums::{Moment, ended_at};

/// Source: `XLOG_CHECKPOINT_SHUTDOWN`, `XLOG_SWITCH`, src/include/catalog/pg_control.h.
const CHECKPOINT_SHUTDOWN: u8 = 0x00;
const SWITCH: u8 = 0x40;
const SECOND_US: Moment = 1_000_000;
/// 2000-01-01 UTC; and 2200, beyond which no checkpoint's time is believed.
const EPOCH_S: u64 = 946_684_800;
const LAST_S: u64 = 7_258_118_400;

/// What the checkpoint says with which a server started, or was shut down.
#[derive(Debug, Clone, Copy)]
struct Start {
    lsn: Lsn,
    /// `nextXid`; None where a record in the log contradicts it.
    next_xid: Option<u32>,
    /// When it began, in whole seconds; None where the clock was set back since.
    time: Option<Moment>,
}

/// Looks for what was written before the last start, behind a place that cannot be read.
#[derive(Debug)]
pub(crate) struct Starts {
    major: Major,
    segment_bytes: u64,
    to: Lsn,
    start: Option<Start>,
    /// Where the last record ends.
    pub last_end: Option<Lsn>,
    is_gap: bool,
    /// The first place that cannot be read, and is as a log's end leaves it, since a record that
    /// the server wrote after its start.
    broken: Option<Lsn>,
    /// Where the log ends, as what is behind says.
    pub end: Option<Lsn>,
    /// Where gaps began when the log was read before, and how many of them lie behind.
    gaps: Vec<Lsn>,
    passed: usize,
    /// The first of them that is none any more: it was the log's end then.
    pub grown: Option<Lsn>,
}

/// What a record says of itself beside a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Before,
    After,
    Nothing,
}

impl Starts {
    /// Nothing seen yet.
    ///
    /// # Arguments
    /// * `to` - records that end behind it are not looked at.
    /// * `gaps` - where gaps began when the log was read before, in order.
    pub fn new(major: Major, segment_bytes: u64, to: Lsn, gaps: Vec<Lsn>) -> Self {
        Self {
            major,
            segment_bytes,
            to,
            start: None,
            last_end: None,
            is_gap: false,
            broken: None,
            end: None,
            gaps,
            passed: 0,
            grown: None,
        }
    }

    /// When a checkpoint began.
    fn checkpoint_time(&self, record: &Record<'_>) -> Option<Moment> {
        redo_point(record)?;
        let at = if self.major >= Major::V19 { 72 } else { 64 };
        let seconds = u64_at(record.main().get(..at + 8)?, at);
        let since = (EPOCH_S..LAST_S)
            .contains(&seconds)
            .then(|| seconds - EPOCH_S)?;
        Some(Moment::try_from(since).ok()? * SECOND_US)
    }

    fn start_of(&self, record: &Record<'_>) -> Option<Start> {
        let time = self.checkpoint_time(record)?;
        let at = if self.major >= Major::V19 { 32 } else { 24 };
        (record.info() == CHECKPOINT_SHUTDOWN).then(|| Start {
            lsn: record.lsn,
            next_xid: Some(u32_at(record.main(), at)),
            time: Some(time),
        })
    }

    fn says(&self, start: Start, record: &Record<'_>) -> Says {
        let is_earlier = redo_point(record).is_some_and(|redo| redo < start.lsn);
        let has_earlier_xid = start
            .next_xid
            .is_some_and(|next| record.header.xid != 0 && is_before(record.header.xid, next));
        if is_earlier || has_earlier_xid {
            return Says::Before;
        }
        let at = ended_at(record).or_else(|| self.checkpoint_time(record));
        match (at, start.time) {
            (Some(at), Some(time)) if at < time => Says::Before,
            // The start's second has a part before the crash.
            (Some(at), Some(time)) if at - time >= SECOND_US => Says::After,
            _ => Says::Nothing,
        }
    }

    /// Whether the record follows on the one before where a gap began: behind a page's header, if
    /// there is one.
    fn note_grown(&mut self, record: &Record<'_>) {
        let behind = |from: &Lsn| from.0.saturating_add(LONG_HEADER_BYTES as u64) < record.lsn.0;
        while self.gaps.get(self.passed).is_some_and(behind) {
            self.passed += 1;
        }
        let follows = !self.is_gap && self.last_end.is_some();
        if let Some(from) = self.gaps.get(self.passed).filter(|_| follows)
            && *from <= record.lsn
        {
            self.grown = self.grown.or(Some(*from));
        }
        self.is_gap = false;
    }

    /// Of records that follow one another none is from before: where one seems to be, the clock was
    /// set back, or numbers tell nothing.
    fn distrust(&mut self, record: &Record<'_>) {
        let at = ended_at(record).or_else(|| self.checkpoint_time(record));
        let Some(start) = &mut self.start else {
            return;
        };
        start.time = start.time.filter(|time| at.is_none_or(|at| at >= *time));
        start.next_xid = start
            .next_xid
            .filter(|next| record.header.xid == 0 || !is_before(record.header.xid, *next));
    }
}

/// Source: `TransactionIdPrecedes`, src/backend/access/transam/transam.c.
const fn is_before(xid: u32, other: u32) -> bool {
    xid.wrapping_sub(other).cast_signed() < 0
}

impl Sink for Starts {
    fn record(&mut self, record: &Record<'_>, end: Lsn) -> bool {
        if end > self.to {
            return false;
        }
        self.note_grown(record);
        let says = self
            .start
            .map_or(Says::Nothing, |start| self.says(start, record));
        match (says, self.broken) {
            (Says::Before, Some(broken)) => {
                self.end = Some(broken);
                return false;
            }
            (Says::Before, None) => self.distrust(record),
            (Says::After, _) => self.broken = None,
            (Says::Nothing, _) => {}
        }
        if let Some(start) = self.start_of(record) {
            (self.start, self.broken) = (Some(start), None);
        }
        let is_switch = Rmgr::of(record.header.rmgr) == Rmgr::Xlog && record.info() == SWITCH;
        self.last_end = Some(Lsn(if is_switch {
            end.0.next_multiple_of(self.segment_bytes)
        } else {
            padded(end.0)
        }));
        // Behind the last gap, once a record is known to be the server's.
        let is_open = self.start.is_some() && self.broken.is_some();
        is_open || self.passed < self.gaps.len()
    }

    fn gap(&mut self, is_like_end: bool) {
        if is_like_end {
            self.broken = self.broken.or(self.last_end);
        }
        self.is_gap = true;
    }
}
