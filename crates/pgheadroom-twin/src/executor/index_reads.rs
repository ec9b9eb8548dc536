//! Values out of line that an index reads to make the entry of a row.
//!
//! ```text
//! UPDATE SET g, h stays out of line -> heap -> a GIN over (g, h) takes the keys of h
//!   -> chunks of h, by the TOAST table's index -> each of their pages is pruned if it is due
//! ```
//!
//! What INSERT and SET give comes to the indexes as it was given; what a new version keeps of the
//! one before is a pointer there if it lies out of line, which is followed for each index anew. A
//! HOT update reads nothing, for it makes no entries (of BRIN only where its columns change).
//!
//! Source: `ExecInsertIndexTuples`, src/backend/executor/execIndexing.c; `FormIndexDatum`,
//! src/backend/catalog/index.c; `ginExtractEntries`, src/backend/access/gin/ginutil.c;
//! `heap_fetch_toast_slice`, src/backend/access/heap/heaptoast.c (REL_15_STABLE, REL_18_STABLE).
//! Differs: of an expression every column counts that it may look at, and a string from which it
//! takes the beginning is read whole.

use crate::executor::StatementError;
use crate::executor::index::{Part, parts_of};
use crate::executor::index_definition::{IndexDefinition, IndexKey};
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::expression::Expression;
use crate::page::Tid;

impl Table {
    /// Reads what an index of this predicate and these columns needs of a row, as the statement
    /// that makes it has its values, or as they are stored.
    ///
    /// # Errors
    /// When the predicate fails.
    pub(super) fn read_for_index<'a>(
        &mut self,
        row: u32,
        (predicate, parts): (Option<&'a Expression>, impl Iterator<Item = &'a Part>),
        statement: Option<u32>,
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        let parts = parts.map(Part::columns_read);
        self.read_for_parts(row, (predicate, parts), statement, to)
    }

    /// The same, by the columns that each part looks at.
    ///
    /// # Errors
    /// When the predicate fails.
    pub(super) fn read_for_parts<'a>(
        &mut self,
        row: u32,
        (predicate, parts): (Option<&'a Expression>, impl Iterator<Item = &'a [usize]>),
        statement: Option<u32>,
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        if !self.values.texts.has_forms() {
            return Ok(());
        }
        let mut ids = Vec::new();
        let mut is_in = true;
        if let Some(predicate) = predicate {
            let columns = predicate.columns_read().iter();
            ids.extend(columns.filter_map(|&column| self.id_in_slot(row, column, statement)));
            is_in = predicate.is_true(self.row_view(row))?;
        }
        for columns in parts.take_while(|_| is_in) {
            let columns = columns.iter();
            ids.extend(columns.filter_map(|&column| self.id_in_slot(row, column, statement)));
        }
        self.read_values(&ids, false, to);
        Ok(())
    }

    /// Reads what an index needs that is built of these rows, in the order of a scan.
    ///
    /// Source: `heapam_index_build_range_scan`, src/backend/access/heap/heapam_handler.c
    /// (REL_15_STABLE, REL_18_STABLE).
    ///
    /// # Errors
    /// When the predicate fails.
    pub(super) fn read_for_build(
        &mut self,
        definition: &IndexDefinition,
        rows: &[(u32, Tid)],
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        if !self.values.texts.has_forms() {
            return Ok(());
        }
        let included = definition.include.iter().copied().map(IndexKey::Column);
        let keys = definition.keys.iter().cloned().chain(included).collect();
        let parts = parts_of(keys, &self.values.row_type);
        for &(row, _) in rows {
            let sources = (definition.predicate.as_ref(), parts.iter());
            self.read_for_index(row, sources, None, to)?;
        }
        Ok(())
    }

    /// The OID of a value that comes to an index as a pointer.
    fn id_in_slot(&self, row: u32, column: usize, statement: Option<u32>) -> Option<u32> {
        let slot = self.values.slot(row, column);
        let id = self.external_id(column, slot)?;
        self.values.texts.form_in_slot(slot, statement).map(|_| id)
    }
}
