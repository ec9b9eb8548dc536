//! For which values of its columns a server has found a predicate true, and for which not.
//!
//! Updates change values by rules, so those of a run can be had without the run: a number that
//! counts up to 3 makes a predicate true that was true for no loaded row.

use std::collections::HashMap;
use std::sync::Arc;

use crate::row::Row;
use crate::text::trimmed;
use crate::value::Value;

/// What a predicate is, by the values that it reads; looked up only, never gone through.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found(Arc<HashMap<Vec<u8>, bool>>);

impl Found {
    /// Of values as COPY writes them, one for each column read, in their order.
    ///
    /// Numbers, labels, booleans and times are the twin's own integers; of types that stand around
    /// digits these. Blanks at the end count for nothing, as in a bpchar; no other value has some.
    #[must_use]
    pub fn of(true_for: &[Vec<String>], false_for: &[Vec<String>]) -> Self {
        let mut found = HashMap::with_capacity(true_for.len() + false_for.len());
        for (values, truth) in [(false_for, false), (true_for, true)] {
            for row in values {
                let mut key = Vec::new();
                for value in row {
                    let text = value.replace(r"\\", r"\");
                    push(&mut key, (value != r"\N").then_some(text.as_bytes()));
                }
                found.insert(key, truth);
            }
        }
        Self(Arc::new(found))
    }

    /// Whether it is true for a row; `None` where that was not found.
    pub(super) fn truth(&self, row: Row<'_>, columns: &[usize]) -> Option<bool> {
        if self.0.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        for &column in columns {
            match row.value(column) {
                Value::Null => push(&mut key, None),
                Value::Integer(number) => push(&mut key, Some(number.to_string().as_bytes())),
                Value::Text(text) => push(&mut key, Some(trimmed(&text.inside()))),
                Value::Float(_) => return None,
            }
        }
        self.0.get(&key).copied()
    }
}

/// A value behind others: strings have no zero bytes, so that each ends where it does.
fn push(key: &mut Vec<u8>, value: Option<&[u8]>) {
    if let Some(bytes) = value {
        key.push(1);
        key.extend_from_slice(bytes);
    }
    key.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{ColumnDefinition, RowType, Texts};

    /// Known values are what was found, NULL and a number of the same digits two of them.
    #[test]
    fn is_what_was_found() {
        let columns = ["a", "b"].map(|name| ColumnDefinition::new(name, "int8").unwrap());
        let (row_type, texts) = (RowType::new(&columns).unwrap(), Texts::default());
        let row = |values: [Option<i64>; 2]| {
            values.map(|one| one.map_or(r"\N".to_owned(), |one: i64| one.to_string()))
        };
        let found = Found::of(
            &[
                row([Some(1), None]).to_vec(),
                row([Some(12), Some(3)]).to_vec(),
            ],
            &[
                row([None, Some(1)]).to_vec(),
                row([Some(1), Some(23)]).to_vec(),
            ],
        );
        let null = i64::MIN;
        let truth = |slots: [i64; 2]| {
            let row = Row {
                row_type: &row_type,
                slots: crate::row::Slots::Listed(&slots),
                texts: &texts,
            };
            found.truth(row, &[0, 1])
        };
        assert_eq!(truth([1, null]), Some(true));
        assert_eq!(truth([null, 1]), Some(false));
        assert_eq!(truth([12, 3]), Some(true));
        assert_eq!(truth([1, 23]), Some(false));
        assert_eq!(truth([null, null]), None);
        assert_eq!(truth([5, 5]), None);
    }
}
