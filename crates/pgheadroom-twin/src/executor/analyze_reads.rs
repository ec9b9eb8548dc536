//! Values out of line that ANALYZE reads, and so the pages of the TOAST table that it prunes.
//!
//! ```text
//! sample, by position -> column by column: values that are short enough for its statistics
//!   -> index by index: what its predicate and its expressions look at
//! ```
//!
//! A value that is longer than a column's statistics take is left where it is. An array is read
//! twice: as a whole like any other value, and for its elements.
//!
//! Source: `do_analyze_rel` and `compute_index_stats`, src/backend/commands/analyze.c;
//! `heap_fetch_toast_slice`, src/backend/access/heap/heaptoast.c (REL_15_STABLE, REL_18_STABLE).
//! Differs: a table's statistics target is the server's, and expressions read as in
//! `index_reads.rs`.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::tuple::VARHDRSZ;

use crate::executor::analyze::sampled_blocks;
use crate::executor::index_definition::{IndexDefinition, IndexKey};
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::executor::{Database, TableId};
use crate::page::LinePointer;
use crate::pgbench::Prng;
use crate::procarray::ProcArray;
use crate::prune::TupleState;
use crate::row::elements::ElementKind;
use crate::row::kind::Kind;
use crate::wrap::Wrap;

/// The longest value with its header of which scalar statistics are made.
///
/// Source: `WIDTH_THRESHOLD`, src/backend/commands/analyze.c (REL_18_STABLE).
const LONGEST_SCALAR: u32 = 1024;
/// The longest array with its header whose elements are counted.
///
/// Source: `ARRAY_WIDTH_THRESHOLD`, src/backend/utils/adt/array_typanalyze.c (REL_18_STABLE).
const LONGEST_ARRAY: u32 = 0x1_0000;
/// Rows of a sample for each of the statistics target.
///
/// Source: `std_typanalyze`, src/backend/commands/analyze.c (REL_18_STABLE).
const ROWS_EACH: u32 = 300;
/// One seed has draws so far apart; arbitrary.
const BETWEEN_DRAWS: u64 = 7_919;

/// Which rows of larger tables are in a sample: a server draws that, from a seed that nobody knows.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    /// Rows, and pages, of one.
    pub rows: u32,
    pub seed: u64,
    /// Samples of which it may matter.
    pub drawn: u64,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            rows: ROWS_EACH * 100,
            seed: 0,
            drawn: 0,
        }
    }
}

impl Samples {
    /// So many of these rows, in their order.
    ///
    /// Source: `acquire_sample_rows`, src/backend/commands/analyze.c (REL_18_STABLE).
    #[allow(clippy::cast_precision_loss)] // rows of a table
    fn draw(&mut self, rows: Vec<u32>, most: usize) -> Vec<u32> {
        let apart = self.drawn.wrapping_mul(BETWEEN_DRAWS);
        let mut generator = Prng::from_seed(self.seed.wrapping_add(apart));
        self.drawn += 1;
        let (mut left, mut wanted) = (rows.len(), most);
        let mut rows = rows;
        rows.retain(|_| {
            let is_taken = generator.fraction() * (left as f64) < wanted as f64;
            left -= 1;
            wanted -= usize::from(is_taken);
            is_taken
        });
        rows
    }
}

impl Database {
    /// From now on a person's ANALYZE has this `default_statistics_target`.
    pub const fn set_statistics_target(&mut self, target: u32) {
        self.samples.rows = ROWS_EACH * target;
    }

    /// How many ANALYZEs have read values out of line of rows that were drawn, where that may have
    /// pruned something.
    #[must_use]
    pub const fn samples_drawn(&self) -> u64 {
        self.samples.drawn
    }

    /// Reads what ANALYZE does of a sample of so many rows, from as many pages.
    pub(super) fn read_sample(&mut self, table: TableId, most: u32) {
        let of = &self.tables[table.0];
        if !of.has_chunks_to_prune(&self.procs) {
            return;
        }
        self.settle_images();
        let of = &mut self.tables[table.0];
        let mut rows = of.sampled_rows(most, &self.procs);
        if !of.has_values_to_read(&rows) {
            return;
        }
        if rows.len() > most as usize || of.heap.page_count() > most {
            rows = self.samples.draw(rows, most as usize);
        }
        let mut to = Writer {
            procs: &mut self.procs,
            wal: &mut self.wal,
            statement: 0, // nothing is stored
        };
        of.read_for_analyze(&rows, &mut to);
        self.settle_images();
    }
}

impl Table {
    /// Whether reading chunks may prune any page.
    fn has_chunks_to_prune(&self, procs: &ProcArray) -> bool {
        let Some(toast) = &self.toast else {
            return false;
        };
        let heap = &toast.table.heap;
        let mut blocks = (0..heap.page_count()).map(BlockNumber);
        self.values.texts.has_forms() && blocks.any(|block| heap.is_worth_pruning(block, procs))
    }

