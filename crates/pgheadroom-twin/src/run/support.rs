//! What of a profile the twin cannot play, each by its field.

use pgheadroom_layout::PgVersion;
use pgheadroom_layout::page::BLCKSZ;

use crate::executor::PAGES_PER_RANGE;
use crate::profile::estimate::heap_bytes;
use crate::profile::index_load::{standing_in, stated_expressions};
use crate::profile::setting_values::{self, Wrong};
use crate::profile::settings::{Becomes, SETTINGS, STORAGE_PARAMETERS, bytes_of};
use crate::profile::{
    KindName, Method, ProfileError, ProfileSpec, ServerSpec, TableSpec, ValuesKind,
};
use crate::run::Conditions;
use crate::run::long_rows::not_shortened;
use crate::run::machine::assumed;

/// Least `shared_buffers` that are played.
///
/// Below, rows of 5 and of 52 MB of tables came to other pages on servers than here, where nothing
/// is evicted; from 8 MB on they did not (18.4). What is lost is probably the `fp_next_slot` of a
/// free space map's page, which a search moves without making the page dirty.
///
/// Source: `fsm_search_avail`, src/backend/storage/freespace/fsmpage.c (REL_18_STABLE).
const LEAST_SHARED_BYTES: u64 = 16 << 20;

/// Ranges to a page of a BRIN's range map.
///
/// Source: `REVMAP_PAGE_MAXITEMS`, src/include/access/brin_page.h (REL_18_STABLE).
const REVMAP_PAGE_MAXITEMS: f64 = 1360.0;

/// Whether transactions write to unlogged tables alone, and others to logged ones.
///
/// Source: `RecordTransactionCommit`, src/backend/access/transam/xact.c; `SetHintBits`,
/// src/backend/access/heap/heapam_visibility.c (REL_18_STABLE).
fn commits_unlogged(spec: &ProfileSpec) -> bool {
    let is_unlogged = |number: &usize| {
        let name = &spec.operation[*number].table;
        let mut tables = spec.table.iter();
        tables.any(|table| table.name == *name && table.unlogged)
    };
    let writes = |number: &&usize| spec.operation[**number].kind != KindName::Select;
    let transactions = spec.transactions();
    let written = || {
        let of_each = transactions.iter();
        of_each.filter(|numbers| numbers.iter().any(|number| writes(&number)))
    };
    let is_alone = |numbers: &Vec<usize>| numbers.iter().filter(writes).all(is_unlogged);
    written().any(is_alone) && written().any(|numbers| !is_alone(numbers))
}

/// Whether a BRIN may come to a second page of its range map.
fn has_many_ranges(spec: &ProfileSpec, transactions: u64) -> bool {
    let range_pages = |table: &TableSpec| {
        let brins = table
            .indexes
            .iter()
            .filter(|one| one.method == Method::Brin);
        brins
            .map(|one| one.pages_per_range.unwrap_or(PAGES_PER_RANGE).max(1))
            .min()
    };
    let heaps = heap_bytes(spec, transactions);
    spec.table.iter().zip(heaps).any(|(table, bytes)| {
        let pages = bytes / f64::from(BLCKSZ);
        range_pages(table).is_some_and(|each| pages / f64::from(each) > REVMAP_PAGE_MAXITEMS)
    })
}

