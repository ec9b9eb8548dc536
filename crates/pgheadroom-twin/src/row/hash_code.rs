//! What the default operator class of hash indexes makes of a value.
//!
//! Source: src/backend/access/hash/hashfunc.c, and the types' own files in src/backend/utils/adt
//! (REL_15_STABLE, REL_18_STABLE).

use pgheadroom_layout::tuple::{VARHDRSZ, VARHDRSZ_SHORT};

use crate::row::counted::{Counted, Range};
use crate::row::hash::{hash_bytes, hash_int8, hash_uint32};
use crate::row::kind::Kind;
use crate::text::trimmed;
use crate::wrap::{ARRAY_HEAD, COMPOSITE_HEAD, Integers, Wrap};

/// Source: `JB_FOBJECT`, src/include/utils/jsonb.h.
const JB_FOBJECT: u32 = 0x2000_0000;
/// Bytes of an object of one pair before its value; the last is the key.
const JSONB_HEAD: usize = 13;
/// Bytes of an array of one string before that.
const TEXTS_HEAD: usize = ARRAY_HEAD as usize + 4;
/// Source: `RANGE_LB_INC`, src/include/utils/rangetypes.h.
const RANGE_LB_INC: u32 = 2;

/// The code of a value that is no string, as slots have it.
///
/// Source: `timestamp_hash`, `time_hash`, `timetz_hash`, `interval_hash`, `hashinet`,
/// `hashmacaddr` and `hash_range`.
pub(crate) fn hash_of_number(kind: Kind, slot: i64) -> u32 {
    match kind {
        Kind::Integer { width } => hash_of_integer(slot, width),
        Kind::Timestamp | Kind::Counted(Counted::Time | Counted::Interval) => hash_int8(slot),
        Kind::Date | Kind::Boolean | Kind::Counted(Counted::Oid | Counted::Letter) => {
            hash_of_integer(slot, 4)
        }
        // Source: `hashenum`.
        Kind::Counted(Counted::Enum { first_oid, .. }) => {
            hash_of_integer(i64::from(first_oid) + 2 * slot, 4)
        }
        Kind::Numeric { .. } => hash_of_numeric(slot),
        Kind::Counted(Counted::TimeTz) => hash_int8(slot) ^ hash_uint32(0),
        Kind::Counted(Counted::Range(range)) => hash_of_range(range, slot),
        // Source: `hash_multirange`, src/backend/utils/adt/multirangetypes.c.
        Kind::Counted(Counted::Multirange(range)) => {
            of_elements(std::iter::once(hash_of_range(range, slot)))
        }
        Kind::Counted(counted) => {
            let width = counted.layout().1.or(counted.varlena_bytes());
            let mut bytes = Vec::new();
            counted.write_to(slot, width.unwrap_or(0), &mut bytes);
            hash_bytes(&bytes)
        }
        // Of floating point: a float4 is hashed as the float8 that it is equal to.
        _ if slot == 0 => 0,
        _ => hash_bytes(&slot.to_le_bytes()),
    }
}

/// Source: `hash_range`, src/backend/utils/adt/rangetypes.c.
fn hash_of_range(range: Range, slot: i64) -> u32 {
    let (width, length) = range.ends();
    let code = hash_uint32(RANGE_LB_INC) ^ hash_of_integer(slot, width);
    code.rotate_left(1) ^ hash_of_integer(slot + length, width)
}

/// Source: `hashint2`, `hashint4` and `hashint8`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // types of four bytes
fn hash_of_integer(number: i64, width: u8) -> u32 {
    if width == 8 {
        hash_int8(number)
    } else {
        hash_uint32(number as u32)
    }
}

/// Of a whole number. Source: `hash_numeric`.
fn hash_of_numeric(number: i64) -> u32 {
    const NBASE: u64 = 10_000;
    if number == 0 {
        return u32::MAX;
    }
    let mut left = number.unsigned_abs();
    let mut digits: Vec<u16> = Vec::new();
    while left > 0 {
        digits.push(u16::try_from(left % NBASE).expect("a digit"));
        left /= NBASE;
    }
    let weight = u32::try_from(digits.len() - 1).expect("few digits");
    digits.reverse();
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let bytes: Vec<u8> = digits
        .iter()
        .flat_map(|digit| digit.to_le_bytes())
        .collect();
    hash_bytes(&bytes) ^ weight
}

