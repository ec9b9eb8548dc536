//! pgbench's built-in scripts.

use crate::executor::{Assignment, Change};
use crate::pgbench::{Builtin, Generators};
use crate::profile::PgbenchTables;
use crate::value::Value;
use crate::workload::{CmdType, End, Operation, Workload};

/// A built-in script, run by some clients.
#[derive(Debug, Clone)]
pub struct PgbenchWorkload {
    builtin: Builtin,
    scale: i64,
    accounts_scale: i64,
    seed: u64,
    tables: PgbenchTables,
    generators: Generators,
    /// By client.
    left: Vec<u64>,
}

impl PgbenchWorkload {
    /// `pgbench -b builtin -c clients -j 1 --random-seed=seed -t transactions`, which counts the
    /// transactions of one client.
    #[must_use]
    pub fn new(
        builtin: Builtin,
        scale: i64,
        tables: PgbenchTables,
        seed: u64,
        clients: usize,
        transactions: u64,
    ) -> Self {
        Self {
            builtin,
            scale,
            accounts_scale: scale,
            seed,
            tables,
            generators: Generators::new(seed, clients),
            left: vec![transactions; clients],
        }
    }

    /// The same where only the accounts of a smaller scale are there.
    #[must_use]
    pub const fn with_accounts_of(mut self, scale: i64) -> Self {
        self.accounts_scale = scale;
        self
    }
}

impl Workload for PgbenchWorkload {
    fn clients(&self) -> usize {
        self.left.len()
    }

    fn transactions_left(&self) -> u64 {
        self.left.iter().sum()
    }

    fn next_transaction(&mut self, client: usize, operations: &mut Vec<Operation>) -> Option<End> {
        let inserted = operations.drain(..).find_map(|operation| match operation {
            Operation::Insert { rows, .. } => Some(rows),
            _ => None,
        });
        self.left[client] = self.left[client].checked_sub(1)?;
        let generator = &mut self.generators.clients[client];
        let drawn = self
            .builtin
            .draw(generator, self.scale, self.accounts_scale);
        let by_key = |table, key, cmd_type| Operation::find(table, 0, (key, key), cmd_type);
        let add = |column| {
            let change = Change::Add(drawn.delta);
            CmdType::Update(std::iter::once(Assignment { column, change }).collect())
        };
        let tables = self.tables;
        if self.builtin != Builtin::SelectOnly {
            operations.push(by_key(tables.accounts, drawn.aid, add(2)));
        }
        operations.push(by_key(tables.accounts, drawn.aid, CmdType::Read));
        if self.builtin == Builtin::TpcbLike {
            operations.push(by_key(tables.tellers, drawn.tid, add(2)));
            operations.push(by_key(tables.branches, drawn.bid, add(1)));
        }
        if self.builtin != Builtin::SelectOnly {
            // The time does not matter: nothing is made of it, and its length is fixed.
            let values = [drawn.tid, drawn.bid, drawn.aid, drawn.delta, 0];
            let values = values.into_iter().map(Value::Integer);
            let mut rows = inserted.unwrap_or_else(|| vec![Vec::new()]); // its memory is used again
            rows[0].clear();
            rows[0].extend(values.chain([Value::Null]));
            operations.push(Operation::Insert {
                table: tables.history,
                rows,
            });
        }
        Some(if self.builtin == Builtin::SelectOnly {
            End::Statement
        } else {
            End::Commit
        })
    }

    fn draws_apart(&self) -> bool {
        true
    }

    fn others(&self) -> Option<Self> {
        let clients = self.left.len();
        Some(Self {
            generators: Generators::new(!self.seed, clients),
            left: vec![u64::MAX; clients],
            ..self.clone()
        })
    }
}
