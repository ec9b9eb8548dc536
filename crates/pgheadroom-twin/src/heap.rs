//! A table's pages and where PostgreSQL puts new row versions.
//!
//! ```text
//! insert:  target block of the session -> free space map -> last page -> extend by a page
//! update:  the old version's page if it has room, whatever the fillfactor; else as an insert
//! ```
//!
//! Each operation says what it did, so that counters and WAL can be derived elsewhere. Left out:
//! indexes, and when statements run (the executor's part).

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page as page_layout;
use pgheadroom_layout::version::{Behaviour, BulkExtension};
use pgheadroom_layout::{BlockNumber, HeapFillfactor, LayoutError, OffsetNumber};

use crate::fsm::FreeSpaceMap;
use crate::page::{HeapPage, Tid, Tuple, XmaxHint};
use crate::prune::{self, PrunePlan};
use crate::transaction::Xid;
use crate::vm::VisibilityMap;
use crate::watch::{EventKind, Watch};

mod bulk;
mod extension_lock;
mod hot_update;
mod readers;
mod rewrite;
mod room;
mod row_lock;
mod watched;

pub use bulk::BulkInsert;
use extension_lock::{EXTRA_PAGES, ExtensionLock};
pub use extension_lock::{Extensions, Placing, Processors};
pub(crate) use rewrite::Rewrite;

/// Most pages by which a table grows at once (16 and later).
///
/// Source: `MAX_BUFFERS_TO_EXTEND_BY`, src/backend/access/heap/hio.c (REL_16_STABLE).
const MAX_EXTEND_PAGES: u32 = 64;

/// What one session remembers about a table: where it inserted last.
///
/// Forgotten at every change of the table's catalogue entry: VACUUM, ANALYZE, DDL.
/// Source: `RelationGetTargetBlock`, src/include/utils/rel.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InsertTargetBlock(pub Option<BlockNumber>);

/// How a statement inserts.
#[derive(Debug)]
pub enum Mode<'a> {
    /// INSERT and UPDATE.
    Row,
    /// COPY: with the number of pages that the rest of the batch needs.
    Copy(&'a mut BulkInsert, u32),
    /// CREATE TABLE AS: never asks the free space map.
    WithoutFsm(&'a mut BulkInsert),
}

/// A row version that was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Where it is.
    pub tid: Tid,
    /// Whether it is the first on its page: the record initialises the page and needs no image.
    pub initialises_page: bool,
    /// Whether it cleared the page's bits in the visibility map.
    pub cleared_visibility: bool,
}

/// What an update did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Updated {
    /// The new version.
    pub new: Placed,
    /// Whether it is a HOT update: no index entry is needed.
    pub is_hot: bool,
    /// Whether the new version is on another page.
    pub is_newpage: bool,
    /// Whether a LOCK record came first, and whether that cleared the frozen bit.
    pub lock: Option<bool>,
    /// Whether the old page's bits in the visibility map were cleared.
    pub cleared_old_visibility: bool,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Heap {
    behaviour: Behaviour,
    fillfactor: HeapFillfactor,
    pages: Vec<HeapPage>,
    fsm: FreeSpaceMap,
    vm: VisibilityMap,
    extension_lock: ExtensionLock,
    watch: Option<Box<Watch>>,
    last_prune: PrunePlan,
}

impl Heap {
    /// An empty table.
    #[must_use]
    pub fn new(behaviour: Behaviour, fillfactor: HeapFillfactor) -> Self {
        Self {
            behaviour,
            fillfactor,
            pages: Vec::new(),
            fsm: FreeSpaceMap::default(),
            vm: VisibilityMap::default(),
            extension_lock: ExtensionLock::default(),
            watch: None,
            last_prune: PrunePlan::default(),
        }
    }

    /// Pages of the main fork.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // extension refuses to pass the last block number
    pub fn page_count(&self) -> u32 {
        self.pages.len() as u32
    }

    /// All pages in order.
    #[must_use]
    pub fn pages(&self) -> &[HeapPage] {
        &self.pages
    }

    /// The version's behaviour.
    #[must_use]
    pub const fn behaviour(&self) -> &Behaviour {
        &self.behaviour
    }

