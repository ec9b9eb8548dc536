//! Where engines differ from the heap: the page of a new row, an update in place, undo records.

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::page::MAX_HEAP_TUPLE_SIZE;

use crate::engine::clustered::{Neighbourhood, neighbourhood};
use crate::engine::undo::{UndoLog, image_bytes, undo_record_bytes, wal_update_bytes};
use crate::engine::{Engine, Store};
use crate::executor::fetch::HeapAccess;
use crate::executor::table::Table;
use crate::executor::{Database, StatementError};
use crate::heap::{InsertTargetBlock, Placed, Updated};
use crate::horizon::Horizon;
use crate::page::Tid;
use crate::row::NULL_SLOT;
use crate::wal::{RecordType, Wal};

impl Database {
    /// From here on all tables are stored so.
    ///
    /// A clustered table without a B-tree over whole columns stays a heap.
    pub fn use_engine(&mut self, engine: Engine) {
        for (number, table) in self.tables.iter_mut().enumerate() {
            table.store = match engine {
                Engine::Heap => Store::Heap,
                Engine::Clustered => table.ordering().map_or(Store::Heap, Store::Clustered),
                Engine::Undo => {
                    self.wal.open_table(number);
                    Store::Undo(UndoLog::new(&mut self.wal))
                }
            };
        }
    }
}

impl Table {
    /// The position among the B-trees of the index that gives the order: the first unique one,
    /// else the first; of columns, over all rows.
    pub(super) fn ordering(&self) -> Option<usize> {
        let whole = |position: &usize| self.indexes[*position].is_whole();
        let all = || (0..self.indexes.len()).filter(whole);
        let unique = |position: &usize| self.indexes[*position].tree.definition().is_unique;
        all().find(unique).or_else(|| all().next())
    }

    /// The integer column by which rows are in order: the first of the index that gives it.
    #[must_use]
    pub fn order_column(&self) -> Option<usize> {
        let column = self.indexes[self.ordering()?].first_column()?;
        let kind = self.row_type.columns[column].kind;
        (!kind.is_text() && !kind.is_float()).then_some(column)
    }

    /// Pages of the undo log; 0 on other engines.
    #[must_use]
    pub fn undo_pages(&self) -> u32 {
        match &self.store {
            Store::Undo(log) => log.pages(),
            Store::Heap | Store::Clustered(_) => 0,
        }
    }

    /// The page that the engine wants for a new row, with room for it; none where it goes where
    /// the heap puts it.
    pub(super) fn chosen_page(
        &mut self,
        row: u32,
        tuple_bytes: u16,
        horizon: &Horizon,
        wal: &mut Wal,
    ) -> Result<Option<InsertTargetBlock>, StatementError> {
        let Store::Clustered(index) = self.store else {
            return Ok(None);
        };
        let Some(entry) = self.entry_of(index, row)? else {
            return Ok(None);
        };
        let tree = &self.indexes[index].tree;
        let Neighbourhood::Between { nearest, highest } = neighbourhood(tree, entry.key.values())
        else {
            return Ok(None);
        };
        for block in [nearest, highest] {
            if self.has_room(block, tuple_bytes, horizon, wal)? {
                return Ok(Some(InsertTargetBlock(Some(block))));
            }
        }
        let fsm = self.fsm;
        let empty = self
            .heap
            .empty_page(tuple_bytes, &mut |page| wal.hint(fsm, page, 0))?;
        Ok(Some(InsertTargetBlock(Some(empty))))
    }

    /// Whether a row fits a page with its reserve; a page that is full is pruned first.
    fn has_room(
        &mut self,
        block: BlockNumber,
        tuple_bytes: u16,
        horizon: &Horizon,
        wal: &mut Wal,
    ) -> Result<bool, StatementError> {
        if self.heap.takes_row(block, tuple_bytes)? {
            return Ok(true);
        }
        let wal = RefCell::new(wal);
        HeapAccess::new(self.heap_parts(), horizon, &wal, None).visit(block);
        Ok(self.heap.takes_row(block, tuple_bytes)?)
    }

    /// What an undo engine keeps of a row that is inserted (nothing), or of the version of this
    /// length that is replaced or deleted; bytes that this adds to the record about to be written.
    pub(super) fn log_undo(&mut self, replaced_bytes: Option<u16>, wal: &mut Wal) -> u32 {
        let Store::Undo(log) = &mut self.store else {
            return 0;
        };
        let carried = log.append(
            undo_record_bytes(replaced_bytes.into_iter().map(u32::from)),
            wal,
        );
        carried.bytes + carried.image_bytes
    }

    /// Length of the version at a TID.
    pub(super) fn version_bytes(&self, tid: Tid) -> Option<u16> {
        let page = &self.heap.pages()[tid.block.0 as usize];
        page.tuple(tid.offset).map(|tuple| tuple.lp_len)
    }

    /// Changes a row where it is, if the engine does so and the page has room; `columns` changed
    /// from `before` to `after`.
    pub(super) fn update_in_place(
        &mut self,
        tid: Tid,
        tuple_bytes: u16,
        (before, after): (&[i64], &[i64]),
        columns: &[usize],
        wal: &mut Wal,
    ) -> Option<Updated> {
        let Store::Undo(log) = &mut self.store else {
            return None;
        };
        if u32::from(tuple_bytes) > MAX_HEAP_TUPLE_SIZE
            || !self
                .heap
                .page_mut(tid.block)
                .resize(tid.offset, tuple_bytes)
        {
            return None;
        }
        let width = |column: usize, slot: i64| {
            if slot == NULL_SLOT {
                return 0;
            }
            let (start, end) = self.row_type.columns[column].place(0, slot, &self.texts);
            end - start
        };
        let values = columns
            .iter()
            .map(|&column| (width(column, before[column]), width(column, after[column])));
        let carried = log.append(undo_record_bytes(values.clone().map(|(old, _)| old)), wal);
        let hole = self.heap.pages()[tid.block.0 as usize].exact_free_space();
        let page = wal.change(self.main, tid.block, hole);
        let bytes = wal_update_bytes(values) + image_bytes(page) + carried.image_bytes;
        wal.record(RecordType::UndoUpdate, bytes);
        Some(Updated {
            new: Placed {
                tid,
                initialises_page: false,
                cleared_visibility: false,
            },
            is_hot: true,
            is_newpage: false,
            lock: None,
            cleared_old_visibility: false,
        })
    }
}
