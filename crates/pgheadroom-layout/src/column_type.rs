//! Column types: from the name as PostgreSQL spells it to length, alignment and storage.
//!
//! Knows the built-in base types, their SQL spellings, their modifiers and arrays of them. Types
//! that users define (domains, composites, extensions) are left out: a domain is stored like its
//! base type, and the caller says so. All enums are one type here, `enum`.

use std::fmt;

use crate::align::Alignment::{self, Char, Double, Int, Short};
use crate::error::LayoutError;

mod table;

use table::{Modifier, TYPES, TypeSpec};

/// Largest payload of one value: PostgreSQL's limit of 1 GB less one, minus the 4-byte header.
///
/// Source: `MaxAllocSize`, src/include/utils/memutils.h (REL_18_STABLE).
pub const MAX_PAYLOAD: u32 = 0x3FFF_FFFF - 4;

/// Length of a type's values, `pg_type.typlen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TypeLength {
    /// Always so many bytes.
    Fixed(u16),
    /// Variable, with a length header of 1 or 4 bytes (`typlen` -1).
    Varlena,
    /// Text up to a zero byte (`typlen` -2): what a B-tree keeps of a `name`.
    Cstring,
}

impl TypeLength {
    /// The number in `pg_type.typlen`.
    #[must_use]
    pub const fn catalogue(self) -> i32 {
        match self {
            Self::Fixed(bytes) => bytes as i32,
            Self::Varlena => -1,
            Self::Cstring => -2,
        }
    }
}

/// How a type's values may be moved out of line, `pg_type.typstorage`.
///
/// Source: `TYPSTORAGE_*`, src/include/catalog/pg_type.h (REL_18_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// `p`: never compressed, never out of line.
    Plain,
    /// `e`: out of line, never compressed.
    External,
    /// `m`: compressed; out of line only as the last resort.
    Main,
    /// `x`: compressed and out of line.
    Extended,
}

impl Storage {
    /// The letter in `pg_type.typstorage`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Plain => 'p',
            Self::External => 'e',
            Self::Main => 'm',
            Self::Extended => 'x',
        }
    }
}

/// A column's type: what PostgreSQL needs to know to lay out its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnType {
    name: String,
    typlen: TypeLength,
    typalign: Alignment,
    typstorage: Storage,
    min_payload_bytes: u32,
    max_payload_bytes: u32,
    default_payload_bytes: Option<u32>,
}

/// Payload bytes of an empty array: dimensions, offset of the data, element type.
///
/// Source: `ArrayType`, src/include/utils/array.h (REL_18_STABLE).
const EMPTY_ARRAY_PAYLOAD: u32 = 12;
/// Most bytes of one character in any server encoding (UTF-8). Source: `pg_wchar_table`.
const MAX_CHARACTER_BYTES: u32 = 4;
/// Largest n of `char(n)` and `varchar(n)`. Source: `MaxAttrSize`, htup_details.h.
const MAX_ATTR_SIZE: u32 = 10 * 1024 * 1024;

