//! A page while rows are loaded, and after that: new tuples of one transaction, in their order.

use pgheadroom_layout::OffsetNumber;
use pgheadroom_layout::page::{MAX_HEAP_TUPLES_PER_PAGE, SIZE_OF_ITEM_ID};

use crate::page::packed::Packed;
use crate::page::{HeapPage, Tuple, aligned, offset_of};
use crate::transaction::Xid;

impl HeapPage {
    /// Room for as many line pointers, should they come.
    pub(crate) fn expect_items(&mut self, count: usize) {
        self.items
            .reserve_exact(count.saturating_sub(self.items.len()));
    }

    /// Whether a new row does nothing to the page but take the next line pointer and its room.
    pub(crate) fn takes_new_rows(&self) -> bool {
        let is_plain = !self.is_new && !self.is_all_visible && !self.has_free_lines;
        is_plain && self.pending().is_none()
    }

    /// As [`HeapPage::add`], for a new row on a page that takes such.
    ///
    /// # Panics
    /// When it does not fit.
    #[inline]
    pub(crate) fn add_new(&mut self, row: u32, lp_len: u16, xid: Xid) {
        assert!(self.takes_new_rows());
        assert!(self.items.len() < MAX_HEAP_TUPLES_PER_PAGE as usize);
        let aligned = aligned(lp_len);
        assert!(
            self.pd_lower() + SIZE_OF_ITEM_ID + u32::from(aligned) <= self.pd_upper(),
            "tuple does not fit"
        );
        self.items.push(Packed::new(row, xid, lp_len));
        self.pd_upper -= aligned;
        self.unsettle(offset_of(self.items.len() - 1));
    }

    /// The first tuple, where one transaction has filled the page with rows and nothing has
    /// happened to them since: what is asked of it has one answer for them all.
    pub(crate) fn alike(&self) -> Option<Tuple> {
        let first = self.items.first()?;
        let are_alike = self.items.iter().all(|item| item.is_new_like(first));
        let is_noted = self.pending().is_none();
        (are_alike && is_noted).then(|| self.tuple(OffsetNumber(1)).expect("a tuple"))
    }

    /// Notes in all tuples, which are alike, what the hints of `tuple` have.
    pub(crate) fn put_hints_of_all(&mut self, tuple: &Tuple) {
        for item in &mut self.items {
            item.set_hints(tuple.xmin_hint, tuple.xmax_hint);
        }
    }

    /// The rows of its tuples, and their line pointers.
    ///
    /// # Panics
    /// When one is heap-only, which no load or rewrite leaves behind.
    pub(crate) fn loaded_rows(&self) -> impl Iterator<Item = (OffsetNumber, u32)> + Clone {
        assert!(self.pending().is_none(), "a loaded or rewritten table");
        let items = self.items.iter().enumerate();
        items.filter_map(|(position, item)| {
            let row = item.row()?;
            assert!(!item.is_heap_only(), "a loaded or rewritten table");
            Some((offset_of(position), row))
        })
    }
}
