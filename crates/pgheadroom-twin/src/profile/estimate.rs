//! How much memory a run takes, from the profile alone.
//!
//! ```text
//! loaded rows + inserted ones + the larger of: building an index | versions that updates add
//! ```
//!
//! The sizes are those of the twin's own structures, with the room that growing arrays have. It is
//! an upper figure, measured to lie between the true one and twice that on tables that are loaded
//! and updated; a run whose dead versions stay (no vacuum, an index on what is updated) is taken
//! to keep all of them.

use pgheadroom_layout::ColumnType;

use crate::btree::SHAPES_MAX;
use crate::pgbench::{ACCOUNTS_PER_SCALE, BRANCHES_PER_SCALE, TELLERS_PER_SCALE};
use crate::profile::pages::{fillers, redirected};
use crate::profile::{
    BuiltinName, ColumnSpec, KindName, Method, OperationSpec, PgbenchSpec, ProfileSpec, TableSpec,
    ValuesKind,
};
use crate::row::kind::{Kind, fixed_width};

/// Whatever is played: buffers, maps, threads.
const ALWAYS_BYTES: f64 = 16e6;
/// Where a row is.
const PLACE_BYTES: f64 = 8.0;
/// A column's slot, if all fit 32 bits, and if not.
const NARROW_BYTES: f64 = 4.0;
const WIDE_BYTES: f64 = 8.0;
/// A row that a statement over many changes, in a set that grows (`executor/changed_rows.rs`).
const CHANGED_BYTES: f64 = 17.0;
/// The number of an inserted row under its key, in an array that grows.
const NUMBER_BYTES: f64 = 4.0 * 2.0;
/// A line pointer with its tuple, in an array that may be half empty.
const ITEM_BYTES: f64 = 16.0 * 1.5;
/// Besides, where it has a next version.
const LINK_BYTES: f64 = 12.0 * 1.5;
/// A page with its maps and the allocator's share.
const PAGE_BYTES: f64 = 320.0;
/// A string, and its place among those to be used again.
const TEXT_BYTES: f64 = 24.0 * 1.5 + 8.0;
/// A string that is compressed or out of line: besides, in a table of hashes that is half empty.
const FORM_BYTES: f64 = 56.0;
/// An index entry without its key, in an array that may be half empty; per column of the key.
const ENTRY_BYTES: f64 = 24.0 * 1.4;
const CODE_BYTES: f64 = 8.0 * 1.4;
/// Besides, where its key has strings of several lengths: it is not of its page's usual form. As
/// measured, some 140 bytes an entry in all with four such indexes over 400,000 rows.
const VARIED_ENTRY_BYTES: f64 = 140.0;
/// While an index is built whose keys do not ascend with the rows: its entries and their order; if
/// it has several columns, they are an array of their own.
const BUILD_BYTES: f64 = 18.0 + 24.0 + 6.0;
const BUILD_MANY_BYTES: f64 = 16.0;
/// The sizes of an entry that are its own: twice its columns' sizes, and their places in two tables
/// that are half empty.
const SIZES_BYTES: f64 = 200.0;
/// Sizes of entries are multiples of this.
const SIZE_STEP: f64 = 8.0;
/// What is remembered of an index's last entries (`KNOWN_PAYLOADS_MAX` in executor/index.rs).
const KNOWN_BYTES: f64 = 6e6;
/// Strings from here on may go out of line, in chunks of so many bytes.
const LONG_BYTES: f64 = 1900.0;
const CHUNK_BYTES: f64 = 1996.0;
/// A chunk: a row of three columns, its string and its index entry.
const CHUNK_ROW_BYTES: f64 = PLACE_BYTES
    + 3.0 * NARROW_BYTES
    + ITEM_BYTES
    + PAGE_BYTES / 4.0
    + TEXT_BYTES
    + ENTRY_BYTES
    + 2.0 * CODE_BYTES;

/// A replaced version that is kept for the images of its page, without its values: its place in a
/// table of hashes that may be half empty, and its own array.
const REPLACED_BYTES: f64 = 64.0 * 2.0 + 32.0;
/// A value out of line that is kept for the images of its chunks: in a table of hashes that may be
/// half empty.
const VALUE_BYTES: f64 = 41.0 * 2.0;

