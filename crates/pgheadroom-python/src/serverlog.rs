//! The server log's scan for Python: bytes in, counted statements out.

use pgheadroom_serverlog::time::Zones;
use pgheadroom_serverlog::{Format, Found, Prefix, Scan, Selection};
use pyo3::prelude::*;

use crate::error::CoreError;

/// What a scan has found; see `_core.pyi`.
#[pyclass(module = "pgheadroom._core", frozen)]
pub struct LogFound(Found);

#[pymethods]
impl LogFound {
    #[getter]
    fn counts(&self) -> Vec<(Vec<u8>, u64)> {
        self.0.counts.clone()
    }

    #[getter]
    fn executed(&self) -> u64 {
        self.0.executed
    }

    #[getter]
    fn selected(&self) -> u64 {
        self.0.selected
    }

    #[getter]
    fn cut(&self) -> u64 {
        self.0.cut
    }

    #[getter]
    fn not_kept(&self) -> u64 {
        self.0.not_kept
    }

    #[getter]
    fn elsewhere(&self) -> u64 {
        self.0.elsewhere
    }

    #[getter]
    fn outside(&self) -> u64 {
        self.0.outside
    }

    #[getter]
    fn untimed(&self) -> u64 {
        self.0.untimed
    }

    #[getter]
    fn unprefixed(&self) -> u64 {
        self.0.unprefixed
    }

    #[getter]
    fn unreadable(&self) -> u64 {
        self.0.unreadable
    }
}

/// A scan of one log; see `_core.pyi`.
#[pyclass(module = "pgheadroom._core")]
pub struct LogScan(Scan);

#[pymethods]
impl LogScan {
    #[new]
    #[pyo3(signature = (form, *, prefix=None, database=None, interval_ms=None, zones=None,
                        zone_offset_s=None))]
    fn new(
        form: &str,
        prefix: Option<&[u8]>,
        database: Option<Vec<u8>>,
        interval_ms: Option<(i64, i64)>,
        zones: Option<Vec<(Vec<u8>, i64)>>,
        zone_offset_s: Option<i64>,
    ) -> Result<Self, CoreError> {
        let format = match form {
            "csvlog" => Format::Csv,
            "jsonlog" => Format::Json,
            "stderr" => Format::Stderr(Prefix::parse(prefix.unwrap_or_default())),
            _ => {
                return Err(CoreError::input(format!(
                    "log format {form:?}: expected csvlog, jsonlog or stderr"
                )));
            }
        };
        let zones = Zones {
            known: zones.unwrap_or_default(),
            otherwise: zone_offset_s,
        };
        let selection = Selection {
            database,
            interval_ms,
            zones,
        };
        Ok(Self(Scan::new(format, selection)))
    }

    fn feed(&mut self, py: Python<'_>, chunk: &[u8]) {
        py.detach(|| self.0.feed(chunk));
    }

    fn end_file(&mut self) {
        self.0.end_file();
    }

    fn found(&self) -> LogFound {
        LogFound(self.0.found())
    }
}

/// What lines of a `log_line_prefix` say: whether their time, whether their database.
#[pyfunction]
pub fn log_prefix_has(prefix: &[u8]) -> (bool, bool) {
    let prefix = Prefix::parse(prefix);
    (prefix.has_time(), prefix.has_database())
}

/// The time of a log line's stamp in milliseconds since 1970; `None` where there is none.
#[pyfunction]
#[pyo3(signature = (text, *, zones=None, zone_offset_s=None))]
pub fn log_time_ms(
    text: &[u8],
    zones: Option<Vec<(Vec<u8>, i64)>>,
    zone_offset_s: Option<i64>,
) -> Option<i64> {
    let zones = Zones {
        known: zones.unwrap_or_default(),
        otherwise: zone_offset_s,
    };
    pgheadroom_serverlog::time::moment(text, &zones).map(|found| found.ms)
}
