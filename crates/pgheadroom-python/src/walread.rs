//! The WAL reader for Python: files in, sums out, one call per range.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pgheadroom_layout::Lsn;
use pgheadroom_walread::detail::End;
use pgheadroom_walread::format::Major;
use pgheadroom_walread::image::Pages;
use pgheadroom_walread::piece::Piece;
use pgheadroom_walread::run::{run, run_sink, run_stream};
use pgheadroom_walread::{Cause, Chosen, Gap, Outcome, Range, WalError, Wanted, choose, rmgr};
use pyo3::prelude::*;

use crate::error::CoreError;

const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// A relation's numbers, None where records have no block, and its sums.
type RelationTuple = (Option<(u32, u32, u32)>, u64, u64, u64, u64);

/// Number, first record, how and when it ended, records, bytes, bytes of images.
type TransactionTuple = (u32, u64, &'static str, Option<i64>, u64, u64, u64);

/// From where to where, the file, and what is wrong there.
pub(crate) type GapTuple = (u64, u64, String, &'static str);

pub(crate) fn gap_tuples(gaps: &[Gap]) -> Vec<GapTuple> {
    let gaps = gaps.iter();
    gaps.map(|gap| (gap.from.0, gap.to.0, gap.path.clone(), gap.why))
        .collect()
}

/// What a range of WAL adds up to; see `_core.pyi`.
#[pyclass(module = "pgheadroom._core", frozen)]
pub struct WalSums {
    chosen: Chosen,
    outcome: Outcome,
}

#[pymethods]
impl WalSums {
    #[getter]
    fn major(&self) -> u32 {
        self.outcome.tally.major().number()
    }

    #[getter]
    fn system_identifier(&self) -> u64 {
        self.chosen.pieces.first().map_or(0, |piece| piece.system)
    }

    #[getter]
    fn timeline(&self) -> u32 {
        self.chosen.timeline
    }

    #[getter]
    fn segment_bytes(&self) -> u64 {
        let first = self.chosen.pieces.first();
        first.map_or(0, |piece| piece.segment_bytes)
    }

    #[getter]
    fn history_missing(&self) -> bool {
        self.chosen.history_missing
    }

    #[getter]
    fn files(&self) -> usize {
        self.chosen.pieces.len()
    }

    #[getter]
    fn not_yet_written(&self) -> Vec<PathBuf> {
        self.chosen.not_yet_written.clone()
    }

    #[getter]
    fn other_timelines(&self) -> Vec<PathBuf> {
        self.chosen.other_timelines.clone()
    }

    #[getter]
    fn total(&self) -> (u64, u64, u64, u64) {
        let tally = &self.outcome.tally;
        let total = tally.total;
        (total.records, total.bytes, tally.fpi, total.fpi_bytes)
    }

    #[getter]
    fn overhead_bytes(&self) -> u64 {
        self.outcome.tally.overhead_bytes()
    }

    #[getter]
    fn spans(&self) -> Vec<(u64, u64)> {
        let spans = self.outcome.tally.spans.iter();
        spans.map(|(from, to)| (from.0, to.0)).collect()
    }

    #[getter]
    fn ended_us(&self) -> Option<(i64, i64)> {
        self.outcome.tally.ended
    }

    #[getter]
    fn relations(&self) -> Vec<RelationTuple> {
        let relations = self.outcome.tally.relations().into_iter();
        relations
            .map(|(relation, sums)| {
                let numbers =
                    relation.map(|found| (found.tablespace, found.database, found.relfilenode));
                (
                    numbers,
                    sums.total.records,
                    sums.total.bytes,
                    sums.fpi,
                    sums.fpi_bytes,
                )
            })
            .collect()
    }

    #[getter]
    fn causes(&self) -> Vec<(usize, String, u64, u64)> {
        let mut found = Vec::new();
        for (at, (_, sums)) in self.outcome.tally.relations().into_iter().enumerate() {
            let mut causes = sums.by_cause.clone();
            causes.sort_unstable_by_key(|(cause, _)| *cause);
            found.extend(causes.iter().map(|(cause, count)| {
                let name = Cause::name(usize::from(*cause));
                (at, name, count.records, count.bytes)
            }));
        }
        found
    }

    #[getter]
    fn record_types(&self) -> Vec<(String, String, u64, u64, u64)> {
        let tally = &self.outcome.tally;
        tally
            .types()
            .map(|(id, index, sums)| {
                let name = rmgr::type_name(tally.major(), id, index);
                (
                    rmgr::name(id),
                    name,
                    sums.records,
                    sums.bytes,
                    sums.fpi_bytes,
                )
            })
            .collect()
    }

    #[getter]
    fn memo(&self) -> Vec<(&'static str, u64)> {
        self.outcome.tally.memo.named().to_vec()
    }

    #[getter]
    fn redo_points(&self) -> Vec<u64> {
        let points = self.outcome.tally.detail.redo_points.iter();
        points.map(|lsn| lsn.0).collect()
    }

    #[getter]
    fn slices(&self) -> Vec<(u64, i64)> {
        let slices = self.outcome.tally.detail.slices.iter();
        slices.map(|(lsn, slice)| (lsn.0, *slice)).collect()
    }

    #[getter]
    fn stretches(&self) -> Vec<(u64, u64, u64)> {
        let stretches = self.outcome.tally.detail.stretches.iter();
        stretches
            .map(|sums| (sums.records, sums.bytes, sums.fpi_bytes))
            .collect()
    }

    #[getter]
    fn transactions(&self) -> Vec<TransactionTuple> {
        let largest = self.outcome.tally.detail.transactions.largest();
        largest
            .iter()
            .map(|found| {
                let end = match found.end {
                    End::Open => "open",
                    End::Commit => "commit",
                    End::Abort => "abort",
                };
                let sums = found.sums;
                (
                    found.xid,
                    found.first.0,
                    end,
                    found.ended,
                    sums.records,
                    sums.bytes,
                    sums.fpi_bytes,
                )
            })
            .collect()
    }

    #[getter]
    fn gaps(&self) -> Vec<GapTuple> {
        gap_tuples(&self.outcome.gaps)
    }

    #[getter]
    fn end(&self) -> Option<(u64, &'static str)> {
        let end = self.outcome.end.as_ref();
        end.map(|broken| (broken.lsn.0, broken.why))
    }
}

/// Reads WAL; see `_core.pyi`.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Python's callers name them
#[pyo3(signature = (paths, *, timeline=None, from_lsn=None, to_lsn=None, times_us=None,
                    cuts=None, slice_us=None, transactions=false, threads=1, open_end=false))]