/// What matters of a table.
#[derive(Debug, Default)]
struct Shape {
    rows: f64,
    /// Loaded with them and deleted again.
    fillers: f64,
    /// Behind a redirect.
    redirected: f64,
    /// Bytes of its columns' slots.
    slot_bytes: f64,
    /// Strings of its own in each row.
    texts: f64,
    /// Bytes of the strings that may go out of line.
    long_bytes: f64,
    tuple_bytes: f64,
    fillfactor: f64,
    /// Key columns of each index.
    indexes: Vec<f64>,
    /// Different sizes that each index's entries may have.
    sizes: Vec<f64>,
    inserted: f64,
    /// Versions that updates add and nobody removes.
    added: f64,
    /// Most rows that one statement changes.
    at_once: f64,
}

impl Shape {
    fn version_bytes(&self) -> f64 {
        let per_page = (8192.0 * self.fillfactor / 100.0 / (self.tuple_bytes + 4.0)).max(1.0);
        ITEM_BYTES + PAGE_BYTES / per_page
    }

    fn entries_bytes(&self) -> f64 {
        let entries = self.indexes.iter().enumerate();
        entries
            .map(|(n, columns)| {
                let sizes = self.sizes.get(n).copied().unwrap_or(1.0);
                let is_varied = self.texts > 0.0 && sizes > 1.0;
                let varied = if is_varied { VARIED_ENTRY_BYTES } else { 0.0 };
                ENTRY_BYTES + CODE_BYTES * columns + varied
            })
            .sum()
    }

    fn kept_bytes(&self) -> f64 {
        let chunks = (self.long_bytes / CHUNK_BYTES).ceil();
        let long = chunks * CHUNK_ROW_BYTES + self.long_bytes.min(1.0) * FORM_BYTES;
        let row = PLACE_BYTES
            + self.slot_bytes
            + self.texts * TEXT_BYTES
            + long
            + self.version_bytes()
            + self.entries_bytes();
        let filler = row - self.entries_bytes();
        (self.rows + self.inserted) * row
            + self.fillers * filler
            + self.redirected * ITEM_BYTES
            + self.inserted * NUMBER_BYTES
            + self.at_once * CHANGED_BYTES
            + self.sizes_bytes()
    }

    fn sizes_bytes(&self) -> f64 {
        let entries = self.rows + self.inserted + self.added;
        let several = self.sizes.iter().filter(|&&sizes| sizes > 1.0);
        let of = |sizes: &f64| {
            let sizes = sizes.min(entries).min(f64::from(SHAPES_MAX));
            sizes * SIZES_BYTES + KNOWN_BYTES.min(sizes * SIZE_STEP * SIZES_BYTES)
        };
        several.map(of).sum()
    }

    fn build_bytes(&self) -> f64 {
        let widest = self.indexes.iter().copied().fold(0.0, f64::max);
        if widest == 0.0 {
            return 0.0;
        }
        let many = if widest > 1.0 {
            BUILD_MANY_BYTES + 8.0 * widest
        } else {
            0.0
        };
        self.rows * (BUILD_BYTES + many)
    }

    fn added_bytes(&self) -> f64 {
        self.added * (self.version_bytes() + LINK_BYTES + self.entries_bytes())
    }

    fn replaced_bytes(&self) -> f64 {
        let long = (self.rows + self.inserted + self.added) * self.long_bytes.min(1.0);
        self.added * (REPLACED_BYTES + self.tuple_bytes) + long * VALUE_BYTES
    }
}

/// Bytes that a run of the profile takes at most, by its shape.
#[must_use]
pub fn needed_bytes(spec: &ProfileSpec, transactions: Option<u64>) -> u64 {
    let transactions = transactions.map_or_else(|| transactions_of(spec), float);
    let shapes = shapes(spec, transactions);
    let kept: f64 = shapes.iter().map(Shape::kept_bytes).sum();
    let added: f64 = shapes.iter().map(Shape::added_bytes).sum();
    let build = shapes.iter().map(Shape::build_bytes).fold(0.0, f64::max);
    let replaced: f64 = if spec.server.image_compression().is_some() {
        shapes.iter().map(Shape::replaced_bytes).sum()
    } else {
        0.0
    };
    whole(ALWAYS_BYTES + kept + (added + replaced).max(build))
}

