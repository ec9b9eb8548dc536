//! Types whose values are kept as strings: what stands around the digits of hashes in a row.
//!
//! ```text
//! type          value                       stored, without the length header
//! uuid          md5(number)                 16 bytes
//! name          32 digits                   64 bytes, zeros behind; 33 in a B-tree
//! bytea         digits decoded              the bytes
//! json          {"v":"digits"}              as written
//! xml           <v>digits</v>               as written
//! jsonb         {"v": "digits"}             count | two entries | v | digits
//! tsvector      'digits', no positions      count | entry | digits
//! text[]        {digits}                    dimensions .. bound | length | digits | zeros
//! citext        digits                      the digits
//! hstore        "v"=>"digits"               count | two entries | v | digits
//! ltree         digits, one label           count | length | digits | zeros
//! composite     ROW(digits), of one text    typmod .. t_hoff | header | digits
//! int4[]        {N,N,...}                   dimensions .. bound | elements
//! ```
//!
//! The same in SQL is in `python/pgheadroom/play/type_values.py`.

use pgheadroom_layout::tuple::{VARATT_SHORT_MAX, VARHDRSZ, VARHDRSZ_SHORT};

use crate::object_ids::FIRST_NORMAL_OBJECT_ID;

/// What stands around digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrap {
    /// text, varchar, bpchar: nothing.
    None,
    Uuid,
    Name,
    Bytea,
    Json,
    Xml,
    Jsonb,
    TsVector,
    /// An array of one text.
    Texts,
    /// An array of one varchar.
    Varchars,
    Citext,
    Hstore,
    Ltree,
    /// A composite type of one text.
    Composite,
}

/// Bytes of a `name`. Source: `NAMEDATALEN`, src/include/pg_config_manual.h.
const NAME_BYTES: u32 = 64;
/// Digits of a name.
pub(crate) const NAME_DIGITS: u32 = 32;
/// Bytes of a uuid. Source: `UUID_LEN`, src/include/utils/uuid.h.
pub(crate) const UUID_BYTES: u32 = 16;
/// An array's dimensions, offset, element type, length and lower bound.
///
/// Source: `ArrayType`, src/include/utils/array.h.
pub(crate) const ARRAY_HEAD: u32 = 20;
/// A composite value's header behind its length, a tuple's without NULLs: a row type is a varlena
/// whose length stands in the first four bytes of the tuple's header.
///
/// Source: `DatumTupleFields` and `HeapTupleHeaderData`, src/include/access/htup_details.h.
pub(crate) const COMPOSITE_HEAD: u32 = 20;
/// The OID of the composite type, which is made before all else in a database that has the first
/// OID: its entry in `pg_class` has the next, its array type the one behind that.
///
/// Source: `heap_create_with_catalog`, src/backend/catalog/heap.c (REL_18_STABLE).
const COMPOSITE_OID: u32 = FIRST_NORMAL_OBJECT_ID + OIDS_OF_COMPOSITE;
/// How many OIDs making it takes.
pub(crate) const OIDS_OF_COMPOSITE: u32 = 3;

impl Wrap {
    /// By `pg_type.typname`, `[]` for arrays.
    pub fn of(typname: &str) -> Option<Self> {
        Some(match typname {
            "uuid" => Self::Uuid,
            "name" => Self::Name,
            "bytea" => Self::Bytea,
            "json" => Self::Json,
            "xml" => Self::Xml,
            "jsonb" => Self::Jsonb,
            "tsvector" => Self::TsVector,
            "text[]" => Self::Texts,
            "varchar[]" => Self::Varchars,
            "citext" => Self::Citext,
            "hstore" => Self::Hstore,
            "ltree" => Self::Ltree,
            "composite" => Self::Composite,
            _ => return None,
        })
    }

