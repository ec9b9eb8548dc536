//! The keys alone that a profile's clients draw: what a workload says before anything is done.

use pgheadroom_layout::PgVersion;

use crate::profile::{Monitor, ProfileError, ProfileSpec, load, ranges};
use crate::value::Value;
use crate::workload::{Operation, ProfileWorkload, Workload};

/// A statement's first and last key.
pub type Keys = (i64, i64);

/// The keys of a profile's statements, transaction by transaction, where its clients take turns.
///
/// # Errors
/// [`ProfileError`]: the twin cannot play it.
pub fn drawn_keys(
    spec: &ProfileSpec,
    version: PgVersion,
    transactions: u64,
) -> Result<Vec<Vec<Keys>>, ProfileError> {
    ranges::check(spec, Some(transactions))?;
    let mut db = load::database(&spec.server, version);
    let loaded = load::load_tables(&mut db, &spec.table, &Monitor::default())?;
    let mut workload = ProfileWorkload::new(spec, &loaded, transactions)?;
    let columns: Vec<_> = spec.table.iter().map(|table| table.key_column()).collect();
    let keys = |operation: &Operation| match operation {
        Operation::Find { low, high, .. } => (*low, *high),
        Operation::Insert { table, rows } | Operation::Upsert { table, rows, .. } => {
            let of = |row: Option<&Vec<Value>>| {
                let value = row.zip(columns[table.0]).map(|(row, column)| &row[column]);
                value.and_then(Value::integer).unwrap_or(0)
            };
            (of(rows.first()), of(rows.last()))
        }
        Operation::Head { .. }
        | Operation::FindByPrefix { .. }
        | Operation::ReadEach { .. }
        | Operation::Refused { .. } => (0, 0),
    };
    let (mut made, mut operations) = (Vec::new(), Vec::new());
    for _ in 0..transactions {
        for client in 0..workload.clients() {
            if workload.next_transaction(client, &mut operations).is_some() {
                made.push(operations.iter().map(keys).collect());
            }
        }
    }
    Ok(made)
}
