//! What the twin does with a column: how its values are kept, compared and laid out.

use pgheadroom_layout::{Behaviour, ColumnType, TypeLength};

use crate::row::counted::Counted;
use crate::row::elements::Elements;
use crate::value::ValueError;
use crate::wrap::{Integers, Wrap};

/// Kinds of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// int2, int4, int8.
    Integer {
        width: u8,
    },
    /// Whole numbers.
    Numeric {
        /// Digits before the point, `None` without a limit.
        whole_digits: Option<u32>,
        /// Digits shown behind it, all zeros.
        scale: u16,
    },
    Float4,
    Float8,
    Boolean,
    Timestamp,
    Date,
    /// Types that follow from one number.
    Counted(Counted),
    /// Types that stand around a hash's digits.
    Wrapped(Wrap),
    /// Arrays of equal integers.
    Integers(Integers),
    /// Values of several elements.
    Elements(Elements),
    /// text and varchar.
    Text {
        /// Most characters.
        length: Option<u32>,
    },
    /// bpchar.
    Padded {
        /// Characters.
        length: Option<u32>,
    },
}

/// The first and the last date, in days since 2000-01-01.
///
/// Source: `IS_VALID_DATE`, src/include/datatype/timestamp.h (REL_18_STABLE).
const DATE_FIRST: i64 = -2_451_545;
const DATE_LAST: i64 = 2_147_483_494 - 2_451_545 - 1;

impl Kind {
    /// `None` for types whose values the twin does not know.
    pub fn of(column_type: &ColumnType) -> Option<Self> {
        let (base, modifier) = match column_type.name().split_once('(') {
            Some((base, rest)) => (base, Some(rest.trim_end_matches(')'))),
            None => (column_type.name(), None),
        };
        if let Some(element) = column_type.name().strip_suffix("[]") {
            // A varchar(n)[] is stored as any other.
            let element = element.split_once('(').map_or(element, |(base, _)| base);
            let name = format!("{element}[]");
            let integers = Integers::of(&name).map(Self::Integers);
            return integers.or_else(|| Wrap::of(&name).map(Self::Wrapped));
        }
        let length = || modifier.and_then(|text| text.parse().ok());
        Some(match base {
            "int2" => Self::Integer { width: 2 },
            "int4" => Self::Integer { width: 4 },
            "int8" => Self::Integer { width: 8 },
            "numeric" => Self::numeric(modifier)?,
            "float4" => Self::Float4,
            "float8" => Self::Float8,
            "bool" => Self::Boolean,
            "timestamp" | "timestamptz" => Self::Timestamp,
            "text" | "varchar" => Self::Text { length: length() },
            "bpchar" => Self::Padded { length: length() },
            "date" => Self::Date,
            name => {
                let counted = Counted::of(name, modifier).map(Self::Counted);
                return counted.or_else(|| Wrap::of(name).map(Self::Wrapped));
            }
        })
    }

    fn numeric(modifier: Option<&str>) -> Option<Self> {
        let Some(modifier) = modifier else {
            return Some(Self::Numeric {
                whole_digits: None,
                scale: 0,
            });
        };
        let (precision, scale) = modifier.split_once(',').unwrap_or((modifier, "0"));
        let precision: u32 = precision.trim().parse().ok()?;
        // With a negative scale the server rounds, which the twin does not.
        let scale: u16 = scale.trim().parse().ok()?;
        Some(Self::Numeric {
            whole_digits: Some(precision.saturating_sub(u32::from(scale))),
            scale,
        })
    }

    /// Whether values are kept among a table's strings, by their number there.
    pub const fn is_kept(self) -> bool {
        self.is_text()
            || matches!(
                self,
                Self::Wrapped(_) | Self::Integers(_) | Self::Elements(_)
            )
    }

    /// Whether values are strings.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Text { .. } | Self::Padded { .. })
    }

    /// Whether values are floating point.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::Float4 | Self::Float8)
    }

    /// Alignment, and length if it is fixed.
    pub const fn layout(self) -> (u32, Option<u32>) {
        match self {
            Self::Integer { width } => (width as u32, Some(width as u32)),
            Self::Boolean => (1, Some(1)),
            Self::Float4 | Self::Date => (4, Some(4)),
            Self::Float8 | Self::Timestamp => (8, Some(8)),
            Self::Numeric { .. } | Self::Text { .. } | Self::Padded { .. } => (4, None),
            Self::Counted(counted) => counted.layout(),
            Self::Wrapped(Wrap::Uuid) => (1, Some(16)),
            Self::Wrapped(Wrap::Name) => (1, Some(64)),
            Self::Wrapped(Wrap::Composite) => (8, None),
            Self::Wrapped(_) => (4, None),
            Self::Integers(integers) if integers.width == 8 => (8, None),
            Self::Integers(_) => (4, None),
            Self::Elements(elements) => elements.layout(),
        }
    }

    /// Whether equal values of an index are equal in their bytes, so that it deduplicates.
    ///
    /// Source: `btequalimage` and `btvarstrequalimage` among the support functions in
    /// src/include/catalog/pg_amproc.dat (REL_15_STABLE, REL_18_STABLE).
    pub const fn has_equal_image(self, behaviour: &Behaviour) -> bool {
        match self {
            Self::Float4 | Self::Float8 | Self::Numeric { .. } => false,
            Self::Integers(_) | Self::Elements(_) => false,
            Self::Counted(counted) => counted.has_equal_image(),
            Self::Wrapped(wrap) => wrap.has_equal_image(),
            Self::Padded { .. } => behaviour.bpchar_has_equal_image,
            _ => true,
        }
    }

    /// The smallest and the largest integer of an integer type or of one that counts like one.
    pub fn integers(self) -> Option<(i64, i64)> {
        match self {
            Self::Integer { width: 2 } => Some((i16::MIN.into(), i16::MAX.into())),
            Self::Integer { width: 4 } => Some((i32::MIN.into(), i32::MAX.into())),
            Self::Date => Some((DATE_FIRST, DATE_LAST)),
            Self::Integer { .. } | Self::Timestamp => Some((i64::MIN + 1, i64::MAX)),
            _ => None,
        }
    }

    /// Whether an integer fits; the smallest int8 stands for NULL in tables.
    #[inline]
    pub fn checked(self, number: i64, type_name: &str) -> Result<(), ValueError> {
        let fits = match self {
            Self::Integer { width: 2 } => i16::try_from(number).is_ok(),
            Self::Integer { width: 4 } => i32::try_from(number).is_ok(),
            Self::Date => (DATE_FIRST..=DATE_LAST).contains(&number),
            Self::Boolean => (0..=1).contains(&number),
            Self::Numeric {
                whole_digits: Some(digits),
                ..
            } => digits >= 19 || number.unsigned_abs() < 10_u64.pow(digits),
            _ => number != i64::MIN,
        };
        if fits {
            return Ok(());
        }
        Err(ValueError::OutOfRange {
            number: number.to_string(),
            type_name: type_name.to_owned(),
        })
    }
}

/// Bytes of a fixed length.
pub(crate) fn fixed_width(column_type: &ColumnType) -> Option<u32> {
    match column_type.typlen() {
        TypeLength::Fixed(bytes) => Some(u32::from(bytes)),
        _ => None,
    }
}
