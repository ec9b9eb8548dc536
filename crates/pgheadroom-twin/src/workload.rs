//! Streams of operations, transaction by transaction.
//!
//! ```text
//! Workload::next_transaction -> [Operation, ...] + how it ends -> run::run -> Database
//! ```
//!
//! A workload only says what is done; where from is its own business: pgbench's scripts and
//! generator here, other sources by implementing the trait. No operation allocates.

mod profile;

pub use profile::{Kind, Pick, ProfileOperation, ProfileTransaction, ProfileWorkload};

use crate::executor::TableId;
use crate::pgbench::{Builtin, Generators};

/// Most columns whose values an operation names.
pub const MAX_VALUES: usize = 8;

/// Values of a row, or what is added to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values {
    values: [i64; MAX_VALUES],
    len: usize,
}

impl Values {
    /// These values.
    ///
    /// # Panics
    /// When there are more than [`MAX_VALUES`].
    #[must_use]
    pub fn new(values: &[i64]) -> Self {
        let mut this = Self {
            len: values.len(),
            ..Self::default()
        };
        this.values[..values.len()].copy_from_slice(values);
        this
    }

    /// The same with another first value.
    #[must_use]
    pub(crate) const fn with_key(mut self, key: i64) -> Self {
        self.values[0] = key;
        self
    }

    /// The values.
    #[must_use]
    pub fn as_slice(&self) -> &[i64] {
        &self.values[..self.len]
    }
}

/// An addition to a column: `SET c = c + addend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addition {
    /// Position of the column.
    pub column: usize,
    /// What is added; 0 assigns the column without changing it.
    pub addend: i64,
}

/// What is done to the rows that a statement finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// SELECT.
    Read,
    /// SELECT ... FOR UPDATE.
    Lock,
    /// DELETE.
    Delete,
    /// UPDATE.
    Add(Addition),
}

/// One statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// INSERT of a row.
    Insert {
        /// The table.
        table: TableId,
        /// Values of its columns that matter.
        values: Values,
    },
    /// A statement over keys from `low` to `high` of the table's first index.
    ByKey {
        /// The table.
        table: TableId,
        /// The smallest key.
        low: i64,
        /// The largest key.
        high: i64,
        /// What is done to the rows.
        deed: Deed,
    },
    /// The same by reading the whole table; the key is its first column.
    BySeqScan {
        /// The table.
        table: TableId,
        /// The smallest key.
        low: i64,
        /// The largest key.
        high: i64,
        /// What is done to the rows.
        deed: Deed,
    },
    /// INSERT ... ON CONFLICT (first index) DO UPDATE.
    Upsert {
        /// The table.
        table: TableId,
        /// Values of a new row.
        values: Values,
        /// What is done to a row that is there already.
        addition: Addition,
    },
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
}

/// A stream of transactions.
pub trait Workload {
    /// Puts the next transaction's operations into `operations`, which is empty, and says how it
    /// ends; `None` when there are no more.
    fn next_transaction(&mut self, operations: &mut Vec<Operation>) -> Option<End>;
}

/// Tables of pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgbenchTables {
    /// `pgbench_accounts`: aid, bid, abalance.
    pub accounts: TableId,
    /// `pgbench_branches`: bid, bbalance.
    pub branches: TableId,
    /// `pgbench_tellers`: tid, bid, tbalance.
    pub tellers: TableId,
    /// `pgbench_history`: no column whose value matters.
    pub history: TableId,
}

/// A built-in script, run by one client.
#[derive(Debug, Clone)]
pub struct PgbenchWorkload {
    builtin: Builtin,
    scale: i64,
    tables: PgbenchTables,
    generators: Generators,
    transactions_left: u64,
}

impl PgbenchWorkload {
    /// `pgbench -b builtin -c 1 -j 1 --random-seed=seed -t transactions`.
    #[must_use]
    pub fn new(
        builtin: Builtin,
        scale: i64,
        tables: PgbenchTables,
        seed: u64,
        transactions: u64,
    ) -> Self {
        Self {
            builtin,
            scale,
            tables,
            generators: Generators::new(seed, 1),
            transactions_left: transactions,
        }
    }
}

impl Workload for PgbenchWorkload {
    fn next_transaction(&mut self, operations: &mut Vec<Operation>) -> Option<End> {
        self.transactions_left = self.transactions_left.checked_sub(1)?;
        let drawn = self
            .builtin
            .draw(&mut self.generators.clients[0], self.scale);
        let by_key = |table, key, deed| Operation::ByKey {
            table,
            low: key,
            high: key,
            deed,
        };
        let add = |column| {
            Deed::Add(Addition {
                column,
                addend: drawn.delta,
            })
        };
        let tables = self.tables;
        if self.builtin != Builtin::SelectOnly {
            operations.push(by_key(tables.accounts, drawn.aid, add(2)));
        }
        operations.push(by_key(tables.accounts, drawn.aid, Deed::Read));
        if self.builtin == Builtin::TpcbLike {
            operations.push(by_key(tables.tellers, drawn.tid, add(2)));
            operations.push(by_key(tables.branches, drawn.bid, add(1)));
        }
        if self.builtin != Builtin::SelectOnly {
            operations.push(Operation::Insert {
                table: tables.history,
                values: Values::default(),
            });
        }
        Some(End::Commit)
    }
}
