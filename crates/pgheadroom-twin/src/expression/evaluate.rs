//! The value of an expression for a row.

use std::cmp::Ordering;

use crate::expression::{Comparison, Expression, Function, Node, Operator, Width};
use crate::md5;
use crate::row::Row;
use crate::text::trimmed;
use crate::value::{Text, Value, ValueError};

impl Expression {
    /// Its value for a row.
    ///
    /// # Errors
    /// [`ValueError`] when the server fails as well: division by zero, integers out of range.
    pub(crate) fn evaluate(&self, row: Row<'_>) -> Result<Value, ValueError> {
        self.node.evaluate(row)
    }

    /// Whether it is true for a row, neither false nor NULL.
    ///
    /// # Errors
    /// As [`Expression::evaluate`].
    pub(crate) fn is_true(&self, row: Row<'_>) -> Result<bool, ValueError> {
        Ok(truth(&self.node.evaluate(row)?) == Some(true))
    }
}

/// A truth value; `None` for NULL.
fn truth(value: &Value) -> Option<bool> {
    value.integer().map(|number| number != 0)
}

fn truth_value(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, |truth| Value::Integer(i64::from(truth)))
}

impl Node {
    fn evaluate(&self, row: Row<'_>) -> Result<Value, ValueError> {
        Ok(match self {
            Self::Column(column) => row.value(*column),
            Self::Literal(value) => value.clone(),
            Self::Stated(stated) => stated.value(row)?,
            Self::Compare(comparison, parts) => {
                let (one, other) = (parts[0].evaluate(row)?, parts[1].evaluate(row)?);
                truth_value(compare(&one, &other, false).map(|order| comparison.holds(order)))
            }
            Self::ComparePadded(comparison, parts) => {
                let (one, other) = (parts[0].evaluate(row)?, parts[1].evaluate(row)?);
                truth_value(compare(&one, &other, true).map(|order| comparison.holds(order)))
            }
            Self::Arithmetic(operator, width, parts) => {
                let (one, other) = (parts[0].evaluate(row)?, parts[1].evaluate(row)?);
                arithmetic(*operator, *width, &one, &other)?
            }
            Self::All(parts) => connected(parts, false, row)?,
            Self::Any(parts) => connected(parts, true, row)?,
            Self::Not(part) => truth_value(truth(&part.evaluate(row)?).map(|truth| !truth)),
            Self::IsNull(part) => truth_value(Some(part.evaluate(row)? == Value::Null)),
            Self::Call(Function::Coalesce, parts) => {
                for part in parts {
                    let value = part.evaluate(row)?;
                    if value != Value::Null {
                        return Ok(value);
                    }
                }
                Value::Null
            }
            Self::Call(function, parts) => {
                let mut values = Vec::with_capacity(parts.len());
                for part in parts {
                    values.push(part.evaluate(row)?);
                }
                if values.contains(&Value::Null) {
                    return Ok(Value::Null);
                }
                call(*function, &values)?
            }
        })
    }
}

