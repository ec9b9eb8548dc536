//! Headers of WAL pages, and the constants of the format.
//!
//! ```text
//! page    xlp_magic 2 | xlp_info 2 | xlp_tli 4 | xlp_pageaddr 8 | xlp_rem_len 4 | padding 4
//! first   ... | xlp_sysid 8 | xlp_seg_size 4 | xlp_xlog_blcksz 4
//! ```
//!
//! Source: src/include/access/xlog_internal.h (REL_15_STABLE to REL_18_STABLE, 19 candidate).

use pgheadroom_layout::Lsn;
use pgheadroom_layout::lsn::{SIZE_OF_LONG_PAGE_HEADER, SIZE_OF_SHORT_PAGE_HEADER};

/// Bytes of a WAL page. Source: `XLOG_BLCKSZ`.
pub const PAGE_BYTES: usize = 8192;
/// Header of a page. Source: `SizeOfXLogShortPHD`.
pub const SHORT_HEADER_BYTES: usize = 24;
/// Header of a segment's first page. Source: `SizeOfXLogLongPHD`.
pub const LONG_HEADER_BYTES: usize = 40;
/// Header of a record. Source: `SizeOfXLogRecord`, src/include/access/xlogrecord.h.
pub const RECORD_HEADER_BYTES: usize = 24;
/// Longest record. Source: `XLogRecordMaxSize`, xlogrecord.h (REL_16_STABLE).
pub const RECORD_BYTES_MAX: u32 = 1020 * 1024 * 1024;

const _: () = assert!(SHORT_HEADER_BYTES as u64 == SIZE_OF_SHORT_PAGE_HEADER);
const _: () = assert!(LONG_HEADER_BYTES as u64 == SIZE_OF_LONG_PAGE_HEADER);

/// The page begins with the rest of a record. Source: `XLP_FIRST_IS_CONTRECORD`.
const FIRST_IS_CONTRECORD: u16 = 0x0001;
/// The page has the long header. Source: `XLP_LONG_HEADER`.
const LONG_HEADER: u16 = 0x0002;
/// A record that a crash cut off was given up here; and all flags.
///
/// Source: `XLP_FIRST_IS_OVERWRITE_CONTRECORD` and `XLP_ALL_FLAGS`: up to 18 0x0004 is
/// `XLP_BKP_REMOVABLE`, which 19's release candidate has no more.
const fn gives_up_and_all(magic: u16) -> (u16, u16) {
    match magic {
        0xD122 => (0x0004, 0x0007),
        _ => (0x0008, 0x000F),
    }
}

/// Major version that wrote the WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Major {
    V15,
    V16,
    V17,
    V18,
    V19,
}

impl Major {
    /// The version of a page magic.
    ///
    /// Source: `XLOG_PAGE_MAGIC` of each version's xlog_internal.h; of 19 two, of which release
    /// candidate 1 as Debian has it (19~rc1-1) writes D122.
    #[must_use]
    pub const fn of_magic(magic: u16) -> Option<Self> {
        match magic {
            0xD110 => Some(Self::V15),
            0xD113 => Some(Self::V16),
            0xD116 => Some(Self::V17),
            0xD118 => Some(Self::V18),
            0xD11F | 0xD122 => Some(Self::V19),
            _ => None,
        }
    }

    /// The version of a number.
    #[must_use]
    pub const fn of_number(number: u32) -> Option<Self> {
        match number {
            15 => Some(Self::V15),
            16 => Some(Self::V16),
            17 => Some(Self::V17),
            18 => Some(Self::V18),
            19 => Some(Self::V19),
            _ => None,
        }
    }

    /// The number, 15 to 19.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::V15 => 15,
            Self::V16 => 16,
            Self::V17 => 17,
            Self::V18 => 18,
            Self::V19 => 19,
        }
    }
}

