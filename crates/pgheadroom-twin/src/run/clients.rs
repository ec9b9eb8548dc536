//! Several clients' transactions, statement by statement.
//!
//! ```text
//! Begin -> Statement -> EndStatement -> Statement -> ... -> EndStatement -> EndTransaction
//!              \-> waits ~~ another client's COMMIT or ROLLBACK ~ woken -> goes on /
//! ```
//!
//! ```text
//! Begin -> Statement -> EndStatement = Statement -> ... -> EndStatement = EndTransaction
//! |---------------- a procedure's call: no pauses, one snapshot besides --------------|
//! ```
//!
//! Each client has its session. A statement's snapshot and pins last until it ends; of a SELECT's,
//! which pgbench has prepared, the snapshot stays with its portal until the next statement.

use crate::executor::{Database, SessionId, StatementError, TableId};
use crate::procarray::Isolation;
use crate::run::perform::{perform, resume};
use crate::run::schedule::{Schedule, Turn};
use crate::run::work::Work;
use crate::transaction::Xid;
use crate::workload::{CmdType, End, Operation};

/// A client's transaction.
#[derive(Debug)]
struct Client {
    operations: Vec<Operation>,
    end: End,
    /// The statement that runs, waits, or comes next.
    position: usize,
    /// Whether it takes place elsewhere, but for what these tables are about.
    is_elsewhere: bool,
    /// Whether an error has ended it, behind which pgbench sends a ROLLBACK.
    rolls_back: bool,
    /// The table, where the transaction is nothing but one simple UPDATE, which has been done.
    updates_alone: Option<TableId>,
}

/// A transaction that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub client: usize,
    pub xid: Option<Xid>,
    pub is_elsewhere: bool,
}

/// All clients, and what their transactions are doing.
#[derive(Debug)]
pub(super) struct Clients {
    list: Vec<Client>,
    /// Tables that transactions elsewhere change.
    shared_tables: Vec<TableId>,
    /// Whether each transaction is a procedure's call.
    are_calls: bool,
    in_progress: usize,
    /// Clients that may not begin before nobody is in a transaction.
    postponed: Vec<usize>,
    /// Operations of a profile whose statement found no row, by number.
    without_row: Vec<usize>,
    /// Transactions that an error has ended, as pgbench counts them.
    failed: u64,
}

type Failed = (StatementError, TableId);

impl Clients {
    /// Clients that do nothing yet.
    pub fn new(clients: usize, shared_tables: &[TableId], are_calls: bool) -> Self {
        let idle = || Client {
            operations: Vec::new(),
            end: End::Commit,
            position: 0,
            is_elsewhere: false,
            rolls_back: false,
            updates_alone: None,
        };
        Self {
            list: std::iter::repeat_with(idle).take(clients).collect(),
            shared_tables: shared_tables.to_vec(),
            are_calls,
            in_progress: 0,
            postponed: Vec::new(),
            without_row: Vec::new(),
            failed: 0,
        }
    }

    /// Whether some client is in a transaction.
    pub fn are_busy(&self) -> bool {
        self.in_progress > 0
    }

    /// The client begins its transaction when nobody is in one any more.
    pub fn postpone(&mut self, client: usize) {
        self.postponed.push(client);
    }

