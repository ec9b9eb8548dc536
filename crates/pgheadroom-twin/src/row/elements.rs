//! Values of several elements: arrays, a tsvector's words, a jsonb array of strings.
//!
//! ```text
//! element number j, from 1, of the value N   hashint8extended(N, j) modulo ndistinct
//!   where the first `alike` of them are     the same hash modulo T, see `Shares`
//!   commoner than the rest
//! a string                                   the number in decimal behind zeros
//! changed                                    each number one more, modulo ndistinct
//! ```
//!
//! Stored, without the length header:
//!
//! ```text
//! text[], varchar[]   dimensions .. bound | for each: length, digits, zeros
//! int2[] .. int8[]    dimensions .. bound | elements
//! tsvector            count | for each: length and place | words, each once and in order
//! jsonb               count | for each: length, of every 32nd the end | strings
//! ```
//!
//! The same in SQL is in `python/pgheadroom/play/elements.py`.

use crate::row::hash::hashint8extended;
use crate::wrap::{ARRAY_HEAD, TEXT_OID, VARCHAR_OID};

/// Source: `JB_FARRAY`, `JENTRY_HAS_OFF`, `JB_OFFSET_STRIDE`, src/include/utils/jsonb.h.
const JB_FARRAY: u32 = 0x4000_0000;
const JENTRY_HAS_OFF: u32 = 0x8000_0000;
const JENTRY_OFFLENMASK: u32 = 0x0FFF_FFFF;
const JB_OFFSET_STRIDE: usize = 32;
/// Bits of a word's length and the mark before it. Source: `WordEntry`,
/// src/include/tsearch/ts_type.h.
const WORD_PLACE_SHIFT: u32 = 12;
const WORD: usize = 4;

/// What elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Integers { width: u8, oid: u32 },
    Strings { oid: u32 },
    Words,
    Jsonb,
}

impl ElementKind {
    /// By the type's name; `None` for types that have no elements here.
    pub fn of(typname: &str) -> Option<Self> {
        let base = typname.strip_suffix("[]");
        let base = base.map(|element| element.split_once('(').map_or(element, |(base, _)| base));
        Some(match (base, typname) {
            (Some("int2"), _) => Self::Integers { width: 2, oid: 21 },
            (Some("int4"), _) => Self::Integers { width: 4, oid: 23 },
            (Some("int8"), _) => Self::Integers { width: 8, oid: 20 },
            (Some("text"), _) => Self::Strings { oid: TEXT_OID },
            (Some("varchar"), _) => Self::Strings { oid: VARCHAR_OID },
            (None, "tsvector") => Self::Words,
            (None, "jsonb") => Self::Jsonb,
            _ => return None,
        })
    }
}

/// How often each of the elements stands.
///
/// The first `alike` of them are equally frequent, the next two times as many half as frequent,
/// the next four times as many a quarter, and so on: Zipf's law with a flat head, in whole numbers,
/// so that SQL has the very same elements. All are alike where `alike` is `ndistinct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    alike: i64,
    /// Draws that each full step has: `alike` times two to the number of these.
    step: i64,
    /// Steps before the last, which may have a part of its elements.
    steps: u32,
    /// All draws.
    total: i64,
}

impl Shares {
    fn new(ndistinct: i64, alike: i64) -> Self {
        let alike = alike.clamp(1, ndistinct);
        let mut steps = 0;
        // Elements of these steps and of one more: alike * (2^(steps + 1) - 1).
        while let Some(all) = 2_i64
            .checked_pow(steps + 1)
            .and_then(|power| alike.checked_mul(power - 1))
            && all < ndistinct
        {
            steps += 1;
        }
        let before = alike * (2_i64.pow(steps) - 1);
        let step = alike * 2_i64.pow(steps);
        // Profiles refuse what does not fit.
        let whole = i64::from(steps).saturating_mul(step);
        Self {
            alike,
            step,
            steps,
            total: whole.saturating_add(ndistinct - before).max(1),
        }
    }

