//! A table with its indexes, and the values of rows that anything depends on.

use pgheadroom_layout::wal_record::SharedBytes;
use pgheadroom_layout::{Behaviour, BlockNumber, HeapFillfactor, OffsetNumber};

use crate::btree::{self, Btree, Entry, ShapeId, TupleSizes};
use crate::checkpoint::ForkId;
use crate::counters::{Pending, TableCounters};
use crate::executor::fetch::HeapParts;
use crate::heap::{Heap, InsertTargetBlock};
use crate::page::{LinePointer, Tid, offset_of};
use crate::wal::Wal;

/// An integer column whose value matters: a key, or what updates change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Where its bytes begin, counted from the end of the tuple's header (`t_hoff`).
    pub offset_bytes: u16,
    /// Its bytes: 2, 4 or 8.
    pub width_bytes: u8,
}

/// An index of a table.
#[derive(Debug, Clone)]
pub struct IndexDefinition {
    /// Positions of its key columns.
    pub columns: Vec<usize>,
    /// What the tree is like.
    pub tree: btree::Definition,
}

/// A table whose rows all have one length.
#[derive(Debug, Clone)]
pub struct TableDefinition {
    /// Length of a tuple, not rounded.
    pub tuple_bytes: u16,
    /// Where its user data begin.
    pub hoff: u16,
    /// The option `fillfactor`.
    pub fillfactor: HeapFillfactor,
    /// Columns whose values matter.
    pub columns: Vec<Column>,
    /// Indexes in the order of their creation.
    pub indexes: Vec<IndexDefinition>,
}

/// Most key columns of an index here; PostgreSQL takes 32.
const MAX_KEY_COLUMNS: usize = 8;

/// The columns of an index's key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    values: [i64; MAX_KEY_COLUMNS],
    len: usize,
}

impl Key {
    pub fn values(&self) -> &[i64] {
        &self.values[..self.len]
    }
}

/// An index.
#[derive(Debug)]
pub(super) struct Index {
    pub tree: Btree,
    pub columns: Vec<usize>,
    pub shape: ShapeId,
    pub main: ForkId,
    pub fsm: ForkId,
}

impl Index {
    fn new(
        behaviour: Behaviour,
        definition: IndexDefinition,
        columns: &[Column],
        wal: &mut Wal,
    ) -> Self {
        let mut tree = Btree::new(behaviour, definition.tree);
        let widths = definition.columns.iter();
        let widths: Vec<u32> = widths
            .map(|&column| u32::from(columns[column].width_bytes))
            .collect();
        Self {
            shape: tree.shape(TupleSizes::of_integers(&widths)),
            tree,
            columns: definition.columns,
            main: wal.add_fork(),
            fsm: wal.add_fork(),
        }
    }

    /// The key of a row with these values.
    pub fn key_of(&self, row: &[i64]) -> Key {
        assert!(self.columns.len() <= MAX_KEY_COLUMNS, "key columns");
        let mut key = Key {
            values: [0; MAX_KEY_COLUMNS],
            len: self.columns.len(),
        };
        for (value, &column) in key.values.iter_mut().zip(&self.columns) {
            *value = row[column];
        }
        key
    }
}

/// A table.
#[derive(Debug)]
pub struct Table {
    pub(super) heap: Heap,
    pub(super) indexes: Vec<Index>,
    pub(super) counters: TableCounters,
    pub(super) pending: Pending,
    pub(super) target: InsertTargetBlock,
    pub(super) main: ForkId,
    pub(super) fsm: ForkId,
    pub(super) vm: ForkId,
    pub(super) columns: Vec<Column>,
    /// Values of the newest version of each row, all columns of a row together.
    pub(super) values: Vec<i64>,
    /// By row: the last statement that changed it.
    pub(super) changed_by: Vec<u32>,
    /// Rows that the running transaction changed, and their values before.
    undo: Vec<u32>,
    undo_values: Vec<i64>,
    /// Kept between scans to save allocations.
    pub(super) dead_entries: Vec<(OffsetNumber, Tid)>,
    pub(super) tuple_bytes: u16,
    pub(super) hoff: u16,
}

impl Table {
    pub(super) fn new(behaviour: Behaviour, definition: TableDefinition, wal: &mut Wal) -> Self {
        let (main, fsm, vm) = (wal.add_fork(), wal.add_fork(), wal.add_fork());
        let columns = definition.columns;
        let indexes = definition.indexes.into_iter();
        let indexes = indexes
            .map(|index| Index::new(behaviour, index, &columns, wal))
            .collect();
        Self {
            heap: Heap::new(behaviour, definition.fillfactor),
            indexes,
            counters: TableCounters::default(),
            pending: Pending::default(),
            target: InsertTargetBlock::default(),
            main,
            fsm,
            vm,
            columns,
            values: Vec::new(),
            changed_by: Vec::new(),
            undo: Vec::new(),
            undo_values: Vec::new(),
            dead_entries: Vec::new(),
            tuple_bytes: definition.tuple_bytes,
            hoff: definition.hoff,
        }
    }

