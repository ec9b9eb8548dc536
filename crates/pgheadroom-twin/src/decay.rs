//! The churn program of the source document (Tom Lane, pgsql-hackers 2007) in the twin.
//!
//! ```text
//! load in key order, index, CLUSTER, VACUUM
//! each round: DELETE WHERE random() < share; VACUUM; INSERT of random keys; ranges; ANALYZE
//! ```
//!
//! A table `(k int, d text)` of rows of 350 characters, 21 a page, and a non-unique index on `k`.
//! `random()` after `setseed` is PostgreSQL's own generator, so that with a server's seeds the same
//! rows are deleted and the same keys inserted, and on the heap every row lies where the server
//! puts it (15 and later). The same program runs on servers in the laboratory, experiment
//! `cluster-decay`. Left out: CLUSTER's own writing, whose pages are those of a load in order.

use pgheadroom_layout::{HeapFillfactor, PgVersion};

use crate::engine::Engine;
use crate::executor::{
    Action, ColumnDefinition, Database, IndexDefinition, Row, StatementError, TableDefinition,
    TableId,
};
use crate::order::KeyOrder;
use crate::pgbench::Prng;
use crate::run::Monitor;
use crate::value::{Text, Value};
use crate::wal::WalSettings;

/// Characters of `d`.
pub const ROW_CHARACTERS: u32 = 350;
/// The document's `BETWEEN st AND st + 1000`.
pub const RANGE_SPAN: i64 = 1000;
const K: usize = 0;
/// Rows between two looks at the monitor; arbitrary.
const ROWS_PER_REPORT: i64 = 1024;

/// What is played.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Rows that are loaded, with keys from 1.
    pub rows: i64,
    /// Of the table, in percent.
    pub fillfactor: HeapFillfactor,
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

/// Why a program ended early.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecayError {
    /// A statement failed.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// Somebody asked to stop.
    #[error("the twin was told to stop before it was done")]
    Cancelled,
}

/// Plays the program; the state before the first round and after each.
///
/// # Errors
/// [`DecayError`] when a statement fails, or it was told to stop.
///
/// # Panics
/// When 21 rows a page make more pages than a table can have.
pub fn play(
    program: &Program,
    version: PgVersion,
    monitor: &Monitor,
) -> Result<Vec<State>, DecayError> {
    let churned = churned(program);
    monitor.start(total(program.rows + churned * rounds(program)));
    let settings = WalSettings {
        full_page_writes: false,
        hints_are_logged: false,
        is_logical: false,
    };
    let mut db = Database::new(version.behaviour(), settings);
    let table = load(&mut db, program, monitor)?;
    db.use_engine(program.engine);
    let mut states = vec![state(&db, table, &program.starts)];
    for round in &program.rounds {
        let mut random = Prng::from_fraction(round.delete_seed);
        // Each visible row in the order of the scan draws once, as the executor's filter does.
        let draws = std::cell::RefCell::new(&mut random);
        let wanted = |_: Row<'_>| draws.borrow_mut().fraction() < program.churn_frac;
        db.by_seq_scan(table, wanted, &Action::Delete)?;
        db.commit();
        db.vacuum(table);
        let mut random = Prng::from_fraction(round.insert_seed);
        let mut keys: Vec<i64> = (0..churned)
            .map(|_| drawn_key(&mut random, program.rows))
            .collect();
        if program.is_sorted {
            keys.sort_unstable();
        }
        insert(&mut db, table, keys.into_iter(), monitor)?;
        states.push(state(&db, table, &round.starts));
        db.forget_target_blocks(); // ANALYZE comes last
    }
    Ok(states)
}

/// `rows * churn_pct / 100` of the experiment, whose share is a whole number of per cent.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn churned(program: &Program) -> i64 {
    (program.rows as f64 * program.churn_frac + 1e-6).floor() as i64
}

fn rounds(program: &Program) -> i64 {
    i64::try_from(program.rounds.len()).expect("few rounds")
}

fn total(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or(0)
}

/// `(random() * rows)::int`, which rounds halves to even.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn drawn_key(random: &mut Prng, rows: i64) -> i64 {
    (random.fraction() * rows as f64).round_ties_even() as i64
}

fn load(db: &mut Database, program: &Program, monitor: &Monitor) -> Result<TableId, DecayError> {
    let column =
        |name, type_name: &str| ColumnDefinition::new(name, type_name).expect("a built-in type");
    // Text of one length is stored as bpchar is, and takes no place of its own here.
    let d = format!("bpchar({ROW_CHARACTERS})");
    let table = db.create_table(TableDefinition {
        columns: vec![column("k", "int4"), column("d", &d)],
        indexes: Vec::new(),
        fillfactor: program.fillfactor,
    })?;
    insert(db, table, 1..=program.rows, monitor)?;
    db.create_index(table, IndexDefinition::on_columns(vec![K], false))?;
    db.vacuum(table);
    Ok(table)
}

fn insert(
    db: &mut Database,
    table: TableId,
    keys: impl Iterator<Item = i64>,
    monitor: &Monitor,
) -> Result<(), DecayError> {
    let d = Value::Text(Text::padded(b'x', ROW_CHARACTERS));
    let mut left = 0;
    for key in keys {
        db.insert(table, &[key.into(), d.clone()])?;
        left += 1;
        if left == ROWS_PER_REPORT {
            let told = monitor.advance(total(left));
            told.map_err(|_| DecayError::Cancelled)?;
            left = 0;
        }
    }
    db.commit();
    monitor
        .advance(total(left))
        .map_err(|_| DecayError::Cancelled)
}

#[allow(clippy::cast_precision_loss)] // far fewer than 2^52 pages
fn state(db: &Database, table: TableId, starts: &[i64]) -> State {
    let rows = KeyOrder::of(db, table, K);
    let pages = starts
        .iter()
        .map(|&start| rows.pages_in(start, start + RANGE_SPAN));
    let pages: usize = pages.sum();
    State {
        pages_per_range: (!starts.is_empty()).then(|| pages as f64 / starts.len() as f64),
        correlation: rows.correlation(),
        heap_pages: db.table(table).heap().page_count(),
        index_pages: db.table(table).index_pages().iter().sum(),
        live_rows: rows.rows() as u64,
    }
}
