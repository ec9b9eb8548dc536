//! Commands that keep a table in order, as a person or cron runs them.

use crate::executor::rewrite::Keeps;
use crate::executor::{Database, Relation, StatementError, TableId, WaitingVacuum};
use crate::vacuum::VacuumOptions;

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// VACUUM.
    Vacuum {
        /// With the option FREEZE.
        freeze: bool,
        /// With the option PARALLEL: so many workers at most.
        parallel: u32,
    },
    /// VACUUM FULL.
    VacuumFull,
    /// ANALYZE.
    Analyze,
    /// REINDEX of the index at this position, or of the table.
    Reindex(Option<usize>),
    /// TRUNCATE.
    Truncate,
    /// CLUSTER by the index at this position.
    Cluster(usize),
}

impl Maintenance {
    /// Whether it waits until nobody is in a transaction that has touched the table.
    #[must_use]
    pub const fn is_exclusive(self) -> bool {
        !matches!(self, Self::Vacuum { .. } | Self::Analyze)
    }
}

impl Database {
    /// Runs a command on a table; a VACUUM that has to wait for the lock on the table's end.
    ///
    /// # Errors
    /// [`StatementError`] of what the twin does not play, or a server's command fails with.
    ///
    /// # Panics
    /// Inside a transaction.
    pub(crate) fn maintain(
        &mut self,
        table: TableId,
        what: Maintenance,
    ) -> Result<Option<WaitingVacuum>, StatementError> {
        match what {
            Maintenance::Vacuum { freeze, parallel } => {
                let options = VacuumOptions {
                    freeze,
                    max_workers: parallel,
                    ..VacuumOptions::default()
                };
                return self.begin_vacuum_as(table, options);
            }
            Maintenance::Analyze => self.analyze_alone(table),
            Maintenance::Reindex(index) => self.reindex(table, index)?,
            Maintenance::VacuumFull => {
                self.rewrite(table)?;
            }
            Maintenance::Truncate => {
                self.rewrite_as(table, Keeps::Nothing)?;
            }
            Maintenance::Cluster(index) => {
                let btree = self.tables[table.0].indexes.btree_positions[index];
                let btree = btree.ok_or_else(|| {
                    StatementError::Unsupported("CLUSTER by another index than a B-tree".to_owned())
                })?;
                self.rewrite_as(table, Keeps::InOrder(btree))?;
            }
        }
        Ok(None)
    }

    /// It writes its statistics to the catalogue, so it has a number; of a table without rows there
    /// are none.
    ///
    /// Source: `do_analyze_rel`, src/backend/commands/analyze.c (REL_18_STABLE): `numrows > 0`.
    fn analyze_alone(&mut self, table: TableId) {
        assert!(self.procs.current().is_none(), "ANALYZE in a transaction");
        self.procs.begin_statement();
        self.procs.compute_horizons();
        let found = self.analyze(table, self.samples.rows);
        if found.live_rows > 0.0 {
            self.procs.assign();
        }
        self.procs.commit();
        if self.note_analyzed(table, found.live_rows) {
            self.forget_target_blocks_of(Relation {
                table,
                is_toast: false,
            });
        }
    }
}
