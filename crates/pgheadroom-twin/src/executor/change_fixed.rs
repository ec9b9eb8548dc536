//! The heap's part of an UPDATE whose columns have a fixed width and place, and are in no index: of
//! rows that others may hold, or whose chain is long, where the short way (`steady`) ends.
//!
//! ```text
//! old slots -> those of the SET clause -> heap update, WAL as for any -> new slots of these alone
//! ```
//!
//! Nothing but time depends on it (`tests/steady_path.rs` plays random workloads with and without
//! it): a version is as long as the one before, whatever is not assigned stays, and what both share
//! of their bytes is known from the changed columns.

use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;

use crate::executor::change::NextVersion;
use crate::executor::steady::MOST_SETS;
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::executor::{Assignments, StatementError};
use crate::heap::Updated;
use crate::page::Tid;
use crate::row::Measured;

impl Table {
    /// As `Table::update_row`; `None` when the update is not that simple, and nothing was done
    /// then.
    pub(super) fn update_fixed(
        &mut self,
        (row, old): (u32, Tid),
        assignments: &Assignments<'_>,
        to: &mut Writer<'_>,
    ) -> Result<Option<Updated>, StatementError> {
        let sets = assignments.columns;
        let stays = |column: usize| self.indexes.stays_in_place[column];
        let is_fixed = sets.len() <= MOST_SETS && sets.iter().all(|set| stays(set.column));
        let lp_len = self.heap.pages()[old.block.0 as usize].lp_len(old.offset);
        let tuple_bytes = u32::from(lp_len);
        let may = !self.scratch.takes_long_way && self.model.is_none();
        if !is_fixed || !may || self.values.texts.has_forms() || tuple_bytes > TOAST_TUPLE_THRESHOLD
        {
            return Ok(None);
        }
        let Some(changed) = self.change_in_place(row, sets) else {
            return Ok(None);
        };
        self.note_hints(old, to.procs, to.wal);
        let hoff = changed.hoff;
        let version = NextVersion {
            old,
            measured: Measured { tuple_bytes, hoff },
            hot_allowed: true,
            needs_toast: false,
            mode_of: assignments,
        };
        let shared = |_: &Self| changed.differing.shared(tuple_bytes - hoff);
        let done = self.put_version(version, to, shared)?;
        self.keep_replaced(old, row);
        self.keep_old_slots(row);
        for (set, &slot) in sets.iter().zip(&changed.new) {
            self.values.rows.set(row, set.column, slot);
        }
        Ok(Some(done))
    }
}
