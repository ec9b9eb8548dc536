//! Loading rows with fillers between them, which are gone when the table is used, and HOT updates
//! of rows that are to be behind redirects.
//!
//! Rows have their numbers before any has a place, so that those that stay are the first ones and
//! what is found by a key's number is found as in any other loaded table.

use pgheadroom_layout::BlockNumber;

use crate::executor::{
    Action, Assignment, Assignments, Change, Database, Loading, StatementError, TableId,
};
use crate::page::Tid;
use crate::row::NULL_SLOT;

impl Database {
    /// A row with the values of this number, which is nowhere yet.
    ///
    /// # Errors
    /// [`StatementError`] of a value that a column cannot hold.
    pub fn make_row(&mut self, loading: &mut Loading, number: i64) -> Result<(), StatementError> {
        let table = &mut self.tables[loading.table.0];
        table.make_row(loading, number, &mut self.statement)?;
        Ok(())
    }

    /// A row of NULLs, which is nowhere yet; it may be in several places.
    pub fn make_row_of_nulls(&mut self, loading: &Loading) -> u32 {
        self.statement += 1;
        let values = &mut self.tables[loading.table.0].values;
        let row = values.rows.begin();
        for column in 0..values.row_type.columns.len() {
            values.rows.set(row, column, NULL_SLOT);
        }
        row
    }

    /// INSERT of the row that was made as this one, counted from 0.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    pub fn place_row(&mut self, loading: &Loading, row: u32) -> Result<(), StatementError> {
        self.procs.begin_statement();
        let table = &mut self.tables[loading.table.0];
        table.insert(row, &mut self.procs, &mut self.wal, self.statement)?;
        Ok(())
    }

    /// DELETE of loaded rows by their places: no page is pruned for it.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    ///
    /// Source: `TidNext`, src/backend/executor/nodeTidscan.c (REL_18_STABLE).
    pub fn delete_rows(
        &mut self,
        table: TableId,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<(), StatementError> {
        let statement = self.begin_statement();
        let of = &mut self.tables[table.0];
        for block in (0..of.heap.page_count()).map(BlockNumber) {
            let rows = of.heap.pages()[block.0 as usize].loaded_rows();
            let fillers = rows.filter(|&(_, row)| is_wanted(row));
            let fillers: Vec<_> = fillers.map(|(offset, _)| Tid { block, offset }).collect();
            for tid in fillers {
                let (procs, wal) = (&mut self.procs, &mut self.wal);
                of.apply(tid, &Action::Delete, procs, wal, statement)?;
            }
        }
        self.end_statement(table)
    }

    /// UPDATE of rows by their places, which assigns the first column its own value; they are in
    /// place still, and no page is pruned for it.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    ///
    /// Source: as [`Database::delete_rows`].
    pub fn touch_rows(
        &mut self,
        table: TableId,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<(), StatementError> {
        let statement = self.begin_statement();
        let of = &mut self.tables[table.0];
        let same = [Assignment {
            column: 0,
            change: Change::Same,
        }];
        let update = Action::Update(Assignments { columns: &same });
        let mut tids = Vec::new();
        for (block, page) in (0..).map(BlockNumber).zip(of.heap.pages()) {
            let rows = page.rows_in_place().filter(|&(_, row)| is_wanted(row));
            tids.extend(rows.map(|(offset, _)| Tid { block, offset }));
        }
        for tid in tids {
            of.apply(tid, &update, &mut self.procs, &mut self.wal, statement)?;
        }
        self.end_statement(table)
    }

    /// Rows that were deleted from this one on, and vacuumed away, were never there.
    ///
    /// # Panics
    /// When the table has an index, which may know them.
    pub fn forget_rows_from(&mut self, table: TableId, first: u32) {
        let of = &mut self.tables[table.0];
        assert!(!of.has_indexes(), "a table that is being loaded");
        of.values.rows.truncate(first);
    }
}
