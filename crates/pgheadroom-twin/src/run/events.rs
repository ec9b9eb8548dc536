//! What happens to a run from outside: checkpoints, autovacuums, snapshots held elsewhere.
//!
//! ```text
//! profile + conditions -> Plan -> Events: [at transaction 1200: CHECKPOINT, at 5000: hold, ...]
//! ```

use std::sync::Arc;

use crate::executor::{
    Database, Maintenance, Model, Relation, RunningVacuum, StatementError, TableId, VacuumStep,
};
use crate::procarray::HeldSnapshot;
use crate::procarray::Isolation;
use crate::profile::{self, MachineSpec, ProfileError, ProfileSpec, SampleSpec, ServerSpec};
use crate::run::background::Timing;
use crate::run::elsewhere::Whole;
use crate::run::maintenance;
use crate::run::rewrites::{self, RewriteAt, RewriteDone, SpreadRewrite};
use crate::run::standing::Standing;
use crate::run::support;
use crate::run::within::{part, table_of};
use crate::vacuum::VacuumOptions;
use pgheadroom_layout::HeapFillfactor;

/// What a server does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A checkpoint begins: from here on first changes carry images.
    CheckpointStarting,
    /// A checkpoint is complete.
    CheckpointComplete,
    /// Autovacuum has vacuumed a table.
    Autovacuum,
    /// Autovacuum begins to vacuum a table; without it the whole of that happens at its end.
    AutovacuumStarting,
    /// Autovacuum has analyzed a table.
    Autoanalyze,
}

impl EventKind {
    /// The kind of this name, as the Python side's `Event` has it.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "checkpoint_starting" => Self::CheckpointStarting,
            "checkpoint_complete" => Self::CheckpointComplete,
            "autovacuum" => Self::Autovacuum,
            "autovacuum_starting" => Self::AutovacuumStarting,
            "autoanalyze" => Self::Autoanalyze,
            _ => return None,
        })
    }
}

/// Something that the server did by itself during a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When, as a fraction of the run.
    pub at_frac: f64,
    /// What.
    pub kind: EventKind,
    /// To which table.
    pub table: Option<String>,
}

impl Event {
    fn is_vacuum(&self) -> bool {
        matches!(
            self.kind,
            EventKind::AutovacuumStarting | EventKind::Autovacuum
        )
    }

    fn starts(&self) -> bool {
        self.kind == EventKind::AutovacuumStarting
    }
}

/// What a profile leaves open about its run.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// Seed of the order in which several clients' transactions run.
    pub interleaving: u64,
    /// What the server did by itself; `None` when that is not known.
    pub events: Option<Vec<Event>>,
    /// Transactions of a run that is given by its duration.
    pub transactions: Option<u64>,
    /// How time passes; `None` where only the order counts.
    pub timing: Option<Timing>,
    /// Fillfactors that tables get after they are loaded, by name: pages stay as they are.
    pub fillfactors_later: Vec<(String, i64)>,
    /// Fillfactors that tables get in the middle of the run: which, percent, at which fraction.
    pub fillfactors_at: Vec<(String, i64, f64)>,
    /// Tables that are rewritten in the middle of the run.
    pub rewrites: Vec<RewriteAt>,
    /// A page whose life is wanted: its table's name and its number.
    pub watch: Option<(String, u32)>,
    /// What is otherwise than on a server, once tables are loaded; the first that answers counts.
    pub models: Vec<Arc<dyn Model>>,
    /// Whether the order of the tables is measured, before the run and after it.
    pub order: bool,
    /// How often clients stand still, if somebody has measured it.
    pub standing: Option<Standing>,
    /// Transactions of each client by stretch of the run, if somebody has measured them.
    pub course: Vec<Vec<u32>>,
}

impl Conditions {
    /// The server's settings as far as they have an effect.
    pub(super) fn settings(&self, server: &ServerSpec) -> ServerSpec {
        if self.writes_pages() {
            server.clone()
        } else {
            server.without_pages()
        }
    }

    fn writes_pages(&self) -> bool {
        self.models.iter().all(|model| model.writes_pages())
    }
}

