//! What a row version holds, of those that were replaced too.

use pgheadroom_layout::page::SIZE_OF_HEAP_TUPLE_HEADER;

use crate::executor::replaced::Body;
use crate::executor::table::Table;
use crate::page::{Tid, Tuple};
use crate::row::NULL_SLOT;

/// Versions that are followed from a replaced one to one whose values are known.
const FOLLOWED_MOST: usize = 64;

impl Table {
    /// What images are put together from is kept from now on.
    pub(in crate::executor) fn keep_for_images(&mut self) {
        self.values.replaced.begin();
        if let Some(toast) = &mut self.toast {
            toast.keep_values(&self.values.texts);
        }
    }

    /// The version here is about to get a successor: its row still has its values.
    #[inline]
    pub(in crate::executor) fn keep_replaced(&mut self, tid: Tid, row: u32) {
        if self.values.replaced.is_kept() {
            let (made_by, body) = (self.tuple_at(tid).xmin, self.newest_body(row));
            self.values.replaced.keep(tid, made_by, body);
        }
    }

    /// What the version here holds. One that was changed in the fast path, in a number, has its
    /// successor's values; one that was rolled back, its row's.
    pub(super) fn body(&self, mut tid: Tid, version: &Tuple) -> Body {
        let mut tuple = *version;
        for _ in 0..FOLLOWED_MOST {
            if let Some(body) = self.values.replaced.body(tid, tuple.xmin) {
                return body.clone();
            }
            let page = self.heap.pages().get(tuple.next.block.0 as usize);
            let next = page.and_then(|page| page.tuple(tuple.next.offset));
            match next.filter(|next| tuple.next != tid && next.xmin == tuple.xmax) {
                Some(next) => (tid, tuple) = (tuple.next, next),
                None => break,
            }
        }
        self.newest_body(version.row)
    }

    fn newest_body(&self, row: u32) -> Body {
        let slots = &self.values.slots(row)[..];
        let hoff = self.values.row_type.hoff(slots);
        let has_nulls = slots.contains(&NULL_SLOT);
        let mut bytes = Vec::new();
        if has_nulls {
            bytes.extend(self.values.row_type.null_bitmap(slots));
        }
        bytes.resize((hoff - SIZE_OF_HEAP_TUPLE_HEADER) as usize, 0);
        let mut data = Vec::new();
        self.values
            .row_type
            .write_data(slots, &self.values.texts, &mut data);
        bytes.extend(data);
        Body {
            has_nulls,
            hoff,
            bytes,
        }
    }
}
