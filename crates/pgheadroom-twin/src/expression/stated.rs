//! Expressions that cannot be evaluated, and what is stated of their values instead.
//!
//! ```text
//! a column that stays        --hash--> whose      a share of all values: what it is for good
//! and the columns it reads   --hash--> read       the others: what it is now
//! either --hash--> one of ndistinct numbers, NULL, true or false
//! ```
//!
//! What a server has found of a predicate is that (`found.rs`); the rest is drawn.
//! A value follows from the row alone, so that an index finds it again. Between two versions of a
//! row whose columns read differ, the value changes in as many cases as is stated: it stays where
//! both take the second way.

use crate::expression::{Expression, ExpressionError, Found, Node};
use crate::row::kind::Kind;
use crate::row::{ColumnDefinition, Elements, LoadRule, Numbers, Row, hashint8extended};
use crate::value::{Value, ValueError};

/// What is stated of an expression's values.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Its type, as PostgreSQL spells it.
    pub type_name: String,
    /// Different values.
    pub ndistinct: i64,
    /// Fewest and most bytes, where the type leaves that open.
    pub width_bytes: Option<(u32, u32)>,
    /// Share of NULLs.
    pub null_frac: f64,
    /// Share of rows for which a predicate is true; `None` for other expressions.
    pub true_frac: Option<f64>,
    /// How many of the updates that change a column that it reads change its value.
    pub changed_frac: f64,
    /// The columns that it reads.
    pub columns: Vec<String>,
    /// A column that no update changes.
    pub identity: usize,
    /// What other runs differ in.
    pub salt: i64,
    /// Where values have several.
    pub elements: Option<Elements>,
    /// What is known of a predicate, by the values of `columns`.
    pub found: Found,
}

/// Values that follow from hashes of a row's columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stated {
    rule: LoadRule,
    kind: Kind,
    type_name: String,
    ndistinct: i64,
    /// Of predicates, in millionths.
    truths: Option<i64>,
    /// Of all values, those that follow from the columns read, in millionths.
    fresh: i64,
    columns: Vec<usize>,
    identity: usize,
    salt: i64,
    found: Found,
}

impl Expression {
    /// An expression of which only this is known.
    ///
    /// # Errors
    /// [`ExpressionError`]: a type, or a column that the table does not have.
    pub fn stated(
        text: &str,
        statement: &Statement,
        columns: &[ColumnDefinition],
    ) -> Result<Self, ExpressionError> {
        let wrong = |what: String| ExpressionError::Wrong {
            text: text.to_owned(),
            what,
        };
        let made = ColumnDefinition::new("", &statement.type_name);
        let column_type = made.map_err(|error| wrong(error.to_string()))?.column_type;
        let elements = statement.elements;
        let kind = elements.map(Kind::Elements);
        let kind = kind.or_else(|| Kind::of(&column_type));
        let kind = kind.ok_or_else(|| wrong(format!("type {column_type}")))?;
        let mut read = Vec::new();
        for name in &statement.columns {
            let position = columns.iter().position(|column| column.name == *name);
            read.push(position.ok_or_else(|| wrong(format!("{name:?}, which is no column")))?);
        }
        read.sort_unstable();
        read.dedup();
        let fresh = fresh_frac(statement);
        let stated = Stated {
            rule: LoadRule {
                numbers: Numbers::Random {
                    ndistinct: statement.ndistinct,
                },
                width_bytes: statement.width_bytes,
                null_millionths: u32::try_from(millionths(statement.null_frac))
                    .expect("at most a million"),
                is_ordered: false,
                labels: None,
                elements,
            },
            kind,
            type_name: column_type.name().to_owned(),
            ndistinct: statement.ndistinct.max(1),
            truths: statement.true_frac.map(millionths),
            fresh: millionths(fresh),
            columns: read.clone(),
            identity: statement.identity,
            salt: statement.salt,
            found: statement.found.clone(),
        };
        let node = Node::Stated(Box::new(stated));
        Ok(Self::with_columns(node, kind, read.clone(), read))
    }
}

/// Which share of the values follows from the columns read, so that as many change as is stated:
/// of two that differ, 1 - (1 - share)^2 are not both of the row, and of these some are equal.
fn fresh_frac(statement: &Statement) -> f64 {
    let differ = match statement.true_frac {
        Some(truth) => 2.0 * truth * (1.0 - truth),
        None => 1.0,
    };
    if differ <= 0.0 {
        return 0.0;
    }
    let moved = (statement.changed_frac / differ).clamp(0.0, 1.0);
    1.0 - (1.0 - moved).sqrt()
}

fn millionths(frac: f64) -> i64 {
    #[allow(clippy::cast_possible_truncation)] // 0 to a million
    let whole = (frac.clamp(0.0, 1.0) * 1e6).round_ties_even() as i64;
    whole
}

