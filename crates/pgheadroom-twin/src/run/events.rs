//! What happens to a run from outside: checkpoints, autovacuums, snapshots held elsewhere.
//!
//! ```text
//! profile + conditions -> Plan -> Events: [at transaction 1200: CHECKPOINT, at 5000: hold, ...]
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use crate::clock::Pace;
use crate::executor::{Database, Maintenance, Model, StatementError, TableId};
use crate::procarray::HeldSnapshot;
use crate::procarray::Isolation;
use crate::profile::{self, MachineSpec, ProfileError, ProfileSpec, SampleSpec, ServerSpec};
use crate::run::background::Timing;
use crate::run::elsewhere::Whole;
use crate::run::end_locks::{EndLocks, Moment};
use crate::run::maintenance;
use crate::run::rewrites::{self, RewriteAt, RewriteDone, SpreadRewrite};
use crate::run::spread_vacuum::{Progress, SpreadVacuum};
use crate::run::standing::Standing;
use crate::run::support;
use crate::run::within::{part, table_of};
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
    /// How long the run takes, in seconds, if somebody has measured it.
    pub duration_s: Option<f64>,
    /// How often clients stand still, if somebody has measured it.
    pub standing: Option<Standing>,
    /// Transactions of each client by stretch of the run, if somebody has measured them.
    pub course: Vec<Vec<u32>>,
    /// How many sessions are at work at a time, in the mean, if somebody has measured it.
    pub at_work: Option<f64>,
    /// Whether commands of maintenance begin where a server's run had them.
    pub is_maintenance_measured: bool,
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
    /// Transactions a second, where anything tells.
    pub per_s: Option<f64>,
    /// How long clients' snapshots last.
    pub isolation: Isolation,
    /// How often clients stand still, if somebody has measured it.
    pub standing: Option<Standing>,
    /// Transactions of each client by stretch of the run, if somebody has measured them.
    pub course: Vec<Vec<u32>>,
    /// How long clients' sessions take, as far as it is known.
    pub machine: MachineSpec,
    /// How many sessions are at work at a time, in the mean, if somebody has measured it.
    pub at_work: Option<f64>,
    /// Whether commands of maintenance begin where a server's run had them.
    pub is_maintenance_measured: bool,
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
            per_s: per_s(spec, conditions, transactions),
            standing: conditions.standing.clone(),
            course: conditions.course.clone(),
            machine: spec.run.machine,
            at_work: conditions.at_work,
            is_maintenance_measured: conditions.is_maintenance_measured,
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

/// How many transactions end in a second: as somebody has measured it, by the clock, or as the
/// profile has it.
fn per_s(spec: &ProfileSpec, conditions: &Conditions, transactions: u64) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)] // fewer than 2^53
    let within = |duration_s: f64| transactions as f64 / duration_s;
    let by_clock = conditions.timing.map(|timing| match timing.pace {
        Pace::Even { per_s } => per_s,
        Pace::Arrivals { duration_s } => within(duration_s),
    });
    let measured = conditions.duration_s.map(within);
    let stated = spec.run.rate_per_s.or(spec.run.duration_s.map(within));
    let per_s = measured.or(by_clock).or(stated);
    per_s.filter(|per_s| per_s.is_finite() && *per_s > 0.0)
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
    /// VACUUMs that wait for the lock on their table's end.
    end_locks: EndLocks,
    /// Commands that are due, whose session's VACUUM is among these.
    late: VecDeque<(TableId, Maintenance)>,
    /// Whether commands begin where a server's run had them.
    are_measured: bool,
}

/// How often rows were put elsewhere so far, or what a command has met, and its table.
type Happened = Result<usize, (StatementError, TableId)>;

