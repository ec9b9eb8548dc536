//! Rows of a table: the slots of their newest versions, and the TIDs of those as they were seen
//! last.
//!
//! ```text
//! | TID of row 0, 8 bytes | slot 4 or 8 | slot | ... | TID of row 1 | slot | slot | ...
//! ```
//!
//! TID and slots lie together, for whoever looks up a row by its key wants both, and in a large
//! table each is a cache miss of its own. A column's slots take four bytes until one does not fit;
//! then all rows are copied.

use std::ops::RangeInclusive;

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::memory::{Pieces, prefer_huge_pages, prefetch};
use crate::page::Tid;
use crate::row::NULL_SLOT;
use crate::row::cells::{CellColumn, KeptSlots, NewCells, SlotList, halves, narrow, slot_of};

/// Cells of a row's TID: block and offset number, 0 where none is cached.
const TID_CELLS: usize = 2;
const NO_TID: u32 = 0;

/// Slots and cached TIDs by row.
#[derive(Debug)]
pub(super) struct Rows {
    cells: Vec<u32>,
    count: u32,
    /// Cells of a row.
    stride: usize,
    columns: Vec<CellColumn>,
    /// Whether any row had a NULL ever.
    has_nulls: bool,
}

impl Rows {
    /// Rows with so many columns.
    pub fn new(columns: usize) -> Self {
        let mut rows = Self {
            cells: Vec::new(),
            count: 0,
            stride: 0,
            columns: vec![
                CellColumn {
                    at: 0,
                    is_wide: false
                };
                columns
            ],
            has_nulls: false,
        };
        rows.lay_out();
        rows
    }

    /// Puts the columns one after the other.
    fn lay_out(&mut self) {
        let mut end = TID_CELLS;
        for column in &mut self.columns {
            column.at = u16::try_from(end).expect("at most 1600 columns");
            end += column.cells();
        }
        self.stride = end;
    }

    /// How many there are.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The cells of a row.
    #[inline(always)]
    fn range(&self, row: u32) -> std::ops::Range<usize> {
        let first = row as usize * self.stride;
        first..first + self.stride
    }

    /// Slots of a row where they are.
    #[inline(always)]
    pub fn kept(&self, row: u32) -> KeptSlots<'_> {
        KeptSlots {
            cells: &self.cells[self.range(row)],
            columns: &self.columns,
        }
    }

    /// Slots of a row.
    #[inline]
    pub fn slots(&self, row: u32) -> SlotList {
        self.kept(row).list()
    }

    /// The slot of a row's column.
    #[inline(always)]
    pub fn slot(&self, row: u32, column: usize) -> i64 {
        let CellColumn { at, is_wide } = self.columns[column];
        if is_wide {
            return self.kept(row).get(column);
        }
        slot_of(self.cells[row as usize * self.stride + usize::from(at)])
    }

    /// Whether any row may have a NULL.
    pub const fn has_nulls(&self) -> bool {
        self.has_nulls
    }

    /// Puts other slots in the place of a row's.
    pub fn replace(&mut self, row: u32, slots: &[i64]) {
        assert_eq!(slots.len(), self.columns.len(), "a slot for each column");
        for (column, &slot) in slots.iter().enumerate() {
            self.set(row, column, slot);
        }
    }

    /// Puts another slot in the place of a row's.
    #[inline(always)]
    pub fn set(&mut self, row: u32, column: usize, slot: i64) {
        let CellColumn { at, is_wide } = self.columns[column];
        match narrow_number(slot) {
            Some(cell) if !is_wide => {
                self.cells[row as usize * self.stride + usize::from(at)] = cell;
            }
            _ => self.set_any(row, column, slot),
        }
    }

    #[inline(never)]
    fn set_any(&mut self, row: u32, column: usize, slot: i64) {
        self.make_room(column, slot);
        let range = self.range(row);
        self.columns[column].write(&mut self.cells[range], slot);
    }

    /// The column can hold this slot from now on.
    fn make_room(&mut self, column: usize, slot: i64) {
        self.has_nulls |= slot == NULL_SLOT;
        if !self.columns[column].is_wide && narrow(slot).is_none() {
            self.widen(column);
        }
    }

    /// Copies all rows, with 8 bytes for this column.
    #[cold]
    fn widen(&mut self, column: usize) {
        let (before, old_stride) = (std::mem::take(&mut self.cells), self.stride);
        let at = usize::from(self.columns[column].at);
        self.columns[column].is_wide = true;
        self.lay_out();
        self.expect(before.capacity() / old_stride);
        for cells in before.chunks_exact(old_stride) {
            self.cells.extend_from_slice(&cells[..at]);
            self.cells.extend(halves(slot_of(cells[at])));
            self.cells.extend_from_slice(&cells[at + 1..]);
        }
    }

    /// A new row, whose slots are to be set next.
    #[inline]
    pub fn begin(&mut self) -> u32 {
        let row = self.count;
        self.count = row.checked_add(1).expect("fewer than 2^32 rows");
        self.cells.resize(self.cells.len() + self.stride, NO_TID);
        row
    }

    /// Room for so many more rows, in huge pages where the system has them: all of it will be
    /// written at once.
    pub fn expect(&mut self, count: usize) {
        let cells = count.saturating_mul(self.stride);
        if self.cells.try_reserve_exact(cells).is_ok() {
            prefer_huge_pages(self.cells.spare_capacity_mut());
        }
    }

    /// So many new rows, the first one's version at this TID and the others' behind it, whose
    /// slots are within these ranges: the first of each until `fill` has gone over the cells.
    pub fn add_alike(
        &mut self,
        (count, first): (usize, Tid),
        ranges: &[RangeInclusive<i64>],
        fill: impl FnOnce(NewCells<'_>),
    ) {
        assert_eq!(ranges.len(), self.columns.len(), "slots for each column");
        if count == 0 {
            return;
        }
        for (column, range) in ranges.iter().enumerate() {
            self.make_room(column, *range.start());
            self.make_room(column, *range.end());
        }
        let before = self.cells.len();
        let end = before + count * self.stride;
        let row = self.begin();
        self.count = u32::try_from(count - 1)
            .ok()
            .and_then(|more| self.count.checked_add(more))
            .expect("fewer than 2^32 rows");
        self.set_tid(row, first);
        for (column, range) in self.columns.iter().zip(ranges) {
            column.write(&mut self.cells[before..], *range.start());
        }
        while self.cells.len() < end {
            let done = self.cells.len() - before;
            let more = done.min(end - self.cells.len());
            self.cells.extend_from_within(before..before + more);
        }
        let new = &mut self.cells[before..];
        let offsets = new.iter_mut().skip(1).step_by(self.stride);
        for (cell, offset) in offsets.zip(u32::from(first.offset.0)..) {
            *cell = offset; // the next line pointer
        }
        fill(NewCells {
            cells: new,
            stride: self.stride,
            columns: &self.columns,
        });
    }

    /// Only so many rows are left.
    pub fn truncate(&mut self, rows: u32) {
        self.count = self.count.min(rows);
        self.cells.truncate(rows as usize * self.stride);
    }

    /// The TID at which the newest version of a row was seen last, if it is cached.
    #[inline]
    pub fn tid(&self, row: u32) -> Option<Tid> {
        let first = row as usize * self.stride;
        let &[block, offset] = self.cells.get(first..)?.first_chunk()?;
        #[allow(clippy::cast_possible_truncation)] // as it was cached
        (offset != NO_TID).then_some(Tid {
            block: BlockNumber(block),
            offset: OffsetNumber(offset as u16),
        })
    }

    /// Caches the TID of the newest version of a row.
    #[inline]
    pub fn set_tid(&mut self, row: u32, tid: Tid) {
        let first = row as usize * self.stride;
        put_tid(&mut self.cells[first..first + TID_CELLS], tid);
    }

    /// The TID of the newest version is not cached any more.
    pub fn forget_tid(&mut self, row: u32) {
        let range = self.range(row);
        if let Some(cells) = self.cells.get_mut(range) {
            cells[..TID_CELLS].fill(NO_TID);
        }
    }

    /// Bytes of all rows, room for others included.
    #[cfg(test)]
    pub const fn allocated_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<u32>()
    }

    /// The memory of all rows.
    pub fn pieces(&self, pieces: &mut Pieces) {
        pieces.add(&self.cells);
    }

    /// Prefetches a row's memory.
    #[inline]
    pub fn prefetch_row(&self, row: u32) {
        if let Some(cells) = self.cells.get(self.range(row)) {
            prefetch(&cells[0]);
            prefetch(&cells[cells.len() - 1]);
        }
    }
}

