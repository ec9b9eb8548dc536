//! Short scripted histories of one session: what a profile's random operations cannot tell.
//!
//! ```text
//! profile's tables -> load -> [statement | copy | vacuum | begin ... | hold ...] -> Outcome
//! ```
//!
//! Statements are operations of the profile, given their keys one by one; the other steps are
//! commands. The same steps are played on servers by `tools/scenario_script.py`.

use serde::Deserialize;

use pgheadroom_layout::{HeapFillfactor, PgVersion};

use crate::executor::{CopyRow, Database, StatementError};
use crate::pgbench::Generators;
use crate::procarray::HeldSnapshot;
use crate::profile::{LoadedTable, ProfileError, ProfileSpec, load, support};
use crate::run::{Conditions, Monitor, Outcome, outcome, perform};
use crate::vacuum::VacuumOptions;
use crate::value::Value;
use crate::workload::ProfileOperation;

/// A step of a history.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Step {
    /// An operation of the profile, once for each key.
    Statement {
        /// Its position in the profile.
        operation: usize,
        /// First key of each statement.
        keys: Vec<i64>,
    },
    /// COPY FROM of rows with these keys.
    Copy {
        /// The table's name.
        table: String,
        /// The first key.
        from: i64,
        /// The last key.
        to: i64,
        /// Bytes of each line, as the server made them.
        line_bytes: Vec<u32>,
    },
    /// VACUUM.
    Vacuum {
        /// The table's name.
        table: String,
        /// With the option FREEZE.
        #[serde(default)]
        freeze: bool,
    },
    /// VACUUM FULL.
    Rewrite {
        /// The table's name.
        table: String,
    },
    /// ALTER TABLE ... SET (fillfactor = ...).
    Fillfactor {
        /// The table's name.
        table: String,
        /// Percent.
        percent: i64,
    },
    /// BEGIN.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// CHECKPOINT.
    Checkpoint,
    /// Another session takes a snapshot.
    Hold,
    /// That session ends.
    Release,
    /// The session ends, and another one goes on.
    Reconnect,
}

/// Plays steps on a profile's tables, freshly loaded.
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
) -> Result<(Database, Outcome), ProfileError> {
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
    db.forget_target_blocks();
    db.wal_mut().reset_totals();
    db.reset_counters();
    let mut script = Script {
        spec,
        loaded: &loaded,
        operations: &operations,
        generators: Generators::new(0, 1),
        in_transaction: false,
        held: None,
        statements: 0,
    };
    for (number, step) in (1..).zip(steps) {
        script.step(&mut db, step).map_err(|error| {
            let path = format!("step[{}]", number - 1);
            load::failure(error, number, &spec.table[0].name, &path)
        })?;
    }
    let names: Vec<String> = spec.table.iter().map(|table| table.name.clone()).collect();
    let statements = script.statements;
    let outcome = outcome(&db, &names, statements, statements);
    Ok((db, outcome))
}

fn number_of(spec: &ProfileSpec, table: &str) -> usize {
    let mut tables = spec.table.iter();
    let number = tables.position(|known| known.name == table);
    number.expect("a table of the profile")
}

struct Script<'a> {
    spec: &'a ProfileSpec,
    loaded: &'a [LoadedTable],
    operations: &'a [ProfileOperation],
    /// Not drawn from: steps have their keys.
    generators: Generators,
    in_transaction: bool,
    held: Option<HeldSnapshot>,
    statements: u64,
}

impl Script<'_> {
    fn step(&mut self, db: &mut Database, step: &Step) -> Result<(), StatementError> {
        match step {
            Step::Statement { operation, keys } => {
                let operation = &self.operations[*operation];
                for &key in keys {
                    let client = &mut self.generators.clients[0];
                    let none = |_| unreachable!("a step's rows refer to loaded ones");
                    let statement = operation.at(key, operation.width_max(), &none, client);
                    perform(db, &statement)?;
                    self.end_statement(db);
                }
            }
            Step::Copy {
                table,
                from,
                to,
                line_bytes,
            } => self.copy(db, table, *from..=*to, line_bytes)?,
            Step::Vacuum { table, freeze } => {
                let table = self.loaded[number_of(self.spec, table)].table;
                let options = VacuumOptions {
                    freeze: *freeze,
                    ..VacuumOptions::default()
                };
                db.vacuum_as(table, options);
            }
            Step::Rewrite { table } => {
                db.rewrite(self.loaded[number_of(self.spec, table)].table)?;
            }
            Step::Fillfactor { table, percent } => {
                let table = self.loaded[number_of(self.spec, table)].table;
                db.set_fillfactor(table, HeapFillfactor::new(*percent)?);
            }
            Step::Begin => self.in_transaction = true,
            Step::Commit => {
                self.in_transaction = false;
                db.commit();
            }
            Step::Rollback => {
                self.in_transaction = false;
                db.rollback();
            }
            Step::Checkpoint => db.checkpoint(),
            Step::Hold => self.held = Some(db.procs_mut().hold()),
            Step::Release => {
                let held = self.held.take().expect("a snapshot is held");
                db.procs_mut().release(held);
            }
            Step::Reconnect => db.forget_target_blocks(),
        }
        Ok(())
    }

    fn end_statement(&mut self, db: &mut Database) {
        self.statements += 1;
        if !self.in_transaction {
            db.commit();
        }
    }

    fn copy(
        &mut self,
        db: &mut Database,
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
        self.end_statement(db);
        Ok(())
    }
}
