//! The pages of a BRIN index: where a summary lies, and which page a new one comes to.
//!
//! Source: src/backend/access/brin/brin_pageops.c (REL_15_STABLE, REL_18_STABLE). Left out: a
//! second page of the range map, for which summaries would make room.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER};
use pgheadroom_layout::wal_record::{brin_insert, brin_samepage_update, brin_update};

use crate::checkpoint::ForkId;
use crate::fsm::FreeSpaceMap;
use crate::wal::{ForkLog, RecordType, Wal};

/// Source: `BrinSpecialSpace`, src/include/access/brin_page.h.
const SPECIAL_BYTES: u32 = 8;
/// A page has room for one summary of so many.
///
/// Source: `BrinMaxItemSize`, src/backend/access/brin/brin_pageops.c (REL_18_STABLE).
pub(in crate::executor) const MAX_ITEM_BYTES: u32 =
    BLCKSZ - maxalign(SIZE_OF_PAGE_HEADER + SIZE_OF_ITEM_ID) - SPECIAL_BYTES;
/// The page of the range map.
const REVMAP: u32 = 1;
/// Blocks before the first page of summaries: the metapage and the range map.
const FIRST_PAGE: u32 = 2;

/// A page of summaries.
#[derive(Debug)]
struct Page {
    /// Bytes between line pointers and summaries.
    hole_bytes: u32,
    /// Line pointers.
    items: usize,
}

/// Where a range's summary lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct SummaryItem {
    page: usize,
    offset: usize,
    bytes: u32,
}

/// All pages of summaries.
#[derive(Debug)]
pub(super) struct Pages {
    log: ForkLog,
    fsm_fork: ForkId,
    fsm: FreeSpaceMap,
    pages: Vec<Page>,
    /// The page that the last new summary came to, while that is known.
    target: Option<BlockNumber>,
}

impl Page {
    const fn new() -> Self {
        Self {
            hole_bytes: BLCKSZ - SIZE_OF_PAGE_HEADER - SPECIAL_BYTES,
            items: 0,
        }
    }

    /// Source: `br_page_get_freespace`.
    const fn free_bytes(&self) -> u32 {
        self.hole_bytes.saturating_sub(SIZE_OF_ITEM_ID)
    }

    /// Behind all others: that line pointers are unused is noted nowhere.
    ///
    /// Source: `PageAddItemExtended`, src/backend/storage/page/bufpage.c (REL_18_STABLE).
    const fn add(&mut self, bytes: u32) -> usize {
        self.hole_bytes -= bytes + SIZE_OF_ITEM_ID;
        self.items += 1;
        self.items
    }

    /// Source: `PageIndexTupleDeleteNoCompact`, bufpage.c.
    const fn remove(&mut self, item: SummaryItem) {
        self.hole_bytes += item.bytes;
        if item.offset == self.items {
            self.items -= 1;
            self.hole_bytes += SIZE_OF_ITEM_ID;
        }
    }
}

impl Pages {
    /// None yet, and nothing is logged.
    pub fn new(wal: &mut Wal) -> Self {
        Self {
            log: ForkLog {
                fork: wal.add_fork(),
                is_on: false,
            },
            fsm_fork: wal.add_fork(),
            fsm: FreeSpaceMap::default(),
            pages: Vec::new(),
            target: None,
        }
    }

    /// Pages of the index's file.
    pub fn blocks(&self) -> u32 {
        u32::try_from(self.pages.len()).map_or(u32::MAX, |pages| pages.saturating_add(FIRST_PAGE))
    }

    /// What comes now is logged; whoever built the index has forgotten where.
    pub fn begin_logging(&mut self) {
        self.log.is_on = true;
        self.target = None;
    }

    /// Puts a new summary on a page.
    ///
    /// Source: `brin_doinsert`.
    pub fn insert(&mut self, bytes: u32, wal: &mut Wal) -> SummaryItem {
        let (page, is_new) = self.page_for(bytes, wal);
        let revmap = self.log.change(REVMAP, 0, wal);
        let item = self.add(page, bytes);
        let in_record = self.change(page, is_new, wal);
        let kind = if is_new {
            RecordType::BrinInsertInit
        } else {
            RecordType::BrinInsert
        };
        self.log
            .record(kind, brin_insert(bytes, in_record, revmap), wal);
        self.end_extension(page, is_new, wal);
        item
    }

