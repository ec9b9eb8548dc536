//! Loading: tables, rows by one INSERT each, indexes in their order, VACUUM, CHECKPOINT, new
//! sessions. Where pages are not full (`pages.rs`), fillers are loaded with the rows, deleted, and
//! vacuumed away before there is an index; so are old versions of the rows that are HOT updated
//! then.
//!
//! Source: `load.py` of the Python side, which does so on a server. Left out: ANALYZE, which
//! changes nothing that the twin keeps but the sessions' target blocks, forgotten anyway.

use std::sync::Arc;

use pgheadroom_layout::page::BLCKSZ;
use pgheadroom_layout::{ColumnType, HeapFillfactor, LayoutError, PgVersion};

use crate::executor::{
    ColumnDefinition, Database, IndexDefinition, StatementError, TableDefinition, TableId,
};
use crate::object_ids::{OIDS_OF_FIRST_TEMPORARY_TABLE, OIDS_OF_TEMPORARY_TABLE};
use crate::pgbench::{ACCOUNTS_PER_SCALE, BRANCHES_PER_SCALE, TELLERS_PER_SCALE};
use crate::profile::enums::{Enums, enums, oids_of};
use crate::profile::estimate::build_bytes;
use crate::profile::foreign_key::foreign_keys;
use crate::profile::index_load::definition;
use crate::profile::settings::parameters;
use crate::profile::{
    ColumnCompression, ColumnSpec, Monitor, PageKinds, PgbenchSpec, Piece, ProfileError,
    ServerSpec, TableSpec, ValuesKind, WalLevel,
};
use crate::reserve;
use crate::row::kind::Kind;
use crate::row::{Labels, LoadRule, Numbers};
use crate::value::{Text, Value};
use crate::wal::WalSettings;

/// Rows between two looks at the monitor; arbitrary.
const ROWS_PER_REPORT: i64 = 1024;
/// pgbench's tables in the order in which results name them.
pub const PGBENCH_TABLES: [&str; 4] = [
    "pgbench_accounts",
    "pgbench_branches",
    "pgbench_tellers",
    "pgbench_history",
];

/// Tables of pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgbenchTables {
    /// `pgbench_accounts`: aid, bid, abalance, filler.
    pub accounts: TableId,
    /// `pgbench_branches`: bid, bbalance, filler.
    pub branches: TableId,
    /// `pgbench_tellers`: tid, bid, tbalance, filler.
    pub tellers: TableId,
    /// `pgbench_history`: tid, bid, aid, delta, mtime, filler.
    pub history: TableId,
}

/// A table of a profile in the database, and how its rows are made.
#[derive(Debug, Clone)]
pub struct LoadedTable {
    /// The table.
    pub table: TableId,
    /// By column.
    pub rules: Vec<LoadRule>,
    /// By column.
    pub column_types: Vec<ColumnType>,
}

/// An empty database with a profile's settings.
#[must_use]
pub fn database(server: &ServerSpec, version: PgVersion) -> Database {
    let mut behaviour = version.behaviour();
    if let Some(method) = server.toast_compression() {
        behaviour.toast_compression = method;
    }
    let checksums = server
        .data_checksums
        .unwrap_or(behaviour.checksums_by_default);
    let settings = WalSettings {
        full_page_writes: server.full_page_writes,
        hints_are_logged: checksums || server.wal_log_hints,
        is_logical: server.wal_level == WalLevel::Logical,
    };
    let (gin, memory) = (
        server.gin_settings(&behaviour),
        server.memory_settings(&behaviour),
    );
    let mut db = Database::new(behaviour, settings);
    db.set_freeze_ages(server.freeze_ages());
    db.set_eager_fails(server.eager_fails());
    db.set_statistics_target(server.statistics_target());
    db.set_gin_settings(gin);
    db.set_memory_settings(memory);
    db.set_parallel_settings(server.parallel_settings());
    if server.wal_level == WalLevel::Minimal {
        db.wal_mut()
            .skip_new_relations(wal_skip_threshold_pages(server));
    }
    db
}

/// Relations with fewer pages are logged when the transaction that made them ends.
///
/// Source: `wal_skip_threshold`, src/backend/utils/misc/guc_tables.c (REL_18_STABLE): 2 MB; a bare
/// number is in kB.
fn wal_skip_threshold_pages(server: &ServerSpec) -> u32 {
    let kilobytes = server.kilobytes("wal_skip_threshold").unwrap_or(2048);
    u32::try_from((u64::from(kilobytes) << 10) / u64::from(BLCKSZ)).unwrap_or(u32::MAX)
}

