//! The order in which a statement touches pages.
//!
//! ```text
//! index scan:  leaf -> for each TID: prune its page, walk the HOT chain -> row found: change it
//!              -> entries after it are visited too -> dead ones are marked, if the leaf is as read
//! seq scan:    page by page: prune, collect visible rows, change them one by one
//! bitmap scan: all leaves -> page by page: prune, walk the chains of its TIDs, change the rows
//! change:      [LOCK] heap -> every index in order of OID: uniqueness check, then the entry
//! ```
//!
//! That order decides which pages are pruned and which index entries die, so it decides sizes and
//! WAL. The plan (which scan) is given by the caller. Left out: index-only scans, synchronised
//! scans, parallel plans, triggers but those of foreign keys.

use pgheadroom_layout::{Behaviour, BlockNumber, LayoutError};

use crate::checkpoint::ForkId;
use crate::counters::TableCounters;
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::memory_settings::MemorySettings;
use crate::object_ids::{OIDS_OF_TABLE, OIDS_OF_TOAST_TABLE};
use crate::procarray::ProcArray;
use crate::transaction::Xid;
use crate::value::{Value, ValueError};
use crate::wal::{Wal, WalSettings};
use crate::watch::PageLife;

mod analyze;
mod analyze_reads;
mod bitmap_scan;
mod brin;
mod build;
mod cached_tids;
mod change;
mod changed_rows;
mod class_statistics;
mod compression;
mod concurrent_changes;
mod copy;
mod cursor;
mod entries;
mod estimate_size;
mod extensions;
mod fetch;
mod foreign_key;
mod gin;
mod hash;
mod head;
#[cfg(test)]
mod histories;
mod index;
mod index_definition;
mod index_reads;
mod key_code;
mod key_numbers;
mod load;
mod load_with_gaps;
mod maintenance;
mod model;
mod models;
mod parameters;
mod parked;
mod part;
mod pending_lists;
mod prefetch;
mod prune_opt;
mod reindex;
mod replaced;
mod rewrite;
mod rewrite_online;
mod ri_triggers;
mod row_lock;
mod row_values;
mod rows;
mod scan;
mod session;
mod session_table;
mod settings;
#[cfg(test)]
mod sizes;
mod table;
mod text_order;
mod toast;
mod transaction;
mod update;
mod upsert;
mod vacuum;
mod wait;

pub use analyze::Analyzed;
pub use copy::CopyRow;
pub use cursor::CursorScan;
pub use head::Head;
pub(crate) use index_definition::PAGES_PER_RANGE;
pub use index_definition::{
    GinOperators, GinOptions, GinSettings, IndexDefinition, IndexKey, IndexMethod, KeyOrder,
};
pub use load::Loading;
pub use maintenance::Maintenance;
pub use model::{InPlace, Model, NewRow};
pub use parameters::{Ages, FreezeAges, StorageParameters};
pub(crate) use prefetch::{LeafTarget, Prefetch};
pub use rewrite::Rewritten;
pub use rewrite_online::OnlineRewrite;
pub(crate) use session::Scanned;
pub use session::SessionId;
pub use table::{Table, TableDefinition};
pub(crate) use update::Target;
pub(crate) use vacuum::{LOCK_WAIT_INTERVAL_S, WaitingVacuum};
pub use vacuum::{ParallelSettings, Relation, RunningVacuum, VacuumStep};

pub use crate::row::{Assignment, Assignments, Change, ColumnDefinition, Row};

use parked::Parked;

/// A table of a [`Database`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableId(pub usize);

