//! Log sequence numbers: positions in the WAL, and how far a record moves them.
//!
//! The sum of record lengths is what `pg_stat_wal` and EXPLAIN count. Positions advance by more:
//! each record is padded to 8 bytes and pages of 8192 bytes begin with a header.
//!
//! ```text
//! segment (16 MB) = page | page | ... ; first page: 40 bytes of header, others: 24
//! ```

use std::fmt;
use std::str::FromStr;

use crate::align::MAXIMUM_ALIGNOF;
use crate::error::LayoutError;

/// Bytes of a WAL page. Source: `XLOG_BLCKSZ`, configure.
pub const XLOG_BLCKSZ: u64 = 8192;
/// Header of a WAL page. Source: `SizeOfXLogShortPHD`, src/include/access/xlog_internal.h.
pub const SIZE_OF_SHORT_PAGE_HEADER: u64 = 24;
/// Header of a segment's first page. Source: `SizeOfXLogLongPHD`, xlog_internal.h.
pub const SIZE_OF_LONG_PAGE_HEADER: u64 = 40;
/// Default `wal_segment_size`. Source: `DEFAULT_XLOG_SEG_SIZE`, pg_config_manual.h.
pub const DEFAULT_SEGMENT_BYTES: u64 = 16 << 20;

const _: () = assert!(SIZE_OF_LONG_PAGE_HEADER < XLOG_BLCKSZ);

/// A position in the WAL, in bytes from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl FromStr for Lsn {
    type Err = LayoutError;

    /// Reads PostgreSQL's notation, `16/B374D848`.
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let half = |digits: &str| {
            (digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
                .then(|| u64::from_str_radix(digits, 16).ok())
                .flatten()
        };
        text.split_once('/')
            .and_then(|(high, low)| Some(Self(half(high)? << 32 | half(low)?)))
            .ok_or_else(|| LayoutError::BadLsn {
                text: text.to_owned(),
            })
    }
}

/// Size of WAL segments, which decides where the long page headers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segments {
    segment_bytes: u64,
}

impl Default for Segments {
    fn default() -> Self {
        Self {
            segment_bytes: DEFAULT_SEGMENT_BYTES,
        }
    }
}

impl Segments {
    /// Segments of this size.
    ///
    /// # Errors
    /// [`LayoutError::OutOfRange`] for what is not a power of two from 1 MB to 1 GB.
    ///
    /// Source: `IsValidWalSegSize`, src/include/access/xlog_internal.h.
    pub fn new(segment_bytes: u64) -> Result<Self, LayoutError> {
        let (min, max) = (1 << 20, 1 << 30);
        if segment_bytes.is_power_of_two() && (min..=max).contains(&segment_bytes) {
            return Ok(Self { segment_bytes });
        }
        Err(LayoutError::OutOfRange {
            what: "wal_segment_size (a power of two)",
            value: i64::try_from(segment_bytes).unwrap_or(i64::MAX),
            min: 1 << 20,
            max: 1 << 30,
        })
    }

    /// Where the next record begins after one of `record_bytes` (`xl_tot_len`) at `start`.
    ///
    /// `start` is a position inside a page's contents or at the end of a page, as
    /// `pg_current_wal_insert_lsn` reports it.
    ///
    /// Source: `ReserveXLogInsertLocation` and `XLogBytePosToEndRecPtr`,
    /// src/backend/access/transam/xlog.c (REL_18_STABLE). Differs: no.
    #[must_use]
    pub fn after_record(self, start: Lsn, record_bytes: u32) -> Lsn {
        let padded = u64::from(record_bytes).next_multiple_of(u64::from(MAXIMUM_ALIGNOF));
        self.end_position(self.content_bytes_before(start) + padded)
    }

    /// Bytes of records in a whole segment.
    const fn content_per_segment(self) -> u64 {
        let pages = self.segment_bytes / XLOG_BLCKSZ;
        pages * (XLOG_BLCKSZ - SIZE_OF_SHORT_PAGE_HEADER)
            - (SIZE_OF_LONG_PAGE_HEADER - SIZE_OF_SHORT_PAGE_HEADER)
    }