    /// What stands before the digits, of which there are so many.
    fn before(self, digits: u32) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        match self {
            Self::None | Self::Uuid | Self::Name | Self::Bytea | Self::Citext => Vec::new(),
            Self::Hstore => {
                // Where each string ends, the first with the mark of the first.
                // Source: `HStore`, `HENTRY_ISFIRST`, contrib/hstore/hstore.h.
                let mut head: Vec<u8> = words(&[0x8000_0001, 0x8000_0001, digits + 1]);
                head.push(b'v');
                head
            }
            // Source: `ltree` and `ltree_level`, contrib/ltree/ltree.h.
            Self::Ltree => {
                let length = u16::try_from(digits).unwrap_or(u16::MAX).to_le_bytes();
                vec![1, 0, 0, 0, length[0], length[1]]
            }
            Self::Json => b"{\"v\":\"".to_vec(),
            Self::Xml => b"<v>".to_vec(),
            Self::Jsonb => {
                // An object of one pair; two strings, the first with its end as an offset.
                // Source: `JB_FOBJECT`, `JENTRY_HAS_OFF`, src/include/utils/jsonb.h.
                let mut head: Vec<u8> = words(&[0x2000_0001, 0x8000_0001, digits]);
                head.push(b'v');
                head
            }
            // Source: `WordEntry`, src/include/tsearch/ts_type.h.
            Self::TsVector => words(&[1, digits << 1]),
            Self::Composite => composite_head(digits),
            Self::Texts => words(&[1, 0, TEXT_OID, 1, 1, (digits + 4) << 2]),
            Self::Varchars => words(&[1, 0, VARCHAR_OID, 1, 1, (digits + 4) << 2]),
        }
    }

    const fn behind(self) -> &'static [u8] {
        match self {
            Self::Json => b"\"}",
            Self::Xml => b"</v>",
            _ => b"",
        }
    }

    /// Bytes of a value beside its digits.
    pub const fn overhead_bytes(self) -> u32 {
        match self {
            Self::None | Self::Uuid | Self::Bytea | Self::Citext => 0,
            Self::Name => NAME_BYTES - NAME_DIGITS,
            Self::Json => 8,
            Self::Xml => 7,
            Self::Jsonb | Self::Hstore => 13,
            Self::Ltree => 6,
            Self::TsVector => 8,
            Self::Composite => COMPOSITE_HEAD + VARHDRSZ_SHORT,
            Self::Texts | Self::Varchars => ARRAY_HEAD + 4,
        }
    }

    /// Bytes of a value with so many digits; of a bytea, with so many bytes.
    pub const fn payload_bytes(self, digits: u32) -> u32 {
        let bytes = digits + self.overhead_bytes();
        match self {
            Self::Texts | Self::Varchars => bytes.next_multiple_of(4),
            // A level is a multiple of 8, behind the number of levels.
            Self::Ltree => 4 + (bytes - 4).next_multiple_of(8),
            Self::Composite if !is_short(digits) => digits + COMPOSITE_HEAD + VARHDRSZ,
            _ => bytes,
        }
    }

    /// How many digits a value of so many bytes has.
    pub const fn digits_of_payload(self, payload_bytes: u32) -> u32 {
        let digits = payload_bytes.saturating_sub(self.overhead_bytes());
        match self {
            // Between the longest text with a header of one byte and the shortest with one of four
            // there are lengths that no value has.
            Self::Composite if !is_short(digits) => digits - (VARHDRSZ - VARHDRSZ_SHORT),
            _ => digits,
        }
    }

    /// Digits that so many of a value's bytes stand for.
    pub const fn digits_of_hash(self, bytes: u32) -> u32 {
        match self {
            Self::Bytea => 2 * bytes,
            _ => bytes,
        }
    }

    /// Writes a value with these digits.
    pub fn write_to(self, digits: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        if self == Self::Bytea {
            out.extend(
                digits
                    .chunks_exact(2)
                    .map(|pair| (nibble(pair[0]) << 4) | nibble(pair[1])),
            );
            return;
        }
        let count = u32::try_from(digits.len()).expect("a value below 1 GB");
        out.extend_from_slice(&self.before(count));
        out.extend_from_slice(digits);
        out.extend_from_slice(self.behind());
        out.resize(start + self.payload_bytes(count) as usize, 0);
    }

    /// What B-tree operators compare, as bytes in their order; `None` where the digits are it.
    ///
    /// Source: `silly_cmp_tsvector`, src/backend/utils/adt/tsvector_op.c: by length first.
    pub fn ordered_by(self, digits: Vec<u8>) -> Vec<u8> {
        if self != Self::TsVector {
            return digits;
        }
        let count = u32::try_from(digits.len()).expect("a word");
        [&count.to_be_bytes()[..], &digits].concat()
    }

    /// Whether equal values of an index are equal in their bytes, so that it deduplicates.
    ///
    /// Source: `btequalimage` and `btvarstrequalimage` in src/include/catalog/pg_amproc.dat.
    pub const fn has_equal_image(self) -> bool {
        matches!(self, Self::None | Self::Uuid | Self::Name | Self::Bytea)
    }
}

/// Whether a text of so many bytes has a header of one byte.
const fn is_short(bytes: u32) -> bool {
    bytes + VARHDRSZ_SHORT <= VARATT_SHORT_MAX
}

/// What stands before the digits of a composite of one text.
///
/// Source: `heap_form_tuple`, src/backend/access/common/heaptuple.c: no modifier, an invalid TID,
/// one attribute, of variable width (`HEAP_HASVARWIDTH`).
fn composite_head(digits: u32) -> Vec<u8> {
    const T_HOFF: u8 = 24;
    let mut head = (-1_i32).to_le_bytes().to_vec();
    head.extend_from_slice(&COMPOSITE_OID.to_le_bytes());
    head.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 2, 0, T_HOFF, 0]);
    match u8::try_from(digits + VARHDRSZ_SHORT) {
        Ok(stored) if is_short(digits) => head.push((stored << 1) | 1),
        _ => head.extend_from_slice(&((digits + VARHDRSZ) << 2).to_le_bytes()),
    }
    head
}

