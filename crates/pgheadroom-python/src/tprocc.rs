//! The laboratory's TPC-C-derived workload in the twin, for Python.

use std::collections::BTreeMap;
use std::sync::Arc;

use pgheadroom_layout::PgVersion;
use pgheadroom_twin::tprocc::{TproccSpec, play};
use pyo3::prelude::*;

use crate::error::CoreError;
use crate::twin::{Progress, Simulated, interruptible, monitor_of, storage_of, timed};

/// Plays the workload; what its window did, and pages by table as loaded.
#[pyfunction]
#[pyo3(signature = (spec_json, server_version, *, interleaving=0, storage="local", progress=None))]
pub fn simulate_tprocc(
    py: Python<'_>,
    spec_json: &str,
    server_version: &str,
    interleaving: u64,
    storage: &str,
    progress: Option<Py<Progress>>,
) -> PyResult<(Simulated, BTreeMap<String, u32>)> {
    let version: PgVersion = server_version.parse().map_err(CoreError::from)?;
    let spec = TproccSpec::from_json(spec_json).map_err(CoreError::from)?;
    let storage = storage_of(storage).map_err(CoreError::from)?;
    let models: Vec<_> = storage.model().into_iter().collect();
    let monitor = progress.map_or_else(Arc::default, |progress| monitor_of(&progress));
    let played = py.detach(|| {
        interruptible(&monitor, || {
            timed(|| play(&spec, version, interleaving, &models, &monitor))
        })
    })?;
    let ((outcome, loaded), cpu_s) = played.map_err(CoreError::from)?;
    Ok((Simulated::new(version, outcome, cpu_s), loaded))
}
