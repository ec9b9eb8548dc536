//! TOAST: which values of a long row are compressed or moved out of line.
//!
//! ```text
//! row longer than 2032 bytes
//!   1. extended values, largest first: compress; out of line at once if still above the target
//!   2. extended and external values, largest first: out of line
//!   3. main values, largest first: compress
//!   4. main values, largest first, only if the row exceeds a page: out of line
//! ```
//!
//! How far a value shrinks depends on its contents; the caller says it. Everything else follows.

use crate::column_type::{Storage, TypeLength};
use crate::error::LayoutError;
use crate::page::{BLCKSZ, MAX_HEAP_TUPLE_SIZE, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER};
use crate::tuple::{Column, RowLayout, Stored, TOAST_POINTER_SIZE, VARHDRSZ};

/// Longest row that is stored as it is; also the default of `toast_tuple_target`.
///
/// Source: `TOAST_TUPLE_THRESHOLD`, src/include/access/heaptoast.h: four rows on a page.
pub const TOAST_TUPLE_THRESHOLD: u32 = maximum_bytes_per_tuple(4);
/// Payload of a full chunk row. Source: `TOAST_MAX_CHUNK_SIZE`, src/include/access/heaptoast.h.
pub const TOAST_MAX_CHUNK_SIZE: u32 = maximum_bytes_per_tuple(4) - 24 - 4 - 4 - VARHDRSZ;
/// Smallest `toast_tuple_target`. Source: `TOAST_TUPLE_TARGET_MIN`, reloptions.c.
pub const TOAST_TUPLE_TARGET_MIN: u32 = 128;

const _: () = assert!(TOAST_TUPLE_THRESHOLD == 2032);
const _: () = assert!(TOAST_MAX_CHUNK_SIZE == 1996);
const _: () = assert!(TOAST_TUPLE_THRESHOLD < MAX_HEAP_TUPLE_SIZE);

/// Longest row such that so many fit a page.
///
/// Source: `MaximumBytesPerTuple`, src/include/access/heaptoast.h.
const fn maximum_bytes_per_tuple(tuples_per_page: u32) -> u32 {
    let header = crate::align::maxalign(SIZE_OF_PAGE_HEADER + tuples_per_page * SIZE_OF_ITEM_ID);
    crate::align::maxalign_down((BLCKSZ - header) / tuples_per_page)
}

/// A row after TOAST has done its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toasted {
    /// The row that stays in the table.
    pub row: RowLayout,
    /// Bytes stored out of line, by column; 0 for those that stayed.
    pub out_of_line_bytes: Vec<u32>,
}

impl Toasted {
    /// Rows that the values take in the TOAST table.
    #[must_use]
    pub fn chunk_rows(&self) -> u32 {
        self.out_of_line_bytes
            .iter()
            .map(|&bytes| chunk_rows(bytes))
            .sum()
    }
}

/// Chunk rows of one value stored out of line.
///
/// Source: `toast_save_datum`, src/backend/access/common/toast_internals.c.
#[must_use]
pub const fn chunk_rows(out_of_line_bytes: u32) -> u32 {
    out_of_line_bytes.div_ceil(TOAST_MAX_CHUNK_SIZE)
}

/// Length of a chunk row (`lp_len`): chunk id, sequence number and the chunk.
///
/// The chunk has a long header however short it is, since its column's storage is plain.
///
/// Source: `toast_save_datum`, src/backend/access/common/toast_internals.c; `create_toast_table`,
/// src/backend/catalog/toasting.c.
#[must_use]
pub const fn chunk_tuple_bytes(chunk_bytes: u32) -> u32 {
    24 + 4 + 4 + VARHDRSZ + chunk_bytes
}

/// Whether PostgreSQL would call the toaster for this row.
///
/// Source: `heap_prepare_insert`, src/backend/access/heap/heapam.c (REL_18_STABLE).
#[must_use]
pub fn needs_toast(row: &RowLayout) -> bool {
    let external = |column: &Column| column.stored() == Stored::ToastPointer;
    row.tuple_bytes() > TOAST_TUPLE_THRESHOLD || row.columns().iter().any(external)
}

