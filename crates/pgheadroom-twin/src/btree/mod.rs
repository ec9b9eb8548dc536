//! A B-tree index, page by page: insertion, splits, deduplication, deletion, VACUUM and build,
//! with the WAL that each of them writes.
//!
//! ```text
//! metapage 0 --> fast root --> root page: | -inf: 1 | 20: 2 | 50: 4 |
//!                                              |         |        |
//!                          leaf 1: |20| 3 9 12 | <-> leaf 2: |50| 20 33 | <-> leaf 4: | 50 71 |
//!                                   high key                                    rightmost: none
//! ```
//!
//! Entries are ordered by key and TID. What decides about pages is kept: keys as codes, sizes,
//! TIDs, dead marks, links. What does not is left out: bytes of values, places of items on a
//! page, locks, concurrent splits (one insertion is complete before the next begins).
//!
//! The tree asks the table through [`Table`] whether row versions are dead, and reports records
//! and changed pages to a [`Sink`]; full-page images and counters are the sink's business.
//!
//! Source: src/backend/access/nbtree, README and functions named at each item (REL_15_STABLE and
//! REL_18_STABLE, which agree in everything that is modelled but the format of records).

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::btree::BtreeFillfactor;
use pgheadroom_layout::version::Behaviour;

use crate::fsm::FreeSpaceMap;
use crate::memory::Pieces;
use crate::page::Tid;
use crate::transaction::Xid;

mod allocate;
mod bottom_up;
mod build;
pub mod check;
mod dedup;
mod delete;
mod entries;
mod insert;
mod item;
pub(crate) mod key;
pub(crate) mod page;
mod page_deletion;
pub(crate) mod prefetch;
mod qsort;
mod record;
mod scan;
pub(crate) mod search;
mod simple_deletion;
mod slots;
mod split;
mod split_point;
mod unique;
mod vacuum;

pub use build::Built;
pub(crate) use entries::Entries;
pub use insert::{UniqueCheck, UniqueViolation};
pub use item::Item;
pub use key::{NULL_FIRST, NULL_LAST, SHAPES_MAX, ShapeId, TupleSizes, has_null};
pub use page::{BtreePage, PageState};
pub(crate) use record::METAPAGE_HOLE;
pub use record::{Record, RecordCounts, RecordKind, RegisteredBlock, Sink};
pub use scan::ScannedPage;
pub use vacuum::BulkDeletion;
pub(crate) use vacuum::OpenDeletion;

pub(crate) use key::Piece;
use key::Shapes;

/// What an index is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Key columns, at least one.
    pub key_columns: u8,
    /// Whether keys are unique.
    pub is_unique: bool,
    /// Whether two NULLs are equal to a unique index (15 and later).
    pub nulls_not_distinct: bool,
    /// Fillfactor of leaves.
    pub fillfactor: BtreeFillfactor,
    /// The option `deduplicate_items`.
    pub deduplicate_items: bool,
    /// Whether equal values of all columns are also equal in their bytes, and there are no
    /// INCLUDE columns; not so for `numeric`, floats, `jsonb`, nondeterministic collations.
    ///
    /// Source: `_bt_allequalimage`, src/backend/access/nbtree/nbtutils.c (REL_18_STABLE).
    pub all_equal_image: bool,
}

impl Definition {
    /// An index with the default options.
    ///
    /// # Panics
    /// Without key columns.
    #[must_use]
    pub fn new(key_columns: u8, is_unique: bool) -> Self {
        assert!(key_columns > 0, "an index has a key");
        Self {
            key_columns,
            is_unique,
            nulls_not_distinct: false,
            fillfactor: BtreeFillfactor::new(90).expect("the default fillfactor"),
            deduplicate_items: true,
            all_equal_image: true,
        }
    }
}

/// An entry to be inserted.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// A code for each key column.
    pub key: &'a [i64],
    /// Sizes of the tuple, from [`Btree::shape`].
    pub shape: ShapeId,
    /// The row version, a root of its HOT chain.
    pub tid: Tid,
}

/// What an index gets, wherever its key is.
pub(crate) trait BuildEntry {
    /// With the key lent.
    fn entry(&self) -> Entry<'_>;
}

impl BuildEntry for Entry<'_> {
    #[inline]
    fn entry(&self) -> Entry<'_> {
        *self
    }
}

/// An entry of one key column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SingleKey {
    pub key: [i64; 1],
    pub shape: ShapeId,
    pub tid: Tid,
}

impl BuildEntry for SingleKey {
    #[inline]
    fn entry(&self) -> Entry<'_> {
        Entry {
            key: &self.key,
            shape: self.shape,
            tid: self.tid,
        }
    }
}

/// What a uniqueness check learns about a row version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UniqueFetch {
    /// A version that may be live: the key is taken.
    Conflict,
    /// No such version, but some snapshot may still see an older one.
    Invisible,
    /// Nobody can see any version of this chain any more.
    AllDead,
    /// Whether it stays depends on this transaction, which is in progress.
    InProgress(Xid),
}

