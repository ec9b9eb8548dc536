//! Pages of relation files, byte by byte: headers, line pointers, tuples, maps.
//!
//! ```text
//! 8192 bytes -> PageHeader + line pointers -> a page of heap, btree, gin, hash or map
//! ```
//!
//! The bytes are foreign: nothing here panics or believes a length; what does not fit is a
//! [`DecodeError`] with the page, the place on it, what was found and what was expected.
//! Little-endian servers only, pages of 8192 bytes with layout version 4 (8.3 and later).
//! Left out: values of columns, checksums (read, not verified), index types other than B-tree,
//! GIN and hash.
//!
//! Source: src/include/storage/bufpage.h, itemid.h, off.h (REL_15_STABLE to REL_18_STABLE).

use crate::align::MAXIMUM_ALIGNOF;
use crate::page::{BLCKSZ, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER};

pub mod btree;
pub mod gin;
pub mod hash;
pub mod heap;
pub mod map;

/// Bytes of a page, as an index.
const PAGE: usize = BLCKSZ as usize;
/// Source: `PG_PAGE_LAYOUT_VERSION`, src/include/storage/bufpage.h.
pub const PG_PAGE_LAYOUT_VERSION: u16 = 4;
/// Source: `PD_HAS_FREE_LINES`, bufpage.h.
pub const PD_HAS_FREE_LINES: u16 = 1;
/// Source: `PD_PAGE_FULL`, bufpage.h.
pub const PD_PAGE_FULL: u16 = 2;
/// Source: `PD_ALL_VISIBLE`, bufpage.h.
pub const PD_ALL_VISIBLE: u16 = 4;

/// Bytes that are not a page of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not 8192 bytes.
    #[error("page {blkno}: {found_bytes} bytes, expected {BLCKSZ}")]
    Size {
        /// Number of the page.
        blkno: u32,
        /// Bytes that were given.
        found_bytes: usize,
    },
    /// A field holds what it cannot.
    #[error("page {blkno}, byte {at_byte}: {what} is {found}, expected {expected}")]
    Field {
        /// Number of the page.
        blkno: u32,
        /// Where the field begins on the page.
        at_byte: usize,
        /// The field, under PostgreSQL's name.
        what: &'static str,
        /// What it holds.
        found: u64,
        /// What it may hold.
        expected: String,
    },
}

/// One page's bytes, with its number for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageBytes<'a> {
    pub blkno: u32,
    bytes: &'a [u8; PAGE],
}

impl<'a> PageBytes<'a> {
    pub fn new(blkno: u32, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let bytes = bytes.try_into().map_err(|_| DecodeError::Size {
            blkno,
            found_bytes: bytes.len(),
        })?;
        Ok(Self { blkno, bytes })
    }

    /// The error of a field.
    pub fn wrong(
        &self,
        at_byte: usize,
        what: &'static str,
        found: impl Into<u64>,
        expected: impl Into<String>,
    ) -> DecodeError {
        DecodeError::Field {
            blkno: self.blkno,
            at_byte,
            what,
            found: found.into(),
            expected: expected.into(),
        }
    }

    pub fn slice(&self, at: usize, length: usize) -> &'a [u8] {
        &self.bytes[at..at + length]
    }

    pub fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    pub fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }

    pub fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    /// A block number, stored high half first (`BlockIdData`, src/include/storage/block.h).
    pub fn block_id(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) << 16 | u32::from(self.u16(at + 2))
    }

    /// A heap TID (`ItemPointerData`, src/include/storage/itemptr.h).
    pub fn tid(&self, at: usize) -> (u32, u16) {
        (self.block_id(at), self.u16(at + 4))
    }
}

/// A page's header.
///
/// Source: `PageHeaderData`, src/include/storage/bufpage.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// Position of the last record that changed the page.
    pub pd_lsn: u64,
    /// The checksum as stored; 0 without checksums.
    pub pd_checksum: u16,
    /// Hints: `PD_HAS_FREE_LINES`, `PD_PAGE_FULL`, `PD_ALL_VISIBLE`.
    pub pd_flags: u16,
    /// End of the line pointers.
    pub pd_lower: u16,
    /// Start of the items.
    pub pd_upper: u16,
    /// Start of the special area.
    pub pd_special: u16,
    /// Oldest transaction that may have made something prunable; 0 is none.
    pub pd_prune_xid: u32,
}

