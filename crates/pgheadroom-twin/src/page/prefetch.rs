//! Prefetching a page's memory into the processor's cache; changes nothing.

use pgheadroom_layout::OffsetNumber;
use pgheadroom_layout::page::MAX_HEAP_TUPLES_PER_PAGE;

use crate::memory::{Pieces, prefetch};
use crate::page::HeapPage;
use crate::page::state::Flag;
#[cfg(test)]
use crate::page::{packed::Packed, touched::Link};

impl HeapPage {
    /// Whether there is a line pointer for a new tuple, or may be one more.
    pub(crate) fn has_line_pointer(&self) -> bool {
        self.item_count() < MAX_HEAP_TUPLES_PER_PAGE || self.state.unused() > 0
    }

    /// Bytes of the items, and of all else that a page has; room for others included.
    #[cfg(test)]
    pub(crate) fn allocated_bytes(&self) -> [usize; 2] {
        let items = self.items.capacity() * size_of::<Packed>();
        let touched = self.touched.as_ref().map_or(0, |touched| {
            size_of_val(&**touched) + touched.links.capacity() * size_of::<Link>()
        });
        [items, size_of::<Self>() + touched]
    }

    /// The memory of the items.
    pub(crate) fn pieces(&self, pieces: &mut Pieces) {
        pieces.add(&self.items);
    }

    /// Prefetches the items that pruning the deferred update and updating this tuple
    /// will touch.
    #[inline]
    pub(crate) fn prefetch_items(&self, offset: OffsetNumber) {
        for offset in [self.deferred.root, self.deferred.new, offset] {
            if let Some(item) = self.items.get(usize::from(offset.0).wrapping_sub(1)) {
                prefetch(item);
            }
        }
    }

    /// Prefetches the page's header.
    #[inline]
    pub(crate) fn prefetch_header(&self) {
        prefetch(self);
    }

    /// Prefetches a tuple that will be read, and what the page has besides its items.
    #[inline]
    pub(crate) fn prefetch_tuple(&self, offset: OffsetNumber) {
        if let Some(item) = self.items.get(usize::from(offset.0).wrapping_sub(1)) {
            prefetch(item);
        }
        self.prefetch_touched();
    }

    /// Prefetches what the page has besides its items.
    #[inline]
    pub(crate) fn prefetch_touched(&self) {
        if let Some(touched) = &self.touched {
            prefetch(&**touched);
        }
    }

    /// Prefetches the link of a tuple, where what the page has besides its items was prefetched.
    #[inline]
    pub(crate) fn prefetch_link(&self, offset: OffsetNumber) {
        let links = self.touched.as_ref().map(|touched| &touched.links);
        if let Some(link) = links.and_then(|links| links.get(usize::from(offset.0).wrapping_sub(1)))
        {
            prefetch(link);
        }
    }

    /// Prefetches tuples that pruning the page will read.
    #[inline]
    pub(crate) fn prefetch_unsettled(&self) {
        if self.state.has(Flag::HasUnsettled) {
            let touched = self.touched_tuples().listed();
            touched
                .take(4)
                .for_each(|offset| self.prefetch_tuple(offset));
        }
    }
}