    /// Numbers of operations that found no row since this was asked last.
    pub fn take_without_row(&mut self) -> std::vec::Drain<'_, usize> {
        self.without_row.drain(..)
    }

    /// Transactions that failed to serialize, or in a deadlock.
    pub const fn failed(&self) -> u64 {
        self.failed
    }

    /// The client begins this transaction: with BEGIN, or with its only statement.
    pub fn begin(
        &mut self,
        client: usize,
        operations: &mut Vec<Operation>,
        (end, is_elsewhere): (End, bool),
        schedule: &mut Schedule,
        db: &mut Database,
    ) -> Result<(), Failed> {
        let of = &mut self.list[client];
        std::mem::swap(&mut of.operations, operations);
        (of.end, of.is_elsewhere, of.position) = (end, is_elsewhere, 0);
        self.in_progress += 1;
        let of = &self.list[client];
        if of.operations.is_empty() {
            schedule.pause_and_end(client, false);
        } else if self.are_calls {
            db.switch_to(SessionId(client));
            db.begin_call();
            self.statement(client, schedule, db)?;
        } else if of.end == End::Statement {
            self.statement(client, schedule, db)?;
        } else {
            schedule.pause(client); // BEGIN, which takes next to no time, and the way back
        }
        Ok(())
    }

    /// The client has begun a transaction that is nothing but one simple UPDATE of this table, and
    /// done that.
    pub fn begin_update_alone(
        &mut self,
        client: usize,
        table: TableId,
        schedule: &mut Schedule,
        db: &mut Database,
    ) {
        self.list[client].updates_alone = Some(table);
        self.in_progress += 1;
        let work = Work {
            waited: db.end_turn(),
            ..Work::UPDATE_ALONE
        };
        schedule.run_statement(client, work);
    }

    /// A turn within a transaction; the transaction that it ended.
    ///
    /// # Panics
    /// At the beginning of a transaction.
    pub fn go_on(
        &mut self,
        turn: Turn,
        schedule: &mut Schedule,
        db: &mut Database,
    ) -> Result<Option<Ended>, Failed> {
        match turn {
            Turn::Statement(client) => {
                self.statement(client, schedule, db)?;
                Ok(None)
            }
            Turn::EndStatement(client) => {
                if let Some(table) = self.list[client].updates_alone.take() {
                    return Ok(Some(self.end_update_alone(client, table, schedule, db)));
                }
                self.end_statement(client, schedule, db)
            }
            Turn::EndTransaction(client) => {
                let end = self.list[client].end;
                self.end(client, end, schedule, db).map(Some)
            }
            Turn::Deadlock(client, wait) => {
                let is_found =
                    schedule.is_wait(client, wait) && !db.deadlock_of(SessionId(client)).is_empty();
                if !is_found {
                    return Ok(None);
                }
                self.fail(client);
                schedule.end_wait(client);
                let behind = self.behind(client, db);
                let ended = self.end(client, End::Rollback, schedule, db)?;
                self.move_up(client, &behind, schedule, db);
                Ok(Some(ended))
            }
            Turn::GoOn(client, wait) => {
                if schedule.is_wait(client, wait) {
                    db.switch_to(SessionId(client));
                    let may_give_up = db.procs().isolation() == Isolation::RepeatableRead;
                    let behind = may_give_up.then(|| self.behind(client, db));
                    let of = &self.list[client];
                    let done = resume(db, &of.operations[of.position]);
                    let gave_up = matches!(done, Err(StatementError::Serialization));
                    self.after(client, (done, false), schedule, db)?;
                    if let Some(behind) = behind.filter(|_| gave_up) {
                        // Whoever took the row before it came to it may wait for them.
                        self.move_up(client, &behind, schedule, db);
                    }
                }
                Ok(None)
            }
            Turn::Scan(client) | Turn::Arrive(client) => {
                db.switch_to(SessionId(client));
                let of = &self.list[client];
                let done = resume(db, &of.operations[of.position]);
                self.after(client, (done, false), schedule, db)?;
                Ok(None)
            }
            Turn::Begin(_) => unreachable!("a transaction begins elsewhere"),
        }
    }

    /// Clients that stand behind this one in a version's line.
    fn behind(&self, client: usize, db: &Database) -> Vec<usize> {
        let waits = |&other: &usize| db.waits_for(SessionId(other)) == Some(SessionId(client));
        (0..self.list.len()).filter(waits).collect()
    }

    /// Who stood in front of these in a line has given up: `gone`, whose transaction some of them
    /// may wait for still. The first one of the line has the lock now, and begins to wait for the
    /// transaction that holds the version.
    ///
    /// Source: `heap_acquire_tuplock` and `XactLockTableWait` in `heap_update`,
    /// src/backend/access/heap/heapam.c (REL_18_STABLE): two waits, each with a timer of its own.
    fn move_up(&self, gone: usize, behind: &[usize], schedule: &mut Schedule, db: &Database) {
        for &client in behind {
            let next = db.waits_for(SessionId(client));
            if next.is_some_and(|SessionId(next)| next != gone && !behind.contains(&next)) {
                schedule.wait(client, false);
                expect_deadlock(client, schedule, db);
            }
        }
    }

    /// The client's next statement begins.
    fn statement(
        &mut self,
        client: usize,
        schedule: &mut Schedule,
        db: &mut Database,
    ) -> Result<(), Failed> {
        db.switch_to(SessionId(client));
        let of = &self.list[client];
        let operation = &of.operations[of.position];
        let is_here = !of.is_elsewhere || self.shared_tables.contains(&operation.table());
        let done = if is_here {
            perform(db, operation)
        } else {
            db.run_elsewhere(operation.table(), writes(operation));
            Ok(1)
        };
        self.after(client, (done, true), schedule, db)
    }

    /// The client's statement, which has just begun or goes on, has come to its end, waits, or has
    /// failed to serialize: then pgbench counts a failed transaction and goes on with the next
    /// (--max-tries=1), after a ROLLBACK if the transaction is a block.
    ///
    /// Source: `CSTATE_ERROR` and `canRetryError`, src/bin/pgbench/pgbench.c (REL_18_STABLE).
    fn after(
        &mut self,
        client: usize,
        (done, begins): (Result<u64, StatementError>, bool),
        schedule: &mut Schedule,
        db: &mut Database,
    ) -> Result<(), Failed> {
        let of = &self.list[client];
        let operation = &of.operations[of.position];
        let scanned = db.take_scanned();
        let waited = db.end_turn();
        match done {
            Ok(found) => {
                if let (0, Operation::Find { number, .. } | Operation::Head { number, .. }) =
                    (found, operation)
                {
                    self.without_row.push(*number);
                }
                let is_last = of.position + 1 == of.operations.len();
                let work = Work {
                    writes: writes(operation),
                    commits: is_last && (of.end == End::Statement || self.are_calls),
                    rows: found,
                    scanned,
                    moved: db.begun_cleaning(SessionId(client)),
                    waited,
                };
                schedule.run_statement(client, work);
            }
            Err(StatementError::Scans) => schedule.scan(client, scanned, waited),
            Err(StatementError::OnItsWay) => schedule.go_to_row(client),
            Err(StatementError::Fetches { entries, last }) => {
                let table = operation.table();
                let is_beside = |&other: &usize| {
                    let there = |block| db.has_come_to(SessionId(other), table, block);
                    other != client && schedule.is_at_work(other) && last.is_some_and(there)
                };
                let beside = (0..self.list.len()).filter(is_beside).count();
                schedule.fetch(client, entries, beside);
            }
            Err(StatementError::Waits(_)) => {
                schedule.wait(client, begins);
                expect_deadlock(client, schedule, db);
            }
            Err(StatementError::Serialization) => {
                self.fail(client);
                schedule.fail(client);
            }
            Err(error) => return Err((error, operation.table())),
        }
        Ok(())
    }

    /// An error has ended the client's transaction.
    fn fail(&mut self, client: usize) {
        self.failed += 1;
        let of = &mut self.list[client];
        of.rolls_back = of.end != End::Statement && !self.are_calls;
        of.end = End::Rollback;
    }

    fn end_statement(
        &mut self,
        client: usize,
        schedule: &mut Schedule,
        db: &mut Database,
    ) -> Result<Option<Ended>, Failed> {
        let moved = db.go_on_cleaning(SessionId(client));
        if moved > 0 {
            schedule.go_on_cleaning(client, moved);
            return Ok(None);
        }
        let of = &mut self.list[client];
        let keeps_portal = !self.are_calls && is_select(&of.operations[of.position]);
        of.position += 1;
        if of.position == of.operations.len() && (of.end == End::Statement || self.are_calls) {
            db.switch_to(SessionId(client)); // its transaction ends at once
            db.close_statement(keeps_portal);
            let end = of.end;
            return self.end(client, end, schedule, db).map(Some);
        }
        db.close_statement_of(SessionId(client), keeps_portal);
        if of.position < of.operations.len() && self.are_calls {
            self.statement(client, schedule, db)?;
        } else if of.position < of.operations.len() {
            schedule.pause(client);
        } else {
            let commits = of.end == End::Commit && of.operations.iter().any(writes);
            schedule.pause_and_end(client, commits);
        }
        Ok(None)
    }

    /// The client's transaction ends, and those go on that have waited for it.
    fn end(
        &mut self,
        client: usize,
        end: End,
        schedule: &mut Schedule,
        db: &mut Database,
    ) -> Result<Ended, Failed> {
        db.switch_to(SessionId(client));
        db.end_cleaning(SessionId(client));
        let ended = Ended {
            client,
            xid: db.procs().current(),
            is_elsewhere: self.list[client].is_elsewhere,
        };
        let woken = if ended.is_elsewhere && self.shared_tables.is_empty() {
            db.procs_mut().commit(); // nobody asks how it ended
            Vec::new()
        } else {
            match end {
                End::Statement | End::Commit => db.commit(),
                End::Rollback => db.rollback(),
            }
        };
        self.after_end(client, &woken, schedule, db);
        Ok(ended)
    }

    /// The client's UPDATE is over, and its transaction commits.
    #[inline]
    fn end_update_alone(
        &mut self,
        client: usize,
        table: TableId,
        schedule: &mut Schedule,
        db: &mut Database,
    ) -> Ended {
        let (xid, woken) = db.end_update_alone(SessionId(client), table);
        self.after_end(client, &woken, schedule, db);
        Ended {
            client,
            xid: Some(xid),
            is_elsewhere: false,
        }
    }

    /// The client's transaction has ended: these go on that have waited for it, and those that
    /// waited until nobody is in one.
    #[inline]
    fn after_end(
        &mut self,
        client: usize,
        woken: &[SessionId],
        schedule: &mut Schedule,
        db: &Database,
    ) {
        self.in_progress -= 1;
        let rolls_back = std::mem::take(&mut self.list[client].rolls_back);
        schedule.end_transaction(client, rolls_back);
        wake(woken, schedule, db);
        if self.in_progress == 0 {
            for client in self.postponed.drain(..) {
                schedule.begin_woken(client);
            }
        }
    }
}