impl ColumnType {
    /// Reads a type as PostgreSQL spells it: `int4`, `bpchar(84)`, `timestamp(3) with time zone`,
    /// `text[]`, `pg_catalog.int8`, `"char"`.
    ///
    /// # Errors
    /// [`LayoutError::UnknownType`] or [`LayoutError::BadTypeModifier`].
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        let unknown = || LayoutError::UnknownType {
            name: text.to_owned(),
        };
        let spaced = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let lower = spaced.to_ascii_lowercase();
        let lower = lower.strip_prefix("pg_catalog.").unwrap_or(&lower);
        let (element, is_array) = split_array(lower).ok_or_else(unknown)?;
        let (name, modifier) = split_modifier(element).ok_or_else(unknown)?;
        let spec = TYPES
            .iter()
            .find(|spec| spec.typname == name || spec.spellings.contains(&name.as_str()))
            .ok_or_else(unknown)?;
        // CHAR without a length means char(1) in SQL; the bare name bpchar has no limit.
        let modifier = match modifier {
            None if matches!(name.as_str(), "char" | "character" | "bit") => Some("1".to_owned()),
            given => given,
        };
        let base = spec.with_modifier(text, modifier.as_deref())?;
        Ok(if is_array { base.array() } else { base })
    }

    /// The canonical name: `pg_type.typname` with its modifier, `[]` for arrays.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Length of the values, fixed or variable.
    #[must_use]
    pub const fn typlen(&self) -> TypeLength {
        self.typlen
    }

    /// Alignment of the values; a varlena with a 1-byte header has none.
    #[must_use]
    pub const fn typalign(&self) -> Alignment {
        self.typalign
    }

    /// Default storage strategy; a column may have another.
    #[must_use]
    pub const fn typstorage(&self) -> Storage {
        self.typstorage
    }

    /// Payload bytes when the type alone decides them: fixed lengths, `bit(n)`, and `bpchar(n)`
    /// under the assumption of one byte a character.
    #[must_use]
    pub const fn default_payload_bytes(&self) -> Option<u32> {
        self.default_payload_bytes
    }

    /// `payload_bytes` if a value of this type can have it, the type's own if `None`.
    ///
    /// # Errors
    /// [`LayoutError::WidthMissing`] or [`LayoutError::WidthImpossible`].
    pub fn checked_payload(&self, payload_bytes: Option<u64>) -> Result<u32, LayoutError> {
        let Some(given) = payload_bytes else {
            return self
                .default_payload_bytes
                .ok_or_else(|| LayoutError::WidthMissing {
                    type_name: self.name.clone(),
                });
        };
        u32::try_from(given)
            .ok()
            .filter(|bytes| (self.min_payload_bytes..=self.max_payload_bytes).contains(bytes))
            .ok_or_else(|| LayoutError::WidthImpossible {
                type_name: self.name.clone(),
                payload_bytes: given,
                min_bytes: self.min_payload_bytes,
                max_bytes: self.max_payload_bytes,
            })
    }

    /// The type of arrays of this type.
    ///
    /// Source: `GenerateTypeDependencies` aside, array types are varlena with the alignment of
    /// their elements but at least 4 (`DefineType`, src/backend/commands/typecmds.c).
    fn array(self) -> Self {
        Self {
            name: format!("{}[]", self.name),
            typlen: TypeLength::Varlena,
            typalign: match self.typalign {
                Double => Double,
                Char | Short | Int => Int,
            },
            typstorage: Storage::Extended,
            min_payload_bytes: EMPTY_ARRAY_PAYLOAD,
            max_payload_bytes: MAX_PAYLOAD,
            default_payload_bytes: None,
        }
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl TypeSpec {
    fn with_modifier(
        &self,
        given: &str,
        modifier: Option<&str>,
    ) -> Result<ColumnType, LayoutError> {
        let bad = |expected: &'static str| LayoutError::BadTypeModifier {
            name: given.to_owned(),
            modifier: modifier.unwrap_or_default().to_owned(),
            expected,
        };
        let mut result = self.plain();
        let Some(text) = modifier else {
            return Ok(result);
        };
        let length = |expected| {
            text.parse::<u32>()
                .ok()
                .filter(|n| (1..=MAX_ATTR_SIZE).contains(n))
                .ok_or_else(|| bad(expected))
        };
        match self.modifier {
            Modifier::None => return Err(bad("none")),
            Modifier::PaddedCharacters => {
                let n = length("a number of characters, 1 to 10485760")?;
                result.min_payload_bytes = n;
                result.max_payload_bytes = n * MAX_CHARACTER_BYTES;
                result.default_payload_bytes = Some(n);
            }
            Modifier::Characters => {
                let n = length("a number of characters, 1 to 10485760")?;
                result.max_payload_bytes = n * MAX_CHARACTER_BYTES;
            }
            Modifier::Bits | Modifier::AtMostBits => {
                let n = length("a number of bits, 1 to 10485760")?;
                let payload = 4 + n.div_ceil(8); // bit count, then the bits
                result.max_payload_bytes = payload;
                if self.modifier == Modifier::Bits {
                    result.min_payload_bytes = payload;
                    result.default_payload_bytes = Some(payload);
                }
            }
            Modifier::PrecisionScale => check_precision_scale(text)
                .ok_or_else(|| bad("precision 1 to 1000 and optionally a scale, -1000 to 1000"))?,
            Modifier::Precision => {
                // Larger precisions are reduced to 6 by the server, with a warning.
                text.parse::<u32>()
                    .map_err(|_| bad("a number of fractional digits"))?;
                // The width does not depend on it, and reduced values would mislead: leave it out.
                return Ok(result);
            }
            Modifier::Labels => check_labels(text).ok_or_else(|| bad("labels, first OID"))?,
            Modifier::FloatPrecision => {
                let bits = length("a number of bits, 1 to 53")?;
                return match bits {
                    1..=24 => ColumnType::parse("float4"),
                    25..=53 => Ok(result),
                    _ => Err(bad("a number of bits, 1 to 53")),
                };
            }
        }
        result.name = format!("{}({})", self.typname, text.replace(' ', ""));
        Ok(result)
    }

    fn plain(&self) -> ColumnType {
        let fixed = match self.typlen {
            TypeLength::Fixed(bytes) => Some(u32::from(bytes)),
            TypeLength::Varlena | TypeLength::Cstring => None,
        };
        let (min, max) = fixed.map_or(self.payload, |bytes| (bytes, bytes));
        ColumnType {
            name: self.typname.to_owned(),
            typlen: self.typlen,
            typalign: self.typalign,
            typstorage: self.typstorage,
            min_payload_bytes: min,
            max_payload_bytes: max,
            default_payload_bytes: fixed,
        }
    }
}

