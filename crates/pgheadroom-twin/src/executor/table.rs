//! A table with its indexes, and the values of its rows.

use std::collections::HashMap;

use pgheadroom_layout::{Behaviour, HeapFillfactor, OffsetNumber};

use crate::btree::Btree;
use crate::counters::{TableCounters, TableXactStatus};
use crate::executor::StatementError;
use crate::executor::brin::Brin;
use crate::executor::cached_tids::CachedTids;
use crate::executor::concurrent_changes::ConcurrentChanges;
use crate::executor::fetch::{Forks, HeapParts};
use crate::executor::foreign_key::ForeignKeys;
use crate::executor::gin::Gin;
use crate::executor::hash::Hash;
use crate::executor::index::{Index, IndexEntry};
use crate::executor::index_definition::IndexDefinition;
use crate::executor::model::Model;
use crate::executor::parameters::StorageParameters;
use crate::executor::row_values::RowValues;
use crate::executor::session_table::SessionTables;
use crate::fsm::FreeSpaceMap;
use crate::heap::Heap;
use crate::page::Tid;
use crate::procarray::{FIRST_NORMAL_XID, ProcArray};
use crate::row::{ColumnDefinition, ColumnLayout, LoadRule, NULL_SLOT, OutOfLine, Row, RowType};
use crate::transaction::Xid;
use crate::wal::Wal;

/// A table.
#[derive(Debug, Clone)]
pub struct TableDefinition {
    /// Its columns, in their order.
    pub columns: Vec<ColumnDefinition>,
    /// Indexes in the order of their creation.
    pub indexes: Vec<IndexDefinition>,
    /// The option `fillfactor`.
    pub fillfactor: HeapFillfactor,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    pub(super) heap: Heap,
    pub(super) forks: Forks,
    pub(super) class: ClassEntry,
    /// Rows by number, whatever version is where.
    pub(super) values: RowValues,
    pub(super) indexes: Indexes,
    /// Where long strings go; a table without strings has none.
    pub(super) toast: Option<Box<Toast>>,
    /// What it keeps beside its heap, if it is no plain heap.
    pub(super) model: Option<Box<dyn Model>>,
    /// What its triggers need.
    pub(super) foreign_keys: ForeignKeys,
    pub(super) counters: TableCounters,
    /// What was changed since somebody began to copy the table.
    pub(super) concurrent_changes: Option<ConcurrentChanges>,
    /// What is the active session's alone, and the others'.
    pub(super) session: SessionTables,
    pub(super) scratch: Scratch,
}

/// What the catalogue says of a table.
///
/// Source: `pg_class`, src/include/catalog/pg_class.h.
#[derive(Debug)]
pub(super) struct ClassEntry {
    pub columns: Vec<ColumnDefinition>,
    pub parameters: StorageParameters,
    /// No older transaction is on its pages.
    pub relfrozenxid: Xid,
    /// No older multixact is on its pages.
    pub relminmxid: Xid,
    /// What VACUUM and its like have written, where that is known.
    pub statistics: Option<ClassStatistics>,
    /// How many pages it had when its fillfactor was set after it had been loaded; 0: it was not.
    pub old_pages: u32,
    /// Whether insertions leave the free space map alone: a TOAST table that a rewrite fills.
    pub skips_fsm: bool,
    /// Values of its statistics that may be out of line, in pg_statistic's TOAST table.
    pub long_statistics: u32,
}

/// `relpages`, `reltuples`, `relallvisible`, and from 18 on `relallfrozen`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ClassStatistics {
    pub relpages: u32,
    pub reltuples: f32,
    pub relallvisible: u32,
    pub relallfrozen: u32,
}

/// A table's indexes, and what they are to its columns and rows.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    pub btrees: Vec<Index>,
    pub brins: Vec<Brin>,
    pub hashes: Vec<Hash>,
    pub gins: Vec<Gin>,
    /// By position among all indexes: the position among the B-trees.
    pub btree_positions: Vec<Option<usize>>,
    /// As they were created, to be built again.
    pub definitions: Vec<IndexDefinition>,
    /// By column: whether its change keeps an update from being HOT.
    pub blocks_hot: Vec<bool>,
    /// By column: whether a BRIN index wants to know of its change in a HOT update.
    pub is_summarized: Vec<bool>,
    /// By column: whether its change is that of a slot alone (`update/new_values.rs`).
    pub is_fixed: Vec<bool>,
    /// Where the keys by which rows are found are no numbers.
    pub key_numbers: Option<Box<KeyNumbers>>,
    /// TIDs of rows that are found without a scan.
    pub cached_tids: CachedTids,
}

/// A table's TOAST table.
#[derive(Debug)]
pub(super) struct Toast {
    pub(super) table: Table,
    /// While a row is stored anew: OIDs that its values had, by column.
    pub(super) kept_ids: Vec<(usize, u32)>,
    /// What chunks hold, by OID; kept where images are compressed.
    pub(super) values: Option<HashMap<u32, OutOfLine>>,
}

