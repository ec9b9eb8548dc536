//! The slots of loaded rows, column by column, without what is the same for every row.
//!
//! ```text
//! rule of a column                         slot of a row
//! constant, no NULLs                       that of the first row
//! serial or random integer, no NULLs       the number itself
//! anything else                            its value, as a statement brings it
//! ```

use std::ops::RangeInclusive;

use pgheadroom_layout::tuple::MAX_HEAP_ATTRIBUTE_NUMBER;

use crate::row::cells::NewCells;
use crate::row::hash::hashint8extended;
use crate::row::kind::Kind;
use crate::row::{LoadRule, Numbers, RowType, Texts};
use crate::value::ValueError;

/// Makes the slots of a table's loaded rows.
#[derive(Debug)]
pub(crate) struct RowMaker {
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    rule: LoadRule,
    /// Counted from 1.
    number: u32,
    making: Making,
}

/// How a column's slots come about.
#[derive(Debug, Clone, Copy)]
enum Making {
    /// This slot for all rows.
    Same(i64),
    /// The row's number, or one of its hash.
    Number,
    /// By the value.
    Value,
}

impl RowMaker {
    /// Makes rows of this type by these rules, one a column.
    ///
    /// # Panics
    /// When there is another number of columns.
    pub fn new(rules: &[LoadRule], row_type: &RowType) -> Self {
        assert_eq!(
            rules.len(),
            row_type.columns.len(),
            "a rule for each column"
        );
        assert!(rules.len() <= MAX_HEAP_ATTRIBUTE_NUMBER);
        let columns = (1..).zip(rules).zip(&row_type.columns);
        let columns = columns.map(|((number, rule), layout)| {
            let is_integer = matches!(layout.kind, Kind::Integer { .. } | Kind::Numeric { .. });
            let is_number = is_integer && rule.null_millionths == 0;
            Column {
                rule: rule.clone(),
                number,
                making: if is_number {
                    Making::Number
                } else {
                    Making::Value
                },
            }
        });
        Self {
            columns: columns.collect(),
        }
    }

    /// Hands the slots of a row over, in the order of the columns.
    ///
    /// # Errors
    /// [`ValueError`] of a value that the column cannot hold.
    #[inline]
    pub fn make(
        &mut self,
        row: i64,
        row_type: &RowType,
        texts: &mut Texts,
        mut push: impl FnMut(usize, i64),
    ) -> Result<(), ValueError> {
        for (position, column) in self.columns.iter_mut().enumerate() {
            let slot = match column.making {
                Making::Same(slot) => slot,
                Making::Number => {
                    let layout = &row_type.columns[position];
                    let number = column.number_of(row);
                    layout.kind.checked(number, &layout.type_name)?;
                    number
                }
                Making::Value => column.slot(position, row, row_type, texts)?,
            };
            push(position, slot);
        }
        Ok(())
    }

    /// What rows of these numbers have in common, where every slot is that of the row before or
    /// follows from the number alone and is in its type's range: from which to which slot each
    /// column goes. [`RowMaker::fill`] does the rest.
    pub fn ranges(
        &self,
        numbers: &RangeInclusive<i64>,
        row_type: &RowType,
    ) -> Option<Vec<RangeInclusive<i64>>> {
        let slots = self.columns.iter().zip(&row_type.columns);
        let slots = slots.map(|(column, layout)| match column.making {
            Making::Same(slot) => Some(slot..=slot),
            Making::Number => {
                let range = column.rule.numbers.range(numbers);
                let fits = |number: i64| layout.kind.checked(number, &layout.type_name).is_ok();
                (fits(*range.start()) && fits(*range.end())).then_some(range)
            }
            Making::Value => None,
        });
        slots.collect()
    }

    /// Puts the numbers of rows into their cells, which are alike so far.
    pub fn fill(&self, mut cells: NewCells<'_>, numbers: &RangeInclusive<i64>) {
        for (position, column) in self.columns.iter().enumerate() {
            if !matches!(column.making, Making::Number) {
                continue;
            }
            let numbers = numbers.clone();
            match column.rule.numbers {
                Numbers::Constant => {}
                Numbers::Serial => cells.fill(position, numbers),
                _ => cells.fill(position, numbers.map(|number| column.number_of(number))),
            }
        }
    }

    /// Whether the rows from the second on are as long as each other: none has a NULL, and what
    /// has no fixed width is the same in all of them.
    pub fn makes_one_length(&self, row_type: &RowType) -> bool {
        let mut columns = self.columns.iter().zip(&row_type.columns);
        columns.all(|(column, layout)| match column.making {
            Making::Same(_) => true,
            Making::Number | Making::Value => {
                layout.width.is_some() && column.rule.null_millionths == 0
            }
        })
    }
}

impl Column {
    #[inline]
    fn number_of(&self, row: i64) -> i64 {
        let hash = match self.rule.numbers {
            Numbers::Serial | Numbers::Constant => 0, // not asked for
            Numbers::Random { .. } | Numbers::Parent { .. } => {
                hashint8extended(row, i64::from(self.number))
            }
        };
        self.rule.numbers.number(row, hash)
    }

    fn slot(
        &mut self,
        position: usize,
        row: i64,
        row_type: &RowType,
        texts: &mut Texts,
    ) -> Result<i64, ValueError> {
        let layout = &row_type.columns[position];
        let kind = (layout.kind, layout.type_name.as_str());
        let value = self.rule.value_of_kind(kind, row, self.number)?;
        let slot = row_type.slot(position, value, texts)?;
        let is_same = self.rule.numbers == Numbers::Constant && self.rule.null_millionths == 0;
        let has_one_width = |bytes: (u32, u32)| bytes.0 == bytes.1;
        let has_width = layout.kind.is_kept() && !matches!(layout.kind, Kind::Padded { .. });
        let is_one_string = !has_width || self.rule.width_bytes.is_none_or(has_one_width);
        // Further strings have numbers of their own, but for the first few, which rows share.
        if is_same && is_one_string && (!layout.kind.is_kept() || Texts::is_shared(slot)) {
            self.making = Making::Same(slot);
        }
        Ok(slot)
    }
}
