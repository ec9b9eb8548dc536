//! Rows that a statement takes from the head of a queue: found by FOR UPDATE SKIP LOCKED.
//!
//! ```text
//! DELETE FROM t WHERE key = (SELECT key FROM t .. ORDER BY .. FOR UPDATE SKIP LOCKED LIMIT n)
//! .. key IN (SELECT ..)    .. key = ANY (ARRAY (SELECT ..))    .. key IN (SELECT .. FROM q)
//! WITH q AS (SELECT ..) UPDATE t .. FROM q WHERE t.key = q.key
//! SELECT .. FOR UPDATE SKIP LOCKED LIMIT n                 the change is another statement's
//! ```
//!
//! Names stay as they stand. Values are not told: they are `$n` in what the statements come from.

use std::collections::HashMap;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AExprKind, BoolExprType, LockWaitPolicy, NullTestType, SortByDir, SortByNulls,
};
use serde::Serialize;
use serde_json::Value;

use crate::SqlError;
use crate::columns::{strings, visit};
use crate::tree::with_tree;

/// WITH queries that read each other, one after the other, until the one that locks.
const CHAIN_MAX: usize = 8;

/// A column by which rows come, or an expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ordered {
    /// None for an expression.
    pub column: Option<String>,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST or LAST where it is not the default of its direction.
    pub odd_nulls: bool,
}

/// One of the conditions, all of which a row has to fulfil.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// `equal` a value, `any` of several, `below` or `above` one (or it), `null`, `not null`,
    /// `true`, `false`; `other` for anything else.
    pub is: &'static str,
    /// The columns that it reads: one, but for `other`.
    pub columns: Vec<String>,
}

/// Which rows a statement takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Head {
    /// `update`, `delete`; `select` where another statement changes the row.
    pub kind: &'static str,
    /// The table's schema, if it is named.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
    /// The column by which the rows are changed; None of `select`.
    pub key: Option<String>,
    /// What the query's rows are ordered by.
    pub ordered: Vec<Ordered>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// It has a LIMIT.
    pub is_limited: bool,
    /// It reads other tables as well.
    pub is_joined: bool,
}

/// The heads of queues that a statement takes rows from.
///
/// # Errors
///
/// Of the parser; [`SqlError::NotOne`] for more than one statement.
pub fn heads_of(text: &str) -> Result<Vec<Head>, SqlError> {
    with_tree(text, |tree| {
        let statement: &NodeEnum = tree.only()?;
        let value = serde_json::to_value(statement).unwrap_or(Value::Null);
        let mut found = Vec::new();
        statement_of(&value, &HashMap::new(), true, &mut found);
        Ok(found)
    })
}

type Named<'a> = HashMap<&'a str, &'a Value>;

fn statement_of<'a>(node: &'a Value, outer: &Named<'a>, is_outermost: bool, found: &mut Vec<Head>) {
    let Some((kind, body)) = node.as_object().and_then(|fields| fields.iter().next()) else {
        return;
    };
    if kind == "PrepareStmt" {
        return statement_of(&body["query"]["node"], outer, is_outermost, found);
    }
    let kind = match kind.as_str() {
        "UpdateStmt" => "update",
        "DeleteStmt" => "delete",
        "SelectStmt" => "select",
        "InsertStmt" => "insert",
        _ => return,
    };
    let mut named = outer.clone();
    for cte in list(&body["with_clause"]["ctes"]) {
        let cte = &cte["node"]["CommonTableExpr"];
        statement_of(&cte["ctequery"]["node"], &named, false, found);
        if let Some(name) = cte["ctename"].as_str() {
            named.insert(name, &cte["ctequery"]["node"]);
        }
    }
    let made = match kind {
        "select" if is_outermost && found.is_empty() => locking(node, &named, 0).map(|query| {
            let (schema, table) = locked_table(query);
            head(query, kind, schema, table, None)
        }),
        "update" | "delete" => taken(body, kind, &named),
        _ => None,
    };
    found.extend(made);
}

/// What an UPDATE or DELETE takes from the head of its own table.
fn taken(body: &Value, kind: &'static str, named: &Named<'_>) -> Option<Head> {
    let target = &body["relation"];
    let sources: Vec<&Value> = list(&body["from_clause"])
        .iter()
        .chain(list(&body["using_clause"]))
        .map(|item| &item["node"])
        .collect();
    for part in conjuncts(&body["where_clause"]["node"]) {
        let Some((key, query)) = found_by(part, target, &sources, named) else {
            continue;
        };
        let (schema, table) = locked_table(query);
        let is_same = table == text(&target["relname"])
            && (schema.is_none() || schema == text(&target["schemaname"]));
        if is_same {
            return Some(head(
                query,
                kind,
                text(&target["schemaname"]),
                table,
                Some(key),
            ));
        }
    }
    None
}

