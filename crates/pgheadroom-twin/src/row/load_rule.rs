//! The values that a profile's rows are made with.
//!
//! Everything pseudo-random comes from `hashint8extended(row, column number)`, columns counted
//! from 1; "modulo" is never negative:
//!
//! ```text
//! value    hash mod ndistinct (random), the row (serial), 0 (constant), 1 + hash mod the rows of
//!          the table referred to (parent)
//! label    the first whose share, with those before it, is above hash mod 999,983
//! width    min + hash mod (max - min + 1)
//! NULL     hash mod 1,000,000 < null_millionths
//! string   md5('VALUE:0') || md5('VALUE:1') || ..., cut to the width
//! ordered  VALUE in decimal behind zeros, as wide as the width; a uuid see `text.rs`
//! bpchar   the letter number VALUE mod 26, blank-padded
//! others   `row/counted.rs` and `wrap.rs`
//! ```

use std::ops::RangeInclusive;
use std::sync::Arc;

use pgheadroom_layout::ColumnType;

use crate::row::counted::microseconds;
use crate::row::elements::Elements;
use crate::row::hash::hashint8extended;
use crate::row::kind::Kind;
use crate::text::Text;
use crate::value::{Value, ValueError};
use crate::wrap::{NAME_DIGITS, Wrap};

/// Where a column's numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// The number of the row.
    Serial,
    /// 0.
    Constant,
    /// Of the row's hash.
    Random {
        /// Different values, at least 1.
        ndistinct: i64,
    },
    /// A key of a loaded row of another table, of the row's hash.
    Parent {
        /// Rows of that table, at least 1.
        rows: i64,
    },
}

impl Numbers {
    /// The number of a row with this hash.
    #[inline]
    pub(super) const fn number(self, row: i64, hash: i64) -> i64 {
        match self {
            Self::Serial => row,
            Self::Constant => 0,
            Self::Random { ndistinct } => hash.rem_euclid(ndistinct),
            Self::Parent { rows } => 1 + hash.rem_euclid(rows),
        }
    }
}

impl Numbers {
    /// From which to which number those of these rows are, at most.
    pub(super) fn range(self, rows: &RangeInclusive<i64>) -> RangeInclusive<i64> {
        match self {
            Self::Serial => rows.clone(),
            Self::Constant => 0..=0,
            Self::Random { ndistinct } => 0..=ndistinct - 1,
            Self::Parent { rows } => 1..=rows,
        }
    }
}

fn wrong_type(type_name: &str) -> ValueError {
    ValueError::WrongType {
        type_name: type_name.to_owned(),
        found: "a value made of a hash".to_owned(),
    }
}

/// A prime beside the million of NULLs, so that the two say nothing of each other.
const SHARES: i64 = 999_983;

/// How often each label of an enum stands, and which one new rows have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// For each label but the last: up to which of [`SHARES`] equal parts it stands, with those
    /// before it; none where all stand alike.
    ends: Vec<i64>,
    /// Rows that are loaded, and the label of those behind them where they have one of their own.
    new: Option<(i64, i64)>,
}

impl Labels {
    /// Of the shares of the labels, if they are said, and the label of rows from number `rows` on.
    #[must_use]
    pub fn new(shares: &[f64], new: Option<(i64, i64)>) -> Self {
        let mut sum = 0.0;
        let ends = shares.iter().map(|share| {
            sum += share;
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // 0 to SHARES
            let end = (sum * SHARES as f64).round_ties_even() as i64;
            end
        });
        let mut ends: Vec<i64> = ends.collect();
        ends.pop();
        Self { ends, new }
    }

    /// The number of a row's label; `None` where the rule of other columns says it.
    fn number(&self, row: i64, hash: i64) -> Option<i64> {
        if let Some((rows, label)) = self.new
            && row > rows
        {
            return Some(label);
        }
        let part = hash.rem_euclid(SHARES);
        let before = |end: &&i64| **end <= part;
        let number = self.ends.iter().filter(before).count();
        let number = i64::try_from(number).expect("few labels");
        (!self.ends.is_empty()).then_some(number)
    }
}

/// How the values of a column are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadRule {
    /// The numbers that the values stand for.
    pub numbers: Numbers,
    /// Fewest and most bytes of a string, its header not counted; `None` for other types.
    pub width_bytes: Option<(u32, u32)>,
    /// Rows without a value among a million.
    pub null_millionths: u32,
    /// Whether uuids and strings are in the order of their numbers, not hashes of them.
    pub is_ordered: bool,
    /// Of an enum, where it is said.
    pub labels: Option<Arc<Labels>>,
    /// Where values have several elements.
    pub elements: Option<Elements>,
}

impl LoadRule {
    /// The value of a row.
    ///
    /// # Errors
    /// [`ValueError`] when the number does not fit the type, or for a type that profiles lack.
    pub fn value(
        &self,
        column_type: &ColumnType,
        row: i64,
        column_number: u32,
    ) -> Result<Value, ValueError> {
        let type_name = column_type.name();
        let elements = self.elements.map(Kind::Elements);
        let kind = elements.or_else(|| Kind::of(column_type));
        let kind = kind.ok_or_else(|| wrong_type(type_name))?;
        self.value_of_kind((kind, type_name), row, column_number)
    }

    /// The same of a type whose kind is known.
    pub(crate) fn value_of_kind(
        &self,
        (kind, type_name): (Kind, &str),
        row: i64,
        column_number: u32,
    ) -> Result<Value, ValueError> {
        let hash = hashint8extended(row, i64::from(column_number));
        if hash.rem_euclid(1_000_000) < i64::from(self.null_millionths) {
            return Ok(Value::Null);
        }
        let of_label = self.labels.as_ref();
        let number = of_label.and_then(|labels| labels.number(row, hash));
        let number = number.unwrap_or_else(|| self.numbers.number(row, hash));
        self.value_of_number((kind, type_name), number, hash)
    }