/// Refuses what the twin does not play, by name; else the number of transactions, and what is not
/// played as a server would.
///
/// # Errors
/// [`ProfileError::Unsupported`].
pub fn check(
    spec: &ProfileSpec,
    conditions: &Conditions,
) -> Result<(u64, Vec<String>), ProfileError> {
    server(&spec.server)?;
    for (number, table) in spec.table.iter().enumerate() {
        check_table(number, table)?;
    }
    check_foreign_keys(spec)?;
    let mut approximations = Vec::new();
    by_itself(spec, conditions, &mut approximations)?;
    let run = &spec.run;
    let transactions = match (run.operations, conditions.transactions) {
        (Some(transactions), _) => transactions,
        (None, Some(transactions)) => {
            approximations
                .push("the run's duration is given by the number of its transactions".to_owned());
            transactions
        }
        (None, None) => {
            return Err(ProfileError::unsupported(
                "run.duration_s",
                run.duration_s.unwrap_or_default(),
                "run.operations, or the number of transactions that a server did in that time",
            ));
        }
    };
    if spec.server.image_compression().is_some() {
        approximations.push(
            "images are compressed from pages whose transaction numbers and strings are made up"
                .to_owned(),
        );
    }
    if commits_unlogged(spec) {
        approximations.push(
            "a COMMIT of what is written to unlogged tables alone is on disk at once, for which a \
             server lets its WAL writer wait: hints that it does not set until then are set"
                .to_owned(),
        );
    }
    if has_many_ranges(spec, transactions) {
        approximations.push(
            "a BRIN index of more than 1,360 ranges has a second page of its range map, for which \
             a server moves summaries away, which is left out"
                .to_owned(),
        );
    }
    if run.clients > 1 {
        let is_measured = conditions.standing.is_some();
        let has_course = !conditions.course.is_empty();
        let said = assumed(run, is_measured, has_course, conditions.at_work);
        approximations.push(said);
    }
    if !run.maintenance.is_empty() && run.clients > 1 {
        approximations
            .push("commands of maintenance happen at once, between two transactions".to_owned());
    }
    if !run.snapshot.is_empty() {
        approximations.push(
            "snapshots are taken and released between transactions, at exact fractions".to_owned(),
        );
    }
    for table in &spec.table {
        for text in stated_expressions(table) {
            approximations.push(format!(
                "values of {text:?} in indexes of {} are made of what is stated or assumed of \
                 them: which updates they end HOT for is played, their entries are like theirs",
                table.name
            ));
        }
        for column in not_shortened(spec, table) {
            approximations.push(format!(
                "values of {} are not shortened in rows of {} above 2,032 bytes, which a server \
                 may do",
                column.name, table.name
            ));
        }
        for index in standing_in(table) {
            approximations.push(format!(
                "entries of {} of {} are as long as the types are that others stand for, their \
                 order and which of them are equal is not known",
                index.name, table.name
            ));
        }
    }
    let is_brin = |table: &TableSpec| table.indexes.iter().any(|one| one.method == Method::Brin);
    if !conditions.rewrites.is_empty() && spec.table.iter().any(is_brin) {
        approximations
            .push("a rewrite builds BRIN indexes anew without counting their WAL".to_owned());
    }
    Ok((transactions, approximations))
}

/// What the server does by itself has to be known.
fn by_itself(
    spec: &ProfileSpec,
    conditions: &Conditions,
    approximations: &mut Vec<String>,
) -> Result<(), ProfileError> {
    let server = &spec.server;
    let transactions = spec.run.operations.or(conditions.transactions);
    let found = [
        (
            "server.autovacuum",
            server.autovacuum.then(|| "true".to_owned()),
        ),
        (
            "server.settings.autovacuum_freeze_max_age",
            spec.may_wake_autovacuum(transactions)
                .then(|| server.freeze_ages().xid.max.to_string()),
        ),
        (
            "server.checkpoint_interval_s",
            server
                .checkpoint_interval_s
                .map(|seconds| seconds.to_string()),
        ),
        ("server.max_wal_size", server.max_wal_size.clone()),
    ];
    let mut found = found
        .into_iter()
        .filter_map(|(field, value)| Some((field, value?)));
    let Some((field, value)) = found.next() else {
        if conditions.events.iter().flatten().next().is_some() {
            approximations.push(BY_ITSELF.to_owned());
        }
        return Ok(());
    };
    if conditions.timing.is_some_and(|timing| timing.drives_server) {
        approximations.push(BY_CLOCK.to_owned());
        return Ok(());
    }
    if conditions.events.is_none() {
        return Err(ProfileError::unsupported(
            field,
            value,
            "none, a clock, or the times at which a server did so",
        ));
    }
    approximations.push(BY_ITSELF.to_owned());
    Ok(())
}

/// How events are played.
const BY_ITSELF: &str =
    "checkpoints and autovacuums happen at once, between two transactions, at the times given";

/// How what the server does by itself is placed by the clock.
const BY_CLOCK: &str = "autovacuum and checkpoints happen by a simulated clock, whose phases are \
     drawn; transactions take the time that is assumed, whatever goes on beside them";

fn server(server: &ServerSpec) -> Result<(), ProfileError> {
    let shared = &server.shared_buffers;
    if bytes_of(shared).is_some_and(|bytes| bytes < LEAST_SHARED_BYTES) {
        return Err(ProfileError::unsupported(
            "server.shared_buffers",
            shared,
            format!(
                "{}MB or more: below, pages of free space maps are evicted and rows come to other \
                 pages, which is not modelled",
                LEAST_SHARED_BYTES >> 20
            ),
        ));
    }
    for (name, value) in &server.settings {
        let field = format!("server.settings.{name}");
        refuse(SETTINGS, name, value, field, "no such setting")?;
    }
    Ok(())
}