impl PageHeader {
    /// Reads a header; `None` for a page that was never initialised (`PageIsNew`).
    ///
    /// Source: `PageIsVerifiedExtended`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
    pub(crate) fn read(page: &PageBytes<'_>) -> Result<Option<Self>, DecodeError> {
        let header = Self {
            pd_lsn: u64::from(page.u32(0)) << 32 | u64::from(page.u32(4)),
            pd_checksum: page.u16(8),
            pd_flags: page.u16(10),
            pd_lower: page.u16(12),
            pd_upper: page.u16(14),
            pd_special: page.u16(16),
            pd_prune_xid: page.u32(20),
        };
        if header.pd_upper == 0 {
            return Ok(None);
        }
        let version = page.u16(18);
        #[allow(clippy::cast_possible_truncation)] // 8192
        let expected = BLCKSZ as u16 | PG_PAGE_LAYOUT_VERSION;
        if version != expected {
            let text = format!("{expected} (8192 bytes, layout version 4)");
            return Err(page.wrong(18, "pd_pagesize_version", version, text));
        }
        let (lower, upper) = (u32::from(header.pd_lower), u32::from(header.pd_upper));
        let special = u32::from(header.pd_special);
        if special > BLCKSZ || special % MAXIMUM_ALIGNOF != 0 {
            let expected = format!("a multiple of {MAXIMUM_ALIGNOF} up to {BLCKSZ}");
            return Err(page.wrong(16, "pd_special", special, expected));
        }
        if upper > special {
            return Err(page.wrong(14, "pd_upper", upper, format!("at most {special}")));
        }
        if lower < SIZE_OF_PAGE_HEADER || lower > upper {
            let expected = format!("{SIZE_OF_PAGE_HEADER} to {upper}");
            return Err(page.wrong(12, "pd_lower", lower, expected));
        }
        Ok(Some(header))
    }

    /// Bytes between line pointers and items.
    #[must_use]
    pub const fn exact_free_space(&self) -> u16 {
        self.pd_upper - self.pd_lower // checked when it was read
    }
}

/// `lp_flags` of a line pointer.
///
/// Source: `LP_UNUSED` to `LP_DEAD`, src/include/storage/itemid.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LpFlags {
    /// Free.
    Unused,
    /// Points to an item.
    Normal,
    /// Leads to another line pointer.
    Redirect,
    /// Dead, with or without storage.
    Dead,
}

impl LpFlags {
    /// As stored.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self as u32
    }
}

/// A line pointer as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemId {
    /// Where it lies on the page.
    pub at: usize,
    pub off: u16,
    pub flags: LpFlags,
    pub len: u16,
}

impl ItemId {
    /// The item's bytes: where they begin and end, checked to lie in the items' area.
    pub fn storage(
        &self,
        page: &PageBytes<'_>,
        header: &PageHeader,
        least: u16,
    ) -> Result<(usize, usize), DecodeError> {
        let (start, end) = (
            u32::from(self.off),
            u32::from(self.off) + u32::from(self.len),
        );
        if self.off < header.pd_upper || !self.off.is_multiple_of(8) {
            let expected = format!("a multiple of 8 from pd_upper, {}", header.pd_upper);
            return Err(page.wrong(self.at, "lp_off", self.off, expected));
        }
        if self.len < least || end > u32::from(header.pd_special) {
            let most = header.pd_special - self.off.min(header.pd_special);
            let expected = format!("{least} to {most}");
            return Err(page.wrong(self.at, "lp_len", self.len, expected));
        }
        Ok((start as usize, end as usize))
    }
}

/// All line pointers of a page.
pub(crate) fn item_ids(
    page: &PageBytes<'_>,
    header: &PageHeader,
) -> Result<Vec<ItemId>, DecodeError> {
    let bytes = u32::from(header.pd_lower) - SIZE_OF_PAGE_HEADER;
    if !bytes.is_multiple_of(SIZE_OF_ITEM_ID) {
        let expected = format!("{SIZE_OF_PAGE_HEADER} plus a multiple of {SIZE_OF_ITEM_ID}");
        return Err(page.wrong(12, "pd_lower", header.pd_lower, expected));
    }
    let start = SIZE_OF_PAGE_HEADER as usize;
    let places = (start..usize::from(header.pd_lower)).step_by(SIZE_OF_ITEM_ID as usize);
    #[allow(clippy::cast_possible_truncation)] // 15 bits each
    let ids = places.map(|at| {
        let word = page.u32(at);
        ItemId {
            at,
            off: (word & 0x7FFF) as u16,
            flags: match word >> 15 & 3 {
                0 => LpFlags::Unused,
                1 => LpFlags::Normal,
                2 => LpFlags::Redirect,
                _ => LpFlags::Dead,
            },
            len: (word >> 17) as u16,
        }
    });
    Ok(ids.collect())
}

/// Splits a relation file's content into pages.
///
/// # Errors
/// [`DecodeError::Size`] of the last page, when the file is not a number of whole pages.
pub fn pages_of(file: &[u8]) -> Result<impl Iterator<Item = (u32, &[u8])>, DecodeError> {
    let whole = file.len() / PAGE;
    let blkno = u32::try_from(whole).unwrap_or(u32::MAX);
    if !file.len().is_multiple_of(PAGE) {
        return Err(DecodeError::Size {
            blkno,
            found_bytes: file.len() % PAGE,
        });
    }
    Ok((0..blkno).zip(file.chunks_exact(PAGE)))
}

#[cfg(test)]
mod tests;
