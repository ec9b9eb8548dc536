//! Types whose values follow from one number, which is what a slot keeps: one line each.
//!
//! ```text
//! type       value number N                       stored                        the next
//! time       00:00 + N us, modulo a day           int8                          a us later
//! timetz     likewise, in UTC                     int8, zone 0 (int4)           a us later
//! interval   N seconds                            us (int8), days 0, months 0   a us more
//! oid        N                                    int4                          N + 1
//! "char"     the letter number N mod 26           a byte                        the next letter
//! money      N units                              cents (int8)                  a unit more
//! macaddr    N modulo 2^48                        6 bytes, the highest first    N + 1
//! macaddr8   N modulo 2^62                        8 bytes, the highest first    N + 1
//! inet, cidr 10.0.0.0 + N modulo 2^24             family, bits 32, 4 bytes      the next address
//! point      (N, 0)                               two float8                    N + 1
//! box, lseg  from (N, 0) to (0, 0)                four float8                   N + 1
//! circle     around (N, 0), no radius             three float8                  N + 1
//! path       closed, of one point (N, 0)          count, closed, 0, two float8  N + 1
//! bit, varbit N modulo 2^bits                     their number, then the bits   N + 1
//! int4range  [N, N + 1), likewise int8range       type, both ends, flags        N + 1
//! enum       the label number N modulo all       its OID in pg_enum (int4)     the next label
//! daterange  2000-01-01 and N days, a day long    the same                      a day later
//! tsrange    2000-01-01 and N s, a second long    the same; and tstzrange       a us later
//! multiranges of one such range                   type, count, flags, both ends likewise
//! ```
//!
//! The order of the numbers is the order of the types' B-tree operators. The same in SQL is in
//! `python/pgheadroom/play/type_values.py`.

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Time,
    TimeTz,
    Interval,
    Oid,
    Letter,
    Money,
    MacAddr,
    MacAddr8,
    Inet,
    Cidr,
    Point,
    /// `box` and `lseg`.
    Corners,
    Circle,
    Path,
    /// A range, from its beginning on.
    Range(Range),
    /// A multirange of one range.
    Multirange(Range),
    /// `bit(n)`, and `varbit(n)` with all its bits.
    Bits {
        bits: u8,
    },
    /// A label's number, from 0.
    Enum {
        labels: u16,
        /// The first label's OID; each other one's is two more than that before it, for CREATE
        /// TYPE takes even ones in their order.
        ///
        /// Source: `EnumValuesCreate`, src/backend/catalog/pg_enum.c (REL_18_STABLE).
        first_oid: u32,
    },
}

/// Ranges of a fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    Int4,
    Int8,
    Date,
    Timestamp,
    TimestampTz,
}

impl Range {
    /// Its number in `pg_type`, the bytes of an end, and how long it is.
    ///
    /// Source: src/include/catalog/pg_type.dat.
    const fn form(self) -> (u32, usize, i64) {
        match self {
            Self::Int4 => (3904, 4, 1),
            Self::Int8 => (3926, 8, 1),
            Self::Date => (3912, 4, 1),
            Self::Timestamp => (3908, 8, 1_000_000),
            Self::TimestampTz => (3910, 8, 1_000_000),
        }
    }

    /// The number of its multirange in `pg_type`.
    ///
    /// Source: src/include/catalog/pg_type.dat.
    const fn multirange_oid(self) -> u32 {
        match self {
            Self::Int4 => 4451,
            Self::Timestamp => 4533,
            Self::TimestampTz => 4534,
            Self::Date => 4535,
            Self::Int8 => 4536,
        }
    }

    /// Bytes of an end, and how far the upper one lies behind the lower.
    #[allow(clippy::cast_possible_truncation)] // 4 or 8
    pub(crate) const fn ends(self) -> (u8, i64) {
        let (_, bytes, length) = self.form();
        (bytes as u8, length)
    }
}