impl<'a> Events<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self {
            left: &plan.actions,
            held: Vec::new(),
            vacuums: Vec::new(),
            rewrites: Vec::new(),
            rewritten: Vec::new(),
            moved: 0,
            end_locks: EndLocks::default(),
            late: VecDeque::new(),
            are_measured: plan.is_maintenance_measured,
        }
    }

    /// When a VACUUM that waits for a lock tries again.
    pub const fn tries_at(&self) -> f64 {
        self.end_locks.next()
    }

    /// It does, if it is time.
    ///
    /// # Errors
    /// As [`Self::happen`].
    pub fn try_again(
        &mut self,
        now: f64,
        db: &mut Database,
    ) -> Result<(), (StatementError, TableId)> {
        self.end_locks.try_again(now, db)
    }

    /// Whether the first command that was late may begin.
    fn has_late(&self) -> bool {
        !self.late.is_empty() && !self.end_locks.keep_commands()
    }

    /// Nothing is due before so many transactions.
    pub fn quiet_until(&self) -> u64 {
        if self.vacuums.is_empty() && self.rewrites.is_empty() && !self.has_late() {
            self.left.first().map_or(u64::MAX, |&(at, _)| at)
        } else {
            0
        }
    }

    /// Whether something is due that waits until nobody is in a transaction: a rewrite, or another
    /// command that locks the table.
    pub fn needs_quiet(&self, transactions: u64) -> bool {
        let mut due = self.left.iter().take_while(|&&(at, _)| at <= transactions);
        let keeps = self.end_locks.keep_commands() && !self.are_measured;
        let is_late = |action| keeps && matches!(action, Action::Maintain(..));
        let begins = due.any(|&(_, action)| action.is_exclusive() && !is_late(action))
            || (!keeps && self.late.iter().any(|(_, what)| what.is_exclusive()));
        let mut rewrites = self.rewrites.iter();
        begins || rewrites.any(|rewrite| rewrite.until() <= transactions)
    }

    /// Does what is due after so many transactions, at this time of the run.
    ///
    /// # Errors
    /// What a command meets that the twin cannot play, or that a server fails with, and its table.
    pub fn happen(&mut self, transactions: u64, moment: Moment, db: &mut Database) -> Happened {
        while self.has_late()
            && let Some((table, what)) = self.late.pop_front()
        {
            self.maintain(table, what, moment, db)?;
        }
        self.begin_and_end(transactions, moment, db)?;
        for vacuum in std::mem::take(&mut self.vacuums) {
            let table = vacuum.table;
            let gone_on = vacuum.go_on(transactions, db);
            match gone_on.map_err(|error| (error, table))? {
                Progress::Goes(vacuum) => self.vacuums.push(vacuum),
                Progress::Waits(vacuum) => self.end_locks.wait(vacuum, false, moment),
                Progress::Over => {}
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

    /// A command of another session, which does one after the other: where the server's began, its
    /// VACUUM before that was over.
    fn maintain(
        &mut self,
        table: TableId,
        what: Maintenance,
        moment: Moment,
        db: &mut Database,
    ) -> Result<(), (StatementError, TableId)> {
        if self.end_locks.keep_commands() && self.are_measured {
            self.end_locks.end_command(db)?;
        }
        if self.end_locks.keep_commands() {
            self.late.push_back((table, what));
            return Ok(());
        }
        let waits = db.maintain(table, what).map_err(|error| (error, table))?;
        if let Some(vacuum) = waits {
            self.end_locks.wait(vacuum, true, moment);
        }
        self.moved += 1;
        Ok(())
    }

    /// The table has new files: no VACUUM goes on that has begun with the old ones.
    fn forget_vacuums_of(&mut self, table: TableId) {
        self.vacuums.retain(|vacuum| vacuum.table != table);
        self.end_locks.forget(table);
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
                self.forget_vacuums_of(done.table);
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
        moment: Moment,
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
                    self.forget_vacuums_of(table);
                    self.rewritten.push(done);
                }
                Action::RewriteOnline(table, until) => {
                    let begun = SpreadRewrite::begin(table, at, until, db);
                    self.rewrites.push(begun.map_err(|error| (error, table))?);
                }
                Action::Maintain(table, what) => self.maintain(table, what, moment, db)?,
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
