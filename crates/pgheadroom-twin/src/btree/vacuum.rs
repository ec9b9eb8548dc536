//! VACUUM of an index: dead entries, empty pages, and free pages for the map.

use std::ops::Range;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::page::BLCKSZ;

use crate::btree::delete::{Candidate, Doomed};
use crate::btree::page::PageState;
use crate::btree::record::{Record, RecordKind, Sink};
use crate::btree::slots::tid_of;
use crate::btree::{Btree, Table};
use crate::page::Tid;
use crate::transaction::Xid;

/// What a pass over the index found. Source: `IndexBulkDeleteResult`, src/include/access/genam.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkDeletion {
    /// Entries removed.
    pub tuples_removed: u64,
    /// Entries left.
    pub index_tuples: u64,
    /// Pages deleted by this pass.
    pub pages_newly_deleted: u32,
    /// All deleted pages.
    pub pages_deleted: u32,
    /// Those that can be used again.
    pub pages_free: u32,
}

/// A pass that is over, before the pages that it deleted become free.
#[derive(Debug)]
pub(crate) struct OpenDeletion {
    result: BulkDeletion,
    pending_pages: Vec<BtPendingFsm>,
}

/// A page that a pass has deleted, and that is not free yet. Source: `BTPendingFSM`,
/// src/include/access/nbtree.h (REL_18_STABLE).
#[derive(Debug, Clone, Copy)]
pub(super) struct BtPendingFsm {
    pub block: BlockNumber,
    /// Where the pass was: at the leaf, of which this page may be a parent or the next one.
    pub scanned: BlockNumber,
    /// The transaction that must be old enough.
    pub safe_xid: Xid,
}

/// A pass over an index.
pub(super) struct Pass<'a> {
    pub next_xid: Xid,
    pub scanned: BlockNumber,
    pub result: &'a mut BulkDeletion,
    /// Pages deleted by this pass.
    pub pending_pages: Vec<BtPendingFsm>,
}

impl Btree {
    /// Removes all entries whose TID is dead, and pages that become empty.
    ///
    /// `next_xid` is the next transaction to be assigned, which unlinked pages remember.
    ///
    /// Source: `btbulkdelete` and `btvacuumscan`, src/backend/access/nbtree/nbtree.c
    /// (REL_18_STABLE). Differs: no page is split meanwhile.
    pub fn bulk_delete(
        &mut self,
        previous: Option<BulkDeletion>,
        is_dead: impl FnMut(Tid) -> bool,
        next_xid: Xid,
        table: &impl Table,
        sink: &mut impl Sink,
    ) -> BulkDeletion {
        let mut result = previous.unwrap_or_default();
        self.vacuum_scan(&mut result, Some(is_dead), next_xid, table, sink);
        result
    }

    /// The first part of [`Btree::bulk_delete`], the pass over the pages, where others go on before
    /// the second.
    pub(crate) fn begin_bulk_delete(
        &mut self,
        is_dead: impl FnMut(Tid) -> bool,
        next_xid: Xid,
        table: &impl Table,
        sink: &mut impl Sink,
    ) -> OpenDeletion {
        let mut result = BulkDeletion::default();
        let pending_pages = self.scan_pages(&mut result, Some(is_dead), next_xid, table, sink);
        OpenDeletion {
            result,
            pending_pages,
        }
    }

    /// Pages that the pass has deleted when it was at one of these, were it not until now.
    pub(crate) fn delete_again(
        &mut self,
        open: &mut OpenDeletion,
        pages: Range<BlockNumber>,
        next_xid: Xid,
    ) {
        for pending in &mut open.pending_pages {
            if pages.contains(&pending.scanned) {
                pending.safe_xid = next_xid;
                self.page_mut(pending.block).state = PageState::Deleted { safe_xid: next_xid };
            }
        }
    }

    /// The second part: pages that the pass has deleted are free at once, if by now nobody can be
    /// on the way to them any more.
    pub(crate) fn end_bulk_delete(
        &mut self,
        mut open: OpenDeletion,
        table: &impl Table,
        sink: &mut impl Sink,
    ) -> BulkDeletion {
        self.pendingfsm_finalize(&mut open.result, &open.pending_pages, table, sink);
        open.result
    }

    /// The last step of each VACUUM. `bulk` is what [`Btree::bulk_delete`] returned, if it ran.
    ///
    /// Source: `btvacuumcleanup`, `_bt_vacuum_needs_cleanup` and `_bt_set_cleanup_info`,
    /// src/backend/access/nbtree (REL_18_STABLE; same since 14).
    pub fn vacuum_cleanup(
        &mut self,
        bulk: Option<BulkDeletion>,
        next_xid: Xid,
        table: &impl Table,
        sink: &mut impl Sink,
    ) -> Option<BulkDeletion> {
        let noted = self.meta.last_cleanup_num_delpages;
        let result = match bulk {
            Some(result) => result,
            None if noted > self.page_count() / 20 => {
                let mut result = BulkDeletion::default();
                self.vacuum_scan(&mut result, None::<fn(Tid) -> bool>, next_xid, table, sink);
                result
            }
            None => return None,
        };
        let not_free = result.pages_deleted - result.pages_free;
        if not_free != noted {
            self.meta.last_cleanup_num_delpages = not_free;
            let record = Record::new(RecordKind::MetaCleanup, 0)
                .metapage(self.behaviour.btree_metadata_bytes);
            self.log(sink, &record);
        }
        Some(result)
    }