/// Those whose wait is over go on when they have been woken: one after another in a version's line,
/// where the one in front has the tuple's lock until it has looked at the row.
///
/// Source: `heap_acquire_tuplock` and `UnlockTupleTuplock` in `heap_update`,
/// src/backend/access/heap/heapam.c (REL_18_STABLE).
fn wake(woken: &[SessionId], schedule: &mut Schedule, db: &Database) {
    if woken.is_empty() {
        return;
    }
    let mut lines: Vec<(SessionId, f64)> = Vec::with_capacity(woken.len());
    for &session in woken {
        let front = db.waits_for(session).unwrap_or(session);
        let ahead = lines.iter().rfind(|(first, _)| *first == front);
        let after = ahead.map_or(0.0, |&(_, time)| time);
        lines.push((front, schedule.wake(session.0, after)));
    }
}

/// Of those who wait for each other with this client, if it is so, one will find that out.
fn expect_deadlock(client: usize, schedule: &mut Schedule, db: &Database) {
    let circle = db.deadlock_of(SessionId(client));
    if !circle.is_empty() {
        let circle: Vec<usize> = circle.iter().map(|session| session.0).collect();
        schedule.expect_deadlock(&circle);
    }
}

/// Whether a statement returns rows, so that its portal stays open.
fn is_select(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Find {
            cmd_type: CmdType::Read | CmdType::Lock(..),
            ..
        }
    )
}

/// Whether a statement gives its transaction a number.
fn writes(operation: &Operation) -> bool {
    !matches!(
        operation,
        Operation::Find {
            cmd_type: CmdType::Read,
            ..
        } | Operation::FindByPrefix {
            cmd_type: CmdType::Read,
            ..
        } | Operation::ReadEach { .. }
    )
}