impl Action {
    /// Whether it waits until nobody is in a transaction, by its lock.
    const fn is_exclusive(self) -> bool {
        match self {
            Self::Rewrite(_) | Self::RewriteOnline(..) => true,
            Self::Maintain(_, what) => what.is_exclusive(),
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Checkpoint,
    /// Until so many transactions are done.
    Vacuum(TableId, u64),
    /// Of this table, or of one of the catalogue.
    Analyze(Option<TableId>),
    /// ALTER TABLE SET (fillfactor): pages stay as they are.
    Alter(TableId, HeapFillfactor),
    /// VACUUM FULL.
    Rewrite(TableId),
    /// The same beside clients, until so many transactions are done.
    RewriteOnline(TableId, u64),
    /// A command of another session.
    Maintain(TableId, Maintenance),
    /// The snapshot of this number.
    Hold(usize),
    Release(usize),
}

/// How a profile is run.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Transactions in all.
    pub transactions: u64,
    /// Most transactions of one client.
    pub transactions_each: u64,
    /// Seed of the order in which several clients' transactions run.
    pub interleaving: u64,
    /// Transactions a second, if they come at a rate.
    pub rate_per_s: Option<f64>,
    /// How long clients' snapshots last.
    pub isolation: Isolation,
    /// How often clients stand still, if somebody has measured it.
    pub standing: Option<Standing>,
    /// Transactions of each client by stretch of the run, if somebody has measured them.
    pub course: Vec<Vec<u32>>,
    /// How long clients' sessions take, as far as it is known.
    pub machine: MachineSpec,
    /// What this is a share of.
    pub whole: Option<Whole>,
    /// What is not played as a server would, in sentences.
    pub approximations: Vec<String>,
    /// In order: after how many transactions, and what.
    actions: Vec<(u64, Action)>,
}

impl Plan {
    /// The plan of one client's run, without anything from outside.
    #[must_use]
    pub fn of_one_client(transactions: u64) -> Self {
        Self::of_clients(1, transactions, 0)
    }

    /// The same of some clients, each with so many transactions.
    #[must_use]
    pub fn of_clients(clients: u64, transactions_each: u64, interleaving: u64) -> Self {
        Self {
            transactions: clients * transactions_each,
            transactions_each,
            interleaving,
            ..Self::default()
        }
    }

