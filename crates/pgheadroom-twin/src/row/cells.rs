//! The slots of a row in cells of four bytes.
//!
//! ```text
//! column      slots                                cells
//! narrow      all beyond NULL fit 32 bits          1, NULL as the smallest integer
//! wide        any                                  2, the lower half first
//! ```
//!
//! A column is narrow until it gets a slot that does not fit, whatever its type: keys of int8 and
//! the numbers of strings mostly do.

use crate::row::NULL_SLOT;

/// What NULL is in a narrow column; the number itself does not fit.
const NULL_CELL: i32 = i32::MIN;

/// Where a column's slots lie among a row's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellColumn {
    pub at: u16,
    pub is_wide: bool,
}

impl CellColumn {
    /// Cells of a slot.
    pub const fn cells(self) -> usize {
        if self.is_wide { 2 } else { 1 }
    }

    /// The slot among the cells of a row.
    #[inline(always)]
    pub fn read(self, cells: &[u32]) -> i64 {
        let at = usize::from(self.at);
        if self.is_wide {
            wide(cells[at], cells[at + 1])
        } else {
            slot_of(cells[at])
        }
    }

    /// Puts a slot, which fits, among the cells of a row.
    #[inline(always)]
    pub fn write(self, cells: &mut [u32], slot: i64) {
        let at = usize::from(self.at);
        if self.is_wide {
            [cells[at], cells[at + 1]] = halves(slot);
        } else {
            cells[at] = narrow(slot).expect("a slot that fits its column");
        }
    }
}

/// The slot of a narrow column's cell.
#[inline(always)]
pub(crate) const fn slot_of(cell: u32) -> i64 {
    let number = cell.cast_signed();
    if number == NULL_CELL {
        NULL_SLOT
    } else {
        number as i64
    }
}

/// The slot as a narrow column has it, if it fits.
#[inline(always)]
pub(crate) fn narrow(slot: i64) -> Option<u32> {
    match i32::try_from(slot) {
        Ok(number) if number != NULL_CELL => Some(number.cast_unsigned()),
        _ if slot == NULL_SLOT => Some(NULL_CELL.cast_unsigned()),
        _ => None,
    }
}

#[inline(always)]
fn wide(low: u32, high: u32) -> i64 {
    (u64::from(high) << 32 | u64::from(low)).cast_signed()
}

/// The slot as a wide column has it.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // the halves
pub(crate) const fn halves(slot: i64) -> [u32; 2] {
    let bits = slot.cast_unsigned();
    [bits as u32, (bits >> 32) as u32]
}

/// Slots of a row, wherever they are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Slots<'a> {
    /// One after the other.
    Listed(&'a [i64]),
    /// Among a row's cells.
    Kept(KeptSlots<'a>),
}

impl Slots<'_> {
    /// That of a column.
    #[inline]
    pub fn get(self, column: usize) -> i64 {
        match self {
            Self::Listed(slots) => slots[column],
            Self::Kept(kept) => kept.get(column),
        }
    }
}

/// Slots of a row among its cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptSlots<'a> {
    pub cells: &'a [u32],
    pub columns: &'a [CellColumn],
}

impl KeptSlots<'_> {
    /// That of a column.
    #[inline(always)]
    pub fn get(self, column: usize) -> i64 {
        self.columns[column].read(self.cells)
    }

    /// Whether a column is NULL.
    pub fn has_nulls(self) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.read(self.cells) == NULL_SLOT)
    }

    /// Whether a column up to this one is NULL.
    pub fn any_null_to(self, column: usize) -> bool {
        let columns = &self.columns[..=column];
        let cells = self.cells;
        Self { cells, columns }.has_nulls()
    }

    /// All of them, one after the other.
    #[inline]
    pub fn list(self) -> SlotList {
        let count = self.columns.len();
        let mut list = SlotList {
            count,
            few: [0; FEW_SLOTS],
            many: Vec::new(),
        };
        if let Some(few) = list.few.get_mut(..count) {
            for (slot, column) in few.iter_mut().zip(self.columns) {
                *slot = column.read(self.cells);
            }
        } else {
            self.append_to(&mut list.many);
        }
        list
    }

    /// Appends all of them.
    #[inline]
    pub fn append_to(self, slots: &mut Vec<i64>) {
        slots.extend(self.columns.iter().map(|column| column.read(self.cells)));
    }
}

/// Cells of new rows, whose slots are alike so far.
#[derive(Debug)]
pub(crate) struct NewCells<'a> {
    pub cells: &'a mut [u32],
    /// Cells of a row.
    pub stride: usize,
    pub columns: &'a [CellColumn],
}

impl NewCells<'_> {
    /// The slots of a column, row by row: numbers that fit it.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // they fit
    pub fn fill(&mut self, column: usize, slots: impl Iterator<Item = i64>) {
        let column = self.columns[column];
        let (at, stride) = (usize::from(column.at), self.stride);
        if column.is_wide {
            for (cells, slot) in self.cells.chunks_exact_mut(stride).zip(slots) {
                column.write(cells, slot);
            }
        } else {
            let cells = self.cells.iter_mut().skip(at).step_by(stride);
            for (cell, slot) in cells.zip(slots) {
                *cell = slot as u32;
            }
        }
    }
}

/// Slots that need no allocation of their own.
const FEW_SLOTS: usize = 12;

/// Slots of a row, read from its cells.
#[derive(Debug)]
pub(crate) struct SlotList {
    count: usize,
    few: [i64; FEW_SLOTS],
    many: Vec<i64>,
}

impl std::ops::Deref for SlotList {
    type Target = [i64];

    #[inline]
    fn deref(&self) -> &[i64] {
        self.few.get(..self.count).unwrap_or(&self.many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every slot is read as it was written; the smallest number of 32 bits needs a wide column.
    #[test]
    fn slots_are_read_as_written() {
        let fitting = [
            NULL_SLOT,
            0,
            -1,
            7,
            i32::MAX.into(),
            i64::from(i32::MIN) + 1,
        ];
        for slot in fitting {
            assert_eq!(narrow(slot).map(slot_of), Some(slot));
        }
        let others = [
            i32::MIN.into(),
            i64::from(i32::MAX) + 1,
            i64::MAX,
            i64::MIN + 1,
        ];
        for slot in others {
            assert_eq!(narrow(slot), None);
        }
        let column = CellColumn {
            at: 1,
            is_wide: true,
        };
        for slot in fitting.into_iter().chain(others) {
            let mut cells = [9; 4];
            column.write(&mut cells, slot);
            assert_eq!((column.read(&cells), cells[0], cells[3]), (slot, 9, 9));
        }
    }

    /// As many columns as there are, in their order.
    #[test]
    fn many_slots_and_few() {
        for count in [0, 3, 12, 13, 40_u16] {
            let columns: Vec<_> = (0..count)
                .map(|at| CellColumn { at, is_wide: false })
                .collect();
            let cells: Vec<u32> = (0..count.into()).collect();
            let kept = KeptSlots {
                cells: &cells,
                columns: &columns,
            };
            assert_eq!(
                kept.list().to_vec(),
                (0..count.into()).collect::<Vec<i64>>()
            );
        }
    }
}
