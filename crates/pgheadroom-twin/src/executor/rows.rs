//! Rows of a table: the slots of their newest versions, and where those are.
//!
//! ```text
//! | place of row 0 | slot | slot | ... | place of row 1 | slot | slot | ...
//! ```
//!
//! Place and slots lie together, for whoever looks up a row by its key wants both, and in a large
//! table each is a cache miss of its own.

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::memory::{Pieces, prefer_huge_pages, prefetch};
use crate::page::Tid;
use crate::row::NULL_SLOT;

/// No place is known.
const NOWHERE: i64 = 0;

/// Slots and places by row.
#[derive(Debug)]
pub(super) struct Rows {
    cells: Vec<i64>,
    /// Cells of a row: its place and a slot for each column.
    stride: usize,
    /// Whether any row had a NULL ever.
    has_nulls: bool,
}

fn place_of(tid: Tid) -> i64 {
    i64::from(tid.block.0) << 16 | i64::from(tid.offset.0)
}

impl Rows {
    /// Rows with so many columns.
    pub const fn new(columns: usize) -> Self {
        Self {
            cells: Vec::new(),
            stride: columns + 1,
            has_nulls: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Slots of a row.
    #[inline]
    pub fn slots(&self, row: u32) -> &[i64] {
        &self.cells[row as usize * self.stride..][1..self.stride]
    }

    /// Whether any row may have a NULL.
    pub const fn has_nulls(&self) -> bool {
        self.has_nulls
    }

    /// Puts other slots in the place of a row's.
    pub fn replace(&mut self, row: u32, slots: &[i64]) {
        self.has_nulls = self.has_nulls || slots.contains(&NULL_SLOT);
        self.slots_mut(row).copy_from_slice(slots);
    }

    /// Slots of a row, to be changed: not to NULL.
    #[inline]
    pub fn slots_mut(&mut self, row: u32) -> &mut [i64] {
        &mut self.cells[row as usize * self.stride..][1..self.stride]
    }

    /// A new row, whose slots are pushed next.
    pub fn begin(&mut self) {
        self.cells.push(NOWHERE);
    }

    /// The next slot of the last row.
    pub fn push(&mut self, slot: i64) {
        self.has_nulls |= slot == NULL_SLOT;
        self.cells.push(slot);
    }

    /// Room for so many more rows, in huge pages where the system has them: all of it will be
    /// written at once.
    pub fn expect(&mut self, count: usize) {
        let cells = count.saturating_mul(self.stride);
        if self.cells.try_reserve_exact(cells).is_ok() {
            prefer_huge_pages(self.cells.spare_capacity_mut());
        }
    }

    /// So many new rows, the first one's version at this place and the others' behind it, whose
    /// slots are `template` until `fill` has gone over the cells.
    pub fn add_alike(
        &mut self,
        (count, first): (usize, Tid),
        template: &[i64],
        fill: impl FnOnce(&mut [i64]),
    ) {
        assert_eq!(template.len() + 1, self.stride, "a slot for each column");
        if count == 0 {
            return;
        }
        self.has_nulls |= template.contains(&NULL_SLOT);
        let before = self.cells.len();
        let end = before + count * self.stride;
        self.cells.push(place_of(first));
        self.cells.extend_from_slice(template);
        while self.cells.len() < end {
            let done = self.cells.len() - before;
            let more = done.min(end - self.cells.len());
            self.cells.extend_from_within(before..before + more);
        }
        let places = self.cells[before..].iter_mut().step_by(self.stride);
        for (cell, place) in places.zip(place_of(first)..) {
            *cell = place; // the next line pointer's
        }
        fill(&mut self.cells[before..]);
    }

    /// Only so many rows are left.
    pub fn truncate(&mut self, rows: u32) {
        self.cells.truncate(rows as usize * self.stride);
    }

    /// Where the newest version of a row was seen last, if it is worth knowing.
    #[inline]
    pub fn tid(&self, row: u32) -> Option<Tid> {
        let place = *self.cells.get(row as usize * self.stride)?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // packed below
        (place != NOWHERE).then_some(Tid {
            block: BlockNumber((place >> 16) as u32),
            offset: OffsetNumber(place as u16),
        })
    }

    /// Notes where the newest version of a row is.
    #[inline]
    pub fn set_place(&mut self, row: u32, tid: Tid) {
        self.cells[row as usize * self.stride] = place_of(tid);
    }

    /// Where the newest version is, is not known any more.
    pub fn forget_place(&mut self, row: u32) {
        if let Some(place) = self.cells.get_mut(row as usize * self.stride) {
            *place = NOWHERE;
        }
    }

    /// The memory of all rows.
    pub fn pieces(&self, pieces: &mut Pieces) {
        pieces.add(&self.cells);
    }

    /// Asks for the memory of a row.
    #[inline]
    pub fn look_ahead(&self, row: u32) {
        let first = row as usize * self.stride;
        if let Some(cells) = self.cells.get(first..first + self.stride) {
            prefetch(&cells[0]);
            prefetch(&cells[cells.len() - 1]);
        }
    }
}
