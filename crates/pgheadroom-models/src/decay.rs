//! The decay of order: a table loaded in key order, of which rounds replace a share of the rows.
//!
//! ```text
//! load in key order, index, VACUUM
//! each round: DELETE WHERE random() < share; VACUUM; INSERT of random keys; ranges; ANALYZE
//! ```
//!
//! The table and the settings are a profile's; the program of the source document (Tom Lane,
//! pgsql-hackers 2007) is one, which the experiment `cluster-decay` of the laboratory keeps and
//! plays on servers too. A row is made from its key as a profile's rows are from their number.
//! `random()` after `setseed` is PostgreSQL's own generator, so that with a server's seeds the same
//! rows are deleted and the same keys inserted, and on the heap every row lies where the server
//! puts it (15 and later). Left out: CLUSTER's own writing, whose pages are those of a load in
//! order.

use pgheadroom_layout::PgVersion;
use pgheadroom_twin::executor::{Action, Database, Row, StatementError};
use pgheadroom_twin::order::KeyOrder;
use pgheadroom_twin::pgbench::Prng;
use pgheadroom_twin::profile::{LoadedTable, Monitor, ProfileError, ProfileSpec, load};
use pgheadroom_twin::value::Value;

use crate::engine::Engine;

/// Rows between two looks at the monitor; arbitrary.
const ROWS_PER_REPORT: u64 = 1024;

/// What is played.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The server's settings and one table, whose key is the first column of its index.
    pub profile: ProfileSpec,
    /// Keys of a range beyond its first.
    pub range_span: i64,
    /// How rows are stored.
    pub engine: Engine,
    /// Whether each INSERT's rows come in key order.
    pub is_sorted: bool,
    /// Share of the rows that a round deletes; so many are inserted.
    pub churn_frac: f64,
    /// First keys of the ranges that are looked at before the first round.
    pub starts: Vec<i64>,
    /// The rounds.
    pub rounds: Vec<Round>,
}

/// What is drawn for a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// The argument of `setseed` before the DELETE, -1 to 1.
    pub delete_seed: f64,
    /// The same before the INSERT.
    pub insert_seed: f64,
    /// First keys of the ranges that are looked at afterwards.
    pub starts: Vec<i64>,
}

/// What a round leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// Distinct heap pages of the rows of a range, on average; none without ranges.
    pub pages_per_range: Option<f64>,
    /// Correlation of key and place.
    pub correlation: Option<f64>,
    /// Pages of the table.
    pub heap_pages: u32,
    /// Pages of its index.
    pub index_pages: u32,
    /// Rows in it.
    pub live_rows: u64,
}

/// Plays the program; the state before the first round and after each.
///
/// # Errors
/// [`ProfileError`]: the profile has not one table with a key of integers, a statement fails, or
/// it was told to stop.
///
/// # Panics
/// When the rows make more pages than a table can have.
pub fn play(
    program: &Program,
    version: PgVersion,
    monitor: &Monitor,
) -> Result<Vec<State>, ProfileError> {
    let [spec] = program.profile.table.as_slice() else {
        return Err(unplayable(format!(
            "{} tables, expected one",
            program.profile.table.len()
        )));
    };
    let churned = churned(spec.rows, program.churn_frac);
    monitor.start(count(spec.rows) + count(churned) * program.rounds.len() as u64);
    let mut db = load::database(&program.profile.server, version);
    let mut loaded = load::load_tables(&mut db, &program.profile.table, monitor)?;
    let loaded = loaded.remove(0);
    let key = db.table(loaded.table).order_column();
    let key = key.ok_or_else(|| unplayable(format!("{} has no key of integers", spec.name)))?;
    let models: Vec<_> = program.engine.model().into_iter().collect();
    db.use_models(&models);
    let state = |db: &Database, starts: &[i64]| {
        let order = KeyOrder::of(db, loaded.table, key);
        state(db, &loaded, &order, starts, program.range_span)
    };
    let mut states = vec![state(&db, &program.starts)];
    for round in &program.rounds {
        let mut random = Prng::from_fraction(round.delete_seed);
        // Each visible row in the order of the scan draws once, as the executor's filter does.
        let draws = std::cell::RefCell::new(&mut random);
        let wanted = |_: Row<'_>| draws.borrow_mut().fraction() < program.churn_frac;
        let deleted = db.by_seq_scan(loaded.table, wanted, &Action::Delete);
        deleted.map_err(|error| failure(&error))?;
        db.commit();
        let vacuumed = db.vacuum(loaded.table);
        vacuumed.map_err(|error| failure(&error))?;
        let mut random = Prng::from_fraction(round.insert_seed);
        let mut keys: Vec<i64> = (0..churned)
            .map(|_| drawn_key(&mut random, spec.rows))
            .collect();
        if program.is_sorted {
            keys.sort_unstable();
        }
        insert(&mut db, &loaded, &keys, monitor)?;
        states.push(state(&db, &round.starts));
        db.forget_target_blocks(); // ANALYZE comes last
    }
    Ok(states)
}

fn unplayable(reason: String) -> ProfileError {
    let field = "cluster-decay".to_owned();
    ProfileError::Unplayable { field, reason }
}

fn failure(error: &StatementError) -> ProfileError {
    unplayable(error.to_string())
}

/// `rows * churn_pct / 100` of the experiment, whose share is a whole number of per cent.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn churned(rows: i64, churn_frac: f64) -> i64 {
    (rows as f64 * churn_frac + 1e-6).floor() as i64
}

fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or(0)
}

/// `(random() * rows)::int`, which rounds halves to even.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn drawn_key(random: &mut Prng, rows: i64) -> i64 {
    (random.fraction() * rows as f64).round_ties_even() as i64
}

fn insert(
    db: &mut Database,
    into: &LoadedTable,
    keys: &[i64],
    monitor: &Monitor,
) -> Result<(), ProfileError> {
    let mut left = 0;
    let mut values: Vec<Value> = Vec::new();
    for &key in keys {
        values.clear();
        for (number, (rule, column_type)) in (1..).zip(into.rules.iter().zip(&into.column_types)) {
            let made = rule.value(column_type, key, number);
            values.push(made.map_err(|error| failure(&StatementError::Value(error)))?);
        }
        db.insert(into.table, &values)
            .map_err(|error| failure(&error))?;
        left += 1;
        if left == ROWS_PER_REPORT {
            monitor.advance(left)?;
            left = 0;
        }
    }
    db.commit();
    monitor.advance(left)
}

#[allow(clippy::cast_precision_loss)] // far fewer than 2^52 pages
fn state(
    db: &Database,
    of: &LoadedTable,
    order: &KeyOrder,
    starts: &[i64],
    range_span: i64,
) -> State {
    let pages = starts
        .iter()
        .map(|&start| order.pages_in(start, start + range_span));
    let pages: usize = pages.sum();
    State {
        pages_per_range: (!starts.is_empty()).then(|| pages as f64 / starts.len() as f64),
        correlation: order.correlation(),
        heap_pages: db.table(of.table).heap().page_count(),
        index_pages: db.table(of.table).index_pages().iter().sum(),
        live_rows: order.rows() as u64,
    }
}
