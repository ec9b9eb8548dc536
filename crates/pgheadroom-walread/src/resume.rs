//! Whether the log goes on behind a broken record: then it is damage, not the end.
//!
//! Source: `XLogFindNextRecord` and `ValidXLogRecordHeader`,
//! src/backend/access/transam/xlogreader.c (`REL_18_STABLE`), which take a page's first record for
//! what it says; here what lies there from before a segment was used again has to be told apart.

use pgheadroom_layout::Lsn;

use crate::format::{PAGE_BYTES, PageHeader, RECORD_BYTES_MAX, RECORD_HEADER_BYTES};
use crate::record::{Header, Record, crc_of};

/// Where on a page a record of this log begins although an earlier one is broken; None if nowhere.
///
/// A record counts if it is whole on the page, its checksum holds and it names the broken record,
/// or a later one, as before it: what lies in a segment from before it was used again names
/// earlier ones.
#[must_use]
pub fn record_after(
    broken: Lsn,
    lsn: Lsn,
    page: &[u8],
    magic: u16,
    segment_bytes: u64,
) -> Option<usize> {
    let header = PageHeader::read(page);
    if !header.fits(magic, lsn, segment_bytes) {
        return None;
    }
    let from = if broken.0 >= lsn.0 {
        usize::try_from(broken.0 - lsn.0).ok()? + 8
    } else {
        header.bytes()
    };
    let mut blocks = Vec::new();
    (from.next_multiple_of(8)..PAGE_BYTES.saturating_sub(RECORD_HEADER_BYTES - 1))
        .step_by(8)
        .find(|at| {
            let begin = Lsn(lsn.0 + *at as u64);
            let head = Header::read(&page[*at..]);
            let bytes = head.total_bytes as usize;
            let fits = bytes >= RECORD_HEADER_BYTES && bytes <= PAGE_BYTES - at;
            if !fits || head.prev < broken || head.prev >= begin {
                return false;
            }
            let record = &page[*at..at + bytes];
            head.crc == crc_of(record, crc32c::crc32c(&record[RECORD_HEADER_BYTES..]))
                && Record::decode(begin, head, record, &mut blocks).is_ok()
        })
}

/// Where on a page a record may begin that crosses it although an earlier one is broken; only the
/// pages that follow show whether it is one. As [`record_after`], but by its header alone.
#[must_use]
pub fn crossing_after(
    broken: Lsn,
    lsn: Lsn,
    page: &[u8],
    magic: u16,
    segment_bytes: u64,
) -> Option<usize> {
    let header = PageHeader::read(page);
    if !header.fits(magic, lsn, segment_bytes) {
        return None;
    }
    let left = if header.continues() {
        header.left_bytes as usize
    } else {
        0
    };
    if left >= PAGE_BYTES {
        return None;
    }
    let at = header.bytes() + left.next_multiple_of(8);
    if at + RECORD_HEADER_BYTES > PAGE_BYTES {
        return None;
    }
    let begin = Lsn(lsn.0 + at as u64);
    let head = Header::read(&page[at..]);
    let crosses = head.total_bytes as usize > PAGE_BYTES - at;
    let follows = begin > broken && head.prev >= broken && head.prev < begin;
    (crosses && head.total_bytes <= RECORD_BYTES_MAX && follows).then_some(at)
}
