//! New indexes: CREATE INDEX and the constraints that have one.

use pg_query::protobuf::{Constraint, IndexElem, IndexStmt};
use pg_query::{Node, NodeEnum};

use super::colname;
use crate::columns::{Reads, reads};
use crate::facts::{AddIndex, Target};
use crate::spelled::{name_parts, optional, options, target, value_of};

/// From CREATE INDEX.
pub(super) fn created(made: &IndexStmt) -> AddIndex {
    let table = target(made.relation.as_ref());
    let method = if made.access_method.is_empty() {
        "btree"
    } else {
        &made.access_method
    };
    let keys: Vec<&Node> = made.index_params.iter().collect();
    let mut index = keyed(table, "index", &keys, made.where_clause.as_deref());
    index.name = optional(&made.idxname);
    index.method = method.to_owned();
    index.fillfactor = fillfactor(&made.options);
    index.fastupdate = fastupdate(&made.options);
    index.only = made.relation.as_ref().is_some_and(|relation| !relation.inh);
    index.concurrently = made.concurrent;
    index.if_not_exists = made.if_not_exists;
    include(&mut index, element_names(&made.index_including_params));
    index
}

/// From UNIQUE, PRIMARY KEY or EXCLUDE; `columns` are those of a constraint behind one column.
pub(super) fn of_constraint(
    table: &Target,
    constraint: &Constraint,
    kind: &'static str,
    column: Option<&str>,
    only: bool,
) -> AddIndex {
    let exclusions: Vec<&Node> = constraint
        .exclusions
        .iter()
        .filter_map(|pair| match pair.node.as_ref() {
            Some(NodeEnum::List(parts)) => parts.items.first(),
            _ => None,
        })
        .collect();
    let mut index = keyed(
        table.clone(),
        kind,
        &exclusions,
        constraint.where_clause.as_deref(),
    );
    for name in column.into_iter().chain(name_parts(&constraint.keys)) {
        index.columns.push(name.to_owned());
        index.depends.push(name.to_owned());
        index.named_after.push(Some(name.to_owned()));
    }
    index.name = optional(&constraint.conname);
    if kind == "exclusion constraint" {
        // DefaultIndexAccess of the grammar: gist only since EXCLUDE asks for it.
        let method = &constraint.access_method;
        index.method = if method.is_empty() {
            "btree".to_owned()
        } else {
            method.clone()
        };
    } else if constraint.without_overlaps {
        index.method = "gist".to_owned(); // PRIMARY KEY (a, b WITHOUT OVERLAPS), from 18 on
    }
    index.fillfactor = fillfactor(&constraint.options);
    index.only = only;
    include(
        &mut index,
        name_parts(&constraint.including)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    );
    index
}

fn keyed(table: Target, kind: &'static str, keys: &[&Node], filter: Option<&Node>) -> AddIndex {
    let mut columns = Vec::new();
    let (mut all, mut inside) = (Vec::new(), Vec::new());
    let mut has_expressions = false;
    let mut named_after = Vec::new();
    for element in keys.iter().filter_map(|node| element(node)) {
        named_after.push(match element.expr.as_deref() {
            Some(expression) => colname::of(expression),
            None => optional(&element.name),
        });
        if let Some(name) = plain(element) {
            columns.push(name.to_owned());
            all.push(Reads {
                columns: vec![name.to_owned()],
                ..Reads::default()
            });
        } else if let Some(expression) = element.expr.as_deref() {
            has_expressions = true;
            let found = reads(expression, &table.name);
            all.push(found.clone());
            inside.push(found);
        }
    }
    let predicate = filter.map(|filter| reads(filter, &table.name));
    let inside = Reads::join(inside);
    let either = |is: fn(&Reads) -> bool| is(&inside) || predicate.as_ref().is_some_and(is);
    let whole_row = either(|found| found.whole_row);
    let may_be_row = either(|found| found.may_be_row);
    let predicate_columns = predicate.clone().unwrap_or_default().columns;
    AddIndex {
        table,
        name: None,
        kind,
        method: "btree".to_owned(),
        columns,
        include: Vec::new(),
        depends: Reads::join(all.into_iter().chain(predicate)).columns,
        has_expressions,
        has_predicate: filter.is_some(),
        fillfactor: None,
        opclasses: opclasses(keys),
        fastupdate: None,
        only: false,
        expression_columns: inside.columns,
        predicate_columns,
        whole_row,
        may_be_row,
        named_after,
        concurrently: false,
        if_not_exists: false,
        comes_with: None,
    }
}

/// Of each key, where one has one that is named.
fn opclasses(keys: &[&Node]) -> Vec<String> {
    let elements = keys.iter().filter_map(|node| element(node));
    let names = elements.map(|one| name_parts(&one.opclass).last().copied().unwrap_or_default());
    let names: Vec<String> = names.map(str::to_owned).collect();
    if names.iter().all(String::is_empty) {
        return Vec::new();
    }
    names
}

/// INCLUDE stands before the predicate among what an index depends on.
fn include(index: &mut AddIndex, names: Vec<String>) {
    let behind: Vec<String> = index
        .depends
        .iter()
        .filter(|name| {
            index.predicate_columns.contains(name)
                && !index.columns.contains(name)
                && !index.expression_columns.contains(name)
        })
        .cloned()
        .collect();
    index.depends.retain(|name| !behind.contains(name));
    for name in names.iter().chain(&behind) {
        if !index.depends.contains(name) {
            index.depends.push(name.clone());
        }
    }
    index.named_after.extend(names.iter().cloned().map(Some));
    index.include = names;
}

fn element(node: &Node) -> Option<&IndexElem> {
    match node.node.as_ref() {
        Some(NodeEnum::IndexElem(element)) => Some(element),
        _ => None,
    }
}

fn element_names(nodes: &[Node]) -> Vec<String> {
    nodes
        .iter()
        .filter_map(element)
        .filter_map(plain)
        .map(str::to_owned)
        .collect()
}

/// A column, also as `(column)` or `(column COLLATE c)`, which are no expressions
/// (`ComputeIndexAttrs`, src/backend/commands/indexcmds.c).
fn plain(element: &IndexElem) -> Option<&str> {
    if !element.name.is_empty() {
        return Some(&element.name);
    }
    let mut inside = element.expr.as_deref()?.node.as_ref()?;
    while let NodeEnum::CollateClause(collated) = inside {
        inside = collated.arg.as_deref()?.node.as_ref()?;
    }
    match inside {
        NodeEnum::ColumnRef(column) if column.fields.len() == 1 => {
            name_parts(&column.fields).first().copied()
        }
        _ => None,
    }
}

fn fillfactor(listed: &[Node]) -> Option<i64> {
    option(listed, "fillfactor").flatten()?.parse().ok()
}

/// A storage parameter that is a boolean; without a value it is on.
fn fastupdate(listed: &[Node]) -> Option<bool> {
    let value = option(listed, "fastupdate")?.unwrap_or_default();
    let value = value.to_ascii_lowercase();
    Some(!matches!(value.as_str(), "off" | "false" | "no" | "0"))
}

/// The value of an option that is there, where it has one.
fn option(listed: &[Node], name: &str) -> Option<Option<String>> {
    let found = options(listed).filter(|option| option.defname == name);
    found.last().map(value_of)
}
