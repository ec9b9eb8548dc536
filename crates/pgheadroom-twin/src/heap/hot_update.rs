//! A HOT update of which all is known: the page is pruned, and the version settled and the first of
//! its chain.

use crate::heap::Heap;
use crate::page::{Settled, Tid};
use crate::transaction::{Transactions, Xid};

use pgheadroom_layout::BlockNumber;

/// What a HOT update made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HotUpdated {
    /// The new version.
    pub new: Tid,
    /// Its length.
    pub lp_len: u16,
    /// Whether it cleared the page's bits in the visibility map.
    pub cleared_visibility: bool,
}

impl Heap {
    /// Prunes a page that is simple; see [`HeapPage::prune_deferred`](crate::page::HeapPage).
    #[inline(always)]
    pub(crate) fn prune_deferred(&mut self, block: BlockNumber) -> Option<Settled> {
        self.pages[block.0 as usize].prune_deferred(&self.behaviour)
    }

    /// The row whose newest version is at this TID; see
    /// [`HeapPage::live_row`](crate::page::HeapPage).
    #[inline(always)]
    pub(crate) fn live_row(&self, tid: Tid, transactions: &impl Transactions) -> Option<u32> {
        let page = self.pages.get(tid.block.0 as usize)?;
        page.live_row(tid.offset, transactions)
    }

    /// As [`Heap::update`], where the new version is as long as the old one, takes its place on the
    /// page, and nothing is to be carried over to it; `None` when it is not that simple, and
    /// nothing was done then. `settled` is what pruning has left open just before.
    #[inline(always)]
    pub(crate) fn simple_hot_update(
        &mut self,
        old: Tid,
        xid: Xid,
        settled: Settled,
    ) -> Option<HotUpdated> {
        let page = &mut self.pages[old.block.0 as usize];
        let was_visible = page.is_all_visible();
        let Some((offset, lp_len)) = page.simple_hot_update(old.offset, xid, settled) else {
            page.leave_freed(settled);
            return None;
        };
        let block = old.block;
        Some(HotUpdated {
            new: Tid { block, offset },
            lp_len,
            cleared_visibility: was_visible && self.clear_visibility(block),
        })
    }
}