    /// The element that a hash draws.
    fn number(&self, hash: i64) -> i64 {
        let draw = hash.rem_euclid(self.total);
        let step = u32::try_from((draw / self.step).min(self.steps.into())).expect("few steps");
        let within = draw - i64::from(step) * self.step;
        self.alike * (2_i64.pow(step) - 1) + (within >> (self.steps - step))
    }
}

/// How values of several elements are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements {
    pub(crate) kind: ElementKind,
    /// Fewest and most elements of a value.
    pub(crate) count: (u32, u32),
    /// Different elements, at least 1.
    pub(crate) ndistinct: i64,
    pub(crate) shares: Shares,
    /// Digits of a string.
    pub(crate) digits: u32,
}

impl Elements {
    /// Of a type by its name; `None` for types that have no elements here.
    #[must_use]
    pub fn of(typname: &str, count: (u32, u32), ndistinct: i64, digits: u32) -> Option<Self> {
        let ndistinct = ndistinct.max(1);
        ElementKind::of(typname).map(|kind| Self {
            kind,
            count,
            ndistinct,
            shares: Shares::new(ndistinct, ndistinct),
            digits,
        })
    }

    /// The same with the first so many of them alike, and the others less frequent.
    #[must_use]
    pub fn with_alike(mut self, alike: i64) -> Self {
        self.shares = Shares::new(self.ndistinct, alike);
        self
    }

    /// Alignment, and no fixed length.
    pub(crate) const fn layout(&self) -> (u32, Option<u32>) {
        match self.kind {
            ElementKind::Integers { width: 8, .. } => (8, None),
            _ => (4, None),
        }
    }

    /// The stored value of this number in a row with this hash.
    pub(crate) fn value(&self, number: i64, hash: i64) -> Vec<u8> {
        let (min, max) = self.count;
        let count = i64::from(min) + hash.rem_euclid(i64::from(max - min) + 1);
        let numbers = (1..=count).map(|j| self.shares.number(hashint8extended(number, j)));
        self.stored(numbers.collect())
    }

    /// The stored value after an update of this one.
    pub(crate) fn changed(&self, stored: &[u8]) -> Vec<u8> {
        let numbers = self.numbers(stored).into_iter();
        self.stored(numbers.map(|one| (one + 1) % self.ndistinct).collect())
    }

    /// A string of this number, as SQL's `lpad` makes it.
    fn string(&self, number: i64) -> Vec<u8> {
        let digits = self.digits as usize;
        let mut string = format!("{number:0digits$}").into_bytes();
        string.truncate(digits);
        string
    }

    fn stored(&self, mut numbers: Vec<i64>) -> Vec<u8> {
        let words = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let count = |numbers: &[i64]| u32::try_from(numbers.len()).expect("elements of a value");
        match self.kind {
            ElementKind::Integers { width, oid } => {
                let mut bytes = words(&[1, 0, oid, count(&numbers), 1]);
                for number in numbers {
                    bytes.extend(&number.to_le_bytes()[..usize::from(width)]);
                }
                bytes
            }
            ElementKind::Strings { oid } => {
                let mut bytes = words(&[1, 0, oid, count(&numbers), 1]);
                for number in numbers {
                    bytes.extend(((self.digits + 4) << 2).to_le_bytes());
                    bytes.extend(self.string(number));
                    bytes.resize(bytes.len().next_multiple_of(4), 0);
                }
                bytes
            }
            ElementKind::Words => {
                numbers.sort_unstable();
                numbers.dedup();
                let places = (0..count(&numbers)).map(|at| at * self.digits);
                let entries = places.map(|place| place << WORD_PLACE_SHIFT | self.digits << 1);
                let head: Vec<u32> = std::iter::once(count(&numbers)).chain(entries).collect();
                let mut bytes = words(&head);
                bytes.extend(numbers.iter().flat_map(|number| self.string(*number)));
                bytes
            }
            ElementKind::Jsonb => {
                let entries = (0..numbers.len()).map(|at| {
                    if at.is_multiple_of(JB_OFFSET_STRIDE) {
                        let end = u32::try_from(at + 1).expect("elements") * self.digits;
                        end | JENTRY_HAS_OFF
                    } else {
                        self.digits
                    }
                });
                let head = JB_FARRAY | count(&numbers);
                let head: Vec<u32> = std::iter::once(head).chain(entries).collect();
                let mut bytes = words(&head);
                bytes.extend(numbers.iter().flat_map(|number| self.string(*number)));
                bytes
            }
        }
    }

