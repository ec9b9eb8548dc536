//! What the twin knows, for Python: settings and storage parameters, and which expressions.

use std::collections::BTreeMap;

use pgheadroom_layout::PgVersion;
use pgheadroom_twin::executor::ColumnDefinition;
use pgheadroom_twin::expression::{Expression, ExpressionError};
use pgheadroom_twin::profile::ages;
use pgheadroom_twin::profile::setting_values::{self, Wrong};
use pgheadroom_twin::profile::settings::{Becomes, SETTINGS, STORAGE_PARAMETERS, names};
use pyo3::prelude::*;

use crate::error::CoreError;

const fn table(of_tables: bool) -> &'static str {
    if of_tables {
        STORAGE_PARAMETERS
    } else {
        SETTINGS
    }
}

/// Why the twin cannot evaluate an expression, or a condition, over columns of these names, types
/// and labels (of enums); None where it can. Text that PostgreSQL's grammar judges has a reason.
///
/// # Errors
/// What no server would take.
#[pyfunction]
#[pyo3(signature = (expression, columns, /, *, is_condition=false))]
pub fn not_evaluated(
    expression: &str,
    columns: Vec<(String, String, Vec<String>)>,
    is_condition: bool,
) -> Result<Option<String>, CoreError> {
    let columns: Vec<(&str, &str, &[String])> = columns
        .iter()
        .map(|(name, type_name, labels)| (&**name, &**type_name, &**labels))
        .collect();
    let columns = ColumnDefinition::of_expressions(&columns)
        .map_err(|error| CoreError::input(error.to_string()))?;
    let read = if is_condition {
        Expression::condition
    } else {
        Expression::parse
    };
    match read(expression, &columns) {
        Ok(_) => Ok(None),
        Err(ExpressionError::Unsupported { what, .. } | ExpressionError::Unread { what, .. }) => {
            Ok(Some(what))
        }
        Err(ExpressionError::Wrong { what, .. }) => Err(CoreError::input(what)),
    }
}

/// Whether the twin knows the keys that a GIN's operator class (empty: its default) has of a type.
#[pyfunction]
#[pyo3(signature = (type_name, opclass, /))]
pub fn knows_gin_keys(type_name: &str, opclass: &str) -> bool {
    pgheadroom_twin::profile::knows_gin_keys(type_name, opclass)
}

/// Every setting, or every storage parameter, that is known.
#[pyfunction]
#[pyo3(signature = (*, storage_parameters = false))]
pub fn setting_names(storage_parameters: bool) -> Vec<&'static str> {
    names(table(storage_parameters)).collect()
}

/// What becomes of a setting or a storage parameter, and why where it is refused.
#[pyfunction]
#[pyo3(signature = (name, value, *, storage_parameter = false))]
pub fn setting_becomes(
    name: &str,
    value: &str,
    storage_parameter: bool,
) -> (&'static str, &'static str) {
    match Becomes::of(table(storage_parameter), name, value) {
        Becomes::Modelled => ("modelled", ""),
        Becomes::NoEffect => ("no effect on pages", ""),
        Becomes::Refused(reason) => ("refused", reason),
        Becomes::Unknown => ("unknown", ""),
    }
}

/// Whether a run with these settings may wake autovacuum's launcher while it is off, by the age of
/// its tables; without a number of transactions where that is not known. The last VACUUM that is
/// not at the end comes after so many of them.
#[pyfunction]
#[pyo3(signature = (settings, transactions, clients, last_vacuum, /))]
pub fn may_wake_autovacuum(
    settings: BTreeMap<String, String>,
    transactions: Option<u64>,
    clients: u32,
    last_vacuum: Option<u64>,
) -> bool {
    let ages = ages::freeze_ages(&settings);
    ages::may_wake_autovacuum(&ages, transactions, clients, last_vacuum)
}

/// What a server of the version takes instead of this value; None where it takes it, or does not
/// have the name.
///
/// # Errors
/// A version that is not known.
#[pyfunction]
#[pyo3(signature = (name, value, version, /, *, storage_parameter = false))]
pub fn setting_expected(
    name: &str,
    value: &str,
    version: &str,
    storage_parameter: bool,
) -> Result<Option<String>, CoreError> {
    let version: PgVersion = version
        .parse()
        .map_err(|error: pgheadroom_layout::LayoutError| CoreError::input(error.to_string()))?;
    let table = table(storage_parameter);
    Ok(
        match setting_values::check(table, name, value, version.major()) {
            Err(Wrong::Value(expected)) => Some(expected),
            Err(Wrong::Missing) | Ok(()) => None,
        },
    )
}