    pub(crate) fn page_mut(&mut self, block: BlockNumber) -> &mut HeapPage {
        &mut self.pages[block.0 as usize]
    }

    /// Its option `fillfactor`.
    pub(crate) const fn fillfactor(&self) -> HeapFillfactor {
        self.fillfactor
    }

    /// ALTER TABLE ... SET (fillfactor): pages stay as they are.
    pub const fn set_fillfactor(&mut self, fillfactor: HeapFillfactor) {
        self.fillfactor = fillfactor;
    }

    /// Free bytes below which a reader prunes a page.
    pub(crate) fn prune_below_bytes(&self) -> u32 {
        prune::min_free_bytes(self.fillfactor)
    }

    pub(crate) fn truncate_pages(&mut self, pages: u32) {
        self.pages.truncate(pages as usize);
        self.extension_lock.forget();
    }

    pub(crate) fn vm_mut(&mut self) -> &mut VisibilityMap {
        &mut self.vm
    }

    /// The free space map, to look into.
    #[must_use]
    pub const fn fsm(&self) -> &FreeSpaceMap {
        &self.fsm
    }

    /// The free space map.
    pub fn fsm_mut(&mut self) -> &mut FreeSpaceMap {
        &mut self.fsm
    }

    /// The visibility map.
    #[must_use]
    pub const fn vm(&self) -> &VisibilityMap {
        &self.vm
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// [`LayoutError::TupleTooBig`] when it does not fit a page.
    ///
    /// Source: `heap_insert`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub fn insert(
        &mut self,
        target: &mut InsertTargetBlock,
        mode: Mode<'_>,
        row: u32,
        tuple_bytes: u16,
        xid: Xid,
        log: &mut impl Placing,
    ) -> Result<Placed, LayoutError> {
        let block = self.page_for_tuple(target, mode, tuple_bytes, log)?;
        Ok(self.put_row(block, Tuple::new(row, tuple_bytes, xid)))
    }

    /// Replaces a row version.
    ///
    /// `hot_allowed` says that no column of a HOT-blocking index changed, `needs_toast` that the
    /// old or the new version has values out of line or exceeds the threshold.
    ///
    /// # Errors
    /// [`LayoutError::TupleTooBig`] when the new version does not fit a page.
    ///
    /// # Panics
    /// When there is no tuple at `old`.
    ///
    /// Source: `heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE). Left out: row
    /// locks, which the executor carries over to the new version (`executor/row_lock.rs`).
    #[allow(clippy::too_many_arguments)] // one per question that heap_update asks
    pub fn update(
        &mut self,
        target: &mut InsertTargetBlock,
        old: Tid,
        tuple_bytes: u16,
        hot_allowed: bool,
        needs_toast: bool,
        xid: Xid,
        log: &mut impl Placing,
    ) -> Result<Updated, LayoutError> {
        let free = self.pages[old.block.0 as usize].heap_free_space();
        let fits = maxalign(u32::from(tuple_bytes)) <= free;
        let lock = (needs_toast || !fits).then(|| self.vm.clear_frozen(old.block));
        let block = if fits {
            old.block
        } else {
            self.page_for_tuple(target, Mode::Row, tuple_bytes, log)?
        };
        let is_newpage = block != { old.block };
        let is_hot = !is_newpage && hot_allowed;
        let cleared_old_visibility = self.clear_visibility(old.block);
        let old_page = &mut self.pages[old.block.0 as usize];
        let new = if is_hot {
            let offset = old_page.hot_update(old.offset, xid, tuple_bytes);
            Placed {
                tid: Tid { block, offset },
                initialises_page: false,
                cleared_visibility: false,
            }
        } else {
            if is_newpage {
                old_page.set_full();
            }
            old_page.set_prunable(xid);
            let row = old_page.row(old.offset).expect("a tuple");
            let mut tuple = Tuple::new(row, tuple_bytes, xid);
            tuple.is_updated = true;
            let new = self.put(block, tuple);
            self.pages[old.block.0 as usize].set_replaced(old.offset, xid, false, new.tid);
            new
        };
        self.note_update(old, new.tid, is_hot);
        Ok(Updated {
            new,
            is_hot,
            is_newpage,
            lock,
            cleared_old_visibility,
        })
    }

