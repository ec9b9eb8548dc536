//! A run: a profile is loaded and its workload carried out, and what that did is summed up.
//!
//! ```text
//! play(profile, version) = load -> new window -> one transaction after the other -> Outcome
//! ```
//!
//! One client's run is exact. What depends on time is given ([`Conditions`]) or drawn: the order
//! of several clients' transactions, checkpoints and autovacuums.

mod ahead;
mod background;
mod clients;
mod course;
mod elsewhere;
mod end_locks;
mod events;
mod long_rows;
pub(crate) mod machine;
mod maintenance;
mod perform;
mod rewrites;
mod running;
mod schedule;
mod spread_vacuum;
mod standing;
pub mod support;
mod turns;
mod within;
mod work;

use pgheadroom_layout::{BlockNumber, PgVersion};

use crate::counters::TableCounters;
use crate::executor::{Database, TableId};
use crate::order::{Order, order_of};
use crate::pgbench::{ACCOUNTS_PER_SCALE, BRANCHES_PER_SCALE, Builtin, TELLERS_PER_SCALE};
use crate::profile::estimate::needed_bytes;
use crate::profile::{BuiltinName, Monitor, ProfileError, ProfileSpec, load, ranges, vary_stated};
use crate::reserve::{self, Playing};
use crate::wal::{Doubt, RecordType, Totals};
use crate::watch::PageLife;
use crate::workload::{PgbenchWorkload, ProfileWorkload, Workload};
use background::BackgroundProcesses;
pub use background::{Happened, Timing};
pub use elsewhere::Whole;
pub use events::{Conditions, Event, EventKind, Plan};
pub use perform::{perform, resume};
pub use rewrites::{RewriteAt, RewriteDone};
use running::Running;
pub use standing::Standing;

/// What a run did to a table, under the keys of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOutcome {
    /// The table.
    pub table: TableId,
    /// Its name.
    pub name: String,
    /// Its counters over the run.
    pub counters: TableCounters,
    /// Pages of its main fork at the end.
    pub heap_pages: u32,
    /// Pages of all its indexes at the end.
    pub index_pages: u32,
    /// Records that name its pages.
    pub wal: Totals,
    /// What is in doubt about their images.
    pub doubt: Doubt,
    /// Distinct pages that they name.
    pub pages_modified: usize,
}

/// How often an operation had its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turns {
    /// In all.
    pub turns: u64,
    /// Where its statement found no row.
    pub without_row: u64,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Transactions, those rolled back too.
    pub transactions: u64,
    /// Statements of the workload.
    pub operations: u64,
    /// Turns of each of a profile's operations.
    pub turns: Vec<Turns>,
    /// Transactions that failed to serialize, or in a deadlock, and were rolled back.
    pub failed_transactions: u64,
    /// Of several clients: the means of the times that their statements and COMMITs took, added, in
    /// those of an UPDATE by key whose transaction goes on.
    pub worked: f64,
    /// And how many pauses there were within their transactions.
    pub pauses: f64,
    /// Each table.
    pub tables: Vec<TableOutcome>,
    /// Records that end transactions.
    pub transaction_wal: Totals,
    /// All records by type, under `pg_waldump`'s names.
    pub by_record: Vec<(String, Totals)>,
    /// What was not played as a server would, in sentences; none when the result is exact.
    pub approximations: Vec<String>,
    /// Whether all that was not played so is drawn, by the twin as by a server.
    pub only_draws: bool,
    /// How many VACUUMs looked at pages that they might have skipped, from a place that is drawn.
    pub eager_scans: u64,
    /// How many ANALYZEs have read values out of line of rows that are drawn.
    pub samples_drawn: u64,
    /// Values out of line whose pointers may share other bytes with those they replaced.
    pub pointers_in_doubt: u64,
    /// What of it is a model, if it is no server's.
    pub model: Option<&'static str>,
    /// Where it was asked for: the order of each table before the run and after it.
    pub order: Vec<[Option<Order>; 2]>,
    /// What happened to the page that was to be watched.
    pub page_life: Option<PageLife>,
    /// What happened by the clock, where there was one.
    pub happened: Option<Happened>,
    /// Tables that were rewritten, in the order of the end.
    pub rewrites: Vec<RewriteDone>,
}

