//! A table with its indexes, and the values of its rows.

use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;
use pgheadroom_layout::{Behaviour, HeapFillfactor, OffsetNumber};

use crate::btree::Btree;
use crate::checkpoint::ForkId;
use crate::counters::{Pending, TableCounters};
use crate::executor::StatementError;
use crate::executor::brin::Brin;
use crate::executor::compression::Replaced;
use crate::executor::fetch::HeapParts;
use crate::executor::foreign_key::ForeignKeys;
use crate::executor::index::{Index, IndexEntry};
use crate::executor::index_definition::IndexDefinition;
use crate::executor::key_code::KeyNumbers;
use crate::executor::model::Model;
use crate::executor::rewrite_online::Notes;
use crate::executor::row_places::Places;
use crate::executor::rows::Rows;
use crate::executor::session::SessionTable;
use crate::executor::toast::Toast;
use crate::executor::vacuum::FreezeAges;
use crate::heap::Heap;
use crate::page::Tid;
use crate::procarray::FIRST_NORMAL_XID;
use crate::row::{ColumnDefinition, ColumnLayout, NULL_SLOT, Row, RowType, Texts};
use crate::transaction::Xid;
use crate::value::{Value, ValueError};
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
    pub(super) indexes: Vec<Index>,
    pub(super) brins: Vec<Brin>,
    /// By position among all indexes: the place among the B-trees.
    pub(super) btree_positions: Vec<Option<usize>>,
    /// By column: whether a BRIN index wants to know of its change in a HOT update.
    pub(super) is_summarized: Vec<bool>,
    /// Where long strings go; a table without strings has none.
    pub(super) toast: Option<Box<Toast>>,
    pub(super) counters: TableCounters,
    /// What is the active session's alone.
    pub(super) session: Box<SessionTable>,
    /// What it keeps beside its heap, if it is no plain heap.
    pub(super) model: Option<Box<dyn Model>>,
    pub(super) main: ForkId,
    pub(super) fsm: ForkId,
    pub(super) vm: ForkId,
    columns: Vec<ColumnDefinition>,
    pub(super) row_type: RowType,
    /// Slots of the newest version of each row, and where it is.
    pub(super) rows: Rows,
    /// Strings that slots refer to.
    pub(super) texts: Texts,
    /// By column: whether its change keeps an update from being HOT.
    pub(super) blocks_hot: Vec<bool>,
    /// By row: the last statement that changed it.
    pub(super) changed_by: Vec<u32>,
    pub(super) scratch: Scratch,
    /// Where rows are found without a scan.
    pub(super) places: Places,
    /// By column: whether an update of it is as simple as can be.
    pub(super) stays_in_place: Vec<bool>,
    /// How many pages it had when its fillfactor was set after it had been loaded; 0: it was not.
    pub(super) old_pages: u32,
    /// Length of the record of the commonest pruning: one redirect, and no or one unused item.
    pub(super) prune_bytes: [u32; 2],
    /// Its indexes as they were created, to be built again.
    pub(super) definitions: Vec<IndexDefinition>,
    /// Whether insertions leave the free space map alone: a TOAST table that a rewrite fills.
    pub(super) skips_fsm: bool,
    /// What was changed since somebody began to copy the table.
    pub(super) notes: Option<Notes>,
    /// What replaced versions hold.
    pub(super) replaced: Replaced,
    /// Where the keys by which rows are found are no numbers.
    pub(super) key_numbers: Option<Box<KeyNumbers>>,
    pub(super) parameters: StorageParameters,
    /// No older transaction is on its pages (`pg_class.relfrozenxid`).
    pub(super) relfrozenxid: Xid,
    /// What its triggers need.
    pub(super) foreign_keys: ForeignKeys,
    /// Kept between scans to save allocations.
    pub(super) dead_entries: Vec<(OffsetNumber, Tid)>,
}

/// Storage parameters that are played, but for the fillfactor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageParameters {
    /// `vacuum_truncate`: whether VACUUM gives empty pages at the end back.
    pub truncates: bool,
    /// `toast_tuple_target`: down to how many bytes a row is shortened that is too long.
    pub toast_target: u32,
    /// Autovacuum's ages of freezing, if not the settings'.
    pub freeze: FreezeAges<Option<u32>>,
}

impl Default for StorageParameters {
    fn default() -> Self {
        Self {
            truncates: true,
            toast_target: TOAST_TUPLE_THRESHOLD,
            freeze: FreezeAges::default(),
        }
    }
}