pub fn wal_sums(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    timeline: Option<u32>,
    from_lsn: Option<u64>,
    to_lsn: Option<u64>,
    times_us: Option<(i64, i64)>,
    cuts: Option<Vec<u64>>,
    slice_us: Option<i64>,
    transactions: bool,
    threads: usize,
    open_end: bool,
) -> PyResult<WalSums> {
    let wanted = Wanted {
        cuts: cuts.unwrap_or_default().into_iter().map(Lsn).collect(),
        slice_us,
        transactions,
    };
    let range = Range {
        times: times_us,
        ..positions(from_lsn, to_lsn)
    };
    let stop = AtomicBool::new(false);
    let work = || read(&paths, timeline, range, &wanted, (threads, open_end), &stop);
    let sums = py.detach(|| watched(&stop, work))?;
    Ok(sums.map_err(CoreError::from)?)
}

/// A record's position, relation, fork, block, and the page; None where it cannot be put back.
type PageTuple = (u64, (u32, u32, u32), u8, u32, Option<Vec<u8>>);

/// Pages out of images; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (paths, *, timeline=None, from_lsn=None, to_lsn=None, most=1000))]
pub fn wal_pages(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    timeline: Option<u32>,
    from_lsn: Option<u64>,
    to_lsn: Option<u64>,
    most: usize,
) -> PyResult<Vec<PageTuple>> {
    let range = positions(from_lsn, to_lsn);
    let stop = AtomicBool::new(false);
    let work = || {
        let chosen = choose(&paths, timeline)?;
        let sink = Pages::new(range.from, range.to, most);
        Ok(run_sink(&chosen.pieces, range, sink, &stop)?.0)
    };
    let pages: Result<Pages, WalError> = py.detach(|| watched(&stop, work))?;
    let found = pages.map_err(CoreError::from)?.found.into_iter();
    Ok(found
        .map(|one| {
            let relation = one.relation;
            let numbers = (relation.tablespace, relation.database, relation.relfilenode);
            (one.lsn.0, numbers, one.fork, one.blkno, one.page.ok())
        })
        .collect())
}

