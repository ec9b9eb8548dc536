//! What happens to a run from outside: checkpoints, autovacuums, snapshots held elsewhere.
//!
//! ```text
//! profile + conditions -> Plan -> Events: [at transaction 1200: CHECKPOINT, at 5000: hold, ...]
//! ```

use crate::engine::Engine;
use crate::executor::{Database, TableId};
use crate::horizon::HeldSnapshot;
use crate::profile::{ProfileError, ProfileSpec, load, support};
use crate::run::outside::Timing;
use crate::storage::Storage;

/// What a server does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A checkpoint begins: from here on first changes carry images.
    CheckpointStarting,
    /// A checkpoint is complete.
    CheckpointComplete,
    /// Autovacuum has vacuumed a table.
    Autovacuum,
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

/// What a profile leaves open about its run.
#[derive(Debug, Clone, PartialEq, Default)]
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
    /// A page whose life is wanted: its table's name and its number.
    pub watch: Option<(String, u32)>,
    /// Where pages are kept.
    pub storage: Storage,
    /// How rows are stored once they are loaded.
    pub engine: Engine,
    /// Whether the order of the tables is measured, before the run and after it.
    pub order: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Checkpoint,
    Vacuum(TableId),
    Analyze,
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
    /// What is not played as a server would, in sentences.
    pub approximations: Vec<String>,
    /// In order: after how many transactions, and what.
    actions: Vec<(u64, Action)>,
}

impl Plan {
    /// The plan of one client's run, without anything from outside.
    #[must_use]
    pub fn of_one_client(transactions: u64) -> Self {
        Self {
            transactions,
            transactions_each: transactions,
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
        for event in conditions.events.iter().flatten() {
            let action = match event.kind {
                EventKind::CheckpointStarting if !conditions.storage.has_checkpoints() => continue,
                EventKind::CheckpointStarting => Action::Checkpoint,
                EventKind::CheckpointComplete => continue,
                EventKind::Autoanalyze => Action::Analyze,
                EventKind::Autovacuum => match table_of(spec, event.table.as_deref()) {
                    Some(table) => Action::Vacuum(table),
                    None => continue, // a table of the catalogue
                },
            };
            actions.push((part(event.at_frac, transactions), action));
        }
        for (number, snapshot) in spec.run.snapshot.iter().enumerate() {
            let end_frac = snapshot.start_frac + snapshot.length_frac;
            actions.push((
                part(snapshot.start_frac, transactions),
                Action::Hold(number),
            ));
            actions.push((part(end_frac, transactions), Action::Release(number)));
        }
        actions.sort_by_key(|&(at, _)| at);
        Ok(Self {
            transactions,
            transactions_each: transactions.div_ceil(u64::from(spec.run.clients)),
            interleaving: conditions.interleaving,
            approximations,
            actions,
        })
    }
}

/// The number of transactions that is this part of a run.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
fn part(frac: f64, transactions: u64) -> u64 {
    (frac.clamp(0.0, 1.0) * transactions as f64).round() as u64
}

pub(super) fn table_of(spec: &ProfileSpec, name: Option<&str>) -> Option<TableId> {
    let name = name?;
    let names: Vec<&str> = if spec.pgbench.is_some() {
        load::PGBENCH_TABLES.to_vec()
    } else {
        spec.table.iter().map(|table| table.name.as_str()).collect()
    };
    names.iter().position(|known| *known == name).map(TableId)
}

/// A plan's actions that are still to come, and the snapshots that are held.
#[derive(Debug)]
pub(super) struct Events<'a> {
    left: &'a [(u64, Action)],
    held: Vec<(usize, HeldSnapshot)>,
}

impl<'a> Events<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self {
            left: &plan.actions,
            held: Vec::new(),
        }
    }

    /// Does what is due after so many transactions.
    pub fn happen(&mut self, transactions: u64, db: &mut Database) {
        while let Some((&(at, action), rest)) = self.left.split_first() {
            if at > transactions {
                return;
            }
            self.left = rest;
            match action {
                Action::Checkpoint => db.checkpoint(),
                Action::Vacuum(table) => db.vacuum(table),
                Action::Analyze => db.forget_target_blocks(),
                Action::Hold(number) => {
                    let xmin = db.horizon().xmin();
                    self.held.push((number, db.horizon_mut().hold_at(xmin)));
                }
                Action::Release(number) => {
                    let mut held = self.held.iter();
                    let position = held.position(|&(known, _)| known == number);
                    let (_, snapshot) = self.held.swap_remove(position.expect("a held snapshot"));
                    db.horizon_mut().release(snapshot);
                }
            }
        }
    }
}
