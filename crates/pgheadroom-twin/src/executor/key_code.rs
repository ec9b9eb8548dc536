//! Codes of an index's keys: of a row's values, and of what the number of a key stands for.
//!
//! ```text
//! integers and times     the number itself      uuid      its first half
//! floating point         its bits, in order     strings   a label (`text_order.rs`)
//! ```
//!
//! Two uuids with the same first half would be taken as equal: they are halves of hashes, of which
//! a million meet once in 40 million tables.

use crate::btree::{NULL_FIRST, NULL_LAST};
use crate::executor::index::{Found, Index, Part};
use crate::executor::index_definition::IndexKey;
use crate::executor::table::Table;
use crate::executor::{Action, Database, StatementError, TableId};
use crate::row::kind::Kind;
use crate::row::{LoadRule, Row};
use crate::text::{Text, trimmed};
use crate::value::Value;
use crate::wrap::Wrap;

/// How the number of a key becomes the values that an index has for it, where these are not the
/// number alone.
#[derive(Debug, Clone)]
pub(super) struct KeyNumbers {
    /// The index, by its position.
    index: usize,
    /// How many of its columns a statement names: those up to the key.
    columns: usize,
    /// How values are made, by column of the table.
    rules: Vec<LoadRule>,
}

/// Whether the strings of this kind have codes as they come.
pub(super) fn needs_labels(kind: Kind) -> bool {
    kind.is_kept() && kind != Kind::Wrapped(Wrap::Uuid)
}

impl Index {
    /// The code of a row's value.
    pub(super) fn code(&mut self, column: usize, found: &Found, row: Row<'_>) -> i64 {
        let part = &self.keys[column];
        match (found, found.text(row)) {
            (Found::Null, _) if part.direction.nulls_first => NULL_FIRST,
            (Found::Null, _) => NULL_LAST,
            (_, Some(text)) => self.code_of_text(column, text),
            (Found::Plain(slot), None) => part.directed(part.plain_code(*slot)),
            (_, None) => unreachable!("a string"),
        }
    }

    /// The code of a value that is not NULL.
    pub(super) fn code_of_value(&mut self, column: usize, value: &Value) -> i64 {
        let part = &self.keys[column];
        let slot = match value {
            Value::Null => unreachable!("a key is not NULL"),
            Value::Integer(number) => *number,
            // -0.0 is equal to 0.0, and becomes it by the addition.
            Value::Float(number) => (number + 0.0).to_bits().cast_signed(),
            Value::Text(text) => return self.code_of_text(column, text),
        };
        part.directed(part.plain_code(slot))
    }

    fn code_of_text(&mut self, column: usize, text: &Text) -> i64 {
        let part = &mut self.keys[column];
        let bytes = part.order.is_some().then(|| part.ordered_by(text));
        let (Some(order), Some(bytes)) = (&mut part.order, bytes) else {
            return part.directed(text.uuid_code());
        };
        if let Some(code) = order.code(&bytes) {
            return part.directed(code);
        }
        let mut moved = order.respread();
        let code = order.code(&bytes).expect("room after labels were spread");
        if part.direction.is_descending {
            moved.reverse();
            for (old, new) in &mut moved {
                (*old, *new) = (-*old, -*new);
            }
        }
        let code = part.directed(code);
        self.tree.replace_codes(column, &moved);
        code
    }
}

impl Part {
    /// The code of a value that is no string.
    pub fn plain_code(&self, slot: i64) -> i64 {
        if self.kind.is_float() && slot < 0 {
            // Negative numbers: the larger the bits, the smaller the number.
            return slot ^ i64::MAX;
        }
        slot
    }

    /// A code in the order of the column: codes have no number without its negative.
    pub fn directed(&self, code: i64) -> i64 {
        if self.direction.is_descending {
            code.saturating_neg()
        } else {
            code
        }
    }

