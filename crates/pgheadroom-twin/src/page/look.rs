//! A page's memory, asked for ahead of time.

use pgheadroom_layout::OffsetNumber;
use pgheadroom_layout::page::MAX_HEAP_TUPLES_PER_PAGE;

use crate::memory::{Pieces, prefetch};
use crate::page::HeapPage;
#[cfg(test)]
use crate::page::packed::{Link, Packed};

impl HeapPage {
    /// Whether there is a line pointer for a new tuple, or may be one more.
    pub(crate) fn has_line_pointer(&self) -> bool {
        self.item_count() < MAX_HEAP_TUPLES_PER_PAGE || self.unused_items > 0
    }

    /// Bytes of the items, and of all else that a page has; room for others included.
    #[cfg(test)]
    pub(crate) fn allocated_bytes(&self) -> [usize; 2] {
        let items = self.items.capacity() * size_of::<Packed>();
        let links = self.links.capacity() * size_of::<Link>();
        [items, size_of::<Self>() + links]
    }

    /// The memory of the items.
    pub(crate) fn pieces(&self, pieces: &mut Pieces) {
        pieces.add(&self.items);
    }

    /// Asks for the memory of the items that pruning the pending update and updating this tuple
    /// will touch.
    #[inline]
    pub(crate) fn look_at_items(&self, offset: OffsetNumber) {
        for offset in [self.pending.root, self.pending.new, offset] {
            if let Some(item) = self.items.get(usize::from(offset.0).wrapping_sub(1)) {
                prefetch(item);
            }
        }
    }

    /// Asks for the memory of all that a page is but for its items.
    #[inline]
    pub(crate) fn look_at_header(&self) {
        prefetch(self);
        prefetch(&self.links);
    }

    /// Asks for the memory of a version that will be looked at.
    #[inline]
    pub(crate) fn look_at_version(&self, offset: OffsetNumber) {
        let position = usize::from(offset.0).wrapping_sub(1);
        if let Some(item) = self.items.get(position) {
            prefetch(item);
        }
        if let Some(link) = self.links.get(position) {
            prefetch(link);
        }
    }

    /// Asks for the memory of tuples that pruning the page will look at.
    #[inline]
    pub(crate) fn look_at_unsettled(&self) {
        if self.has_unsettled {
            let touched = self.unsettled.listed();
            touched
                .take(4)
                .for_each(|offset| self.look_at_version(offset));
        }
    }
}