/// Loads a profile's tables and runs its workload; the database afterwards, and what it did.
///
/// # Errors
/// [`ProfileError`]: the twin cannot play it, a server could not either, or it was told to stop.
pub fn play(
    spec: &ProfileSpec,
    version: PgVersion,
    conditions: &Conditions,
    monitor: &Monitor,
) -> Result<(Database, Outcome), ProfileError> {
    ranges::check(spec, conditions.transactions)?;
    support::check_values(spec, version)?;
    let needed = needed_bytes(spec, conditions.transactions);
    let is_short = |_| out_of_memory(needed);
    let _playing = Playing::begin().map_err(is_short)?;
    reserve::probe(usize::try_from(needed).unwrap_or(usize::MAX)).map_err(is_short)?;
    if !conditions.rewrites.is_empty() || !spec.run.maintenance.is_empty() {
        // A copy of a table beside it, made without a look at the monitor.
        reserve::have(usize::try_from(needed).unwrap_or(usize::MAX)).map_err(is_short)?;
    }
    play_in(spec, version, conditions, monitor).map_err(|error| match error {
        ProfileError::OutOfMemory { .. } => out_of_memory(needed),
        other => other,
    })
}

const fn out_of_memory(needed: u64) -> ProfileError {
    let needed_bytes = Some(needed);
    ProfileError::OutOfMemory { needed_bytes }
}

/// The same, once memory is there.
fn play_in(
    spec: &ProfileSpec,
    version: PgVersion,
    conditions: &Conditions,
    monitor: &Monitor,
) -> Result<(Database, Outcome), ProfileError> {
    let mut spec = ProfileSpec {
        server: conditions.settings(&spec.server),
        ..spec.clone()
    };
    vary_stated(&mut spec.table, conditions.interleaving);
    let spec = &spec;
    let plan = Plan::new(spec, conditions)?;
    monitor.start(rows_to_load(spec) + plan.transactions.max(transactions_here(&plan, spec)));
    let mut db = load::database(&spec.server, version);
    db.draw_statistics(plan.interleaving);
    let before;
    let outcome = if let Some(pgbench) = &spec.pgbench {
        let whole_scale = spec.sample.and_then(|sample| sample.whole_scale);
        let whole_scale = whole_scale.unwrap_or(pgbench.scale);
        let tables = load::load_pgbench(&mut db, pgbench, whole_scale, monitor)?;
        let builtin = match pgbench.builtin {
            BuiltinName::TpcbLike => Builtin::TpcbLike,
            BuiltinName::SimpleUpdate => Builtin::SimpleUpdate,
            BuiltinName::SelectOnly => Builtin::SelectOnly,
        };
        let seed = spec.run.seed;
        let clients = spec.run.clients as usize;
        let each = plan.transactions_each;
        let mut workload = PgbenchWorkload::new(builtin, whole_scale, tables, seed, clients, each)
            .with_accounts_of(pgbench.scale);
        let names = load::PGBENCH_TABLES.map(str::to_owned);
        watch(&mut db, &names, conditions)?;
        let background = start(&mut db, spec, conditions, &plan)?;
        before = orders(&db, conditions);
        run_with(&mut db, &mut workload, &names, &plan, (background, monitor))?
    } else {
        let loaded = load::load_tables(&mut db, &spec.table, monitor)?;
        let mut workload = ProfileWorkload::new(spec, &loaded, plan.transactions_each)?;
        let names: Vec<String> = spec.table.iter().map(|table| table.name.clone()).collect();
        watch(&mut db, &names, conditions)?;
        let background = start(&mut db, spec, conditions, &plan)?;
        before = orders(&db, conditions);
        run_with(&mut db, &mut workload, &names, &plan, (background, monitor))?
    };
    let after = orders(&db, conditions);
    let order = before.into_iter().zip(after);
    let mut approximations = plan.approximations;
    let is_played_whole = approximations.is_empty();
    if db.eager_scans() > 0 {
        approximations.push(EAGER_SCANS.to_owned());
    }
    if db.samples_drawn() > 0 {
        approximations.push(SAMPLES.to_owned());
    }
    if approximations.is_empty() && db.pointers_in_doubt() > 0 {
        approximations.push(POINTERS.to_owned());
    }
    let outcome = Outcome {
        only_draws: is_played_whole && !approximations.is_empty(),
        approximations,
        eager_scans: db.eager_scans(),
        samples_drawn: db.samples_drawn(),
        pointers_in_doubt: db.pointers_in_doubt(),
        model: conditions
            .models
            .iter()
            .find_map(|model| model.sentence())
            .or(rewrites::model(&conditions.rewrites)),
        order: order.map(|(before, after)| [before, after]).collect(),
        ..outcome
    };
    Ok((db, outcome))
}

