//! What an UPDATE makes of a row's values.
//!
//! Of columns that are fixed their slots alone are computed and compared: a version is as long as
//! the one before, whatever is not assigned stays, and what both share of their bytes is known from
//! the columns that differ.

use pgheadroom_layout::wal_record::SharedBytes;

use crate::executor::prune_opt::simple_prune_bytes;
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::executor::{Assignment, Assignments, Change};
use crate::page::Tid;
use crate::row::{Differing, Measured, NULL_SLOT};

/// Most columns of a SET clause of fixed columns.
const MOST_SETS: usize = 4;

/// New values of fixed columns.
#[derive(Debug)]
pub(super) struct FixedValues {
    /// New slots, in the order of the SET clause.
    new: [i64; MOST_SETS],
    hoff: u32,
    differing: Differing,
}

impl FixedValues {
    /// Lengths of the version, which is as long as the one before.
    pub const fn measured(&self, tuple_bytes: u32) -> Measured {
        Measured {
            tuple_bytes,
            hoff: self.hoff,
        }
    }

    /// What both versions share.
    #[inline(always)]
    pub fn shared(&self, tuple_bytes: u32) -> SharedBytes {
        self.differing.shared(tuple_bytes - self.hoff)
    }
}

impl Table {
    /// Which columns are fixed, and what the record of a pruned HOT update takes.
    ///
    /// A fixed column's change is that of its slot: it has a fixed width and offset, and is in no
    /// index and no foreign key.
    pub(in crate::executor) fn learn_columns(&mut self) {
        self.scratch.prune_bytes = simple_prune_bytes(self.heap.behaviour());
        let columns = self.values.row_type.columns.iter().enumerate();
        let is_fixed = columns.map(|(column, layout)| {
            let is_indexed = self.indexes.blocks_hot[column] || self.indexes.is_summarized[column];
            let is_simple = !is_indexed && !self.foreign_keys.has(column);
            layout.width.is_some() && layout.offset.is_some() && is_simple
        });
        self.indexes.is_fixed = is_fixed.collect();
    }

    /// Whether a SET clause has fixed columns alone.
    #[inline(always)]
    pub(super) fn sets_fixed(&self, sets: &[Assignment<'_>]) -> bool {
        let is_fixed = |set: &Assignment<'_>| self.indexes.is_fixed[set.column];
        sets.len() <= MOST_SETS && sets.iter().all(is_fixed)
    }

    /// New values of fixed columns; `None` when there is an error to tell, or NULLs shift what
    /// changes.
    #[inline(always)]
    pub(super) fn fixed_values(
        &mut self,
        row: u32,
        sets: &[Assignment<'_>],
    ) -> Option<FixedValues> {
        let rows = &self.values.rows;
        let has_nulls = rows.has_nulls();
        let row_type = &self.values.row_type;
        let hoff = row_type.hoff_of(has_nulls && rows.kept(row).has_nulls());
        let mut changed = FixedValues {
            new: [0; MOST_SETS],
            hoff,
            differing: Differing::NOTHING,
        };
        for (set, new) in sets.iter().zip(&mut changed.new) {
            let (column, old) = (set.column, rows.slot(row, set.column));
            *new = self.values.row_type.fixed_slot(
                column,
                old,
                &set.change,
                &mut self.values.texts,
            )?;
            if *new != old {
                if has_nulls && rows.kept(row).any_null_to(column) {
                    return None;
                }
                let layout = &self.values.row_type.columns[column];
                changed.differing.add(layout, old, *new);
            }
        }
        Some(changed)
    }

    /// Fixed columns have their new values.
    #[inline(always)]
    pub(super) fn store_fixed(&mut self, row: u32, sets: &[Assignment<'_>], values: &FixedValues) {
        for (set, &slot) in sets.iter().zip(&values.new) {
            self.values.rows.set(row, set.column, slot);
        }
    }

    /// How long the version after the one at this TID is, whose values are `before`.
    pub(super) fn measure_next(
        &self,
        old: Tid,
        (before, after): (&[i64], &[i64]),
        changed: &[usize],
    ) -> Measured {
        let keeps_length = |&column: &usize| {
            let is_null = before[column] == NULL_SLOT || after[column] == NULL_SLOT;
            self.values.row_type.columns[column].width.is_some() && !is_null
        };
        let measure = || self.values.row_type.measure(after, &self.values.texts);
        if self.values.texts.has_forms() || !changed.iter().all(keeps_length) {
            return measure();
        }
        let measured = Measured {
            tuple_bytes: u32::from(self.heap.pages()[old.block.0 as usize].lp_len(old.offset)),
            hoff: self.values.row_type.hoff(after),
        };
        debug_assert_eq!(measured, measure(), "as long as the version before");
        measured
    }

    /// Reads the values out of line that an update computes new ones of.
    pub(super) fn read_changed(
        &mut self,
        slots: &[i64],
        assigned: &Assignments<'_>,
        to: &mut Writer<'_>,
    ) {
        if !self.values.texts.has_forms() {
            return;
        }
        let changed = assigned.columns.iter();
        let changed = changed.filter(|one| !matches!(one.change, Change::Same));
        let ids: Vec<u32> = changed
            .filter_map(|one| self.external_id(one.column, slots[one.column]))
            .collect();
        self.read_values(&ids, false, to);
    }
}
