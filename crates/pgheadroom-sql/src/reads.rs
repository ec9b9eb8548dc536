//! The tables that a statement reads, and the columns by which it looks for their rows.
//!
//! Names stay as they stand: which relation an unqualified one is, the reader's search path
//! decides; what stands in a view or a function is not seen.

use pg_query::NodeEnum;
use pg_query::protobuf::AExprKind;
use serde::Serialize;
use serde_json::Value;

use crate::SqlError;
use crate::columns::{strings, visit};
use crate::tree::with_tree;

const COMPARED: [&str; 4] = ["<", "<=", ">", ">="];

/// A table in a FROM, or one that is updated, deleted from or merged into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableRead {
    /// Its schema, where it stands there.
    pub schema: Option<String>,
    /// Its name.
    pub table: String,
    /// What it is called in the statement.
    pub alias: Option<String>,
}

/// A column in a condition or an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnUse {
    /// The table or alias before it, where one stands there.
    pub of: Option<String>,
    /// Its name.
    pub column: String,
}

/// What a statement reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StatementReads {
    /// Tables, each once.
    pub tables: Vec<TableRead>,
    /// Columns that are compared by `<`, `<=`, `>`, `>=` or BETWEEN.
    pub ranges: Vec<ColumnUse>,
    /// Columns that are compared by `=`, `IN` or `= ANY`.
    pub equals: Vec<ColumnUse>,
    /// Columns by which rows come in order.
    pub ordered: Vec<ColumnUse>,
    /// Some SELECT of it has a LIMIT.
    pub has_limit: bool,
}

/// What a statement reads.
///
/// # Errors
///
/// Of the parser; [`SqlError::NotOne`] for more than one statement.
pub fn reads_of(text: &str) -> Result<StatementReads, SqlError> {
    with_tree(text, |tree| {
        let statement: &NodeEnum = tree.only()?;
        let value = serde_json::to_value(statement).unwrap_or(Value::Null);
        Ok(found(&value))
    })
}

fn found(statement: &Value) -> StatementReads {
    let mut made = StatementReads::default();
    let mut named = Vec::new();
    visit(statement, &mut |kind, body| match kind {
        "RangeVar" => push(&mut made.tables, table(body)),
        "UpdateStmt" | "DeleteStmt" | "MergeStmt" => {
            push(&mut made.tables, table(&body["relation"]));
        }
        "CommonTableExpr" => named.extend(text(&body["ctename"])),
        "SelectStmt" => made.has_limit |= !body["limit_count"].is_null(),
        "SortBy" => push(&mut made.ordered, column(&body["node"])),
        "AExpr" => compared(body, &mut made),
        _ => {}
    });
    made.tables
        .retain(|one| one.schema.is_some() || !named.contains(&one.table));
    made
}

fn compared(body: &Value, made: &mut StatementReads) {
    let kind = body["kind"].as_i64().unwrap_or_default();
    let is = |one: AExprKind| kind == one as i64;
    let operator = strings(&body["name"]).last().unwrap_or_default().to_owned();
    let into = if is(AExprKind::AexprBetween)
        || is(AExprKind::AexprBetweenSym)
        || (is(AExprKind::AexprOp) && COMPARED.contains(&operator.as_str()))
    {
        &mut made.ranges
    } else if operator == "="
        && (is(AExprKind::AexprOp) || is(AExprKind::AexprOpAny) || is(AExprKind::AexprIn))
    {
        &mut made.equals
    } else {
        return;
    };
    for side in [&body["lexpr"], &body["rexpr"]] {
        push(into, column(side));
        // (a, b) > ($1, $2)
        let row = &side["node"]["RowExpr"]["args"];
        for item in row.as_array().into_iter().flatten() {
            push(into, column(item));
        }
    }
}

fn table(body: &Value) -> Option<TableRead> {
    Some(TableRead {
        schema: text(&body["schemaname"]),
        table: text(&body["relname"])?,
        alias: text(&body["alias"]["aliasname"]),
    })
}

fn column(node: &Value) -> Option<ColumnUse> {
    let fields = &node["node"]["ColumnRef"]["fields"];
    let mut names: Vec<&str> = strings(fields).collect();
    if fields.as_array().is_none_or(|all| all.len() != names.len()) {
        return None; // t.*
    }
    let column = names.pop()?.to_owned();
    let of = names.pop().map(str::to_owned);
    Some(ColumnUse { of, column })
}

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn push<T: PartialEq>(list: &mut Vec<T>, item: Option<T>) {
    if let Some(item) = item
        && !list.contains(&item)
    {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> StatementReads {
        reads_of(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn names(tables: &[TableRead]) -> Vec<&str> {
        tables.iter().map(|one| one.table.as_str()).collect()
    }

    fn columns(uses: &[ColumnUse]) -> Vec<&str> {
        uses.iter().map(|one| one.column.as_str()).collect()
    }

    #[test]
    fn ranges_of_a_table() {
        let found = of("SELECT sum(v) FROM s.t AS x WHERE x.k BETWEEN $1 AND $2 AND d = $3");
        let read = &found.tables[0];
        assert_eq!(
            (
                read.schema.as_deref(),
                read.table.as_str(),
                read.alias.as_deref()
            ),
            (Some("s"), "t", Some("x"))
        );
        assert_eq!(columns(&found.ranges), ["k"]);
        assert_eq!(found.ranges[0].of.as_deref(), Some("x"));
        assert_eq!(columns(&found.equals), ["d"]);
        assert!(!found.has_limit);
    }

    #[test]
    fn rows_in_order() {
        let found = of("SELECT * FROM t WHERE (a, b) > ($1, $2) ORDER BY a, b DESC LIMIT $3");
        assert_eq!(columns(&found.ranges), ["a", "b"]);
        assert_eq!(columns(&found.ordered), ["a", "b"]);
        assert!(found.has_limit);
    }

    #[test]
    fn tables_wherever_they_stand() {
        let found = of("WITH w AS (SELECT * FROM a WHERE k > $1) \
             INSERT INTO b SELECT * FROM w JOIN c ON c.i = w.i WHERE EXISTS (SELECT FROM d)");
        let mut read = names(&found.tables);
        read.sort_unstable();
        assert_eq!(read, ["a", "c", "d"], "not b, which is written, nor w");
        assert_eq!(
            names(&of("UPDATE t SET v = $1 WHERE k >= $2").tables),
            ["t"]
        );
        assert_eq!(names(&of("DELETE FROM t WHERE k < $1").tables), ["t"]);
        assert!(of("INSERT INTO t VALUES ($1)").tables.is_empty());
        assert!(reads_of("SELECT 1; SELECT 2").is_err());
        assert!(reads_of("SELEC").is_err());
    }

    #[test]
    fn what_is_no_range() {
        let found = of("SELECT t.* FROM t WHERE k <> $1 AND v LIKE $2 AND a NOT BETWEEN 1 AND 2");
        assert!(found.ranges.is_empty() && found.equals.is_empty());
        assert_eq!(
            columns(&of("SELECT 1 FROM t WHERE k IN ($1, $2) AND j = ANY ($3)").equals),
            ["k", "j"]
        );
    }
}