/// Loads a profile's tables; afterwards all is written and new sessions begin.
///
/// # Errors
/// [`ProfileError`] for what the twin or PostgreSQL cannot hold, or when it was told to stop.
pub fn load_tables(
    db: &mut Database,
    tables: &[TableSpec],
    monitor: &Monitor,
) -> Result<Vec<LoadedTable>, ProfileError> {
    let mut loaded = Vec::new();
    let enums = enums(tables);
    db.skip_object_ids(oids_of(&enums, tables));
    let mut has_session_tables = false;
    for (number, spec) in tables.iter().enumerate() {
        if !spec.pages.is_empty() {
            // The places of its fillers are in a temporary table.
            let is_first = !std::mem::replace(&mut has_session_tables, true);
            db.skip_object_ids(if is_first {
                OIDS_OF_FIRST_TEMPORARY_TABLE
            } else {
                OIDS_OF_TEMPORARY_TABLE
            });
        }
        loaded.push(load_table(db, number, spec, &enums, monitor)?);
    }
    let keys = foreign_keys(tables)?;
    for foreign_key in keys {
        let parent = (loaded[foreign_key.parent].table, foreign_key.index);
        db.add_foreign_key(loaded[foreign_key.table].table, foreign_key.column, parent);
    }
    for (number, (table, spec)) in loaded.iter().zip(tables).enumerate() {
        let path = format!("table[{number}]");
        let vacuumed = db.vacuum(table.table);
        vacuumed.map_err(|error| failure(&error, 0, &spec.name, &path))?;
        db.end_analyze(table.table);
    }
    db.checkpoint();
    Ok(loaded)
}

