//! A run: a workload is carried out by one session, and what it did is summed up.
//!
//! [`pgbench_tables`] loads pgbench's tables as `pgbench -i -I dtGvp` does. Left out: autovacuum,
//! checkpoints during the run, several clients.

use pgheadroom_layout::HeapFillfactor;

use crate::btree::Definition;
use crate::counters::TableCounters;
use crate::executor::{
    Action, Assignments, Column, Database, IndexDefinition, StatementError, TableDefinition,
    TableId,
};
use crate::pgbench::{ACCOUNTS_PER_SCALE, BRANCHES_PER_SCALE, TELLERS_PER_SCALE};
use crate::wal::Totals;
use crate::workload::{Addition, Deed, End, Operation, PgbenchTables, Workload};

/// What a run did to a table, under the keys of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSummary {
    /// The table.
    pub table: TableId,
    /// Its counters over the run.
    pub counters: TableCounters,
    /// Pages of its main fork at the end.
    pub heap_pages: u32,
    /// Pages of all its indexes at the end.
    pub index_pages: u32,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Transactions, those rolled back too.
    pub transactions: u64,
    /// Each table.
    pub tables: Vec<TableSummary>,
    /// All records, those that end transactions too.
    pub wal: Totals,
    /// Pages that any record names.
    pub pages_modified: usize,
}

/// Carries out a workload in a new session.
///
/// # Errors
/// [`StatementError`] of the first statement that fails for another reason than its key.
pub fn run(db: &mut Database, workload: &mut impl Workload) -> Result<Summary, StatementError> {
    db.forget_target_blocks();
    db.wal_mut().reset_totals();
    db.reset_counters();
    let mut operations = Vec::new();
    let mut transactions = 0;
    while let Some(end) = workload.next_transaction(&mut operations) {
        let mut end = end;
        for operation in &operations {
            match perform(db, operation) {
                Ok(()) => {}
                Err(StatementError::Unique(_)) => {
                    end = End::Rollback;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        match end {
            End::Commit => db.commit(),
            End::Rollback => db.rollback(),
        }
        transactions += 1;
        operations.clear();
    }
    Ok(summary(db, transactions))
}

fn summary(db: &Database, transactions: u64) -> Summary {
    let tables = db.tables().map(|table| {
        let of = db.table(table);
        TableSummary {
            table,
            counters: *of.counters(),
            heap_pages: of.heap().page_count(),
            index_pages: of.index_pages().iter().sum(),
        }
    });
    Summary {
        transactions,
        tables: tables.collect(),
        wal: db.wal().totals(),
        pages_modified: db.wal().pages().logged_pages(),
    }
}

/// Carries out one operation.
///
/// # Errors
/// Those of the statement.
pub fn perform(db: &mut Database, operation: &Operation) -> Result<(), StatementError> {
    match operation {
        Operation::Insert { table, values } => db.insert(*table, values.as_slice()),
        &Operation::ByKey {
            table,
            low,
            high,
            deed,
        } => with_action(deed, |action| {
            db.by_index(table, 0, &[low], &[high], action).map(|_| ())
        }),
        &Operation::BySeqScan {
            table,
            low,
            high,
            deed,
        } => with_action(deed, |action| {
            let wanted = |row: &[i64]| (low..=high).contains(&row[0]);
            db.by_seq_scan(table, wanted, action).map(|_| ())
        }),
        Operation::Upsert {
            table,
            values,
            addition,
        } => {
            let change = |row: &mut [i64]| row[addition.column] += addition.addend;
            let assignments = Assignments {
                assigned: &[addition.column],
                change: &change,
            };
            db.upsert(*table, 0, values.as_slice(), &assignments)
        }
    }
}

fn with_action<R>(deed: Deed, perform: impl FnOnce(&Action<'_>) -> R) -> R {
    match deed {
        Deed::Read => perform(&Action::Read),
        Deed::Lock => perform(&Action::Lock),
        Deed::Delete => perform(&Action::Delete),
        Deed::Add(Addition { column, addend }) => perform(&Action::Update(Assignments {
            assigned: &[column],
            change: &|row| row[column] += addend,
        })),
    }
}

/// Loads pgbench's tables into an empty database: rows, VACUUM, primary keys, CHECKPOINT. As with
/// `--fillfactor`, the history is always filled up.
///
/// Source: `initGenerateDataServerSide` and `initCreatePKeys`, src/bin/pgbench/pgbench.c
/// (REL_18_STABLE).
///
/// # Errors
/// [`StatementError`] when a table cannot grow.
pub fn pgbench_tables(
    db: &mut Database,
    scale: i64,
    fillfactor: HeapFillfactor,
) -> Result<PgbenchTables, StatementError> {
    let full = HeapFillfactor::new(100).expect("the default fillfactor");
    let mut create = |tuple_bytes, offsets: &[u16], fillfactor| {
        db.create_table(TableDefinition {
            tuple_bytes,
            hoff: 24, // with or without a null bitmap of one byte
            fillfactor,
            columns: offsets
                .iter()
                .map(|&offset_bytes| Column {
                    offset_bytes,
                    width_bytes: 4,
                })
                .collect(),
            indexes: Vec::new(),
        })
    };
    let history = create(24 + 24, &[], full); // four integers, a timestamp, filler NULL
    let tellers = create(24 + 12, &[0, 4, 8], fillfactor); // filler NULL
    let accounts = create(24 + 12 + 85, &[0, 4, 8], fillfactor);
    let branches = create(24 + 8, &[0, 4], fillfactor); // filler NULL
    for bid in 1..=BRANCHES_PER_SCALE * scale {
        db.insert(branches, &[bid, 0])?;
    }
    for tid in 1..=TELLERS_PER_SCALE * scale {
        db.insert(tellers, &[tid, (tid - 1) / TELLERS_PER_SCALE + 1, 0])?;
    }
    for aid in 1..=ACCOUNTS_PER_SCALE * scale {
        db.insert(accounts, &[aid, (aid - 1) / ACCOUNTS_PER_SCALE + 1, 0])?;
    }
    db.commit();
    for table in [branches, tellers, accounts, history] {
        db.vacuum(table);
    }
    for table in [branches, tellers, accounts] {
        db.create_index(
            table,
            IndexDefinition {
                columns: vec![0],
                tree: Definition::new(1, true),
            },
        );
    }
    db.checkpoint();
    Ok(PgbenchTables {
        accounts,
        branches,
        tellers,
        history,
    })
}
