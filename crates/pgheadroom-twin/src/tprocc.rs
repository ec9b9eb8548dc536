//! The laboratory's TPC-C-derived workload, `tprocc`: its nine tables and five procedures.
//!
//! ```text
//! load -> aging, by clients of its own -> checkpoint, new sessions -> the window -> Outcome
//! ```
//!
//! The rows are those that the laboratory loads: lengths, names, customers and items come from the
//! same hashes. pgbench's variables are drawn in the order of its scripts, so transactions are the
//! very ones that pgbench calls (of several clients in another order). A procedure's statements
//! follow on each other without a way to the client, in one snapshot that holds the horizon until
//! it ends.
//!
//! Keys of districts, customers and rows of stock, of which there are always as many, are one
//! integer each, in the order of the columns and as long as they are. Left out: items, which nobody
//! changes, once they are loaded.

mod calls;
mod drawn;
mod orders;
mod tables;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use pgheadroom_layout::PgVersion;
use serde::Deserialize;

use crate::executor::Model;
use crate::profile::{Monitor, ProfileError, ServerSpec, load};
use crate::reserve::Playing;
use crate::run::{Outcome, Plan, run};
use calls::Calls;
use orders::Orders;

/// What is played.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TproccSpec {
    /// The server's settings.
    pub server: ServerSpec,
    /// How many warehouses.
    pub warehouses: u32,
    /// Percent by table; 100 for one that is not named.
    pub fillfactor: BTreeMap<String, i64>,
    /// Whether each client stays at the warehouse of its own number.
    pub at_home: bool,
    /// Before the window.
    pub age: StretchSpec,
    /// The window.
    pub window: StretchSpec,
}

/// A call of pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StretchSpec {
    /// pgbench's clients.
    pub clients: u32,
    /// Transactions of each.
    pub transactions: u64,
    /// pgbench's `--random-seed`.
    pub seed: u64,
}

impl TproccSpec {
    /// Reads JSON.
    ///
    /// # Errors
    /// [`ProfileError::NotAProfile`] with the parser's words, or what is out of range.
    pub fn from_json(text: &str) -> Result<Self, ProfileError> {
        let not_a_profile = |reason: String| ProfileError::NotAProfile { reason };
        let spec: Self =
            serde_json::from_str(text).map_err(|error| not_a_profile(error.to_string()))?;
        let clients = [spec.age.clients, spec.window.clients];
        if !(1..=values::WAREHOUSES_MAX).contains(&spec.warehouses) || clients.contains(&0) {
            return Err(not_a_profile(format!(
                "{} warehouses, {clients:?} clients",
                spec.warehouses
            )));
        }
        Ok(spec)
    }

    fn transactions_of(stretch: StretchSpec) -> u64 {
        u64::from(stretch.clients).saturating_mul(stretch.transactions)
    }
}

/// Loads, ages and runs the workload; what the window did, and pages before it by table: as loaded
/// and as aged.
///
/// `interleaving` is the seed of the order in which several clients' statements run.
///
/// # Errors
/// [`ProfileError`]: a table cannot grow, memory runs out, or it was told to stop.
pub fn play(
    spec: &TproccSpec,
    version: PgVersion,
    interleaving: u64,
    models: &[Arc<dyn Model>],
    monitor: &Monitor,
) -> Result<(Outcome, BTreeMap<String, u32>), ProfileError> {
    let short = |_| ProfileError::OutOfMemory { needed_bytes: None };
    let _playing = Playing::begin().map_err(short)?;
    let server = if models.iter().all(|model| model.writes_pages()) {
        spec.server.clone()
    } else {
        spec.server.without_pages()
    };
    let stretches = [spec.age, spec.window].map(TproccSpec::transactions_of);
    monitor.start(tables::rows(spec.warehouses) + stretches.iter().sum::<u64>());
    let mut db = load::database(&server, version);
    tables::load(&mut db, spec, monitor)?;
    let loaded = pages(&db);
    db.use_models(models);
    let mut orders = Orders::loaded(i64::from(spec.warehouses));
    let mut outcome = None;
    for (stretch, seed) in [(spec.age, !interleaving), (spec.window, interleaving)] {
        if stretch.transactions == 0 {
            continue;
        }
        db.checkpoint();
        let mut workload = Calls::new(spec, stretch, orders);
        let clients = u64::from(stretch.clients);
        let plan = Plan::of_clients(clients, stretch.transactions, seed);
        outcome = Some(run(
            &mut db,
            &mut workload,
            &tables::names(),
            &plan,
            monitor,
        )?);
        orders = workload.into_orders();
    }
    let outcome = outcome.ok_or_else(|| ProfileError::NotAProfile {
        reason: "no transactions".to_owned(),
    })?;
    Ok((outcome, loaded))
}

/// Pages of tables and their indexes, by table.
fn pages(db: &crate::executor::Database) -> BTreeMap<String, u32> {
    let of = |table| {
        let table = db.table(table);
        table.heap().page_count() + table.index_pages().iter().sum::<u32>()
    };
    tables::names()
        .into_iter()
        .zip(db.tables().map(of))
        .collect()
}
