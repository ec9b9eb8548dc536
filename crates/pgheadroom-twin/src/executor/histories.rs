//! Random histories of several sessions, statement by statement: what they leave is the same
//! whether updates may take the fast paths or not.
//!
//! Beside what `tests/fast_path.rs` draws, here are savepoints, cursors, foreign keys, COPY, row
//! locks that do not wait, repeatable read, and a VACUUM beside all of them.

use crate::executor::cursor::CursorScan;
use crate::executor::index_definition::IndexMethod;
use crate::executor::{
    Action, Assignment, Assignments, Change, ColumnDefinition, CopyRow, Database, IndexDefinition,
    SessionId, StatementError, TableDefinition, TableId,
};
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::pgbench::Prng;
use crate::places;
use crate::procarray::Isolation;
use crate::value::{Text, Value};
use crate::wal::WalSettings;
use pgheadroom_layout::{HeapFillfactor, PgVersion};

/// Sessions with transactions; one more vacuums.
const CLIENTS: usize = 4;
const STEPS: usize = 400;
/// Rows of the table that the other one refers to.
const PARENTS: i64 = 60;
/// Rows that a COPY brings.
const COPIED: i64 = 12;
/// No 32 bits hold a number that is so much larger.
const WIDE: i64 = 1 << 33;

/// A statement of a session, by keys from one to another.
#[derive(Clone, Debug)]
enum Statement {
    Update(usize, Change<'static>, (i64, i64)),
    Lock(i64, LockTupleMode, LockWaitPolicy),
    Read(i64, i64),
    Delete(i64),
    /// Of the other table.
    UpdateParent(i64),
    Insert(i64),
    Copy(i64),
}

struct History {
    db: Database,
    tables: [TableId; 2],
    rows: i64,
    log: Vec<String>,
    prng: Prng,
    sessions: Vec<Session>,
    next_key: i64,
}

#[derive(Clone, Default)]
struct Session {
    waits_in: Option<Statement>,
    parts: usize,
    has_cursor: bool,
    is_active: bool,
}

fn one_of<T: Copy>(prng: &mut Prng, of: &[T]) -> T {
    let last = i64::try_from(of.len() - 1).unwrap();
    of[usize::try_from(prng.random(0, last)).unwrap()]
}

fn column(name: &str, kind: &str) -> ColumnDefinition {
    ColumnDefinition::new(name, kind).expect("a known type")
}

fn filler() -> Value {
    Value::Text(Text::padded(b'x', 60))
}

/// Key, an integer that may be NULL and refers to the other table, two integers, a string.
fn row(key: i64) -> Vec<Value> {
    let parent = if key % 5 == 0 {
        Value::Null
    } else {
        Value::Integer(key % 7)
    };
    vec![key.into(), parent, 0.into(), (key * 255).into(), filler()]
}

impl History {
    fn new(seed: u64, uses_fast_path: bool) -> Self {
        let mut prng = Prng::from_seed(seed);
        let version = one_of(&mut prng, &["15.18", "16.14", "17.10", "18.4"]);
        let version: PgVersion = version.parse().unwrap();
        let settings = WalSettings {
            full_page_writes: true,
            hints_are_logged: true,
            is_logical: false,
        };
        let mut db = Database::new(version.behaviour(), settings);
        let rows = one_of(&mut prng, &[6, 20, 60, 150]);
        let mut indexes = vec![IndexDefinition::on_columns(vec![0], true)];
        if prng.random(1, 3) == 1 {
            indexes.push(IndexDefinition::on_columns(vec![2], false));
        }
        if prng.random(1, 5) == 1 {
            indexes.push(IndexDefinition {
                method: IndexMethod::Brin,
                pages_per_range: 1,
                ..IndexDefinition::on_columns(vec![3], false)
            });
        }
        let fillfactor = one_of(&mut prng, &[50, 80, 100]);
        let kinds = ["int4", "int4", "int2", "int8", "varchar"];
        let child = db
            .create_table(TableDefinition {
                columns: kinds.map(|kind| column("c", kind)).to_vec(),
                indexes,
                fillfactor: HeapFillfactor::new(fillfactor).unwrap(),
            })
            .unwrap();
        let parent = db
            .create_table(TableDefinition {
                columns: ["int4", "int4", "bpchar(60)"]
                    .map(|kind| column("c", kind))
                    .to_vec(),
                indexes: vec![IndexDefinition::on_columns(vec![0], true)],
                fillfactor: HeapFillfactor::new(90).unwrap(),
            })
            .unwrap();
        for key in 0..PARENTS {
            db.insert(parent, &[key.into(), 0.into(), filler()])
                .unwrap();
        }
        for key in 1..=rows {
            db.insert(child, &row(key)).unwrap();
        }
        db.commit();
        if prng.random(1, 2) == 1 {
            db.add_foreign_key(child, 1, (parent, 0));
        }
        db.vacuum(child).unwrap();
        db.checkpoint();
        db.use_fast_path(uses_fast_path);
        db.open_sessions(CLIENTS + 1);
        if prng.random(1, 3) == 1 {
            db.switch_to(SessionId(1));
            db.set_isolation(Isolation::RepeatableRead);
        }
        Self {
            db,
            tables: [child, parent],
            rows,
            log: Vec::new(),
            prng,
            sessions: vec![Session::default(); CLIENTS],
            next_key: rows + 1,
        }
    }

