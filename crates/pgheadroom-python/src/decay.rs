//! The churn program of `pgheadroom-models` for Python: one call for all rounds.

use std::sync::Arc;

use pgheadroom_layout::PgVersion;
use pgheadroom_models::decay::{self, Program, Round, State};
use pgheadroom_twin::profile::ProfileSpec;
use pyo3::prelude::*;

use crate::error::CoreError;
use crate::twin::{Progress, engine_of, interruptible, monitor_of};

/// Pages of a range, correlation, pages of heap and index, live rows.
type StateTuple = (Option<f64>, Option<f64>, u32, u32, u64);
/// Seeds of DELETE and INSERT, and where ranges start.
type RoundArgument = (f64, f64, Vec<i64>);

/// Plays the churn program in the twin.
#[pyfunction]
#[pyo3(signature = (
    profile_json, server_version, starts, rounds, *, range_span, churn_frac, engine="heap",
    is_sorted=false, progress=None
))]
#[allow(clippy::too_many_arguments)] // Python's keyword arguments
pub fn cluster_decay(
    py: Python<'_>,
    profile_json: &str,
    server_version: &str,
    starts: Vec<i64>,
    rounds: Vec<RoundArgument>,
    range_span: i64,
    churn_frac: f64,
    engine: &str,
    is_sorted: bool,
    progress: Option<Py<Progress>>,
) -> PyResult<Vec<StateTuple>> {
    let version: PgVersion = server_version.parse().map_err(CoreError::from)?;
    let rounds = rounds
        .into_iter()
        .map(|(delete_seed, insert_seed, starts)| Round {
            delete_seed,
            insert_seed,
            starts,
        });
    let program = Program {
        profile: ProfileSpec::from_json(profile_json).map_err(CoreError::from)?,
        range_span,
        engine: engine_of(engine).map_err(CoreError::from)?,
        is_sorted,
        churn_frac,
        starts,
        rounds: rounds.collect(),
    };
    let monitor = progress.map_or_else(Arc::default, |progress| monitor_of(&progress));
    let states =
        py.detach(|| interruptible(&monitor, || decay::play(&program, version, &monitor)))?;
    Ok(states.map_err(CoreError::from)?.iter().map(tuple).collect())
}

const fn tuple(state: &State) -> StateTuple {
    (
        state.pages_per_range,
        state.correlation,
        state.heap_pages,
        state.index_pages,
        state.live_rows,
    )
}
