//! A VACUUM of autovacuum's beside clients, of which is known when it began and ended.

use crate::executor::{
    Database, Relation, RunningVacuum, StatementError, TableId, VacuumStep, WaitingVacuum,
};
use crate::vacuum::VacuumOptions;

/// A VACUUM whose pages are looked at evenly between two times.
#[derive(Debug)]
pub(super) struct SpreadVacuum {
    running: RunningVacuum,
    pub table: TableId,
    /// After how many transactions it begins and ends.
    from: u64,
    until: u64,
    /// Pages of the table and its indexes: looked at, and to be looked at in all, about.
    done: u64,
    pages: u64,
}

/// How far it is.
#[derive(Debug)]
pub(super) enum Progress {
    /// There are pages left.
    Goes(SpreadVacuum),
    /// It has asked for the lock on the table's end in vain.
    Waits(WaitingVacuum),
    /// It is over.
    Over,
}

impl SpreadVacuum {
    pub fn begin(table: TableId, from: u64, until: u64, db: &Database) -> Self {
        let relation = Relation {
            table,
            is_toast: false,
        };
        let running = db.begin_vacuum(relation, VacuumOptions::BY_ITSELF);
        Self {
            pages: db.vacuum_pages_left(&running),
            running,
            table,
            from,
            until,
            done: 0,
        }
    }

    /// Goes on to where it is after so many transactions. One that a server's would fail in is
    /// over: autovacuum says so in the log alone.
    pub fn go_on(
        mut self,
        transactions: u64,
        db: &mut Database,
    ) -> Result<Progress, StatementError> {
        let is_last = transactions >= self.until;
        let passed = transactions - self.from;
        while is_last || self.done * (self.until - self.from) < self.pages * passed {
            let step = match db.vacuum_step(&mut self.running) {
                Err(error) if error.ends_vacuum() => return Ok(Progress::Over),
                step => step?,
            };
            match step {
                // The first pass is over, and it is known how many pages the second one has.
                VacuumStep::Pages(0) => {
                    self.pages = self.done + db.vacuum_pages_left(&self.running);
                }
                VacuumStep::Pages(pages) | VacuumStep::IndexPages(pages) => {
                    self.done += u64::from(pages);
                }
                VacuumStep::Locked => {
                    let waits = WaitingVacuum::new(self.running, VacuumOptions::default());
                    return Ok(Progress::Waits(waits));
                }
                VacuumStep::Done(_) => {
                    let toast = db.vacuum_toast(self.table, VacuumOptions::default())?;
                    return Ok(toast.map_or(Progress::Over, Progress::Waits));
                }
            }
        }
        Ok(Progress::Goes(self))
    }
}