/// The lower end is part of it. Source: `RANGE_LB_INC`, src/include/utils/rangetypes.h.
const RANGE_LB_INC: u8 = 2;
/// A multirange's type, the number of its ranges and the flags of one.
///
/// Source: `MultirangeType`, src/include/utils/multirangetypes.h.
const MULTIRANGE_HEAD: u32 = 4 + 4 + 1;
/// Points, whether it is closed, and padding. Source: `PATH`, src/include/utils/geo_decls.h.
const PATH_HEAD: u32 = 4 + 4 + 4;
const DAY_MICROSECONDS: i64 = 86_400_000_000;
const CENTS: i64 = 100;
const MAC_MODULUS: i64 = 1 << 48;
const MOST_MODULUS: i64 = 1 << 62;
const ADDRESS_FIRST: i64 = 10 << 24;
const ADDRESSES: i64 = 1 << 24;
/// `PGSQL_AF_INET` and a network of one address. Source: src/include/utils/inet.h.
const INET_HEAD: [u8; 2] = [2, 32];
/// Bits of a bit string whose number a slot can keep.
const BITS_MAX: u32 = 62;

impl Counted {
    /// By `pg_type.typname`, and what stands in parentheses after it.
    pub fn of(typname: &str, modifier: Option<&str>) -> Option<Self> {
        Some(match typname {
            "time" => Self::Time,
            "timetz" => Self::TimeTz,
            "interval" => Self::Interval,
            "oid" => Self::Oid,
            "\"char\"" => Self::Letter,
            "money" => Self::Money,
            "macaddr" => Self::MacAddr,
            "macaddr8" => Self::MacAddr8,
            "inet" => Self::Inet,
            "cidr" => Self::Cidr,
            "point" => Self::Point,
            "box" | "lseg" => Self::Corners,
            "circle" => Self::Circle,
            "path" => Self::Path,
            "int4multirange" => Self::Multirange(Range::Int4),
            "int8multirange" => Self::Multirange(Range::Int8),
            "datemultirange" => Self::Multirange(Range::Date),
            "tsmultirange" => Self::Multirange(Range::Timestamp),
            "tstzmultirange" => Self::Multirange(Range::TimestampTz),
            "int4range" => Self::Range(Range::Int4),
            "int8range" => Self::Range(Range::Int8),
            "daterange" => Self::Range(Range::Date),
            "tsrange" => Self::Range(Range::Timestamp),
            "tstzrange" => Self::Range(Range::TimestampTz),
            "bit" | "varbit" => {
                let bits: u8 = modifier?.parse().ok()?;
                if u32::from(bits) > BITS_MAX {
                    return None;
                }
                Self::Bits { bits }
            }
            "enum" => {
                let (labels, first_oid) = modifier?.split_once(',')?;
                Self::Enum {
                    labels: labels.parse().ok().filter(|&labels| labels > 0)?,
                    first_oid: first_oid.parse().ok()?,
                }
            }
            _ => return None,
        })
    }

    /// The slot of value number `number`; `None` where the server refuses it.
    pub fn of_number(self, number: i64) -> Option<i64> {
        match self {
            Self::Time | Self::TimeTz => Some(number.rem_euclid(DAY_MICROSECONDS)),
            Self::Interval => Some(microseconds(number)),
            Self::Oid => u32::try_from(number).is_ok().then_some(number),
            Self::Letter => Some(i64::from(b'a') + number.rem_euclid(26)),
            Self::Money => number.checked_mul(CENTS),
            Self::MacAddr => Some(number.rem_euclid(MAC_MODULUS)),
            Self::MacAddr8 => Some(number.rem_euclid(MOST_MODULUS)),
            Self::Inet | Self::Cidr => Some(ADDRESS_FIRST + number.rem_euclid(ADDRESSES)),
            Self::Point | Self::Corners | Self::Circle | Self::Path => Some(number),
            Self::Multirange(range) => Self::Range(range).of_number(number),
            Self::Range(Range::Timestamp | Range::TimestampTz) => Some(microseconds(number)),
            Self::Range(Range::Int8) => number.checked_add(1).map(|_| number),
            Self::Range(Range::Int4 | Range::Date) => {
                let end = i32::try_from(number)
                    .ok()
                    .and_then(|day| day.checked_add(1));
                end.map(|_| number)
            }
            Self::Bits { bits } => Some(number.rem_euclid(1 << bits)),
            Self::Enum { labels, .. } => Some(number.rem_euclid(i64::from(labels))),
        }
    }

