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
use crate::row::Row;
use crate::row::kind::Kind;
use crate::text::{Text, trimmed};
use crate::value::Value;

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
