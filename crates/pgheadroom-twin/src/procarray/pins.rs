//! Heap pages that backends keep pinned, which nobody else can prune.

use pgheadroom_layout::BlockNumber;

use crate::checkpoint::ForkId;
use crate::procarray::{Backend, ProcArray, packed};

impl ProcArray {
    /// The running statement has found a row on this page, which it keeps pinned until it ends or
    /// finds the next one.
    ///
    /// Source: `IndexNext`, src/backend/executor/nodeIndexscan.c: the scan's slot holds the pin.
    #[inline]
    pub(crate) const fn note_slot(&mut self, fork: ForkId, block: BlockNumber) {
        self.mine.slot = Some((fork, block));
    }

    /// An index scan of the running statement has come to its end, and fetched this page last.
    #[inline]
    pub(crate) const fn note_fetched(&mut self, fork: ForkId, block: BlockNumber) {
        if self.index_scans_keep_pin {
            self.mine.fetched = Some((fork, block));
        }
    }

    /// A bitmap scan of the running statement has come to its end, and keeps its last page.
    #[inline]
    pub(crate) const fn note_end_of_bitmap(&mut self, fork: ForkId, block: BlockNumber) {
        self.mine.fetched = Some((fork, block));
    }

    /// Whether another backend has the page pinned, so that nobody can prune it.
    ///
    /// Source: `ConditionalLockBufferForCleanup`, src/backend/storage/buffer/bufmgr.c
    /// (REL_18_STABLE).
    #[inline]
    pub(crate) fn is_pinned(&self, fork: ForkId, block: BlockNumber) -> bool {
        let page = (fork, block);
        if self.others.len() == 1 {
            return self.mine.cursor_slot == Some(page); // there is no other backend
        }
        self.is_pinned_by_some(page)
    }

    fn is_pinned_by_some(&self, page: (ForkId, BlockNumber)) -> bool {
        let has = |other: &Backend| other.cursor_slot == Some(page) || other.pins.contains(&page);
        self.slots.contains(&packed(Some(page)))
            || self.mine.cursor_slot == Some(page)
            || (self.with_more_pins > 0 && self.others.iter().any(|other| has(other)))
    }

    /// Whether the running statement of another backend has found a row on this page.
    pub(crate) fn has_slot_on(&self, backend: usize, fork: ForkId, block: BlockNumber) -> bool {
        self.slots[backend] == packed(Some((fork, block)))
    }

    /// The same for a backend that is none of these: the active one's pins count too.
    pub(crate) fn is_pinned_by_any(&self, fork: ForkId, block: BlockNumber) -> bool {
        self.mine.slot == Some((fork, block)) || self.is_pinned(fork, block)
    }
}
