//! Rows by number: their newest values, whatever version is where.

use pgheadroom_layout::compression::Method;

use crate::executor::replaced::Replaced;
use crate::executor::rows::Rows;
use crate::row::cells::SlotList;
use crate::row::{Row, RowType, Slots, Texts};
use crate::value::{Value, ValueError};

/// The newest values of rows, and what is known of older ones.
#[derive(Debug)]
pub(super) struct RowValues {
    pub row_type: RowType,
    /// Slots of the newest version of each row, and where it is.
    pub rows: Rows,
    /// Strings that slots refer to.
    pub texts: Texts,
    /// What replaced versions hold.
    pub replaced: Replaced,
}

impl RowValues {
    /// No rows.
    pub fn new(row_type: RowType, compression: Method) -> Self {
        Self {
            rows: Rows::new(row_type.columns.len()),
            row_type,
            texts: Texts::compressed_by(compression),
            replaced: Replaced::default(),
        }
    }

    /// How many rows there are, those that were deleted too.
    pub const fn count(&self) -> u32 {
        self.rows.count()
    }

    /// Newest slots of a row.
    #[inline]
    pub fn slots(&self, row: u32) -> SlotList {
        self.rows.slots(row)
    }

    /// The newest slot of a row's column.
    #[inline]
    pub fn slot(&self, row: u32, column: usize) -> i64 {
        self.rows.slot(row, column)
    }

    /// The newest version of a row.
    pub fn view(&self, row: u32) -> Row<'_> {
        Row {
            row_type: &self.row_type,
            slots: Slots::Kept(self.rows.kept(row)),
            texts: &self.texts,
        }
    }

    /// A new row with these values; its number.
    ///
    /// # Errors
    /// [`ValueError`] when a column cannot hold its value.
    pub fn add(&mut self, values: &[Value]) -> Result<u32, ValueError> {
        assert_eq!(values.len(), self.row_type.columns.len(), "values of a row");
        let row = self.rows.begin();
        for (column, value) in values.iter().enumerate() {
            match self.row_type.slot(column, value.clone(), &mut self.texts) {
                Ok(slot) => self.rows.set(row, column, slot),
                Err(error) => {
                    self.rows.truncate(row);
                    return Err(error);
                }
            }
        }
        Ok(row)
    }

    /// Puts these values into a row that has none yet.
    pub fn set(&mut self, row: u32, values: &[Value]) -> Result<(), ValueError> {
        let mut slots = Vec::with_capacity(values.len());
        for (column, value) in values.iter().enumerate() {
            slots.push(self.row_type.slot(column, value.clone(), &mut self.texts)?);
        }
        self.store(row, &slots);
        Ok(())
    }

    /// Forgets the row added last, which never got into the table.
    pub fn take_back(&mut self, row: u32) {
        assert_eq!(row + 1, self.count(), "the last row");
        self.rows.truncate(row);
    }

    /// Puts the stored forms of a new row in the place of its values.
    pub fn store(&mut self, row: u32, slots: &[i64]) {
        self.rows.replace(row, slots);
    }
}