#[inline(always)]
fn put_tid(cells: &mut [u32], tid: Tid) {
    [cells[0], cells[1]] = [tid.block.0, tid.offset.0.into()];
}

/// A slot that is a number, as a narrow column has it.
#[inline(always)]
fn narrow_number(slot: i64) -> Option<u32> {
    let number = i32::try_from(slot).ok()?;
    (number != i32::MIN).then_some(number.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tid_number(number: u16) -> Tid {
        Tid {
            block: BlockNumber(u32::from(number) * 1000),
            offset: OffsetNumber(number + 1),
        }
    }

    /// Rows stay what they are when a column gets a slot that needs 8 bytes, loaded or set.
    #[test]
    fn a_column_becomes_wide() {
        let big = 1_i64 << 40;
        let mut rows = Rows::new(3);
        let mut known: Vec<[i64; 3]> = Vec::new();
        for number in 0..40_u16 {
            let row = rows.begin();
            let mut slots = [number.into(), NULL_SLOT, -i64::from(number)];
            if number == 20 {
                slots[1] = -big;
            }
            rows.replace(row, &slots);
            rows.set_tid(row, tid_number(number));
            known.push(slots);
        }
        assert_eq!(rows.stride, 2 + 4);
        rows.set(7, 0, i32::MIN.into());
        known[7][0] = i32::MIN.into();
        assert_eq!(rows.stride, 2 + 5);
        let ranges = [1..=1, 2..=2, big..=big + 2];
        let tid = tid_number(40);
        rows.add_alike((3, tid), &ranges, |mut cells| {
            cells.fill(2, big..);
            cells.fill(0, 5..);
        });
        assert_eq!((rows.stride, rows.count()), (2 + 6, 43));
        known.extend((0..3).map(|more| [5 + more, 2, big + more]));
        for (number, slots) in (0_u16..).zip(&known) {
            let row = u32::from(number);
            assert_eq!(rows.slots(row)[..], slots[..], "{row}");
            let expected = match number {
                0..40 => tid_number(number),
                _ => Tid {
                    offset: OffsetNumber(tid.offset.0 + number - 40),
                    ..tid
                },
            };
            assert_eq!(rows.tid(row), Some(expected));
        }
        rows.forget_tid(42);
        assert_eq!(rows.tid(42), None);
        rows.truncate(41);
        assert_eq!((rows.count(), rows.tid(41)), (41, None));
    }
}