    /// From 0 on.
    fn drawn(&mut self, below: i64) -> i64 {
        self.prng.random(0, below - 1)
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        one_of(&mut self.prng, of)
    }

    /// A statement that one of the sessions may begin.
    fn statement(&mut self) -> Statement {
        let hottest = if self.drawn(2) == 0 { 4 } else { self.rows };
        let key = 1 + self.drawn(self.rows.min(hottest));
        let update = |column, change| Statement::Update(column, change, (key, key));
        match self.drawn(20) {
            0..7 => {
                let addend = self.one_of(&[1, 1, 1, 1, 1, 1, WIDE, -WIDE]);
                update(3, Change::Add(addend))
            }
            7 => update(1, Change::Same),
            8 => update(2, Change::Next { grows_bytes: 0 }),
            9 => {
                let grows_bytes = self.one_of(&[2, 2, 2, 2500]);
                update(4, Change::Next { grows_bytes })
            }
            10 | 11 => {
                let last = key + self.one_of(&[3, 14]);
                Statement::Update(3, Change::Add(1), (key, last))
            }
            12 | 13 => {
                let modes = [
                    LockTupleMode::KeyShare,
                    LockTupleMode::Share,
                    LockTupleMode::NoKeyUpdate,
                    LockTupleMode::Update,
                ];
                let policies = [
                    LockWaitPolicy::Block,
                    LockWaitPolicy::Skip,
                    LockWaitPolicy::Error,
                ];
                let mode = self.one_of(&modes);
                Statement::Lock(key, mode, self.one_of(&policies))
            }
            14 => Statement::Read(key, key),
            15 => Statement::Read(key, key + 5),
            16 => Statement::Delete(key),
            17 => Statement::UpdateParent(self.drawn(7)),
            18 => {
                self.next_key += self.drawn(5).min(1); // now and then a key that is taken
                Statement::Insert(self.next_key)
            }
            _ => {
                self.next_key += COPIED;
                Statement::Copy(self.next_key - COPIED + 1)
            }
        }
    }

    fn begin(&mut self, session: usize, statement: Statement) {
        self.db.switch_to(SessionId(session));
        self.sessions[session].is_active = true;
        let table = self.tables[0];
        let done = match statement {
            Statement::Insert(key) => {
                let done = self.db.insert(table, &row(key));
                done.and_then(|()| self.db.end_or_wait(table)).map(|()| 1)
            }
            Statement::Copy(first) => {
                let rows: Vec<_> = (first..first + COPIED).map(row).collect();
                let lines = rows.iter().map(|values| CopyRow {
                    values,
                    line_bytes: 70,
                });
                let done = self.db.copy(table, lines).map(|_| ());
                done.and_then(|()| self.db.end_or_wait(table)).map(|()| 1)
            }
            _ => {
                let (tables, db) = (self.tables, &mut self.db);
                with_action(&statement, |which, (low, high), action| {
                    db.by_index(tables[which], 0, &[low], &[high], action)
                })
            }
        };
        self.after(session, statement, &done);
    }

    fn after(&mut self, session: usize, statement: Statement, done: &Result<u64, StatementError>) {
        let totals = self.db.wal().totals();
        self.log
            .push(format!("{session} {statement:?}: {done:?} {totals:?}"));
        match done {
            Ok(_) => self.db.close_statement(false),
            Err(StatementError::Waits(_)) => {
                self.sessions[session].waits_in = Some(statement);
                let circle = self.db.deadlock_of(SessionId(session));
                if !circle.is_empty() {
                    self.log.push(format!("{circle:?}"));
                    self.end(session, false);
                }
            }
            Err(_) => self.end(session, false),
        }
    }

    fn end(&mut self, session: usize, commits: bool) {
        self.db.switch_to(SessionId(session));
        self.sessions[session] = Session::default();
        let woken = if commits {
            self.db.commit()
        } else {
            self.db.rollback()
        };
        self.log
            .push(format!("{session} ends, {commits}: {woken:?}"));
        self.wake(&woken);
    }