/// Shortens a row as the toaster would; a row of at most 2032 bytes stays as it is.
///
/// `target_bytes` is the table's `toast_tuple_target`. `compress` gets a column's index and its
/// payload and says how many bytes compression leaves (its 4-byte header of the original length
/// included), `None` if it does not help. The table is taken to have a TOAST table.
///
/// # Errors
/// [`LayoutError::OutOfRange`] for a target outside 128 to 8160, [`LayoutError::TupleTooBig`]
/// when the row does not fit a page even so.
///
/// Source: `heap_toast_insert_or_update`, src/backend/access/heap/heaptoast.c;
/// `toast_tuple_find_biggest_attribute`, src/backend/access/table/toast_helper.c (REL_18_STABLE).
pub fn toast(
    row: &RowLayout,
    target_bytes: u32,
    mut compress: impl FnMut(usize, u32) -> Option<u32>,
) -> Result<Toasted, LayoutError> {
    if !(TOAST_TUPLE_TARGET_MIN..=MAX_HEAP_TUPLE_SIZE).contains(&target_bytes) {
        return Err(LayoutError::OutOfRange {
            what: "toast_tuple_target",
            value: i64::from(target_bytes),
            min: i64::from(TOAST_TUPLE_TARGET_MIN),
            max: i64::from(MAX_HEAP_TUPLE_SIZE),
        });
    }
    let mut work = Toaster::new(row)?;
    if row.tuple_bytes() > TOAST_TUPLE_THRESHOLD {
        work.shrink(target_bytes, &mut compress)?;
    }
    if !work.row.fits_page() {
        return Err(LayoutError::TupleTooBig {
            tuple_bytes: u64::from(work.row.tuple_bytes()),
            max_bytes: MAX_HEAP_TUPLE_SIZE,
        });
    }
    Ok(Toasted {
        row: work.row,
        out_of_line_bytes: work.out_of_line_bytes,
    })
}

/// A row while it is being shortened.
struct Toaster {
    row: RowLayout,
    out_of_line_bytes: Vec<u32>,
    incompressible: Vec<bool>,
}

impl Toaster {
    fn new(row: &RowLayout) -> Result<Self, LayoutError> {
        let count = row.columns().len();
        Ok(Self {
            row: RowLayout::new(row.columns().to_vec())?,
            out_of_line_bytes: vec![0; count],
            incompressible: vec![false; count],
        })
    }

    fn shrink(
        &mut self,
        target_bytes: u32,
        compress: &mut impl FnMut(usize, u32) -> Option<u32>,
    ) -> Result<(), LayoutError> {
        let data_limit = target_bytes.saturating_sub(self.row.hoff());
        while self.row.tuple_bytes() > target_bytes {
            let Some(index) = self.biggest(false, true) else {
                break;
            };
            if self.storage(index) == Storage::Extended {
                self.try_compression(index, compress)?;
            } else {
                self.incompressible[index] = true;
            }
            if self.value_bytes(index) > data_limit {
                self.move_out(index)?;
            }
        }
        while self.row.tuple_bytes() > target_bytes {
            let Some(index) = self.biggest(false, false) else {
                break;
            };
            self.move_out(index)?;
        }
        while self.row.tuple_bytes() > target_bytes {
            let Some(index) = self.biggest(true, true) else {
                break;
            };
            self.try_compression(index, compress)?;
        }
        while self.row.tuple_bytes() > MAX_HEAP_TUPLE_SIZE {
            let Some(index) = self.biggest(true, false) else {
                break;
            };
            self.move_out(index)?;
        }
        Ok(())
    }

    fn storage(&self, index: usize) -> Storage {
        self.row.columns()[index].column_type().typstorage()
    }

    /// Size of a value with its length header, as the toaster compares them.
    fn value_bytes(&self, index: usize) -> u32 {
        self.row.column_layouts()[index].stored_bytes()
    }