fn shapes(spec: &ProfileSpec, transactions: f64) -> Vec<Shape> {
    match &spec.pgbench {
        Some(pgbench) => pgbench_shapes(spec, pgbench, transactions),
        None => own_shapes(spec, transactions),
    }
}

/// Bytes of each table's heap after so many transactions, about.
pub(crate) fn heap_bytes(spec: &ProfileSpec, transactions: u64) -> Vec<f64> {
    let shapes = shapes(spec, float(transactions));
    let bytes = shapes.iter().map(|shape| {
        let versions = shape.rows + shape.inserted + shape.added;
        versions * (shape.tuple_bytes + 4.0) * 100.0 / shape.fillfactor.max(1.0)
    });
    bytes.collect()
}

/// Bytes that building the largest index over so many rows takes, itself included.
pub(crate) fn build_bytes(rows: i64, widest: usize) -> usize {
    #[allow(clippy::cast_precision_loss)] // at most 1600 columns
    let widest = widest as f64;
    let rows = rows.max(0).unsigned_abs();
    let each = BUILD_BYTES + BUILD_MANY_BYTES + ENTRY_BYTES + (8.0 + CODE_BYTES) * widest;
    usize::try_from(whole(float(rows) * each)).unwrap_or(usize::MAX)
}

fn transactions_of(spec: &ProfileSpec) -> f64 {
    let run = &spec.run;
    let timed = run.duration_s.zip(run.rate_per_s);
    run.operations.map_or_else(
        || timed.map_or(0.0, |(duration_s, per_s)| duration_s * per_s),
        float,
    )
}

fn pgbench_shapes(whole: &ProfileSpec, spec: &PgbenchSpec, transactions: f64) -> Vec<Shape> {
    let whole_scale = whole.sample.and_then(|sample| sample.whole_scale);
    let whole_scale = whole_scale.unwrap_or(spec.scale);
    let table = |name: &str, (per_scale, scale): (i64, i64), tuple_bytes: f64, updates: f64| {
        let rows = float(per_scale.saturating_mul(scale).max(0).unsigned_abs());
        let percent = spec.fillfactor.get(name).copied().unwrap_or(100);
        Shape {
            rows,
            slot_bytes: 4.0 * NARROW_BYTES,
            tuple_bytes,
            fillfactor: float(percent.unsigned_abs()),
            indexes: vec![1.0],
            added: updates.min(rows),
            ..Shape::default()
        }
    };
    let updates = if spec.builtin == BuiltinName::SelectOnly {
        0.0
    } else {
        transactions
    };
    let all = whole.sample.map(|sample| float(sample.whole_operations));
    let all_updates = all.filter(|_| updates > 0.0).unwrap_or(updates);
    vec![
        table(
            "pgbench_branches",
            (BRANCHES_PER_SCALE, whole_scale),
            32.0,
            all_updates,
        ),
        table(
            "pgbench_tellers",
            (TELLERS_PER_SCALE, whole_scale),
            36.0,
            all_updates,
        ),
        table(
            "pgbench_accounts",
            (ACCOUNTS_PER_SCALE, spec.scale),
            128.0,
            updates,
        ),
        Shape {
            slot_bytes: 5.0 * NARROW_BYTES + WIDE_BYTES,
            tuple_bytes: 48.0,
            fillfactor: 100.0,
            inserted: updates,
            ..Shape::default()
        },
    ]
}

fn own_shapes(spec: &ProfileSpec, transactions: f64) -> Vec<Shape> {
    let scripts = spec.transactions();
    let weight =
        |script: &Vec<usize>| float(spec.operation[script[0]].weight.max(0).unsigned_abs());
    let weights: f64 = scripts.iter().map(weight).sum();
    let mut shapes: Vec<Shape> = spec.table.iter().map(own_shape).collect();
    for script in &scripts {
        let share = if weights > 0.0 {
            weight(script) / weights
        } else {
            0.0
        };
        for &number in script {
            let operation = &spec.operation[number];
            let named = |table: &TableSpec| table.name == operation.table;
            let Some(position) = spec.table.iter().position(named) else {
                continue; // refused elsewhere
            };
            let statements = transactions * share;
            let rows = &operation.rows_per_statement;
            let each = float(rows.min.saturating_add(rows.max).max(0).unsigned_abs()) / 2.0;
            let (shape, table) = (&mut shapes[position], &spec.table[position]);
            shape.at_once = shape.at_once.max(float(rows.max.max(0).unsigned_abs()));
            count(spec, operation, statements * each, table, shape);
        }
    }
    shapes
}

