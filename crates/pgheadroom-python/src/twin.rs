//! `pgheadroom-twin` for Python: one call per run.
//!
//! The run has a thread of its own; the calling thread waits without the GIL and looks for
//! signals now and then, so that Ctrl-C ends a long run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pgheadroom_layout::PgVersion;
use pgheadroom_models::{Engine, Storage};
use pgheadroom_twin::order::Order;
use pgheadroom_twin::pgbench::Generators;
use pgheadroom_twin::profile::estimate;
use pgheadroom_twin::profile::{self, Monitor, ProfileError, ProfileSpec};
use pgheadroom_twin::run::{self, Outcome};
use pgheadroom_twin::workload::{self, Keys};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::clock;
use crate::error::CoreError;
use crate::watch;

/// How often the waiting thread looks for signals: Ctrl-C feels immediate, and costs nothing.
const SIGNALS_EVERY: Duration = Duration::from_millis(20);

/// How far a simulation has come; may be read and cancelled from any thread.
#[pyclass(frozen, module = "pgheadroom._core")]
#[derive(Clone, Default)]
pub struct Progress(Arc<Monitor>);

#[pymethods]
impl Progress {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[getter]
    fn done(&self) -> u64 {
        self.0.done()
    }

    #[getter]
    fn total(&self) -> u64 {
        self.0.total()
    }

    fn cancel(&self) {
        self.0.cancel();
    }

    fn __repr__(&self) -> String {
        format!("Progress(done={}, total={})", self.done(), self.total())
    }
}

/// What a run did to a table.
#[pyclass(frozen, eq, hash, get_all, module = "pgheadroom._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TableOutcome {
    name: String,
    n_tup_ins: u64,
    n_tup_upd: u64,
    n_tup_del: u64,
    n_tup_hot_upd: u64,
    n_tup_newpage_upd: u64,
    heap_pages: u32,
    index_pages: u32,
    wal_records: u64,
    wal_bytes: u64,
    wal_fpi: u64,
    wal_fpi_bytes: u64,
    doubtful_header_bytes: u64,
    doubtful_image_bytes: u64,
    pages_modified: usize,
}

impl TableOutcome {
    fn of(table: &run::TableOutcome) -> Self {
        let (counters, wal) = (&table.counters, &table.wal);
        Self {
            name: table.name.clone(),
            n_tup_ins: counters.n_tup_ins,
            n_tup_upd: counters.n_tup_upd,
            n_tup_del: counters.n_tup_del,
            n_tup_hot_upd: counters.n_tup_hot_upd,
            n_tup_newpage_upd: counters.n_tup_newpage_upd,
            heap_pages: table.heap_pages,
            index_pages: table.index_pages,
            wal_records: wal.wal_records,
            wal_bytes: wal.wal_bytes,
            wal_fpi: wal.wal_fpi,
            wal_fpi_bytes: wal.wal_fpi_bytes,
            doubtful_header_bytes: table.doubt.header_bytes,
            doubtful_image_bytes: table.doubt.image_bytes,
            pages_modified: table.pages_modified,
        }
    }
}

#[pymethods]
impl TableOutcome {
    fn __repr__(&self) -> String {
        format!(
            "TableOutcome({}, n_tup_upd={}, n_tup_hot_upd={}, heap_pages={}, wal_bytes={})",
            self.name, self.n_tup_upd, self.n_tup_hot_upd, self.heap_pages, self.wal_bytes
        )
    }
}

/// What a profile's run does, as the twin predicts it.
#[pyclass(frozen, module = "pgheadroom._core")]
pub struct Simulated {
    server: String,
    outcome: Outcome,
    cpu_s: f64,
}

impl Simulated {
    /// What a run did, as a server of this version, and the processor time that it took.
    pub fn new(version: PgVersion, outcome: Outcome, cpu_s: f64) -> Self {
        Self {
            server: version.to_string(),
            outcome,
            cpu_s,
        }
    }
}

/// What `work` gives, with the seconds of a processor that this thread took for it; where the
/// kernel does not count these, the seconds that passed.
///
/// # Errors
/// Those of `work`.
pub fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let (began, before) = (Instant::now(), thread_s());
    let done = work()?;
    let passed_s = began.elapsed().as_secs_f64();
    let taken_s = thread_s()
        .filter(|&now| now > 0.0)
        .zip(before)
        .map(|(now, then)| now - then);
    Ok((done, taken_s.unwrap_or(passed_s)))
}

