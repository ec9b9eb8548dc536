//! Which Python exception each error of the core becomes; no other file decides that.
//!
//! The classes are those of `pgheadroom.errors`, imported once on the first error.

use pgheadroom_layout::LayoutError;
use pgheadroom_twin::profile::ProfileError;
use pgheadroom_walread::WalError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The Python class of an error, by its name in `pgheadroom.errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorClass {
    Input,
    Source,
    Twin,
    WalCorrupt,
    WalIncomplete,
    WalUnsupported,
}

impl ErrorClass {
    /// The class itself.
    fn python(self, py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        static INPUT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static SOURCE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static TWIN: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static WAL_CORRUPT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static WAL_INCOMPLETE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static WAL_UNSUPPORTED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let (cell, name) = match self {
            Self::Input => (&INPUT, "InputError"),
            Self::Source => (&SOURCE, "SourceError"),
            Self::Twin => (&TWIN, "TwinError"),
            Self::WalCorrupt => (&WAL_CORRUPT, "WalCorrupt"),
            Self::WalIncomplete => (&WAL_INCOMPLETE, "WalIncomplete"),
            Self::WalUnsupported => (&WAL_UNSUPPORTED, "WalUnsupported"),
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

impl CoreError {
    /// A question that the asker can put right.
    pub fn input(message: String) -> Self {
        Self(ErrorClass::Input.raise(message))
    }

    /// Foreign bytes that are not what they should be.
    pub fn source(message: String) -> Self {
        Self(ErrorClass::Source.raise(message))
    }
}

impl From<LayoutError> for CoreError {
    fn from(error: LayoutError) -> Self {
        // All of them are questions that the asker can put right.
        Self(ErrorClass::Input.raise(error.to_string()))
    }
}

impl From<ProfileError> for CoreError {
    fn from(error: ProfileError) -> Self {
        let class = match error {
            ProfileError::NotAProfile { .. } => ErrorClass::Input,
            _ => ErrorClass::Twin,
        };
        Self(class.raise(error.to_string()))
    }
}

impl From<WalError> for CoreError {
    fn from(error: WalError) -> Self {
        let class = match error {
            WalError::UnknownMagic { .. } | WalError::PageSize { .. } | WalError::Mixed { .. } => {
                ErrorClass::WalUnsupported
            }
            WalError::Nothing { .. } => ErrorClass::WalIncomplete,
            _ => ErrorClass::WalCorrupt,
        };
        Self(class.raise(error.to_string()))
    }
}

impl CoreError {
    /// The system gave no thread to work on: too little memory, or too many threads.
    pub fn no_thread(error: &std::io::Error) -> Self {
        Self(ErrorClass::Twin.raise(format!(
            "the system starts no further thread: {error}; expected more memory (see `ulimit -v`) \
             or fewer processes (`ulimit -u`)"
        )))
    }

    /// The core contradicted itself: nobody but us can put that right.
    pub fn bug(message: &str) -> Self {
        Self(ErrorClass::Twin.raise(format!(
            "the twin failed a check of its own, which is a bug of pgheadroom: {message}; \
             expected a result. Please report it together with the profile"
        )))
    }
}

impl From<CoreError> for PyErr {
    fn from(error: CoreError) -> Self {
        error.0
    }
}