    fn vacuum_scan(
        &mut self,
        result: &mut BulkDeletion,
        is_dead: Option<impl FnMut(Tid) -> bool>,
        next_xid: Xid,
        table: &impl Table,
        sink: &mut impl Sink,
    ) {
        let pending_pages = self.scan_pages(result, is_dead, next_xid, table, sink);
        self.pendingfsm_finalize(result, &pending_pages, table, sink);
    }

    /// Looks at every page; those that it deleted, with the transaction that must be old enough.
    ///
    /// Source: `btvacuumscan`, nbtree.c (REL_18_STABLE).
    fn scan_pages(
        &mut self,
        result: &mut BulkDeletion,
        mut is_dead: Option<impl FnMut(Tid) -> bool>,
        next_xid: Xid,
        table: &impl Table,
        sink: &mut impl Sink,
    ) -> Vec<BtPendingFsm> {
        result.index_tuples = 0;
        result.pages_deleted = 0;
        result.pages_free = 0;
        let mut pass = Pass {
            next_xid,
            scanned: BlockNumber(0),
            result,
            pending_pages: Vec::new(),
        };
        for block in 1..self.page_count() {
            pass.scanned = BlockNumber(block);
            self.vacuum_page(&mut pass, is_dead.as_mut(), table, sink);
        }
        pass.pending_pages
    }

    /// Source: `_bt_pendingfsm_finalize`, src/backend/access/nbtree/nbtpage.c, which ends at the
    /// first that is not, and the end of `btvacuumscan`, nbtree.c (REL_18_STABLE; same since 14).
    fn pendingfsm_finalize(
        &mut self,
        result: &mut BulkDeletion,
        pending_pages: &[BtPendingFsm],
        table: &impl Table,
        sink: &mut impl Sink,
    ) {
        for &BtPendingFsm {
            block, safe_xid, ..
        } in pending_pages
        {
            if !table.is_removable(safe_xid) {
                break;
            }
            self.record_free_page(block, sink);
            result.pages_free += 1;
        }
        if result.pages_free > 0 {
            self.fsm
                .vacuum(BlockNumber(0), None, &mut |block| sink.fsm_hint(block));
        }
    }

    /// Source: `btvacuumpage`, nbtree.c (REL_18_STABLE).
    fn vacuum_page(
        &mut self,
        pass: &mut Pass<'_>,
        is_dead: Option<&mut impl FnMut(Tid) -> bool>,
        table: &impl Table,
        sink: &mut impl Sink,
    ) {
        let block = pass.scanned;
        match self.page(block).state {
            PageState::Deleted { safe_xid } => {
                pass.result.pages_deleted += 1;
                if table.is_removable(safe_xid) {
                    self.record_free_page(block, sink);
                    pass.result.pages_free += 1;
                }
                return;
            }
            PageState::HalfDead { .. } => {
                self.delete_page(block, pass, sink);
                return;
            }
            PageState::Live if !self.page(block).is_leaf() => return,
            PageState::Live => {}
        }
        if let Some(is_dead) = is_dead {
            let doomed = self.dead_tids(block, is_dead);
            pass.result.tuples_removed += doomed.len() as u64;
            self.remove_tids(block, &doomed, RecordKind::Vacuum, sink);
        }
        let page = self.page(block);
        if page.is_empty() {
            self.delete_page(block, pass, sink);
        } else {
            let tids: usize = page.data().map(|(_, item)| item.tid_count()).sum();
            pass.result.index_tuples += tids as u64;
        }
    }

    fn dead_tids(&self, block: BlockNumber, is_dead: &mut impl FnMut(Tid) -> bool) -> Vec<Doomed> {
        let page = self.page(block);
        let slots = page.slots();
        let mut doomed = Vec::new();
        for position in page.first_data()..page.len() {
            slots.each_tid_number(position, |tid| {
                if is_dead(tid_of(tid)) {
                    doomed.push(Candidate::new(tid, position).doomed());
                }
            });
        }
        doomed
    }

    /// Source: `RecordFreeIndexPage`, src/backend/storage/freespace/indexfsm.c.
    fn record_free_page(&mut self, block: BlockNumber, sink: &mut impl Sink) {
        self.fsm
            .record(block, BLCKSZ - 1, &mut |block| sink.fsm_hint(block));
    }
}
