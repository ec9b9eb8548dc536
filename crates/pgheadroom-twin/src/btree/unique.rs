//! The uniqueness check of an insertion, which also finds entries that are dead to all.

use pgheadroom_layout::BlockNumber;

use crate::btree::key::SearchKey;
use crate::btree::record::Sink;
use crate::btree::search::{Tie, lower_bound_near};
use crate::btree::{Btree, Table, UniqueFetch, UniqueViolation};

/// Entries with the key of one that is inserted, dead ones too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Equals {
    /// Whether the first page has any.
    pub on_first_page: bool,
    /// Whether further pages were looked at.
    pub looked_further: bool,
}

impl Equals {
    /// What is known where a live one was found, all but always on the first page.
    pub const CONFLICT: Self = Self {
        on_first_page: true,
        looked_further: false,
    };
}

impl Btree {
    /// Looks at every entry with this key, and marks those that nobody can see any more.
    ///
    /// Source: `_bt_check_unique`, src/backend/access/nbtree/nbtinsert.c (REL_18_STABLE).
    /// Who has to wait for another transaction is told so, and begins again afterwards.
    pub(super) fn check_unique(
        &mut self,
        block: BlockNumber,
        key: &[i64],
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) -> Result<Equals, UniqueViolation> {
        let search = SearchKey {
            values: key,
            tid: None,
        };
        let start = block;
        let mut block = block;
        let near = self.expected_position(block);
        let mut position = lower_bound_near(search, self.page(block), Tie::PivotIsSmaller, near);
        // A high key that kept no TID is smaller.
        let is_equal = |tree: &Self, block, position: usize| {
            let page = tree.page(block);
            page.compare_key(key, position).is_eq() && page.slots().tid_number(position) != 0
        };
        let on_first_page = position < self.page(block).len() && is_equal(self, block, position);
        let seen = |block: BlockNumber| Equals {
            on_first_page,
            looked_further: block != start,
        };
        loop {
            while position < self.page(block).len() {
                if !self.page(block).slots().is_dead(position) {
                    if !is_equal(self, block, position) {
                        return Ok(seen(block));
                    }
                    self.check_entry(block, position, table, sink)?;
                }
                position += 1;
            }
            let page = self.page(block);
            if page.is_rightmost() || !is_equal(self, block, 0) {
                return Ok(seen(block));
            }
            block = page.next;
            while self.page(block).is_ignored() {
                block = self.page(block).next;
            }
            position = self.page(block).first_data();
        }
    }

    fn check_entry(
        &mut self,
        block: BlockNumber,
        position: usize,
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) -> Result<(), UniqueViolation> {
        let mut all_dead = true;
        for number in 0..self.page(block).item(position).tid_count() {
            let tid = self.page(block).item(position).tid_at(number);
            match table.fetch_for_uniqueness(tid) {
                UniqueFetch::Conflict => {
                    let in_progress = None;
                    return Err(UniqueViolation { tid, in_progress });
                }
                UniqueFetch::InProgress(xid) => {
                    let in_progress = Some(xid);
                    return Err(UniqueViolation { tid, in_progress });
                }
                UniqueFetch::Invisible => all_dead = false,
                UniqueFetch::AllDead => {}
            }
        }
        if all_dead {
            let page = self.page_mut(block);
            page.slots_mut().mark_dead(position);
            sink.hint(block, page.exact_free_space());
        }
        Ok(())
    }
}
