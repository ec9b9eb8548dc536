//! Operations as a profile describes them: what is done, to which keys, how often.
//!
//! One client with pgbench's generator. Draws of a transaction, in order: which one it is; for each
//! operation its key and, if it changes a share of the rows only, whether; last whether it is
//! rolled back. Left out: other clients, changes of strings and lengths.

use crate::executor::TableId;
use crate::pgbench::{Generators, Prng, permute};
use crate::workload::{Addition, Deed, End, Operation, Values, Workload};

/// One part in a million: how exactly frequencies are drawn.
const FREQUENCY_UNIT: f64 = 1_000_000.0;

/// Which keys an operation takes, of 1 to the table's rows as loaded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pick {
    /// All alike.
    Uniform,
    /// pgbench's `random_zipfian` with this parameter.
    Zipfian(f64),
    /// pgbench's `random_gaussian` with this parameter.
    Gaussian(f64),
    /// With probability `weight` among the first `rows_frac` of the keys, else among the others.
    HotSet {
        /// Share of the rows that is hot.
        rows_frac: f64,
        /// Share of the operations that goes there.
        weight: f64,
    },
    /// One after the other.
    Sequential,
    /// Every nth, around and around.
    Stride(i64),
    /// The key inserted last; the highest loaded one before any insertion.
    Newest,
    /// The smallest key not taken yet.
    Oldest,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// INSERT of new rows with these values, the first replaced by the key.
    Insert(Values),
    /// UPDATE that assigns a column and adds 1 to it in this share of the statements.
    Update {
        /// Position of the column.
        column: usize,
        /// Share of the statements that change it; 1 draws nothing.
        changed_frac: f64,
    },
    /// DELETE.
    Delete,
    /// SELECT.
    Select,
    /// SELECT ... FOR UPDATE.
    Lock,
    /// INSERT ... ON CONFLICT DO UPDATE that adds 1 to a column.
    Upsert(Values, usize),
}

/// An operation of a profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfileOperation {
    /// The table.
    pub table: TableId,
    /// Its rows as loaded.
    pub rows: i64,
    /// What is done.
    pub kind: Kind,
    /// To which keys; not used by insertions.
    pub pick: Pick,
    /// Whether keys are scattered over the table.
    pub scatter: bool,
    /// Keys of one statement.
    pub rows_per_statement: i64,
    /// Whether rows are found by reading the whole table.
    pub by_seq_scan: bool,
}

/// Operations that run in one transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileTransaction {
    /// In this order.
    pub operations: Vec<ProfileOperation>,
    /// How often, relative to the other transactions.
    pub weight: i64,
    /// Share that is rolled back; 0 draws nothing.
    pub abort_frac: f64,
}

/// A profile's operations, run by one client.
#[derive(Debug, Clone)]
pub struct ProfileWorkload {
    transactions: Vec<ProfileTransaction>,
    weights: Vec<i64>,
    generators: Generators,
    left: u64,
    /// By transaction and operation: how often it was attempted.
    attempts: Vec<Vec<i64>>,
    /// By table: insert statements attempted, and rows of the last one.
    inserts: Vec<(i64, i64)>,
}

impl ProfileWorkload {
    /// `count` transactions with `--random-seed=seed`.
    #[must_use]
    pub fn new(transactions: Vec<ProfileTransaction>, seed: u64, count: u64) -> Self {
        let operations = || transactions.iter().flat_map(|script| &script.operations);
        let tables = operations().map(|operation| operation.table.0 + 1).max();
        Self {
            weights: transactions.iter().map(|script| script.weight).collect(),
            attempts: transactions
                .iter()
                .map(|script| vec![0; script.operations.len()])
                .collect(),
            inserts: vec![(0, 0); tables.unwrap_or(0)],
            generators: Generators::new(seed, 1),
            left: count,
            transactions,
        }
    }
}

impl Workload for ProfileWorkload {
    fn next_transaction(&mut self, operations: &mut Vec<Operation>) -> Option<End> {
        self.left = self.left.checked_sub(1)?;
        let chosen = self.generators.choose_script(&self.weights);
        let script = &self.transactions[chosen];
        let client = &mut self.generators.clients[0];
        for (operation, attempt) in script.operations.iter().zip(&mut self.attempts[chosen]) {
            let (statements, last_rows) = &mut self.inserts[operation.table.0];
            let newest = operation.rows + *statements * *last_rows;
            if let Kind::Insert(values) = operation.kind {
                *statements += 1;
                *last_rows = operation.rows_per_statement;
                for key in newest + 1..=newest + operation.rows_per_statement {
                    let table = operation.table;
                    let values = values.with_key(key);
                    operations.push(Operation::Insert { table, values });
                }
            } else {
                let key = operation.key(*attempt, newest, client);
                operations.push(operation.at(key, client));
            }
            *attempt += 1;
        }
        let fails = script.abort_frac > 0.0 && happens(script.abort_frac, client);
        Some(if fails { End::Rollback } else { End::Commit })
    }
}

/// Draws whether something of this frequency happens.
#[allow(clippy::cast_possible_truncation)] // a part of a million
fn happens(frequency: f64, client: &mut Prng) -> bool {
    client.random(1, 1_000_000) <= (frequency * FREQUENCY_UNIT).round() as i64
}

impl ProfileOperation {
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // keys are below 2^53
    fn key(&self, attempt: i64, newest: i64, client: &mut Prng) -> i64 {
        let rows = self.rows;
        let key = match self.pick {
            Pick::Uniform => client.random(1, rows),
            Pick::Zipfian(theta) => client.random_zipfian(1, rows, theta),
            Pick::Gaussian(parameter) => client.random_gaussian(1, rows, parameter),
            Pick::HotSet { rows_frac, weight } => {
                let hot = ((rows_frac * rows as f64).floor() as i64).max(1);
                if happens(weight, client) {
                    client.random(1, hot)
                } else {
                    client.random(hot + 1, rows)
                }
            }
            Pick::Sequential => 1 + attempt * self.rows_per_statement % rows,
            Pick::Stride(step) => 1 + attempt * step % rows,
            Pick::Newest => newest,
            Pick::Oldest => attempt + 1,
        };
        if self.scatter {
            1 + permute(key - 1, rows, 1)
        } else {
            key
        }
    }

    fn at(&self, low: i64, client: &mut Prng) -> Operation {
        let table = self.table;
        let high = low + self.rows_per_statement - 1;
        let deed = match self.kind {
            Kind::Update {
                column,
                changed_frac,
            } => {
                let changes = changed_frac >= 1.0 || happens(changed_frac, client);
                let addend = i64::from(changes);
                Deed::Add(Addition { column, addend })
            }
            Kind::Delete => Deed::Delete,
            Kind::Lock => Deed::Lock,
            Kind::Select => Deed::Read,
            Kind::Upsert(values, column) => {
                return Operation::Upsert {
                    table,
                    values: values.with_key(low),
                    addition: Addition { column, addend: 1 },
                };
            }
            Kind::Insert(_) => unreachable!("insertions have keys of their own"),
        };
        if self.by_seq_scan {
            Operation::BySeqScan {
                table,
                low,
                high,
                deed,
            }
        } else {
            Operation::ByKey {
                table,
                low,
                high,
                deed,
            }
        }
    }
}
