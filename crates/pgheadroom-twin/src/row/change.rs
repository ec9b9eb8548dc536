//! How UPDATE changes a row's values.

use crate::row::kind::Kind;
use crate::row::{NULL_SLOT, Row, RowType, Slots, Texts};
use crate::text::Text;
use crate::value::{Value, ValueError};

/// What becomes of a column in the SET clause.
#[derive(Clone, Copy)]
pub enum Change<'a> {
    /// Assigned its own value.
    Same,
    /// The change of profiles: numbers grow by 1, times by a microsecond, booleans are negated,
    /// strings become the repeated hash of the old one. NULL stays NULL.
    Next {
        /// Bytes by which strings grow, as far as their type allows.
        grows_bytes: u32,
    },
    /// A foreign key's: the next of these keys, and after the last the first.
    NextKey {
        /// The last of the keys, which begin with 1.
        last: i64,
    },
    /// The label of this number, for an enum; NULL too.
    Label(i64),
    /// A number is added to an integer.
    Add(i64),
    /// Any value, out of the old row.
    Computed(&'a dyn Fn(Row<'_>) -> Value),
}

impl std::fmt::Debug for Change<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Same => formatter.write_str("Same"),
            Self::Next { grows_bytes } => write!(formatter, "Next({grows_bytes})"),
            Self::NextKey { last } => write!(formatter, "NextKey({last})"),
            Self::Label(number) => write!(formatter, "Label({number})"),
            Self::Add(addend) => write!(formatter, "Add({addend})"),
            Self::Computed(_) => formatter.write_str("Computed"),
        }
    }
}

/// A column in the SET clause.
#[derive(Debug, Clone, Copy)]
pub struct Assignment<'a> {
    /// Its position in the table.
    pub column: usize,
    /// What becomes of it.
    pub change: Change<'a>,
}

/// The SET clause of an UPDATE; what an index learns of an update depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Assignments<'a> {
    /// Columns in the order of the clause.
    pub columns: &'a [Assignment<'a>],
}

impl Assignments<'_> {
    /// Whether a column is in the SET clause.
    pub(crate) fn assigns(&self, column: usize) -> bool {
        self.columns
            .iter()
            .any(|assigned| assigned.column == column)
    }
}

impl RowType {
    /// Slots of the new version; the columns whose bytes differ are put into `changed`.
    ///
    /// # Errors
    /// [`ValueError`] when a new value does not fit its column.
    pub fn change(
        &self,
        old: &[i64],
        new: &mut Vec<i64>,
        assignments: &Assignments<'_>,
        changed: &mut Vec<usize>,
        texts: &mut Texts,
    ) -> Result<(), ValueError> {
        new.clear();
        new.extend_from_slice(old);
        changed.clear();
        for assigned in assignments.columns {
            let column = assigned.column;
            let slot = old[column];
            let changed_slot = match &assigned.change {
                Change::Same => continue,
                Change::Computed(compute) => {
                    let row = Row {
                        row_type: self,
                        slots: Slots::Listed(old),
                        texts,
                    };
                    let value = compute(row);
                    self.slot(column, value, texts)?
                }
                of_column => self.next_slot(column, slot, of_column, texts)?,
            };
            if self.is_equal(column, slot, changed_slot, texts) {
                self.give_up(column, changed_slot, slot, texts);
                continue;
            }
            new[column] = changed_slot;
            changed.push(column);
        }
        Ok(())
    }

    /// The new slot of a column of integers that grows, `Some(None)` where it does not fit; `None`
    /// of others.
    #[inline(always)]
    pub(crate) fn grown(
        &self,
        column: usize,
        slot: i64,
        change: &Change<'_>,
    ) -> Option<Option<i64>> {
        let addend = match change {
            Change::Next { .. } => Some(1),
            Change::Add(addend) => Some(*addend),
            _ => None,
        };
        let ((least, most), addend) = (self.columns[column].integers?, addend?);
        let sum = || {
            slot.checked_add(addend)
                .filter(|sum| (least..=most).contains(sum))
        };
        (slot != NULL_SLOT).then(sum)
    }