    /// What an update makes of a slot; `None` where the server refuses it.
    pub fn next(self, slot: i64) -> Option<i64> {
        match self {
            Self::Time | Self::TimeTz => Some((slot + 1) % DAY_MICROSECONDS),
            Self::Oid => self.of_number(slot + 1),
            Self::Letter => self.of_number(slot + 1 - i64::from(b'a')),
            Self::Money => slot.checked_add(CENTS),
            Self::MacAddr => Some((slot + 1) % MAC_MODULUS),
            Self::MacAddr8 => Some((slot + 1) % MOST_MODULUS),
            Self::Inet | Self::Cidr | Self::Interval => slot.checked_add(1),
            Self::Point | Self::Corners | Self::Circle | Self::Path => slot.checked_add(1),
            Self::Multirange(range) => Self::Range(range).next(slot),
            Self::Range(Range::Timestamp | Range::TimestampTz) => slot.checked_add(1),
            Self::Range(_) => self.of_number(slot.checked_add(1)?),
            Self::Bits { bits } => Some((slot + 1) % (1 << bits)),
            Self::Enum { labels, .. } => Some((slot + 1) % i64::from(labels)),
        }
    }

    /// Alignment, and length if it is fixed.
    pub const fn layout(self) -> (u32, Option<u32>) {
        match self {
            Self::Time | Self::Money => (8, Some(8)),
            Self::TimeTz => (8, Some(12)),
            Self::Interval | Self::Point => (8, Some(16)),
            Self::Corners => (8, Some(32)),
            Self::Circle => (8, Some(24)),
            Self::Path => (8, None),
            Self::Multirange(range) if range.form().1 == 8 => (8, None),
            Self::Oid | Self::Enum { .. } => (4, Some(4)),
            Self::Letter => (1, Some(1)),
            Self::MacAddr => (4, Some(6)),
            Self::MacAddr8 => (4, Some(8)),
            Self::Range(range) if range.form().1 == 8 => (8, None),
            Self::Inet | Self::Cidr | Self::Bits { .. } => (4, None),
            Self::Range(_) | Self::Multirange(_) => (4, None),
        }
    }

    /// Payload bytes of a type of variable length; `None` for the others.
    pub const fn varlena_bytes(self) -> Option<u32> {
        match self {
            Self::Inet | Self::Cidr => Some(6),
            Self::Bits { bits } => Some(4 + (bits as u32).div_ceil(8)),
            #[allow(clippy::cast_possible_truncation)] // 4 or 8
            Self::Range(range) => Some(5 + 2 * range.form().1 as u32),
            #[allow(clippy::cast_possible_truncation)] // 4 or 8
            Self::Multirange(range) => {
                let end = range.form().1 as u32;
                // The ends are aligned, from the beginning of the length header on.
                Some((4 + MULTIRANGE_HEAD).next_multiple_of(end) - 4 + 2 * end)
            }
            Self::Path => Some(PATH_HEAD + 16),
            _ => None,
        }
    }

    /// The first 8 bytes of a value of fixed length; what follows them is zero.
    #[inline]
    pub fn image(self, slot: i64) -> [u8; 8] {
        match self {
            #[allow(clippy::cast_precision_loss)] // as SQL's cast
            Self::Point | Self::Corners | Self::Circle => (slot as f64).to_le_bytes(),
            Self::MacAddr => {
                let mut bytes = (slot << 16).to_be_bytes();
                bytes[6..].fill(0);
                bytes
            }
            Self::MacAddr8 => slot.to_be_bytes(),
            Self::Enum { first_oid, .. } => (i64::from(first_oid) + 2 * slot).to_le_bytes(),
            _ => slot.to_le_bytes(),
        }
    }

    /// Writes the payload of a value of this type, which takes `width` bytes.
    pub fn write_to(self, slot: i64, width: u32, out: &mut Vec<u8>) {
        match self {
            Self::Inet | Self::Cidr => {
                out.extend_from_slice(&INET_HEAD);
                out.extend_from_slice(&slot.to_be_bytes()[4..]);
            }
            Self::Range(range) => {
                let (oid, bytes, length) = range.form();
                out.extend_from_slice(&oid.to_le_bytes());
                for end in [slot, slot + length] {
                    out.extend_from_slice(&end.to_le_bytes()[..bytes]);
                }
                out.push(RANGE_LB_INC);
            }
            // Source: `write_multirange_data`, src/backend/utils/adt/multirangetypes.c.
            Self::Multirange(range) => {
                let (_, bytes, length) = range.form();
                out.extend_from_slice(&range.multirange_oid().to_le_bytes());
                out.extend_from_slice(&1_u32.to_le_bytes());
                out.push(RANGE_LB_INC);
                let zeros = (4 + MULTIRANGE_HEAD as usize).next_multiple_of(bytes);
                out.resize(out.len() + zeros - 4 - MULTIRANGE_HEAD as usize, 0);
                for end in [slot, slot + length] {
                    out.extend_from_slice(&end.to_le_bytes()[..bytes]);
                }
            }
            // Source: `PATH`, src/include/utils/geo_decls.h.
            Self::Path => {
                for word in [1_u32, 1, 0] {
                    out.extend_from_slice(&word.to_le_bytes());
                }
                #[allow(clippy::cast_precision_loss)] // as SQL's cast
                out.extend_from_slice(&(slot as f64).to_le_bytes());
                out.extend_from_slice(&[0; 8]);
            }
            Self::Bits { bits } => {
                out.extend_from_slice(&u32::from(bits).to_le_bytes());
                let bytes = usize::from(bits).div_ceil(8);
                let shifted = slot << (8 * bytes - usize::from(bits));
                out.extend_from_slice(&shifted.to_be_bytes()[8 - bytes..]);
            }
            _ => {
                let end = out.len() + width as usize;
                let image = self.image(slot);
                out.extend_from_slice(&image[..image.len().min(width as usize)]);
                out.resize(end, 0);
            }
        }
    }

