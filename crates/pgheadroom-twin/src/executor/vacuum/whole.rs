//! VACUUM of a table as a command: of its main table, and of its TOAST table behind that.

use crate::executor::vacuum::RunningVacuum;
use crate::executor::{Database, Relation, StatementError, TableId, VacuumStep};
use crate::vacuum::{VacuumOptions, Vacuumed};

/// A VACUUM that has come to the end of a table which somebody has locked, and tries again.
#[derive(Debug)]
pub(crate) struct WaitingVacuum {
    running: RunningVacuum,
    options: VacuumOptions,
}

impl WaitingVacuum {
    /// One that has come so far step by step.
    pub const fn new(running: RunningVacuum, options: VacuumOptions) -> Self {
        Self { running, options }
    }

    /// It asks no more: the end stays.
    pub const fn give_up_end(&mut self) {
        self.running.give_up_end();
    }

    /// Its table.
    pub const fn table(&self) -> TableId {
        self.running.relation.table
    }
}

impl Database {
    /// VACUUM.
    ///
    /// # Errors
    /// As [`Database::vacuum_step`].
    ///
    /// # Panics
    /// Inside a transaction.
    ///
    /// Source: `heap_vacuum_rel`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    /// Differs: as `crate::vacuum`; records of the catalogue are left out.
    pub fn vacuum(&mut self, table: TableId) -> Result<(), StatementError> {
        self.vacuum_as(table, VacuumOptions::default()).map(drop)
    }

    /// VACUUM with options; whether there are indexes is taken from the table. Nobody does anything
    /// meanwhile, so that whoever has locked the table keeps its end.
    ///
    /// # Errors
    /// As [`Database::vacuum_step`].
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn vacuum_as(
        &mut self,
        table: TableId,
        options: VacuumOptions,
    ) -> Result<Vacuumed, StatementError> {
        let done = self.vacuum_whole(table, false, options)?;
        if self.tables[table.0].toast.is_some() {
            self.vacuum_whole(table, true, options)?;
        }
        Ok(done)
    }

    fn vacuum_whole(
        &mut self,
        table: TableId,
        is_toast: bool,
        options: VacuumOptions,
    ) -> Result<Vacuumed, StatementError> {
        let (mut running, mut ended) =
            self.vacuum_relation(Relation { table, is_toast }, options)?;
        loop {
            if let Some(done) = ended {
                return Ok(done);
            }
            ended = self.vacuum_steps(&mut running)?;
        }
    }

    /// The same, as far as it comes without waiting for a lock.
    ///
    /// # Errors
    /// As [`Database::vacuum_step`].
    pub(crate) fn begin_vacuum_as(
        &mut self,
        table: TableId,
        options: VacuumOptions,
    ) -> Result<Option<WaitingVacuum>, StatementError> {
        let relation = Relation {
            table,
            is_toast: false,
        };
        let (running, ended) = self.vacuum_relation(relation, options)?;
        match ended {
            Some(_) => self.vacuum_toast(table, options),
            None => Ok(Some(WaitingVacuum { running, options })),
        }
    }

    /// One that waits asks for the lock again: none when it is over.
    ///
    /// # Errors
    /// As [`Database::vacuum_step`].
    pub(crate) fn vacuum_again(
        &mut self,
        mut waiting: WaitingVacuum,
    ) -> Result<Option<WaitingVacuum>, StatementError> {
        let relation = waiting.running.relation;
        match self.vacuum_steps(&mut waiting.running)? {
            None => Ok(Some(waiting)),
            Some(_) if relation.is_toast => Ok(None),
            Some(_) => self.vacuum_toast(relation.table, waiting.options),
        }
    }

    /// What follows a table's own VACUUM: that of its TOAST table.
    ///
    /// # Errors
    /// As [`Database::vacuum_step`].
    pub(crate) fn vacuum_toast(
        &mut self,
        table: TableId,
        options: VacuumOptions,
    ) -> Result<Option<WaitingVacuum>, StatementError> {
        if self.tables[table.0].toast.is_none() {
            return Ok(None);
        }
        let relation = Relation {
            table,
            is_toast: true,
        };
        let (running, ended) = self.vacuum_relation(relation, options)?;
        let waiting = WaitingVacuum { running, options };
        Ok(ended.is_none().then_some(waiting))
    }

    /// Its steps as far as they come, in a transaction of its own; what was done, if it is over.
    fn vacuum_relation(
        &mut self,
        relation: Relation,
        options: VacuumOptions,
    ) -> Result<(RunningVacuum, Option<Vacuumed>), StatementError> {
        self.procs.begin_statement();
        self.procs.compute_horizons();
        let mut running = self.begin_vacuum(relation, options);
        let ended = self.vacuum_steps(&mut running);
        self.procs.commit(); // its snapshot goes, and the horizon with it
        Ok((running, ended?))
    }

    fn vacuum_steps(
        &mut self,
        running: &mut RunningVacuum,
    ) -> Result<Option<Vacuumed>, StatementError> {
        loop {
            match self.vacuum_step(running)? {
                VacuumStep::Done(done) => return Ok(Some(done)),
                VacuumStep::Locked => return Ok(None),
                VacuumStep::Pages(_) | VacuumStep::IndexPages(_) => {}
            }
        }
    }
}