    /// A further index, filled with what is in the table.
    pub(super) fn build_index(
        &mut self,
        behaviour: Behaviour,
        definition: IndexDefinition,
        wal: &mut Wal,
    ) {
        let mut index = Index::new(behaviour, definition, &self.columns, wal);
        let mut keys = Vec::new();
        for (block, page) in (0..).map(BlockNumber).zip(self.heap.pages()) {
            for (position, item) in page.items().iter().enumerate() {
                if let LinePointer::Normal(tuple) = item {
                    assert!(
                        !tuple.is_heap_only && !tuple.xmax.is_valid(),
                        "a loaded table"
                    );
                    let offset = offset_of(position);
                    let key = index.key_of(self.values_of(tuple.row));
                    keys.push((key, Tid { block, offset }));
                }
            }
        }
        let shape = index.shape;
        index.tree.build(keys.iter().map(|(key, tid)| Entry {
            key: key.values(),
            shape,
            tid: *tid,
        }));
        self.indexes.push(index);
    }

    /// Its pages.
    #[must_use]
    pub const fn heap(&self) -> &Heap {
        &self.heap
    }

    /// An index's tree, by the order of creation.
    ///
    /// # Panics
    /// When there is no such index.
    #[must_use]
    pub fn index_tree(&self, position: usize) -> &Btree {
        &self.indexes[position].tree
    }

    /// Pages of each index.
    #[must_use]
    pub fn index_pages(&self) -> Vec<u32> {
        let indexes = self.indexes.iter();
        indexes.map(|index| index.tree.page_count()).collect()
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
            changed_by: &self.changed_by,
            main: self.main,
        }
    }

    /// The row that the tuple at this TID is a version of.
    pub(super) fn row_at(&self, tid: Tid) -> u32 {
        let page = &self.heap.pages()[tid.block.0 as usize];
        page.tuple(tid.offset).expect("a visible tuple").row
    }

    /// Newest values of the row at this TID.
    pub(super) fn values_at(&self, tid: Tid) -> &[i64] {
        self.values_of(self.row_at(tid))
    }

    /// Newest values of a row.
    pub(super) fn values_of(&self, row: u32) -> &[i64] {
        let width = self.columns.len();
        &self.values[row as usize * width..][..width]
    }

    /// A new row with these values; its number.
    pub(super) fn add_row(&mut self, values: &[i64], statement: u32) -> u32 {
        assert_eq!(values.len(), self.columns.len(), "values of a row");
        let row = u32::try_from(self.changed_by.len()).expect("fewer than 2^32 rows");
        self.values.extend_from_slice(values);
        self.changed_by.push(statement);
        row
    }

    /// Replaces a row's values; a rollback brings the old ones back.
    pub(super) fn set_values(&mut self, row: u32, new: &[i64]) {
        let width = self.columns.len();
        let old = &mut self.values[row as usize * width..][..width];
        self.undo.push(row);
        self.undo_values.extend_from_slice(old);
        old.copy_from_slice(new);
    }

    /// What a new version repeats of the old one, byte by byte.
    ///
    /// Source: `log_heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(super) fn shared_bytes(&self, old: &[i64], new: &[i64]) -> SharedBytes {
        let length = u32::from(self.tuple_bytes - self.hoff);
        let (mut first, mut end) = (length, 0);
        for (column, (old, new)) in self.columns.iter().zip(old.iter().zip(new)) {
            let bytes = old.to_le_bytes().into_iter().zip(new.to_le_bytes());
            let start = u32::from(column.offset_bytes);
            for (at, (old, new)) in (start..).zip(bytes.take(usize::from(column.width_bytes))) {
                if old != new {
                    first = first.min(at);
                    end = end.max(at + 1);
                }
            }
        }
        if end == 0 {
            return SharedBytes {
                prefix: if length < 3 { 0 } else { length },
                suffix: 0,
            };
        }
        let at_least_3 = |bytes: u32| if bytes < 3 { 0 } else { bytes };
        SharedBytes {
            prefix: at_least_3(first),
            suffix: at_least_3(length - end),
        }
    }

    /// The hole of a heap page as it is.
    pub(super) fn hole(&self, tid: Tid) -> u32 {
        self.heap.pages()[tid.block.0 as usize].exact_free_space()
    }

    /// Counts what the transaction did; after a rollback the old values are back.
    pub(super) fn end_transaction(&mut self, is_commit: bool) {
        let done = std::mem::take(&mut self.pending);
        if done != Pending::default() {
            self.counters.end_transaction(done, is_commit);
        }
        if !is_commit {
            let width = self.columns.len();
            while let Some(row) = self.undo.pop() {
                let start = self.undo_values.len() - width;
                let old = self.undo_values.drain(start..);
                for (value, old) in self.values[row as usize * width..].iter_mut().zip(old) {
                    *value = old;
                }
            }
        }
        self.undo.clear();
        self.undo_values.clear();
    }
}
