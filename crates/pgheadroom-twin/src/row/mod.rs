//! Rows: their values in a compact form, and the tuples that they become.
//!
//! A table's rows have one `i64` for each column (a *slot*): integers and times as they are, floats
//! by their bits, strings by a number in [`Texts`], NULL as the smallest integer; they are kept in
//! fewer bytes ([`cells`]). The tuple's length, its null bitmap and its bytes follow from the slots
//! whenever somebody asks: an update that changes fixed-width columns asks for those columns only,
//! one that changes a string writes out both tuples and compares them as the server does.

mod bytes;
pub(crate) mod cells;
mod change;
pub(crate) mod counted;
pub(crate) mod elements;
mod hash;
pub(crate) mod hash_code;
pub(crate) mod kind;
mod load_rule;
mod maker;
mod numeric;
mod shared;
mod texts;

pub(crate) use bytes::Measured;
pub use change::{Assignment, Assignments, Change};
pub use elements::Elements;
pub(crate) use hash::hash_bytes;
pub use hash::hashint8extended;
pub use load_rule::{Labels, LoadRule, Numbers};
pub(crate) use maker::RowMaker;
pub(crate) use numeric::payload_bytes as numeric_payload_bytes;

use pgheadroom_layout::compression::Method;
use pgheadroom_layout::tuple::MAX_HEAP_ATTRIBUTE_NUMBER;
use pgheadroom_layout::{ColumnType, LayoutError, Storage};

use crate::value::{Value, ValueError};
pub(crate) use cells::Slots;
use kind::{Kind, fixed_width};
pub(crate) use shared::Differing;
pub(crate) use texts::{Form, OutOfLine, Texts};

/// What NULL is in a slot.
pub(crate) const NULL_SLOT: i64 = i64::MIN;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name; expressions refer to it.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// Of an enum, in their order.
    pub labels: Vec<String>,
    /// Where its values have several elements.
    pub elements: Option<Elements>,
    /// By which its values are compressed, where it says so.
    pub compression: Option<Method>,
    /// How values may be shortened: the type's way, or the column's own.
    pub storage: Storage,
}

impl ColumnDefinition {
    /// A column of a type as PostgreSQL spells it.
    ///
    /// # Errors
    /// [`LayoutError::UnknownType`] or [`LayoutError::BadTypeModifier`].
    pub fn new(name: &str, type_name: &str) -> Result<Self, LayoutError> {
        let column_type = ColumnType::parse(type_name)?;
        Ok(Self {
            name: name.to_owned(),
            storage: column_type.typstorage(),
            column_type,
            labels: Vec::new(),
            elements: None,
            compression: None,
        })
    }

    /// Columns by name, type and labels (of enums), for expressions over them: which enums are of
    /// one type matters there, their OIDs do not.
    ///
    /// # Errors
    /// As [`ColumnDefinition::new`].
    pub fn of_expressions(columns: &[(&str, &str, &[String])]) -> Result<Vec<Self>, LayoutError> {
        let made = columns.iter().map(|&(name, type_name, labels)| {
            if labels.is_empty() {
                return Self::new(name, type_name);
            }
            let alike = columns.iter().position(|&(.., known)| known == labels);
            let number = alike.and_then(|place| u32::try_from(place).ok());
            Self::of_enum(name, labels, number.unwrap_or_default())
        });
        made.collect()
    }

    /// A column of an enum whose first label has this OID.
    ///
    /// # Errors
    /// As [`ColumnDefinition::new`].
    pub fn of_enum(name: &str, labels: &[String], first_oid: u32) -> Result<Self, LayoutError> {
        let type_name = format!("enum({},{first_oid})", labels.len());
        let mut column = Self::new(name, &type_name)?;
        column.labels = labels.to_vec();
        Ok(column)
    }

    /// What its values are; `None` for types whose values the twin does not know.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.elements {
            Some(elements) => Some(Kind::Elements(elements)),
            None => Kind::of(&self.column_type),
        }
    }
}

/// A column as rows are laid out.
#[derive(Debug, Clone)]
pub(crate) struct ColumnLayout {
    pub kind: Kind,
    pub type_name: String,
    pub align: u32,
    /// Whether a short value gets a short header: not in a TOAST table.
    pub is_packable: bool,
    /// Bytes of a fixed length.
    pub width: Option<u32>,
    /// Where its bytes begin after `t_hoff` in a row without NULLs before it; `None` behind a
    /// column of variable length.
    pub offset: Option<u32>,
    /// From which to which integer a number may grow by a step; none for other kinds of values.
    pub integers: Option<(i64, i64)>,
    /// By which its values are compressed, where it says so.
    pub compression: Option<Method>,
    /// How its values may be shortened.
    pub storage: Storage,
}

