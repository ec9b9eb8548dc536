use super::*;
use crate::row::{RowType, Texts};
use crate::value::Text;

fn columns() -> Vec<ColumnDefinition> {
    [
        ("a", "int4"),
        ("b", "int2"),
        ("s", "text"),
        ("c", "bpchar(5)"),
        ("f", "float8"),
    ]
    .map(|(name, type_name)| ColumnDefinition::new(name, type_name).unwrap())
    .to_vec()
}

fn value_in(text: &str, row: [Value; 5]) -> Result<Value, String> {
    value_of(text, &columns(), row)
}

fn value_of(
    text: &str,
    columns: &[ColumnDefinition],
    row: impl IntoIterator<Item = Value>,
) -> Result<Value, String> {
    let expression = Expression::parse(text, columns).map_err(|error| error.to_string())?;
    with_row(columns, row, |row| expression.evaluate(row)).map_err(|error| error.to_string())
}

fn with_row<T>(
    columns: &[ColumnDefinition],
    row: impl IntoIterator<Item = Value>,
    what: impl FnOnce(crate::row::Row<'_>) -> T,
) -> T {
    let row_type = RowType::new(columns).unwrap();
    let mut texts = Texts::default();
    let slots: Vec<i64> = row
        .into_iter()
        .enumerate()
        .map(|(column, value)| row_type.slot(column, value, &mut texts).unwrap())
        .collect();
    what(crate::row::Row {
        row_type: &row_type,
        slots: crate::row::Slots::Listed(&slots),
        texts: &texts,
    })
}

fn usual_row() -> [Value; 5] {
    [
        Value::Integer(7),
        Value::Null,
        Value::Text(Text::new("Ab")),
        Value::Text(Text::new("x    ")),
        Value::Float(0.5),
    ]
}

fn value(text: &str) -> Value {
    value_in(text, usual_row()).unwrap()
}

/// Of a value out of line only what is looked at is read: `a` is 0, `s` 2, in this order.
#[test]
fn what_is_read_of_a_row() {
    let read = |text: &str, is_predicate: bool| {
        let expression = Expression::parse(text, &columns()).unwrap();
        with_row(&columns(), usual_row(), |row| {
            if is_predicate {
                expression.columns_read_for(row)
            } else {
                let (mut read, value) = expression.columns_read_of(row);
                read.extend(value);
                read
            }
        })
    };
    for (text, of_key, of_predicate) in [
        ("s", &[2][..], &[][..]),
        ("coalesce(s, 'x')", &[2], &[]),
        ("s is null", &[], &[]),
        ("lower(s) is null", &[2], &[2]),
        // Lengths differ, or do not; of bpchar they are not known before.
        ("s = 'abc'", &[], &[]),
        ("s <> 'ab'", &[2], &[2]),
        ("s < 'abc'", &[2], &[2]),
        ("coalesce(s, 'x') = 'abc'", &[], &[]),
        ("c = 'abc'", &[3], &[3]),
        ("lower(s) = 'abc'", &[2], &[2]),
        // Strict: b is NULL.
        ("left(s, b) = 'x'", &[], &[]),
        ("s || null = 'x'", &[], &[]),
        // A condition that decides, and one that is NULL.
        ("a = 8 and s > 'x'", &[0], &[0]),
        ("a = 7 or s > 'x'", &[0], &[0]),
        ("b = 1 and s > 'x'", &[2], &[]),
        ("(b = 1 and s > 'x') or a = 7", &[2, 0], &[2, 0]),
        ("not s > 'x' and a = 7", &[2, 0], &[2, 0]),
        // In the form in which a server has them: one AND, NOT within, what is common first.
        ("(b > 0 and s > 'A') and a = 7", &[2, 0], &[]),
        ("not (b = 1 or s > 'x')", &[2], &[]),
        ("not (a <> 7 and s > 'x')", &[0], &[0]),
        (
            "(a = 1 and s > 'A') or (a = 2 and s > 'A')",
            &[0, 0],
            &[2, 0, 0],
        ),
        ("(a = 1 and s > 'A') or s > 'A'", &[0, 2], &[2]),
        ("s < s", &[2, 2], &[2, 2]),
    ] {
        assert_eq!(read(text, false), of_key, "{text}");
        assert_eq!(read(text, true), of_predicate, "{text}");
    }
}

/// Precedence, three-valued logic and types, each as a server's SELECT answers.
#[test]
fn as_a_server_answers() {
    let truth = |value| Value::Integer(i64::from(value));
    for (text, expected) in [
        ("1 + 2 * 3 = a", truth(true)),
        ("a - 1 - 1", Value::Integer(5)),
        ("-a / 2", Value::Integer(-3)),
        ("-a % 4", Value::Integer(-3)),
        ("b = 1 OR a = 7", truth(true)),
        ("b = 1 OR a = 8", Value::Null),
        ("b = 1 AND a = 8", truth(false)),
        ("NOT b = 1", Value::Null),
        ("b IS NULL AND a IS NOT NULL", truth(true)),
        ("(b = 1) IS NOT TRUE", truth(true)),
        ("b + 1 IS NULL", truth(true)),
        ("a IN (1, 7)", truth(true)),
        ("a NOT IN (1, NULL)", Value::Null),
        ("a BETWEEN 5 AND 7 AND f < 1", truth(true)),
        ("lower(s) || upper('z')", Value::Text(Text::new("abZ"))),
        ("length(c) + length(s)", Value::Integer(3)),
        ("c = 'x'", truth(true)),
        ("s > 'AB'", truth(true)),
        ("s = 'it''s'", truth(false)),
        ("coalesce(b, a) > 6", truth(true)),
        ("mod(abs(-a), 4)", Value::Integer(3)),
        (
            "md5('a')",
            Value::Text(Text::new("0cc175b9c0f1b6a831c399e269772661")),
        ),
        ("left(s, 1)", Value::Text(Text::new("A"))),
        ("left(s, -1)", Value::Text(Text::new("A"))),
        ("\"a\"::text", Value::Text(Text::new("7"))),
        ("f + a", Value::Float(7.5)),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

/// What is not known is refused by name, never guessed.
#[test]
fn refused_by_name() {
    for (text, what) in [
        ("s LIKE 'a%'", "LIKE"),
        ("substr(s, 1, 2)", "substr"),
        ("a + 0.5", "0.5"),
        ("no_such", "no_such"),
        ("a = 1 COLLATE \"C\"", "COLLATE"),
        ("a::float8", "float8"),
        ("a #> 1", "#"),
        ("(a", "\")\""),
    ] {
        let error = Expression::parse(text, &columns()).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

/// A literal beside an enum is a label, in `coalesce` too; another one no server takes.
#[test]
fn labels() {
    let names = ["todo", "it's", "done"].map(str::to_owned);
    let columns = [("s", "enum", &names[..]), ("x", "text", &[])];
    let columns = ColumnDefinition::of_expressions(&columns).unwrap();
    let truth = |value| Value::Integer(i64::from(value));
    for (text, label, expected) in [
        ("s = 'it''s'", Value::Integer(1), truth(true)),
        ("s < 'done'", Value::Integer(2), truth(false)),
        ("coalesce(s, 'done') = 'done'", Value::Null, truth(true)),
        (
            "coalesce('todo', s) = 'todo'",
            Value::Integer(2),
            truth(true),
        ),
        (
            "coalesce(NULL, s) = 'todo'",
            Value::Integer(2),
            truth(false),
        ),
    ] {
        let found = value_of(text, &columns, [label, Value::Null]);
        assert_eq!(found, Ok(expected), "{text}");
    }
    for text in [
        "s = 'nope'",
        "coalesce(s, 'nope')",
        "x = 'x' OR s IN ('todo', 'nope')",
    ] {
        let error = Expression::parse(text, &columns).unwrap_err();
        let is_wrong =
            matches!(&error, ExpressionError::Wrong { what, .. } if what.contains("nope"));
        assert!(is_wrong, "{text}: {error}");
    }
}

/// A condition is a boolean; what a literal is, its text says to a server.
#[test]
fn conditions() {
    for (text, is_wrong) in [
        ("a", true),
        ("s", true),
        ("a = 1 AND b", true),
        ("NOT a + b", true),
        ("'yes'", false),
        ("NOT 'no'", false),
        ("a = 1 OR 'f'", false),
    ] {
        let error = Expression::condition(text, &columns()).unwrap_err();
        let found = matches!(error, ExpressionError::Wrong { .. });
        assert_eq!(found, is_wrong, "{text}: {error}");
    }
    for text in ["a = 1", "NULL", "NOT NULL", "true", "s IS NULL"] {
        assert!(Expression::condition(text, &columns()).is_ok(), "{text}");
    }
}

/// Errors of a server are errors here.
#[test]
fn errors_of_servers() {
    let row = || [1, 2, 3, 4, 5].map(|_| Value::Null);
    let mut big = row();
    big[0] = Value::Integer(2_147_483_647);
    big[1] = Value::Integer(0);
    assert!(value_in("a + 1", big.clone()).is_err());
    assert!(value_in("a / b", big.clone()).is_err());
    assert_eq!(
        value_in("a::int8 + 1", big),
        Ok(Value::Integer(2_147_483_648))
    );
}