    /// The column with the largest value that may still be compressed or moved; the first of
    /// equals, and none as small as a TOAST pointer rounded up.
    fn biggest(&self, main: bool, for_compression: bool) -> Option<usize> {
        let mut best = None;
        let mut best_bytes = TOAST_POINTER_SIZE.next_multiple_of(8);
        for (index, column) in self.row.columns().iter().enumerate() {
            let movable = match self.storage(index) {
                Storage::Plain => false,
                Storage::Main => main,
                Storage::External | Storage::Extended => !main,
            };
            let stored = column.stored();
            let eligible = column.column_type().typlen() == TypeLength::Varlena
                && movable
                && !matches!(stored, Stored::Null | Stored::ToastPointer)
                && !(for_compression
                    && (self.incompressible[index] || matches!(stored, Stored::Compressed { .. })));
            if eligible && self.value_bytes(index) > best_bytes {
                best = Some(index);
                best_bytes = self.value_bytes(index);
            }
        }
        best
    }

    fn try_compression(
        &mut self,
        index: usize,
        compress: &mut impl FnMut(usize, u32) -> Option<u32>,
    ) -> Result<(), LayoutError> {
        let payload = self.row.column_layouts()[index].payload_bytes;
        match compress(index, payload).filter(|&left| left + VARHDRSZ + 2 < payload) {
            Some(payload_bytes) => self.store(index, Stored::Compressed { payload_bytes }),
            None => {
                self.incompressible[index] = true;
                Ok(())
            }
        }
    }

    fn move_out(&mut self, index: usize) -> Result<(), LayoutError> {
        self.out_of_line_bytes[index] = self.row.column_layouts()[index].payload_bytes;
        self.store(index, Stored::ToastPointer)
    }

    fn store(&mut self, index: usize, stored: Stored) -> Result<(), LayoutError> {
        let mut columns = self.row.columns().to_vec();
        columns[index] = columns[index].with_stored(stored)?;
        self.row = RowLayout::new(columns)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuple::tests::column;

    fn row(widths: &[(&str, u64)]) -> RowLayout {
        let columns = widths
            .iter()
            .map(|&(name, width)| column(name, Some(width)))
            .collect();
        RowLayout::new(columns).unwrap()
    }

    fn incompressible(row: &RowLayout) -> Toasted {
        toast(row, TOAST_TUPLE_THRESHOLD, |_, _| None).unwrap()
    }

    /// 2032 stays inline, 2033 does not.
    #[test]
    fn threshold() {
        assert_eq!(incompressible(&row(&[("text", 2004)])).chunk_rows(), 0);
        assert_eq!(row(&[("text", 2004)]).tuple_bytes(), 2032);
        assert_eq!(incompressible(&row(&[("text", 2005)])).chunk_rows(), 2);
    }

    /// The physics' worked value: 10000 bytes take 6 chunks, and the parent row 46 bytes.
    #[test]
    fn ten_thousand_bytes() {
        let toasted = incompressible(&row(&[("int4", 4), ("text", 10_000)]));
        assert_eq!(toasted.row.tuple_bytes(), 46);
        assert_eq!(toasted.out_of_line_bytes, [0, 10_000]);
        assert_eq!(toasted.chunk_rows(), 6);
        assert_eq!(chunk_tuple_bytes(1996), 2032);
        assert_eq!(chunk_tuple_bytes(104), 140);
    }

    /// The largest value goes first, and no more goes than is needed.
    #[test]
    fn largest_first() {
        let toasted = incompressible(&row(&[("text", 900), ("text", 1500), ("text", 800)]));
        assert_eq!(toasted.out_of_line_bytes, [0, 1500, 0]);
    }

    /// Compression comes before moving out, and may suffice.
    #[test]
    fn compression_first() {
        let long = row(&[("text", 3000)]);
        let toasted = toast(&long, TOAST_TUPLE_THRESHOLD, |_, bytes| Some(bytes / 3)).unwrap();
        assert_eq!(toasted.chunk_rows(), 0);
        assert_eq!(toasted.row.tuple_bytes(), 24 + 4 + 1000);
    }

    /// Main storage stays inline up to a page, and what nothing can shorten is refused.
    #[test]
    fn main_storage_stays_until_the_page_is_full() {
        let main = incompressible(&row(&[("numeric", 5000)]));
        assert_eq!(main.chunk_rows(), 0);
        let wider = incompressible(&row(&[("numeric", 9000)]));
        assert_eq!(wider.chunk_rows(), 5);
        let plain = row(&[("tsquery", 9000)]);
        assert!(toast(&plain, TOAST_TUPLE_THRESHOLD, |_, _| None).is_err());
        assert!(toast(&plain, 127, |_, _| None).is_err());
    }
}