    /// Bytes of records before a position, page headers left out.
    ///
    /// Source: `XLogRecPtrToBytePos`, src/backend/access/transam/xlog.c.
    #[must_use]
    pub const fn content_bytes_before(self, lsn: Lsn) -> u64 {
        let in_segment = lsn.0 % self.segment_bytes;
        let (page, in_page) = (in_segment / XLOG_BLCKSZ, in_segment % XLOG_BLCKSZ);
        let whole_segments = lsn.0 / self.segment_bytes * self.content_per_segment();
        let first_page = XLOG_BLCKSZ - SIZE_OF_LONG_PAGE_HEADER;
        let other_page = XLOG_BLCKSZ - SIZE_OF_SHORT_PAGE_HEADER;
        whole_segments
            + if page == 0 {
                in_page.saturating_sub(SIZE_OF_LONG_PAGE_HEADER)
            } else {
                first_page
                    + (page - 1) * other_page
                    + in_page.saturating_sub(SIZE_OF_SHORT_PAGE_HEADER)
            }
    }

    /// The position behind so many bytes of records; at a page's end, not after the next header.
    ///
    /// Source: `XLogBytePosToEndRecPtr`, src/backend/access/transam/xlog.c.
    const fn end_position(self, content_bytes: u64) -> Lsn {
        let per_segment = self.content_per_segment();
        let (segment, left) = (content_bytes / per_segment, content_bytes % per_segment);
        let first_page = XLOG_BLCKSZ - SIZE_OF_LONG_PAGE_HEADER;
        let other_page = XLOG_BLCKSZ - SIZE_OF_SHORT_PAGE_HEADER;
        let in_segment = if left == 0 {
            0
        } else if left <= first_page {
            left + SIZE_OF_LONG_PAGE_HEADER
        } else {
            let (pages, rest) = (
                (left - first_page) / other_page,
                (left - first_page) % other_page,
            );
            if rest == 0 {
                XLOG_BLCKSZ * (pages + 1)
            } else {
                XLOG_BLCKSZ * (pages + 1) + rest + SIZE_OF_SHORT_PAGE_HEADER
            }
        };
        Lsn(segment * self.segment_bytes + in_segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Records are padded to 8 bytes; a page's header is skipped where a record meets it.
    #[test]
    fn records_advance_positions() {
        let segments = Segments::default();
        let start = Lsn(DEFAULT_SEGMENT_BYTES + 40);
        assert_eq!(segments.after_record(start, 71), Lsn(start.0 + 72));
        // Exactly to the end of the first page, then 8 bytes more.
        let to_end = segments.after_record(start, 8152);
        assert_eq!(to_end, Lsn(DEFAULT_SEGMENT_BYTES + 8192));
        assert_eq!(
            segments.after_record(to_end, 8),
            Lsn(DEFAULT_SEGMENT_BYTES + 8192 + 24 + 8)
        );
        // A record longer than a page meets two headers.
        assert_eq!(
            segments.after_record(start, 8152 + 8168 + 8),
            Lsn(DEFAULT_SEGMENT_BYTES + 2 * 8192 + 24 + 8)
        );
    }

    /// Text that is no position is refused.
    #[test]
    fn notation() {
        assert_eq!("16/B374D848".parse(), Ok(Lsn(0x16_B374_D848)));
        for text in ["", "/", "16", "16/123456789", "g/0", "+1/0", "1/0/0"] {
            assert!(text.parse::<Lsn>().is_err(), "{text}");
        }
        assert!(Segments::new(3 << 20).is_err());
    }

    proptest! {
        /// Text and number agree.
        #[test]
        fn lsn_round_trips(lsn: u64) {
            prop_assert_eq!(Lsn(lsn).to_string().parse(), Ok(Lsn(lsn)));
        }

        /// The two conversions are inverse, so positions neither jump nor repeat.
        #[test]
        fn positions_round_trip(content in 0_u64..1 << 40, megabytes in 0_u32..=10) {
            let segments = Segments::new(1 << (20 + megabytes)).unwrap();
            let end = segments.end_position(content);
            prop_assert_eq!(segments.content_bytes_before(end), content);
        }
    }
}
