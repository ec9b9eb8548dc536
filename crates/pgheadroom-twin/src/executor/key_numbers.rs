//! Rows that are found by the number of a key, which stands for other values in the index.

use crate::executor::index_definition::IndexKey;
use crate::executor::table::{KeyNumbers, Table};
use crate::executor::{Action, Database, StatementError, TableId};
use crate::row::LoadRule;
use crate::row::kind::Kind;
use crate::value::Value;

impl Table {
    /// Whether the numbers of keys are not their codes in this index.
    pub(super) fn has_key_numbers(&self, index: usize) -> bool {
        let numbers = self.indexes.key_numbers.as_ref();
        numbers.is_some_and(|numbers| numbers.index == index)
    }

    /// What the index has for the number of a key, so far as a statement names it.
    fn codes_of(&mut self, number: i64) -> Result<Vec<i64>, StatementError> {
        let numbers = self.indexes.key_numbers.as_ref().expect("numbers of keys");
        let position = self.btree_position(numbers.index);
        let mut codes = Vec::with_capacity(numbers.columns);
        for part in 0..numbers.columns {
            let IndexKey::Column(column) = self.indexes.btrees[position].keys[part].source else {
                unreachable!("a key is over columns");
            };
            let layout = &self.values.row_type.columns[column];
            let kind = (layout.kind, layout.type_name.as_str());
            let counted = u32::try_from(column + 1).expect("at most 1600 columns");
            let value = numbers.rules[column].value_of_kind(kind, number, counted)?;
            codes.push(self.indexes.btrees[position].code_of_value(part, &value));
        }
        Ok(codes)
    }

    /// What the index has for the numbers of the first and the last key of a statement.
    pub(super) fn codes_between(
        &mut self,
        index: usize,
        (low, high): (i64, i64),
    ) -> Result<[Vec<i64>; 2], StatementError> {
        if !self.has_key_numbers(index) {
            return Ok([vec![low], vec![high]]);
        }
        let last = self.codes_of(high)?;
        let first = if low == high {
            last.clone()
        } else {
            self.codes_of(low)?
        };
        Ok([first, last])
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
        assert!(
            of.indexes.btrees[of.btree_position(index)].is_whole(),
            "a key"
        );
        of.indexes.key_numbers = Some(Box::new(KeyNumbers {
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
        if !self.tables[table.0].has_key_numbers(index) {
            return self.by_index(table, index, &[low], &[high], action);
        }
        let [first, last] = self.tables[table.0].codes_between(index, (low, high))?;
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
        let layout = &of.values.row_type.columns[column];
        let Some(numbers) = of
            .indexes
            .key_numbers
            .as_ref()
            .filter(|_| layout.kind.is_kept() || layout.kind == Kind::Timestamp)
        else {
            return Ok(Value::Integer(number));
        };
        let kind = (layout.kind, layout.type_name.as_str());
        let counted = u32::try_from(column + 1).expect("at most 1600 columns");
        Ok(numbers.rules[column].value_of_kind(kind, number, counted)?)
    }
}
