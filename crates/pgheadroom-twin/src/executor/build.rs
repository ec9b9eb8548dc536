//! CREATE INDEX on a table that was loaded or rewritten: what its rows have in the index.

use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::btree::{Built, Entries, SingleKey};
use crate::executor::StatementError;
use crate::executor::brin::Brin;
use crate::executor::gin::Gin;
use crate::executor::hash::Hash;
use crate::executor::index::{Index, blocking_columns};
use crate::executor::index_definition::{IndexDefinition, IndexMethod};
use crate::executor::table::Table;
use crate::heap::Heap;
use crate::page::Tid;
use crate::row::NULL_SLOT;
use crate::wal::Wal;

impl Table {
    /// A further index, filled with what is in the table.
    pub(super) fn build_index(
        &mut self,
        behaviour: Behaviour,
        definition: IndexDefinition,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        self.indexes.definitions.push(definition.clone());
        match definition.method {
            IndexMethod::Btree => {
                let is_unique = definition.is_unique;
                self.build_btree(behaviour, definition, is_unique, wal)?;
            }
            IndexMethod::Brin => self.build_brin(behaviour, definition, wal)?,
            IndexMethod::Hash => self.build_hash(behaviour, definition, false, wal)?,
            IndexMethod::Gin => self.build_gin(behaviour, definition, wal)?,
            IndexMethod::Unpriced => self.note_no_btree(&definition),
        }
        self.note_built(rows_of(&self.heap).count() as u64);
        Ok(())
    }

    /// The same of a B-tree; the pages that were written.
    pub(super) fn build_btree(
        &mut self,
        behaviour: Behaviour,
        definition: IndexDefinition,
        checks_uniqueness: bool,
        wal: &mut Wal,
    ) -> Result<Built, StatementError> {
        let mut index = Index::new(behaviour, definition, &self.values.row_type, wal)?;
        let built = self.fill(&mut index, rows_of(&self.heap), checks_uniqueness)?;
        for &column in &index.blocking {
            self.indexes.blocks_hot[column] = true;
        }
        if let Some(column) = index.is_plain_key() {
            let first_key = (self.values.count() > 0).then(|| self.values.slot(0, column));
            let position = self.indexes.btrees.len();
            let rows = self.values.count();
            let first_key = first_key.unwrap_or(1);
            self.indexes
                .cached_tids
                .offer(position, index.main, first_key, rows);
            self.cache_tids(position, column);
        }
        self.indexes
            .btree_positions
            .push(Some(self.indexes.btrees.len()));
        self.indexes.btrees.push(index);
        self.learn_columns();
        Ok(built)
    }

    /// Fills a new index with these rows, whose TIDs ascend; the pages that were written.
    pub(super) fn fill(
        &self,
        index: &mut Index,
        rows: impl Iterator<Item = (u32, Tid)> + Clone,
        checks_uniqueness: bool,
    ) -> Result<Built, StatementError> {
        index.learn(rows.clone().map(|(row, _)| self.row_view(row)))?;
        if let Some(built) = self.build_of_slots(index, rows.clone(), checks_uniqueness) {
            return Ok(built);
        }
        let entries = self.entries_of(index, rows)?;
        let entries = entries.in_order();
        Ok(index.tree.build_sorted(entries, checks_uniqueness))
    }

    /// Fills an index over one column whose slots are its codes, where they ascend with the rows:
    /// nothing is to be worked out or sorted then. `None`, and the index as it was, where they do
    /// not.
    fn build_of_slots(
        &self,
        index: &mut Index,
        rows: impl Iterator<Item = (u32, Tid)> + Clone,
        checks_uniqueness: bool,
    ) -> Option<Built> {
        let (column, shape) = index.slots_as_keys()?;
        let mut ascend = true;
        let mut last = NULL_SLOT;
        let entries = rows.map_while(|(row, tid)| {
            let key = self.values.slot(row, column);
            ascend = key != NULL_SLOT && key >= last;
            last = key;
            let key = [key];
            ascend.then_some(SingleKey { key, shape, tid })
        });
        let built = index.tree.build_sorted(entries, checks_uniqueness);
        if !ascend {
            index.tree.clear();
        }
        ascend.then_some(built)
    }

    /// What an index has for these rows, whose TIDs ascend.
    pub(super) fn entries_of(
        &self,
        index: &mut Index,
        rows: impl Iterator<Item = (u32, Tid)>,
    ) -> Result<Entries, StatementError> {
        let key_columns = usize::from(index.tree.definition().key_columns);
        let mut entries = Entries::with_capacity(self.values.count() as usize, key_columns);
        let mut key = Vec::with_capacity(key_columns);
        for (row, tid) in rows {
            if let Some(shape) = index.plain_entry_of(self.values.rows.kept(row), &mut key) {
                entries.push(&key, shape, tid);
            } else if let Some(entry) = index.entry_of(self.row_view(row), None)? {
                entries.push(entry.key.values(), entry.shape, tid);
            }
        }
        Ok(entries)
    }

