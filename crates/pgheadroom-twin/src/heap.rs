//! A table's pages and where PostgreSQL puts new row versions.
//!
//! ```text
//! insert:  target block of the session -> free space map -> last page -> extend by a page
//! update:  the old version's page if it has room, whatever the fillfactor; else as an insert
//! ```
//!
//! Each operation says what it did, so that counters and WAL can be derived elsewhere. Left out:
//! indexes, contention for the extension lock, and when statements run (the executor's part).

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::{self as page_layout, BLCKSZ, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER};
use pgheadroom_layout::version::{Behaviour, BulkExtension};
use pgheadroom_layout::{BlockNumber, HeapFillfactor, LayoutError, OffsetNumber};

use crate::fsm::{FreeSpaceMap, Modified};
use crate::page::{HeapPage, Tid, Tuple};
use crate::prune::{self, Visit};
use crate::transaction::{Transactions, Xid};
use crate::vm::VisibilityMap;

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

/// State of a bulk load: COPY, CREATE TABLE AS, rewrites.
///
/// Source: `BulkInsertStateData`, src/include/access/hio.h (REL_16_STABLE).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkInsert {
    current: Option<BlockNumber>,
    /// Pages of the last extension that are not used yet: first and last.
    free: Option<(BlockNumber, BlockNumber)>,
    already_extended_pages: u32,
}

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

    /// A reader looks at a page and may prune it.
    pub fn visit(&mut self, block: BlockNumber, transactions: &impl Transactions) -> Visit {
        let page = &mut self.pages[block.0 as usize];
        prune::visit(page, &self.behaviour, self.fillfactor, transactions)
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
        log: &mut impl Modified,
    ) -> Result<Placed, LayoutError> {
        let block = self.page_for_tuple(target, mode, tuple_bytes, log)?;
        Ok(self.put(block, new_tuple(row, tuple_bytes, xid)))
    }

    /// Inserts the rows of one COPY batch; one item for each page used, in order.
    ///
    /// # Errors
    /// [`LayoutError::TupleTooBig`] when a row does not fit a page.
    ///
    /// Source: `heap_multi_insert`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub fn insert_batch(
        &mut self,
        target: &mut InsertTargetBlock,
        bulk: &mut BulkInsert,
        rows: &[(u32, u16)],
        xid: Xid,
        log: &mut impl Modified,
    ) -> Result<Vec<Vec<Placed>>, LayoutError> {
        let reserve = self.fillfactor.reserve_bytes();
        let mut done = Vec::new();
        let mut left = rows;
        let mut started_empty = false;
        let (mut pages_needed, mut pages_used) = (0, 0);
        while let Some((&(row, tuple_bytes), rest)) = left.split_first() {
            if started_empty {
                pages_used += 1;
            } else {
                pages_needed = pages_for_batch(left, reserve);
                pages_used = 0;
            }
            let hint = pages_needed.saturating_sub(pages_used);
            let block = self.page_for_tuple(target, Mode::Copy(bulk, hint), tuple_bytes, log)?;
            started_empty = self.pages[block.0 as usize].items().is_empty();
            let mut placed = vec![self.put(block, new_tuple(row, tuple_bytes, xid))];
            left = rest;
            while let Some((&(row, tuple_bytes), rest)) = left.split_first() {
                let wanted = maxalign(u32::from(tuple_bytes)) + reserve;
                if self.pages[block.0 as usize].heap_free_space() < wanted {
                    break;
                }
                placed.push(self.put(block, new_tuple(row, tuple_bytes, xid)));
                left = rest;
            }
            // One record covers them all, so the page is initialised by all or by none.
            for one in &mut placed {
                one.initialises_page = started_empty;
            }
            done.push(placed);
        }
        Ok(done)
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
    /// Source: `heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE). Differs: an old
    /// version's row lock is not carried over.
    #[allow(clippy::too_many_arguments)] // one per question that heap_update asks
    pub fn update(
        &mut self,
        target: &mut InsertTargetBlock,
        old: Tid,
        tuple_bytes: u16,
        hot_allowed: bool,
        needs_toast: bool,
        xid: Xid,
        log: &mut impl Modified,
    ) -> Result<Updated, LayoutError> {
        let free = self.pages[old.block.0 as usize].heap_free_space();
        let fits = maxalign(u32::from(tuple_bytes)) <= free;
        let lock = (needs_toast || !fits).then(|| self.vm.clear_frozen(old.block));
        let block = if fits {
            old.block
        } else {
            self.page_for_tuple(target, Mode::Row, tuple_bytes, log)?
        };
        let is_newpage = block != old.block;
        let is_hot = !is_newpage && hot_allowed;
        let old_page = &mut self.pages[old.block.0 as usize];
        if is_newpage {
            old_page.set_full();
        }
        old_page.set_prunable(xid);
        let row = old_page.tuple_mut(old.offset).row;
        let cleared_old_visibility = self.clear_visibility(old.block);
        let mut tuple = new_tuple(row, tuple_bytes, xid);
        tuple.is_heap_only = is_hot;
        let new = self.put(block, tuple);
        let replaced = self.pages[old.block.0 as usize].tuple_mut(old.offset);
        replaced.xmax = xid;
        replaced.is_locked_only = false;
        replaced.is_hot_updated = is_hot;
        replaced.next = new.tid;
        Ok(Updated {
            new,
            is_hot,
            is_newpage,
            lock,
            cleared_old_visibility,
        })
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
        let tuple = page.tuple_mut(tid.offset);
        tuple.xmax = xid;
        tuple.is_locked_only = false;
        tuple.is_hot_updated = false;
        tuple.next = tid;
        self.clear_visibility(tid.block)
    }

    /// Locks a row version; says whether that cleared the page's frozen bit.
    ///
    /// # Panics
    /// When there is no tuple.
    ///
    /// Source: `heap_lock_tuple`, src/backend/access/heap/heapam.c (REL_18_STABLE). Differs: a
    /// second locker replaces the first (no multixacts).
    pub fn lock(&mut self, tid: Tid, xid: Xid) -> bool {
        let tuple = self.pages[tid.block.0 as usize].tuple_mut(tid.offset);
        tuple.xmax = xid;
        tuple.is_locked_only = true;
        tuple.is_hot_updated = false;
        tuple.next = tid;
        self.vm.clear_frozen(tid.block)
    }

    /// The page that takes a new tuple of this length; remembered as the session's target.
    ///
    /// Source: `RelationGetBufferForTuple`, src/backend/access/heap/hio.c (REL_13_STABLE,
    /// REL_16_STABLE, REL_18_STABLE). Differs: one session at a time, so nobody waits for the
    /// extension lock.
    fn page_for_tuple(
        &mut self,
        target: &mut InsertTargetBlock,
        mode: Mode<'_>,
        tuple_bytes: u16,
        log: &mut impl Modified,
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
                .or_else(|| use_fsm.then(|| self.fsm.get(wanted, log)).flatten())
                .or_else(|| self.page_count().checked_sub(1).map(BlockNumber));
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

    /// Adds pages and returns the first, which gets a header.
    ///
    /// Source: `RelationAddBlocks`, src/backend/access/heap/hio.c (REL_16_STABLE, REL_17_STABLE);
    /// one page before 16.
    fn extend(
        &mut self,
        bulk: Option<&mut BulkInsert>,
        hint: u32,
        use_fsm: bool,
        log: &mut impl Modified,
    ) -> Result<BlockNumber, LayoutError> {
        let first = self.page_count();
        let (count, last_page_searchable) = match (self.behaviour.bulk_extension, &bulk) {
            (BulkExtension::PerWaiter, _) => (1, true),
            (BulkExtension::ByRequest { .. }, None) if !use_fsm => (1, true),
            (
                BulkExtension::ByRequest {
                    last_page_searchable,
                },
                state,
            ) => {
                let before = state
                    .as_ref()
                    .map_or(0, |state| state.already_extended_pages);
                (hint.max(before).min(MAX_EXTEND_PAGES), last_page_searchable)
            }
        };
        let pages = u64::from(first) + u64::from(count);
        if pages > page_layout::MAX_PAGES {
            return Err(LayoutError::TooManyPages {
                pages,
                max: page_layout::MAX_PAGES,
            });
        }
        self.pages.push(HeapPage::empty());
        for _ in 1..count {
            self.pages.push(HeapPage::never_initialised());
        }
        if use_fsm && hint < count {
            let free_bytes = BLCKSZ - SIZE_OF_PAGE_HEADER;
            for block in first + hint..first + count {
                self.fsm.record(BlockNumber(block), free_bytes, log);
            }
            let end = first + count - u32::from(!last_page_searchable);
            self.fsm
                .vacuum(BlockNumber(first + hint), Some(BlockNumber(end)), log);
        }
        if let Some(state) = bulk {
            state.current = Some(BlockNumber(first));
            state.free =
                (count > 1).then(|| (BlockNumber(first + 1), BlockNumber(first + count - 1)));
            state.already_extended_pages += count;
        }
        Ok(BlockNumber(first))
    }

    /// Puts a tuple on a page that has room.
    fn put(&mut self, block: BlockNumber, tuple: Tuple) -> Placed {
        let cleared_visibility = self.clear_visibility(block);
        let page = &mut self.pages[block.0 as usize];
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
        self.vm.clear(block)
    }
}

impl BulkInsert {
    /// The next page of the last extension that is not used yet.
    fn take_free(&mut self) -> Option<BlockNumber> {
        let (next, last) = self.free?;
        self.free = (next < last).then(|| (BlockNumber(next.0 + 1), last));
        Some(next)
    }
}

/// Pages that the rest of a batch needs when none is used yet.
///
/// Source: `heap_multi_insert_pages`, src/backend/access/heap/heapam.c (REL_16_STABLE); unsigned
/// there, so that a row longer than a page's share makes the rest look free.
fn pages_for_batch(rows: &[(u32, u16)], reserve: u32) -> u32 {
    let whole_page = u64::from(BLCKSZ - SIZE_OF_PAGE_HEADER - reserve);
    let mut available = whole_page;
    let mut pages = 1;
    for &(_, tuple_bytes) in rows {
        let size = u64::from(SIZE_OF_ITEM_ID + maxalign(u32::from(tuple_bytes)));
        if available < size {
            pages += 1;
            available = whole_page;
        }
        available = available.wrapping_sub(size);
    }
    pages
}

fn new_tuple(row: u32, tuple_bytes: u16, xid: Xid) -> Tuple {
    Tuple {
        row,
        xmin: xid,
        xmax: Xid::INVALID,
        next: Tid {
            block: BlockNumber(0),
            offset: OffsetNumber(0),
        },
        lp_len: tuple_bytes,
        is_locked_only: false,
        is_hot_updated: false,
        is_heap_only: false,
    }
}