/// What the tree has to know about the table.
pub trait Table {
    /// Fetches a row version for a uniqueness check; may prune its page.
    ///
    /// Source: `table_index_fetch_tuple_check` in `_bt_check_unique`, nbtinsert.c.
    fn fetch_for_uniqueness(&mut self, tid: Tid) -> UniqueFetch;

    /// Whether every member of the HOT chain that begins here is removable, or the line pointer is
    /// dead or unused already.
    ///
    /// Source: `heap_hot_search_buffer` with a non-vacuumable snapshot in
    /// `heap_index_delete_tuples`, src/backend/access/heap/heapam.c.
    fn is_deletable(&mut self, tid: Tid) -> bool;

    /// Prefetches a heap page that will be asked about; changes nothing.
    fn prefetch_page(&self, block: BlockNumber) {
        let _ = block;
    }

    /// Prefetches a tuple on such a page.
    fn prefetch_tuple(&self, tid: Tid) {
        let _ = tid;
    }

    /// Whether all snapshots see this transaction as ended.
    ///
    /// Source: `GlobalVisCheckRemovableFullXid`, src/backend/storage/ipc/procarray.c.
    fn is_removable(&self, xid: Xid) -> bool;
}

/// The metapage. Source: `BTMetaPageData`, src/include/access/nbtree.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metapage {
    /// The root, once there is one.
    pub root: Option<BlockNumber>,
    /// Its level.
    pub level: u32,
    /// Where searches begin: the lowest page that is alone on its level.
    pub fast_root: Option<BlockNumber>,
    /// Its level.
    pub fast_level: u32,
    /// Deleted pages that the last VACUUM could not free.
    pub last_cleanup_num_delpages: u32,
}

impl Metapage {
    /// That of an empty tree.
    const NONE: Self = Self {
        root: None,
        level: 0,
        fast_root: None,
        fast_level: 0,
        last_cleanup_num_delpages: 0,
    };
}

/// A B-tree.
#[derive(Debug, Clone)]
pub struct Btree {
    definition: Definition,
    behaviour: Behaviour,
    shapes: Shapes,
    meta: Metapage,
    /// Block 1 and following; block 0 is the metapage.
    pages: Vec<BtreePage>,
    fsm: FreeSpaceMap,
    records: u64,
    /// Where a search for a key may well end: the leaf, and the place of the first entry there.
    expected: Option<(BlockNumber, usize)>,
}

impl Btree {
    /// The index of an empty table.
    #[must_use]
    pub fn new(behaviour: Behaviour, definition: Definition) -> Self {
        Self {
            definition,
            behaviour,
            shapes: Shapes::default(),
            meta: Metapage::NONE,
            pages: Vec::new(),
            fsm: FreeSpaceMap::default(),
            records: 0,
            expected: None,
        }
    }

    /// Empties a tree that was built and not used.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.meta = Metapage::NONE;
    }

    /// Names the sizes of tuples, for entries; `None` with more than [`SHAPES_MAX`] different ones.
    ///
    /// # Panics
    /// When the key has another number of columns.
    pub fn shape(&mut self, sizes: TupleSizes) -> Option<ShapeId> {
        let columns = usize::from(self.definition.key_columns);
        assert_eq!(sizes.key_columns(), columns, "columns of the key");
        self.shapes.intern(sizes)
    }

    /// Replaces codes of a key column by others in the same order; pairs of old and new ascend.
    pub(crate) fn replace_codes(&mut self, column: usize, moved: &[(i64, i64)]) {
        for page in &mut self.pages {
            for code in page.codes_of_column_mut(column) {
                if let Ok(found) = moved.binary_search_by_key(code, |&(old, _)| old) {
                    *code = moved[found].1;
                }
            }
        }
    }

    /// What the index is like.
    #[must_use]
    pub const fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The metapage.
    #[must_use]
    pub const fn metapage(&self) -> &Metapage {
        &self.meta
    }

    /// Pages of the index, metapage included (`relpages`).
    #[must_use]
    pub fn page_count(&self) -> u32 {
        u32::try_from(self.pages.len() + 1).expect("fewer than 2^32 pages")
    }

    /// A page; not the metapage.
    ///
    /// # Panics
    /// When there is no such page.
    #[must_use]
    pub fn page(&self, block: BlockNumber) -> &BtreePage {
        &self.pages[block.0 as usize - 1]
    }

    /// The memory of its pages.
    pub(crate) fn pieces(&self, pieces: &mut Pieces) {
        pieces.add(&self.pages);
        for page in &self.pages {
            page.pieces(pieces);
        }
    }

    /// The index's free space map.
    #[must_use]
    pub const fn fsm(&self) -> &FreeSpaceMap {
        &self.fsm
    }

    fn page_mut(&mut self, block: BlockNumber) -> &mut BtreePage {
        &mut self.pages[block.0 as usize - 1]
    }

    /// Writes a record: every block that it registers gets its LSN.
    fn log(&mut self, sink: &mut impl Sink, record: &Record) {
        self.records += 1;
        let lsn = self.records;
        for block in record.blocks() {
            if block.block != page::NO_BLOCK {
                self.page_mut(block.block).lsn = lsn;
            }
        }
        sink.record(record);
    }
}