/// The code of what is kept as a string: of its bytes as they are stored, without a length.
///
/// Source: `hashtext`, `hashvarlena`, `hashname`, `hashbpchar`, `uuid_hash`, `hash_array` and
/// `jsonb_hash`, `hash_record`; `citext_hash`, contrib/citext; `hstore_hash`, contrib/hstore.
pub(crate) fn hash_of_text(kind: Kind, bytes: &[u8]) -> u32 {
    match kind {
        Kind::Padded { .. } => hash_bytes(trimmed(bytes)),
        Kind::Integers(integers) => hash_of_integers(integers, bytes),
        Kind::Wrapped(Wrap::Name) => {
            let end = bytes.iter().position(|byte| *byte == 0);
            hash_bytes(&bytes[..end.unwrap_or(bytes.len())])
        }
        Kind::Wrapped(Wrap::Jsonb) => {
            let (key, value) = (&bytes[JSONB_HEAD - 1..JSONB_HEAD], &bytes[JSONB_HEAD..]);
            let code = JB_FOBJECT.rotate_left(1) ^ hash_bytes(key);
            code.rotate_left(1) ^ hash_bytes(value)
        }
        Kind::Wrapped(Wrap::Composite) => {
            let text = &bytes[COMPOSITE_HEAD as usize..];
            let is_short = text[0] & 1 == 1;
            let header = if is_short { VARHDRSZ_SHORT } else { VARHDRSZ };
            hash_bytes(&text[header as usize..])
        }
        Kind::Wrapped(Wrap::Texts | Wrap::Varchars) => {
            let size = &bytes[ARRAY_HEAD as usize..TEXTS_HEAD];
            let size = u32::from_le_bytes(size.try_into().expect("4 bytes")) >> 2;
            let element = &bytes[TEXTS_HEAD..ARRAY_HEAD as usize + size as usize];
            of_elements(std::iter::once(hash_bytes(element)))
        }
        _ => hash_bytes(bytes),
    }
}

fn hash_of_integers(integers: Integers, bytes: &[u8]) -> u32 {
    let (number, width) = (integers.number(bytes), integers.width);
    let places = (bytes.len() - ARRAY_HEAD as usize) / usize::from(width);
    of_elements(std::iter::repeat_n(hash_of_integer(number, width), places))
}

fn of_elements(codes: impl Iterator<Item = u32>) -> u32 {
    codes.fold(1, |code: u32, element| {
        code.wrapping_mul(31).wrapping_add(element)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What servers return (18.4): `hash_numeric`, `hashfloat8`, `hashtext`, `hash_range`.
    #[test]
    fn as_servers() {
        let numeric = Kind::Numeric {
            whole_digits: None,
            scale: 0,
        };
        let text = Kind::Text { length: None };
        let texts = Kind::Wrapped(Wrap::Texts);
        let array = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).unwrap() + 4;
            let head = [1, 0, 25, 1, 1, length << 2];
            let mut payload: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
            payload.extend_from_slice(bytes);
            payload
        };
        let integers = Integers::of("int8[]").unwrap();
        let sevens = integers.filled(7, ARRAY_HEAD + 16);
        let mut jsonb = vec![0; JSONB_HEAD];
        jsonb[JSONB_HEAD - 1] = b'v';
        jsonb.extend_from_slice(b"ab");
        let found = [
            hash_of_number(numeric, 0),
            hash_of_number(numeric, 1),
            hash_of_number(numeric, 1_230_000),
            hash_of_number(Kind::Float8, 1.5_f64.to_bits().cast_signed()),
            hash_of_text(text, b""),
            hash_of_text(text, b"abc"),
            hash_of_text(text, b"0123456789abcdef0123456789"),
            hash_of_text(Kind::Wrapped(Wrap::Jsonb), &jsonb),
            hash_of_text(texts, &array(b"abc")),
            hash_of_text(Kind::Integers(integers), &sevens),
        ];
        let expected = [
            -1,
            1_324_868_424,
            345_003_831,
            630_860_146,
            -1_477_818_771,
            -785_388_649,
            -1_876_826_360,
            252_773_141,
            -785_388_618,
            -1_256_619_103,
        ];
        assert_eq!(found.map(u32::cast_signed), expected);
    }
}