/// How the number of a key becomes the values that an index has for it, where these are not the
/// number alone.
#[derive(Debug, Clone)]
pub(super) struct KeyNumbers {
    /// The index, by its position.
    pub index: usize,
    /// How many of its columns a statement names: those up to the key.
    pub columns: usize,
    /// How values are made, by column of the table.
    pub rules: Vec<LoadRule>,
}

/// What a statement works with, kept to save allocations and work.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub update: UpdateBuffers,
    /// Entries that a scan found dead.
    pub dead_entries: Vec<(OffsetNumber, Tid)>,
    /// Length of the record of the commonest pruning: one redirect, and no or one unused item.
    pub prune_bytes: [u32; 2],
    /// Whether updates of fixed columns go the way of all others.
    pub without_fast_path: bool,
}

/// Slots of a row before its update and after it, and the columns that differ.
#[derive(Debug, Default)]
pub(super) struct UpdateBuffers {
    pub old: Vec<i64>,
    pub new: Vec<i64>,
    pub changed: Vec<usize>,
    pub bytes: [Vec<u8>; 2],
}

impl Table {
    pub(super) fn new(
        behaviour: Behaviour,
        definition: TableDefinition,
        wal: &mut Wal,
    ) -> Result<Self, StatementError> {
        let row_type = RowType::new(&definition.columns).map_err(StatementError::Unsupported)?;
        let is_long = |column: &ColumnLayout| column.kind.is_kept() && column.width.is_none();
        let toast = if row_type.columns.iter().any(is_long) {
            Some(Box::new(Toast::new(behaviour, wal)?))
        } else {
            None
        };
        Self::with_toast(behaviour, definition, row_type, toast, wal)
    }

    /// A TOAST table, whose values are stored as they are.
    pub(super) fn new_toast(
        behaviour: Behaviour,
        definition: TableDefinition,
        wal: &mut Wal,
    ) -> Result<Self, StatementError> {
        let row_type = RowType::new(&definition.columns).map_err(StatementError::Unsupported)?;
        Self::with_toast(behaviour, definition, row_type.unpacked(), None, wal)
    }

    fn with_toast(
        behaviour: Behaviour,
        definition: TableDefinition,
        row_type: RowType,
        toast: Option<Box<Toast>>,
        wal: &mut Wal,
    ) -> Result<Self, StatementError> {
        let (main, fsm, vm) = (wal.add_fork(), wal.add_fork(), wal.add_fork());
        let columns = definition.columns.len();
        let mut table = Self {
            heap: Heap::new(behaviour, definition.fillfactor),
            forks: Forks { main, fsm, vm },
            class: ClassEntry {
                columns: definition.columns,
                parameters: StorageParameters::default(),
                relfrozenxid: FIRST_NORMAL_XID,
                relminmxid: Xid::FIRST_MULTIXACT,
                statistics: None,
                old_pages: 0,
                skips_fsm: false,
                long_statistics: 0,
            },
            values: RowValues::new(row_type, behaviour.toast_compression),
            indexes: Indexes {
                blocks_hot: vec![false; columns],
                is_summarized: vec![false; columns],
                ..Indexes::default()
            },
            toast,
            model: None,
            foreign_keys: ForeignKeys::default(),
            counters: TableCounters::default(),
            concurrent_changes: None,
            session: SessionTables::default(),
            scratch: Scratch::default(),
        };
        for index in definition.indexes {
            table.build_index(behaviour, index, wal)?;
        }
        table.learn_columns();
        Ok(table)
    }

    /// Whether it has an index of any kind.
    pub(super) fn has_indexes(&self) -> bool {
        !self.indexes.btrees.is_empty() || !self.indexes.definitions.is_empty()
    }

    /// The position among the B-trees of the index at this position of all.
    pub(super) fn btree_position(&self, position: usize) -> usize {
        self.indexes.btree_positions[position].expect("rows are found by a B-tree")
    }

    /// How old what is on its pages may be: of transactions, and of multixacts.
    #[must_use]
    pub(crate) fn ages(&self, procs: &ProcArray) -> [u32; 2] {
        let age = |next: Xid, oldest: Xid| next.0.saturating_sub(oldest.0);
        [
            age(procs.next_xid(), self.class.relfrozenxid),
            age(procs.next_multixact(), self.class.relminmxid),
        ]
    }

    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> &[ColumnDefinition] {
        &self.class.columns
    }

    /// Its pages.
    #[must_use]
    pub const fn heap(&self) -> &Heap {
        &self.heap
    }

    /// A B-tree, by the order of creation among B-trees.
    ///
    /// # Panics
    /// When there is no such index.
    #[must_use]
    pub fn index_tree(&self, position: usize) -> &Btree {
        &self.indexes.btrees[position].tree
    }

    /// Of each hash index, the text of each page.
    pub(crate) fn hash_texts(&self) -> Vec<Vec<String>> {
        let hashes = self.indexes.hashes.iter();
        hashes.map(|hash| hash.index.texts()).collect()
    }