/// Why a statement failed; the transaction has to be rolled back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// A row does not fit a page, an entry does not fit an index, or the table cannot grow.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The key is taken: the value of the unique index's first column.
    #[error("a row with the key {key} is there already")]
    Unique {
        /// The key.
        key: i64,
    },
    /// There is no row with the key that a new value refers to.
    #[error("no row of the table referred to has the key {key}")]
    ForeignKey {
        /// The key.
        key: i64,
    },
    /// A value that the server refuses as well.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A summary of a BRIN index is longer than its pages take.
    #[error(
        "index row size {bytes} exceeds maximum {} for index {index:?}: leave columns out of it, \
         or make their values shorter",
        brin::MAX_ITEM_BYTES
    )]
    IndexRow {
        /// The index.
        index: String,
        /// Bytes of the summary.
        bytes: u32,
    },
    /// VACUUM ends at an index: at its summary, or at a row whose own insertion waits and fails.
    #[error("while VACUUM cleans up index {index:?}: {error}")]
    Vacuum {
        /// The index.
        index: String,
        /// What it ends with.
        error: Box<StatementError>,
    },
    /// What the twin cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// Another session's transaction has to end first: [`Database::resume`] goes on then.
    #[error("it waits for the transaction {}", .0.0)]
    Waits(Xid),
    /// A sequential scan has read a part of its table: [`Database::resume_scan`] goes on.
    #[error("it reads its table in parts")]
    Scans,
    /// A queue's statement is on its way to its rows, and waits for none that others hold:
    /// [`Database::resume_head`] goes on when it is there.
    #[error("it has not come to its rows")]
    OnItsWay,
    /// An upsert has read the entries of its key in an index, and comes to their rows:
    /// [`Database::resume_insert`] goes on when it is there.
    #[error("it has not come to the rows of {entries} entries")]
    Fetches {
        /// Of its key, those of rows that are dead too.
        entries: usize,
        /// The page of the last one's row.
        last: Option<BlockNumber>,
    },
    /// A repeatable read transaction wants to change what was changed since its snapshot.
    #[error("could not serialize access due to concurrent update")]
    Serialization,
    /// Another session holds a row that the statement does not wait for.
    #[error("could not obtain lock on row")]
    NotAvailable,
    /// Sessions wait for each other, and this one's transaction gives way.
    #[error("deadlock detected")]
    Deadlock,
}

impl StatementError {
    /// Whether a server's VACUUM ends so as well, and not the twin alone.
    pub(crate) fn ends_vacuum(&self) -> bool {
        let Self::Vacuum { error, .. } = self else {
            return false;
        };
        matches!(**error, Self::IndexRow { .. } | Self::Value(_))
    }

    /// What is behind it, of a VACUUM that ends at an index.
    pub(crate) fn cause(&self) -> &Self {
        match self {
            Self::Vacuum { error, .. } => error,
            other => other,
        }
    }
}

/// What a statement does with the rows it finds.
pub enum Action<'a> {
    /// SELECT.
    Read,
    /// SELECT ... FOR UPDATE, or weaker.
    Lock(LockTupleMode, LockWaitPolicy),
    /// DELETE.
    Delete,
    /// UPDATE.
    Update(Assignments<'a>),
}

/// Tables, their WAL, and the sessions that work on them, one statement at a time.
#[derive(Debug)]
pub struct Database {
    behaviour: Behaviour,
    procs: ProcArray,
    wal: Wal,
    tables: Vec<Table>,
    /// Number of the running statement: its own changes are invisible to it.
    statement: u32,
    sessions: session::Sessions,
    /// The table that has a watched page.
    watched: Option<TableId>,
    /// Whether simple updates may take the fast path (`steady`).
    uses_fast_path: bool,
    fast_updates: u64,
    copies_online: rewrite_online::InProgress,
    compression: compression::Compression,
    freeze_ages: parameters::FreezeAges<u32>,
    eager: vacuum::EagerScans,
    samples: analyze_reads::Samples,
    gin_settings: GinSettings,
    memory_settings: MemorySettings,
    parallel_settings: vacuum::ParallelSettings,
}

impl Database {
    /// A database without tables.
    #[must_use]
    pub fn new(behaviour: Behaviour, settings: WalSettings) -> Self {
        Self {
            behaviour,
            procs: ProcArray::new(&behaviour),
            wal: Wal::new(settings),
            tables: Vec::new(),
            statement: 0,
            sessions: session::Sessions::default(),
            watched: None,
            uses_fast_path: true,
            fast_updates: 0,
            copies_online: rewrite_online::InProgress::default(),
            compression: compression::Compression::default(),
            freeze_ages: parameters::FreezeAges::DEFAULT,
            eager: vacuum::EagerScans::default(),
            samples: analyze_reads::Samples::default(),
            gin_settings: GinSettings::default(),
            memory_settings: MemorySettings::default(),
            parallel_settings: vacuum::ParallelSettings::default(),
        }
    }

    /// CREATE TABLE, with its indexes in the order of their creation.
    ///
    /// # Errors
    /// [`StatementError::Unsupported`] names what the twin cannot play.
    pub fn create_table(&mut self, definition: TableDefinition) -> Result<TableId, StatementError> {
        self.wal.open_table(self.tables.len());
        let mut table = Table::new(self.behaviour, definition, &mut self.wal)?;
        table.begin_ages(self.procs.next_xid(), &self.procs);
        table.switch_to(self.session());
        self.procs.object_ids.skip(OIDS_OF_TABLE);
        if table.needs_toast_table() {
            self.procs.object_ids.skip(OIDS_OF_TOAST_TABLE);
        }
        self.tables.push(table);
        Ok(TableId(self.tables.len() - 1))
    }

