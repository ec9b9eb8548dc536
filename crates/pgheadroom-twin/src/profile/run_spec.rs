//! The fields of a profile's run, under their names in the file.

use serde::Deserialize;

/// How long, and by whom.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Transactions in all; this or a duration.
    pub operations: Option<u64>,
    /// Seconds.
    pub duration_s: Option<f64>,
    /// Transactions a second.
    pub rate_per_s: Option<f64>,
    /// Sessions.
    pub clients: u32,
    /// pgbench's `--random-seed`.
    pub seed: u64,
    /// Of all transactions.
    #[serde(default)]
    pub isolation: Isolation,
    /// Snapshots held by other sessions.
    #[serde(default)]
    pub snapshot: Vec<SnapshotSpec>,
    /// Commands that another session runs meanwhile, in their order.
    #[serde(default)]
    pub maintenance: Vec<MaintenanceSpec>,
    /// How long several clients' sessions take for what they do, as far as it is known.
    #[serde(default)]
    pub machine: MachineSpec,
}

/// Means of the times of several clients' sessions, in microseconds; what is `None` is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// At work on an UPDATE by key whose transaction goes on.
    pub statement_us: Option<f64>,
    /// At work on the COMMIT of a transaction that has written.
    pub commit_us: Option<f64>,
    /// Between two statements of a transaction.
    pub pause_us: Option<f64>,
    /// Between two transactions.
    pub between_us: Option<f64>,
    /// Until one goes on that has waited for another.
    pub wake_us: Option<f64>,
    /// Processors that the sessions and their clients have.
    pub processors: Option<u32>,
}

impl MachineSpec {
    /// Whether something is known beside statements and COMMITs, whose ratio to these counts.
    pub(crate) const fn says_times(&self) -> bool {
        self.pause_us.is_some() || self.between_us.is_some() || self.wake_us.is_some()
    }
}

/// `default_transaction_isolation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[allow(missing_docs)] // SQL's words
pub enum Isolation {
    #[default]
    #[serde(rename = "read committed")]
    ReadCommitted,
    #[serde(rename = "repeatable read")]
    RepeatableRead,
}

/// A snapshot held by another session, in fractions of the run.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotSpec {
    /// When it is taken.
    pub start_frac: f64,
    /// How long it is held.
    pub length_frac: f64,
}

/// A command that another session runs between two transactions.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceSpec {
    /// Which one.
    #[serde(rename = "do")]
    pub command: CommandName,
    /// The table's name.
    pub table: String,
    /// The index of `reindex`, all of the table's when absent, and of `cluster`.
    #[serde(default)]
    pub index: Option<String>,
    /// Of `vacuum`: with the option FREEZE.
    #[serde(default)]
    pub freeze: bool,
    /// Of `vacuum`: with the option PARALLEL, so many workers at most.
    #[serde(default)]
    pub parallel: u32,
    /// After how many transactions; this or a fraction.
    #[serde(default)]
    pub after: Option<u64>,
    /// After which part of the run.
    #[serde(default)]
    pub at_frac: Option<f64>,
}

/// Commands that keep a table in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // SQL's words
pub enum CommandName {
    Vacuum,
    #[serde(rename = "vacuum full")]
    VacuumFull,
    Analyze,
    Reindex,
    Truncate,
    Cluster,
}
