//! What replaced row versions hold, for their pages' images; kept where images are compressed.

use std::collections::HashMap;

use pgheadroom_layout::page::SIZE_OF_HEAP_TUPLE_HEADER;

use crate::executor::table::Table;
use crate::page::{Tid, Tuple};
use crate::row::NULL_SLOT;
use crate::transaction::Xid;

/// Versions that are followed from a replaced one to one whose values are known.
const FOLLOWED_MOST: usize = 64;

/// A version from its bitmap of NULLs on.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub has_nulls: bool,
    pub hoff: u32,
    pub bytes: Vec<u8>,
}

/// Versions by place, with the transactions that made them: a place is used again.
#[derive(Debug, Default)]
pub(in crate::executor) struct Replaced(Option<HashMap<Tid, (Xid, Body)>>);

impl Replaced {
    fn begin(&mut self) {
        self.0 = Some(HashMap::new());
    }

    /// All places are others.
    pub fn clear(&mut self) {
        if let Some(kept) = &mut self.0 {
            kept.clear();
        }
    }
}

impl Table {
    /// What images are put together from is kept from now on.
    pub(in crate::executor) fn keep_for_images(&mut self) {
        self.replaced.begin();
        if let Some(toast) = &mut self.toast {
            toast.keep_values(&self.texts);
        }
    }

    /// The version here is about to get a successor: its row still has its values.
    #[inline]
    pub(in crate::executor) fn keep_replaced(&mut self, tid: Tid, row: u32) {
        if self.replaced.0.is_some() {
            let (made_by, body) = (self.tuple_at(tid).xmin, self.newest_body(row));
            if let Some(kept) = &mut self.replaced.0 {
                kept.insert(tid, (made_by, body));
            }
        }
    }

    /// What the version here holds. One that was changed in the short way, in a number, has its
    /// successor's values; one that was rolled back, its row's.
    pub(super) fn body(&self, mut tid: Tid, version: &Tuple) -> Body {
        let mut tuple = *version;
        for _ in 0..FOLLOWED_MOST {
            let kept = self.replaced.0.as_ref().and_then(|kept| kept.get(&tid));
            if let Some((_, body)) = kept.filter(|(made_by, _)| *made_by == tuple.xmin) {
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
        let slots = self.slots_of(row);
        let hoff = self.row_type.hoff(slots);
        let has_nulls = slots.contains(&NULL_SLOT);
        let mut bytes = Vec::new();
        if has_nulls {
            bytes.extend(self.row_type.null_bitmap(slots));
        }
        bytes.resize((hoff - SIZE_OF_HEAP_TUPLE_HEADER) as usize, 0);
        let mut data = Vec::new();
        self.row_type.write_data(slots, &self.texts, &mut data);
        bytes.extend(data);
        Body {
            has_nulls,
            hoff,
            bytes,
        }
    }
}
