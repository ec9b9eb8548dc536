//! Where a model is asked, and what it may ask of a table ([`crate::executor::model`]).

use std::sync::Arc;

use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_PAGE_HEADER};
use pgheadroom_layout::wal_record::Page;
use pgheadroom_layout::{BlockNumber, LayoutError, OffsetNumber};

use crate::btree::key::SearchKey;
use crate::btree::search::{Tie, lower_bound};
use crate::btree::{Btree, BtreePage};
use crate::executor::model::{InPlace, Model, NewRow};
use crate::executor::table::Table;
use crate::executor::{Database, StatementError};
use crate::heap::InsertTargetBlock;
use crate::page::{LinePointer, Tid};
use crate::procarray::ProcArray;
use crate::row::NULL_SLOT;
use crate::row::kind::Kind;
use crate::wal::{ModelRecord, Wal};

/// Behind every row version with the same key.
const LAST_TID: Tid = Tid {
    block: BlockNumber(u32::MAX),
    offset: OffsetNumber(u16::MAX),
};

impl Database {
    /// From here on all tables are kept as the first of these says that has an answer.
    pub fn use_models(&mut self, models: &[Arc<dyn Model>]) {
        for (number, table) in self.tables.iter_mut().enumerate() {
            self.wal.open_table(number);
            let own = |model: &Arc<dyn Model>| model.of_table(table, &mut self.wal);
            table.model = models.iter().find_map(own);
        }
    }

    /// What a model calls its records.
    pub(crate) fn model_record_name(&self, record: ModelRecord) -> Option<&'static str> {
        let mut models = self.tables.iter().filter_map(|table| table.model());
        models.next().map(|model| model.record_name(record))
    }
}

/// Where a model is asked.
impl Table {
    /// The page that the model wants for a new row, or for a version that replaces another one;
    /// none where the heap chooses.
    pub(super) fn chosen_page(
        &mut self,
        (row, replaced): (u32, Option<Tid>),
        tuple_bytes: u16,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> Result<Option<InsertTargetBlock>, StatementError> {
        let Some(mut model) = self.model.take() else {
            return Ok(None);
        };
        let chosen = model.page_for(NewRow {
            table: self,
            row,
            replaced,
            tuple_bytes,
            procs,
            wal,
        });
        self.model = Some(model);
        Ok(chosen?.map(|block| InsertTargetBlock(Some(block))))
    }

    /// The model's page for a version with these values is the session's target.
    pub(super) fn aim_at_chosen_page(
        &mut self,
        (row, old): (u32, Tid),
        (before, after): (&[i64], &[i64]),
        tuple_bytes: u16,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        if self.model.is_none() {
            return Ok(());
        }
        self.values.rows.replace(row, after);
        let chosen = self.chosen_page((row, Some(old)), tuple_bytes, procs, wal);
        self.values.rows.replace(row, before);
        if let Some(chosen) = chosen? {
            self.session.target = chosen;
        }
        Ok(())
    }

    /// Bytes that the model adds to the record about to be written: of a row that is inserted, or
    /// of the version here that is replaced or deleted.
    #[inline]
    pub(super) fn log_beside(&mut self, replaced: Option<Tid>, wal: &mut Wal) -> u32 {
        let Some(model) = &mut self.model else {
            return 0;
        };
        let length = replaced.and_then(|tid| {
            let page = &self.heap.pages()[tid.block.0 as usize];
            page.tuple(tid.offset).map(|tuple| tuple.lp_len)
        });
        model.beside(length, wal)
    }

    /// Whether an update that changes no indexed column may be HOT.
    #[inline]
    pub(super) fn has_hot_updates(&self) -> bool {
        let model = self.model();
        model.is_none_or(|model| model.has_hot_updates())
    }

    /// Whether the model changed a row where it is; `columns` go from `before` to `after`.
    #[inline]
    pub(super) fn update_in_place(
        &mut self,
        tid: Tid,
        tuple_bytes: u16,
        (before, after): (&[i64], &[i64]),
        columns: &[usize],
        wal: &mut Wal,
    ) -> bool {
        let Some(mut model) = self.model.take() else {
            return false;
        };
        let lengths = |&column: &usize| {
            let length = |slot| self.value_bytes(column, slot);
            (length(before[column]), length(after[column]))
        };
        let values: Vec<(u32, u32)> = columns.iter().map(lengths).collect();
        let is_done = model.in_place(InPlace {
            table: self,
            tid,
            tuple_bytes,
            values: &values,
            wal,
        });
        self.model = Some(model);
        is_done
    }

    /// Bytes of a stored value, without alignment.
    fn value_bytes(&self, column: usize, slot: i64) -> u32 {
        if slot == NULL_SLOT {
            return 0;
        }
        let (start, end) = self.values.row_type.columns[column].extent(0, slot, &self.values.texts);
        end - start
    }
}

/// What a model may ask.
impl Table {
    /// What it keeps beside its heap, if it is no plain heap.
    #[must_use]
    pub fn model(&self) -> Option<&dyn Model> {
        self.model.as_deref()
    }

    /// The position among the B-trees of the index that gives the rows an order: the first unique
    /// one, else the first; of columns, over all rows.
    #[must_use]
    pub fn ordering(&self) -> Option<usize> {
        let whole = |position: &usize| self.indexes.btrees[*position].is_whole();
        let all = || (0..self.indexes.btrees.len()).filter(whole);
        let unique = |position: &usize| self.indexes.btrees[*position].tree.definition().is_unique;
        all().find(unique).or_else(|| all().next())
    }