/// Seconds for which this thread was on a processor (Linux, `proc_pid_schedstat(5)`).
///
/// A thread that has just begun has none yet, and neither has any where the kernel does not count.
fn thread_s() -> Option<f64> {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = counts.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

#[pymethods]
impl Simulated {
    #[getter]
    fn server(&self) -> &str {
        &self.server
    }

    #[getter]
    const fn cpu_s(&self) -> f64 {
        self.cpu_s
    }

    #[getter]
    const fn transactions(&self) -> u64 {
        self.outcome.transactions
    }

    #[getter]
    const fn operations(&self) -> u64 {
        self.outcome.operations
    }

    #[getter]
    fn turns(&self) -> Vec<(u64, u64)> {
        let turns = self.outcome.turns.iter();
        turns.map(|one| (one.turns, one.without_row)).collect()
    }

    #[getter]
    fn tables(&self) -> Vec<TableOutcome> {
        self.outcome.tables.iter().map(TableOutcome::of).collect()
    }

    #[getter]
    const fn transaction_records(&self) -> u64 {
        self.outcome.transaction_wal.wal_records
    }

    #[getter]
    const fn transaction_bytes(&self) -> u64 {
        self.outcome.transaction_wal.wal_bytes
    }

    #[getter]
    const fn failed_transactions(&self) -> u64 {
        self.outcome.failed_transactions
    }

    #[getter]
    const fn worked(&self) -> f64 {
        self.outcome.worked
    }

    #[getter]
    const fn pauses(&self) -> f64 {
        self.outcome.pauses
    }

    #[getter]
    fn by_record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let by_record = PyDict::new(py);
        for (name, totals) in &self.outcome.by_record {
            let counts = (totals.wal_records, totals.wal_bytes, totals.wal_fpi_bytes);
            by_record.set_item(name, counts)?;
        }
        Ok(by_record)
    }

    #[getter]
    fn is_exact(&self) -> bool {
        self.outcome.approximations.is_empty() && self.outcome.model.is_none()
    }

    #[getter]
    const fn model(&self) -> Option<&'static str> {
        self.outcome.model
    }

    #[getter]
    fn order<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (table, [before, after]) in self.outcome.tables.iter().zip(&self.outcome.order) {
            if let (Some(before), Some(after)) = (before, after) {
                found.set_item(&table.name, (measures(before), measures(after)))?;
            }
        }
        Ok(found)
    }

    #[getter]
    fn approximations(&self) -> Vec<String> {
        self.outcome.approximations.clone()
    }

    #[getter]
    fn only_draws(&self) -> bool {
        self.outcome.only_draws
    }

    #[getter]
    fn samples_drawn(&self) -> u64 {
        self.outcome.samples_drawn
    }

    #[getter]
    fn pointers_in_doubt(&self) -> u64 {
        self.outcome.pointers_in_doubt
    }

    #[getter]
    fn duration_s(&self) -> Option<f64> {
        self.outcome
            .happened
            .as_ref()
            .map(|happened| happened.duration_s)
    }

    #[getter]
    fn happened(&self) -> Vec<clock::HappenedTuple> {
        clock::happened(&self.outcome)
    }

    #[getter]
    fn rewrites<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        clock::rewrites(py, &self.outcome)
    }

    #[getter]
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        clock::series(py, &self.outcome)
    }

    #[getter]
    fn page_life_json(&self) -> PyResult<Option<String>> {
        watch::json(self.outcome.page_life.as_ref())
    }

    fn __repr__(&self) -> String {
        format!(
            "Simulated(server={}, transactions={}, {} tables)",
            self.server,
            self.outcome.transactions,
            self.outcome.tables.len()
        )
    }
}

/// Pages of a range, and the correlation.
const fn measures(order: &Order) -> (f64, Option<f64>) {
    (order.pages_per_range, order.correlation)
}

/// What share of the transactions stood still, for how many of another client's, and which part of
/// that lay within statements.
type StandingTuple = (f64, Vec<f64>, Option<(f64, f64)>);

/// What the server did by itself: when, as a fraction of the run, what, and to which table.
type EventArgument = (f64, String, Option<String>);