    /// What a new row has that refers to the row with this key, of a type without a width.
    ///
    /// # Errors
    /// As [`LoadRule::value`].
    pub fn reference(&self, column_type: &ColumnType, key: i64) -> Result<Value, ValueError> {
        let type_name = column_type.name();
        let kind = Kind::of(column_type).ok_or_else(|| wrong_type(type_name))?;
        self.value_of_number((kind, type_name), key, 0)
    }

    pub(crate) fn value_of_number(
        &self,
        (kind, type_name): (Kind, &str),
        number: i64,
        hash: i64,
    ) -> Result<Value, ValueError> {
        let wrong = || wrong_type(type_name);
        Ok(match kind {
            Kind::Integer { .. } | Kind::Numeric { .. } => {
                kind.checked(number, type_name)?;
                Value::Integer(number)
            }
            Kind::Boolean => Value::Integer(number % 2),
            Kind::Timestamp => Value::Integer(microseconds(number)),
            Kind::Date => {
                kind.checked(number, type_name)?;
                Value::Integer(number)
            }
            Kind::Counted(counted) => {
                let slot = counted.of_number(number);
                Value::Integer(slot.ok_or_else(|| ValueError::OutOfRange {
                    number: number.to_string(),
                    type_name: type_name.to_owned(),
                })?)
            }
            Kind::Wrapped(Wrap::Uuid) if self.is_ordered => Value::Text(Text::ordered_uuid(number)),
            Kind::Wrapped(Wrap::Uuid) => Value::Text(Text::uuid(number)),
            Kind::Wrapped(Wrap::Name) => {
                Value::Text(Text::wrapped_hashes(number, NAME_DIGITS, Wrap::Name))
            }
            Kind::Wrapped(wrap) => {
                let payload_bytes = self.width(hash).ok_or_else(wrong)?;
                let digits = wrap.digits_of_payload(payload_bytes);
                Value::Text(Text::wrapped_hashes(number, digits, wrap))
            }
            Kind::Elements(elements) => {
                Value::Text(Text::from_bytes(&elements.value(number, hash)))
            }
            Kind::Integers(integers) => {
                Kind::Integer {
                    width: integers.width,
                }
                .checked(number, type_name)?;
                let width = self.width(hash).ok_or_else(wrong)?;
                Value::Text(Text::from_bytes(&integers.filled(number, width)))
            }
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // as SQL's cast
            Kind::Float4 => Value::Float(f64::from(number as f32)),
            #[allow(clippy::cast_precision_loss)] // as SQL's cast
            Kind::Float8 => Value::Float(number as f64),
            Kind::Padded { length } => {
                let letter = u8::try_from(number.rem_euclid(26)).expect("a letter") + b'a';
                Value::Text(Text::padded(letter, length.unwrap_or(1)))
            }
            Kind::Text { length } => {
                let width = self.width(hash).ok_or_else(wrong)?;
                let width = length.map_or(width, |most| width.min(most));
                Value::Text(if self.is_ordered {
                    Text::ordered(number, width)
                } else {
                    Text::hashes(number, width)
                })
            }
        })
    }

    /// Bytes of the string of a row with this hash.
    fn width(&self, hash: i64) -> Option<u32> {
        let (min, max) = self.width_bytes?;
        let more = hash.rem_euclid(i64::from(max - min) + 1);
        Some(min + u32::try_from(more).expect("a width below 1 GB"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(rule: &LoadRule, type_name: &str, row: i64) -> Result<Value, ValueError> {
        rule.value(&ColumnType::parse(type_name).unwrap(), row, 2)
    }

    /// Numbers that do not fit their type are errors, as on a server.
    #[test]
    fn out_of_range() {
        let serial = LoadRule {
            numbers: Numbers::Serial,
            width_bytes: None,
            null_millionths: 0,
            is_ordered: false,
            labels: None,
            elements: None,
        };
        let value = |type_name, row| value(&serial, type_name, row);
        assert_eq!(value("int2", 32_767), Ok(Value::Integer(32_767)));
        assert!(value("int2", 32_768).is_err());
        assert_eq!(value("numeric(4,2)", 99), Ok(Value::Integer(99)));
        assert!(value("numeric(4,2)", 100).is_err());
        assert_eq!(value("bool", 7), Ok(Value::Integer(1)));
        assert_eq!(value("timestamptz", 7), Ok(Value::Integer(7_000_000)));
        assert_eq!(value("bpchar(3)", 27), Ok(Value::Text(Text::new("b  "))));
    }

    /// A label stands as often as its share says, NULLs aside, and new rows may have their own.
    #[test]
    fn shares() {
        let labels = Labels::new(&[0.25, 0.0, 0.75], Some((4000, 1)));
        let rule = LoadRule {
            numbers: Numbers::Random { ndistinct: 3 },
            width_bytes: None,
            null_millionths: 500_000,
            is_ordered: false,
            labels: Some(Arc::new(labels)),
            elements: None,
        };
        let mut found = [0; 4];
        for row in 1..=4000 {
            match value(&rule, "enum(3,16386)", row).unwrap() {
                Value::Integer(label) => found[usize::try_from(label).unwrap()] += 1,
                _ => found[3] += 1,
            }
        }
        assert!((450..550).contains(&found[0]), "{found:?}");
        assert!((1400..1600).contains(&found[2]), "{found:?}");
        assert_eq!(found[1], 0);
        let new: Vec<_> = (4001..4021)
            .map(|row| value(&rule, "enum(3,16386)", row))
            .collect();
        assert!(new.contains(&Ok(Value::Integer(1))) && !new.contains(&Ok(Value::Integer(0))));
    }
}