/// The column and the locking query of `key = (SELECT ..)` and of `key = q.key`.
fn found_by<'a>(
    part: &'a Value,
    target: &Value,
    sources: &[&'a Value],
    named: &Named<'a>,
) -> Option<(String, &'a Value)> {
    let link = &part["SubLink"];
    if !link.is_null() {
        let key = own_column(&link["testexpr"]["node"], target)?;
        return Some((key, locking(&link["subselect"]["node"], named, 0)?));
    }
    let equal = &part["AExpr"];
    if strings(&equal["name"]).last() != Some("=") {
        return None;
    }
    let sides = [&equal["lexpr"]["node"], &equal["rexpr"]["node"]];
    for (one, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
        let Some(key) = own_column(one, target) else {
            continue;
        };
        let select = &without_casts(other)["SubLink"]["subselect"]["node"];
        if !select.is_null() {
            return Some((key, locking(select, named, 0)?));
        }
        let Some(names) = column_names(other).filter(|names| names.len() == 2) else {
            continue;
        };
        for source in sources {
            if called(source) == Some(names[0])
                && let Some(query) = locking_source(source, named, 0)
            {
                return Some((key, query));
            }
        }
    }
    None
}

/// The SELECT that locks rows and skips those that are locked, behind queries that only pass on.
fn locking<'a>(node: &'a Value, named: &Named<'a>, depth: usize) -> Option<&'a Value> {
    let select = &node["SelectStmt"];
    if depth > CHAIN_MAX || !select["larg"].is_null() {
        return None;
    }
    let skip = LockWaitPolicy::LockWaitSkip as i64;
    let is_skipping = list(&select["locking_clause"])
        .iter()
        .any(|clause| clause["node"]["LockingClause"]["wait_policy"].as_i64() == Some(skip));
    if is_skipping {
        return Some(select);
    }
    let [source] = list(&select["from_clause"]) else {
        return None;
    };
    locking_source(&source["node"], named, depth + 1)
}

fn locking_source<'a>(source: &'a Value, named: &Named<'a>, depth: usize) -> Option<&'a Value> {
    let inner = &source["RangeSubselect"]["subquery"]["node"];
    if !inner.is_null() {
        return locking(inner, named, depth);
    }
    let name = source["RangeVar"]["relname"].as_str()?;
    locking(named.get(name)?, named, depth)
}

/// What a source of rows is called.
fn called(source: &Value) -> Option<&str> {
    let body = [&source["RangeVar"], &source["RangeSubselect"]]
        .into_iter()
        .find(|body| !body.is_null())?;
    body["alias"]["aliasname"]
        .as_str()
        .or_else(|| body["relname"].as_str())
}

/// The table whose rows a query locks: that of FOR UPDATE OF, else its first.
fn locked_range(select: &Value) -> Option<&Value> {
    let mut tables = Vec::new();
    visit(&select["from_clause"], &mut |kind, body| {
        if kind == "RangeVar" {
            tables.push(named_by(body).map(str::to_owned));
        }
    });
    let of = list(&select["locking_clause"]).iter().find_map(|clause| {
        let locked = list(&clause["node"]["LockingClause"]["locked_rels"]).first()?;
        locked["node"]["RangeVar"]["relname"].as_str()
    });
    let wanted = of.or_else(|| tables.first()?.as_deref())?.to_owned();
    range_called(&select["from_clause"], &wanted)
}

fn named_by(range: &Value) -> Option<&str> {
    range["alias"]["aliasname"]
        .as_str()
        .or_else(|| range["relname"].as_str())
}

fn range_called<'a>(value: &'a Value, wanted: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(kind, body)| {
            if kind == "RangeVar" && body.is_object() && named_by(body) == Some(wanted) {
                return Some(body);
            }
            range_called(body, wanted)
        }),
        Value::Array(items) => items.iter().find_map(|item| range_called(item, wanted)),
        _ => None,
    }
}

fn locked_table(select: &Value) -> (Option<String>, Option<String>) {
    let Some(range) = locked_range(select) else {
        return (None, None);
    };
    (text(&range["schemaname"]), text(&range["relname"]))
}

fn head(
    select: &Value,
    kind: &'static str,
    schema: Option<String>,
    table: Option<String>,
    key: Option<String>,
) -> Head {
    let none = Value::Null;
    let range = locked_range(select).unwrap_or(&none);
    let sources = list(&select["from_clause"]);
    let is_joined = sources.len() != 1 || sources[0]["node"]["RangeVar"].is_null();
    Head {
        kind,
        schema,
        table: table.unwrap_or_default(),
        key,
        ordered: list(&select["sort_clause"])
            .iter()
            .map(|item| ordered(&item["node"]["SortBy"], range))
            .collect(),
        conditions: conjuncts(&select["where_clause"]["node"])
            .into_iter()
            .map(|part| condition(part, range))
            .collect(),
        is_limited: !select["limit_count"].is_null(),
        is_joined,
    }
}