/// What nobody knows of a VACUUM of 18.
const EAGER_SCANS: &str = "where VACUUM begins to look at all-visible pages of tables from 64 \
     MiB, to freeze them, is drawn, as a server of 18 and later does";

/// What nobody knows of an ANALYZE of many rows.
const SAMPLES: &str = "of which rows ANALYZE reads values out of line, whose pages it prunes, is \
     drawn, as a server does where a table has more rows or pages than the sample";

/// What nobody knows of an ANALYZE of long values.
const POINTERS: &str = "how many values of pg_statistic an ANALYZE stores out of line, which takes \
     OIDs, is drawn: the pointer of a table's value shares a byte more or less with the one that \
     it replaces";

/// The order of each table, if it is asked for.
fn orders(db: &Database, conditions: &Conditions) -> Vec<Option<Order>> {
    let tables = db.tables().filter(|_| conditions.order);
    tables.map(|table| order_of(db, table)).collect()
}

/// What comes between loading and the first transaction.
fn start(
    db: &mut Database,
    spec: &ProfileSpec,
    conditions: &Conditions,
    plan: &Plan,
) -> Result<Option<BackgroundProcesses>, ProfileError> {
    if let Some(method) = spec.server.image_compression() {
        db.compress_images(method);
    }
    for (name, percent) in &conditions.fillfactors_later {
        let (table, fillfactor) = events::altered(spec, name, *percent)?;
        db.set_fillfactor(table, fillfactor);
    }
    db.use_models(&conditions.models);
    if !spec.run.maintenance.is_empty() {
        db.know_statistics();
    }
    begin_window(db);
    db.draw_eager_scans(plan.interleaving);
    let timing = conditions.timing;
    timing
        .map(|timing| {
            BackgroundProcesses::new(spec, timing, (plan.transactions, plan.interleaving), db)
        })
        .transpose()
}

/// Sessions are new, and everything counts from here on.
fn begin_window(db: &mut Database) {
    db.forget_target_blocks();
    db.wal_mut().reset_totals();
    db.reset_counters();
}

/// Starts to watch the page that is asked for.
fn watch(db: &mut Database, names: &[String], conditions: &Conditions) -> Result<(), ProfileError> {
    let Some((table, block)) = &conditions.watch else {
        return Ok(());
    };
    let position = names.iter().position(|name| name == table);
    let position = position.ok_or_else(|| ProfileError::Unsupported {
        field: "the page to watch".to_owned(),
        found: format!("table {table:?}"),
        expected: names.join(" or "),
    })?;
    db.watch(TableId(position), BlockNumber(*block));
    Ok(())
}