impl Stated {
    /// Columns that it reads.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The value for a row.
    pub fn value(&self, row: Row<'_>) -> Result<Value, ValueError> {
        if let Some(truth) = self.found.truth(row, &self.columns) {
            return Ok(Value::Integer(i64::from(truth)));
        }
        let hashed = |hash, &column: &usize| hashint8extended(code(&row.value(column)), hash);
        let whose = hashed(self.salt, &self.identity);
        let read = self.columns.iter().fold(whose, hashed);
        let is_fresh = hashint8extended(read, 1).rem_euclid(1_000_000) < self.fresh;
        let source = if is_fresh { read } else { whose };
        let hash = hashint8extended(source, 2);
        if let Some(truths) = self.truths {
            return Ok(Value::Integer(i64::from(
                hash.rem_euclid(1_000_000) < truths,
            )));
        }
        if hash.rem_euclid(1_000_000) < i64::from(self.rule.null_millionths) {
            return Ok(Value::Null);
        }
        // A hash of a hash has 2^32 values only (`hashint8` folds its halves), some of them twice
        // among the rows of a unique index.
        let mixed = if self.ndistinct > i64::from(u32::MAX) {
            source
        } else {
            hashint8extended(source, 3)
        };
        let number = mixed.rem_euclid(self.ndistinct);
        let kind = (self.kind, self.type_name.as_str());
        // Equal numbers are equal values, and so have one width.
        let hash = hashint8extended(number, 4);
        self.rule.value_of_number(kind, number, hash)
    }
}

/// A number for a value, the same for equal ones.
fn code(value: &Value) -> i64 {
    match value {
        Value::Null => i64::MIN,
        Value::Integer(number) => *number,
        Value::Float(number) => number.to_bits().cast_signed(),
        Value::Text(text) => {
            // FNV-1a.
            let mut hash = 0xcbf2_9ce4_8422_2325_u64;
            for byte in text.to_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            hash.cast_signed()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{RowType, Texts};

    fn statement() -> Statement {
        Statement {
            type_name: "int8".to_owned(),
            ndistinct: 1_000_000,
            width_bytes: None,
            null_frac: 0.0,
            true_frac: None,
            changed_frac: 1.0,
            columns: vec!["b".to_owned()],
            identity: 0,
            salt: 0,
            elements: None,
            found: Found::default(),
        }
    }

    /// The share of rows whose value is another once the column read is one more.
    fn changed(statement: &Statement) -> f64 {
        let columns = ["id", "b"].map(|name| ColumnDefinition::new(name, "int8").unwrap());
        let expression = Expression::stated("x", statement, &columns).unwrap();
        assert_eq!(expression.columns(), [1]);
        let (row_type, texts) = (RowType::new(&columns).unwrap(), Texts::default());
        let value = |slots: [i64; 2]| {
            let row = Row {
                row_type: &row_type,
                slots: crate::row::Slots::Listed(&slots),
                texts: &texts,
            };
            expression.evaluate(row).unwrap()
        };
        let others = (0..20_000).filter(|&id| value([id, id % 7]) != value([id, id % 7 + 1]));
        f64::from(u32::try_from(others.count()).unwrap()) / 20_000.0
    }

    /// Those of a unique index are as many as rows: of 200,000 that were hashed twice some five
    /// were another one's.
    #[test]
    fn many_values_differ() {
        let columns = ["id", "b"].map(|name| ColumnDefinition::new(name, "int8").unwrap());
        let (row_type, texts) = (RowType::new(&columns).unwrap(), Texts::default());
        for changed_frac in [0.0, 0.5, 1.0] {
            let statement = Statement {
                ndistinct: 1 << 60,
                changed_frac,
                ..statement()
            };
            let expression = Expression::stated("x", &statement, &columns).unwrap();
            let values: std::collections::BTreeSet<i64> = (0..200_000)
                .map(|id| {
                    let row = Row {
                        row_type: &row_type,
                        slots: crate::row::Slots::Listed(&[id, id % 7]),
                        texts: &texts,
                    };
                    match expression.evaluate(row).unwrap() {
                        Value::Integer(number) => number,
                        other => panic!("{other:?}"),
                    }
                })
                .collect();
            assert_eq!(values.len(), 200_000, "{changed_frac}");
        }
    }

    /// Values change in as many updates as is stated.
    #[test]
    fn changes_as_often_as_stated() {
        for changed_frac in [0.0, 0.1, 0.5, 1.0] {
            let plain = Statement {
                changed_frac,
                ..statement()
            };
            assert!(
                (changed(&plain) - changed_frac).abs() < 0.02,
                "{changed_frac}"
            );
        }
        for (true_frac, changed_frac) in [(0.5, 0.2), (0.1, 0.05), (0.02, 0.0)] {
            let predicate = Statement {
                type_name: "bool".to_owned(),
                true_frac: Some(true_frac),
                changed_frac,
                ..statement()
            };
            assert!(
                (changed(&predicate) - changed_frac).abs() < 0.02,
                "{true_frac}"
            );
        }
    }
}
