//! The columns and functions that an expression names.

use pg_query::protobuf::{ParseResult, RawStmt, ResTarget, SelectStmt};
use pg_query::{Node, NodeEnum};
use serde::Serialize;
use serde_json::Value;

use crate::SqlError;
use crate::tree::with_tree;

/// What an expression reads of one row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    /// Columns, in the order in which they stand.
    pub columns: Vec<String>,
    /// It names the row itself: `t.*`.
    pub whole_row: bool,
    /// It names `t` alone: the column of that name, which is among the columns here, or the row
    /// itself where the table has none.
    pub may_be_row: bool,
    /// Functions that it calls, by the names that stand there.
    pub functions: Vec<String>,
}

impl Reads {
    /// Of several, one after another.
    pub(crate) fn join(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut made = Self::default();
        for part in parts {
            for column in part.columns {
                push(&mut made.columns, column);
            }
            for function in part.functions {
                push(&mut made.functions, function);
            }
            made.whole_row |= part.whole_row;
            made.may_be_row |= part.may_be_row;
        }
        made
    }
}

/// What an expression over a table's row reads, and its text as PostgreSQL would write it.
///
/// # Errors
///
/// Of the parser; [`SqlError::NotOne`] for what is no expression.
pub fn expression(text: &str, table: &str) -> Result<(Reads, String), SqlError> {
    let table = table.to_owned();
    value_of(text, move |value| {
        Ok((reads(value, &table), spelled(value)?))
    })
}

/// What is made of the tree of one expression.
///
/// # Errors
///
/// Of the parser; [`SqlError::NotOne`] for what is no expression.
pub(crate) fn value_of<T: Send + 'static>(
    text: &str,
    make: impl FnOnce(&Node) -> Result<T, SqlError> + Send + 'static,
) -> Result<T, SqlError> {
    // On a line of its own: a comment at the end must not take the bracket.
    with_tree(&format!("SELECT ({text}\n)"), move |tree| {
        let NodeEnum::SelectStmt(select) = tree.only()? else {
            return Err(SqlError::NotOne { found: 0 });
        };
        let value = match select.target_list.as_slice() {
            [one] => match one.node.as_ref() {
                Some(NodeEnum::ResTarget(target)) => target.val.as_deref(),
                _ => None,
            },
            _ => None,
        };
        let value = value.ok_or(SqlError::NotOne {
            found: select.target_list.len(),
        })?;
        make(value)
    })
}

/// What an expression reads; subqueries' columns are taken for the row's own.
pub(crate) fn reads(node: &Node, table: &str) -> Reads {
    let mut found = Reads::default();
    // By their places in the text, for the tree's fields come in another order.
    let (mut columns, mut functions) = (Vec::new(), Vec::new());
    // The tree's types all serialise, so nothing that may hold a column is left out.
    if let Ok(value) = serde_json::to_value(node) {
        visit(&value, &mut |kind, body| {
            let place = body["location"].as_i64();
            match kind {
                "ColumnRef" => {
                    let (name, is_whole, may_be_row) = column(body, table);
                    found.whole_row |= is_whole;
                    found.may_be_row |= may_be_row;
                    columns.extend(name.map(|name| (place, name)));
                }
                "FuncCall" | "funccall" => {
                    let names: Vec<&str> = strings(&body["funcname"]).collect();
                    functions.push((place, names.join(".")));
                }
                _ => {}
            }
        });
    }
    found.columns = in_order(columns);
    found.functions = in_order(functions);
    found
}

fn in_order(mut named: Vec<(Option<i64>, String)>) -> Vec<String> {
    named.sort();
    let mut made = Vec::new();
    named
        .into_iter()
        .for_each(|(_, name)| push(&mut made, name));
    made
}

/// The functions that a statement calls, wherever they stand.
pub(crate) fn functions(statement: &NodeEnum) -> Vec<String> {
    reads(
        &Node {
            node: Some(statement.clone()),
        },
        "",
    )
    .functions
}

