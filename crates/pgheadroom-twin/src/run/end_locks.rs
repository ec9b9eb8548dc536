//! VACUUMs that wait beside clients for the lock on their table's end.
//!
//! ```text
//! VACUUM   |pages|x.....x.....x.....o|          x: somebody is in a transaction that has locked
//! client 0    |=S=|..|=S=|..|C|                    the table   o: nobody is: the end goes
//! client 1          |=S=|..|=S=|..|C|           .: VACUUM_TRUNCATE_LOCK_WAIT_INTERVAL
//! ```
//!
//! A try looks at clients at its own time, between two of their turns: at the beginning of a
//! transaction, where other things from outside happen, one client is never in one.

use crate::executor::{Database, StatementError, TableId, WaitingVacuum};

/// When something happens from outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// In times of the run.
    pub now: f64,
    /// From one try to get a lock to the next.
    pub to_next_try: f64,
}

#[derive(Debug)]
struct Waiting {
    vacuum: WaitingVacuum,
    /// Whether a command of the profile's is the VACUUM.
    is_command: bool,
    /// When it tries again, and how long after that once more.
    at: f64,
    interval: f64,
}

/// Those that wait, and when they try again.
#[derive(Debug)]
pub(super) struct EndLocks {
    waiting: Vec<Waiting>,
    /// The first of their times.
    next: f64,
}

impl Default for EndLocks {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            next: f64::INFINITY,
        }
    }
}

impl EndLocks {
    /// When one of them tries again.
    #[inline]
    pub const fn next(&self) -> f64 {
        self.next
    }

    /// Whether a command is among them, behind which the commands of its session wait.
    pub fn keep_commands(&self) -> bool {
        self.waiting.iter().any(|waiting| waiting.is_command)
    }

    /// One has asked for the lock in vain.
    pub fn wait(&mut self, vacuum: WaitingVacuum, is_command: bool, moment: Moment) {
        self.waiting.push(Waiting {
            vacuum,
            is_command,
            at: moment.now + moment.to_next_try,
            interval: moment.to_next_try,
        });
        self.note_next();
    }

    /// The table has new files, by somebody who waited for nobody.
    pub fn forget(&mut self, table: TableId) {
        self.waiting
            .retain(|waiting| waiting.vacuum.table() != table);
        self.note_next();
    }

    /// The command that waits tries once more and gives up: the next one finds it over.
    pub fn end_command(&mut self, db: &mut Database) -> Result<(), (StatementError, TableId)> {
        let is_one = |waiting: &Waiting| waiting.is_command;
        if let Some(position) = self.waiting.iter().position(is_one) {
            let mut vacuum = Some(self.waiting.remove(position).vacuum);
            while let Some(waiting) = vacuum {
                let table = waiting.table();
                let of_table = |error| (error, table);
                vacuum = db.vacuum_again(waiting).map_err(of_table)?;
                if let Some(mut waiting) = vacuum {
                    waiting.give_up_end();
                    vacuum = db.vacuum_again(waiting).map_err(of_table)?;
                }
            }
            self.note_next();
        }
        Ok(())
    }

    /// Those try again whose time has come, each in its turn.
    pub fn try_again(
        &mut self,
        now: f64,
        db: &mut Database,
    ) -> Result<(), (StatementError, TableId)> {
        while self.next <= now && !self.waiting.is_empty() {
            let mut all = self.waiting.iter();
            let first = all.position(|waiting| waiting.at <= self.next);
            let waiting = self.waiting.remove(first.expect("the first of them"));
            let table = waiting.vacuum.table();
            let left = db.vacuum_again(waiting.vacuum);
            if let Some(vacuum) = left.map_err(|error| (error, table))? {
                self.waiting.push(Waiting {
                    vacuum,
                    at: waiting.at + waiting.interval,
                    ..waiting
                });
            }
            self.note_next();
        }
        Ok(())
    }

    fn note_next(&mut self) {
        let times = self.waiting.iter().map(|waiting| waiting.at);
        self.next = times.fold(f64::INFINITY, f64::min);
    }
}
