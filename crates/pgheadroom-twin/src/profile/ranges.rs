//! Which numbers of a profile can be played: whatever the file says, nothing overflows.
//!
//! The Python side has checked what belongs together, and tells a person more; this is what the
//! twin's own arithmetic relies on, so that a text from anywhere is refused and never a panic.

use std::fmt::Display;
use std::ops::RangeInclusive;

use pgheadroom_layout::ColumnType;

use crate::pgbench::{ACCOUNTS_PER_SCALE, TELLERS_PER_SCALE};
use crate::profile::pages::{fillers, mean_rows};
use crate::profile::{
    Distribution, IndexSpec, KindName, Method, OperationSpec, PickSpec, ProfileError, ProfileSpec,
    TableSpec,
};
use crate::row::kind::Kind;
use crate::wrap::Wrap;

/// Source: `MAX_BACKENDS`, src/include/storage/procnumber.h (REL_18_STABLE).
const CLIENTS_MAX: u32 = (1 << 18) - 1;
/// `aid` is an int4. Source: src/bin/pgbench/pgbench.c.
const SCALE_MAX: i64 = i32::MAX as i64 / ACCOUNTS_PER_SCALE;
/// Rows, statements and transactions have 32-bit numbers here, a few of which are taken.
const NUMBERS_MAX: u64 = u32::MAX as u64 - 1000;
/// Source: `MaxHeapAttributeNumber`, src/include/access/htup_details.h.
const COLUMNS_MAX: usize = 1600;
/// Source: `INDEX_MAX_KEYS`, src/include/pg_config_manual.h.
const INDEX_COLUMNS_MAX: usize = 32;
/// Source: `MaxAllocSize`, src/include/utils/memutils.h.
const ROW_BYTES_MAX: i64 = 0x3fff_ffff;
const GROWS_BYTES_MAX: i64 = 1_000_000;
/// Ages, and blocks of rows, that nothing overflows with.
const AGE_MAX: i64 = 1 << 40;

/// Source: `MaxHeapTuplesPerPage`, src/include/access/htup_details.h.
const ROWS_PER_PAGE_MAX: i64 = 291;
/// Rows of the mean page of those that a load puts there, at least.
const FILLED_FRAC_MIN: f64 = 0.001;

/// Refuses numbers that the twin cannot count with.
///
/// # Errors
/// [`ProfileError::Unsupported`] with the field.
pub fn check(spec: &ProfileSpec, transactions: Option<u64>) -> Result<(), ProfileError> {
    let run = &spec.run;
    within("run.clients", run.clients, 1..=CLIENTS_MAX)?;
    if let Some(rate) = run.rate_per_s {
        within("run.rate_per_s", rate, f64::MIN_POSITIVE..=f64::MAX)?;
    }
    for (number, snapshot) in run.snapshot.iter().enumerate() {
        let field = format!("run.snapshot[{number}]");
        within(
            &format!("{field}.start_frac"),
            snapshot.start_frac,
            0.0..=1.0,
        )?;
        within(
            &format!("{field}.length_frac"),
            snapshot.length_frac,
            0.0..=1.0,
        )?;
    }
    for (number, table) in spec.table.iter().enumerate() {
        check_table(&format!("table[{number}]"), table)?;
    }
    for (number, operation) in spec.operation.iter().enumerate() {
        check_operation(&format!("operation[{number}]"), operation, spec)?;
    }
    let most_rows = match &spec.pgbench {
        Some(pgbench) => {
            within("pgbench.scale", pgbench.scale, 1..=SCALE_MAX)?;
            6 // statements of a transaction, and the rows that three of them change
        }
        None => check_scripts(spec)?,
    };
    let loaded: u64 = spec
        .table
        .iter()
        .map(|table| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
            let fillers = fillers(table).ceil() as u64;
            table.rows.unsigned_abs().saturating_add(fillers)
        })
        .fold(0, u64::saturating_add);
    let operations = run.operations.or(transactions).unwrap_or(0);
    if let Some(sample) = spec.sample {
        within(
            "sample.whole_operations",
            sample.whole_operations,
            operations..=u64::MAX >> 1,
        )?;
        let pgbench = spec.pgbench.as_ref().map(|pgbench| pgbench.scale);
        if let (Some(scale), Some(whole)) = (pgbench, sample.whole_scale) {
            let most = i64::from(i32::MAX) / TELLERS_PER_SCALE;
            within("sample.whole_scale", whole, scale..=most)?;
            within(
                "sample.whole_operations",
                sample.whole_operations,
                0..=NUMBERS_MAX / most_rows,
            )?;
        }
    }
    let left = NUMBERS_MAX.saturating_sub(loaded);
    within("run.operations", operations, 0..=left / most_rows.max(1))
}

