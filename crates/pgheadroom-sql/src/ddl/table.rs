//! New tables and columns.

use pg_query::protobuf::{ColumnDef, ConstrType, Constraint, CreateStmt};
use pg_query::{Node, NodeEnum};

use super::{Facts, index};
use crate::columns::reads;
use crate::facts::{Fact, SetColumn, Target, Work};
use crate::functions::{Volatility, volatility};
use crate::spelled::{name_parts, target, type_spelled};

/// CREATE TABLE: nothing was observed of it, but tables that it refers to are locked.
pub(super) fn create(facts: &mut Facts, made: &CreateStmt) {
    let table = target(made.relation.as_ref());
    facts.new_table(table.clone(), made.if_not_exists);
    for element in made.table_elts.iter().chain(&made.constraints) {
        match element.node.as_ref() {
            Some(NodeEnum::ColumnDef(column)) => {
                for constraint in column.constraints.iter().filter_map(constraint) {
                    newer(facts, constraint, true);
                    foreign_key(facts, &table, constraint, Some(&column.colname));
                }
            }
            Some(NodeEnum::Constraint(constraint)) => {
                newer(facts, constraint, false);
                foreign_key(facts, &table, constraint, None);
            }
            _ => {}
        }
    }
    for parent in super::relations(&made.inh_relations) {
        let Some(bound) = &made.partbound else {
            facts.work("inherited", Some(parent));
            continue;
        };
        facts.add(Fact::Work(Work {
            other: Some(table.clone()),
            is_default: bound.is_default,
            ..Work::new("new partition", Some(parent))
        }));
    }
}

/// Syntax of constraints that came later than the oldest version that is supported.
///
/// Source: src/backend/parser/gram.y, `ConstraintElem`, `ColConstraintElem`, REL_15 to 18_STABLE.
fn newer(facts: &mut Facts, constraint: &Constraint, is_of_column: bool) {
    let kind = constraint.contype();
    let text = match kind {
        ConstrType::ConstrNotnull if !is_of_column => "NOT NULL as a constraint of a table",
        ConstrType::ConstrGenerated if constraint.generated_kind == "v" => {
            "a virtual generated column"
        }
        ConstrType::ConstrAttrNotEnforced => "NOT ENFORCED",
        ConstrType::ConstrCheck | ConstrType::ConstrForeign
            if !is_of_column && !constraint.is_enforced =>
        {
            "NOT ENFORCED"
        }
        _ if constraint.without_overlaps => "WITHOUT OVERLAPS",
        _ if constraint.fk_with_period => "a foreign key with PERIOD",
        _ => return,
    };
    facts.add(Fact::Newer { since: 18, text });
}

fn foreign_key(
    facts: &mut Facts,
    table: &Target,
    constraint: &Constraint,
    column: Option<&String>,
) {
    if constraint.contype() == ConstrType::ConstrForeign {
        add_constraint(facts, table, constraint, column.map(String::as_str), false);
    }
}

/// ADD COLUMN, with the indexes and checks that stand behind it.
pub(super) fn add_column(
    facts: &mut Facts,
    table: &Target,
    column: &ColumnDef,
    if_not_exists: bool,
    only: bool,
) {
    let mut made = set_column(table, column, true);
    made.if_not_exists = if_not_exists;
    let serials = [
        "serial",
        "bigserial",
        "smallserial",
        "serial2",
        "serial4",
        "serial8",
    ];
    if serials.contains(&made.type_name.as_str()) {
        (made.default, made.not_null) = ("volatile", true);
    }
    for constraint in column.constraints.iter().filter_map(constraint) {
        let inside = constraint.raw_expr.as_deref();
        match constraint.contype() {
            ConstrType::ConstrNotnull | ConstrType::ConstrPrimary => made.not_null = true,
            ConstrType::ConstrIdentity => (made.default, made.not_null) = ("volatile", true),
            ConstrType::ConstrDefault => made.default = inside.map_or("none", default_kind),
            ConstrType::ConstrGenerated => {
                let is_virtual = constraint.generated_kind == "v";
                made.generated = Some(if is_virtual { "virtual" } else { "stored" });
                made.reads =
                    inside.map_or_else(Vec::new, |inside| reads(inside, &table.name).columns);
            }
            _ => {}
        }
    }
    facts.add(Fact::SetColumn(made));
    for constraint in column.constraints.iter().filter_map(constraint) {
        newer(facts, constraint, true);
        if constraint.contype() != ConstrType::ConstrNotnull {
            let mut behind = Facts::default();
            add_constraint(&mut behind, table, constraint, Some(&column.colname), only);
            let with = if_not_exists.then_some(&column.colname);
            behind
                .0
                .into_iter()
                .for_each(|fact| facts.add(coming_with(fact, with)));
        }
    }
}

/// A constraint of a column comes with it or not at all (`ATExecAddColumn`, tablecmds.c).
fn coming_with(mut fact: Fact, column: Option<&String>) -> Fact {
    match &mut fact {
        Fact::AddIndex(index) => index.comes_with = column.cloned(),
        Fact::Work(work) => work.comes_with = column.cloned(),
        _ => {}
    }
    fact
}

/// ALTER COLUMN ... TYPE.
pub(super) fn set_type(facts: &mut Facts, table: &Target, name: &str, column: &ColumnDef) {
    let mut made = set_column(table, column, false);
    made.name = name.to_owned();
    made.has_using = column
        .raw_default
        .as_deref()
        .is_some_and(|using| !is_plain_cast(using, name));
    facts.add(Fact::SetColumn(made));
}

