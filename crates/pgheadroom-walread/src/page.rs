//! The records that begin on a page: where they are, by their headers alone.
//!
//! Each header says where the next record begins; checksums and contents are looked at afterwards,
//! of all records together (`reader`).

use pgheadroom_crc32c::Place;
use pgheadroom_layout::Lsn;

use crate::format::{PAGE_BYTES, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, u32_at};
use crate::record::Header;

/// How many records a page has at most.
const RECORDS_MOST: usize = PAGE_BYTES / RECORD_HEADER_BYTES;
const HEADER_LEAST: u32 = 24;
const CACHE_LINE_BYTES: usize = 64;
const _: () = assert!(HEADER_LEAST as usize == RECORD_HEADER_BYTES);

/// Source: `RM_XLOG_ID` and `XLOG_SWITCH`.
const RM_XLOG: u8 = 0;
const XLOG_SWITCH: u8 = 0x40;

/// The records that lie within a page; by default without room.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub places: Vec<Place>,
    pub count: usize,
}

impl Found {
    /// Room for a page.
    pub fn new() -> Self {
        Self {
            places: vec![Place::default(); RECORDS_MOST],
            count: 0,
        }
    }
}

/// What comes behind the records that lie within a page.
pub(crate) enum End {
    Page,
    Crossing { at: usize, total: u32 },
    Broken { at: usize, why: &'static str },
}

/// Finds the records that lie within a page, and what comes after the last one.
///
/// # Arguments
/// * `prev` - where the record before the page's first one begins; None: not known.
/// * `lsn` - the page's position.
/// * `from` - where its first record begins.
pub(crate) fn find_records(
    prev: Option<Lsn>,
    lsn: Lsn,
    page: &[u8; PAGE_BYTES],
    from: usize,
    found: &mut Found,
) -> End {
    found.count = 0;
    // All of the page is asked for at once: from record to record each place waits for the one
    // before. 4 % of the whole.
    let asked = page.chunks_exact(CACHE_LINE_BYTES).map(|line| line[0]);
    std::hint::black_box(asked.fold(0, |sum, byte| sum ^ byte));
    let mut at = from;
    let mut prev = prev;
    while at < PAGE_BYTES {
        let rest = &page[at..];
        let begin = Lsn(lsn.0 + at as u64);
        let Some(head) = rest.first_chunk() else {
            let total = u32_at(page, at);
            return match impossible(total) {
                None => End::Crossing { at, total },
                Some(why) => End::Broken { at, why },
            };
        };
        let header = Header::of(head);
        let total = header.total_bytes;
        if prev != Some(header.prev) || total as usize > rest.len() || total < HEADER_LEAST {
            if let Some(why) = impossible(total) {
                return End::Broken { at, why };
            }
            if let Err(why) = check(prev, &header, begin) {
                return End::Broken { at, why };
            }
            if total as usize > rest.len() {
                return End::Crossing { at, total };
            }
        }
        #[allow(clippy::cast_possible_truncation)] // both within a page
        let place = Place {
            at: at as u16,
            bytes: total as u16,
        };
        found.places[found.count] = place;
        found.count += 1;
        if is_switch(&header) {
            break;
        }
        prev = Some(begin);
        // As next_multiple_of, which takes three steps more, each waiting for the one before.
        at += (total as usize + 7) & !7;
    }
    End::Page
}

/// Whether a header may stand at a position, behind the record at another.
///
/// Source: `ValidXLogRecordHeader`, xlogreader.c. Differs: resource managers of extensions are not
/// looked up.
#[inline]
pub(crate) fn check(prev: Option<Lsn>, header: &Header, lsn: Lsn) -> Result<(), &'static str> {
    match prev {
        Some(prev) if header.prev != prev => Err("a record that does not follow the one before it"),
        None if header.prev >= lsn => Err("a record that names a later one as before it"),
        _ => Ok(()),
    }
}

fn impossible(total: u32) -> Option<&'static str> {
    match total {
        0 => Some("no record"),
        HEADER_LEAST..=RECORD_BYTES_MAX => None,
        _ => Some("a record of impossible length"),
    }
}

#[inline]
pub(crate) const fn is_switch(header: &Header) -> bool {
    header.rmgr == RM_XLOG && header.info & 0xF0 == XLOG_SWITCH
}