    /// How a profile is run under these conditions.
    ///
    /// # Errors
    /// [`ProfileError`] names what the twin does not play, or what of the conditions is missing.
    pub fn new(spec: &ProfileSpec, conditions: &Conditions) -> Result<Self, ProfileError> {
        let (transactions, approximations) = support::check(spec, conditions)?;
        let mut actions = Vec::new();
        let events = conditions.events.as_deref().unwrap_or_default();
        for (position, event) in events.iter().enumerate() {
            let later = &events[position + 1..];
            let at = part(event.at_frac, transactions);
            let action = match event.kind {
                EventKind::CheckpointStarting if !conditions.writes_pages() => continue,
                EventKind::CheckpointStarting => Action::Checkpoint,
                EventKind::CheckpointComplete => continue,
                EventKind::Autoanalyze => Action::Analyze(table_of(spec, event.table.as_deref())),
                EventKind::AutovacuumStarting | EventKind::Autovacuum => {
                    let Some(table) = table_of(spec, event.table.as_deref()) else {
                        continue; // a table of the catalogue
                    };
                    let is_its = |other: &&Event| other.table == event.table && other.is_vacuum();
                    let ends = event.kind == EventKind::Autovacuum;
                    if ends
                        && events[..position]
                            .iter()
                            .rfind(is_its)
                            .is_some_and(Event::starts)
                    {
                        continue; // it has begun before
                    }
                    let end = later.iter().find(is_its).filter(|_| !ends);
                    Action::Vacuum(table, end.map_or(at, |end| part(end.at_frac, transactions)))
                }
            };
            actions.push((at, action));
        }
        for (number, snapshot) in spec.run.snapshot.iter().enumerate() {
            let end_frac = snapshot.start_frac + snapshot.length_frac;
            actions.push((
                part(snapshot.start_frac, transactions),
                Action::Hold(number),
            ));
            actions.push((part(end_frac, transactions), Action::Release(number)));
        }
        for (name, percent, at_frac) in &conditions.fillfactors_at {
            let (table, fillfactor) = altered(spec, name, *percent)?;
            let at = part(*at_frac, transactions);
            actions.push((at, Action::Alter(table, fillfactor)));
        }
        for rewrite in &conditions.rewrites {
            let table = table_of(spec, Some(&rewrite.table)).ok_or_else(|| {
                ProfileError::unsupported("the rewritten table", &rewrite.table, "a table")
            })?;
            let at = part(rewrite.at_frac, transactions);
            let action = match rewrite.until_frac {
                None => Action::Rewrite(table),
                Some(until) => Action::RewriteOnline(table, part(until, transactions).max(at)),
            };
            actions.push((at, action));
        }
        for (at, table, what) in maintenance::commands_of(spec, transactions)? {
            actions.push((at, Action::Maintain(table, what)));
        }
        actions.sort_by_key(|&(at, _)| at);
        Ok(Self {
            transactions,
            transactions_each: transactions.div_ceil(u64::from(spec.run.clients)),
            interleaving: conditions.interleaving,
            rate_per_s: spec.run.rate_per_s,
            standing: conditions.standing.clone(),
            course: conditions.course.clone(),
            machine: spec.run.machine,
            isolation: match spec.run.isolation {
                profile::Isolation::ReadCommitted => Isolation::ReadCommitted,
                profile::Isolation::RepeatableRead => Isolation::RepeatableRead,
            },
            whole: spec.sample.map(|sample| whole_of(spec, sample)),
            approximations,
            actions,
        })
    }
}

/// The whole that a sample stands for. Branches and tellers are there whole when their scale is.
fn whole_of(spec: &ProfileSpec, sample: SampleSpec) -> Whole {
    let tables = ["pgbench_branches", "pgbench_tellers"];
    let tables = tables.iter().filter(|_| sample.whole_scale.is_some());
    Whole {
        transactions_each: sample
            .whole_operations
            .div_ceil(u64::from(spec.run.clients)),
        tables: tables
            .filter_map(|name| table_of(spec, Some(name)))
            .collect(),
    }
}

/// The table of this name, and a fillfactor that it may have.
pub(super) fn altered(
    spec: &ProfileSpec,
    name: &str,
    percent: i64,
) -> Result<(TableId, HeapFillfactor), ProfileError> {
    let bad = |expected: String| ProfileError::Unsupported {
        field: format!("the later fillfactor of {name}"),
        found: percent.to_string(),
        expected,
    };
    let table = table_of(spec, Some(name)).ok_or_else(|| bad("a table".into()))?;
    let fillfactor = HeapFillfactor::new(percent).map_err(|error| bad(error.to_string()))?;
    Ok((table, fillfactor))
}

/// A plan's actions that are still to come, and the snapshots that are held.
#[derive(Debug)]
pub(super) struct Events<'a> {
    left: &'a [(u64, Action)],
    held: Vec<(usize, HeldSnapshot)>,
    vacuums: Vec<SpreadVacuum>,
    rewrites: Vec<SpreadRewrite>,
    rewritten: Vec<RewriteDone>,
    /// How many commands rows were put elsewhere by.
    moved: usize,
}

/// A VACUUM whose pages are looked at evenly between two times.
#[derive(Debug)]
struct SpreadVacuum {
    running: RunningVacuum,
    table: TableId,
    /// After how many transactions it begins and ends.
    from: u64,
    until: u64,
    /// Pages of the table and its indexes: looked at, and to be looked at in all, about.
    done: u64,
    pages: u64,
}