    /// The integer column by which rows are in order: the first of the index that gives it. Not of
    /// times, whose neighbours are a million apart.
    #[must_use]
    pub fn order_column(&self) -> Option<usize> {
        let column = self.indexes.btrees[self.ordering()?].first_column()?;
        let kind = self.values.row_type.columns[column].kind;
        let counts = !kind.is_kept() && !kind.is_float() && kind != Kind::Timestamp;
        counts.then_some(column)
    }

    /// The leaf of this B-tree that a new row's entry belongs to, its position there, behind its
    /// equals, and whether the leaf begins with an equal one; none while the index is empty, or
    /// leaves the row out.
    ///
    /// # Errors
    /// [`StatementError`] when an expression of the index fails.
    pub fn leaf_for(
        &mut self,
        index: usize,
        row: u32,
    ) -> Result<Option<(&BtreePage, usize, bool)>, StatementError> {
        let Some(entry) = self.entry_of(index, row)? else {
            return Ok(None);
        };
        let search = SearchKey {
            values: entry.key.values(),
            tid: Some(LAST_TID),
        };
        let tree: &Btree = &self.indexes.btrees[index].tree;
        let Some((leaf, _)) = tree.descend(search, Tie::PivotIsEqual) else {
            return Ok(None);
        };
        let page = tree.page(leaf);
        let position = lower_bound(search, page, Tie::PivotIsEqual);
        let first = page.first_data();
        let begins_with_it = first < page.len() && page.key(first) == search.values;
        Ok(Some((page, position, begins_with_it)))
    }

    /// Whether a new row of this length fits a page, its reserve left alone.
    ///
    /// # Errors
    /// [`LayoutError`] when it fits no page.
    pub fn takes_row(&self, block: BlockNumber, tuple_bytes: u16) -> Result<bool, LayoutError> {
        self.heap.takes_row(block, tuple_bytes)
    }

    /// Whether another version of this length fits on the page of the one before.
    ///
    /// # Errors
    /// [`LayoutError`] when it fits no page.
    pub fn takes_version(&self, block: BlockNumber, tuple_bytes: u16) -> Result<bool, LayoutError> {
        self.heap.takes_version(block, tuple_bytes)
    }

    /// Bytes that such a row needs free on a page, the reserve with it.
    ///
    /// # Errors
    /// [`LayoutError`] when it fits no page.
    pub fn wanted_bytes(&self, tuple_bytes: u16) -> Result<u32, LayoutError> {
        self.heap.wanted_bytes(tuple_bytes)
    }

    /// Bytes of each page that inserts leave alone.
    #[must_use]
    pub fn reserve_bytes(&self) -> u32 {
        self.heap.fillfactor().reserve_bytes()
    }

    /// Whether no line pointer of a page is in use.
    #[must_use]
    pub fn is_without_rows(&self, block: BlockNumber) -> bool {
        let mut items = self.heap.pages()[block.0 as usize].each_item();
        items.all(|(_, item)| matches!(item, LinePointer::Unused))
    }

    /// Free bytes of a page, as the free space map is told them.
    #[must_use]
    pub fn free_bytes(&self, block: BlockNumber) -> u32 {
        let page = &self.heap.pages()[block.0 as usize];
        if page.is_new() {
            BLCKSZ - SIZE_OF_PAGE_HEADER
        } else {
            page.heap_free_space()
        }
    }

    /// Free bytes of a page by the free space map (`GetRecordedFreeSpace`).
    #[must_use]
    pub fn recorded_free_bytes(&self, block: BlockNumber) -> u32 {
        self.heap.fsm().recorded_bytes(block)
    }

    /// Tells the free space map of a page; its searches see no increase
    /// (`RecordPageWithFreeSpace`).
    pub fn record_free_bytes(&mut self, block: BlockNumber, free_bytes: u32, wal: &mut Wal) {
        let fsm = self.forks.fsm;
        let log = &mut |page| wal.hint(fsm, page, 0);
        self.heap.fsm_mut().record(block, free_bytes, log);
    }

    /// A page that has so many free bytes by the free space map (`GetPageWithFreeSpace`).
    pub fn page_with_free_bytes(&mut self, needed: u32, wal: &mut Wal) -> Option<BlockNumber> {
        let fsm = self.forks.fsm;
        let log = &mut |page| wal.hint(fsm, page, 0);
        self.heap.fsm_mut().get(needed, log)
    }

    /// The next such page, after the map is told what is free on this one
    /// (`RecordAndGetPageWithFreeSpace`).
    pub fn next_page_with_free_bytes(
        &mut self,
        block: BlockNumber,
        free_bytes: u32,
        needed: u32,
        wal: &mut Wal,
    ) -> Option<BlockNumber> {
        let fsm = self.forks.fsm;
        let log = &mut |page| wal.hint(fsm, page, 0);
        let map = self.heap.fsm_mut();
        map.record_and_get(block, free_bytes, needed, log)
    }

    /// Adds an empty page at the end, which searches of the free space map find.
    ///
    /// # Errors
    /// [`LayoutError`] when the table cannot grow.
    pub fn add_page(&mut self, wal: &mut Wal) -> Result<BlockNumber, LayoutError> {
        let fsm = self.forks.fsm;
        self.heap.add_known_page(&mut |page| wal.hint(fsm, page, 0))
    }

    /// Gives the tuple here another length, if its page has the room; whether it did.
    pub fn resize(&mut self, tid: Tid, tuple_bytes: u16) -> bool {
        let page = self.heap.page_mut(tid.block);
        page.resize(tid.offset, tuple_bytes)
    }

    /// The next record changes this page of the heap.
    pub fn change_page(&self, block: BlockNumber, wal: &mut Wal) -> Page {
        let hole = self.heap.pages()[block.0 as usize].exact_free_space();
        wal.change(self.forks.main, block, hole)
    }
}
