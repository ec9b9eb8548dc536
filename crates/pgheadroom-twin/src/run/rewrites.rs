//! Tables that are rewritten in the middle of a run.
//!
//! ```text
//! full     |--- clients ---|V|--- clients ---|       V: VACUUM FULL, clients wait
//! online   |--- clients ---|=== copy ===|s|---|      s: catch up and swap
//! ```
//!
//! A run's clock does not stand still for VACUUM FULL: how long it takes is the machine's.

use crate::executor::{Database, OnlineRewrite, Rewritten, StatementError, TableId};

/// A rewrite that a run is to have.
#[derive(Debug, Clone, PartialEq)]
pub struct RewriteAt {
    /// The table's name.
    pub table: String,
    /// When, as a fraction of the run.
    pub at_frac: f64,
    /// Until when the new table is filled beside the clients; `None`: VACUUM FULL, which lets
    /// nobody in.
    pub until_frac: Option<f64>,
}

/// A rewrite that a run had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewriteDone {
    /// The table.
    pub table: TableId,
    /// Whether clients went on meanwhile.
    pub is_online: bool,
    /// After how many transactions it began and ended.
    pub transactions: [u64; 2],
    /// What it did.
    pub done: Rewritten,
}

/// What of these rewrites is a model, in a sentence.
pub(super) fn model(rewrites: &[RewriteAt]) -> Option<&'static str> {
    let is_online = |rewrite: &RewriteAt| rewrite.until_frac.is_some();
    rewrites.iter().any(is_online).then_some(
        "an online rewrite is a model: rows are inserted one by one under a held snapshot, noted \
         changes are applied at its end; what noting them writes is left out",
    )
}

/// An online rewrite whose rows are copied evenly between two times.
#[derive(Debug)]
pub(super) struct SpreadRewrite {
    running: OnlineRewrite,
    table: TableId,
    from: u64,
    until: u64,
}

impl SpreadRewrite {
    pub fn begin(
        table: TableId,
        from: u64,
        until: u64,
        db: &mut Database,
    ) -> Result<Self, StatementError> {
        Ok(Self {
            running: db.begin_online_rewrite(table)?,
            table,
            from,
            until,
        })
    }

    /// The table.
    pub const fn table(&self) -> TableId {
        self.table
    }

    /// When it is over.
    pub const fn until(&self) -> u64 {
        self.until
    }

    /// Copies as much as is due after so many transactions.
    pub fn go_on(&mut self, transactions: u64, db: &mut Database) -> Result<(), StatementError> {
        #[allow(clippy::cast_precision_loss)] // fewer than 2^53
        let share = (transactions - self.from) as f64 / (self.until - self.from).max(1) as f64;
        db.copy_online(&mut self.running, share)
    }

    /// Its time is over.
    pub fn end(self, db: &mut Database) -> Result<RewriteDone, StatementError> {
        Ok(RewriteDone {
            table: self.table,
            is_online: true,
            transactions: [self.from, self.until],
            done: db.end_online_rewrite(self.running)?,
        })
    }
}

/// VACUUM FULL after so many transactions.
pub(super) fn at_once(
    table: TableId,
    transactions: u64,
    db: &mut Database,
) -> Result<RewriteDone, StatementError> {
    Ok(RewriteDone {
        table,
        is_online: false,
        transactions: [transactions; 2],
        done: db.rewrite(table)?,
    })
}