/// Whose magic it is that is not read, in words.
#[must_use]
pub const fn magic_in_words(magic: u16) -> &'static str {
    match magic {
        0xD10D => "PostgreSQL 14's",
        0xD106 => "PostgreSQL 13's",
        0xD101 => "PostgreSQL 12's",
        0x10D1 | 0x13D1 | 0x16D1 | 0x18D1 | 0x1FD1 => "that of a big-endian machine",
        0xD000..=0xD1FF => "another version's, or a development version's",
        _ => "no version's",
    }
}

/// Whether a magic is that of another release, or of this one on another machine.
#[must_use]
pub const fn is_known_elsewhere(magic: u16) -> bool {
    matches!(
        magic,
        0xD10D | 0xD106 | 0xD101 | 0x10D1 | 0x13D1 | 0x16D1 | 0x18D1 | 0x1FD1
    )
}

/// A number of two bytes at a place, little-endian; the place was checked before.
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// A number of four bytes at a place, little-endian; the place was checked before.
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let four: [u8; 4] = bytes[at..at + 4].try_into().unwrap_or_default();
    u32::from_le_bytes(four)
}

/// A number of eight bytes at a place, little-endian; the place was checked before.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let eight: [u8; 8] = bytes[at..at + 8].try_into().unwrap_or_default();
    u64::from_le_bytes(eight)
}

/// A page's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// `xlp_magic`.
    pub magic: u16,
    info: u16,
    /// `xlp_tli`.
    pub timeline: u32,
    /// `xlp_pageaddr`.
    pub address: Lsn,
    /// `xlp_rem_len`: what is left of a record that began before this page.
    pub left_bytes: u32,
}

/// What the first page of a segment says beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader {
    /// `xlp_sysid`.
    pub system: u64,
    /// `xlp_seg_size`.
    pub segment_bytes: u32,
    /// `xlp_xlog_blcksz`.
    pub page_bytes: u32,
}

impl PageHeader {
    /// Reads the first 24 bytes of a page.
    #[must_use]
    pub fn read(page: &[u8]) -> Self {
        Self {
            magic: u16_at(page, 0),
            info: u16_at(page, 2),
            timeline: u32_at(page, 4),
            address: Lsn(u64_at(page, 8)),
            left_bytes: u32_at(page, 16),
        }
    }

    /// The rest of the long header, where the page has one and is long enough.
    #[must_use]
    pub fn long(&self, page: &[u8]) -> Option<LongHeader> {
        (self.info & LONG_HEADER != 0 && page.len() >= LONG_HEADER_BYTES).then(|| LongHeader {
            system: u64_at(page, 24),
            segment_bytes: u32_at(page, 32),
            page_bytes: u32_at(page, 36),
        })
    }

    /// Whether the header may stand on a page of this magic at this position.
    ///
    /// Source: `XLogReaderValidatePageHeader`, src/backend/access/transam/xlogreader.c.
    /// Differs: timelines are checked where files are chosen. A page of the last segment that a
    /// number can name is none: no server gets there, and positions behind its records are numbers
    /// too.
    #[must_use]
    pub fn fits(&self, magic: u16, lsn: Lsn, segment_bytes: u64) -> bool {
        let first = lsn.0.is_multiple_of(segment_bytes);
        self.magic == magic
            && lsn.0.checked_add(segment_bytes).is_some()
            && self.info & !gives_up_and_all(magic).1 == 0
            && self.address == lsn
            && (self.info & LONG_HEADER != 0) == first
    }

    /// Bytes of the header.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        if self.info & LONG_HEADER != 0 {
            LONG_HEADER_BYTES
        } else {
            SHORT_HEADER_BYTES
        }
    }

    /// Whether the page begins with the rest of a record.
    #[must_use]
    pub const fn continues(&self) -> bool {
        self.info & FIRST_IS_CONTRECORD != 0
    }

    /// Whether a record that was cut off before this page was given up.
    #[must_use]
    pub const fn gives_up(&self) -> bool {
        self.info & gives_up_and_all(self.magic).0 != 0
    }
}

/// Up to the next multiple of 8, as records are padded. Source: `MAXALIGN`.
#[must_use]
pub const fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(8)
}