/// What an operation adds to its table.
fn count(
    spec: &ProfileSpec,
    operation: &OperationSpec,
    rows: f64,
    table: &TableSpec,
    shape: &mut Shape,
) {
    match operation.kind {
        KindName::Insert | KindName::Upsert => shape.inserted += rows,
        KindName::Update => {
            let indexed = |column: &String| {
                let plain = |name: &String| name == column;
                let text = |text: &String| text.contains(column.as_str());
                table.indexes.iter().any(|index| {
                    index.columns.iter().chain(&index.include).any(plain)
                        || index.expressions.iter().any(text)
                        || index.predicate.iter().any(text)
                })
            };
            let is_kept =
                operation.sets.iter().any(|(column, _)| indexed(column)) && !spec.server.autovacuum;
            shape.added += if is_kept { rows } else { rows.min(shape.rows) };
        }
        KindName::Delete | KindName::Select | KindName::Lock => {}
    }
}

/// Bytes of a column's slots, should any number of its type be among them.
fn slot_bytes(column: &ColumnSpec) -> f64 {
    let parsed = ColumnType::parse(&column.type_name).ok();
    let kind = parsed.as_ref().and_then(Kind::of);
    let width = parsed.as_ref().and_then(fixed_width);
    match kind {
        Some(Kind::Float4) => WIDE_BYTES, // as the float8 that it is equal to
        Some(kind) if !kind.is_kept() && width.is_none_or(|bytes| bytes > 4) => WIDE_BYTES,
        _ => NARROW_BYTES,
    }
}

fn own_shape(table: &TableSpec) -> Shape {
    let mut shape = Shape {
        rows: float(table.rows.max(0).unsigned_abs()),
        fillers: fillers(table),
        redirected: redirected(table),
        tuple_bytes: 24.0,
        fillfactor: float(table.fillfactor.unsigned_abs()),
        ..Shape::default()
    };
    for column in &table.columns {
        shape.slot_bytes += slot_bytes(column);
        let parsed = ColumnType::parse(&column.type_name).ok();
        if let Some(width) = parsed.as_ref().and_then(fixed_width) {
            shape.tuple_bytes += f64::from(width);
            let kind = parsed.as_ref().and_then(Kind::of);
            if kind.is_some_and(Kind::is_kept) && column.values.kind != ValuesKind::Constant {
                shape.texts += 1.0 - column.null_frac;
            }
        } else {
            let widths = column.width.map_or((8.0, 8.0), |width| {
                let bytes = |bytes: i64| float(bytes.max(0).unsigned_abs());
                (bytes(width.min_bytes), bytes(width.max_bytes))
            });
            let mean = f64::midpoint(widths.0, widths.1);
            shape.tuple_bytes += 4.0 + mean.min(LONG_BYTES);
            if column.values.kind != ValuesKind::Constant && column.width.is_some() {
                shape.texts += 1.0 - column.null_frac;
            }
            if widths.1 > LONG_BYTES {
                shape.long_bytes += widths.1;
            }
        }
    }
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // at most 1600 columns
    #[allow(clippy::cast_possible_wrap)] // likewise
    for index in &table.indexes {
        let columns = index.columns.len() + index.expressions.len();
        if index.method == Method::Gin {
            let named = index.columns.iter().filter_map(|name| table.column(name));
            let keys = named.map(|column| keys_of_value(&table.columns[column]));
            shape
                .indexes
                .push(keys.sum::<f64>() * GIN_ROW_BYTES / CODE_BYTES);
            shape.sizes.push(1.0);
            continue;
        }
        shape.indexes.push(columns as f64);
        let named = index.columns.iter().chain(&index.include);
        let of = |name: &String| table.columns.iter().find(|column| column.name == *name);
        let columns = named.filter_map(of).map(sizes_of_column);
        let made = index.expressions.len() as i32;
        shape
            .sizes
            .push(columns.product::<f64>() * EXPRESSION_SIZES.powi(made));
    }
    shape
}

