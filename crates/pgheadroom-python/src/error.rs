//! Which Python exception each error of the core becomes; no other file decides that.
//!
//! The classes are those of `pgheadroom.errors`, imported once on the first error.

use pgheadroom_layout::LayoutError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The Python class of an error, by its name in `pgheadroom.errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorClass {
    Input,
}

impl ErrorClass {
    /// The class itself.
    fn python(self, py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        static INPUT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let (cell, name) = match self {
            Self::Input => (&INPUT, "InputError"),
        };
        cell.import(py, "pgheadroom.errors", name)
    }

    /// An exception of this class. Should the class not be importable (a broken installation),
    /// the import error is raised instead.
    fn raise(self, message: String) -> PyErr {
        Python::attach(|py| match self.python(py) {
            Ok(class) => PyErr::from_type(class.clone(), message),
            Err(import_error) => {
                let wrapped = PyRuntimeError::new_err(message);
                wrapped.set_cause(py, Some(import_error));
                wrapped
            }
        })
    }
}

/// An error of the core on its way to Python; `?` converts into it.
pub struct CoreError(PyErr);

impl From<LayoutError> for CoreError {
    fn from(error: LayoutError) -> Self {
        // All of them are questions that the asker can put right.
        Self(ErrorClass::Input.raise(error.to_string()))
    }
}

impl From<CoreError> for PyErr {
    fn from(error: CoreError) -> Self {
        error.0
    }
}