    /// Rows on the pages of a sample that are neither dead nor of somebody else's transaction.
    fn sampled_rows(&self, max_pages: u32, procs: &ProcArray) -> Vec<u32> {
        let pages = self.heap.pages();
        let mut rows = Vec::new();
        for block in sampled_blocks(self.heap.page_count(), max_pages) {
            for (_, item) in pages[block.0 as usize].each_item() {
                let LinePointer::Normal(tuple) = item else {
                    continue;
                };
                let state = TupleState::of(&tuple, procs);
                if matches!(state, TupleState::Live | TupleState::DeleteInProgress) {
                    rows.push(tuple.row);
                }
            }
        }
        rows
    }

    /// Whether these rows have any value out of line that ANALYZE may read.
    fn has_values_to_read(&self, rows: &[u32]) -> bool {
        let is_evaluated = self.indexes.definitions.iter().any(is_evaluated);
        let mut columns = (0..self.values.row_type.columns.len()).map(|column| {
            let of_kind = longest_read(self.values.row_type.columns[column].kind).iter();
            let longest = if is_evaluated {
                Some(&u32::MAX)
            } else {
                of_kind.max()
            };
            (column, longest.copied().unwrap_or(0))
        });
        columns.any(|(column, longest)| {
            let mut ids = rows
                .iter()
                .map(|&row| self.id_to_read(row, column, longest));
            longest > 0 && ids.any(|id| id.is_some())
        })
    }

    /// The OID of a value out of line that is at most this long with its header.
    fn id_to_read(&self, row: u32, column: usize, longest: u32) -> Option<u32> {
        let slot = self.values.slot(row, column);
        let is_short = |_: &u32| self.values.texts.get(slot).len() + VARHDRSZ <= longest;
        self.external_id(column, slot).filter(is_short)
    }

    fn read_for_analyze(&mut self, sample: &[u32], to: &mut Writer<'_>) {
        for column in 0..self.values.row_type.columns.len() {
            for &longest in longest_read(self.values.row_type.columns[column].kind) {
                for &row in sample {
                    if let Some(id) = self.id_to_read(row, column, longest) {
                        self.read_values(&[id], false, to);
                    }
                }
            }
        }
        let definitions = self.indexes.definitions.iter();
        let definitions = definitions.filter(|one| is_evaluated(one));
        for definition in definitions.cloned().collect::<Vec<_>>() {
            for &row in sample {
                let is_expression = |key: &&IndexKey| matches!(key, IndexKey::Expression(_));
                let keys = definition.keys.iter().filter(is_expression);
                let sources = (definition.predicate.as_ref(), keys);
                // Where it fails these are the new values of an UPDATE that waits: ANALYZE takes
                // the version before it, and no new row of another transaction.
                let longest = LONGEST_SCALAR - VARHDRSZ;
                let _ = self.read_for_keys(row, sources, None, longest, to);
            }
        }
    }
}

/// Whether an index has a predicate, or an expression among its keys.
fn is_evaluated(definition: &IndexDefinition) -> bool {
    let is_expression = |key: &IndexKey| matches!(key, IndexKey::Expression(_));
    definition.predicate.is_some() || definition.keys.iter().any(is_expression)
}

/// The longest values that are read, for each time that ANALYZE goes through a column.
///
/// Source: `std_typanalyze`, src/backend/commands/analyze.c; `array_typanalyze`,
/// src/backend/utils/adt/array_typanalyze.c; `compute_tsvector_stats`,
/// src/backend/tsearch/ts_typanalyze.c (REL_18_STABLE).
const fn longest_read(kind: Kind) -> &'static [u32] {
    match kind {
        // No operators: only widths are counted.
        Kind::Wrapped(Wrap::Json | Wrap::Xml) => &[],
        Kind::Wrapped(Wrap::TsVector) => &[u32::MAX],
        Kind::Wrapped(Wrap::Texts | Wrap::Varchars) | Kind::Integers(_) => {
            &[LONGEST_SCALAR, LONGEST_ARRAY]
        }
        Kind::Elements(elements) => match elements.kind {
            ElementKind::Integers { .. } | ElementKind::Strings { .. } => {
                &[LONGEST_SCALAR, LONGEST_ARRAY]
            }
            ElementKind::Words => &[u32::MAX],
            ElementKind::Jsonb => &[LONGEST_SCALAR],
        },
        _ => &[LONGEST_SCALAR],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample has as many rows as it may, in their order, and each seed another one.
    #[test]
    fn samples_are_drawn() {
        let sample = |seed| {
            let mut samples = Samples {
                seed,
                ..Samples::default()
            };
            samples.draw((0..1_000).collect(), 300)
        };
        for seed in 0..8 {
            let rows = sample(seed);
            assert_eq!(rows.len(), 300);
            assert!(rows.is_sorted());
        }
        assert_ne!(sample(1), sample(2));
    }
}
