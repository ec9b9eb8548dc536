//! Room on a page, and the line pointers that new tuples take.

use pgheadroom_layout::page::{
    MAX_HEAP_TUPLE_SIZE, MAX_HEAP_TUPLES_PER_PAGE, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER,
    page_free_space,
};
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::page::packed::Packed;
use crate::page::state::Flag;
use crate::page::{HeapPage, LinePointer, Tid, Tuple, aligned, offset_of};

impl HeapPage {
    /// End of the line pointers.
    #[must_use]
    #[inline]
    pub fn pd_lower(&self) -> u32 {
        SIZE_OF_PAGE_HEADER + SIZE_OF_ITEM_ID * self.item_count()
    }

    /// Start of the tuples.
    #[must_use]
    pub const fn pd_upper(&self) -> u32 {
        self.pd_upper as u32
    }

    /// Bytes between line pointers and tuples; a full-page image leaves them out.
    ///
    /// Source: `PageGetExactFreeSpace`, src/backend/storage/page/bufpage.c.
    #[must_use]
    #[inline]
    pub fn exact_free_space(&self) -> u32 {
        self.pd_upper() - self.pd_lower()
    }

    /// Free bytes that a new tuple may use on this heap page.
    ///
    /// Leaves room for one more line pointer, even when an unused one will be taken; 0 when the
    /// page already has 291 line pointers and none is free. As PostgreSQL does, believes the
    /// `PD_HAS_FREE_LINES` hint when it is unset, even if it is wrong, and looks when it is set.
    ///
    /// Source: `PageGetHeapFreeSpace`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
    /// Differs: no.
    #[must_use]
    #[inline]
    pub fn heap_free_space(&self) -> u32 {
        let space = page_free_space(self.pd_lower(), self.pd_upper());
        if space > 0 && self.item_count() >= MAX_HEAP_TUPLES_PER_PAGE {
            let has_unused = self.state.has(Flag::HasFreeLines) && self.state.unused() > 0;
            return if has_unused { space } else { 0 };
        }
        space
    }

    /// Puts a tuple on the page and says where; its `next` is set to itself.
    ///
    /// # Panics
    /// When it does not fit: callers ask [`HeapPage::heap_free_space`] before.
    ///
    /// Source: `PageAddItemExtended`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
    pub fn add(&mut self, block: BlockNumber, mut tuple: Tuple) -> OffsetNumber {
        assert!(
            u32::from(tuple.lp_len) <= MAX_HEAP_TUPLE_SIZE,
            "tuple longer than a page"
        );
        let aligned = aligned(tuple.lp_len);
        assert!(
            !self.state.has(Flag::IsNew),
            "tuple for a page without header"
        );
        self.write_out_deferred();
        self.block = block;
        if self.items.is_empty() {
            // As many as there will be if all tuples are as long.
            let each = u32::from(aligned) + SIZE_OF_ITEM_ID;
            self.items
                .reserve_exact((self.exact_free_space() / each) as usize);
        }
        let offset = self.new_item();
        assert!(self.items.len() <= MAX_HEAP_TUPLES_PER_PAGE as usize);
        assert!(
            self.pd_lower() + u32::from(aligned) <= self.pd_upper(),
            "tuple does not fit"
        );
        tuple.next = Tid { block, offset };
        self.pd_upper -= aligned;
        self.put(offset, LinePointer::Normal(tuple));
        self.unsettle(offset);
        offset
    }

    /// A line pointer for a new tuple: an unused one, or one more.
    #[inline]
    pub(super) fn new_item(&mut self) -> OffsetNumber {
        let unused = self
            .state
            .has(Flag::HasFreeLines)
            .then(|| self.take_unused())
            .flatten();
        let position = unused.unwrap_or_else(|| {
            self.state.set(Flag::HasFreeLines, false);
            if self.items.len() == self.items.capacity() {
                self.items.reserve_exact(self.items.len() / 4 + 8);
            }
            self.items.push(Packed::UNUSED);
            self.items.len() - 1
        });
        offset_of(position)
    }

    /// Gives a tuple another length where it is, if the page has room for that; whether it had.
    /// For engines that update in place: a heap never does so.
    ///
    /// # Panics
    /// When there is no tuple.
    pub(crate) fn resize(&mut self, offset: OffsetNumber, tuple_bytes: u16) -> bool {
        let free = self.exact_free_space();
        let old = aligned(self.tuple_mut(offset).lp_len);
        let new = aligned(tuple_bytes);
        if u32::from(new) > u32::from(old) + free {
            return false;
        }
        self.tuple_mut(offset).lp_len = tuple_bytes;
        self.pd_upper = self.pd_upper + old - new;
        true
    }

    /// Position of the first unused line pointer, which is used from now on.
    fn take_unused(&mut self) -> Option<usize> {
        let left = self.state.unused().checked_sub(1)?;
        self.state.set_unused(left);
        let from = usize::from(self.unused_from);
        let unused = self.items[from..].iter().position(|item| item.is_unused());
        let position = from + unused.expect("as many unused line pointers as counted");
        self.unused_from = offset_of(position).0; // the position behind it
        Some(position)
    }

    /// Removes unused line pointers at the end, down to `keep`.
    pub(super) fn truncate_line_pointers(&mut self, keep: usize) {
        while self.items.len() > keep && self.items.last().is_some_and(Packed::is_unused) {
            self.items.pop();
            self.state.set_unused(self.state.unused() - 1);
        }
    }

    /// This line pointer is unused from now on.
    #[inline]
    pub(super) fn count_unused(&mut self, offset: OffsetNumber) {
        if self.state.unused() == 0 {
            self.unused_from = offset.0 - 1;
        } else {
            self.unused_from = self.unused_from.min(offset.0 - 1);
        }
        self.state.set_unused(self.state.unused() + 1);
    }

    /// Whether the page is believed to have unused line pointers (`PD_HAS_FREE_LINES`).
    #[must_use]
    pub const fn has_free_lines(&self) -> bool {
        self.state.has(Flag::HasFreeLines)
    }
}