fn set_column(table: &Target, column: &ColumnDef, is_new: bool) -> SetColumn {
    let collation = column
        .coll_clause
        .as_ref()
        .map(|clause| name_parts(&clause.collname).join("."));
    SetColumn {
        table: table.clone(),
        name: column.colname.clone(),
        type_name: type_spelled(column.type_name.as_ref()),
        is_new,
        default: "none",
        not_null: false,
        generated: None,
        reads: Vec::new(),
        has_using: false,
        collation,
        if_not_exists: false,
    }
}

fn is_plain_cast(using: &Node, name: &str) -> bool {
    match using.node.as_ref() {
        Some(NodeEnum::ColumnRef(column)) => name_parts(&column.fields).last() == Some(&name),
        Some(NodeEnum::TypeCast(cast)) => cast
            .arg
            .as_deref()
            .is_some_and(|inside| is_plain_cast(inside, name)),
        _ => false,
    }
}

/// How often a default is computed: once for all rows, or for each.
fn default_kind(value: &Node) -> &'static str {
    if is_null(value) {
        return "none";
    }
    let called = reads(value, "").functions;
    let found: Vec<Option<Volatility>> = called.iter().map(|name| volatility(name)).collect();
    if found.contains(&Some(Volatility::Volatile)) {
        "volatile"
    } else if found.contains(&None) {
        "unknown"
    } else if found.contains(&Some(Volatility::Stable)) || is_current(value) {
        "stable"
    } else {
        "constant"
    }
}

fn is_null(value: &Node) -> bool {
    match value.node.as_ref() {
        Some(NodeEnum::AConst(constant)) => constant.isnull,
        Some(NodeEnum::TypeCast(cast)) => cast.arg.as_deref().is_some_and(is_null),
        _ => false,
    }
}

/// CURRENT_TIMESTAMP and its kin, perhaps inside a cast.
fn is_current(value: &Node) -> bool {
    match value.node.as_ref() {
        Some(NodeEnum::SqlvalueFunction(_)) => true,
        Some(NodeEnum::TypeCast(cast)) => cast.arg.as_deref().is_some_and(is_current),
        _ => false,
    }
}

fn owned(names: &[Node]) -> Vec<String> {
    name_parts(names).into_iter().map(str::to_owned).collect()
}

pub(super) fn constraint(node: &Node) -> Option<&Constraint> {
    match node.node.as_ref() {
        Some(NodeEnum::Constraint(constraint)) => Some(constraint),
        _ => None,
    }
}

/// A constraint of a table, or of one column of it.
pub(super) fn add_constraint(
    facts: &mut Facts,
    table: &Target,
    constraint: &Constraint,
    column: Option<&str>,
    only: bool,
) {
    let not_valid = constraint.skip_validation;
    let work = |kind| Work {
        not_valid,
        ..Work::new(kind, Some(table.clone()))
    };
    let column_name = || column.map(str::to_owned);
    if column.is_none() {
        newer(facts, constraint, false);
    }
    match constraint.contype() {
        kind @ (ConstrType::ConstrPrimary | ConstrType::ConstrUnique) => {
            let is_primary = kind == ConstrType::ConstrPrimary;
            if constraint.indexname.is_empty() {
                let kind = if is_primary {
                    "primary key"
                } else {
                    "unique constraint"
                };
                let made = index::of_constraint(table, constraint, kind, column, only);
                facts.add(Fact::AddIndex(made));
            } else {
                take_index(facts, table, constraint, is_primary);
            }
        }
        ConstrType::ConstrExclusion => {
            let kind = "exclusion constraint";
            let made = index::of_constraint(table, constraint, kind, None, only);
            facts.add(Fact::AddIndex(made));
        }
        ConstrType::ConstrCheck => {
            facts.add(Fact::Work(Work {
                column: column_name(),
                ..work("add check")
            }));
        }
        ConstrType::ConstrForeign => {
            let other = Some(target(constraint.pktable.as_ref()));
            let column = column_name();
            let listed = owned(&constraint.fk_attrs);
            let columns = column.clone().map_or(listed, |name| vec![name]);
            let name = Some(constraint.conname.clone()).filter(|name| !name.is_empty());
            facts.add(Fact::Work(Work {
                other,
                column,
                name,
                columns,
                referenced: owned(&constraint.pk_attrs),
                ..work("add foreign key")
            }));
        }
        ConstrType::ConstrNotnull => {
            let column = name_parts(&constraint.keys)
                .first()
                .map(|name| (*name).to_owned());
            facts.add(Fact::Work(Work {
                column,
                ..work("add not null")
            }));
        }
        _ => {}
    }
}

/// `USING INDEX`: the index is there already, and takes the constraint's name.
fn take_index(facts: &mut Facts, table: &Target, constraint: &Constraint, is_primary: bool) {
    let index = Target {
        schema: table.schema.clone(),
        name: constraint.indexname.clone(),
    };
    let kind = if is_primary {
        "primary key using index"
    } else {
        "unique using index"
    };
    facts.add(Fact::Work(Work {
        index: Some(index.clone()),
        not_valid: constraint.skip_validation,
        ..Work::new(kind, Some(table.clone()))
    }));
    if !constraint.conname.is_empty() && constraint.conname != index.name {
        facts.add(Fact::Rename {
            what: "index",
            old: index,
            new: constraint.conname.clone(),
            column: None,
            schema: None,
        });
    }
}