/// The column of a reference, if it names one, whether it names the whole row, and whether it does
/// so where no column has the name.
fn column(body: &Value, table: &str) -> (Option<String>, bool, bool) {
    let fields = body["fields"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if fields
        .iter()
        .any(|field| field["node"].get("AStar").is_some())
    {
        return (None, true, false);
    }
    // `a`, `t.a`, `s.t.a`; a field of a column stands as `(a).f`.
    let names: Vec<&str> = strings(&body["fields"]).collect();
    let Some(name) = names.last() else {
        return (None, false, false);
    };
    let may_be_row = names.len() == 1 && !table.is_empty() && *name == table;
    (Some((*name).to_owned()), false, may_be_row)
}

pub(crate) fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["node"]["String"]["sval"].as_str())
}

fn push(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Every object with the key under which it stands, the outer ones first.
pub(crate) fn visit(value: &Value, seen: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => {
            for (key, inside) in fields {
                if inside.is_object() {
                    seen(key, inside);
                }
                visit(inside, seen);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| visit(item, seen)),
        _ => {}
    }
}

/// An expression as PostgreSQL would write it.
///
/// # Errors
///
/// Of the parser's own printer.
pub(crate) fn spelled(value: &Node) -> Result<String, SqlError> {
    let target = ResTarget {
        val: Some(Box::new(value.clone())),
        ..ResTarget::default()
    };
    let select = SelectStmt {
        target_list: vec![Node {
            node: Some(NodeEnum::ResTarget(Box::new(target))),
        }],
        limit_option: 1,
        op: 1,
        ..SelectStmt::default()
    };
    let statement = Node {
        node: Some(NodeEnum::SelectStmt(Box::new(select))),
    };
    let raw = RawStmt {
        stmt: Some(Box::new(statement)),
        ..RawStmt::default()
    };
    let tree = ParseResult {
        version: crate::GRAMMAR_VERSION_NUM,
        stmts: vec![raw],
    };
    let text = pg_query::deparse(&tree, Default::default()).map_err(SqlError::from_parser)?;
    Ok(text.strip_prefix("SELECT ").unwrap_or(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Vec<String>, bool) {
        let (found, _) = expression(text, "t").unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            found.may_be_row,
            found.columns.contains(&"t".to_owned()),
            "{text}"
        );
        (found.columns, found.whole_row)
    }

    #[test]
    fn every_column_is_found_wherever_it_stands() {
        for (text, expected, whole) in [
            ("lower(a) COLLATE \"C\"", vec!["a"], false),
            ("CASE WHEN a THEN b ELSE c END", vec!["a", "b", "c"], false),
            (
                "a IS NOT NULL AND b IN (1, c) OR NOT d",
                vec!["a", "b", "c", "d"],
                false,
            ),
            (
                "COALESCE(a, b)::text || date_trunc('day', c AT TIME ZONE 'UTC')",
                vec!["a", "b", "c"],
                false,
            ),
            ("(a).f", vec!["a"], false),
            ("a[b]", vec!["a", "b"], false),
            ("public.t.a + t.b", vec!["a", "b"], false),
            ("\"A\" -> 'x'", vec!["A"], false),
            ("ARRAY[a, b] && c", vec!["a", "b", "c"], false),
            ("ROW(a, b)", vec!["a", "b"], false),
            ("jsonb_path_exists(a, '$ ? (@.x == 1)')", vec!["a"], false),
            ("xmlserialize(CONTENT a AS text)", vec!["a"], false),
            (
                "GREATEST(a, b) BETWEEN c AND d",
                vec!["a", "b", "c", "d"],
                false,
            ),
            ("t IS NOT NULL", vec!["t"], false),
            ("f(t.*)", vec![], true),
            ("to_json(t)", vec!["t"], false),
            ("hash(t)", vec!["t"], false),
            ("now() -- a", vec![], false),
            (
                "json_value(a, '$.x' RETURNING int DEFAULT b ON EMPTY)",
                vec!["a", "b"],
                false,
            ),
        ] {
            assert_eq!(
                of(text),
                (expected.into_iter().map(str::to_owned).collect(), whole),
                "{text}"
            );
        }
    }

    #[test]
    fn an_expression_has_one_text() {
        let text = |text: &str| expression(text, "t").map(|found| found.1);
        assert_eq!(
            text("LOWER( a )||'x'").unwrap(),
            text("lower(a) || 'x' -- y").unwrap()
        );
        assert!(text("a, b; DROP TABLE t").is_err());
        assert!(text("").is_err());
    }
}