/// Buffers of an update, kept to save allocations.
#[derive(Debug, Default)]
pub(super) struct Scratch {
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
        let rows = Rows::new(row_type.columns.len());
        let mut table = Self {
            heap: Heap::new(behaviour, definition.fillfactor),
            indexes: Vec::new(),
            brins: Vec::new(),
            btree_positions: Vec::new(),
            is_summarized: vec![false; definition.columns.len()],
            toast,
            counters: TableCounters::default(),
            session: Box::default(),
            model: None,
            main,
            fsm,
            vm,
            blocks_hot: vec![false; definition.columns.len()],
            columns: definition.columns,
            row_type,
            rows,
            texts: Texts::compressed_by(behaviour.toast_compression),
            changed_by: Vec::new(),
            scratch: Scratch::default(),
            key_numbers: None,
            parameters: StorageParameters::default(),
            relfrozenxid: FIRST_NORMAL_XID,
            foreign_keys: ForeignKeys::default(),
            dead_entries: Vec::new(),
            definitions: Vec::new(),
            skips_fsm: false,
            notes: None,
            replaced: Replaced::default(),
            places: Places::default(),
            stays_in_place: Vec::new(),
            old_pages: 0,
            prune_bytes: [0; 2],
        };
        for index in definition.indexes {
            table.build_index(behaviour, index, wal)?;
        }
        table.learn_columns();
        Ok(table)
    }

    /// Whether it has an index of any kind.
    pub(super) fn has_indexes(&self) -> bool {
        !self.indexes.is_empty() || !self.definitions.is_empty()
    }

    /// The place among the B-trees of the index at this position.
    pub(super) fn btree_position(&self, position: usize) -> usize {
        self.btree_positions[position].expect("rows are found by a B-tree")
    }

    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> &[ColumnDefinition] {
        &self.columns
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
        &self.indexes[position].tree
    }

    /// Pages of each B-tree.
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
            fsm: self.fsm,
            vm: self.vm,
            pinned: [self.session.trigger_slot, self.session.head_pin],
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
        let tuple = page.tuple(tid.offset)?;
        if tuple.is_hot_updated {
            return Some((tuple.row, tuple.next));
        }
        let is_newest = !tuple.xmax.is_valid() || tuple.is_locked_only;
        is_newest.then_some((tuple.row, tid))
    }

    /// The TOAST table, if the table has strings.
    #[must_use]
    pub fn toast(&self) -> Option<&Self> {
        self.toast.as_ref().map(|toast| &toast.table)
    }

    /// Newest slots of a row.
    pub(super) fn slots_of(&self, row: u32) -> &[i64] {
        self.rows.slots(row)
    }

    /// The newest version of a row.
    pub(crate) fn row_view(&self, row: u32) -> Row<'_> {
        Row {
            row_type: &self.row_type,
            slots: self.slots_of(row),
            texts: &self.texts,
        }
    }

    /// What an index has for a row.
    pub(super) fn entry_of(
        &mut self,
        index: usize,
        row: u32,
    ) -> Result<Option<IndexEntry>, StatementError> {
        let view = Row {
            row_type: &self.row_type,
            slots: self.rows.slots(row),
            texts: &self.texts,
        };
        self.indexes[index].entry_of(view, None)
    }

    /// A new row with these values; its number.
    ///
    /// # Errors
    /// [`ValueError`] when a column cannot hold its value.
    pub(super) fn add_row(&mut self, values: &[Value], statement: u32) -> Result<u32, ValueError> {
        assert_eq!(values.len(), self.row_type.columns.len(), "values of a row");
        let row = u32::try_from(self.changed_by.len()).expect("fewer than 2^32 rows");
        self.rows.begin();
        for (column, value) in values.iter().enumerate() {
            match self.row_type.slot(column, value.clone(), &mut self.texts) {
                Ok(slot) => self.rows.push(slot),
                Err(error) => {
                    self.rows.truncate(row);
                    return Err(error);
                }
            }
        }
        self.changed_by.push(statement);
        Ok(row)
    }

    /// Puts these values into a row that has none yet.
    pub(super) fn set_row(&mut self, row: u32, values: &[Value]) -> Result<(), ValueError> {
        let mut slots = Vec::with_capacity(values.len());
        for (column, value) in values.iter().enumerate() {
            slots.push(self.row_type.slot(column, value.clone(), &mut self.texts)?);
        }
        self.store_row(row, &slots);
        Ok(())
    }

    /// Forgets the row added last, which never got into the table.
    pub(super) fn take_back_row(&mut self, row: u32) {
        assert_eq!(row as usize + 1, self.changed_by.len(), "the last row");
        self.changed_by.pop();
        self.rows.truncate(row);
    }

    /// Puts the stored forms of a new row in the place of its values.
    pub(super) fn store_row(&mut self, row: u32, slots: &[i64]) {
        self.rows.replace(row, slots);
    }

    /// Replaces a row's slots, of which the columns in `changed` differ; a rollback brings the old
    /// ones back.
    pub(super) fn set_slots(&mut self, row: u32, new: &[i64], changed: &[usize]) {
        let old = self.rows.slots(row);
        self.session.undo.push(row);
        self.session.undo_slots.extend_from_slice(old);
        for &column in changed {
            let is_text = self.row_type.columns[column].kind.is_kept();
            if is_text && old[column] != NULL_SLOT && new[column] != NULL_SLOT {
                let replaced = (old[column], new[column]);
                self.session.undo_texts.push(replaced);
            }
        }
        self.rows.replace(row, new);
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
        if let Some(notes) = &mut self.notes {
            notes.end_transaction(&mut self.session.noted, is_commit);
        }
        let session = &mut self.session;
        let done = std::mem::take(&mut session.pending);
        if done != Pending::default() {
            self.counters.end_transaction(done, is_commit);
        }
        for (old, new) in session.undo_texts.drain(..) {
            self.texts.remove(if is_commit { old } else { new });
        }
        session.marks.clear();
        if !is_commit {
            self.undo_rows(0);
        }
        self.session.undo.clear();
        self.session.undo_slots.clear();
    }

    /// Rows have the values again that they had when so many were changed.
    pub(super) fn undo_rows(&mut self, changed: usize) {
        let session = &mut self.session;
        let width = self.row_type.columns.len();
        while session.undo.len() > changed {
            let row = session.undo.pop().expect("a row");
            let start = session.undo_slots.len() - width;
            let old = session.undo_slots.drain(start..);
            for (slot, old) in self.rows.slots_mut(row).iter_mut().zip(old) {
                *slot = old;
            }
        }
    }
}