    /// Values out of line whose pointers may share other bytes with those that they replaced.
    #[must_use]
    pub const fn pointers_in_doubt(&self) -> u64 {
        self.procs.object_ids.in_doubt()
    }

    /// CREATE INDEX on a table that nothing was updated in or deleted from.
    ///
    /// # Errors
    /// [`StatementError::Unsupported`] names what the twin cannot play,
    /// [`StatementError::Layout`] a row whose entry is too wide.
    ///
    /// # Panics
    /// When the table has versions that index entries do not point to.
    ///
    /// Source: `heapam_index_build_range_scan`, src/backend/access/heap/heapam_handler.c
    /// (REL_18_STABLE). Differs: its WAL is not counted, nor are its pages dirty afterwards.
    pub fn create_index(
        &mut self,
        table: TableId,
        mut definition: IndexDefinition,
    ) -> Result<(), StatementError> {
        definition.gin.server = self.gin_settings;
        self.wal.open_table(table.0);
        self.tables[table.0].build_index(self.behaviour, definition, &mut self.wal)?;
        self.procs.object_ids.skip(1);
        self.forget_target_blocks();
        Ok(())
    }

    /// All tables in the order of their creation.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + use<> {
        (0..self.tables.len()).map(TableId)
    }

    /// A table.
    #[must_use]
    pub fn table(&self, table: TableId) -> &Table {
        &self.tables[table.0]
    }

    /// The version's behaviour.
    #[must_use]
    pub const fn behaviour(&self) -> &Behaviour {
        &self.behaviour
    }

    /// Starts to note what happens to a page of a table, instead of any other page.
    pub fn watch(&mut self, table: TableId, block: BlockNumber) {
        self.watched = Some(table);
        self.tables[table.0].heap.watch(block);
    }

    /// Says which transaction of the run it is, for the watched page's events.
    pub fn note_moment(&mut self, transaction: u64) {
        if let Some(table) = self.watched {
            self.tables[table.0].heap.note_moment(transaction);
        }
    }

    /// What happened to the watched page, if there is one.
    #[must_use]
    pub fn page_life(&self) -> Option<PageLife> {
        self.tables[self.watched?.0].heap.page_life()
    }

    /// The log.
    #[must_use]
    pub const fn wal(&self) -> &Wal {
        &self.wal
    }

    /// The log, to start counting anew.
    pub const fn wal_mut(&mut self) -> &mut Wal {
        &mut self.wal
    }

    /// Transactions and held snapshots.
    #[must_use]
    pub const fn procs(&self) -> &ProcArray {
        &self.procs
    }

    /// The same, to take and release snapshots.
    pub const fn procs_mut(&mut self) -> &mut ProcArray {
        &mut self.procs
    }

    /// CHECKPOINT.
    pub fn checkpoint(&mut self) {
        self.wal.checkpoint();
    }

    /// A checkpoint begins; the pages that it is to write, which stay dirty until then.
    pub fn begin_checkpoint(&mut self) -> Vec<(ForkId, BlockNumber)> {
        self.wal.begin_checkpoint()
    }

    /// Starts counting rows anew, as the difference to counters read now.
    pub fn reset_counters(&mut self) {
        for table in &mut self.tables {
            table.counters = TableCounters::default();
        }
    }

    /// A statement begins, in a snapshot of its own or in its transaction's; its number.
    #[inline]
    fn begin_statement(&mut self) -> u32 {
        self.settle_images();
        self.statement += 1;
        self.procs.begin_statement();
        self.statement
    }

    /// A statement on this table begins, which keeps its lock to the end of its transaction.
    ///
    /// Source: `AcquireExecutorLocks`, src/backend/utils/cache/plancache.c, and `table_close` with
    /// `NoLock` in `ExecCloseRangeTableRelations`, src/backend/executor/execMain.c
    /// (REL_18_STABLE).
    #[inline]
    fn begin_statement_on(&mut self, table: TableId) -> u32 {
        self.tables[table.0].session.locked_by = self.procs.lxid();
        self.begin_statement()
    }

    /// INSERT of one row; [`Database::end_statement`] follows the last of a statement.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    ///
    /// Source: `ExecInsert`, src/backend/executor/nodeModifyTable.c (REL_18_STABLE).
    pub fn insert(&mut self, table: TableId, values: &[Value]) -> Result<(), StatementError> {
        self.begin_statement_on(table);
        let id = table;
        let table = &mut self.tables[table.0];
        let row = table.values.add(values)?;
        let statement = self.statement;
        let done = table.insert(row, &mut self.procs, &mut self.wal, statement);
        self.park(done.map(|_| 0), || Parked::Insert(id))?;
        Ok(())
    }
}