/// Splits `int4[]`, `int4[3][3]`, `integer array` and `_int4` into the element type and whether
/// it is an array; `None` for unbalanced brackets.
fn split_array(text: &str) -> Option<(&str, bool)> {
    if let Some(element) = text.strip_suffix(" array") {
        return Some((element, true));
    }
    if let Some((element, bounds)) = text.split_once('[') {
        let inside = bounds.strip_suffix(']')?;
        let dimensions = inside.split("][");
        for bound in dimensions {
            if !bound.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
        }
        return Some((element.trim_end(), true));
    }
    // The catalogue's own names of array types.
    match text.strip_prefix('_') {
        Some(element) => Some((element, true)),
        None => Some((text, false)),
    }
}

/// Splits `timestamp(3) with time zone` into the name without the parentheses and what stood in
/// them; `None` for unbalanced parentheses.
fn split_modifier(text: &str) -> Option<(String, Option<String>)> {
    let Some((before, rest)) = text.split_once('(') else {
        return (!text.contains(')')).then(|| (text.to_owned(), None));
    };
    let (inside, after) = rest.split_once(')')?;
    if after.contains(['(', ')']) {
        return None;
    }
    let name = format!("{} {}", before.trim_end(), after.trim_start());
    Some((name.trim_end().to_owned(), Some(inside.trim().to_owned())))
}

/// Whether `text` is `p` or `p,s` within PostgreSQL's limits.
///
/// Source: `numerictypmodin`, src/backend/utils/adt/numeric.c (REL_15_STABLE and later; before,
/// the scale was 0 to the precision).
fn check_precision_scale(text: &str) -> Option<()> {
    let (precision, scale) = match text.split_once(',') {
        Some((precision, scale)) => (precision.trim(), scale.trim().parse::<i32>().ok()?),
        None => (text, 0),
    };
    let precision = precision.parse::<i32>().ok()?;
    ((1..=1000).contains(&precision) && (-1000..=1000).contains(&scale)).then_some(())
}

/// Whether `text` is two numbers.
fn check_labels(text: &str) -> Option<()> {
    let (labels, oid) = text.split_once(',')?;
    let is_number = |part: &str| part.trim().parse::<u32>().is_ok();
    (is_number(labels) && is_number(oid)).then_some(())
}

