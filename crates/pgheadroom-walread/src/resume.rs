//! Whether the log goes on behind a broken record: then it is damage, not the end.
//!
//! Source: `XLogFindNextRecord` and `ValidXLogRecordHeader`,
//! src/backend/access/transam/xlogreader.c (`REL_18_STABLE`), which take a page's first record for
//! what it says; here what lies there from before a segment was used again has to be told apart.

use pgheadroom_layout::Lsn;

use crate::format::{
    PAGE_BYTES, PageHeader, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, u32_at, u64_at,
};
use crate::record::{Header, Record, crc_of};

/// Bytes of a record's header up to `xl_prev`, and with it.
const BEFORE_PREV_BYTES: usize = 8;
const WITH_PREV_BYTES: usize = 16;

/// What is looked for behind a record that cannot be read.
#[derive(Debug, Clone, Copy)]
pub struct Behind {
    /// No record of this log that lies behind names one before this position.
    pub floor: Lsn,
    /// The page's magic.
    pub magic: u16,
    /// `wal_segment_size`.
    pub segment_bytes: u64,
    /// Pages of earlier timelines are none of this log.
    pub timeline: u32,
}

impl Behind {
    /// Where on a page, from a place on, a record of this log begins; None if nowhere.
    ///
    /// A record that is whole on the page goes before one that crosses it: of that only the pages
    /// that follow show whether it is one.
    #[must_use]
    pub fn begin(&self, lsn: Lsn, page: &[u8; PAGE_BYTES], from: usize) -> Option<usize> {
        let header = PageHeader::read(page);
        let fits = header.fits(self.magic, lsn, self.segment_bytes);
        if !fits || header.timeline < self.timeline {
            return None;
        }
        let from = from.max(header.bytes()).next_multiple_of(8);
        let whole = (from..PAGE_BYTES - (RECORD_HEADER_BYTES - 1))
            .step_by(8)
            .find(|at| self.is_whole(lsn, page, *at));
        whole.or_else(|| {
            let left = if header.continues() {
                header.left_bytes as usize
            } else {
                0
            };
            let free = header.bytes().saturating_add(left);
            let from = from.max(free).checked_next_multiple_of(8)?;
            (from..PAGE_BYTES)
                .step_by(8)
                .find(|at| self.crosses(lsn, page, *at))
        })
    }

    /// A record that is whole on the page, whose checksum holds, and that names the broken record,
    /// or a later one, as before it: what lies in a segment from before it was used again names
    /// earlier ones.
    fn is_whole(&self, lsn: Lsn, page: &[u8; PAGE_BYTES], at: usize) -> bool {
        let begin = Lsn(lsn.0 + at as u64);
        let head = Header::read(&page[at..]);
        let bytes = head.total_bytes as usize;
        let fits = bytes >= RECORD_HEADER_BYTES && bytes <= PAGE_BYTES - at;
        if !fits || !self.follows(head.prev, begin) {
            return false;
        }
        let record = &page[at..at + bytes];
        let mut blocks = Vec::new();
        head.crc == crc_of(record, crc32c::crc32c(&record[RECORD_HEADER_BYTES..]))
            && Record::decode(begin, head, record, &mut blocks).is_ok()
    }

    /// By what of its header lies on the page: the length alone in a page's last eight bytes.
    fn crosses(&self, lsn: Lsn, page: &[u8; PAGE_BYTES], at: usize) -> bool {
        let room = PAGE_BYTES - at;
        let total = u32_at(page, at);
        let is_possible =
            (RECORD_HEADER_BYTES as u64..=u64::from(RECORD_BYTES_MAX)).contains(&u64::from(total));
        is_possible
            && total as usize > room
            && (room < WITH_PREV_BYTES
                || self.follows(
                    Lsn(u64_at(page, at + BEFORE_PREV_BYTES)),
                    Lsn(lsn.0 + at as u64),
                ))
    }

    /// Records begin at multiples of 8, and the first segment of all is the second by number.
    fn follows(&self, prev: Lsn, begin: Lsn) -> bool {
        let first = self.floor.max(Lsn(self.segment_bytes));
        (first..begin).contains(&prev) && prev.0.is_multiple_of(8)
    }
}