fn load_table(
    db: &mut Database,
    number: usize,
    spec: &TableSpec,
    enums: &Enums<'_>,
    monitor: &Monitor,
) -> Result<LoadedTable, ProfileError> {
    let path = format!("table[{number}]");
    let fails = |error: StatementError| failure(&error, 0, &spec.name, &path);
    let bad_type = |error: LayoutError| ProfileError::NotAProfile {
        reason: format!("{path}: {error}"),
    };
    let mut columns = Vec::new();
    let mut rules = Vec::new();
    for column in &spec.columns {
        let of_enum = enums.iter().find(|(labels, _)| *labels == column.labels);
        let definition = match of_enum {
            Some((labels, oid)) => ColumnDefinition::of_enum(&column.name, labels, *oid),
            None => ColumnDefinition::new(&column.name, &column.type_name),
        };
        let rule = rule(column, spec.rows);
        let mut made = definition.map_err(bad_type)?;
        made.elements = rule.elements;
        made.compression = column.compression.map(ColumnCompression::method);
        made.storage = column.storage.map_or(made.storage, Into::into);
        columns.push(made);
        rules.push(rule);
    }
    let column_types: Vec<ColumnType> = columns
        .iter()
        .map(|column| column.column_type.clone())
        .collect();
    let indexes = spec
        .indexes
        .iter()
        .enumerate()
        .map(|(position, index)| {
            let path = format!("{path}.indexes[{position}]");
            definition(index, spec, &columns, &path)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let table = db
        .create_table(TableDefinition {
            columns,
            indexes: Vec::new(),
            fillfactor: fillfactor(spec.fillfactor, &format!("{path}.fillfactor"))?,
        })
        .map_err(fails)?;
    if spec.unlogged {
        db.set_unlogged(table);
    }
    db.set_long_statistics(table, long_statistics(spec));
    let own = parameters(&spec.reloptions, "");
    let mut of_toast = parameters(&spec.reloptions, "toast.");
    // Source: `table_recheck_autovac`, src/backend/postmaster/autovacuum.c (REL_18_STABLE).
    if !spec
        .reloptions
        .keys()
        .any(|name| name.starts_with("toast."))
    {
        of_toast.freeze = own.freeze;
    }
    db.set_parameters(table, own, of_toast);
    match PageKinds::of(spec) {
        None => load_full(db, table, (spec, &rules), (monitor, &fails))?,
        Some(kinds) => load_lived(db, table, (spec, &rules, &kinds), (monitor, &fails))?,
    }
    for index in indexes {
        have_for_index(spec.rows, index.keys.len())?;
        db.create_index(table, index).map_err(fails)?;
        monitor.advance(0)?;
    }
    if let Some((key, columns)) = numbered_key(spec, &column_types) {
        db.number_keys(table, (key, columns), &rules);
    }
    Ok(LoadedTable {
        table,
        rules,
        column_types,
    })
}

/// Rows behind each other, pages as full as fillfactor lets them be.
fn load_full(
    db: &mut Database,
    table: TableId,
    (spec, rules): (&TableSpec, &[LoadRule]),
    (monitor, fails): (&Monitor, &impl Fn(StatementError) -> ProfileError),
) -> Result<(), ProfileError> {
    let mut loading = db.begin_load(table, rules, spec.rows);
    let mut first = 1;
    while first <= spec.rows {
        let last = spec.rows.min(first + ROWS_PER_REPORT - 1);
        db.load_rows(&mut loading, first..=last).map_err(fails)?;
        monitor.advance((last - first + 1).unsigned_abs())?;
        first = last + 1;
    }
    db.commit();
    Ok(())
}

/// Rows with fillers between them, which are deleted, and VACUUM; then rounds of HOT updates of the
/// rows that are to be behind redirects, each with its VACUUM. Where there are rows of NULLs among
/// them, these go first, and a second wave takes their line pointers.
fn load_lived(
    db: &mut Database,
    table: TableId,
    (spec, rules, kinds): (&TableSpec, &[LoadRule], &PageKinds),
    (monitor, fails): (&Monitor, &impl Fn(StatementError) -> ProfileError),
) -> Result<(), ProfileError> {
    let waves = || (0..2).flat_map(|wave| kinds.positions(wave, spec.rows));
    let is_made = |&(_, piece): &(i64, Piece)| piece != Piece::Narrow;
    let positions = waves().filter(is_made).count();
    let bytes = positions.saturating_mul((rules.len() + 1) * size_of::<i64>());
    reserve::have(bytes).map_err(|_| ProfileError::OutOfMemory { needed_bytes: None })?;
    let mut loading = db.begin_load(table, rules, i64::try_from(positions).unwrap_or(spec.rows));
    let mut made = 0;
    let fillers = waves().filter(|&(_, piece)| piece == Piece::Filler);
    for number in (1..=spec.rows).chain(fillers.map(|(number, _)| number)) {
        db.make_row(&mut loading, number).map_err(fails)?;
        made += 1;
        if made % ROWS_PER_REPORT == 0 {
            monitor.advance(0)?;
        }
    }
    let rows = u32::try_from(spec.rows).expect("a number of rows in range");
    let of_nulls = kinds.has_narrow().then(|| db.make_row_of_nulls(&loading));
    let (mut placed, mut filler) = (0, rows);
    for wave in 0..if of_nulls.is_some() { 2 } else { 1 } {
        for (number, piece) in kinds.positions(wave, spec.rows) {
            let row = match piece {
                Piece::Row => u32::try_from(number - 1).expect("one of the rows"),
                Piece::Filler => {
                    filler += 1;
                    filler - 1
                }
                Piece::Narrow => of_nulls.expect("there are narrow rows"),
            };
            db.place_row(&loading, row).map_err(fails)?;
            placed += i64::from(piece == Piece::Row);
            if piece == Piece::Row && placed % ROWS_PER_REPORT == 0 {
                monitor.advance(ROWS_PER_REPORT.unsigned_abs())?;
            }
        }
        db.commit();
        if let Some(narrow) = of_nulls.filter(|_| wave == 0) {
            db.delete_rows(table, |row| row == narrow).map_err(fails)?;
            db.commit();
            db.vacuum(table).map_err(fails)?;
        }
    }
    monitor.advance((spec.rows % ROWS_PER_REPORT).unsigned_abs())?;
    db.delete_rows(table, |row| row >= rows).map_err(fails)?;
    db.commit();
    db.vacuum(table).map_err(fails)?;
    db.forget_rows_from(table, rows);
    let last_round = kinds.last_round();
    if last_round == 0 {
        return Ok(());
    }
    reserve::have(rows as usize * size_of::<u16>())
        .map_err(|_| ProfileError::OutOfMemory { needed_bytes: None })?;
    let rounds: Vec<_> = kinds.rounds(rows).collect();
    for round in 1..=last_round {
        db.touch_rows(table, |row| rounds[row as usize] == round)
            .map_err(fails)?;
        db.commit();
        db.vacuum(table).map_err(fails)?;
        monitor.advance(0)?;
    }
    Ok(())
}

/// The index by which rows are found, and how many of its columns a statement names, where these
/// are more than the number of a key.
fn numbered_key(spec: &TableSpec, types: &[ColumnType]) -> Option<(usize, usize)> {
    let (index, place) = (spec.key_index()?, spec.key_place()?);
    let kind = Kind::of(&types[spec.key_column()?])?;
    let is_another = kind.is_kept() || kind == Kind::Timestamp;
    (place > 0 || is_another).then_some((index, place + 1))
}

/// Memory for an index over so many rows, which is built without a look at the monitor.
fn have_for_index(rows: i64, columns: usize) -> Result<(), ProfileError> {
    reserve::have(build_bytes(rows, columns))
        .map_err(|_| ProfileError::OutOfMemory { needed_bytes: None })
}

/// Values of the table's statistics that may be out of line: most common values and bounds of
/// histograms that are too long together, however they are compressed. A string above 1024 bytes
/// is none of them.
///
/// Source: `compute_scalar_stats`, `WIDTH_THRESHOLD` and `default_statistics_target`,
/// src/backend/commands/analyze.c (REL_18_STABLE).
fn long_statistics(spec: &TableSpec) -> u32 {
    let of_column = |column: &ColumnSpec| {
        if column.elements.is_some() {
            return VALUES_OF_ELEMENTS;
        }
        let Some(width) = column.width else { return 0 };
        let distinct = match column.values.kind {
            ValuesKind::Serial => spec.rows,
            ValuesKind::Constant => 1,
            ValuesKind::Random | ValuesKind::Parent => column.values.ndistinct.unwrap_or(1),
        };
        let values = distinct.min(spec.rows).min(MOST_VALUES);
        let bytes = values.saturating_mul(width.max_bytes.min(LONGEST_VALUE) + 4);
        if width.min_bytes <= LONGEST_VALUE && bytes > SHORT_STATISTICS {
            2
        } else {
            0
        }
    };
    let expressions = spec.indexes.iter().flat_map(|index| &index.expressions);
    let of_expressions = u32::try_from(expressions.count()).unwrap_or(u32::MAX);
    let of_columns: u32 = spec.columns.iter().map(of_column).sum();
    if of_columns == 0 {
        return 0;
    }
    of_columns.saturating_add(of_expressions.saturating_mul(2))
}

/// Most common values, bounds, elements.
const VALUES_OF_ELEMENTS: u32 = 3;
/// 100 most common values and 101 bounds.
const MOST_VALUES: i64 = 201;
const LONGEST_VALUE: i64 = 1024;
/// So many bytes of values leave a row of pg_statistic below its limit of 2032.
const SHORT_STATISTICS: i64 = 1400;

fn rule(column: &ColumnSpec, rows: i64) -> LoadRule {
    let new = column.values.new.as_deref();
    let new = new
        .and_then(|label| column.label(label))
        .map(|label| (rows, label));
    let has_labels = new.is_some() || !column.values.shares.is_empty();
    let bytes = |bytes: i64| u32::try_from(bytes).unwrap_or(0);
    let millionths = (column.null_frac * 1e6).round_ties_even();
    LoadRule {
        numbers: match column.values.kind {
            ValuesKind::Serial => Numbers::Serial,
            ValuesKind::Constant => Numbers::Constant,
            ValuesKind::Random => Numbers::Random {
                ndistinct: column.values.ndistinct.unwrap_or(1),
            },
            ValuesKind::Parent => Numbers::Parent {
                rows: column.values.ndistinct.unwrap_or(1),
            },
        },
        width_bytes: column
            .width
            .map(|width| (bytes(width.min_bytes), bytes(width.max_bytes))),
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to a million
        null_millionths: millionths as u32,
        is_ordered: column.values.ordered,
        labels: has_labels.then(|| Arc::new(Labels::new(&column.values.shares, new))),
        elements: column
            .elements
            .and_then(|elements| elements.of_type(&column.type_name)),
    }
}

fn fillfactor(percent: i64, path: &str) -> Result<HeapFillfactor, ProfileError> {
    HeapFillfactor::new(percent).map_err(|error| ProfileError::NotAProfile {
        reason: format!("{path}: {error}"),
    })
}

/// What a failed statement means for a profile.
pub(crate) fn failure(
    error: &StatementError,
    transaction: u64,
    table: &str,
    path: &str,
) -> ProfileError {
    match error.cause() {
        StatementError::Unsupported(_) => ProfileError::Unplayable {
            field: path.to_owned(),
            reason: error.to_string(),
        },
        _ => ProfileError::StatementFails {
            reason: error.to_string(),
            transaction,
            table: table.to_owned(),
        },
    }
}

/// Loads pgbench's tables: rows, VACUUM, primary keys, CHECKPOINT.
///
/// Source: `initGenerateDataServerSide` and `initCreatePKeys`, src/bin/pgbench/pgbench.c
/// (REL_18_STABLE).
///
/// Branches and tellers have the rows of `whole_scale`, of which the accounts may be a sample.
///
/// # Errors
/// [`ProfileError`] when a table cannot grow, a fillfactor is out of range, or it was told to
/// stop.
pub fn load_pgbench(
    db: &mut Database,
    spec: &PgbenchSpec,
    whole_scale: i64,
    monitor: &Monitor,
) -> Result<PgbenchTables, ProfileError> {
    let tables = create_pgbench_tables(db, spec)?;
    let PgbenchTables {
        accounts,
        branches,
        tellers,
        history,
    } = tables;
    let scale = spec.scale;
    let mut fill = |table, name, rows: i64, row: &dyn Fn(i64) -> Vec<Value>| {
        for number in 1..=rows {
            db.insert(table, &row(number))
                .map_err(|error| failure(&error, 0, name, "pgbench"))?;
            if number % ROWS_PER_REPORT == 0 {
                monitor.advance(ROWS_PER_REPORT.unsigned_abs())?;
            }
        }
        monitor.advance((rows % ROWS_PER_REPORT).unsigned_abs())
    };
    let branch = |row, per_scale| Value::Integer((row - 1) / per_scale + 1);
    let zero = Value::Integer(0);
    fill(
        branches,
        "pgbench_branches",
        BRANCHES_PER_SCALE * whole_scale,
        &|row| vec![Value::Integer(row), zero.clone(), Value::Null],
    )?;
    fill(
        tellers,
        "pgbench_tellers",
        TELLERS_PER_SCALE * whole_scale,
        &|row| {
            let bid = branch(row, TELLERS_PER_SCALE);
            vec![Value::Integer(row), bid, zero.clone(), Value::Null]
        },
    )?;
    let blank = Value::Text(Text::padded(b' ', 84));
    fill(
        accounts,
        "pgbench_accounts",
        ACCOUNTS_PER_SCALE * scale,
        &|row| {
            let bid = branch(row, ACCOUNTS_PER_SCALE);
            vec![Value::Integer(row), bid, zero.clone(), blank.clone()]
        },
    )?;
    db.commit();
    have_for_index(ACCOUNTS_PER_SCALE * scale, 1)?;
    for (table, name) in [branches, tellers, accounts, history]
        .into_iter()
        .zip(["branches", "tellers", "accounts", "history"])
    {
        let vacuumed = db.vacuum(table);
        vacuumed.map_err(|error| failure(&error, 0, name, "pgbench"))?;
    }
    for (table, name) in [
        (branches, "pgbench_branches"),
        (tellers, "pgbench_tellers"),
        (accounts, "pgbench_accounts"),
    ] {
        db.create_index(table, IndexDefinition::on_columns(vec![0], true))
            .map_err(|error| failure(&error, 0, name, "pgbench"))?;
        monitor.advance(0)?;
    }
    db.checkpoint();
    Ok(tables)
}

/// In the order of creation, which nothing depends on: each table has its own forks.
fn create_pgbench_tables(
    db: &mut Database,
    spec: &PgbenchSpec,
) -> Result<PgbenchTables, ProfileError> {
    let accounts = create_pgbench_table(
        db,
        spec,
        "pgbench_accounts",
        &["int4", "int4", "int4", "bpchar(84)"],
    )?;
    let branches = create_pgbench_table(
        db,
        spec,
        "pgbench_branches",
        &["int4", "int4", "bpchar(88)"],
    )?;
    let tellers = create_pgbench_table(
        db,
        spec,
        "pgbench_tellers",
        &["int4", "int4", "int4", "bpchar(84)"],
    )?;
    let history = create_pgbench_table(
        db,
        spec,
        "pgbench_history",
        &["int4", "int4", "int4", "int4", "timestamp", "bpchar(22)"],
    )?;
    Ok(PgbenchTables {
        accounts,
        branches,
        tellers,
        history,
    })
}

fn create_pgbench_table(
    db: &mut Database,
    spec: &PgbenchSpec,
    name: &str,
    types: &[&str],
) -> Result<TableId, ProfileError> {
    let percent = spec.fillfactor.get(name).copied().unwrap_or(100);
    let columns = types.iter().enumerate();
    let columns = columns.map(|(number, type_name)| {
        ColumnDefinition::new(&format!("c{number}"), type_name).expect("a built-in type")
    });
    let definition = TableDefinition {
        columns: columns.collect(),
        indexes: Vec::new(),
        fillfactor: fillfactor(percent, &format!("pgbench.fillfactor.{name}"))?,
    };
    db.create_table(definition)
        .map_err(|error| failure(&error, 0, name, "pgbench"))
}
