//! The tables of settings and storage parameters for Python.

use pgheadroom_twin::profile::settings::{Becomes, SETTINGS, STORAGE_PARAMETERS, names};
use pyo3::prelude::*;

const fn table(of_tables: bool) -> &'static str {
    if of_tables {
        STORAGE_PARAMETERS
    } else {
        SETTINGS
    }
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