    fn wake(&mut self, woken: &[SessionId]) {
        for &SessionId(session) in woken {
            let Some(statement) = self.sessions[session].waits_in.take() else {
                continue;
            };
            self.db.switch_to(SessionId(session));
            let done = match statement {
                Statement::Insert(_) | Statement::Copy(_) => match self.db.resume_insert(None) {
                    Ok(Some(_)) => self.db.end_or_wait(self.tables[0]).map(|()| 1),
                    Ok(None) => Ok(1),
                    Err(error) => Err(error),
                },
                _ => {
                    let db = &mut self.db;
                    with_action(&statement, |_, _, action| db.resume_scan(action, |_| true))
                }
            };
            self.after(session, statement, &done);
        }
    }

    /// Something that a session does beside statements by key, if it can.
    fn do_beside(&mut self, session: usize) {
        self.db.switch_to(SessionId(session));
        let parts = self.sessions[session].parts;
        let part = self.one_of(&[0, 1, 2]) % parts.max(1);
        match self.drawn(10) {
            0 | 1 if parts < 3 && self.sessions[session].is_active => {
                self.db.begin_part();
                self.sessions[session].parts += 1;
            }
            2 | 3 if parts > 0 => {
                let woken = self.db.rollback_to(part);
                self.sessions[session].parts = part + 1;
                self.log
                    .push(format!("{session} back to {part}: {woken:?}"));
                self.wake(&woken);
            }
            4 if parts > 0 => {
                self.db.release_to(part);
                self.sessions[session].parts = part;
            }
            5 if self.sessions[session].has_cursor => {
                let found = self.db.fetch(2);
                let totals = self.db.wal().totals();
                self.log
                    .push(format!("{session} fetches {found:?} {totals:?}"));
            }
            5 if parts == 0 && self.sessions[session].is_active => {
                let scan = self.one_of(&[CursorScan::Index(0), CursorScan::Seq(0)]);
                self.db.open_cursor(self.tables[0], scan, 1, 9);
                self.sessions[session].has_cursor = true;
            }
            6 => {
                self.db.switch_to(SessionId(CLIENTS));
                self.db.vacuum(self.tables[0]).unwrap();
                self.log.push("vacuum".to_owned());
            }
            7 => self.db.checkpoint(),
            _ => {
                let commits = self.drawn(4) > 0;
                self.end(session, commits);
            }
        }
    }

    /// What is left when all steps are done, and how many updates took the shortest way.
    fn play(mut self) -> (Vec<String>, u64) {
        for _ in 0..STEPS {
            let session = self.one_of(&[0, 1, 2, 3]);
            if self.sessions[session].waits_in.is_some() {
                continue;
            }
            if self.drawn(3) > 0 {
                let statement = self.statement();
                self.begin(session, statement);
            } else {
                self.do_beside(session);
            }
        }
        for session in (0..CLIENTS).chain(0..CLIENTS) {
            if self.sessions[session].waits_in.is_none() {
                self.end(session, session % 2 == 0);
            }
        }
        for table in self.tables {
            let of = self.db.table(table);
            let names = ["a", "b", "c"];
            let names = &names[..of.indexes.btrees.len()];
            let values: Vec<_> = (0..of.values.count())
                .map(|row| of.values.slots(row).to_vec())
                .collect();
            let places = places::of_table(of, "t", names);
            self.log
                .push(format!("{values:?} {places:?} {:?}", of.counters()));
        }
        let fast_updates = self.db.fast_updates();
        (self.log, fast_updates)
    }
}

/// The table, keys and action of a statement that finds its rows.
fn with_action<T>(
    statement: &Statement,
    run: impl FnOnce(usize, (i64, i64), &Action<'_>) -> T,
) -> T {
    let update = |column, change| [Assignment { column, change }];
    match *statement {
        Statement::Update(column, change, keys) => {
            let columns = &update(column, change);
            run(0, keys, &Action::Update(Assignments { columns }))
        }
        Statement::Lock(key, mode, policy) => run(0, (key, key), &Action::Lock(mode, policy)),
        Statement::Read(low, high) => run(0, (low, high), &Action::Read),
        Statement::Delete(key) => run(0, (key, key), &Action::Delete),
        Statement::UpdateParent(key) => {
            let columns = &update(1, Change::Add(1));
            run(1, (key, key), &Action::Update(Assignments { columns }))
        }
        Statement::Insert(_) | Statement::Copy(_) => unreachable!("no rows are found"),
    }
}

/// Every result, the log's totals after each statement, values, places and counters.
#[test]
fn fast_paths_change_nothing() {
    let mut fast_updates = 0;
    for seed in 0..150 {
        let (short, taken) = History::new(seed, true).play();
        let (long, none) = History::new(seed, false).play();
        fast_updates += taken;
        assert_eq!(none, 0);
        let differ = short
            .iter()
            .zip(&long)
            .position(|(one, other)| one != other);
        assert_eq!(differ.map(|at| (&short[at], &long[at])), None, "{seed}");
        assert_eq!(short.len(), long.len(), "{seed}");
    }
    assert!(fast_updates > 200, "{fast_updates}");
}