/// Source: src/include/catalog/pg_type.dat.
pub(crate) const TEXT_OID: u32 = 25;
pub(crate) const VARCHAR_OID: u32 = 1043;

const fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit - b'a' + 10,
    }
}

/// An array of equal integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Integers {
    /// Bytes of an element.
    pub width: u8,
    oid: u32,
}

impl Integers {
    /// By the name of the array type.
    pub fn of(typname: &str) -> Option<Self> {
        let (width, oid) = match typname {
            "int2[]" => (2, 21),
            "int4[]" => (4, 23),
            "int8[]" => (8, 20),
            _ => return None,
        };
        Some(Self { width, oid })
    }

    /// The array of so many bytes at most that has this number in each place.
    pub fn filled(self, number: i64, payload_bytes: u32) -> Vec<u8> {
        let places = payload_bytes.saturating_sub(ARRAY_HEAD) / u32::from(self.width);
        self.of_places(number, places.max(1))
    }

    fn of_places(self, number: i64, places: u32) -> Vec<u8> {
        let head = [1, 0, self.oid, places, 1];
        let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        let element = &number.to_le_bytes()[..usize::from(self.width)];
        bytes.extend(element.repeat(places as usize));
        // Source: `construct_md_array`, src/backend/utils/adt/arrayfuncs.c: each element is
        // aligned, and so is the end; int2 to 2.
        bytes
    }

    /// The number in each place.
    pub fn number(self, payload: &[u8]) -> i64 {
        let width = usize::from(self.width);
        let start = ARRAY_HEAD as usize;
        let element = &payload[start..start + width];
        let negative = element[width - 1] & 0x80 != 0;
        let mut bytes = [if negative { 0xff } else { 0 }; 8];
        bytes[..width].copy_from_slice(element);
        i64::from_le_bytes(bytes)
    }

    /// The array that has another number in each place.
    pub fn with_number(self, payload: &[u8], number: i64) -> Vec<u8> {
        let places = (payload.len() - ARRAY_HEAD as usize) / usize::from(self.width);
        self.of_places(number, u32::try_from(places).expect("an array in memory"))
    }

    /// Bytes in the order of the arrays: element by element, the shorter first.
    pub fn ordered_by(self, payload: &[u8]) -> Vec<u8> {
        let places = (payload.len() - ARRAY_HEAD as usize) / usize::from(self.width);
        // As unsigned, with the sign's bit the other way round.
        let number = self.number(payload) ^ i64::MIN;
        number.to_be_bytes().repeat(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(wrap: Wrap, digits: &str) -> Vec<u8> {
        let mut out = Vec::new();
        wrap.write_to(digits.as_bytes(), &mut out);
        out
    }

    /// A value is as long as its digits say.
    #[test]
    fn lengths() {
        for wrap in [
            Wrap::Json,
            Wrap::Xml,
            Wrap::Jsonb,
            Wrap::TsVector,
            Wrap::Texts,
            Wrap::Hstore,
            Wrap::Ltree,
            Wrap::Composite,
        ] {
            let long = "a".repeat(127);
            for digits in ["", "a", "0123456", &long[1..], &long] {
                let count = u32::try_from(digits.len()).unwrap();
                let bytes = wrap.payload_bytes(count) as usize;
                assert_eq!(written(wrap, digits).len(), bytes, "{wrap:?} {digits}");
            }
        }
        assert_eq!(written(Wrap::Name, &"a".repeat(32)).len(), 64);
        assert_eq!(written(Wrap::Bytea, "0aff"), [10, 255]);
        assert_eq!(written(Wrap::Json, "a"), b"{\"v\":\"a\"}");
    }

    /// A composite of so many bytes, as far as there is one: none has 148 to 150.
    #[test]
    fn composites() {
        for (bytes, found) in [(21, 21), (147, 147), (148, 145), (151, 151), (900, 900)] {
            let digits = Wrap::Composite.digits_of_payload(bytes);
            assert_eq!(Wrap::Composite.payload_bytes(digits), found);
        }
        let value = written(Wrap::Composite, "ab");
        assert_eq!(value[COMPOSITE_HEAD as usize..], [7, b'a', b'b']);
    }

    /// Arrays are compared element by element, negative ones first.
    #[test]
    fn arrays() {
        let of = Integers::of("int4[]").unwrap();
        let array = of.filled(-2, 28);
        assert_eq!(array.len(), 28);
        assert_eq!(of.number(&array), -2);
        let key = |number, bytes| of.ordered_by(&of.filled(number, bytes));
        assert!(key(-2, 28) < key(1, 24));
        assert!(key(1, 24) < key(1, 28));
        assert_eq!(of.with_number(&array, 5), of.filled(5, 28));
    }
}