    /// Rows get the TIDs that entries of a new index over this column lead to; no other row keeps
    /// one.
    fn cache_tids(&mut self, position: usize, column: usize) {
        let cached = &self.indexes.cached_tids;
        if !cached.are_by(position) {
            return;
        }
        for (row, tid) in rows_of(&self.heap) {
            let rows = &mut self.values.rows;
            let is_known = cached.row_of(position, rows.slot(row, column)) == Some(row);
            if rows.tid(row) != is_known.then_some(tid) {
                rows.forget_tid(row);
                if is_known {
                    rows.set_tid(row, tid);
                }
            }
        }
    }

    /// An index that is no B-tree: which updates it keeps from being HOT.
    pub(super) fn note_no_btree(&mut self, definition: &IndexDefinition) {
        for column in blocking_columns(definition) {
            self.indexes.blocks_hot[column] = true;
        }
        self.indexes.btree_positions.push(None);
        self.learn_columns();
    }

    /// A hash index, filled with what is in the table after a load or a rewrite.
    pub(super) fn build_hash(
        &mut self,
        behaviour: Behaviour,
        definition: IndexDefinition,
        logs: bool,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        self.note_no_btree(&definition);
        let rows = rows_in_place(&self.heap);
        let hash = self.filled_hash(behaviour, definition, rows, (logs, wal))?;
        self.indexes.hashes.push(hash);
        Ok(())
    }

    /// A hash index with the entries of these versions, in their order.
    ///
    /// Source: `hashbuild`, src/backend/access/hash/hash.c (REL_18_STABLE). Differs: a server sorts
    /// the entries of one that is larger than `maintenance_work_mem`, and an old version has the
    /// code of its own values, here that of its row's.
    pub(super) fn filled_hash(
        &self,
        behaviour: Behaviour,
        definition: IndexDefinition,
        rows: impl Iterator<Item = (u32, Tid)>,
        (logs, wal): (bool, &mut Wal),
    ) -> Result<Hash, StatementError> {
        let expected = (self.expected_rows(), logs);
        let row_type = &self.values.row_type;
        let mut hash = Hash::new(behaviour, definition, row_type, expected, wal);
        for (row, tid) in rows {
            if let Some(code) = hash.code(self.row_view(row))? {
                hash.index.insert(code, tid, wal);
            }
        }
        hash.index.begin_logging();
        Ok(hash)
    }

    /// A GIN, filled with what is in the table after a load or a rewrite; nothing is logged.
    pub(super) fn build_gin(
        &mut self,
        behaviour: Behaviour,
        definition: IndexDefinition,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        self.note_no_btree(&definition);
        let gin = self.filled_gin(behaviour, definition, rows_of(&self.heap), wal)?;
        self.indexes.gins.push(gin);
        Ok(())
    }

    /// A GIN with the keys of these versions, in their order. Differs: an old version has the keys
    /// of its row's newest values.
    pub(super) fn filled_gin(
        &self,
        behaviour: Behaviour,
        definition: IndexDefinition,
        rows: impl Iterator<Item = (u32, Tid)>,
        wal: &mut Wal,
    ) -> Result<Gin, StatementError> {
        let mut gin = Gin::new(behaviour, definition, &self.values.row_type, wal);
        let keys = &gin.keys;
        let rows = rows.map(|(row, tid)| Ok((keys.of(self.row_view(row))?, tid)));
        gin.index.build::<StatementError>(rows, wal)?;
        gin.index.begin_logging();
        Ok(gin)
    }

    pub(super) fn build_brin(
        &mut self,
        behaviour: Behaviour,
        definition: IndexDefinition,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let rows = rows_of(&self.heap);
        let rows = rows.map(|(row, tid)| (self.row_view(row), tid));
        let pages = self.heap.page_count();
        let row_type = &self.values.row_type;
        let brin = Brin::build(definition, row_type, rows, (pages, &behaviour), wal)?;
        for &column in &brin.columns {
            if Brin::blocks_hot(&behaviour) {
                self.indexes.blocks_hot[column] = true;
            } else {
                self.indexes.is_summarized[column] = true;
            }
        }
        self.indexes.btree_positions.push(None);
        self.indexes.brins.push(brin);
        self.learn_columns();
        Ok(())
    }
}

/// Rows and the line pointers by which indexes know them, which ascend: each version is a row, as
/// after a load, a rewrite, or VACUUM with nobody beside.
fn rows_of(heap: &Heap) -> impl Iterator<Item = (u32, Tid)> + Clone {
    let pages = (0..).map(BlockNumber).zip(heap.pages());
    pages.flat_map(|(block, page)| {
        let rows = page.loaded_rows();
        rows.map(move |(offset, row)| (row, Tid { block, offset }))
    })
}

/// The same in the order in which a scan finds the versions.
fn rows_in_place(heap: &Heap) -> impl Iterator<Item = (u32, Tid)> {
    let pages = (0..).map(BlockNumber).zip(heap.pages());
    pages.flat_map(|(block, page)| {
        let rows = page.rows_in_place();
        rows.map(move |(offset, row)| (row, Tid { block, offset }))
    })
}