/// Keys of a GIN that a value has; of trigrams one each byte.
fn keys_of_value(column: &ColumnSpec) -> f64 {
    let own = column.elements.map(|elements| f64::from(elements.max));
    let width = column.width.map_or(2.0, |width| {
        f64::from(u32::try_from(width.max_bytes).unwrap_or(u32::MAX))
    });
    let is_text = column.type_name == "text" || column.type_name.starts_with("varchar");
    own.unwrap_or(if is_text { width } else { OWN_KEYS })
}

/// Keys of its own that a value without elements may have, in rows of a key's.
const OWN_KEYS: f64 = 20.0;
/// A row in a key's list, which may be half empty.
const GIN_ROW_BYTES: f64 = 8.0 * 1.5;

/// How many sizes an expression's values may have: any that fits an entry.
const EXPRESSION_SIZES: f64 = 2704.0 / SIZE_STEP;

fn sizes_of_column(column: &ColumnSpec) -> f64 {
    let nulls = if column.null_frac > 0.0 { 1.0 } else { 0.0 };
    let spread = column.width.map_or(0.0, |width| {
        let bytes = width.max_bytes.saturating_sub(width.min_bytes);
        (float(bytes.max(0).unsigned_abs()) / SIZE_STEP).ceil()
    });
    1.0 + spread.min(EXPRESSION_SIZES) + nulls
}

#[allow(clippy::cast_precision_loss)] // an estimate
fn float(number: u64) -> f64 {
    number as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive; saturates
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::IndexSpec;

    fn spec(scale: i64, builtin: &str, operations: u64) -> ProfileSpec {
        let text = format!(
            r#"{{"schema_version": 1, "server": {{"version": "18.4", "shared_buffers": "1GB",
            "full_page_writes": true, "wal_level": "replica", "wal_compression": "off",
            "wal_log_hints": false, "data_checksums": null, "autovacuum": false,
            "autovacuum_naptime_s": null, "checkpoint_interval_s": null, "max_wal_size": null}},
            "pgbench": {{"builtin": "{builtin}", "scale": {scale}, "fillfactor": {{}}}},
            "run": {{"operations": {operations}, "duration_s": null, "rate_per_s": null,
            "clients": 1, "seed": 1}}}}"#
        );
        ProfileSpec::from_json(&text).expect("a profile")
    }

    fn string(name: &str) -> ColumnSpec {
        let text = format!(
            r#"{{"name": "{name}", "type": "text", "values": {{"kind": "random", "ndistinct": 9}},
            "width": {{"min_bytes": 1, "max_bytes": 400}}, "null_frac": 0}}"#
        );
        serde_json::from_str(&text).expect("a column")
    }

    fn over(columns: &[&str]) -> IndexSpec {
        let columns = serde_json::to_string(columns).expect("names");
        let text =
            format!(r#"{{"name": "i", "columns": {columns}, "unique": false, "method": "btree"}}"#);
        serde_json::from_str(&text).expect("an index")
    }

    /// Rows and work cost memory, reading does not; absurd numbers give large ones, no overflow.
    #[test]
    fn more_takes_more() {
        let of = |scale, builtin, operations| needed_bytes(&spec(scale, builtin, operations), None);
        let loaded = of(10, "simple-update", 1);
        assert!(of(20, "simple-update", 1) > loaded + 120_000_000);
        assert!(of(10, "simple-update", 10_000_000) > loaded + 100_000_000);
        assert_eq!(of(10, "select-only", 10_000_000), of(10, "select-only", 1));
        assert!(of(500, "tpcb-like", 1) > 6_000_000_000);
        assert!(of(i64::MAX / 1_000_000, "tpcb-like", u64::MAX) > 1 << 60);
        let own = own_shape(&TableSpec {
            name: "t".to_owned(),
            rows: 150_000,
            unlogged: false,
            fillfactor: 100,
            pages: Vec::new(),
            rows_per_page: None,
            reloptions: std::collections::BTreeMap::new(),
            columns: ["a", "b", "c"].map(string).to_vec(),
            indexes: vec![over(&["a", "b", "c"])],
            foreign_keys: Vec::new(),
            observed: None,
        });
        assert!(own.sizes[0] > 100_000.0, "three strings of up to 400 bytes");
        assert!(own.sizes_bytes() > 100_000.0 * SIZES_BYTES);
        let told = needed_bytes(&spec(10, "simple-update", 1), Some(10_000_000));
        assert_eq!(told, of(10, "simple-update", 10_000_000));
    }
}
