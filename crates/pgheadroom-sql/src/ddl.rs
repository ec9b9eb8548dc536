//! From a statement's parse tree to what it does to tables and indexes.
//!
//! Each kind of statement is named here: with facts, or of no concern, or as a problem. One that is
//! not named is a problem, so nothing is passed over.

mod alter;
mod colname;
mod domain;
mod index;
mod locks;
mod pieces;
mod table;

use pg_query::protobuf::{
    ClusterStmt, CreateTrigStmt, DropBehavior, DropStmt, ObjectType, ReindexObjectType,
    ReindexStmt, RenameStmt, TransactionStmtKind, VacuumStmt, VariableSetKind, VariableSetStmt,
    a_const,
};
use pg_query::{Node, NodeEnum};

use crate::SqlError;
use crate::columns;
use crate::facts::{Fact, Target, Work};
use crate::functions::{self, volatility};
use crate::spelled::{is_set, name_parts, target, target_of_list};
use crate::tree::with_tree;
use crate::writes;

const TRIGGER_BEFORE: i32 = 2; // src/include/catalog/pg_trigger.h
const TRIGGER_UPDATE: i32 = 16;
const RULE_ON_UPDATE: i32 = 3; // CmdType as the parser numbers it
const LOCK_MODES: [&str; 9] = [
    "NO",
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

/// What a statement does, in order.
///
/// Of an ALTER TABLE with a subcommand that the grammar does not know, the others are read all the
/// same, and that one is a problem.
///
/// # Errors
///
/// Of the parser.
pub fn facts_of(text: &str) -> Result<Vec<Fact>, SqlError> {
    match whole(text) {
        Err(error @ SqlError::Syntax { .. }) => pieces::facts_of(text).ok_or(error),
        other => other,
    }
}

fn whole(text: &str) -> Result<Vec<Fact>, SqlError> {
    with_tree(text, |tree| {
        let mut found = Facts::default();
        found.statement(tree.only()?);
        Ok(found.0)
    })
}

/// Facts as they are found.
#[derive(Default)]
pub(crate) struct Facts(Vec<Fact>);

impl Facts {
    fn add(&mut self, fact: Fact) {
        self.0.push(fact);
    }

    fn work(&mut self, kind: &'static str, table: Option<Target>) {
        self.add(Fact::Work(Work::new(kind, table)));
    }

    fn problem(&mut self, text: impl Into<String>) {
        self.add(Fact::Problem { text: text.into() });
    }

    fn new_table(&mut self, table: Target, if_not_exists: bool) {
        let text = "a new table: nothing was observed of it".to_owned();
        self.add(Fact::Remarkable {
            table,
            kind: "new",
            text,
            if_not_exists,
        });
    }

    fn statement(&mut self, statement: &NodeEnum) {
        match statement {
            NodeEnum::AlterTableStmt(alter) => alter::alter(self, alter),
            NodeEnum::IndexStmt(made) => self.add(Fact::AddIndex(index::created(made))),
            NodeEnum::CreateStmt(made) => table::create(self, made),
            NodeEnum::CreateTableAsStmt(made) => {
                // A materialized view takes indexes as a table does.
                if matches!(
                    made.objtype(),
                    ObjectType::ObjectTable | ObjectType::ObjectMatview
                ) {
                    let into = made.into.as_ref().and_then(|into| into.rel.as_ref());
                    self.new_table(target(into), made.if_not_exists);
                }
                self.calls(statement);
            }
            NodeEnum::CreateSchemaStmt(made) => {
                for element in made
                    .schema_elts
                    .iter()
                    .filter_map(|node| node.node.as_ref())
                {
                    self.statement(element);
                }
            }
            NodeEnum::DropStmt(drop) => self.drop(drop),
            NodeEnum::RenameStmt(rename) => self.rename(rename),
            NodeEnum::AlterObjectSchemaStmt(moved) => {
                if moved.object_type() == ObjectType::ObjectTable {
                    let old = target(moved.relation.as_ref());
                    self.add(Fact::Rename {
                        what: "table",
                        new: old.name.clone(),
                        old,
                        column: None,
                        schema: Some(moved.newschema.clone()),
                    });
                }
            }
            NodeEnum::CreateTrigStmt(trigger) => self.trigger(trigger),
            NodeEnum::RuleStmt(rule) => {
                let table = target(rule.relation.as_ref());
                if rule.event == RULE_ON_UPDATE {
                    let text = "a rule on UPDATE may change what statements assign".to_owned();
                    self.add(Fact::Remarkable {
                        table: table.clone(),
                        kind: "trigger",
                        text,
                        if_not_exists: false,
                    });
                }
                self.work("rule", Some(table));
            }
            other => {
                if !locks::only(self, other) {
                    self.session_or_work(other);
                }
            }
        }
    }

    fn session_or_work(&mut self, statement: &NodeEnum) {
        match statement {
            NodeEnum::VariableSetStmt(set) => self.set(set),
            NodeEnum::TransactionStmt(transaction) => {
                if matches!(
                    transaction.kind(),
                    TransactionStmtKind::TransStmtCommit
                        | TransactionStmtKind::TransStmtRollback
                        | TransactionStmtKind::TransStmtPrepare
                ) {
                    self.add(Fact::TransactionEnd);
                }
            }
            NodeEnum::VacuumStmt(vacuum) => self.vacuum(vacuum),
            NodeEnum::ClusterStmt(cluster) => self.cluster(cluster),
            NodeEnum::ReindexStmt(reindex) => self.reindex(reindex),
            NodeEnum::RefreshMatViewStmt(refresh) => {
                let table = Some(target(refresh.relation.as_ref()));
                let concurrently = refresh.concurrent;
                self.add(Fact::Work(Work {
                    concurrently,
                    ..Work::new("refresh", table)
                }));
            }
            NodeEnum::TruncateStmt(truncate) => {
                for table in relations(&truncate.relations) {
                    self.work("truncate", Some(table));
                }
            }
            NodeEnum::LockStmt(lock) => {
                let mode = usize::try_from(lock.mode)
                    .ok()
                    .and_then(|mode| LOCK_MODES.get(mode));
                for table in relations(&lock.relations) {
                    let mode = mode.copied();
                    self.add(Fact::Work(Work {
                        mode,
                        ..Work::new("lock", Some(table))
                    }));
                }
            }
            NodeEnum::CreateDomainStmt(made) => domain::create(self, made),
            NodeEnum::AlterDomainStmt(alter) => domain::alter(self, alter),
            NodeEnum::AlterTableMoveAllStmt(all) => self.problem(format!(
                "which tables lie in tablespace {} is not known",
                all.orig_tablespacename
            )),
            other => self.code_or_nothing(other),
        }
    }

    fn vacuum(&mut self, vacuum: &VacuumStmt) {
        let kind = if !vacuum.is_vacuumcmd {
            "analyze"
        } else if is_set(&vacuum.options, "full") {
            "vacuum full"
        } else {
            "vacuum"
        };
        if vacuum.rels.is_empty() && kind == "vacuum full" {
            self.work(kind, None);
        }
        for relation in &vacuum.rels {
            if let Some(NodeEnum::VacuumRelation(one)) = relation.node.as_ref() {
                self.work(kind, Some(target(one.relation.as_ref())));
            }
        }
    }

    fn cluster(&mut self, cluster: &ClusterStmt) {
        let table = cluster
            .relation
            .as_ref()
            .map(|relation| target(Some(relation)));
        let index = (!cluster.indexname.is_empty()).then(|| Target {
            schema: table.as_ref().and_then(|table| table.schema.clone()),
            name: cluster.indexname.clone(),
        });
        self.add(Fact::Work(Work {
            index,
            ..Work::new("cluster", table)
        }));
    }

    fn reindex(&mut self, reindex: &ReindexStmt) {
        let named = reindex
            .relation
            .as_ref()
            .map(|relation| target(Some(relation)));
        let (mut index, mut table, mut schema) = (None, None, None);
        match reindex.kind() {
            ReindexObjectType::ReindexObjectIndex => index = named,
            ReindexObjectType::ReindexObjectSchema => schema = Some(reindex.name.clone()),
            ReindexObjectType::ReindexObjectSystem => return, // the catalogs alone
            _ => table = named,
        }
        let concurrently = is_set(&reindex.params, "concurrently");
        self.add(Fact::Work(Work {
            index,
            concurrently,
            schema,
            ..Work::new("reindex", table)
        }));
    }

    fn code_or_nothing(&mut self, statement: &NodeEnum) {
        const UNSEEN: &str = "what its code does is not known";
        match statement {
            NodeEnum::DoStmt(_) => self.problem(format!("DO: {UNSEEN}")),
            NodeEnum::CallStmt(call) => {
                let name = call
                    .funccall
                    .as_ref()
                    .map(|call| name_parts(&call.funcname).join("."));
                self.problem(format!("CALL {}: {UNSEEN}", name.unwrap_or_default()));
            }
            NodeEnum::ExecuteStmt(execute) => {
                self.problem(format!("EXECUTE {}: {UNSEEN}", execute.name));
            }
            NodeEnum::ExplainStmt(explain) if is_set(&explain.options, "analyze") => {
                if let Some(inside) = explain.query.as_ref().and_then(|node| node.node.as_ref()) {
                    self.statement(inside);
                }
            }
            NodeEnum::SelectStmt(select) => {
                if let Some(into) = select.into_clause.as_ref() {
                    self.new_table(target(into.rel.as_ref()), false);
                }
                self.calls(statement);
            }
            NodeEnum::InsertStmt(_)
            | NodeEnum::UpdateStmt(_)
            | NodeEnum::DeleteStmt(_)
            | NodeEnum::MergeStmt(_)
            | NodeEnum::CopyStmt(_)
            | NodeEnum::DeclareCursorStmt(_) => self.calls(statement),
            NodeEnum::DropOwnedStmt(_) => {
                self.problem("DROP OWNED: what goes with it is not followed");
            }
            NodeEnum::ImportForeignSchemaStmt(_) | NodeEnum::LoadStmt(_) => {}
            other if is_without_concern(other) => {}
            _ => self.problem("this kind of statement is not known"),
        }
    }

    /// Rows are of no concern, but functions that are not PostgreSQL's own may do anything, and so
    /// may who writes to its catalogs.
    fn calls(&mut self, statement: &NodeEnum) {
        for table in written(statement) {
            self.problem(format!(
                "it writes to {table}, which is PostgreSQL's own: what that changes is not known"
            ));
        }
        let unknown: Vec<String> = columns::functions(statement)
            .into_iter()
            .filter(|name| volatility(name).is_none())
            .collect();
        if !unknown.is_empty() {
            let (is, its) = if unknown.len() == 1 {
                ("function", "its")
            } else {
                ("functions", "their")
            };
            self.problem(format!(
                "{is} {}: what {its} code does is not known",
                unknown.join(", ")
            ));
        }
    }

    fn drop(&mut self, drop: &DropStmt) {
        let cascades = drop.behavior() == DropBehavior::DropCascade;
        for object in drop.objects.iter().filter_map(|node| node.node.as_ref()) {
            let NodeEnum::List(parts) = object else {
                self.dropped_with(drop.remove_type(), cascades);
                continue;
            };
            match drop.remove_type() {
                ObjectType::ObjectTable => {
                    let table = target_of_list(&parts.items);
                    let text = "the table goes".to_owned();
                    self.add(Fact::Remarkable {
                        table: table.clone(),
                        kind: "dropped",
                        text,
                        if_not_exists: false,
                    });
                    self.work("drop table", Some(table));
                }
                ObjectType::ObjectIndex => self.add(Fact::DropIndex {
                    index: target_of_list(&parts.items),
                    table: None,
                    concurrently: drop.concurrent,
                }),
                ObjectType::ObjectTrigger | ObjectType::ObjectRule | ObjectType::ObjectPolicy => {
                    let before = parts.items.len().saturating_sub(1);
                    self.work("other", Some(target_of_list(&parts.items[..before])));
                }
                kind => self.dropped_with(kind, cascades),
            }
        }
    }

    /// What depends on these goes with CASCADE: columns, indexes, defaults, whole tables.
    fn dropped_with(&mut self, kind: ObjectType, cascades: bool) {
        let named = match kind {
            ObjectType::ObjectSchema => "DROP SCHEMA",
            ObjectType::ObjectType => "DROP TYPE",
            ObjectType::ObjectDomain => "DROP DOMAIN",
            ObjectType::ObjectExtension => "DROP EXTENSION",
            ObjectType::ObjectCollation => "DROP COLLATION",
            ObjectType::ObjectOperator => "DROP OPERATOR",
            ObjectType::ObjectOpclass | ObjectType::ObjectOpfamily => "DROP OPERATOR CLASS",
            ObjectType::ObjectAccessMethod => "DROP ACCESS METHOD",
            ObjectType::ObjectFunction
            | ObjectType::ObjectProcedure
            | ObjectType::ObjectRoutine => "DROP FUNCTION",
            _ => return,
        };
        if cascades {
            self.problem(format!(
                "{named} ... CASCADE: what goes with it is not followed"
            ));
        }
    }

    fn rename(&mut self, rename: &RenameStmt) {
        let old = target(rename.relation.as_ref());
        let new = rename.newname.clone();
        let fact = |what, old, column| Fact::Rename {
            what,
            old,
            new,
            column,
            schema: None,
        };
        match rename.rename_type() {
            ObjectType::ObjectTable => self.add(fact("table", old, None)),
            ObjectType::ObjectIndex => self.add(fact("index", old, None)),
            ObjectType::ObjectColumn if rename.relation_type() == ObjectType::ObjectTable => {
                self.add(fact("column", old, Some(rename.subname.clone())));
            }
            // Its index, if it has one, is called like it.
            ObjectType::ObjectTabconstraint => {
                let index = Target {
                    schema: old.schema,
                    name: rename.subname.clone(),
                };
                self.add(fact("index", index, None));
                self.work("rename", Some(target(rename.relation.as_ref())));
            }
            ObjectType::ObjectTrigger | ObjectType::ObjectRule | ObjectType::ObjectPolicy => {
                self.work("rename", Some(old));
            }
            ObjectType::ObjectSchema => {
                self.problem("a schema is renamed: its tables are not followed");
            }
            _ => {}
        }
    }

    fn trigger(&mut self, trigger: &CreateTrigStmt) {
        let table = target(trigger.relation.as_ref());
        let before = trigger.timing & TRIGGER_BEFORE != 0;
        if before && trigger.row && trigger.events & TRIGGER_UPDATE != 0 {
            let text = "a trigger before UPDATE may change columns that no statement assigns";
            let text = text.to_owned();
            self.add(Fact::Remarkable {
                table: table.clone(),
                kind: "trigger",
                text,
                if_not_exists: false,
            });
        }
        self.work("set trigger", Some(table));
    }

    fn set(&mut self, set: &VariableSetStmt) {
        let all = set.kind() == VariableSetKind::VarResetAll;
        if !all && !set.name.eq_ignore_ascii_case("search_path") {
            return;
        }
        let names: Vec<&str> = set.args.iter().filter_map(constant_text).collect();
        let schema = match names.as_slice() {
            [one] if set.args.len() == 1 && !one.is_empty() && *one != "$user" => {
                Some((*one).to_owned())
            }
            _ => None,
        };
        self.add(Fact::SearchPath {
            schema,
            local: set.is_local,
        });
    }
}

/// Catalogs that a statement writes to.
fn written(statement: &NodeEnum) -> Vec<String> {
    let mut found: Vec<(Option<String>, String)> = writes::writes_in(statement)
        .into_iter()
        .map(|write| (write.schema, write.table))
        .collect();
    if let NodeEnum::CopyStmt(copy) = statement
        && copy.is_from
    {
        let table = target(copy.relation.as_ref());
        found.push((table.schema, table.name));
    }
    let mut named = Vec::new();
    for (schema, table) in found {
        let is_own = match schema.as_deref() {
            Some(schema) => schema == "pg_catalog",
            // pg_catalog comes first on every search_path.
            None => functions::is_catalog(&table),
        };
        if is_own && !named.contains(&table) {
            named.push(table);
        }
    }
    named
}

fn relations(nodes: &[Node]) -> impl Iterator<Item = Target> {
    nodes.iter().filter_map(|node| match node.node.as_ref() {
        Some(NodeEnum::RangeVar(relation)) => Some(target(Some(relation))),
        _ => None,
    })
}

fn constant_text(node: &Node) -> Option<&str> {
    match node.node.as_ref()? {
        NodeEnum::AConst(found) => match found.val.as_ref()? {
            a_const::Val::Sval(text) => Some(&text.sval),
            _ => None,
        },
        _ => None,
    }
}

/// Neither tables' columns, nor their indexes, nor what may be done to them.
fn is_without_concern(statement: &NodeEnum) -> bool {
    use NodeEnum as N;
    matches!(
        statement,
        // Cursors, sessions.
        N::PrepareStmt(_) | N::DeallocateStmt(_) | N::FetchStmt(_) | N::ClosePortalStmt(_)
            | N::ExplainStmt(_) | N::VariableShowStmt(_)
            | N::DiscardStmt(_) | N::ListenStmt(_) | N::NotifyStmt(_) | N::UnlistenStmt(_)
            | N::CheckPointStmt(_) | N::ConstraintsSetStmt(_)
            // Views, functions, types and what belongs to no table.
            | N::ViewStmt(_) | N::CreateFunctionStmt(_) | N::AlterFunctionStmt(_)
            | N::DefineStmt(_)
            | N::CompositeTypeStmt(_) | N::CreateEnumStmt(_) | N::AlterEnumStmt(_)
            | N::CreateRangeStmt(_) | N::AlterTypeStmt(_) | N::CreateCastStmt(_)
            | N::CreateConversionStmt(_) | N::CreateTransformStmt(_) | N::AlterCollationStmt(_)
            | N::CreateOpClassStmt(_) | N::CreateOpFamilyStmt(_) | N::AlterOpFamilyStmt(_)
            | N::AlterOperatorStmt(_) | N::CreatePlangStmt(_) | N::CreateAmStmt(_)
            | N::CreateSeqStmt(_) | N::AlterSeqStmt(_) | N::AlterStatsStmt(_)
            | N::AlterTsdictionaryStmt(_) | N::AlterTsconfigurationStmt(_)
            | N::CreateEventTrigStmt(_) | N::AlterEventTrigStmt(_)
            | N::CreateExtensionStmt(_) | N::AlterExtensionStmt(_)
            | N::AlterExtensionContentsStmt(_) | N::AlterObjectDependsStmt(_)
            // Comments, privileges, owners.
            | N::SecLabelStmt(_) | N::GrantStmt(_) | N::GrantRoleStmt(_)
            | N::AlterDefaultPrivilegesStmt(_) | N::CreateRoleStmt(_) | N::AlterRoleStmt(_)
            | N::AlterRoleSetStmt(_) | N::DropRoleStmt(_) | N::ReassignOwnedStmt(_)
            | N::AlterOwnerStmt(_)
            // Databases, tablespaces, foreign tables, replication, the server.
            | N::CreatedbStmt(_) | N::AlterDatabaseStmt(_) | N::AlterDatabaseSetStmt(_)
            | N::AlterDatabaseRefreshCollStmt(_) | N::DropdbStmt(_) | N::CreateTableSpaceStmt(_)
            | N::DropTableSpaceStmt(_) | N::AlterTableSpaceOptionsStmt(_) | N::CreateFdwStmt(_)
            | N::AlterFdwStmt(_) | N::CreateForeignServerStmt(_) | N::AlterForeignServerStmt(_)
            | N::CreateForeignTableStmt(_) | N::CreateUserMappingStmt(_)
            | N::AlterUserMappingStmt(_) | N::DropUserMappingStmt(_) | N::CreateSubscriptionStmt(_)
            | N::AlterSubscriptionStmt(_) | N::DropSubscriptionStmt(_) | N::AlterSystemStmt(_)
    )
}
