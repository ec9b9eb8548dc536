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
//! Differs: a string from which an expression takes the beginning is read whole; of an expression
//! whose values are stated every column counts.

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
        let keys = parts.map(|part| &part.source);
        self.read_for_keys(row, (predicate, keys), statement, u32::MAX, to)
    }

    /// The same, by what each key column is made of. An expression may come to a column's value
    /// without a look at it, as `coalesce` does: that is read if it is at most so many bytes long.
    ///
    /// Source: `index_form_tuple`, src/backend/access/common/indextuple.c, which reads it whatever
    /// its length (REL_18_STABLE).
    ///
    /// # Errors
    /// When the predicate fails.
    pub(super) fn read_for_keys<'a>(
        &mut self,
        row: u32,
        (predicate, keys): (Option<&'a Expression>, impl Iterator<Item = &'a IndexKey>),
        statement: Option<u32>,
        longest: u32,
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        if !self.values.texts.has_forms() {
            return Ok(());
        }
        let mut ids = Vec::new();
        let mut is_in = true;
        if let Some(predicate) = predicate {
            if self.may_read(row, predicate, statement) {
                let columns = predicate.columns_read_for(self.row_view(row));
                ids.extend(self.ids_in_slots(row, &columns, statement));
            }
            is_in = predicate.is_true(self.row_view(row))?;
        }
        for key in keys.take_while(|_| is_in) {
            match key {
                IndexKey::Column(column) => ids.extend(self.id_in_slot(row, *column, statement)),
                IndexKey::Expression(expression) => {
                    if self.may_read(row, expression, statement) {
                        let (columns, value) = expression.columns_read_of(self.row_view(row));
                        ids.extend(self.ids_in_slots(row, &columns, statement));
                        ids.extend(value.and_then(|column| {
                            let id = self.id_in_slot(row, column, statement)?;
                            let text = self.values.texts.get(self.values.slot(row, column));
                            (text.len() <= longest).then_some(id)
                        }));
                    }
                }
            }
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

    /// Whether any of the columns that an expression may look at comes to it as a pointer.
    fn may_read(&self, row: u32, expression: &Expression, statement: Option<u32>) -> bool {
        let mut ids = self.ids_in_slots(row, expression.columns_read(), statement);
        ids.next().is_some()
    }

    /// OIDs of those of these columns' values that come to an index as pointers.
    fn ids_in_slots(
        &self,
        row: u32,
        columns: &[usize],
        statement: Option<u32>,
    ) -> impl Iterator<Item = u32> {
        let columns = columns.iter();
        columns.filter_map(move |&column| self.id_in_slot(row, column, statement))
    }

    /// The OID of a value that comes to an index as a pointer.
    fn id_in_slot(&self, row: u32, column: usize, statement: Option<u32>) -> Option<u32> {
        let slot = self.values.slot(row, column);
        let id = self.external_id(column, slot)?;
        self.values.texts.form_in_slot(slot, statement).map(|_| id)
    }
}
