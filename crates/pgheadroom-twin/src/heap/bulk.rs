//! COPY and other bulk loads: many rows at once, many new pages at once.

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER};
use pgheadroom_layout::{BlockNumber, LayoutError};

use crate::heap::{Heap, InsertTargetBlock, Mode, Placed, Placing};
use crate::page::Tuple;
use crate::transaction::Xid;

/// State of a bulk load: COPY, CREATE TABLE AS, rewrites.
///
/// Source: `BulkInsertStateData`, src/include/access/hio.h (REL_16_STABLE).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkInsert {
    pub(super) current: Option<BlockNumber>,
    /// Pages of the last extension that are not used yet: first and last.
    pub(super) free: Option<(BlockNumber, BlockNumber)>,
    pub(super) already_extended_pages: u32,
}

impl Heap {
    /// Inserts the rows of one COPY batch; one item for each page used, in order.
    ///
    /// # Errors
    /// [`LayoutError::TupleTooBig`] when a row does not fit a page.
    ///
    /// Source: `heap_multi_insert`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub fn insert_batch(
        &mut self,
        target: &mut InsertTargetBlock,
        bulk: &mut BulkInsert,
        rows: &[(u32, u16)],
        xid: Xid,
        log: &mut impl Placing,
    ) -> Result<Vec<Vec<Placed>>, LayoutError> {
        let reserve = self.fillfactor.reserve_bytes();
        let mut done = Vec::new();
        let mut left = rows;
        let mut started_empty = false;
        let (mut pages_needed, mut pages_used) = (0, 0);
        while let Some((&(row, tuple_bytes), rest)) = left.split_first() {
            if started_empty {
                pages_used += 1;
            } else {
                pages_needed = pages_for_batch(left, reserve);
                pages_used = 0;
            }
            let hint = pages_needed.saturating_sub(pages_used);
            let block = self.page_for_tuple(target, Mode::Copy(bulk, hint), tuple_bytes, log)?;
            started_empty = self.pages[block.0 as usize].item_count() == 0;
            let mut placed = vec![self.put_row(block, Tuple::new(row, tuple_bytes, xid))];
            left = rest;
            while let Some((&(row, tuple_bytes), rest)) = left.split_first() {
                let wanted = maxalign(u32::from(tuple_bytes)) + reserve;
                if self.pages[block.0 as usize].heap_free_space() < wanted {
                    break;
                }
                placed.push(self.put_row(block, Tuple::new(row, tuple_bytes, xid)));
                left = rest;
            }
            // One record covers them all, so the page is initialised by all or by none.
            for one in &mut placed {
                one.initialises_page = started_empty;
            }
            done.push(placed);
        }
        Ok(done)
    }
}

impl BulkInsert {
    /// The next page of the last extension that is not used yet.
    pub(super) fn take_free(&mut self) -> Option<BlockNumber> {
        let (next, last) = self.free?;
        self.free = (next < last).then(|| (BlockNumber(next.0 + 1), last));
        Some(next)
    }
}

/// Pages that the rest of a batch needs when none is used yet.
///
/// Source: `heap_multi_insert_pages`, src/backend/access/heap/heapam.c (REL_16_STABLE); unsigned
/// there, so that a row longer than a page's share makes the rest look free.
fn pages_for_batch(rows: &[(u32, u16)], reserve: u32) -> u32 {
    let whole_page = u64::from(BLCKSZ - SIZE_OF_PAGE_HEADER - reserve);
    let mut available = whole_page;
    let mut pages = 1;
    for &(_, tuple_bytes) in rows {
        let size = u64::from(SIZE_OF_ITEM_ID + maxalign(u32::from(tuple_bytes)));
        if available < size {
            pages += 1;
            available = whole_page;
        }
        available = available.wrapping_sub(size);
    }
    pages
}
