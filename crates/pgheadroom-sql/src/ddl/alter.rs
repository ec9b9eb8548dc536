//! ALTER TABLE, one subcommand after another.

use pg_query::protobuf::{AlterTableCmd, AlterTableStmt, AlterTableType, ColumnDef, ObjectType};
use pg_query::{Node, NodeEnum};

use super::{Facts, table};
use crate::columns::reads;
use crate::facts::{Fact, Target, Work};
use crate::spelled::{options, target, value_of};

/// ALTER TABLE; of ALTER INDEX, ALTER VIEW and the like nothing concerns us.
pub(super) fn alter(facts: &mut Facts, statement: &AlterTableStmt) {
    if statement.objtype() != ObjectType::ObjectTable {
        return;
    }
    let table = target(statement.relation.as_ref());
    let only = statement
        .relation
        .as_ref()
        .is_some_and(|relation| !relation.inh);
    for node in &statement.cmds {
        if let Some(NodeEnum::AlterTableCmd(command)) = node.node.as_ref() {
            one(facts, &table, command, only);
        }
    }
}

fn one(facts: &mut Facts, table: &Target, command: &AlterTableCmd, only: bool) {
    use AlterTableType as T;
    let name = command.name.clone();
    match command.subtype() {
        T::AtAddColumn => {
            if let Some(column) = column(command) {
                table::add_column(facts, table, column, command.missing_ok, only);
            }
        }
        T::AtAlterColumnType => {
            if let Some(column) = column(command) {
                table::set_type(facts, table, &name, column);
            }
        }
        T::AtDropColumn => facts.add(Fact::DropColumn {
            table: table.clone(),
            name,
            if_exists: command.missing_ok,
        }),
        T::AtSetExpression => {
            let reads = command
                .def
                .as_deref()
                .map(|value| reads(value, &table.name).columns);
            let reads = Some(reads.unwrap_or_default());
            let text = "ALTER COLUMN ... SET EXPRESSION";
            facts.add(Fact::Newer { since: 17, text });
            facts.add(Fact::SetExpression {
                table: table.clone(),
                name,
                reads,
            });
        }
        T::AtDropExpression => {
            facts.add(Fact::SetExpression {
                table: table.clone(),
                name,
                reads: None,
            });
        }
        T::AtAddConstraint => {
            if let Some(constraint) = command.def.as_deref().and_then(table::constraint) {
                table::add_constraint(facts, table, constraint, None, only);
            }
        }
        T::AtDropConstraint => facts.add(Fact::DropIndex {
            index: Target {
                schema: table.schema.clone(),
                name,
            },
            table: Some(table.clone()),
            concurrently: false,
        }),
        T::AtSetRelOptions | T::AtResetRelOptions => storage(facts, table, command),
        T::AtAttachPartition | T::AtDetachPartition | T::AtDetachPartitionFinalize => {
            partition(facts, table, command);
        }
        T::AtAlterConstraint if changes_enforcement(command) => {
            let text = "ALTER CONSTRAINT ... ENFORCED";
            facts.add(Fact::Newer { since: 18, text });
            facts.work("other", Some(table.clone()));
            facts.problem(format!(
                "{text}: which other tables that locks is not followed"
            ));
        }
        kind => {
            let column = is_of_column(kind).then_some(name);
            let work = Work::new(work_kind(kind), Some(table.clone()));
            facts.add(Fact::Work(Work { column, ..work }));
        }
    }
}

fn column(command: &AlterTableCmd) -> Option<&ColumnDef> {
    match command.def.as_deref()?.node.as_ref()? {
        NodeEnum::ColumnDef(column) => Some(column),
        _ => None,
    }
}

fn changes_enforcement(command: &AlterTableCmd) -> bool {
    let def = command.def.as_deref().and_then(|node| node.node.as_ref());
    matches!(def, Some(NodeEnum::AtalterConstraint(made)) if made.alter_enforceability)
}

fn is_of_column(kind: AlterTableType) -> bool {
    use AlterTableType as T;
    matches!(
        kind,
        T::AtColumnDefault
            | T::AtDropNotNull
            | T::AtSetNotNull
            | T::AtSetStatistics
            | T::AtSetOptions
            | T::AtResetOptions
            | T::AtSetStorage
            | T::AtSetCompression
            | T::AtAddIdentity
            | T::AtSetIdentity
            | T::AtDropIdentity
    )
}

