//! Whether a file's end, and not the log's, is why a record cannot be read.
//!
//! A server's segments are whole files: behind the log's end there are zeros, or what a recycled
//! segment had before. A file that is shorter was cut off; a page that it has a part of is filled
//! up with zeros before it is read (`piece`), and what is broken there may be broken by them.

use pgheadroom_layout::Lsn;

use crate::format::{LONG_HEADER_BYTES, PAGE_BYTES, PageHeader, RECORD_HEADER_BYTES};
use crate::record::Header;

/// Where bytes begin that the zeros may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// Position of the page.
    pub lsn: Lsn,
    /// The page, filled up.
    pub page: &'a [u8; PAGE_BYTES],
    /// How many of its bytes the file has.
    pub there: usize,
}

impl Part<'_> {
    /// Whether the record, or the page header, that is broken at `broken` reaches beyond the bytes
    /// that are there; `prev` is where the record before it begins.
    pub fn breaks(&self, broken: Lsn, prev: Option<Lsn>) -> bool {
        if self.there >= PAGE_BYTES {
            return false;
        }
        let Some(at) = broken.0.checked_sub(self.lsn.0) else {
            return self.breaks_crossing();
        };
        let at = usize::try_from(at).unwrap_or(PAGE_BYTES);
        let Some(rest) = self.page[..self.there].get(at..) else {
            return true;
        };
        // Zeros are what a server leaves behind the log's end.
        if rest.iter().all(|byte| *byte == 0) {
            return rest.is_empty();
        }
        if rest.len() < RECORD_HEADER_BYTES {
            return true;
        }
        let header = Header::read(rest);
        at > 0 && prev == Some(header.prev) && header.total_bytes as usize > rest.len()
    }

    /// Whether the page is there and has nothing from a position on: so a server leaves the page on
    /// which its log ends, for pages are empty before they are written to.
    ///
    /// Source: `AdvanceXLInsertBuffer`, src/backend/access/transam/xlog.c (`REL_18_STABLE`).
    pub fn is_empty_from(&self, lsn: Lsn) -> bool {
        let rest = lsn.0.checked_sub(self.lsn.0).and_then(|at| {
            let at = usize::try_from(at).ok()?;
            self.page.get(at..)
        });
        self.there == PAGE_BYTES
            && rest.is_some_and(|rest| !rest.is_empty() && rest.iter().all(|byte| *byte == 0))
    }

    /// Whether what is broken at a position may be the log's end: the page is empty from there on,
    /// or it is none that goes on with the log. Where a record is damaged on its page, something
    /// stands there, and what follows it is of the same log.
    ///
    /// # Arguments
    /// * `left` - how much of a record that began before it the page has to go on with.
    pub fn is_like_end(&self, broken: Lsn, left: Option<u32>) -> bool {
        if self.there < PAGE_BYTES {
            return false;
        }
        let Some(at) = broken.0.checked_sub(self.lsn.0) else {
            let header = PageHeader::read(self.page);
            let goes_on = header.continues() && Some(header.left_bytes) == left;
            return header.address != self.lsn || !goes_on;
        };
        at <= LONG_HEADER_BYTES as u64 || self.is_empty_from(broken)
    }

    /// As [`Self::breaks`], of a record that began on an earlier page.
    fn breaks_crossing(&self) -> bool {
        let bytes = &self.page[..self.there];
        if bytes.iter().all(|byte| *byte == 0) {
            return false;
        }
        if bytes.len() < LONG_HEADER_BYTES {
            return true;
        }
        let header = PageHeader::read(bytes);
        header.continues() && header.bytes() + header.left_bytes as usize > self.there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Lsn = Lsn(0x0100_2000);

    /// A page whose first record of 100 bytes begins at 24, behind one at 8 before the page.
    fn page() -> [u8; PAGE_BYTES] {
        let mut page = [0; PAGE_BYTES];
        page[24..28].copy_from_slice(&100_u32.to_le_bytes());
        page[32..40].copy_from_slice(&(PAGE.0 - 8).to_le_bytes());
        page[44..124].fill(7);
        page
    }

    fn breaks(page: &[u8; PAGE_BYTES], there: usize, at: u64, prev: u64) -> bool {
        let lsn = PAGE;
        Part { lsn, page, there }.breaks(Lsn(PAGE.0 + at), Some(Lsn(PAGE.0 - prev)))
    }

    #[test]
    fn a_record_breaks_by_the_cut_if_it_reaches_beyond() {
        let page = page();
        for there in [24, 25, 47, 48, 123] {
            assert!(breaks(&page, there, 24, 8), "{there}");
        }
        // It is whole: what is wrong with it is wrong in the file.
        assert!(!breaks(&page, 124, 24, 8));
        // An old record, as a recycled segment has them.
        assert!(!breaks(&page, 100, 24, 16));
        assert!(!breaks(&page, PAGE_BYTES, 24, 8));
    }

    #[test]
    fn what_a_logs_end_leaves() {
        let page = page();
        let is_like_end = |page: &[u8; PAGE_BYTES], there: usize, at: u64| {
            let lsn = PAGE;
            Part { lsn, page, there }.is_like_end(Lsn(PAGE.0 + at), None)
        };
        // Nothing more on the page; or the page is another one's from its begin on.
        assert!(is_like_end(&page, PAGE_BYTES, 128));
        assert!(is_like_end(&page, PAGE_BYTES, 0));
        assert!(is_like_end(&page, PAGE_BYTES, 24));
        // A record stands there that is damaged, or the file is cut off.
        assert!(!is_like_end(&page, PAGE_BYTES, 64));
        assert!(!is_like_end(&page, 200, 128));
        // A record that crosses: the page goes on with it, with another one, or is elsewhere's.
        let mut continued = page;
        continued[2] = 1;
        continued[8..16].copy_from_slice(&PAGE.0.to_le_bytes());
        continued[16..20].copy_from_slice(&40_u32.to_le_bytes());
        let crossing = |lsn: u64, page: &[u8; PAGE_BYTES], left: u32| {
            let (lsn, there) = (Lsn(lsn), PAGE_BYTES);
            Part { lsn, page, there }.is_like_end(Lsn(lsn.0 - 64), Some(left))
        };
        assert!(crossing(PAGE.0, &page, 40));
        assert!(!crossing(PAGE.0, &continued, 40));
        assert!(crossing(PAGE.0, &continued, 48));
        assert!(crossing(PAGE.0 + 8_192, &continued, 40));
    }

    #[test]
    fn zeros_are_the_logs_end() {
        let page = page();
        assert!(!breaks(&page, 200, 128, 8));
        assert!(breaks(&page, 128, 128, 8));
        assert!(breaks(&page, 126, 128, 8));
    }
}