    /// Replaces a summary: on its page if it fits there, else on another.
    ///
    /// Source: `brin_doupdate` and `brin_can_do_samepage_update`.
    pub fn update(&mut self, item: SummaryItem, bytes: u32, wal: &mut Wal) -> SummaryItem {
        let old = &mut self.pages[item.page];
        if bytes <= item.bytes || old.hole_bytes >= bytes - item.bytes {
            old.hole_bytes = old.hole_bytes + item.bytes - bytes;
            let page = self.change(item.page, false, wal);
            let size = brin_samepage_update(bytes, page);
            self.log.record(RecordType::BrinSamepageUpdate, size, wal);
            return SummaryItem { bytes, ..item };
        }
        let (page, is_new) = self.page_for(bytes, wal);
        let revmap = self.log.change(REVMAP, 0, wal);
        self.pages[item.page].remove(item);
        let new = self.add(page, bytes);
        let in_record = self.change(page, is_new, wal);
        let old = self.change(item.page, false, wal);
        let kind = if is_new {
            RecordType::BrinUpdateInit
        } else {
            RecordType::BrinUpdate
        };
        self.log
            .record(kind, brin_update(bytes, in_record, revmap, old), wal);
        self.end_extension(page, is_new, wal);
        new
    }

    /// VACUUM writes down how free each page is.
    ///
    /// Source: `brin_vacuum_scan` and `brin_page_cleanup`, brin.c, brin_pageops.c.
    pub fn vacuum(&mut self, wal: &mut Wal) {
        let fork = self.fsm_fork;
        let mut changed = |block: BlockNumber| wal.hint(fork, block, 0);
        for (block, page) in (FIRST_PAGE..).zip(&self.pages) {
            self.fsm
                .record(BlockNumber(block), page.free_bytes(), &mut changed);
        }
        self.fsm.vacuum(BlockNumber(0), None, &mut changed);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.pages.len()
    }

    /// The sessions forget where they inserted last.
    pub const fn forget_target(&mut self) {
        self.target = None;
    }

    fn add(&mut self, page: usize, bytes: u32) -> SummaryItem {
        let offset = self.pages[page].add(bytes);
        SummaryItem {
            page,
            offset,
            bytes,
        }
    }

    /// A page with room for a summary, and whether it is a new one.
    ///
    /// Source: `brin_getinsertbuffer`.
    fn page_for(&mut self, bytes: u32, wal: &mut Wal) -> (usize, bool) {
        let fork = self.fsm_fork;
        let mut changed = |block: BlockNumber| wal.hint(fork, block, 0);
        let mut next = match self.target {
            Some(block) => Some(block),
            None => self.fsm.get(bytes, &mut changed),
        };
        while let Some(block) = next {
            let page = (block.0 - FIRST_PAGE) as usize;
            let free_bytes = self.pages[page].free_bytes();
            if free_bytes >= bytes {
                self.target = Some(block);
                return (page, false);
            }
            next = self
                .fsm
                .record_and_get(block, free_bytes, bytes, &mut changed);
        }
        self.pages.push(Page::new());
        let page = self.pages.len() - 1;
        self.target = Some(BlockNumber(block_of(page)));
        (page, true)
    }

    fn change(
        &self,
        page: usize,
        is_new: bool,
        wal: &mut Wal,
    ) -> pgheadroom_layout::wal_record::Page {
        if is_new {
            self.log.init(block_of(page), wal)
        } else {
            let hole_bytes = self.pages[page].hole_bytes;
            self.log.change(block_of(page), hole_bytes, wal)
        }
    }

    /// Others learn of the room on a new page.
    fn end_extension(&mut self, page: usize, is_new: bool, wal: &mut Wal) {
        if is_new {
            let fork = self.fsm_fork;
            let mut changed = |block: BlockNumber| wal.hint(fork, block, 0);
            let block = block_of(page);
            let free_bytes = self.pages[page].free_bytes();
            self.fsm
                .record(BlockNumber(block), free_bytes, &mut changed);
            let end = Some(BlockNumber(block + 1));
            self.fsm.vacuum(BlockNumber(block), end, &mut changed);
        }
    }
}

fn block_of(page: usize) -> u32 {
    FIRST_PAGE + u32::try_from(page).expect("a small index")
}
