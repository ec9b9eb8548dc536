//! How many rows a server takes a table to have.

use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_PAGE_HEADER};

use crate::executor::table::Table;
use crate::row::ColumnDefinition;
use crate::row::kind::fixed_width;

/// A tuple's header, aligned, and its line pointer.
const OVERHEAD_BYTES: u32 = 24 + 4;
/// Fewest pages of a table that was never vacuumed.
const PAGES_MIN: u32 = 10;
/// Bytes of a character of UTF-8 at most.
const CHARACTER_BYTES: u32 = 4;

impl Table {
    /// Rows that a server takes it to have: by what the catalogue has of it, else by the types of
    /// its columns, of ten pages at least where it was never vacuumed.
    ///
    /// Source: `table_block_relation_estimate_size`, src/backend/access/table/tableam.c;
    /// `get_rel_data_width`, src/backend/optimizer/util/plancat.c (REL_15_STABLE, REL_18_STABLE).
    pub(super) fn expected_rows(&self) -> u64 {
        let known = self.class.statistics.filter(|known| known.reltuples >= 0.0);
        let pages = match known {
            Some(_) => self.heap.page_count(),
            None => self.heap.page_count().max(PAGES_MIN),
        };
        let density = match known {
            Some(known) if known.relpages > 0 => {
                f64::from(known.reltuples) / f64::from(known.relpages)
            }
            _ => f64::from(self.density_by_types()),
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rows of a table
        let rows = (density * f64::from(pages)).round_ties_even() as u64;
        rows
    }

    fn density_by_types(&self) -> u32 {
        let columns = self.class.columns.iter().map(average_width);
        let width = columns.sum::<u32>() + OVERHEAD_BYTES;
        let percent = if self.heap.behaviour().estimate_considers_fillfactor {
            self.heap.fillfactor().percent()
        } else {
            100
        };
        let usable = (BLCKSZ - SIZE_OF_PAGE_HEADER) * percent / 100;
        (usable / width).max(1)
    }
}

/// Source: `get_typavgwidth`, src/backend/utils/cache/lsyscache.c; `type_maximum_size`,
/// src/backend/utils/adt/format_type.c; `numeric_maximum_size`, numeric.c (REL_18_STABLE).
fn average_width(column: &ColumnDefinition) -> u32 {
    const GUESS: u32 = 32;
    const MOST: u32 = 1000;
    if let Some(width) = fixed_width(&column.column_type) {
        return width;
    }
    let name = column.column_type.name();
    let Some((base, modifier)) = name.strip_suffix(')').and_then(|name| name.split_once('('))
    else {
        return GUESS;
    };
    let first = modifier.split(',').next().unwrap_or(modifier);
    let Ok(length) = first.trim().parse::<u32>() else {
        return GUESS;
    };
    let most = match base {
        "bpchar" => return length * CHARACTER_BYTES + 4,
        "varchar" => length * CHARACTER_BYTES + 4,
        "numeric" => 8 + length.saturating_add(6) / 4 * 2,
        "bit" | "varbit" => length.div_ceil(8) + 8,
        _ => return GUESS,
    };
    if most <= GUESS {
        most
    } else {
        GUESS + (most.min(MOST) - GUESS) / 2
    }
}
