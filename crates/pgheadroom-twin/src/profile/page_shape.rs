//! What a load puts on a page, and what a page of a table that has lived is to have.

use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER};
use serde::Deserialize;

/// Pages that have equally many rows.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageKindSpec {
    /// Share of the pages.
    pub pages_frac: f64,
    /// Rows on each.
    pub rows: i64,
    /// Of these, rows behind a redirected line pointer.
    #[serde(default)]
    pub redirects: i64,
    /// Unused line pointers before the last row.
    #[serde(default)]
    pub unused: i64,
}

/// A header alone.
const LEAST_TUPLE: i64 = 24;
/// Of an empty page.
pub(super) const USABLE: i64 = BLCKSZ as i64 - SIZE_OF_PAGE_HEADER as i64;

/// What a load puts on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfLoad {
    /// Rows on a full page.
    pub per_page: i64,
    /// In percent.
    pub fillfactor: i64,
    /// Of the table.
    pub columns: i64,
}

impl OfLoad {
    /// Bytes that rows may take, by the fillfactor.
    pub(super) fn room(self) -> i64 {
        USABLE - i64::from(BLCKSZ) * (100 - self.fillfactor) / 100
    }

    /// Tuples are taken to be as long as so many on a page let them be.
    pub(super) fn tuple_bytes(self) -> i64 {
        let each = self.room() / self.per_page.max(1) - i64::from(SIZE_OF_ITEM_ID);
        each.max(LEAST_TUPLE) / 8 * 8
    }
}

/// What a page is to have in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfPage {
    /// Rows.
    pub rows: i64,
    /// Of these, behind a redirect.
    pub redirects: i64,
    /// Unused line pointers before the last row.
    pub unused: i64,
}

impl From<&PageKindSpec> for OfPage {
    fn from(kind: &PageKindSpec) -> Self {
        Self {
            rows: kind.rows,
            redirects: kind.redirects,
            unused: kind.unused,
        }
    }
}

impl OfPage {
    /// How many line pointers have to be unused before redirects take theirs; `None` where there
    /// are to be no more than fillers leave.
    pub(super) fn unused_at_first(self, per_page: i64) -> Option<i64> {
        let wanted = self.unused + self.redirects;
        let of_fillers = per_page - self.rows;
        (self.unused > 0 && self.rows > 0 && wanted > of_fillers).then_some(wanted)
    }
}
