//! GIN indexes: a tree of keys, the rows of each in a list or a tree of its own, and the list of
//! what is still to be put there.
//!
//! ```text
//! metapage     -- where the pending list begins and ends
//! entry tree   -- key -> packed list of TIDs, or the root of a posting tree
//! posting tree -- TIDs in packed lists of up to 384 bytes
//! pending list -- (key, TID) as rows came; moved into the trees when it has grown, and by VACUUM
//! ```
//!
//! Source: src/backend/access/gin (REL_15_STABLE, REL_18_STABLE). Left out: scans, which write
//! nothing, and what several sessions do to one page at once.

mod accumulate;
mod build;
mod entry_tree;
mod key;
mod page;
mod pending_list;
mod place;
mod posting_leaf;
mod posting_tree;
#[cfg(test)]
mod tests;
mod texts;
mod vacuum;

use pgheadroom_layout::gin::GIN_ROOT_BLKNO;
use pgheadroom_layout::page::BLCKSZ;
use pgheadroom_layout::wal_record::Page as InRecord;
use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::checkpoint::ForkId;
use crate::executor::SessionId;
use crate::fsm::FreeSpaceMap;
use crate::gin::page::{Content, Entries, Page};
use crate::gin::pending_list::{Beside, Cleaning};
use crate::memory_settings::MemorySettings;
use crate::transaction::Xid;
use crate::wal::{ForkLog, GinRecord, RecordType, Wal};

pub(crate) use key::{Category, Key};
pub(crate) use vacuum::Vacuuming;

/// Block of the metapage. Source: `GIN_METAPAGE_BLKNO`.
const META_BLOCK: u32 = 0;

/// The storage parameters of an index, and its server's settings for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GinOptions {
    /// `fastupdate`.
    pub fast_update: bool,
    /// `gin_pending_list_limit`, in kB; the server's where absent.
    pub pending_list_limit: Option<u32>,
    /// The server's.
    pub server: GinSettings,
}

/// Settings of a server that decide when and how rows come to the trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GinSettings {
    /// `gin_pending_list_limit`, in kB.
    pub pending_list_limit: u32,
    /// What a command may take.
    pub memory: MemorySettings,
    /// Whether sessions add to a pending list side by side, and one moves it part by part, while
    /// others go on (`begun_cleaning`, `go_on_cleaning`): then how often one who comes while
    /// another's statement has begun a page of it does not see that page, in thousandths.
    pub beside: Option<u32>,
}

impl Default for GinOptions {
    fn default() -> Self {
        Self {
            fast_update: true,
            pending_list_limit: None,
            server: GinSettings::default(),
        }
    }
}

impl Default for GinSettings {
    /// PostgreSQL's. Source: src/backend/utils/misc/guc_tables.c (REL_18_STABLE).
    fn default() -> Self {
        Self {
            pending_list_limit: 4096,
            memory: MemorySettings::default(),
            beside: None,
        }
    }
}

/// The log, and who still needs what was deleted.
pub(crate) struct Surroundings<'a> {
    pub wal: &'a mut Wal,
    /// Whether nobody runs any more who may have seen a page that was deleted before this one.
    pub is_removable: &'a dyn Fn(Xid) -> bool,
    /// Whose statement it is.
    pub session: SessionId,
}

/// A GIN index.
#[derive(Debug)]
pub(crate) struct GinIndex {
    behaviour: Behaviour,
    options: GinOptions,
    log: ForkLog,
    fsm_fork: ForkId,
    fsm: FreeSpaceMap,
    meta: Meta,
    /// By block.
    pages: Vec<Page>,
    /// What a session moves out of the pending list beside others.
    cleaning: Option<Cleaning>,
    beside: Beside,
}

/// What the metapage says.
///
/// Source: `GinMetaPageData`, src/include/access/ginblock.h.
#[derive(Debug, Default)]
struct Meta {
    head: Option<u32>,
    tail: Option<u32>,
    tail_free_size: u32,
    pending_pages: u32,
    pending_heap_tuples: u64,
    /// As the last VACUUM, or the build, counted: pages, those of entries, of posting trees.
    pages: [u32; 3],
    entries: u64,
}