/// AND, or OR if `decides`: the first part of that truth decides.
fn connected(parts: &[Node], decides: bool, row: Row<'_>) -> Result<Value, ValueError> {
    let mut result = Some(!decides);
    for part in parts {
        match truth(&part.evaluate(row)?) {
            Some(truth) if truth == decides => return Ok(truth_value(Some(decides))),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(truth_value(result))
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Different => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// Source: `float8_cmp_internal`, src/backend/utils/adt/float.c: NaN is the greatest, equal to
/// itself; `varstr_cmp`, varlena.c, in the C collation.
fn compare(one: &Value, other: &Value, is_padded: bool) -> Option<Ordering> {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => Some(one.cmp(other)),
        (Value::Text(one), Value::Text(other)) => {
            let (one, other) = (one.to_bytes(), other.to_bytes());
            Some(if is_padded {
                trimmed(&one).cmp(trimmed(&other))
            } else {
                one.cmp(&other)
            })
        }
        (Value::Null, _) | (_, Value::Null) => None,
        _ => {
            let (one, other) = (float(one), float(other));
            let order = one.partial_cmp(&other);
            Some(order.unwrap_or_else(|| one.is_nan().cmp(&other.is_nan())))
        }
    }
}

#[allow(clippy::cast_precision_loss)] // as the server's conversion to float8
fn float(value: &Value) -> f64 {
    match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => unreachable!("a number, by the types"),
    }
}

fn arithmetic(
    operator: Operator,
    width: Width,
    one: &Value,
    other: &Value,
) -> Result<Value, ValueError> {
    if *one == Value::Null || *other == Value::Null {
        return Ok(Value::Null);
    }
    if width == Width::Float8 {
        let (one, other) = (float(one), float(other));
        return Ok(Value::Float(match operator {
            Operator::Add => one + other,
            Operator::Subtract => one - other,
            Operator::Multiply => one * other,
            Operator::Divide if other == 0.0 => return Err(ValueError::DivisionByZero),
            Operator::Divide => one / other,
            Operator::Remainder => unreachable!("refused for floats"),
        }));
    }
    let number = |value: &Value| value.integer().expect("an integer, by the types");
    let (one, other) = (number(one), number(other));
    let result = match operator {
        Operator::Add => one.checked_add(other),
        Operator::Subtract => one.checked_sub(other),
        Operator::Multiply => one.checked_mul(other),
        Operator::Divide | Operator::Remainder if other == 0 => {
            return Err(ValueError::DivisionByZero);
        }
        Operator::Divide => one.checked_div(other),
        Operator::Remainder => Some(one.wrapping_rem(other)),
    };
    checked(width, result)
}

fn checked(width: Width, result: Option<i64>) -> Result<Value, ValueError> {
    let fits = |number: &i64| match width {
        Width::Int2 => i16::try_from(*number).is_ok(),
        Width::Int4 => i32::try_from(*number).is_ok(),
        Width::Int8 | Width::Float8 => *number != i64::MIN,
    };
    let out_of_range = || ValueError::OutOfRange {
        number: result.map_or_else(|| "a result".to_owned(), |number| number.to_string()),
        type_name: width.type_name().to_owned(),
    };
    let fitting = result.filter(fits).ok_or_else(out_of_range)?;
    Ok(Value::Integer(fitting))
}

fn call(function: Function, values: &[Value]) -> Result<Value, ValueError> {
    let number = |value: &Value| value.integer().expect("an integer, by the types");
    let bytes = |value: &Value| match value {
        Value::Text(text) => text.to_bytes(),
        _ => unreachable!("a string, by the types"),
    };
    let text = |bytes: &[u8]| Value::Text(Text::from_bytes(bytes));
    Ok(match function {
        Function::Abs(Width::Float8) => Value::Float(float(&values[0]).abs()),
        Function::Abs(width) => checked(width, number(&values[0]).checked_abs())?,
        Function::ToInteger(width) => checked(width, Some(number(&values[0])))?,
        Function::Concatenate => text(&[bytes(&values[0]), bytes(&values[1])].concat()),
        Function::Left => {
            let whole = bytes(&values[0]);
            let starts = |byte: &u8| byte & 0xC0 != 0x80;
            let length = whole.iter().filter(|byte| starts(byte)).count();
            let wanted = number(&values[1]);
            let kept = if wanted >= 0 {
                usize::try_from(wanted).unwrap_or(usize::MAX)
            } else {
                length.saturating_sub(usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX))
            };
            let mut positions = (0..whole.len()).filter(|&at| starts(&whole[at]));
            text(&whole[..positions.nth(kept).unwrap_or(whole.len())])
        }
        Function::Length => {
            let count = bytes(&values[0])
                .iter()
                .filter(|&byte| byte & 0xC0 != 0x80)
                .count();
            Value::Integer(i64::try_from(count).expect("a short string"))
        }
        Function::Lower => text(&bytes(&values[0]).to_ascii_lowercase()),
        Function::Upper => text(&bytes(&values[0]).to_ascii_uppercase()),
        Function::Md5 => text(&md5::hex(md5::digest(&bytes(&values[0])))),
        Function::ToText => match &values[0] {
            Value::Integer(number) => Value::Text(Text::new(&number.to_string())),
            padded => text(trimmed(&bytes(padded))),
        },
        Function::Coalesce => unreachable!("evaluated part by part"),
    })
}