fn event((at_frac, kind, table): EventArgument) -> Result<run::Event, ProfileError> {
    let known = run::EventKind::of(&kind);
    let known = known.ok_or_else(|| ProfileError::Unplayable {
        field: "events".to_owned(),
        reason: format!(
            "an event of the kind {kind:?}: expected checkpoint_starting, checkpoint_complete, \
             autovacuum_starting, autovacuum or autoanalyze"
        ),
    })?;
    Ok(run::Event {
        at_frac,
        kind: known,
        table,
    })
}

/// The storage of this name.
pub fn storage_of(name: &str) -> Result<Storage, ProfileError> {
    Storage::of(name).ok_or_else(|| ProfileError::Unsupported {
        field: "storage".to_owned(),
        found: name.to_owned(),
        expected: Storage::ALL.map(Storage::name).join(" or "),
    })
}

/// What a progress shares with the run.
pub fn monitor_of(progress: &Py<Progress>) -> Arc<Monitor> {
    Arc::clone(&progress.get().0)
}

/// The engine of this name.
pub fn engine_of(name: &str) -> Result<Engine, ProfileError> {
    Engine::of(name).ok_or_else(|| ProfileError::Unsupported {
        field: "engine".to_owned(),
        found: name.to_owned(),
        expected: Engine::ALL.map(Engine::name).join(" or "),
    })
}

/// Bytes that a run of the profile takes.
#[pyfunction]
#[pyo3(signature = (profile_json, transactions=None))]
pub fn needed_bytes(profile_json: &str, transactions: Option<u64>) -> PyResult<u64> {
    let spec = ProfileSpec::from_json(profile_json).map_err(CoreError::from)?;
    Ok(estimate::needed_bytes(&spec, transactions))
}

/// How many transactions pgbench begins at a rate.
#[pyfunction]
pub fn arrivals_at_rate(seed: u64, clients: usize, rate_per_s: f64, duration_s: f64) -> u64 {
    Generators::new(seed, clients).arrivals(rate_per_s, duration_s)
}

/// By row of a page: the round of HOT updates that puts it behind a redirect.
#[pyfunction]
#[pyo3(signature = (of_load, rows, redirects, unused=0))]
pub fn redirect_rounds(
    of_load: (u16, u8, u16),
    rows: u16,
    redirects: u16,
    unused: u16,
) -> Vec<u16> {
    profile::redirect_rounds(of(of_load), page(rows, redirects, unused))
}

/// What is loaded on a page in each of the two waves, and the number of the row, or of that before.
#[pyfunction]
pub fn loading_waves(
    of_load: (u16, u8, u16),
    rows: u16,
    redirects: u16,
    unused: u16,
) -> Vec<Vec<(u16, i64)>> {
    let waves = profile::Waves::of(of(of_load), page(rows, redirects, unused));
    let of_wave = |wave| {
        let positions = waves.positions(wave);
        let coded = positions.map(|(number, piece)| match piece {
            profile::Piece::Filler => (0, number),
            profile::Piece::Row => (1, number),
            profile::Piece::Narrow => (2, number),
        });
        coded.collect()
    };
    vec![of_wave(0), of_wave(1)]
}

/// The most unused line pointers beside a page's rows.
#[pyfunction]
pub fn unused_max(of_load: (u16, u8, u16), rows: u16, redirects: u16) -> i64 {
    profile::unused_max(of(of_load), rows.into(), redirects.into())
}

fn of((per_page, fillfactor, columns): (u16, u8, u16)) -> profile::OfLoad {
    profile::OfLoad {
        per_page: per_page.into(),
        fillfactor: fillfactor.into(),
        columns: columns.into(),
    }
}

fn page(rows: u16, redirects: u16, unused: u16) -> profile::OfPage {
    profile::OfPage {
        rows: rows.into(),
        redirects: redirects.into(),
        unused: unused.into(),
    }
}

/// The keys that a profile's clients draw.
#[pyfunction]
pub fn drawn_keys(
    profile_json: &str,
    server_version: &str,
    transactions: u64,
) -> PyResult<Vec<Vec<Keys>>> {
    let version: PgVersion = server_version.parse().map_err(CoreError::from)?;
    let spec = ProfileSpec::from_json(profile_json).map_err(CoreError::from)?;
    let keys = workload::drawn_keys(&spec, version, transactions);
    Ok(keys.map_err(CoreError::from)?)
}