/// Something can be run; rows and statements of a transaction at most, checks of foreign keys among
/// them.
fn check_scripts(spec: &ProfileSpec) -> Result<u64, ProfileError> {
    let scripts = spec.transactions();
    let weights = scripts
        .iter()
        .map(|script| spec.operation[script[0]].weight);
    within("operation.weight, their sum", weights.sum(), 1..=i64::MAX)?;
    let of = |script: &Vec<usize>| {
        let rows = script.iter().map(|&number| {
            let operation = &spec.operation[number];
            let table = spec
                .table
                .iter()
                .find(|table| table.name == operation.table);
            let keys = table.map_or(0, |table| table.foreign_keys.len() as u64);
            let rows = operation.rows_per_statement.max.unsigned_abs();
            rows.saturating_mul(1 + keys) + 1
        });
        rows.sum()
    };
    Ok(scripts.iter().map(of).max().unwrap_or(1))
}

fn check_table(path: &str, table: &TableSpec) -> Result<(), ProfileError> {
    within(&format!("{path}.rows"), table.rows, 0..=i64::from(u32::MAX))?;
    within(
        &format!("{path}.columns, their number"),
        table.columns.len(),
        1..=COLUMNS_MAX,
    )?;
    let mut row_bytes = 0;
    for (number, column) in table.columns.iter().enumerate() {
        let path = format!("{path}.columns[{number}]");
        within(&format!("{path}.null_frac"), column.null_frac, 0.0..=1.0)?;
        if let Some(ndistinct) = column.values.ndistinct {
            within(&format!("{path}.values.ndistinct"), ndistinct, 1..=i64::MAX)?;
        }
        if let Some(width) = column.width {
            within(
                &format!("{path}.width.max_bytes"),
                width.max_bytes,
                0..=ROW_BYTES_MAX,
            )?;
            within(
                &format!("{path}.width.min_bytes"),
                width.min_bytes,
                0..=width.max_bytes,
            )?;
            row_bytes += width.max_bytes;
        }
    }
    within(
        &format!("{path}.columns, bytes of a row"),
        row_bytes,
        0..=ROW_BYTES_MAX,
    )?;
    for (number, index) in table.indexes.iter().enumerate() {
        check_index(&format!("{path}.indexes[{number}]"), index)?;
    }
    check_pages(path, table)
}

/// Kinds of pages have rows on enough of them for the load to come to its end.
fn check_pages(path: &str, table: &TableSpec) -> Result<(), ProfileError> {
    if table.pages.is_empty() {
        return Ok(());
    }
    within(&format!("{path}.rows"), table.rows, 1..=i64::from(u32::MAX))?;
    let per_page = table.rows_per_page.unwrap_or(0);
    within(
        &format!("{path}.rows_per_page"),
        per_page,
        1..=ROWS_PER_PAGE_MAX,
    )?;
    let mut sum = 0.0;
    for (number, kind) in table.pages.iter().enumerate() {
        let path = format!("{path}.pages[{number}]");
        within(&format!("{path}.pages_frac"), kind.pages_frac, 0.0..=1.0)?;
        within(&format!("{path}.rows"), kind.rows, 0..=per_page)?;
        within(&format!("{path}.redirects"), kind.redirects, 0..=kind.rows)?;
        within(
            &format!("{path}.unused"),
            kind.unused,
            0..=ROWS_PER_PAGE_MAX,
        )?;
        sum += kind.pages_frac;
    }
    within(&format!("{path}.pages, their sum"), sum, 0.98..=1.02)?;
    #[allow(clippy::cast_precision_loss)] // at most 291
    let least = FILLED_FRAC_MIN * 0.99 * per_page as f64;
    within(
        &format!("{path}.pages, rows of the mean page"),
        mean_rows(&table.pages),
        least..=f64::INFINITY,
    )
}

