//! What the log would be otherwise, for Python: one call per range.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use pgheadroom_layout::Lsn;
use pgheadroom_walread::facts::Facts;
use pgheadroom_walread::packing::{METHODS, Packed};
use pgheadroom_walread::replay::{BLOCKS_MOST, Replay, Trigger};
use pgheadroom_walread::run::run_sink;
use pgheadroom_walread::{Gap, choose};
use pyo3::prelude::*;

use crate::error::CoreError;
use crate::walread::{GapTuple, gap_tuples, positions, watched};

/// Relation; images that go, their bytes, bytes of the log; images that come, the same.
type ChangeTuple = ((u32, u32, u32), u64, u64, i64, u64, u64, i64);

/// Timeout, distance, checkpoints, changes of relations that have any.
type CourseTuple = (i64, u64, u64, Vec<ChangeTuple>);

/// Name, bytes of images, images with a length of their hole, processor time.
type MethodTuple = (&'static str, u64, u64, u64);

/// The log under other checkpoints; see `_core.pyi`.
#[pyclass(module = "pgheadroom._core", frozen, get_all)]
pub struct WalCourses {
    start_lsn: u64,
    hints_logged: bool,
    length_us: i64,
    checkpoints: usize,
    one_in: u64,
    fit: (u64, u64, u64, u64),
    courses: Vec<CourseTuple>,
    gaps: Vec<GapTuple>,
}

/// The log under other compressions; see `_core.pyi`.
#[pyclass(module = "pgheadroom._core", frozen, get_all)]
pub struct WalPacked {
    images: u64,
    logged_bytes: u64,
    unpacked_bytes: u64,
    with_length: u64,
    sampled: u64,
    sampled_bytes: u64,
    broken: u64,
    methods: Vec<MethodTuple>,
    gaps: Vec<GapTuple>,
}

/// Replays WAL under other checkpoints; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (paths, *, start_lsn, to_lsn, triggers, timeline=None, blocks_most=None))]
pub fn wal_courses(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    start_lsn: u64,
    to_lsn: u64,
    triggers: Vec<(i64, u64)>,
    timeline: Option<u32>,
    blocks_most: Option<usize>,
) -> PyResult<WalCourses> {
    let triggers: Vec<Trigger> = triggers
        .into_iter()
        .map(|(timeout_us, distance_bytes)| Trigger {
            timeout_us: timeout_us.max(1),
            distance_bytes: distance_bytes.max(1),
        })
        .collect();
    let stop = AtomicBool::new(false);
    let work = || {
        let chosen = choose(&paths, timeline)?;
        let range = positions(Some(start_lsn), Some(to_lsn));
        let first = chosen.pieces.first();
        let (major, segment_bytes) = first
            .map_or((pgheadroom_walread::Major::V18, 1 << 24), |piece| {
                (piece.major, piece.segment_bytes)
            });
        let facts = Facts::new(major, range.from, range.to);
        let (facts, mut gaps) = run_sink(&chosen.pieces, range, facts, &stop)?;
        let bounds = (range.from, range.to);
        let blocks_most = blocks_most.unwrap_or(BLOCKS_MOST);
        let replay = Replay::new(&facts, segment_bytes, bounds, &triggers, blocks_most);
        let (replay, again) = run_sink(&chosen.pieces, range, replay, &stop)?;
        gaps.extend(again);
        Ok(courses_of(&facts, &replay, start_lsn, &gaps))
    };
    let found = py.detach(|| watched(&stop, work))?;
    let found: Result<WalCourses, pgheadroom_walread::WalError> = found;
    Ok(found.map_err(CoreError::from)?)
}

fn courses_of(facts: &Facts, replay: &Replay<'_>, start_lsn: u64, gaps: &[Gap]) -> WalCourses {
    let courses = replay.courses.iter().map(|course| {
        let changed = replay.relations.iter().zip(&course.changes);
        let changes = changed
            .filter(|(_, change)| change.images_gone + change.images_new > 0)
            .map(|(relation, change)| {
                (
                    (relation.tablespace, relation.database, relation.relfilenode),
                    change.images_gone,
                    change.image_bytes_gone,
                    change.bytes_gone,
                    change.images_new,
                    change.image_bytes_new,
                    change.bytes_new,
                )
            })
            .collect();
        let trigger = course.trigger;
        (
            trigger.timeout_us,
            trigger.distance_bytes,
            course.checkpoints,
            changes,
        )
    });
    let fit = replay.fit;
    let points: BTreeSet<u64> = facts
        .redo_points
        .iter()
        .map(|(redo, _)| redo.0)
        .filter(|redo| *redo > start_lsn)
        .collect();
    WalCourses {
        start_lsn,
        hints_logged: facts.hints_logged,
        length_us: facts.clock.length_us(),
        checkpoints: points.len(),
        one_in: replay.one_in(),
        fit: (
            fit.images,
            fit.differing,
            fit.estimated_bytes,
            fit.error_bytes,
        ),
        courses: courses.collect(),
        gaps: gap_tuples(gaps),
    }
}

/// Compresses the images of WAL otherwise; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (paths, *, from_lsn, to_lsn, every, timeline=None))]
pub fn wal_packed(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    from_lsn: u64,
    to_lsn: u64,
    every: u64,
    timeline: Option<u32>,
) -> PyResult<WalPacked> {
    let stop = AtomicBool::new(false);
    let work = || {
        let chosen = choose(&paths, timeline)?;
        let range = positions(Some(from_lsn), Some(to_lsn));
        let sink = Packed::new(Lsn(from_lsn), Lsn(to_lsn), every);
        let (mut packed, gaps) = run_sink(&chosen.pieces, range, sink, &stop)?;
        packed.flush();
        Ok((packed, gaps))
    };
    let found = py.detach(|| watched(&stop, work))?;
    let found: Result<_, pgheadroom_walread::WalError> = found;
    let (packed, gaps) = found.map_err(CoreError::from)?;
    let methods = packed.methods.iter().zip(METHODS);
    Ok(WalPacked {
        images: packed.images,
        logged_bytes: packed.logged_bytes,
        unpacked_bytes: packed.unpacked_bytes,
        with_length: packed.with_length,
        sampled: packed.sampled,
        sampled_bytes: packed.sampled_bytes,
        broken: packed.broken,
        methods: methods
            .map(|(sums, (_, name))| (name, sums.bytes, sums.with_length, sums.cpu_ns))
            .collect(),
        gaps: gap_tuples(&gaps),
    })
}