fn rows_to_load(spec: &ProfileSpec) -> u64 {
    let rows = |rows: i64| u64::try_from(rows).unwrap_or(0);
    let loaded = spec.table.iter().map(|table| rows(table.rows));
    let loaded = loaded.fold(0, u64::saturating_add);
    let scale = spec.pgbench.as_ref().map_or(0, |pgbench| pgbench.scale);
    let whole_scale = spec.sample.and_then(|sample| sample.whole_scale);
    let few = BRANCHES_PER_SCALE + TELLERS_PER_SCALE;
    let few = few.saturating_mul(whole_scale.unwrap_or(scale));
    let accounts = ACCOUNTS_PER_SCALE.saturating_mul(scale);
    loaded
        .saturating_add(rows(few))
        .saturating_add(rows(accounts))
}

/// Transactions that do something to a table that is there.
fn transactions_here(plan: &Plan, spec: &ProfileSpec) -> u64 {
    let whole = plan.whole.as_ref().filter(|whole| !whole.tables.is_empty());
    whole.map_or(plan.transactions, |whole| {
        whole
            .transactions_each
            .saturating_mul(u64::from(spec.run.clients))
    })
}

/// Carries out a workload in new sessions.
///
/// # Errors
/// [`ProfileError`] of the first statement that fails, since pgbench then gives up, or when it
/// was told to stop.
///
/// # Panics
/// When the database has another number of tables than there are names.
pub fn run(
    db: &mut Database,
    workload: &mut impl Workload,
    names: &[String],
    plan: &Plan,
    monitor: &Monitor,
) -> Result<Outcome, ProfileError> {
    begin_window(db);
    run_with(db, workload, names, plan, (None, monitor))
}

/// The same on a clock, after everything was set to begin.
fn run_with(
    db: &mut Database,
    workload: &mut impl Workload,
    names: &[String],
    plan: &Plan,
    (background, monitor): (Option<BackgroundProcesses>, &Monitor),
) -> Result<Outcome, ProfileError> {
    Running::new(db, workload, names, plan, (background, monitor)).finish()
}

pub(crate) fn outcome(
    db: &Database,
    names: &[String],
    transactions: u64,
    operations: u64,
) -> Outcome {
    let wal = db.wal();
    let tables = db.tables().zip(names).map(|(table, name)| {
        let of = db.table(table);
        TableOutcome {
            table,
            name: name.clone(),
            counters: *of.counters(),
            heap_pages: of.heap().page_count(),
            index_pages: of.index_pages().iter().sum(),
            wal: wal.of_table(table.0),
            doubt: wal.doubt_of(table.0),
            pages_modified: wal.named_pages(table.0),
        }
    });
    let tables: Vec<TableOutcome> = tables.collect();
    assert_eq!(tables.len(), names.len(), "tables and names");
    Outcome {
        transactions,
        operations,
        turns: Vec::new(),
        failed_transactions: 0,
        worked: 0.0,
        pauses: 0.0,
        tables,
        transaction_wal: wal.of_transactions(),
        by_record: by_record(db),
        approximations: Vec::new(),
        only_draws: false,
        eager_scans: 0,
        samples_drawn: 0,
        pointers_in_doubt: 0,
        model: None,
        order: Vec::new(),
        page_life: db.page_life(),
        happened: None,
        rewrites: Vec::new(),
    }
}

/// All records by type, under this version's names: 13 to 16 call two kinds of pruning alike.
fn by_record(db: &Database) -> Vec<(String, Totals)> {
    let cleaning = db.behaviour().heap_cleaning_records;
    let mut named: Vec<(String, Totals)> = Vec::new();
    for (record, totals) in db.wal().counted_by_type() {
        let of_model = match record {
            RecordType::OfModel(kind) => db.model_record_name(kind).map(str::to_owned),
            _ => None,
        };
        let name = of_model.unwrap_or_else(|| record.name(cleaning));
        match named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => sum.add(totals),
            None => named.push((name, totals)),
        }
    }
    named
}
