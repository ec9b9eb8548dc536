//! Statements of a step, one by one, until one has to wait.

use crate::executor::{CursorScan, Database, SessionId, StatementError};
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::profile::KindName;
use crate::run::{perform, resume};
use crate::scenario::{Command, End, Script, Statements, Step, Waiting};
use crate::workload::{Access, CmdType, Operation};

impl Script<'_> {
    pub(super) fn begin_statements(
        &mut self,
        db: &mut Database,
        step: &Step,
        place: usize,
    ) -> Result<Vec<SessionId>, StatementError> {
        let Command::Statement {
            operation,
            keys,
            prepared,
            cursor,
            strength,
            locked,
        } = &step.command
        else {
            unreachable!("a statement");
        };
        if *cursor {
            let find = self.statement(*operation, keys[0]);
            Self::open_cursor(db, &find)?;
            self.done[place].ends.push(End::Rows(0));
            return Ok(Vec::new());
        }
        let kind = self.spec.operation[*operation].kind;
        let statements = Statements {
            operation: *operation,
            begun: None,
            keys: keys.iter().copied().collect(),
            lock: (kind == KindName::Lock).then(|| {
                (
                    row_lock(strength.as_deref()),
                    wait_policy(locked.as_deref()),
                )
            }),
            keeps_portal: *prepared && matches!(kind, KindName::Select | KindName::Lock),
        };
        self.go_on(db, step.session, place, statements)
    }

    /// Goes on with a step's statements, until one has to wait; the sessions that may go on.
    pub(super) fn go_on(
        &mut self,
        db: &mut Database,
        session: usize,
        place: usize,
        mut statements: Statements,
    ) -> Result<Vec<SessionId>, StatementError> {
        let mut woken = Vec::new();
        loop {
            let ended = if let Some(begun) = &statements.begun {
                resume(db, begun)
            } else if let Some(key) = statements.keys.pop_front() {
                let mut statement = self.statement(statements.operation, key);
                let lock = statements.lock;
                if let (Operation::Find { cmd_type, .. }, Some((mode, policy))) =
                    (&mut statement, lock)
                {
                    *cmd_type = CmdType::Lock(mode, policy);
                }
                let ended = perform(db, &statement);
                statements.begun = Some(statement);
                ended
            } else {
                return Ok(woken);
            };
            match ended {
                Ok(rows) => {
                    statements.begun = None;
                    self.done[place].ends.push(End::Rows(rows));
                    db.close_statement(statements.keeps_portal);
                    woken.extend(self.end_statement(db, session));
                }
                Err(StatementError::Waits(_)) => {
                    let me = db.session();
                    if db.deadlock_of(me).is_empty() {
                        self.wait(db, session, place, statements);
                        return Ok(woken);
                    }
                    // The session that closes a circle is the one that looks for it.
                    woken.extend(self.fail(db, session, place, "40P01"));
                    return Ok(woken);
                }
                Err(error) => {
                    let Some(state) = sqlstate(&error) else {
                        return Err(error);
                    };
                    woken.extend(self.fail(db, session, place, state));
                    return Ok(woken);
                }
            }
        }
    }

    fn statement(&mut self, operation: usize, key: i64) -> Operation {
        let operation = &self.operations[operation];
        let client = &mut self.generators.clients[0];
        let none = |_| unreachable!("a step's rows refer to loaded ones");
        operation.at(key, operation.width_max(), &none, client)
    }

    fn open_cursor(db: &mut Database, find: &Operation) -> Result<(), StatementError> {
        let Operation::Find {
            table,
            by,
            low,
            high,
            ..
        } = *find
        else {
            return Err(missing("cursors of other statements"));
        };
        let by = match by {
            Access::Index(index) => CursorScan::Index(index),
            Access::SeqScan(column) => CursorScan::Seq(column),
            Access::Bitmap(_) => return Err(missing("cursors over bitmap scans")),
        };
        db.open_cursor(table, by, low, high);
        db.close_statement(false);
        Ok(())
    }

    fn wait(&mut self, db: &Database, number: usize, place: usize, statements: Statements) {
        let blocker = db.waits_for(db.session());
        let numbers = self.sessions.iter();
        let blockers = numbers.filter(|(_, session)| Some(session.id) == blocker);
        let blockers = blockers.map(|(&number, _)| number).collect();
        let waited = self.done[place].waited.take();
        let waited_for = waited.map_or(blockers, |(first, _)| first);
        self.session(number).waiting = Some(Waiting {
            statements,
            place,
            waited_for,
        });
    }

    /// A statement has failed, and its transaction with it; the sessions that may go on.
    fn fail(
        &mut self,
        db: &mut Database,
        number: usize,
        place: usize,
        state: &'static str,
    ) -> Vec<SessionId> {
        self.done[place].ends.push(End::Failed(state));
        let session = self.session(number);
        session.has_failed = session.in_transaction;
        match session.savepoints.len() {
            0 => db.rollback(),
            parts => db.rollback_to(parts - 1),
        }
    }
}

fn row_lock(strength: Option<&str>) -> LockTupleMode {
    match strength {
        Some("key share") => LockTupleMode::KeyShare,
        Some("share") => LockTupleMode::Share,
        Some("no key update") => LockTupleMode::NoKeyUpdate,
        _ => LockTupleMode::Update,
    }
}

fn wait_policy(locked: Option<&str>) -> LockWaitPolicy {
    match locked {
        Some("skip") => LockWaitPolicy::Skip,
        Some("nowait") => LockWaitPolicy::Error,
        _ => LockWaitPolicy::Block,
    }
}

fn missing(what: &str) -> StatementError {
    StatementError::Unsupported(format!("{what} are not played"))
}

/// Source: src/backend/utils/errcodes.txt (REL_18_STABLE).
const fn sqlstate(error: &StatementError) -> Option<&'static str> {
    match error {
        StatementError::Unique { .. } => Some("23505"),
        StatementError::ForeignKey { .. } => Some("23503"),
        StatementError::Serialization => Some("40001"),
        StatementError::NotAvailable => Some("55P03"),
        _ => None,
    }
}
