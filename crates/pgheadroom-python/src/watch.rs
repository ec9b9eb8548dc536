//! A page's life for Python, as JSON text: its shape is documented in `_core.pyi`.

use pgheadroom_twin::watch::PageLife;
use pyo3::PyResult;

use crate::error::CoreError;

/// The page's life as JSON, if a page was watched.
///
/// # Errors
/// `TwinError` when it cannot be written, which is a bug.
pub fn json(life: Option<&PageLife>) -> PyResult<Option<String>> {
    life.map(serde_json::to_string)
        .transpose()
        .map_err(|error| CoreError::bug(&error.to_string()).into())
}