    fn note_update(&mut self, old: Tid, new: Tid, is_hot: bool) {
        let (from, to) = (old.offset.0, new.offset.0);
        if !old.shares_page(new) {
            self.note(old.block, || EventKind::UpdateLeft {
                old: from,
                to: new.into(),
            });
            self.note(new.block, || EventKind::UpdateArrived {
                new: to,
                from: old.into(),
            });
        } else if is_hot {
            self.note(old.block, || EventKind::HotUpdate { old: from, new: to });
        } else {
            self.note(old.block, || EventKind::ColdUpdate { old: from, new: to });
        }
    }

    /// Deletes a row version; says whether that cleared the page's visibility bits.
    ///
    /// # Panics
    /// When there is no tuple.
    ///
    /// Source: `heap_delete`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub fn delete(&mut self, tid: Tid, xid: Xid) -> bool {
        let page = &mut self.pages[tid.block.0 as usize];
        page.set_prunable(xid);
        let mut tuple = page.tuple_mut(tid.offset);
        tuple.xmax = xid;
        tuple.xmax_hint = XmaxHint::Unset;
        tuple.is_locked_only = false;
        tuple.is_hot_updated = false;
        tuple.next = tid;
        drop(tuple);
        let cleared = self.clear_visibility(tid.block);
        let item = tid.offset.0;
        self.note(tid.block, || EventKind::Delete { item });
        cleared
    }

    /// A tuple that nobody has seen is dead, by the snapshot's xmin of who has put it there.
    ///
    /// Source: `heap_abort_speculative`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub fn kill(&mut self, tid: Tid, transaction_xmin: Xid) {
        self.pages[tid.block.0 as usize].set_prunable(transaction_xmin);
        let item = tid.offset.0;
        self.note(tid.block, || EventKind::Delete { item });
    }

    /// The page that takes a new tuple of this length; remembered as the session's target.
    ///
    /// Source: `RelationGetBufferForTuple`, src/backend/access/heap/hio.c (REL_13_STABLE,
    /// REL_16_STABLE, REL_18_STABLE). Differs: who waits for the extension lock has its page at
    /// once (`extension_lock`).
    fn page_for_tuple(
        &mut self,
        target: &mut InsertTargetBlock,
        mode: Mode<'_>,
        tuple_bytes: u16,
        log: &mut impl Placing,
    ) -> Result<BlockNumber, LayoutError> {
        let rule = self.behaviour.insert_target;
        let wanted = page_layout::target_free_space(u32::from(tuple_bytes), self.fillfactor, rule)?;
        let (mut bulk, hint, use_fsm) = match mode {
            Mode::Row => (None, 1, true),
            Mode::Copy(bulk, hint) => (Some(bulk), hint.max(1), true),
            Mode::WithoutFsm(bulk) => (Some(bulk), 1, false),
        };
        if let Some(wanted) = wanted {
            let mut next = bulk
                .as_ref()
                .and_then(|state| state.current)
                .or(target.0)
                .or_else(|| self.first_target(wanted, use_fsm, log));
            while let Some(block) = next {
                let page = &mut self.pages[block.0 as usize];
                page.initialise();
                if let Some(state) = &mut bulk {
                    state.current = Some(block);
                }
                let free = page.heap_free_space();
                if wanted <= free {
                    target.0 = Some(block);
                    return Ok(block);
                }
                next = if let Some(unused) = bulk.as_mut().and_then(|state| state.take_free()) {
                    if use_fsm {
                        self.fsm.record(block, free, log);
                    }
                    Some(unused)
                } else if use_fsm {
                    self.need_map(log)?;
                    self.tell_map(log);
                    self.fsm.record_and_get(block, free, wanted, log)
                } else {
                    None
                };
            }
        }
        let block = self.extend(bulk, hint, use_fsm, log)?;
        target.0 = Some(block);
        Ok(block)
    }

    /// The page that one tries first who has inserted nothing yet.
    fn first_target(
        &mut self,
        wanted: u32,
        use_fsm: bool,
        log: &mut impl Placing,
    ) -> Option<BlockNumber> {
        self.tell_map(log);
        let found = use_fsm.then(|| self.fsm.get(wanted, log)).flatten();
        found.or_else(|| {
            let lock = &self.extension_lock;
            let there = lock.pages_there(self.page_count(), log.extensions());
            there.checked_sub(1).map(BlockNumber)
        })
    }

    /// Adds pages and returns the session's own, which gets a header.
    ///
    /// Source: `RelationAddBlocks`, src/backend/access/heap/hio.c (REL_16_STABLE, REL_17_STABLE);
    /// `RelationGetBufferForTuple` and `RelationAddExtraBlocks`, same file (REL_15_STABLE).
    fn extend(
        &mut self,
        bulk: Option<&mut BulkInsert>,
        hint: u32,
        use_fsm: bool,
        log: &mut impl Placing,
    ) -> Result<BlockNumber, LayoutError> {
        self.tell_map(log);
        let requests = self.extension_lock.requests_seen(log.extensions());
        let to_15 = self.behaviour.bulk_extension == BulkExtension::PerWaiter;
        let pages = self.page_count();
        if to_15
            && use_fsm
            && let Some(extensions) = log.extensions().filter(|_| requests > 0)
            && let Some((found, more)) = self.extension_lock.join(pages, extensions)
        {
            self.add_pages(more)?;
            self.pages[found.0 as usize].initialise();
            return Ok(found);
        }
        let first = pages;
        let count = match (self.behaviour.bulk_extension, &bulk) {
            (BulkExtension::PerWaiter, _) if use_fsm && requests > 0 => 1 + EXTRA_PAGES,
            (BulkExtension::PerWaiter, _) => 1,
            (BulkExtension::ByRequest { .. }, None) if !use_fsm => 1,
            (BulkExtension::ByRequest { .. }, state) => {
                let before = state
                    .as_ref()
                    .map_or(0, |state| state.already_extended_pages);
                let wanted = hint.saturating_mul(1 + requests);
                wanted.max(before).min(MAX_EXTEND_PAGES)
            }
        };
        self.add_pages(count)?;
        self.pages[first as usize].initialise();
        let own = if use_fsm { hint.min(count) } else { count };
        let known = first + own..first + count;
        if let Some(extensions) = log.extensions().filter(|one| one.has_begun()) {
            let lock = &mut self.extension_lock;
            let more = lock.ask(known, first, to_15, extensions);
            self.add_pages(more)?;
        } else {
            self.make_known(&known.collect::<Vec<u32>>(), log);
        }
        if let Some(state) = bulk {
            state.current = Some(BlockNumber(first));
            state.free =
                (count > 1).then(|| (BlockNumber(first + 1), BlockNumber(first + count - 1)));
            state.already_extended_pages += count;
        }
        Ok(BlockNumber(first))
    }

    /// Adds pages of zeros.
    fn add_pages(&mut self, count: u32) -> Result<(), LayoutError> {
        let pages = u64::from(self.page_count()) + u64::from(count);
        if pages > page_layout::MAX_PAGES {
            return Err(LayoutError::TooManyPages {
                pages,
                max: page_layout::MAX_PAGES,
            });
        }
        for _ in 0..count {
            self.pages.push(HeapPage::never_initialised());
        }
        Ok(())
    }

    /// Puts a new row on a page that has room.
    fn put_row(&mut self, block: BlockNumber, tuple: Tuple) -> Placed {
        let placed = self.put(block, tuple);
        let item = placed.tid.offset.0;
        self.note(block, || EventKind::Insert { item });
        placed
    }

    /// Puts a tuple on a page that has room.
    fn put(&mut self, block: BlockNumber, tuple: Tuple) -> Placed {
        let cleared_visibility = self.clear_visibility(block);
        let page = &mut self.pages[block.0 as usize];
        if self.behaviour.insert_sets_prune_xid {
            page.set_prunable(tuple.xmin);
        }
        let offset = page.add(block, tuple);
        Placed {
            tid: Tid { block, offset },
            initialises_page: offset == OffsetNumber(1) && page.item_count() == 1,
            cleared_visibility,
        }
    }

    /// Clears a page's flag and its bits; says whether bits were cleared.
    fn clear_visibility(&mut self, block: BlockNumber) -> bool {
        let page = &mut self.pages[block.0 as usize];
        if !page.is_all_visible() {
            return false;
        }
        page.set_all_visible(false);
        self.note(block, || EventKind::NoLongerVisible);
        self.vm.clear(block)
    }
}
