//! A table's hash index: the codes of its rows' values, and its entries.

use pgheadroom_layout::Behaviour;

use crate::executor::StatementError;
use crate::executor::index::{Found, Part, parts_of};
use crate::executor::index_definition::IndexDefinition;
use crate::expression::Expression;
use crate::hash_index::HashIndex;
use crate::row::hash_code::{hash_of_number, hash_of_text};
use crate::row::{Row, RowType};
use crate::wal::Wal;

/// A hash index over one column or expression.
#[derive(Debug)]
pub(super) struct Hash {
    pub index: HashIndex,
    key: Part,
    predicate: Option<Expression>,
}

impl Hash {
    /// An index without entries, for so many rows.
    pub fn new(
        behaviour: Behaviour,
        definition: IndexDefinition,
        row_type: &RowType,
        (rows, logs): (u64, bool),
        wal: &mut Wal,
    ) -> Self {
        let fillfactor = definition.fillfactor.percent();
        let mut keys = parts_of(definition.keys, row_type);
        Self {
            index: HashIndex::new(behaviour, fillfactor, rows, logs, wal),
            key: keys.remove(0),
            predicate: definition.predicate,
        }
    }

    /// What its codes are made of.
    pub fn sources(&self) -> (Option<&Expression>, impl Iterator<Item = &Part>) {
        (self.predicate.as_ref(), std::iter::once(&self.key))
    }

    /// The hash code of a row; `None` for NULL, and where the predicate leaves the row out.
    ///
    /// Source: `_hash_convert_tuple`, src/backend/access/hash/hashutil.c (REL_18_STABLE).
    pub fn code(&self, row: Row<'_>) -> Result<Option<u32>, StatementError> {
        if let Some(predicate) = &self.predicate
            && !predicate.is_true(row)?
        {
            return Ok(None);
        }
        let found = self.key.found(row)?;
        Ok(match (&found, found.text(row)) {
            (Found::Null, _) => None,
            (_, Some(text)) => Some(hash_of_text(self.key.kind, &text.to_bytes())),
            (Found::Plain(slot), None) => Some(hash_of_number(self.key.kind, *slot)),
            (_, None) => unreachable!("a string"),
        })
    }
}