/// The columns of a table's rows.
#[derive(Debug, Clone)]
pub(crate) struct RowType {
    pub columns: Vec<ColumnLayout>,
}

impl RowType {
    /// Columns of a TOAST table, whose values all have long headers.
    pub fn unpacked(mut self) -> Self {
        for column in &mut self.columns {
            column.is_packable = false;
        }
        self
    }

    /// The columns in their order.
    ///
    /// # Errors
    /// The name of a type whose values the twin does not know, or too many columns.
    pub fn new(columns: &[ColumnDefinition]) -> Result<Self, String> {
        if columns.len() > MAX_HEAP_ATTRIBUTE_NUMBER {
            return Err(format!("{} columns, at most 1600", columns.len()));
        }
        let mut end = Some(0_u32);
        let mut layouts = Vec::with_capacity(columns.len());
        for column in columns {
            let column_type = &column.column_type;
            let kind = column.kind().ok_or_else(|| {
                format!(
                    "column {:?} of type {column_type}: its values are not known to the twin \
                     (docs/profile.md lists the types that are)",
                    column.name
                )
            })?;
            let align = column_type.typalign().bytes();
            let width = fixed_width(column_type);
            let offset = end.map(|end| end.next_multiple_of(align));
            end = width.and_then(|width| offset.map(|offset| offset + width));
            layouts.push(ColumnLayout {
                kind,
                type_name: column_type.name().to_owned(),
                align,
                is_packable: true,
                width,
                offset: offset.filter(|_| width.is_some() && !kind.is_kept()),
                integers: kind.integers(),
                compression: column.compression,
                storage: column.storage,
            });
        }
        Ok(Self { columns: layouts })
    }

    /// A value as a slot.
    ///
    /// # Errors
    /// [`ValueError`] when the column cannot hold it.
    pub fn slot(&self, column: usize, value: Value, texts: &mut Texts) -> Result<i64, ValueError> {
        let ColumnLayout {
            kind, type_name, ..
        } = &self.columns[column];
        match value {
            Value::Null => Ok(NULL_SLOT),
            Value::Integer(number) if self.is_integer(column, number) => Ok(number),
            Value::Integer(number) if !kind.is_kept() && !kind.is_float() => {
                kind.checked(number, type_name)?;
                Ok(number)
            }
            Value::Float(number) if kind.is_float() => {
                // -0.0 has the bits of the smallest integer, which is taken.
                Ok(if number == 0.0 {
                    0
                } else {
                    number.to_bits().cast_signed()
                })
            }
            Value::Text(text) if kind.is_kept() => Ok(texts.add(text)),
            other => Err(ValueError::WrongType {
                type_name: type_name.clone(),
                found: format!("{other:?}"),
            }),
        }
    }

    /// Whether it is a number of an integer column.
    #[inline]
    fn is_integer(&self, column: usize, number: i64) -> bool {
        let integers = self.columns[column].integers;
        integers.is_some_and(|(least, most)| (least..=most).contains(&number))
    }

    /// A slot as a value.
    pub fn value(&self, column: usize, slot: i64, texts: &Texts) -> Value {
        let kind = self.columns[column].kind;
        if slot == NULL_SLOT {
            Value::Null
        } else if kind.is_kept() {
            Value::Text(texts.get(slot).clone())
        } else if kind.is_float() {
            Value::Float(f64::from_bits(slot.cast_unsigned()))
        } else {
            Value::Integer(slot)
        }
    }

    /// Whether two slots of a column hold equal bytes.
    pub fn is_equal(&self, column: usize, one: i64, other: i64, texts: &Texts) -> bool {
        one == other
            || (one != NULL_SLOT
                && other != NULL_SLOT
                && self.columns[column].kind.is_kept()
                && texts.form(one) == texts.form(other)
                && texts.get(one) == texts.get(other))
    }
}

/// A row to look at.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub(crate) row_type: &'a RowType,
    pub(crate) slots: Slots<'a>,
    pub(crate) texts: &'a Texts,
}

impl Row<'_> {
    /// The value of a column.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn value(&self, column: usize) -> Value {
        self.row_type
            .value(column, self.slots.get(column), self.texts)
    }

    /// The integer of a column; `None` for NULL.
    ///
    /// # Panics
    /// When there is no such column, or it holds strings or floating point.
    #[must_use]
    pub fn integer(&self, column: usize) -> Option<i64> {
        let kind = self.row_type.columns[column].kind;
        assert!(!kind.is_kept() && !kind.is_float(), "an integer column");
        let slot = self.slots.get(column);
        (slot != NULL_SLOT).then_some(slot)
    }
}
