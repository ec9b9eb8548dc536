//! Commands of another session in the middle of a run, as the profile writes them.
//!
//! ```text
//! one client   |-- 1 .. after --|V|-- after + 1 .. --|     exact: nobody works meanwhile
//! several      |---------- ~ ---|V|------------------|     between two transactions
//! ```
//!
//! What asks for a lock that shuts others out waits until nobody is in a transaction.

use crate::executor::{Maintenance, TableId};
use crate::profile::{
    CommandName, MaintenanceSpec, Method, ProfileError, ProfileSpec, TableSpec, load,
};
use crate::run::within::{part, table_of};

/// A command, and after how many transactions.
pub(super) type Due = (u64, TableId, Maintenance);

/// What a profile's run has, in the order of the file.
///
/// # Errors
/// [`ProfileError`] names what the twin does not play.
pub(super) fn commands_of(spec: &ProfileSpec, transactions: u64) -> Result<Vec<Due>, ProfileError> {
    let of = |(number, asked): (usize, &MaintenanceSpec)| {
        let field = format!("run.maintenance[{number}]");
        let table = table_of(spec, Some(&asked.table)).ok_or_else(|| {
            ProfileError::unsupported(format!("{field}.table"), &asked.table, "a table")
        })?;
        check(spec, asked, table, &field)?;
        let at = match (asked.after, asked.at_frac) {
            (Some(after), None) => after.min(transactions),
            (None, Some(frac)) => part(frac, transactions),
            _ => {
                let expected = "one of after and at_frac";
                return Err(ProfileError::unsupported(
                    field,
                    "neither or both",
                    expected,
                ));
            }
        };
        Ok((at, table, command_of(spec, asked, table, &field)?))
    };
    spec.run.maintenance.iter().enumerate().map(of).collect()
}

fn command_of(
    spec: &ProfileSpec,
    asked: &MaintenanceSpec,
    table: TableId,
    field: &str,
) -> Result<Maintenance, ProfileError> {
    let missing = || {
        let found = asked.index.as_deref().unwrap_or("none");
        ProfileError::unsupported(format!("{field}.index"), found, "an index of the table")
    };
    let index = match (&asked.index, &spec.pgbench) {
        (None, _) => None,
        (Some(name), Some(_)) => {
            let own = format!("{}_pkey", load::PGBENCH_TABLES[table.0]);
            let has_one = *name == own && asked.table != "pgbench_history";
            Some(has_one.then_some(0).ok_or_else(missing)?)
        }
        (Some(name), None) => {
            let mut indexes = spec.table[table.0].indexes.iter();
            Some(
                indexes
                    .position(|one| one.name == *name)
                    .ok_or_else(missing)?,
            )
        }
    };
    Ok(match asked.command {
        CommandName::Vacuum => Maintenance::Vacuum {
            freeze: asked.freeze,
            parallel: asked.parallel,
        },
        CommandName::VacuumFull => Maintenance::VacuumFull,
        CommandName::Analyze => Maintenance::Analyze,
        CommandName::Reindex => Maintenance::Reindex(index),
        CommandName::Truncate => Maintenance::Truncate,
        CommandName::Cluster => Maintenance::Cluster(index.ok_or_else(missing)?),
    })
}

/// Refuses what is not played, by name.
fn check(
    spec: &ProfileSpec,
    asked: &MaintenanceSpec,
    table: TableId,
    field: &str,
) -> Result<(), ProfileError> {
    let refuse = |found: &str, expected: &str| {
        Err(ProfileError::unsupported(
            format!("{field}.do"),
            found,
            expected,
        ))
    };
    if spec.may_autovacuum(spec.run.operations) {
        return refuse(
            "a command beside autovacuum",
            "server.autovacuum = false: what autovacuum counts since is not modelled",
        );
    }
    if spec.sample.is_some() {
        return refuse("a command in a sample of pages", "the whole table");
    }
    let Some(of) = spec.table.get(table.0) else {
        return Ok(()); // pgbench's
    };
    let is_brin = |table: &TableSpec| table.indexes.iter().any(|one| one.method == Method::Brin);
    let is_played = matches!(asked.command, CommandName::Vacuum | CommandName::Analyze);
    if is_brin(of) && !is_played {
        return refuse(
            &format!("a command on {}, which has a BRIN index", asked.table),
            "no BRIN index there: what the command writes to it is not modelled",
        );
    }
    let has_hash = of.indexes.iter().any(|one| one.method == Method::Hash);
    if has_hash && asked.command == CommandName::Truncate {
        return refuse(
            &format!("truncate of {}, which has a hash index", asked.table),
            "no hash index there: its buckets follow from widths that ANALYZE has found",
        );
    }
    let has_new_files = !matches!(asked.command, CommandName::Vacuum | CommandName::Analyze);
    if of.unlogged && has_new_files {
        return refuse(
            &format!("new files of {}, which is unlogged", asked.table),
            "a logged table: the records of its empty copies are not modelled",
        );
    }
    let mut keys = spec.table.iter().flat_map(|table| &table.foreign_keys);
    if asked.command == CommandName::Truncate && keys.any(|key| key.references == asked.table) {
        return refuse(
            &format!("truncate of {}", asked.table),
            "a table that no foreign key refers to",
        );
    }
    Ok(())
}
