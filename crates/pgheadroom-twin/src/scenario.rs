//! Short scripted histories of one session or several: what a profile's random operations cannot
//! tell.
//!
//! ```text
//! profile's tables -> load -> [statement | copy | vacuum | begin ... | hold ...] -> Outcome
//! ```
//!
//! Statements are operations of the profile, given their keys one by one; the other steps are
//! commands. The same steps are played on servers by `tools/scenario_script.py`. A step whose
//! statement waits for another session goes on when that one has ended.

use std::collections::{BTreeMap, VecDeque};

use pgheadroom_layout::{HeapFillfactor, PgVersion};

use crate::executor::{CopyRow, Database, SessionId, StatementError};
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::pgbench::Generators;
use crate::procarray::{HeldSnapshot, Isolation};
use crate::profile::{LoadedTable, Monitor, ProfileError, ProfileSpec, load};
use crate::run::{Conditions, Outcome, outcome, support};
use crate::vacuum::VacuumOptions;
use crate::value::Value;
use crate::workload::{Operation, ProfileOperation};

mod statements;
mod step;

pub use step::{Command, Done, End, Step};

/// Plays steps on a profile's tables, freshly loaded; simple updates may take the fast path, which
/// changes nothing.
///
/// # Errors
/// [`ProfileError`] when the twin cannot play the profile or a step, or a statement fails.
///
/// # Panics
/// When a step names what the profile does not have.
pub fn play(
    spec: &ProfileSpec,
    steps: &[Step],
    version: PgVersion,
    uses_fast_path: bool,
) -> Result<(Database, Outcome, Vec<Done>), ProfileError> {
    support::check(spec, &Conditions::default())?;
    let mut db = load::database(&spec.server, version);
    let loaded = load::load_tables(&mut db, &spec.table, &Monitor::default())?;
    let mut operations = Vec::new();
    for (number, operation) in spec.operation.iter().enumerate() {
        let place = number_of(spec, &operation.table);
        let (table, loaded) = (&spec.table[place], &loaded[place]);
        let numbers = (number, place);
        operations.push(ProfileOperation::new(operation, numbers, table, loaded)?);
    }
    db.use_fast_path(uses_fast_path);
    db.close_statement(false);
    db.forget_target_blocks();
    db.wal_mut().reset_totals();
    db.reset_counters();
    let mut script = Script {
        spec,
        loaded: &loaded,
        operations: &operations,
        generators: Generators::new(0, 1),
        sessions: BTreeMap::new(),
        held: None,
        statements: 0,
        done: Vec::new(),
    };
    for (number, step) in steps.iter().enumerate() {
        script.step(&mut db, number, step).map_err(|error| {
            let path = format!("step[{number}]");
            load::failure(&error, number as u64 + 1, &spec.table[0].name, &path)
        })?;
    }
    let names: Vec<String> = spec.table.iter().map(|table| table.name.clone()).collect();
    let statements = script.statements;
    let done = script.done;
    let outcome = outcome(&db, &names, statements, statements);
    Ok((db, outcome, done))
}

fn number_of(spec: &ProfileSpec, table: &str) -> usize {
    let mut tables = spec.table.iter();
    let number = tables.position(|known| known.name == table);
    number.expect("a table of the profile")
}

/// A session of the history.
#[derive(Debug, Default)]
struct Session {
    id: SessionId,
    in_transaction: bool,
    /// Whether its transaction has failed, and waits for its end.
    has_failed: bool,
    /// Names of its savepoints, the first one first.
    savepoints: Vec<String>,
    /// Its step that waits.
    waiting: Option<Waiting>,
}

impl Session {
    /// How many savepoints were there before this one.
    fn parts_before(&self, name: &str) -> usize {
        let mut names = self.savepoints.iter();
        names
            .rposition(|known| known == name)
            .expect("a savepoint of this name")
    }
}

/// A step that waits.
#[derive(Debug)]
struct Waiting {
    statements: Statements,
    /// Its place among what is done.
    place: usize,
    waited_for: Vec<usize>,
}

/// What a step still has to do.
#[derive(Debug, Clone)]
struct Statements {
    operation: usize,
    /// The statement that waits.
    begun: Option<Operation>,
    keys: VecDeque<i64>,
    lock: Option<(LockTupleMode, LockWaitPolicy)>,
    keeps_portal: bool,
}

struct Script<'a> {
    spec: &'a ProfileSpec,
    loaded: &'a [LoadedTable],
    operations: &'a [ProfileOperation],
    /// Not drawn from: steps have their keys.
    generators: Generators,
    /// By the number that steps have.
    sessions: BTreeMap<usize, Session>,
    held: Option<HeldSnapshot>,
    statements: u64,
    done: Vec<Done>,
}