fn ordered(item: &Value, range: &Value) -> Ordered {
    let descending = item["sortby_dir"].as_i64() == Some(SortByDir::SortbyDesc as i64);
    let usual = if descending {
        SortByNulls::SortbyNullsFirst
    } else {
        SortByNulls::SortbyNullsLast
    };
    let nulls = item["sortby_nulls"].as_i64();
    let named = [SortByNulls::SortbyNullsDefault, usual].map(|one| Some(one as i64));
    let is_using = item["sortby_dir"].as_i64() == Some(SortByDir::SortbyUsing as i64);
    Ordered {
        column: own_column(&item["node"]["node"], range).filter(|_| !is_using),
        descending,
        odd_nulls: !named.contains(&nulls),
    }
}

/// The parts of a condition that all have to be true; none of no condition.
fn conjuncts(node: &Value) -> Vec<&Value> {
    let mut made = Vec::new();
    let mut waiting = vec![node];
    while let Some(next) = waiting.pop() {
        let body = &next["BoolExpr"];
        if body["boolop"].as_i64() == Some(BoolExprType::AndExpr as i64) {
            waiting.extend(list(&body["args"]).iter().rev().map(|arg| &arg["node"]));
        } else if next.is_object() {
            made.push(next);
        }
    }
    made
}

fn condition(part: &Value, range: &Value) -> Condition {
    let (is, column) = known(part, range).unzip();
    let columns = column.map_or_else(|| columns_in(part), |column| vec![column]);
    Condition {
        is: is.unwrap_or("other"),
        columns,
    }
}

fn known(part: &Value, range: &Value) -> Option<(&'static str, String)> {
    if let Some(column) = own_column(part, range) {
        return Some(("true", column));
    }
    let not = &part["BoolExpr"];
    if not["boolop"].as_i64() == Some(BoolExprType::NotExpr as i64) {
        let column = own_column(&list(&not["args"]).first()?["node"], range)?;
        return Some(("false", column));
    }
    let null = &part["NullTest"];
    if !null.is_null() {
        let column = own_column(&null["arg"]["node"], range)?;
        let is_null = null["nulltesttype"].as_i64() == Some(NullTestType::IsNull as i64);
        return Some((if is_null { "null" } else { "not null" }, column));
    }
    compared(&part["AExpr"], range)
}

fn compared(body: &Value, range: &Value) -> Option<(&'static str, String)> {
    let kind = body["kind"].as_i64()?;
    let is = |one: AExprKind| kind == one as i64;
    let operator = strings(&body["name"]).last()?;
    let (left, right) = (&body["lexpr"]["node"], &body["rexpr"]["node"]);
    if is(AExprKind::AexprIn) {
        let is_value = body["rexpr"]["node"]["List"]["items"]
            .as_array()
            .is_some_and(|items| items.iter().all(|item| is_value(&item["node"])));
        let wanted = operator == "=" && is_value;
        return wanted.then_some(("any", own_column(left, range)?));
    }
    if is(AExprKind::AexprOpAny) {
        let wanted = operator == "=" && is_value(right);
        return wanted.then_some(("any", own_column(left, range)?));
    }
    if !is(AExprKind::AexprOp) {
        return None;
    }
    for (column, value, is_left) in [(left, right, true), (right, left, false)] {
        let Some(column) = own_column(column, range) else {
            continue;
        };
        if !is_value(value) {
            return None;
        }
        let found = match (operator, is_left) {
            ("=", _) => "equal",
            ("<" | "<=", true) | (">" | ">=", false) => "below",
            (">" | ">=", true) | ("<" | "<=", false) => "above",
            _ => return None,
        };
        return Some((found, column));
    }
    None
}

/// A constant, a parameter, or what is made of such.
fn is_value(node: &Value) -> bool {
    let mut found = node.is_object() && node.get("SubLink").is_none_or(Value::is_null);
    visit(node, &mut |kind, _| {
        found &= kind != "ColumnRef" && kind != "SubLink";
    });
    found
}

/// The name of a plain column of the table, or of none that is named.
fn own_column(node: &Value, range: &Value) -> Option<String> {
    let mut names = column_names(node)?;
    let column = names.pop()?.to_owned();
    let is_own = match names.pop() {
        None => true,
        Some(table) => named_by(range) == Some(table),
    };
    is_own.then_some(column)
}

fn column_names(node: &Value) -> Option<Vec<&str>> {
    let fields = &node["ColumnRef"]["fields"];
    let names: Vec<&str> = strings(fields).collect();
    let is_plain = fields
        .as_array()
        .is_some_and(|all| all.len() == names.len());
    is_plain.then_some(names)
}

fn columns_in(node: &Value) -> Vec<String> {
    let mut made = Vec::new();
    visit(node, &mut |kind, body| {
        if kind == "ColumnRef"
            && let Some(name) = strings(&body["fields"]).last()
            && !made.iter().any(|one| one == name)
        {
            made.push(name.to_owned());
        }
    });
    made
}

fn without_casts(node: &Value) -> &Value {
    let inner = &node["TypeCast"]["arg"]["node"];
    if inner.is_null() {
        node
    } else {
        without_casts(inner)
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}