/// Every type's canonical name without modifiers, in the order of the table; not what stands for
/// types of users.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    let known = TYPES
        .iter()
        .filter(|spec| spec.modifier != Modifier::Labels);
    known.map(|spec| spec.typname)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> ColumnType {
        ColumnType::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// One type has one name, however it is spelt.
    #[test]
    fn spellings_meet_in_one_name() {
        for (text, name) in [
            ("bpchar(84)", "bpchar(84)"),
            ("char(84)", "bpchar(84)"),
            ("CHARACTER ( 84 )", "bpchar(84)"),
            ("char", "bpchar(1)"),
            ("bpchar", "bpchar"),
            ("\"char\"", "\"char\""),
            ("integer", "int4"),
            ("pg_catalog.int8", "int8"),
            ("character varying(20)", "varchar(20)"),
            ("timestamp(3)  with time zone", "timestamptz"),
            ("timestamp without time zone", "timestamp"),
            ("numeric(10, 2)", "numeric(10,2)"),
            ("float(24)", "float4"),
            ("float", "float8"),
            ("double precision", "float8"),
            ("bit varying(9)", "varbit(9)"),
            ("bit", "bit(1)"),
            ("text[]", "text[]"),
            ("integer[3][3]", "int4[]"),
            ("_int8", "int8[]"),
            ("varchar(10)[]", "varchar(10)[]"),
            ("int4 array", "int4[]"),
        ] {
            assert_eq!(parsed(text).name(), name, "{text}");
        }
    }

    /// What PostgreSQL would refuse, or we do not know, is refused.
    #[test]
    fn wrong_names_are_refused() {
        for text in [
            "",
            "int3",
            "int4(",
            "int4)",
            "int4[x]",
            "text(5)",
            "char(0)",
            "bit(-1)",
            "numeric(0)",
            "numeric(1001)",
            "float(54)",
            "geometry",
            "varchar(10485761)",
            "[]",
            "()",
        ] {
            assert!(ColumnType::parse(text).is_err(), "{text}");
        }
    }

    /// Arrays align like their elements, but at least to 4.
    #[test]
    fn arrays_align_to_four_or_eight() {
        assert_eq!(parsed("bool[]").typalign(), Alignment::Int);
        assert_eq!(parsed("int8[]").typalign(), Alignment::Double);
        assert_eq!(parsed("text[]").typlen(), TypeLength::Varlena);
    }

    /// The width comes from the type where the type decides it, and is checked where it is given.
    #[test]
    fn widths_are_checked() {
        assert_eq!(parsed("uuid").checked_payload(None), Ok(16));
        assert_eq!(parsed("bpchar(84)").checked_payload(None), Ok(84));
        assert_eq!(parsed("bit(9)").checked_payload(None), Ok(6));
        assert!(parsed("text").checked_payload(None).is_err());
        assert!(parsed("int4").checked_payload(Some(5)).is_err());
        assert!(parsed("bpchar(84)").checked_payload(Some(83)).is_err());
        assert!(parsed("text").checked_payload(Some(1 << 30)).is_err());
    }

    /// Names and spellings are unique, so the order of the table means nothing.
    #[test]
    fn the_table_has_no_duplicates() {
        let mut all: Vec<_> = TYPES
            .iter()
            .flat_map(|spec| std::iter::once(&spec.typname).chain(spec.spellings))
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    proptest! {
        /// Foreign text never panics.
        #[test]
        fn any_text_is_survived(text in "\\PC{0,30}") {
            let _ = ColumnType::parse(&text);
        }

        /// The canonical name is a fixed point.
        #[test]
        fn canonical_names_parse_to_themselves(index in 0..TYPES.len(), array: bool) {
            let name = format!("{}{}", TYPES[index].typname, if array { "[]" } else { "" });
            prop_assume!(name != "bit" && name != "bit[]"); // means bit(1)
            let first = parsed(&name);
            prop_assert_eq!(first.name(), &name);
            prop_assert_eq!(parsed(first.name()), first);
        }
    }
}