    /// The elements of a stored value, as bytes: of numbers those in little endian.
    pub(crate) fn parts<'a>(&self, stored: &'a [u8]) -> Vec<&'a [u8]> {
        let digits = self.digits as usize;
        let (start, width, step) = match self.kind {
            ElementKind::Integers { width, .. } => {
                (ARRAY_HEAD as usize, width.into(), width.into())
            }
            ElementKind::Strings { .. } => {
                let step = WORD + digits.next_multiple_of(WORD);
                (ARRAY_HEAD as usize + WORD, digits, step)
            }
            ElementKind::Words | ElementKind::Jsonb => {
                let head = u32::from_le_bytes(stored[..WORD].try_into().expect("4 bytes"));
                let count = (head & JENTRY_OFFLENMASK) as usize;
                (WORD + count * WORD, digits, digits)
            }
        };
        let starts = (start..stored.len()).step_by(step.max(1));
        starts.map(|at| &stored[at..at + width]).collect()
    }

    fn numbers(&self, stored: &[u8]) -> Vec<i64> {
        let is_integer = matches!(self.kind, ElementKind::Integers { .. });
        let parts = self.parts(stored).into_iter();
        parts
            .map(|part| {
                if !is_integer {
                    let text = std::str::from_utf8(part).expect("digits");
                    return text.parse().expect("digits of a number");
                }
                // They are not negative.
                let mut bytes = [0; 8];
                bytes[..part.len()].copy_from_slice(part);
                i64::from_le_bytes(bytes)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [&str; 7] = [
        "int2[]",
        "int4[]",
        "int8[]",
        "text[]",
        "varchar(9)[]",
        "tsvector",
        "jsonb",
    ];

    /// Elements are read back, and changed ones are the next.
    #[test]
    fn elements_are_read_back() {
        for typname in TYPES {
            let elements = Elements::of(typname, (40, 40), 1000, 5).unwrap();
            let stored = elements.value(7, 0);
            let mut expected: Vec<i64> = (1..=40)
                .map(|j| hashint8extended(7, j).rem_euclid(1000))
                .collect();
            if typname == "tsvector" {
                expected.sort_unstable();
                expected.dedup();
            }
            assert_eq!(elements.numbers(&stored), expected, "{typname}");
            let mut next: Vec<i64> = expected.iter().map(|one| (one + 1) % 1000).collect();
            if typname == "tsvector" {
                next.sort_unstable();
            }
            let changed = elements.changed(&stored);
            assert_eq!(elements.numbers(&changed), next, "{typname}");
            assert_eq!(changed.len(), stored.len(), "{typname}");
        }
        assert!(Elements::of("json", (1, 1), 1, 1).is_none());
    }

    /// Each element is drawn as often as its step says, and none above the last.
    #[test]
    fn commoner_elements_are_drawn_more() {
        // Steps of 3, 6 and 12 elements, and 2 of the next 24.
        let shares = Shares::new(23, 3);
        let mut counts = [0; 23];
        for draw in 0..shares.total {
            counts[usize::try_from(shares.number(draw)).unwrap()] += 1;
        }
        let expected: Vec<i32> = [(3, 8), (6, 4), (12, 2), (2, 1)]
            .into_iter()
            .flat_map(|(count, often)| std::iter::repeat_n(often, count))
            .collect();
        assert_eq!(counts.to_vec(), expected);
        assert_eq!(shares.number(-1), 22);
        let even = Shares::new(7, 7);
        assert_eq!((even.total, even.number(-1), even.number(15)), (7, 6, 1));
        // As large as profiles have them.
        let large = Shares::new(2_i64.pow(50), 1);
        assert!(large.number(i64::MAX) < 2_i64.pow(50) && large.number(i64::MIN) >= 0);
        let even = Shares::new(2_i64.pow(62), 2_i64.pow(62));
        assert_eq!(even.number(i64::MAX), i64::MAX % 2_i64.pow(62));
    }
}
