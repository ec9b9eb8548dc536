//! A page while rows are loaded, and after that: new tuples of one transaction, in their order.

use pgheadroom_layout::OffsetNumber;
use pgheadroom_layout::page::{MAX_HEAP_TUPLES_PER_PAGE, SIZE_OF_ITEM_ID};

use crate::page::packed::Packed;
use crate::page::state::Flag;
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
        let is_plain = !self.state.has(Flag::IsNew)
            && !self.state.has(Flag::IsAllVisible)
            && !self.state.has(Flag::HasFreeLines);
        is_plain && self.deferred().is_none()
    }

    /// As [`HeapPage::add`], for a new row on a page that takes such.
    ///
    /// # Panics
    /// When it does not fit.
    #[inline]
    pub(crate) fn add_new(&mut self, row: u32, lp_len: u16, xid: Xid) -> OffsetNumber {
        assert!(self.takes_new_rows());
        assert!(self.items.len() < MAX_HEAP_TUPLES_PER_PAGE as usize);
        let aligned = aligned(lp_len);
        assert!(
            self.pd_lower() + SIZE_OF_ITEM_ID + u32::from(aligned) <= self.pd_upper(),
            "tuple does not fit"
        );
        self.items.push(Packed::new(row, xid, lp_len));
        self.pd_upper -= aligned;
        let offset = offset_of(self.items.len() - 1);
        self.unsettle(offset);
        offset
    }

    /// Line pointers that a page with such rows will have when it has been updated a few times.
    pub(crate) fn items_expected(&self) -> usize {
        let count = self.items.len();
        let each = self.items.last().map_or(0, |item| aligned(item.lp_len));
        let each = u32::from(each) + SIZE_OF_ITEM_ID;
        let fitting = (self.heap_free_space() / each) as usize;
        count + fitting.min(count / 4 + 8)
    }

    /// The same of so many rows of one length, whose numbers follow each other; where the first is.
    ///
    /// # Panics
    /// When they do not fit.
    pub(crate) fn add_alike(
        &mut self,
        first_row: u32,
        count: usize,
        lp_len: u16,
        xid: Xid,
    ) -> OffsetNumber {
        assert!(self.takes_new_rows());
        let before = self.items.len();
        let numbers = first_row..;
        let added = numbers.take(count).map(|row| Packed::new(row, xid, lp_len));
        self.items.extend(added);
        assert!(self.items.len() <= MAX_HEAP_TUPLES_PER_PAGE as usize);
        let bytes = count * usize::from(aligned(lp_len));
        let upper = usize::from(self.pd_upper).checked_sub(bytes);
        let upper = upper.filter(|&upper| self.pd_lower() as usize <= upper);
        let upper = upper.and_then(|upper| u16::try_from(upper).ok());
        self.pd_upper = upper.expect("rows that fit");
        self.unsettle_from(before);
        #[allow(clippy::cast_possible_truncation)] // at most 291 before it
        OffsetNumber(before as u16 + 1)
    }

    /// The first tuple, where one transaction has filled the page with rows and nothing has
    /// happened to them since: what is asked of it has one answer for them all.
    pub(crate) fn alike(&self) -> Option<Tuple> {
        let first = self.items.first()?;
        let are_alike = self.items.iter().all(|item| item.is_new_like(first));
        let is_noted = self.deferred().is_none();
        (are_alike && is_noted).then(|| self.tuple(OffsetNumber(1)).expect("a tuple"))
    }

    /// Notes in all tuples, which are alike, what the hints of `tuple` have.
    pub(crate) fn put_hints_of_all(&mut self, tuple: &Tuple) {
        for item in &mut self.items {
            item.set_hints(tuple.xmin_hint, tuple.xmax_hint);
        }
    }

    /// How many tuples a page has on which each is a row.
    pub(crate) fn loaded_row_count(&self) -> u32 {
        let rows = self.items.iter().filter(|item| item.row().is_some());
        u32::try_from(rows.count()).expect("at most 291 line pointers")
    }

    /// The rows of its tuples, and the line pointers by which indexes know them: of the roots,
    /// which ascend.
    ///
    /// Each tuple is a row: after a load, a rewrite, or VACUUM with nobody beside.
    pub(crate) fn loaded_rows(&self) -> impl Iterator<Item = (OffsetNumber, u32)> + Clone {
        assert!(self.deferred().is_none(), "a loaded or rewritten table");
        let is_chained = self.items.iter().any(Packed::is_heap_only);
        let by_roots = is_chained.then(|| {
            let mut rows: Vec<_> = self.rows_in_place().collect();
            rows.sort_unstable();
            rows
        });
        let plain = (!is_chained).then(|| self.rows_in_place());
        let by_roots = by_roots.into_iter().flatten();
        by_roots.chain(plain.into_iter().flatten())
    }

    /// The same in the order of the tuples.
    pub(crate) fn rows_in_place(&self) -> impl Iterator<Item = (OffsetNumber, u32)> + Clone {
        let items = self.items.iter().enumerate();
        items.filter_map(|(position, item)| {
            let row = item.row()?;
            let is_root = !item.is_heap_only();
            let offset = if is_root {
                offset_of(position)
            } else {
                item.root
            };
            Some((offset, row))
        })
    }
}