/// Rows that others refer to are not deleted: a server would look for those others.
fn check_foreign_keys(spec: &ProfileSpec) -> Result<(), ProfileError> {
    let keys = spec.table.iter().flat_map(|table| &table.foreign_keys);
    let referenced: Vec<&String> = keys.map(|key| &key.references).collect();
    check_changed_references(spec)?;
    let mut operations = spec.operation.iter().enumerate();
    let deletes = operations.find(|(_, operation)| {
        operation.kind == KindName::Delete && referenced.contains(&&operation.table)
    });
    if let Some((number, operation)) = deletes {
        return Err(ProfileError::unsupported(
            format!("operation[{number}].kind"),
            format!("delete from {}", operation.table),
            "no delete from a table that a foreign key refers to",
        ));
    }
    Ok(())
}

/// An update takes the next key of the rows referred to, which only numbers have.
fn check_changed_references(spec: &ProfileSpec) -> Result<(), ProfileError> {
    for (number, operation) in spec.operation.iter().enumerate() {
        let table = spec
            .table
            .iter()
            .find(|table| table.name == operation.table);
        for (name, change) in &operation.sets {
            if change.changed_frac <= 0.0 {
                continue;
            }
            let column = table.and_then(|table| Some(&table.columns[table.column(name)?]));
            let is_other = column.is_some_and(|column| {
                column.values.kind == ValuesKind::Parent && !is_integer(&column.type_name)
            });
            if is_other {
                return Err(ProfileError::unsupported(
                    format!("operation[{number}].sets.{name}"),
                    name,
                    "no column that refers to a key that is no integer",
                ));
            }
        }
    }
    Ok(())
}

fn is_integer(type_name: &str) -> bool {
    matches!(type_name, "int2" | "int4" | "int8")
}

fn check_table(number: usize, table: &TableSpec) -> Result<(), ProfileError> {
    for (name, value) in &table.reloptions {
        let field = format!("table[{number}].reloptions.{name}");
        let plain = name.trim_start_matches("toast.");
        refuse(
            STORAGE_PARAMETERS,
            plain,
            value,
            field,
            "no such storage parameter",
        )?;
    }
    Ok(())
}

/// Refuses values that a server of the version does not take.
///
/// # Errors
/// [`ProfileError::Wrong`] with the field.
pub(super) fn check_values(spec: &ProfileSpec, version: PgVersion) -> Result<(), ProfileError> {
    for (name, value) in &spec.server.settings {
        let becomes = Becomes::of(SETTINGS, name, value);
        let field = format!("server.settings.{name}");
        match setting_values::check(SETTINGS, name, value, version.major()) {
            // What another version has, and has no effect, is left out on a server.
            Err(Wrong::Missing) if becomes == Becomes::NoEffect => {}
            result => wrong(result, field, value, version)?,
        }
    }
    for (number, table) in spec.table.iter().enumerate() {
        for (name, value) in &table.reloptions {
            let plain = name.trim_start_matches("toast.");
            let result = setting_values::check(STORAGE_PARAMETERS, plain, value, version.major());
            let field = format!("table[{number}].reloptions.{name}");
            wrong(result, field, value, version)?;
        }
    }
    Ok(())
}

fn wrong(
    result: Result<(), Wrong>,
    field: String,
    value: &str,
    version: PgVersion,
) -> Result<(), ProfileError> {
    let expected = match result {
        Ok(()) => return Ok(()),
        Err(Wrong::Missing) => format!("no such name: PostgreSQL {version} does not have it"),
        Err(Wrong::Value(expected)) => format!("{expected}, as PostgreSQL {version} takes"),
    };
    Err(ProfileError::unsupported(field, value, expected))
}

/// Refuses what a table of names says is not played.
fn refuse(
    table: &'static str,
    name: &str,
    value: &str,
    field: String,
    expected: &str,
) -> Result<(), ProfileError> {
    let reason = match Becomes::of(table, name, value) {
        Becomes::Modelled | Becomes::NoEffect => return Ok(()),
        Becomes::Refused(reason) => reason,
        Becomes::Unknown => "no version that is known has it",
    };
    let expected = format!("{expected}: {reason}");
    Err(ProfileError::unsupported(field, value, expected))
}