impl GinIndex {
    /// An index without entries.
    ///
    /// Source: `ginbuild`, src/backend/access/gin/gininsert.c (REL_18_STABLE).
    pub fn new(behaviour: Behaviour, options: GinOptions, wal: &mut Wal) -> Self {
        Self {
            behaviour,
            options,
            log: ForkLog {
                fork: wal.add_fork(),
                is_on: false,
            },
            fsm_fork: wal.add_fork(),
            fsm: FreeSpaceMap::default(),
            meta: Meta::default(),
            pages: vec![
                Page::alone(Content::Meta),
                Page::alone(Content::Leaf(Entries::default())),
            ],
            cleaning: None,
            beside: Beside::default(),
        }
    }

    /// From now on sessions share the pending list (`GinSettings::beside`).
    pub const fn share_list(&mut self, misses_page: u32) {
        self.options.server.beside = Some(misses_page);
    }

    /// Its main fork, and that of its free space map.
    pub const fn forks(&self) -> [ForkId; 2] {
        [self.log.fork, self.fsm_fork]
    }

    /// Pages of its main fork.
    pub fn page_count(&self) -> u32 {
        u32::try_from(self.pages.len()).expect("blocks of a fork")
    }

    /// Its free space map.
    pub const fn fsm(&self) -> &FreeSpaceMap {
        &self.fsm
    }

    /// Bytes between a page's line pointers and items, as an image leaves them out.
    pub fn holes(&self) -> Vec<u32> {
        self.pages.iter().map(Page::hole_bytes).collect()
    }

    fn page(&self, block: u32) -> &Page {
        &self.pages[block as usize]
    }

    fn page_mut(&mut self, block: u32) -> &mut Page {
        &mut self.pages[block as usize]
    }

    /// A page for a new purpose: a free one, else one more at the end.
    ///
    /// Source: `GinNewBuffer`, src/backend/access/gin/ginutil.c (REL_18_STABLE).
    fn new_page(&mut self, around: &mut Surroundings<'_>) -> u32 {
        while let Some(block) = self.free_index_page(around.wal) {
            if self.page(block).is_recyclable(around.is_removable) {
                return block;
            }
        }
        self.pages.push(Page::alone(Content::Meta)); // until it is filled
        self.page_count() - 1
    }

    /// Source: `GetFreeIndexPage`, src/backend/storage/freespace/indexfsm.c.
    fn free_index_page(&mut self, wal: &mut Wal) -> Option<u32> {
        if self.fsm.page_count() == 0 {
            return None;
        }
        let fork = self.fsm_fork;
        let mut changed = |block: BlockNumber| wal.hint(fork, block, 0);
        let block = self.fsm.get(BLCKSZ / 2, &mut changed)?;
        self.fsm.record(block, 0, &mut changed);
        Some(block.0)
    }

    /// Source: `RecordFreeIndexPage`, src/backend/storage/freespace/indexfsm.c.
    fn record_free_page(&mut self, block: u32, wal: &mut Wal) {
        let fork = self.fsm_fork;
        let mut changed = |block: BlockNumber| wal.hint(fork, block, 0);
        self.fsm
            .record(BlockNumber(block), BLCKSZ - 1, &mut changed);
    }

    /// Source: `IndexFreeSpaceMapVacuum`, src/backend/storage/freespace/indexfsm.c.
    fn vacuum_fsm(&mut self, wal: &mut Wal) {
        let fork = self.fsm_fork;
        let mut changed = |block: BlockNumber| wal.hint(fork, block, 0);
        self.fsm.vacuum(BlockNumber(0), None, &mut changed);
    }

    fn change(&self, block: u32, wal: &mut Wal) -> InRecord {
        self.log.change(block, self.page(block).hole_bytes(), wal)
    }

    /// A page that a record carries whole.
    fn whole(&self, block: u32, wal: &mut Wal) -> InRecord {
        let hole = self.page(block).hole_bytes();
        self.log.force_image(block, hole, wal)
    }

    fn record(&self, kind: GinRecord, bytes: u32, wal: &mut Wal) {
        self.log.record(RecordType::Gin(kind), bytes, wal);
    }
}

const ROOT: u32 = GIN_ROOT_BLKNO;