impl SpreadVacuum {
    fn begin(table: TableId, from: u64, until: u64, db: &Database) -> Self {
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

    /// Goes on to where it is after so many transactions; whether it is over. One that a server's
    /// would fail in is: autovacuum says so in the log alone.
    fn go_on(&mut self, transactions: u64, db: &mut Database) -> Result<bool, StatementError> {
        let is_last = transactions >= self.until;
        let passed = transactions - self.from;
        while is_last || self.done * (self.until - self.from) < self.pages * passed {
            let step = match db.vacuum_step(&mut self.running) {
                Err(error) if error.ends_vacuum() => return Ok(true),
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
                VacuumStep::Done(_) => {
                    db.end_vacuum(self.table)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl<'a> Events<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self {
            left: &plan.actions,
            held: Vec::new(),
            vacuums: Vec::new(),
            rewrites: Vec::new(),
            rewritten: Vec::new(),
            moved: 0,
        }
    }

    /// Nothing is due before so many transactions.
    pub fn quiet_until(&self) -> u64 {
        if self.vacuums.is_empty() && self.rewrites.is_empty() {
            self.left.first().map_or(u64::MAX, |&(at, _)| at)
        } else {
            0
        }
    }

    /// Whether something is due that waits until nobody is in a transaction: a rewrite, or another
    /// command that locks the table.
    pub fn needs_quiet(&self, transactions: u64) -> bool {
        let mut due = self.left.iter().take_while(|&&(at, _)| at <= transactions);
        let begins = due.any(|&(_, action)| action.is_exclusive());
        let mut rewrites = self.rewrites.iter();
        begins || rewrites.any(|rewrite| rewrite.until() <= transactions)
    }

    /// Does what is due after so many transactions; how often rows were put elsewhere so far.
    ///
    /// # Errors
    /// What a command meets that the twin cannot play, or that a server fails with, and its table.
    pub fn happen(
        &mut self,
        transactions: u64,
        db: &mut Database,
    ) -> Result<usize, (StatementError, TableId)> {
        self.begin_and_end(transactions, db)?;
        for mut vacuum in std::mem::take(&mut self.vacuums) {
            let table = vacuum.table;
            let gone_on = vacuum.go_on(transactions, db);
            if !gone_on.map_err(|error| (error, table))? {
                self.vacuums.push(vacuum);
            }
        }
        if !self.rewrites.is_empty() {
            self.copy(transactions, db)?;
        }
        Ok(self.rewritten.len() + self.moved)
    }

    /// Tables that were rewritten, in the order of the end.
    pub fn rewritten(&self) -> &[RewriteDone] {
        &self.rewritten
    }

    fn copy(
        &mut self,
        transactions: u64,
        db: &mut Database,
    ) -> Result<(), (StatementError, TableId)> {
        for mut rewrite in std::mem::take(&mut self.rewrites) {
            let table = rewrite.table();
            let of_table = |error| (error, table);
            if rewrite.until() <= transactions {
                let done = rewrite.end(db).map_err(of_table)?;
                self.vacuums.retain(|vacuum| vacuum.table != done.table);
                self.rewritten.push(done);
            } else {
                rewrite.go_on(transactions, db).map_err(of_table)?;
                self.rewrites.push(rewrite);
            }
        }
        Ok(())
    }

    fn begin_and_end(
        &mut self,
        transactions: u64,
        db: &mut Database,
    ) -> Result<(), (StatementError, TableId)> {
        while let Some((&(at, action), rest)) = self.left.split_first() {
            if at > transactions {
                break;
            }
            self.left = rest;
            match action {
                Action::Checkpoint => db.checkpoint(),
                Action::Vacuum(table, until) => {
                    let vacuum = SpreadVacuum::begin(table, at, until.max(at), db);
                    self.vacuums.push(vacuum);
                }
                Action::Analyze(Some(table)) => {
                    db.forget_targets_of_table(table);
                    db.clean_pending_lists(table);
                }
                Action::Analyze(None) => {}
                Action::Alter(table, fillfactor) => {
                    db.set_fillfactor(table, fillfactor);
                    db.forget_target_blocks();
                }
                Action::Rewrite(table) => {
                    let done = rewrites::at_once(table, at, db);
                    let done = done.map_err(|error| (error, table))?;
                    self.vacuums.retain(|vacuum| vacuum.table != table);
                    self.rewritten.push(done);
                }
                Action::RewriteOnline(table, until) => {
                    let begun = SpreadRewrite::begin(table, at, until, db);
                    self.rewrites.push(begun.map_err(|error| (error, table))?);
                }
                Action::Maintain(table, what) => {
                    let done = db.maintain(table, what);
                    done.map_err(|error| (error, table))?;
                    self.moved += 1;
                }
                Action::Hold(number) => {
                    self.held.push((number, db.procs_mut().hold()));
                }
                Action::Release(number) => {
                    let mut held = self.held.iter();
                    let position = held.position(|&(known, _)| known == number);
                    let (_, snapshot) = self.held.swap_remove(position.expect("a held snapshot"));
                    db.procs_mut().release(snapshot);
                }
            }
        }
        Ok(())
    }
}