impl Script<'_> {
    fn step(
        &mut self,
        db: &mut Database,
        number: usize,
        step: &Step,
    ) -> Result<(), StatementError> {
        let is_first = self.sessions.is_empty();
        let session = self
            .sessions
            .entry(step.session)
            .or_insert_with(|| Session {
                // The database has one from the beginning.
                id: if is_first {
                    db.session()
                } else {
                    db.open_session()
                },
                ..Session::default()
            });
        db.switch_to(session.id);
        self.done.push(Done {
            step: number,
            session: step.session,
            ..Done::default()
        });
        let place = self.done.len() - 1;
        let mut woken = VecDeque::from(self.command(db, step, place)?);
        while let Some(id) = woken.pop_front() {
            let mut sessions = self.sessions.iter_mut();
            let (&number_of, session) = sessions
                .find(|(_, session)| session.id == id)
                .expect("a session of the history");
            let waiting = session.waiting.take().expect("a step that waits");
            db.switch_to(id);
            let place = waiting.place;
            self.done[place].waited = Some((waiting.waited_for, number));
            woken.extend(self.go_on(db, number_of, place, waiting.statements)?);
        }
        if !matches!(
            step.command,
            Command::Statement { .. } | Command::Fetch { .. }
        ) {
            self.done.remove(place);
        }
        Ok(())
    }

    fn session(&mut self, number: usize) -> &mut Session {
        self.sessions.get_mut(&number).expect("it was opened")
    }

    /// Carries out a step; the sessions that may go on after it.
    fn command(
        &mut self,
        db: &mut Database,
        step: &Step,
        place: usize,
    ) -> Result<Vec<SessionId>, StatementError> {
        match &step.command {
            Command::Statement { .. } => return self.begin_statements(db, step, place),
            Command::Copy {
                table,
                from,
                to,
                line_bytes,
            } => self.copy(db, step, table, *from..=*to, line_bytes)?,
            Command::Vacuum {
                table,
                freeze,
                parallel,
            } => {
                let table = self.loaded[number_of(self.spec, table)].table;
                let options = VacuumOptions {
                    freeze: *freeze,
                    max_workers: *parallel,
                    ..VacuumOptions::default()
                };
                db.vacuum_as(table, options)?;
                db.close_statement(false);
            }
            Command::Rewrite { table } => {
                db.rewrite(self.loaded[number_of(self.spec, table)].table)?;
                db.close_statement(false);
            }
            Command::Fillfactor { table, percent } => {
                let table = self.loaded[number_of(self.spec, table)].table;
                db.set_fillfactor(table, HeapFillfactor::new(*percent)?);
            }
            Command::Begin { isolation } => {
                self.session(step.session).in_transaction = true;
                db.set_isolation(match isolation.as_deref() {
                    Some("repeatable read") => Isolation::RepeatableRead,
                    _ => Isolation::ReadCommitted,
                });
            }
            Command::Commit | Command::Rollback => {
                let commits = matches!(step.command, Command::Commit);
                return Ok(self.end_transaction(db, step.session, commits));
            }
            Command::Checkpoint => db.checkpoint(),
            Command::Hold => self.held = Some(db.procs_mut().hold()),
            Command::Release => {
                let held = self.held.take().expect("a snapshot is held");
                db.procs_mut().release(held);
            }
            Command::Reconnect => db.forget_target_blocks(),
            Command::Savepoint { name } => {
                self.session(step.session).savepoints.push(name.clone());
                db.begin_part();
            }
            Command::RollbackTo { name } => {
                let session = self.session(step.session);
                let parts = session.parts_before(name);
                session.savepoints.truncate(parts + 1);
                session.has_failed = false;
                return Ok(db.rollback_to(parts));
            }
            Command::ReleaseSavepoint { name } => {
                let session = self.session(step.session);
                let parts = session.parts_before(name);
                session.savepoints.truncate(parts);
                db.release_to(parts);
            }
            Command::Fetch { rows } => {
                let found = db.fetch(*rows)?;
                self.done[place].ends.push(End::Rows(found));
            }
            Command::Close => db.close_cursor(),
        }
        Ok(Vec::new())
    }

    /// Ends a session's transaction; the sessions that may go on.
    fn end_transaction(
        &mut self,
        db: &mut Database,
        session: usize,
        commits: bool,
    ) -> Vec<SessionId> {
        let session = self.session(session);
        session.in_transaction = false;
        session.savepoints.clear();
        let woken = if std::mem::take(&mut session.has_failed) {
            Vec::new()
        } else if commits {
            db.commit()
        } else {
            db.rollback()
        };
        db.set_isolation(Isolation::ReadCommitted);
        woken
    }

    /// A statement has ended, and with it the transaction outside of one; who may go on.
    fn end_statement(&mut self, db: &mut Database, session: usize) -> Vec<SessionId> {
        self.statements += 1;
        if self.session(session).in_transaction {
            Vec::new()
        } else {
            db.commit()
        }
    }

    fn copy(
        &mut self,
        db: &mut Database,
        step: &Step,
        table: &str,
        keys: std::ops::RangeInclusive<i64>,
        line_bytes: &[u32],
    ) -> Result<(), StatementError> {
        let loaded = &self.loaded[number_of(self.spec, table)];
        let mut rows: Vec<Vec<Value>> = Vec::new();
        for key in keys {
            let columns = (1..).zip(loaded.rules.iter().zip(&loaded.column_types));
            let values = columns.map(|(number, (rule, kind))| rule.value(kind, key, number));
            rows.push(values.collect::<Result<_, _>>()?);
        }
        assert_eq!(rows.len(), line_bytes.len(), "rows and their lines");
        let rows = rows.iter().zip(line_bytes);
        let rows = rows.map(|(values, &line_bytes)| CopyRow { values, line_bytes });
        db.copy(loaded.table, rows)?;
        db.end_statement(loaded.table)?;
        self.end_statement(db, step.session);
        Ok(())
    }
}