    /// Of each GIN, the text of each page, and its free space map.
    pub(crate) fn gin_texts(&self) -> Vec<(Vec<String>, &FreeSpaceMap)> {
        let gins = self.indexes.gins.iter();
        gins.map(|gin| (gin.index.texts(), gin.index.fsm()))
            .collect()
    }

    /// Pages of each B-tree, then of each hash index, then of each GIN.
    #[must_use]
    pub fn index_pages(&self) -> Vec<u32> {
        let trees = self.indexes.btrees.iter();
        let trees = trees.map(|index| index.tree.page_count());
        let hashes = self.indexes.hashes.iter();
        let gins = self.indexes.gins.iter();
        trees
            .chain(hashes.map(|hash| hash.index.page_count()))
            .chain(gins.map(|gin| gin.index.page_count()))
            .collect()
    }

    /// Its counters.
    #[must_use]
    pub const fn counters(&self) -> &TableCounters {
        &self.counters
    }

    /// What readers touch.
    pub(super) fn heap_parts(&mut self) -> HeapParts<'_> {
        HeapParts {
            heap: &mut self.heap,
            counters: &mut self.counters,
            changed: &self.session.changed,
            forks: self.forks,
            prune_bytes: self.scratch.prune_bytes,
            pinned: self.session.pinned(),
        }
    }

    /// The row that the tuple at this TID is a version of.
    pub(super) fn row_at(&self, tid: Tid) -> u32 {
        let page = &self.heap.pages()[tid.block.0 as usize];
        page.row(tid.offset).expect("a visible tuple")
    }

    /// A row and where its newest version may be, by a version of it: here, or where a HOT update
    /// has put the next; `None` when another update or a delete followed.
    pub(super) fn newest(&self, tid: Tid) -> Option<(u32, Tid)> {
        let page = &self.heap.pages()[tid.block.0 as usize];
        page.newest(tid.offset)
    }

    /// The TOAST table, if the table has strings.
    #[must_use]
    pub fn toast(&self) -> Option<&Self> {
        self.toast.as_ref().map(|toast| &toast.table)
    }

    /// What an index has for a row.
    pub(super) fn entry_of(
        &mut self,
        index: usize,
        row: u32,
    ) -> Result<Option<IndexEntry>, StatementError> {
        self.indexes.btrees[index].entry_of(self.values.view(row), None)
    }

    /// The newest version of a row.
    pub(crate) fn row_view(&self, row: u32) -> Row<'_> {
        self.values.view(row)
    }

    /// Replaces a row's slots, of which the columns in `changed` differ; a rollback brings the old
    /// ones back.
    pub(super) fn set_slots(&mut self, row: u32, new: &[i64], changed: &[usize]) {
        self.keep_old_slots(row);
        let old = self.values.rows.kept(row);
        for &column in changed {
            let is_text = self.values.row_type.columns[column].kind.is_kept();
            let replaced = (old.get(column), new[column]);
            if is_text && replaced.0 != NULL_SLOT && replaced.1 != NULL_SLOT {
                self.session.undo_texts.push(replaced);
            }
        }
        self.values.rows.replace(row, new);
    }

    /// A row's slots are about to be changed: a rollback brings these back.
    #[inline]
    pub(super) fn keep_old_slots(&mut self, row: u32) {
        self.session.undo.push(row);
        let slots = self.values.rows.kept(row);
        slots.append_to(&mut self.session.undo_slots);
    }

    /// The hole of a heap page as it is.
    pub(super) fn hole(&self, tid: Tid) -> u32 {
        self.heap.pages()[tid.block.0 as usize].exact_free_space()
    }

    /// Counts what the transaction did; after a rollback the old values are back.
    pub(super) fn end_transaction(&mut self, is_commit: bool) {
        if let Some(toast) = &mut self.toast {
            toast.table.end_transaction(is_commit);
        }
        if let Some(notes) = &mut self.concurrent_changes {
            notes.end_transaction(&mut self.session.changes, is_commit);
        }
        let session = &mut *self.session;
        if session.is_idle() {
            return;
        }
        let done = std::mem::take(&mut session.trans);
        if done != TableXactStatus::default() {
            self.counters.end_transaction(done, is_commit);
        }
        for (old, new) in session.undo_texts.drain(..) {
            self.values.texts.remove(if is_commit { old } else { new });
        }
        session.marks.clear();
        session.changed.end();
        if !is_commit {
            self.undo_rows(0);
        }
        self.session.undo.clear();
        self.session.undo_slots.clear();
    }

    /// Rows have the values again that they had when so many were changed.
    pub(super) fn undo_rows(&mut self, changed: usize) {
        let session = &mut self.session;
        let width = self.values.row_type.columns.len();
        while session.undo.len() > changed {
            let row = session.undo.pop().expect("a row");
            let start = session.undo_slots.len() - width;
            let old = &session.undo_slots[start..];
            self.values.rows.replace(row, old);
            session.undo_slots.truncate(start);
        }
    }
}
