//! A run's moments and tables as a profile names them.

use crate::executor::TableId;
use crate::profile::{ProfileSpec, load};

/// The number of transactions that is this part of a run.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
pub(super) fn part(frac: f64, transactions: u64) -> u64 {
    (frac.clamp(0.0, 1.0) * transactions as f64).round() as u64
}

/// The table of this name.
pub(super) fn table_of(spec: &ProfileSpec, name: Option<&str>) -> Option<TableId> {
    let name = name?;
    let names: Vec<&str> = if spec.pgbench.is_some() {
        load::PGBENCH_TABLES.to_vec()
    } else {
        spec.table.iter().map(|table| table.name.as_str()).collect()
    };
    names.iter().position(|known| *known == name).map(TableId)
}