fn check_index(path: &str, index: &IndexSpec) -> Result<(), ProfileError> {
    let keys = index.columns.len() + index.expressions.len();
    within(&format!("{path}, its columns"), keys, 1..=INDEX_COLUMNS_MAX)?;
    if index.unique && index.method != Method::Btree {
        let found = format!("{:?}", index.method).to_lowercase();
        return Err(ProfileError::unsupported(
            format!("{path}.method"),
            found,
            "btree, as every unique index is",
        ));
    }
    let columns = keys + index.include.len();
    within(
        &format!("{path}, its columns"),
        columns,
        1..=INDEX_COLUMNS_MAX,
    )
}

fn check_operation(
    path: &str,
    operation: &OperationSpec,
    spec: &ProfileSpec,
) -> Result<(), ProfileError> {
    within(
        &format!("{path}.weight"),
        operation.weight,
        0..=i64::from(u32::MAX),
    )?;
    let rows = operation.rows_per_statement;
    let most = i64::from(i32::MAX);
    within(&format!("{path}.rows_per_statement"), rows.max, 1..=most)?;
    within(
        &format!("{path}.rows_per_statement"),
        rows.min,
        1..=rows.max,
    )?;
    within(
        &format!("{path}.abort_frac"),
        operation.abort_frac,
        0.0..=1.0,
    )?;
    for (column, change) in &operation.sets {
        let path = format!("{path}.sets.{column}");
        within(
            &format!("{path}.changed_frac"),
            change.changed_frac,
            0.0..=1.0,
        )?;
        if let Some(grows) = change.grows_bytes {
            within(
                &format!("{path}.grows_bytes"),
                grows.max,
                0..=GROWS_BYTES_MAX,
            )?;
            within(&format!("{path}.grows_bytes"), grows.min, 0..=grows.max)?;
        }
    }
    let Some(pick) = &operation.pick else {
        let has_keys = operation.kind == KindName::Insert;
        return needed(has_keys.then_some(()), &format!("{path}.pick"));
    };
    let mut tables = spec.table.iter();
    let Some(table) = tables.find(|table| table.name == operation.table) else {
        return needed(None::<()>, &format!("{path}.table"));
    };
    check_key(path, operation, table)?;
    let key = table.key_index().map(|index| &table.indexes[index]);
    if let Some(predicate) = key.and_then(|key| key.predicate.as_ref()) {
        return Err(ProfileError::unsupported(
            format!("{path}: the key of {}", table.name),
            format!("where {predicate}"),
            "a unique index of all rows, by which rows are found",
        ));
    }
    let path = format!("{path}.pick");
    if pick.is_living(rows.max) {
        check_living(&path, operation, pick)?;
    } else if pick.distribution != Distribution::Head {
        let (found, least) = (table.rows, i64::from(spec.run.clients));
        within(
            &format!("{path}: rows of the table"),
            found,
            least..=i64::MAX,
        )?;
    }
    check_pick(&path, pick, table.rows)
}

/// Rows are found by keys whose values follow from their numbers, and by ranges of such as are in
/// the order of their numbers.
fn check_key(path: &str, operation: &OperationSpec, table: &TableSpec) -> Result<(), ProfileError> {
    let Some(column) = table.key_column().map(|column| &table.columns[column]) else {
        return Ok(());
    };
    let parsed = ColumnType::parse(&column.type_name).ok();
    let is_number = match parsed.as_ref().and_then(Kind::of) {
        Some(Kind::Integer { .. } | Kind::Numeric { .. } | Kind::Date | Kind::Timestamp) => true,
        Some(Kind::Text { .. } | Kind::Wrapped(Wrap::Uuid)) => false,
        _ => {
            return Err(ProfileError::unsupported(
                format!("{path}: the key of {}", table.name),
                format!("{} {}", column.name, column.type_name),
                "a column of integers, whole numerics, dates, timestamps, uuids or strings",
            ));
        }
    };
    if (is_number || column.values.ordered) && table.key_place() == Some(0) {
        return Ok(());
    }
    let is_head = |pick: &PickSpec| pick.distribution == Distribution::Head;
    if operation.pick.as_ref().is_some_and(is_head) {
        return Err(ProfileError::unsupported(
            format!("{path}.pick.distribution"),
            "head",
            "another one: keys of this table are not in the order of their numbers",
        ));
    }
    let is_made = operation.kind == KindName::Upsert;
    let most = if is_made { i64::MAX } else { 1 };
    let rows = operation.rows_per_statement.max;
    within(&format!("{path}.rows_per_statement"), rows, 1..=most)
}

