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

    /// The columns of which it looks at values of a row, as far as it comes where it fails; and the
    /// one whose value it is, if nobody has looked at that.
    pub(crate) fn columns_read_of(&self, row: Row<'_>) -> (Vec<usize>, Option<usize>) {
        let mut read = Vec::new();
        let found = self.simplified.follow(row, &mut |column| read.push(column));
        (read, found.ok().and_then(|found| found.unread))
    }

    /// The columns of which a predicate looks at values: nothing is evaluated behind the first
    /// condition that is not true.
    ///
    /// Source: `ExecQual`, src/include/executor/executor.h (REL_18_STABLE).
    pub(crate) fn columns_read_for(&self, row: Row<'_>) -> Vec<usize> {
        let mut read = Vec::new();
        for condition in &self.conditions {
            let found = condition.follow(row, &mut |column| read.push(column));
            if !found.is_ok_and(|found| truth(&found.value) == Some(true)) {
                break;
            }
        }
        read
    }
}

/// A value, and the column that it is the value of as long as nobody has looked at it.
struct Followed {
    value: Value,
    unread: Option<usize>,
}

impl From<Value> for Followed {
    fn from(value: Value) -> Self {
        Self {
            value,
            unread: None,
        }
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
        Ok(self.follow(row, &mut |_| {})?.value)
    }

    /// Its value for a row; `read` is told of columns whose values are looked at, not only whether
    /// they are NULL.
    fn follow(&self, row: Row<'_>, read: &mut dyn FnMut(usize)) -> Result<Followed, ValueError> {
        let value = match self {
            Self::Column(column) => {
                return Ok(Followed {
                    value: row.value(*column),
                    unread: Some(*column),
                });
            }
            Self::Literal(value) => value.clone(),
            Self::Stated(stated) => {
                stated.columns().iter().copied().for_each(&mut *read);
                stated.value(row)?
            }
            Self::Compare(comparison, parts) => {
                let needs_values = |values: &[Value; 2], unread: [Option<usize>; 2]| {
                    let is_text = |column: usize| row.row_type.columns[column].kind.is_text();
                    let are_texts = unread.into_iter().flatten().all(is_text);
                    !(are_texts && comparison.is_told_by_length(values))
                };
                let [one, other] = read_both(parts, row, needs_values, read)?;
                let order = compare(&one, &other, false);
                truth_value(order.map(|order| comparison.holds(order)))
            }
            Self::ComparePadded(comparison, parts) => {
                let [one, other] = read_both(parts, row, |_, _| true, read)?;
                let order = compare(&one, &other, true);
                truth_value(order.map(|order| comparison.holds(order)))
            }
            Self::Arithmetic(operator, width, parts) => {
                let [one, other] = read_both(parts, row, |_, _| true, read)?;
                arithmetic(*operator, *width, &one, &other)?
            }
            Self::All(parts) => connected(parts, false, row, read)?,
            Self::Any(parts) => connected(parts, true, row, read)?,
            Self::Not(part) => {
                let value = part.follow(row, read)?.value;
                truth_value(truth(&value).map(|truth| !truth))
            }
            Self::IsNull(part) => truth_value(Some(part.follow(row, read)?.value == Value::Null)),
            Self::Call(Function::Coalesce, parts) => {
                for part in parts {
                    let found = part.follow(row, read)?;
                    if found.value != Value::Null {
                        return Ok(found);
                    }
                }
                Value::Null
            }
            Self::Call(function, parts) => {
                let values = read_all(parts, row, read)?;
                if values.contains(&Value::Null) {
                    return Ok(Value::Null.into());
                }
                call(*function, &values)?
            }
        };
        Ok(value.into())
    }
}

/// The values of a strict function's arguments: it is called, and reads them, if none is NULL.
///
/// Source: `EEOP_FUNCEXPR_STRICT` in `ExecInterpExpr`, src/backend/executor/execExprInterp.c
/// (REL_18_STABLE).
fn read_all(
    parts: &[Node],
    row: Row<'_>,
    read: &mut dyn FnMut(usize),
) -> Result<Vec<Value>, ValueError> {
    let mut values = Vec::with_capacity(parts.len());
    let mut unread = Vec::new();
    for part in parts {
        let found = part.follow(row, read)?;
        values.push(found.value);
        unread.extend(found.unread);
    }
    if !values.contains(&Value::Null) {
        unread.into_iter().for_each(read);
    }
    Ok(values)
}

/// The same of an operator, which may not need to read them.
fn read_both(
    parts: &[Node; 2],
    row: Row<'_>,
    needs_values: impl FnOnce(&[Value; 2], [Option<usize>; 2]) -> bool,
    read: &mut dyn FnMut(usize),
) -> Result<[Value; 2], ValueError> {
    let (one, other) = (parts[0].follow(row, read)?, parts[1].follow(row, read)?);
    let unread = [one.unread, other.unread];
    let values = [one.value, other.value];
    if !values.contains(&Value::Null) && needs_values(&values, unread) {
        unread.into_iter().flatten().for_each(read);
    }
    Ok(values)
}

/// AND, or OR if `decides`: the first part of that truth decides.
fn connected(
    parts: &[Node],
    decides: bool,
    row: Row<'_>,
    read: &mut dyn FnMut(usize),
) -> Result<Value, ValueError> {
    let mut result = Some(!decides);
    for part in parts {
        match truth(&part.follow(row, read)?.value) {
            Some(truth) if truth == decides => return Ok(truth_value(Some(decides))),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(truth_value(result))
}

impl Comparison {
    /// Whether strings of these lengths are told apart without a look at them; no other type's
    /// values are.
    ///
    /// Source: `texteq` and `textne`, src/backend/utils/adt/varlena.c (REL_15_STABLE,
    /// REL_18_STABLE).
    fn is_told_by_length(self, values: &[Value; 2]) -> bool {
        let is_equality = matches!(self, Self::Equal | Self::Different);
        let [Value::Text(one), Value::Text(other)] = values else {
            return false;
        };
        is_equality && one.len() != other.len()
    }

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