fn work_kind(kind: AlterTableType) -> &'static str {
    use AlterTableType as T;
    match kind {
        T::AtColumnDefault => "set default",
        T::AtSetNotNull => "set not null",
        T::AtDropNotNull => "drop not null",
        T::AtSetStatistics | T::AtSetOptions | T::AtResetOptions => "set statistics",
        T::AtSetStorage => "set storage",
        T::AtClusterOn | T::AtDropCluster => "set clustering",
        T::AtValidateConstraint => "validate constraint",
        T::AtSetLogged => "set logged",
        T::AtSetUnLogged => "set unlogged",
        T::AtSetAccessMethod => "set access method",
        T::AtSetTableSpace => "set tablespace",
        T::AtAddInherit | T::AtDropInherit | T::AtAddOf | T::AtDropOf => "inherit",
        T::AtEnableTrig
        | T::AtEnableAlwaysTrig
        | T::AtEnableReplicaTrig
        | T::AtDisableTrig
        | T::AtEnableTrigAll
        | T::AtDisableTrigAll
        | T::AtEnableTrigUser
        | T::AtDisableTrigUser => "set trigger",
        T::AtEnableRowSecurity
        | T::AtDisableRowSecurity
        | T::AtForceRowSecurity
        | T::AtNoForceRowSecurity => "set row security",
        T::AtChangeOwner => "set owner",
        T::AtReplicaIdentity => "replica identity",
        _ => "other",
    }
}

fn storage(facts: &mut Facts, table: &Target, command: &AlterTableCmd) {
    let listed: &[Node] = match command.def.as_deref().and_then(|node| node.node.as_ref()) {
        Some(NodeEnum::List(list)) => &list.items,
        _ => return,
    };
    for option in options(listed) {
        if !option.defname.eq_ignore_ascii_case("fillfactor") || !option.defnamespace.is_empty() {
            // Of all parameters this one alone is read without the lock that others wait for
            // (`boolRelOpts`, reloptions.c).
            let is_catalog = option.defname.eq_ignore_ascii_case("user_catalog_table");
            let kind = if is_catalog {
                "other"
            } else {
                "storage parameter"
            };
            facts.work(kind, Some(table.clone()));
            continue;
        }
        let reset = command.subtype() == AlterTableType::AtResetRelOptions;
        let value = value_of(option).unwrap_or_default();
        match whole(&value).filter(|number| (10..=100).contains(number)) {
            _ if reset => {
                facts.add(Fact::SetFillfactor {
                    table: table.clone(),
                    fillfactor: None,
                });
            }
            Some(number) => {
                facts.add(Fact::SetFillfactor {
                    table: table.clone(),
                    fillfactor: Some(number),
                });
            }
            None => facts.problem(format!(
                "fillfactor {value}: expected a whole number from 10 to 100"
            )),
        }
    }
}

/// A number as PostgreSQL reads a whole one: `70`, `'70'`, `70.0`.
fn whole(value: &str) -> Option<i64> {
    let value = value.trim();
    let (digits, rest) = value.split_once('.').unwrap_or((value, ""));
    rest.bytes()
        .all(|byte| byte == b'0')
        .then(|| digits.parse().ok())
        .flatten()
}

fn partition(facts: &mut Facts, table: &Target, command: &AlterTableCmd) {
    let Some(NodeEnum::PartitionCmd(partition)) =
        command.def.as_deref().and_then(|node| node.node.as_ref())
    else {
        return;
    };
    let attached = command.subtype() == AlterTableType::AtAttachPartition;
    let done = if attached { "attached" } else { "detached" };
    let other = target(partition.name.as_ref());
    facts.add(Fact::Remarkable {
        table: other.clone(),
        kind: "partition",
        text: format!("it is {done}: indexes of the partitioned table are not followed there"),
        if_not_exists: false,
    });
    let kind = if attached {
        "attach partition"
    } else {
        "detach partition"
    };
    let concurrently = partition.concurrent;
    let is_default = partition
        .bound
        .as_ref()
        .is_some_and(|bound| bound.is_default);
    let work = Work::new(kind, Some(table.clone()));
    facts.add(Fact::Work(Work {
        other: Some(other),
        is_default,
        concurrently,
        ..work
    }));
}