/// What follows the living rows: one row of a statement, found and not made.
fn check_living(
    path: &str,
    operation: &OperationSpec,
    pick: &PickSpec,
) -> Result<(), ProfileError> {
    if operation.kind == KindName::Upsert {
        let expected = "a pick among the loaded rows";
        return Err(ProfileError::unsupported(path, "a living row", expected));
    }
    if pick.scatter {
        let expected = "false: living rows are picked in their order";
        return Err(ProfileError::unsupported(
            format!("{path}.scatter"),
            true,
            expected,
        ));
    }
    let rows = operation.rows_per_statement.max;
    within(&format!("{path}: rows_per_statement"), rows, 1..=1)?;
    if let Some(block) = pick.within {
        within(&format!("{path}.within"), block, 1..=AGE_MAX)?;
    }
    if pick.distribution == Distribution::Age {
        for (name, age) in [("min", pick.min), ("max", pick.max)] {
            let path = format!("{path}.{name}");
            needed(age, &path)?;
            within(&path, age.unwrap_or_default(), 0..=AGE_MAX)?;
        }
        let most = pick.max.unwrap_or_default();
        within(
            &format!("{path}.min"),
            pick.min.unwrap_or_default(),
            0..=most,
        )?;
    }
    Ok(())
}

fn check_pick(path: &str, pick: &PickSpec, rows: i64) -> Result<(), ProfileError> {
    let given = |value: Option<f64>, name: &str, range: RangeInclusive<f64>| {
        let path = format!("{path}.{name}");
        needed(value, &path)?;
        within(&path, value.unwrap_or_default(), range)
    };
    match pick.distribution {
        Distribution::Zipfian => given(pick.theta, "theta", 1.001..=1000.0),
        Distribution::Gaussian => given(pick.param, "param", 2.0..=1e9),
        Distribution::HotSet => {
            given(pick.rows_frac, "rows_frac", 0.0..=1.0)?;
            given(pick.weight, "weight", 0.0..=1.0)?;
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // as the pick
            let hot = ((pick.rows_frac.unwrap_or_default() * rows as f64) as i64).max(1);
            if pick.weight < Some(1.0) {
                within(&format!("{path}.rows_frac, hot rows"), hot, 1..=rows - 1)?;
            }
            Ok(())
        }
        Distribution::Stride => {
            needed(pick.n, &format!("{path}.n"))?;
            let most = i64::from(i32::MAX);
            within(&format!("{path}.n"), pick.n.unwrap_or_default(), 1..=most)
        }
        Distribution::Uniform
        | Distribution::Sequential
        | Distribution::Newest
        | Distribution::Oldest
        | Distribution::Age => Ok(()),
        Distribution::Head => needed(pick.using.as_ref(), &format!("{path}.using")),
    }
}

fn needed<T>(value: Option<T>, field: &str) -> Result<(), ProfileError> {
    match value {
        Some(_) => Ok(()),
        None => Err(ProfileError::unsupported(field, "none", "one")),
    }
}

fn within<T: PartialOrd + Display>(
    field: &str,
    found: T,
    range: RangeInclusive<T>,
) -> Result<(), ProfileError> {
    if range.contains(&found) {
        return Ok(());
    }
    let expected = format!("{} to {}", range.start(), range.end());
    Err(ProfileError::unsupported(field, found, expected))
}