    /// Whether equal values of an index are equal in their bytes, so that it deduplicates.
    ///
    /// Source: `btequalimage` among the support functions in src/include/catalog/pg_amproc.dat.
    pub const fn has_equal_image(self) -> bool {
        !matches!(self, Self::Interval | Self::Range(_) | Self::Multirange(_))
    }
}

/// So many seconds after 2000-01-01.
///
/// Source: `interval_mul`, src/backend/utils/adt/timestamp.c (REL_18_STABLE), which multiplies
/// in floating point.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
pub(super) fn microseconds(seconds: i64) -> i64 {
    (1_000_000.0 * seconds as f64).round_ties_even() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(of: Counted, number: i64, width: u32) -> Vec<u8> {
        let mut out = Vec::new();
        of.write_to(of.of_number(number).unwrap(), width, &mut out);
        out
    }

    /// Lengths are those of the table, whichever way the bytes lie.
    #[test]
    fn images() {
        assert_eq!(bytes(Counted::Oid, 258, 4), [2, 1, 0, 0]);
        let status = Counted::of("enum", Some("3,16386")).unwrap();
        assert_eq!(bytes(status, 4, 4), [4, 64, 0, 0]);
        assert_eq!(bytes(Counted::MacAddr, 258, 6), [0, 0, 0, 0, 1, 2]);
        assert_eq!(bytes(Counted::Inet, 258, 0), [2, 32, 10, 0, 1, 2]);
        assert_eq!(
            bytes(Counted::Bits { bits: 9 }, 3, 0),
            [9, 0, 0, 0, 1, 0x80]
        );
        let range = bytes(Counted::Range(Range::Int4), 258, 0);
        assert_eq!(range, [64, 15, 0, 0, 2, 1, 0, 0, 3, 1, 0, 0, 2]);
        let multirange = bytes(Counted::Multirange(Range::Int4), 258, 0);
        let expected = [99, 17, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 0, 0, 3, 1, 0, 0];
        assert_eq!(multirange, expected);
        for of in [
            Counted::Path,
            Counted::Multirange(Range::Int8),
            Counted::Multirange(Range::Date),
        ] {
            let length = u32::try_from(bytes(of, 7, 0).len()).unwrap();
            assert_eq!(Some(length), of.varlena_bytes());
        }
        assert_eq!(bytes(Counted::Corners, 1, 32).len(), 32);
        let interval = bytes(Counted::Interval, 1, 16);
        assert_eq!(interval.len(), 16);
        assert_eq!(interval[..4], 1_000_000_u32.to_le_bytes());
        assert_eq!(bytes(Counted::Point, 1, 16)[6..8], [0xf0, 0x3f]);
    }

    /// What goes round does so where the type's operators do; what ends is refused.
    #[test]
    fn ends() {
        assert_eq!(Counted::Letter.next(i64::from(b'z')), Some(i64::from(b'a')));
        assert_eq!(Counted::Time.next(DAY_MICROSECONDS - 1), Some(0));
        assert_eq!(Counted::Oid.of_number(1 << 32), None);
        let status = Counted::of("enum", Some("3,16386")).unwrap();
        assert_eq!((status.next(1), status.next(2)), (Some(2), Some(0)));
        assert_eq!(Counted::of("bit", Some("63")), None);
    }
}
