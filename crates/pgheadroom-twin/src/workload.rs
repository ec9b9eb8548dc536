//! Streams of operations, transaction by transaction, for each client.
//!
//! ```text
//! Workload::next_transaction(client) -> [Operation, ...] + how it ends -> run::run -> Database
//! ```
//!
//! A workload only says what is done; where from is its own business: pgbench's scripts, a
//! profile's operations, other sources by implementing the trait.

mod builtin;
mod keys;
mod living;
mod pick;
mod profile;
#[cfg(test)]
mod tests;

pub use builtin::PgbenchWorkload;
pub use keys::{Keys, drawn_keys};
pub use living::Living;
pub use pick::Pick;
pub use profile::{ProfileOperation, ProfileWorkload};

use std::sync::Arc;

use crate::executor::{Assignment, Head, TableId};
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::value::{Value, ValueError};

/// What is done to the rows that a statement finds.
#[derive(Debug, Clone)]
pub enum CmdType {
    /// SELECT.
    Read,
    /// SELECT ... FOR UPDATE.
    Lock(LockTupleMode, LockWaitPolicy),
    /// DELETE.
    Delete,
    /// UPDATE, with its SET clause.
    Update(Sets),
}

/// A SET clause. Most have one column, which takes no memory of its own.
#[derive(Debug, Clone)]
pub struct Sets(Columns);

#[derive(Debug, Clone)]
enum Columns {
    One(Assignment<'static>),
    Many(Vec<Assignment<'static>>),
}

impl std::ops::Deref for Sets {
    type Target = [Assignment<'static>];

    fn deref(&self) -> &[Assignment<'static>] {
        match &self.0 {
            Columns::One(one) => std::slice::from_ref(one),
            Columns::Many(many) => many,
        }
    }
}

impl FromIterator<Assignment<'static>> for Sets {
    fn from_iter<I: IntoIterator<Item = Assignment<'static>>>(columns: I) -> Self {
        Self::collected(columns.into_iter(), &mut Vec::new())
    }
}

impl Sets {
    /// As it is collected; one of several columns takes memory that another clause has left.
    fn collected(
        mut columns: impl Iterator<Item = Assignment<'static>>,
        memory: &mut Vec<Assignment<'static>>,
    ) -> Self {
        let Some(first) = columns.next() else {
            return Self(Columns::Many(Vec::new()));
        };
        let Some(second) = columns.next() else {
            return Self(Columns::One(first));
        };
        let mut many = std::mem::take(memory);
        many.clear();
        many.extend([first, second]);
        many.extend(columns);
        Self(Columns::Many(many))
    }

    /// The memory of a clause that nobody needs any more, if it has any of its own.
    fn into_memory(self) -> Option<Vec<Assignment<'static>>> {
        match self.0 {
            Columns::One(_) => None,
            Columns::Many(memory) => Some(memory),
        }
    }
}

impl From<Vec<Assignment<'static>>> for Sets {
    fn from(columns: Vec<Assignment<'static>>) -> Self {
        columns.into_iter().collect()
    }
}

/// One statement.
#[derive(Debug, Clone)]
pub enum Operation {
    /// INSERT of rows.
    Insert {
        /// The table.
        table: TableId,
        /// Values of all columns, row by row.
        rows: Vec<Vec<Value>>,
    },
    /// A statement over keys from `low` to `high`, both included.
    Find {
        /// The table.
        table: TableId,
        /// How its rows are found.
        by: Access,
        /// The smallest key.
        low: i64,
        /// The largest key.
        high: i64,
        /// What is done to the rows.
        cmd_type: CmdType,
        /// The operation's number in its profile.
        number: usize,
    },
    /// A statement over the rows at the head of a queue.
    Head {
        /// The table.
        table: TableId,
        /// Which rows those are.
        head: Arc<Head>,
        /// How many at most.
        limit: usize,
        /// What is done to them.
        cmd_type: CmdType,
        /// The operation's number in its profile.
        number: usize,
    },
    /// A statement over rows whose first columns in an index lie between two prefixes of a key.
    FindByPrefix {
        /// The table.
        table: TableId,
        /// The index, by its position.
        index: usize,
        /// The smallest values of its first columns.
        low: Vec<i64>,
        /// The largest ones.
        high: Vec<i64>,
        /// What is done to the rows.
        cmd_type: CmdType,
    },
    /// The inner side of a nested loop: rows are read by one key after the other.
    ReadEach {
        /// The table.
        table: TableId,
        /// The index, by its position.
        index: usize,
        /// The keys.
        keys: Vec<i64>,
    },
    /// INSERT ... ON CONFLICT DO UPDATE.
    Upsert {
        /// The table.
        table: TableId,
        /// The index whose keys may conflict, by its position.
        index: usize,
        /// Values of all columns, row by row.
        rows: Vec<Vec<Value>>,
        /// What is done to a row that is there already.
        sets: Sets,
    },
    /// An INSERT that fails: a value does not fit its column.
    Refused {
        /// The table.
        table: TableId,
        /// The server's reason.
        reason: ValueError,
    },
}

impl Operation {
    /// A statement over keys from `low` to `high` of the index at this position.
    #[must_use]
    pub const fn find(
        table: TableId,
        index: usize,
        (low, high): (i64, i64),
        cmd_type: CmdType,
    ) -> Self {
        Self::Find {
            table,
            by: Access::Index(index),
            low,
            high,
            cmd_type,
            number: 0,
        }
    }

    /// The table it works on.
    #[must_use]
    pub const fn table(&self) -> TableId {
        match self {
            Self::Insert { table, .. }
            | Self::Find { table, .. }
            | Self::Head { table, .. }
            | Self::FindByPrefix { table, .. }
            | Self::ReadEach { table, .. }
            | Self::Upsert { table, .. }
            | Self::Refused { table, .. } => *table,
        }
    }
}

/// How a statement finds rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// By the index at this position, whose first column is the key.
    Index(usize),
    /// By reading the whole table; the key is the column at this position.
    SeqScan(usize),
    /// By a bitmap of the entries of the index at this position, whose first column is the key.
    Bitmap(usize),
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With its only statement: no BEGIN was sent, and no COMMIT is.
    Statement,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
}

/// A stream of transactions.
pub trait Workload {
    /// How many clients there are.
    fn clients(&self) -> usize;

    /// Transactions that all clients together have not begun yet.
    fn transactions_left(&self) -> u64;

    /// Puts the client's next transaction into `operations`, in the place of an earlier one of this
    /// workload if there is one, and says how it ends; `None` when this client has no more.
    fn next_transaction(&mut self, client: usize, operations: &mut Vec<Operation>) -> Option<End>;

    /// Whether a client's transactions depend on nothing but its own past, so that they are the
    /// same if they are drawn before others'.
    fn draws_apart(&self) -> bool {
        false
    }

    /// So many transactions that were drawn are not carried out; asked where clients draw apart.
    fn give_back(&mut self, transactions: u64) {
        let _ = transactions;
    }

    /// Whether a transaction is one call of a procedure: its statements follow on each other
    /// without a way to the client, in one snapshot that lasts until its end.
    fn is_one_call(&self) -> bool {
        false
    }

    /// How often each operation was drawn, by its number; none where nobody asks.
    fn turns(&self) -> &[u64] {
        &[]
    }

    /// Transactions like these with draws of their own, and without end; `None` when there are no
    /// others like these.
    fn others(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}