    /// The new slot of a column by a change that asks for no other.
    #[inline]
    fn next_slot(
        &self,
        column: usize,
        slot: i64,
        change: &Change<'_>,
        texts: &mut Texts,
    ) -> Result<i64, ValueError> {
        match change {
            Change::Next { grows_bytes } => self.next(column, slot, *grows_bytes, texts),
            Change::Label(number) => Ok(*number),
            Change::Same => Ok(slot),
            Change::NextKey { .. } | Change::Add(_) if slot == NULL_SLOT => Ok(slot),
            Change::NextKey { last } => self.add(column, slot % last, 1),
            Change::Add(addend) => {
                let kind = self.columns[column].kind;
                assert!(!kind.is_kept() && !kind.is_float(), "an integer column");
                self.add(column, slot, *addend)
            }
            Change::Computed(_) => unreachable!("computed of a whole row"),
        }
    }

    /// The new slot of a column that holds no string; `None` when there is an error to tell, or it
    /// is computed of a whole row.
    #[inline(always)]
    pub(crate) fn fixed_slot(
        &self,
        column: usize,
        slot: i64,
        change: &Change<'_>,
        texts: &mut Texts,
    ) -> Option<i64> {
        if let Some(grown) = self.grown(column, slot, change) {
            return grown;
        }
        if matches!(change, Change::Computed(_)) {
            return None;
        }
        self.next_slot(column, slot, change, texts).ok()
    }

    /// Drops the string of a slot that is not needed, unless it is the same as `kept`.
    fn give_up(&self, column: usize, slot: i64, kept: i64, texts: &mut Texts) {
        if slot != kept && slot != NULL_SLOT && self.columns[column].kind.is_kept() {
            texts.remove(slot);
        }
    }

    #[inline]
    fn next(
        &self,
        column: usize,
        slot: i64,
        grows_bytes: u32,
        texts: &mut Texts,
    ) -> Result<i64, ValueError> {
        if slot == NULL_SLOT {
            return Ok(slot);
        }
        let (length, is_padded) = match self.columns[column].kind {
            Kind::Boolean => return Ok(1 - slot),
            Kind::Float4 => {
                #[allow(clippy::cast_possible_truncation)] // as SQL's cast
                let number = (f64::from_bits(slot.cast_unsigned()) + 1.0) as f32;
                return self.slot(column, Value::Float(f64::from(number)), texts);
            }
            Kind::Float8 => {
                let number = f64::from_bits(slot.cast_unsigned()) + 1.0;
                return self.slot(column, Value::Float(number), texts);
            }
            Kind::Counted(counted) => {
                return counted
                    .next(slot)
                    .ok_or_else(|| self.out_of_range(column, slot, 1));
            }
            Kind::Wrapped(_) => return Ok(texts.add(texts.get(slot).changed(grows_bytes))),
            Kind::Elements(elements) => {
                let new = elements.changed(&texts.get(slot).to_bytes());
                return Ok(texts.add(Text::from_bytes(&new)));
            }
            Kind::Integers(integers) => {
                let old = texts.get(slot).to_bytes();
                let number = integers.number(&old) + 1;
                Kind::Integer {
                    width: integers.width,
                }
                .checked(number, &self.columns[column].type_name)?;
                return Ok(texts.add(Text::from_bytes(&integers.with_number(&old, number))));
            }
            Kind::Text { length } => (length, false),
            Kind::Padded { length } => (length, true),
            _ => return self.add(column, slot, 1),
        };
        let old = texts.get(slot);
        let new_length = (old.len() + grows_bytes).min(length.unwrap_or(u32::MAX));
        let new = old.hashed_again(new_length, is_padded);
        Ok(texts.add(new))
    }

    #[inline]
    fn add(&self, column: usize, slot: i64, addend: i64) -> Result<i64, ValueError> {
        let layout = &self.columns[column];
        let sum = slot
            .checked_add(addend)
            .ok_or_else(|| self.out_of_range(column, slot, addend))?;
        layout.kind.checked(sum, &layout.type_name)?;
        Ok(sum)
    }

    fn out_of_range(&self, column: usize, slot: i64, addend: i64) -> ValueError {
        ValueError::OutOfRange {
            number: format!("{slot} + {addend}"),
            type_name: self.columns[column].type_name.clone(),
        }
    }
}