/// Plays a profile in the twin.
#[pyfunction]
#[pyo3(signature = (
    profile_json, server_version, *, interleaving=0, events=None, transactions=None, pace=None,
    windows=0, fillfactors_later=None, fillfactors_at=None, rewrites=None, watch=None,
    storage="local", engine="heap", order=false, duration_s=None, standing=None,
    course=None, at_work=None, is_maintenance_measured=false, progress=None
))]
#[allow(clippy::too_many_arguments)] // Python's keyword arguments
pub fn simulate(
    py: Python<'_>,
    profile_json: &str,
    server_version: &str,
    interleaving: u64,
    events: Option<Vec<EventArgument>>,
    transactions: Option<u64>,
    pace: Option<(String, f64)>,
    windows: u32,
    fillfactors_later: Option<Vec<(String, i64)>>,
    fillfactors_at: Option<Vec<(String, i64, f64)>>,
    rewrites: Option<Vec<(String, f64, Option<f64>)>>,
    watch: Option<(String, u32)>,
    storage: &str,
    engine: &str,
    order: bool,
    duration_s: Option<f64>,
    standing: Option<StandingTuple>,
    course: Option<Vec<Vec<u32>>>,
    at_work: Option<f64>,
    is_maintenance_measured: bool,
    progress: Option<Py<Progress>>,
) -> PyResult<Simulated> {
    let version: PgVersion = server_version.parse().map_err(CoreError::from)?;
    let spec = ProfileSpec::from_json(profile_json).map_err(CoreError::from)?;
    let drives_server = events.is_none();
    let timing = pace
        .map(|pace| clock::timing(pace, windows, drives_server))
        .transpose()
        .map_err(CoreError::from)?;
    let conditions = run::Conditions {
        timing,
        fillfactors_later: fillfactors_later.unwrap_or_default(),
        fillfactors_at: fillfactors_at.unwrap_or_default(),
        rewrites: clock::rewrites_at(rewrites.unwrap_or_default()).map_err(CoreError::from)?,
        interleaving,
        events: events
            .map(|events| events.into_iter().map(event).collect())
            .transpose()
            .map_err(CoreError::from)?,
        transactions,
        watch,
        models: [
            engine_of(engine).map_err(CoreError::from)?.model(),
            storage_of(storage).map_err(CoreError::from)?.model(),
        ]
        .into_iter()
        .flatten()
        .collect(),
        order,
        duration_s,
        standing: standing.map(|(share, lengths, inside)| run::Standing {
            share,
            lengths,
            inside,
        }),
        course: course.unwrap_or_default(),
        at_work,
        is_maintenance_measured,
    };
    let monitor = progress.map_or_else(Arc::default, |progress| monitor_of(&progress));
    let outcome = py.detach(|| {
        interruptible(&monitor, || {
            timed(|| run::play(&spec, version, &conditions, &monitor))
        })
    })?;
    let ((_, outcome), cpu_s) = outcome.map_err(CoreError::from)?;
    Ok(Simulated::new(version, outcome, cpu_s))
}

/// Runs `work` on a thread of its own and waits for it; a signal's exception, such as
/// `KeyboardInterrupt`, asks the run to stop, waits for that, and is raised.
///
/// # Errors
/// The signal's exception, or `TwinError` when the twin found itself at fault.
pub fn interruptible<T: Send, E: Send>(
    monitor: &Monitor,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<Result<T, E>> {
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let started = std::thread::Builder::new().spawn_scoped(scope, move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            // Nobody waits any more only if this thread is being left behind.
            let _ = sender.send(done);
        });
        if let Err(error) = started {
            return Err(CoreError::no_thread(&error).into());
        }
        let mut interrupted = Ok(());
        let done = loop {
            match receiver.recv_timeout(SIGNALS_EVERY) {
                Ok(done) => break done,
                Err(RecvTimeoutError::Timeout) if interrupted.is_ok() => {
                    interrupted = Python::attach(|py| py.check_signals());
                    if interrupted.is_err() {
                        monitor.cancel();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the thread always answers"),
            }
        };
        interrupted?;
        done.map_err(|panic| {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            CoreError::bug(message.unwrap_or("no message")).into()
        })
    })
}
