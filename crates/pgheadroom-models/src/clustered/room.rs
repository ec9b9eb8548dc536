//! Pages with room for a row: among those that are named, an empty one, or any.
//!
//! The free space map is believed only as far as the page agrees, and is told what was found there:
//! each wrong word of the map costs one look.
//!
//! Source: extension/clustered_heap/room.c, function by function.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::page::{
    BLCKSZ, MAX_HEAP_TUPLE_SIZE, MAX_HEAP_TUPLES_PER_PAGE, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER,
};
use pgheadroom_twin::executor::{NewRow, StatementError};

/// Free bytes of a page that is as good as empty (`NEARLY_EMPTY`).
const NEARLY_EMPTY: u32 = MAX_HEAP_TUPLE_SIZE - MAX_HEAP_TUPLES_PER_PAGE / 8 * SIZE_OF_ITEM_ID;
/// What the map counts in (`MAP_STEP`).
const MAP_STEP: u32 = BLCKSZ / 256;
/// Pages named by the map that are looked at (`MAP_TRIES`).
const MAP_TRIES: usize = 4;
/// Pages that tell whether a table is sparse (`SAMPLED_PAGES`).
const SAMPLED_PAGES: u32 = 64;

/// The search of a page for one row.
pub(super) struct Seeking<'a> {
    new: NewRow<'a>,
    /// Bytes that have to be free.
    wanted: u32,
}

/// Whether another version of a row fits on the page of the one before, if need be after pruning
/// (`place_version`).
///
/// # Errors
/// [`StatementError`] when it fits no page.
pub(super) fn stays(new: &mut NewRow<'_>, block: BlockNumber) -> Result<bool, StatementError> {
    if new.table.takes_version(block, new.tuple_bytes)? {
        return Ok(true);
    }
    new.table.prune_opt(block, new.procs, new.wal);
    Ok(new.table.takes_version(block, new.tuple_bytes)?)
}

impl<'a> Seeking<'a> {
    /// Begins it.
    ///
    /// # Errors
    /// [`StatementError`] when the row fits no page.
    pub fn of(new: NewRow<'a>) -> Result<Self, StatementError> {
        let wanted = new.table.wanted_bytes(new.tuple_bytes)?;
        Ok(Self { new, wanted })
    }

    /// Whether a page takes the row, if need be after pruning (`block_takes`).
    pub fn takes(&mut self, block: BlockNumber) -> Result<bool, StatementError> {
        let row = &mut self.new;
        if row.table.takes_row(block, row.tuple_bytes)? {
            return Ok(true);
        }
        row.table.prune_opt(block, row.procs, row.wal);
        Ok(row.table.takes_row(block, row.tuple_bytes)?)
    }

    /// The first of these that takes the row, which come from the highest down; all but the first
    /// are read only if the map says so (`block_of_leaf`, `highest_recorded_with_room`).
    pub fn highest_with_room(
        &mut self,
        blocks: &[BlockNumber],
    ) -> Result<Option<BlockNumber>, StatementError> {
        for (number, &block) in blocks.iter().enumerate() {
            if number > 0 && self.new.table.recorded_free_bytes(block) < self.wanted {
                continue;
            }
            if self.takes(block)? {
                return Ok(Some(block));
            }
            if number > 0 {
                self.record(block);
            }
        }
        Ok(None)
    }

    /// An empty page above this one that the map knows, else one that is added; in a sparse table
    /// any with room rather than that (`block_for_latecomers`).
    pub fn page_for_latecomers(
        &mut self,
        above: Option<BlockNumber>,
    ) -> Result<BlockNumber, StatementError> {
        let is_above = |block: BlockNumber| above.is_none_or(|above| block > above);
        let last = BlockNumber(self.page_count() - 1);
        let known = match self.known_empty() {
            Some(block) if is_above(block) => Some(block),
            Some(_) => (is_above(last) && self.new.table.is_without_rows(last)).then_some(last),
            None => None,
        };
        if let Some(block) = known {
            return Ok(block);
        }
        if self.is_sparse()
            && let Some(block) = self.any_with_room()?
        {
            return Ok(block);
        }
        let row = &mut self.new;
        Ok(row.table.add_page(row.wal)?)
    }

    fn page_count(&self) -> u32 {
        self.new.table.heap().page_count()
    }

    /// Tells the map what is free on a page; the bytes.
    fn record(&mut self, block: BlockNumber) -> u32 {
        let row = &mut self.new;
        let left = row.table.free_bytes(block);
        row.table.record_free_bytes(block, left, row.wal);
        left
    }

    /// A page without rows that the map knows (`known_empty_block`).
    fn known_empty(&mut self) -> Option<BlockNumber> {
        let row = &mut self.new;
        let mut next = row.table.page_with_free_bytes(NEARLY_EMPTY, row.wal);
        for _ in 0..MAP_TRIES {
            let block = next?;
            let is_there = block.0 < row.table.heap().page_count();
            if is_there && row.table.is_without_rows(block) {
                return Some(block);
            }
            let told = if is_there {
                row.table.free_bytes(block)
            } else {
                0
            };
            let told = told.min(NEARLY_EMPTY - MAP_STEP);
            let table = &mut *row.table;
            next = table.next_page_with_free_bytes(block, told, NEARLY_EMPTY, row.wal);
        }
        None
    }

    /// Any page with room by the map (`any_block_with_room`).
    fn any_with_room(&mut self) -> Result<Option<BlockNumber>, StatementError> {
        let row = &mut self.new;
        let mut next = row.table.page_with_free_bytes(self.wanted, row.wal);
        for _ in 0..MAP_TRIES {
            let Some(block) = next else {
                break;
            };
            let is_there = block.0 < self.page_count();
            if is_there && self.takes(block)? {
                return Ok(Some(block));
            }
            let row = &mut self.new;
            let left = if is_there {
                row.table.free_bytes(block)
            } else {
                0
            };
            let table = &mut *row.table;
            next = table.next_page_with_free_bytes(block, left, self.wanted, row.wal);
        }
        Ok(None)
    }

    /// Whether half of the table and more is free, by a sample of its pages (`is_sparse`).
    fn is_sparse(&mut self) -> bool {
        let end = self.page_count();
        let count = end.min(SAMPLED_PAGES);
        let reserve = self.new.table.reserve_bytes();
        let usable = BLCKSZ - SIZE_OF_PAGE_HEADER - reserve;
        let mut sum = 0;
        for number in 0..count {
            let at = u64::from(number) * u64::from(end) / u64::from(count);
            let block = BlockNumber(u32::try_from(at).expect("a page of the table"));
            let mut left = self.new.table.recorded_free_bytes(block);
            if left > usable / 2 {
                left = self.record(block);
            }
            sum += u64::from(left.saturating_sub(reserve).min(usable));
            let left = u64::from(count - number - 1) * u64::from(usable);
            if 2 * (sum + left) <= u64::from(count) * u64::from(usable) {
                return false;
            }
        }
        count > 0
    }
}
