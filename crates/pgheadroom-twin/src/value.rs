//! A column's value as the twin knows it, and what makes it impossible.
//!
//! ```text
//! int2 int4 int8 numeric -> Integer      float4 float8      -> Float
//! bool                   -> Integer 0, 1 text varchar bpchar -> Text
//! timestamp timestamptz  -> Integer, microseconds since 2000-01-01
//! date                   -> Integer, days since 2000-01-01
//! ```
//!
//! Left out: numerics with a fractional part other than zeros, infinite timestamps, and integers
//! of -2^63, which stands for NULL inside the tables.

pub use crate::text::Text;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// Integers, booleans, times and whole numerics.
    Integer(i64),
    /// Floating point.
    Float(f64),
    /// Strings.
    Text(Text),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl Value {
    /// The integer, if it is one.
    #[must_use]
    pub const fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }
}

/// A value that the server refuses as well: the statement fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A number does not fit its type.
    #[error("{number} is out of range for type {type_name}; a server refuses it as well")]
    OutOfRange {
        /// The number.
        number: String,
        /// The type.
        type_name: String,
    },
    /// A value of another type than the column's.
    #[error("a column of type {type_name} got {found}")]
    WrongType {
        /// The type.
        type_name: String,
        /// The value.
        found: String,
    },
    /// An expression divides by zero.
    #[error("an expression divides by zero; a server refuses it as well")]
    DivisionByZero,
}
