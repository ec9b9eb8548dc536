//! Relations that are written as a whole: rewritten tables and the indexes built on them.
//!
//! ```text
//! wal_level replica, logical   every page is logged as it is (XLOG FPI), and written at once
//! wal_level minimal            nothing is logged; at commit a small relation is logged whole
//!                              (32 pages a record, holes too, no new page), a large one is synced
//!                              instead
//! ```

use std::ops::Range;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::version::Behaviour;
use pgheadroom_layout::wal_record::{Image, Page, index_build_record};

use crate::checkpoint::ForkId;
use crate::wal::{RecordType, Wal};

/// Pages of a record that logs a range of a relation.
///
/// Source: `XLR_MAX_BLOCK_ID` in `log_newpage_range`, src/backend/access/transam/xloginsert.c
/// (REL_15_STABLE, REL_18_STABLE).
const RANGE_PAGES: usize = 32;

impl Wal {
    /// `wal_level = minimal`: relations made by a transaction are logged at its end, if they have
    /// fewer pages than this, and not at all otherwise.
    ///
    /// Source: `RelationNeedsWAL`, src/include/utils/rel.h, and `smgrDoPendingSyncs`,
    /// src/backend/catalog/storage.c (REL_18_STABLE).
    pub fn skip_new_relations(&mut self, logged_below_pages: u32) {
        self.logged_below_pages = Some(logged_below_pages);
    }

    /// Whether what a transaction writes to relations of its own is not logged.
    pub(crate) const fn skips_new_relations(&self) -> bool {
        self.logged_below_pages.is_some()
    }

    /// A fork in the place of this one, whose pages are gone.
    pub(crate) fn replace_fork(&mut self, old: ForkId) -> ForkId {
        self.pages.truncate(old, 0);
        self.owners.push(self.owners[old.0]);
        self.pages.add_fork()
    }

    /// This fork's pages are gone.
    pub(crate) fn drop_fork(&mut self, fork: ForkId) {
        self.pages.truncate(fork, 0);
    }

    /// All pages of a new fork are written, past the buffers, and logged; their holes in order.
    ///
    /// Source: `raw_heap_insert` and `end_heap_rewrite`, src/backend/access/heap/rewriteheap.c;
    /// `_bt_blwritepage`, src/backend/access/nbtree/nbtsort.c; `smgr_bulk_flush`,
    /// src/backend/storage/smgr/bulk_write.c (REL_15_STABLE, REL_18_STABLE).
    pub(crate) fn write_fork(&mut self, fork: ForkId, holes: &[u32], behaviour: &Behaviour) {
        if self.skips_new_relations() {
            return;
        }
        let per_record = behaviour.index_build_pages_per_record as usize;
        let pages: Vec<_> = (0..).map(BlockNumber).zip(holes.iter().copied()).collect();
        self.log_whole(fork, &pages, per_record, false);
    }

    /// All pages of a new fork are logged from the buffers; their holes in order.
    ///
    /// Source: `log_newpage_range`, src/backend/access/transam/xloginsert.c (REL_18_STABLE).
    pub(crate) fn log_fork(&mut self, fork: ForkId, holes: &[u32]) {
        if !self.skips_new_relations() {
            let pages: Vec<_> = (0..).map(BlockNumber).zip(holes.iter().copied()).collect();
            self.log_whole(fork, &pages, RANGE_PAGES, true);
        }
    }

    /// The transaction that made this fork, with so many pages, ends.
    pub(crate) fn end_new_fork(&mut self, fork: ForkId, pages: u32) {
        self.end_new_fork_with_new_pages(fork, pages, &(0..0));
    }

    /// The same of a fork in which pages are new, as a file is extended: they are not logged.
    pub(crate) fn end_new_fork_with_new_pages(
        &mut self,
        fork: ForkId,
        pages: u32,
        new: &Range<u32>,
    ) {
        if self.logged_below_pages.is_some_and(|limit| pages < limit) {
            let blocks = (0..pages).filter(|block| !new.contains(block));
            let pages: Vec<_> = blocks.map(|block| (BlockNumber(block), 0)).collect();
            self.log_whole(fork, &pages, RANGE_PAGES, true);
        }
    }

    /// Pages by block and hole.
    fn log_whole(
        &mut self,
        fork: ForkId,
        pages: &[(BlockNumber, u32)],
        per_record: usize,
        in_buffers: bool,
    ) {
        for pages in pages.chunks(per_record) {
            let mut images: Vec<Image> = Vec::with_capacity(pages.len());
            for &(block, hole) in pages {
                if in_buffers {
                    self.pages.log(fork, block);
                } else {
                    self.pages.log_written(fork, block);
                }
                if let Page::Image(image) = self.image(fork, block, hole) {
                    images.push(image);
                }
            }
            self.named = self.owners[fork.0];
            self.record(RecordType::Fpi, index_build_record(&images));
        }
    }
}