    /// What a string is ordered by.
    ///
    /// Source: `bpcharcmp`, src/backend/utils/adt/varchar.c: without blanks at the end.
    pub fn ordered_by(&self, text: &Text) -> Box<[u8]> {
        match self.kind {
            Kind::Padded { .. } => trimmed(&text.to_bytes()).into(),
            Kind::Integers(integers) => integers.ordered_by(&text.to_bytes()).into(),
            _ => text.order_bytes().into(),
        }
    }
}

impl Table {
    /// Whether the numbers of keys are not their codes in this index.
    pub(super) fn has_key_numbers(&self, index: usize) -> bool {
        let numbers = self.key_numbers.as_ref();
        numbers.is_some_and(|numbers| numbers.index == index)
    }

    /// What the index has for the number of a key, so far as a statement names it.
    fn codes_of(&mut self, number: i64) -> Result<Vec<i64>, StatementError> {
        let numbers = self.key_numbers.as_ref().expect("numbers of keys");
        let position = self.btree_position(numbers.index);
        let mut codes = Vec::with_capacity(numbers.columns);
        for part in 0..numbers.columns {
            let IndexKey::Column(column) = self.indexes[position].keys[part].source else {
                unreachable!("a key is over columns");
            };
            let layout = &self.row_type.columns[column];
            let kind = (layout.kind, layout.type_name.as_str());
            let counted = u32::try_from(column + 1).expect("at most 1600 columns");
            let value = numbers.rules[column].value_of_kind(kind, number, counted)?;
            codes.push(self.indexes[position].code_of_value(part, &value));
        }
        Ok(codes)
    }

    /// The code of a row's key in the index of this position among the B-trees.
    pub(super) fn key_code(&mut self, index: usize, row: u32) -> Result<i64, StatementError> {
        let entry = self.entry_of(index, row)?.expect("an index of all rows");
        Ok(entry.key.values()[0])
    }
}

impl Database {
    /// Rows are found by the numbers of keys, which stand for other values in this index, by its
    /// position: in so many of its columns those that the rules make of the number.
    ///
    /// # Panics
    /// When the index has fewer columns, or some that are no columns of the table.
    pub fn number_keys(
        &mut self,
        table: TableId,
        (index, columns): (usize, usize),
        rules: &[LoadRule],
    ) {
        let of = &mut self.tables[table.0];
        assert!(of.indexes[of.btree_position(index)].is_whole(), "a key");
        of.key_numbers = Some(Box::new(KeyNumbers {
            index,
            columns,
            rules: rules.to_vec(),
        }));
    }

    /// A statement that finds rows by the numbers of their keys; number of rows.
    ///
    /// # Errors
    /// As [`Database::by_index`], and a number that its column cannot hold.
    pub fn by_key(
        &mut self,
        table: TableId,
        index: usize,
        (low, high): (i64, i64),
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let of = &mut self.tables[table.0];
        if !of.has_key_numbers(index) {
            return self.by_index(table, index, &[low], &[high], action);
        }
        let last = of.codes_of(high)?;
        let first = if low == high {
            last.clone()
        } else {
            of.codes_of(low)?
        };
        self.by_index(table, index, &first, &last, action)
    }

    /// What stands for the number of a key in a column of the table; the number itself where
    /// nothing else is known.
    ///
    /// # Errors
    /// A number that the column cannot hold.
    pub fn key_value(
        &self,
        table: TableId,
        column: usize,
        number: i64,
    ) -> Result<Value, StatementError> {
        let of = &self.tables[table.0];
        let layout = &of.row_type.columns[column];
        let Some(numbers) = of.key_numbers.as_ref().filter(|_| layout.kind.is_kept()) else {
            return Ok(Value::Integer(number));
        };
        let kind = (layout.kind, layout.type_name.as_str());
        let counted = u32::try_from(column + 1).expect("at most 1600 columns");
        Ok(numbers.rules[column].value_of_kind(kind, number, counted)?)
    }
}