/// Resource manager, record type, cause, and the cause of images of the block 0 and of others.
type KindTuple = (String, String, String, String, String);

/// What records count under; see `_core.pyi`.
#[pyfunction]
pub fn wal_kinds(major: u32) -> Vec<KindTuple> {
    let Some(major) = Major::of_number(major) else {
        return Vec::new();
    };
    let name = |cause: Cause| Cause::name(cause.index());
    let kinds = (0..=u8::MAX).flat_map(|id| (0..16).map(move |index| (id, index)));
    kinds
        .filter(|(id, index)| rmgr::type_index(*id, index << 4) == *index)
        .map(|(id, index)| {
            (
                rmgr::name(id),
                rmgr::type_name(major, id, index),
                name(Cause::of_kind(major, id, index)),
                name(Cause::of_image_of_kind(id, index, 0)),
                name(Cause::of_image_of_kind(id, index, 3)),
            )
        })
        .collect()
}

pub(crate) fn positions(from_lsn: Option<u64>, to_lsn: Option<u64>) -> Range {
    Range {
        from: Lsn(from_lsn.unwrap_or(0)),
        to: Lsn(to_lsn.unwrap_or(u64::MAX)),
        times: None,
    }
}

fn read(
    paths: &[PathBuf],
    timeline: Option<u32>,
    range: Range,
    wanted: &Wanted,
    (threads, open_end): (usize, bool),
    stop: &AtomicBool,
) -> Result<WalSums, WalError> {
    if let [path] = paths
        && let Some(bytes) = stream(path)?
    {
        let shown = path.display().to_string();
        let (piece, outcome) = run_stream(&shown, bytes, range, wanted, open_end, stop)?;
        let chosen = of_stream(piece);
        return Ok(WalSums { chosen, outcome });
    }
    let chosen = choose(paths, timeline)?;
    let outcome = run(&chosen.pieces, range, wanted, threads, stop)?;
    Ok(WalSums { chosen, outcome })
}

/// Standard input, or a pipe, which can be read only once.
fn stream(path: &Path) -> Result<Option<Box<dyn Read + Send>>, WalError> {
    if path.as_os_str() == "-" {
        return Ok(Some(Box::new(std::io::stdin())));
    }
    let is_pipe = fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    if !is_pipe {
        return Ok(None);
    }
    match File::open(path) {
        Ok(file) => Ok(Some(Box::new(file))),
        Err(error) => Err(WalError::Unreadable {
            path: path.display().to_string(),
            problem: error.to_string(),
        }),
    }
}

fn of_stream(piece: Piece) -> Chosen {
    Chosen {
        timeline: piece.timeline,
        pieces: vec![piece],
        ..Chosen::default()
    }
}

/// Runs `work` on a thread of its own; a signal's exception, such as Ctrl-C's, tells it to stop.
pub(crate) fn watched<T: Send>(stop: &AtomicBool, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let (done, waiting) = channel();
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().spawn_scoped(scope, move || {
            // Nobody waits any more only if an exception is on its way.
            drop(done.send(work()));
        });
        let started = started.map_err(|error| CoreError::no_thread(&error))?;
        loop {
            match waiting.recv_timeout(SIGNALS_EVERY) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(interrupted) = Python::attach(|py| py.check_signals()) {
                        stop.store(true, Ordering::Relaxed);
                        return Err(interrupted);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => match started.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => return Err(CoreError::bug("the reader gave no answer").into()),
                },
            }
        }
    })
}
