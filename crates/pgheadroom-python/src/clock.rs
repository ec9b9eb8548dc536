//! Simulated time for Python: how fast a run goes, what happened by the clock, and its windows.

use pgheadroom_twin::clock::Pace;
use pgheadroom_twin::profile::ProfileError;
use pgheadroom_twin::run::{Outcome, RewriteAt, Timing};
use pgheadroom_twin::series::{Point, TablePoint};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What, to which table, whether its TOAST table is meant, from and to which second, pages.
pub type HappenedTuple = (&'static str, Option<String>, bool, f64, Option<f64>, usize);

/// `("even", transactions a second)` or `("arrivals", seconds)`.
///
/// # Errors
/// [`ProfileError::Unplayable`]: another word, or a number that is not positive.
pub fn timing(
    (kind, number): (String, f64),
    windows: u32,
    drives_server: bool,
) -> Result<Timing, ProfileError> {
    let pace = match kind.as_str() {
        "even" => Some(Pace::Even { per_s: number }),
        "arrivals" => Some(Pace::Arrivals { duration_s: number }),
        _ => None,
    };
    let pace = pace.filter(|_| number.is_finite() && number > 0.0);
    let pace = pace.ok_or_else(|| ProfileError::Unplayable {
        field: "pace".to_owned(),
        reason: format!("found {kind:?} and {number}, expected even or arrivals, and more than 0"),
    })?;
    Ok(Timing {
        pace,
        windows,
        drives_server,
    })
}

/// What autovacuum and the checkpointer did, by the time when it began.
pub fn happened(outcome: &Outcome) -> Vec<HappenedTuple> {
    let Some(happened) = &outcome.happened else {
        return Vec::new();
    };
    let maintained = happened.maintained.iter().map(|done| {
        let kind = if done.is_vacuum {
            "autovacuum"
        } else {
            "autoanalyze"
        };
        let relation = done.relation;
        let table = outcome.tables[relation.table.0].name.clone();
        let pages = done.scanned_pages as usize;
        (
            kind,
            Some(table),
            relation.is_toast,
            done.began_s,
            done.ended_s,
            pages,
        )
    });
    let checkpoints = happened.checkpoints.iter().map(|checkpoint| {
        let (began_s, ended_s) = (checkpoint.began_s, checkpoint.ended_s);
        (
            "checkpoint",
            None,
            false,
            began_s,
            ended_s,
            checkpoint.pages,
        )
    });
    let mut all: Vec<HappenedTuple> = maintained.chain(checkpoints).collect();
    all.sort_by(|one, other| one.3.total_cmp(&other.3));
    all
}

/// When tables are to be rewritten, each by its name, from and until which fraction of the run;
/// without an end it is VACUUM FULL.
///
/// # Errors
/// [`ProfileError::Unplayable`]: a fraction outside 0 to 1, or an end before the beginning.
pub fn rewrites_at(
    rewrites: Vec<(String, f64, Option<f64>)>,
) -> Result<Vec<RewriteAt>, ProfileError> {
    let mut found = Vec::new();
    for (table, at_frac, until_frac) in rewrites {
        let until = until_frac.unwrap_or(at_frac);
        if !((0.0..=1.0).contains(&at_frac) && (at_frac..=1.0).contains(&until)) {
            return Err(ProfileError::Unplayable {
                field: "rewrites".to_owned(),
                reason: format!("found {at_frac} to {until}, expected fractions in their order"),
            });
        }
        found.push(RewriteAt {
            table,
            at_frac,
            until_frac,
        });
    }
    Ok(found)
}

/// What each rewrite did.
///
/// # Errors
/// Python's, when it has no memory.
pub fn rewrites<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let mut found = Vec::new();
    for rewrite in &outcome.rewrites {
        let (item, done) = (PyDict::new(py), &rewrite.done);
        item.set_item("table", &outcome.tables[rewrite.table.0].name)?;
        item.set_item("is_online", rewrite.is_online)?;
        item.set_item("transactions", rewrite.transactions)?;
        item.set_item("heap_pages", done.heap_pages)?;
        item.set_item("index_pages", done.index_pages)?;
        item.set_item("versions", done.versions)?;
        item.set_item("recently_dead", done.recently_dead)?;
        item.set_item("wal_records", done.wal.wal_records)?;
        item.set_item("wal_bytes", done.wal.wal_bytes)?;
        found.push(item);
    }
    Ok(found)
}

/// The windows as columns: sums since the start at the end of each, and pages named in it.
///
/// # Errors
/// Python's, when it has no memory.
pub fn series<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let none = Vec::new();
    let points = outcome
        .happened
        .as_ref()
        .map_or(&none, |happened| &happened.points);
    let column = |of: fn(&Point) -> u64| points.iter().map(of).collect::<Vec<u64>>();
    let series = PyDict::new(py);
    let times: Vec<f64> = points.iter().map(|point| point.t_s).collect();
    series.set_item("t_s", times)?;
    series.set_item("transactions", column(|point| point.transactions))?;
    series.set_item(
        "transaction_records",
        column(|point| point.transaction_wal.wal_records),
    )?;
    series.set_item(
        "transaction_bytes",
        column(|point| point.transaction_wal.wal_bytes),
    )?;
    let tables = PyDict::new(py);
    for (number, table) in outcome.tables.iter().enumerate() {
        let of_table = PyDict::new(py);
        for (key, value) in COLUMNS {
            let values = points.iter().map(|point| value(&point.tables[number]));
            of_table.set_item(key, values.collect::<Vec<u64>>())?;
        }
        tables.set_item(&table.name, of_table)?;
    }
    series.set_item("tables", tables)?;
    Ok(series)
}

type Column = (&'static str, fn(&TablePoint) -> u64);

const COLUMNS: [Column; 16] = [
    ("n_tup_ins", |point| point.counters.n_tup_ins),
    ("n_tup_upd", |point| point.counters.n_tup_upd),
    ("n_tup_del", |point| point.counters.n_tup_del),
    ("n_tup_hot_upd", |point| point.counters.n_tup_hot_upd),
    ("n_tup_newpage_upd", |point| {
        point.counters.n_tup_newpage_upd
    }),
    ("n_dead_tup", |point| {
        u64::try_from(point.counters.n_dead_tup).unwrap_or(0)
    }),
    ("old_page_upd", |point| point.counters.old_page_upd),
    ("old_page_hot_upd", |point| point.counters.old_page_hot_upd),
    ("heap_pages", |point| u64::from(point.heap_pages)),
    ("index_pages", |point| u64::from(point.index_pages)),
    ("wal_records", |point| point.wal.wal_records),
    ("wal_bytes", |point| point.wal.wal_bytes),
    ("wal_update_bytes", |point| point.update_bytes),
    ("wal_fpi", |point| point.wal.wal_fpi),
    ("wal_fpi_bytes", |point| point.wal.wal_fpi_bytes),
    ("pages_modified", |point| point.pages_modified as u64),
];
