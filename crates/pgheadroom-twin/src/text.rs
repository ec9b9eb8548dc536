//! Strings of rows, kept as what they were made of.
//!
//! A profile's strings are hashes of a number, or the hash of the string before repeated. Kept so,
//! a string takes 24 bytes however long it is, and its bytes are made when somebody compares them.

use crate::md5;
use crate::wrap::{NAME_DIGITS, UUID_BYTES, Wrap};

/// Where the ordered uuids begin: so that none is at the end of what a key's code may be.
const ORDERED_UUID: i64 = 1 << 60;

/// A string.
#[derive(Debug, Clone)]
pub struct Text(Content);

#[derive(Debug, Clone)]
enum Content {
    /// md5('NUMBER:0') || md5('NUMBER:1') || ..., cut, in a type's way.
    Hashes {
        number: i64,
        length: u32,
        wrap: Wrap,
    },
    /// A hash's digits again and again, cut, in a type's way.
    Repeated {
        digest: [u8; 16],
        length: u32,
        wrap: Wrap,
    },
    /// A letter, then blanks.
    Padded { letter: u8, length: u32 },
    /// Anything else.
    Bytes(Box<[u8]>),
}

const _: () = assert!(size_of::<Text>() == 24);

impl Text {
    /// A string of these characters.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self(Content::Bytes(bytes.into()))
    }

    /// Digits of hashes of this number, as loaded rows have them.
    #[must_use]
    pub const fn hashes(number: i64, length: u32) -> Self {
        Self::wrapped_hashes(number, length, Wrap::None)
    }

    /// Such digits as a value of another type; `length` digits, of a bytea bytes.
    pub(crate) const fn wrapped_hashes(number: i64, length: u32, wrap: Wrap) -> Self {
        Self(Content::Hashes {
            number,
            length,
            wrap,
        })
    }

    /// `md5(number)` as a uuid.
    pub(crate) fn uuid(number: i64) -> Self {
        Self::uuid_of(md5::digest(number.to_string().as_bytes()))
    }

    /// A uuid that is in the order of its number: 2^60 and the number, then half of its hash.
    pub(crate) fn ordered_uuid(number: i64) -> Self {
        let mut digest = md5::digest(number.to_string().as_bytes());
        digest.copy_within(..8, 8);
        digest[..8].copy_from_slice(&(ORDERED_UUID + number).to_be_bytes());
        Self::uuid_of(digest)
    }

    /// A number in decimal behind zeros, of so many characters; the last ones are cut.
    pub(crate) fn ordered(number: i64, length: u32) -> Self {
        let length = length as usize;
        let mut text = format!("{:0>length$}", number.to_string());
        text.truncate(length);
        Self::new(&text)
    }

    /// Half of a uuid, whose order is that of the uuids: hashes differ in it, and numbers too.
    pub(crate) fn uuid_code(&self) -> i64 {
        let half: [u8; 8] = self.uuid_digest()[..8].try_into().expect("half of 16");
        (u64::from_be_bytes(half) ^ 1 << 63).cast_signed()
    }

    const fn uuid_of(digest: [u8; 16]) -> Self {
        Self(Content::Repeated {
            digest,
            length: UUID_BYTES,
            wrap: Wrap::Uuid,
        })
    }

    /// A letter padded with blanks, or blanks alone.
    #[must_use]
    pub const fn padded(letter: u8, length: u32) -> Self {
        Self(Content::Padded { letter, length })
    }

    /// `left(repeat(md5(this), ...), length)`.
    ///
    /// `is_padded` leaves out blanks at the end of what is hashed, as the cast of a bpchar to text
    /// does.
    #[must_use]
    pub fn hashed_again(&self, length: u32, is_padded: bool) -> Self {
        let bytes = self.to_bytes();
        let bytes = if is_padded { trimmed(&bytes) } else { &bytes };
        Self(Content::Repeated {
            digest: md5::digest(bytes),
            length,
            wrap: Wrap::None,
        })
    }

    /// What an update makes of a value of another type than text: of the hash of what is inside.
    /// `grows_bytes` more.
    pub(crate) fn changed(&self, grows_bytes: u32) -> Self {
        let wrap = self.wrap();
        match wrap {
            Wrap::Uuid => {
                let digits = md5::hex(self.uuid_digest());
                let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
                return Self::uuid_of(md5::digest(&groups.join(&b'-')));
            }
            Wrap::Bytea => {
                let length = self.len() + grows_bytes;
                let digest = md5::digest(&self.to_bytes());
                return Self(Content::Repeated {
                    digest,
                    length,
                    wrap,
                });
            }
            _ => {}
        }
        let inside = self.inside();
        let length = match wrap {
            Wrap::Name => NAME_DIGITS,
            _ => u32::try_from(inside.len()).expect("a value below 1 GB") + grows_bytes,
        };
        Self(Content::Repeated {
            digest: md5::digest(&inside),
            length,
            wrap,
        })
    }

    const fn wrap(&self) -> Wrap {
        match &self.0 {
            Content::Hashes { wrap, .. } | Content::Repeated { wrap, .. } => *wrap,
            Content::Padded { .. } | Content::Bytes(_) => Wrap::None,
        }
    }

    fn uuid_digest(&self) -> [u8; 16] {
        match &self.0 {
            Content::Repeated { digest, .. } => *digest,
            _ => unreachable!("a uuid is kept as its bytes"),
        }
    }

    /// The bytes by which B-tree operators order values.
    pub(crate) fn order_bytes(&self) -> Vec<u8> {
        match self.wrap() {
            Wrap::None | Wrap::Uuid | Wrap::Bytea => self.to_bytes(),
            wrap => wrap.ordered_by(self.inside()),
        }
    }

    /// The digits that a type stands around.
    pub(crate) fn inside(&self) -> Vec<u8> {
        let mut digits = Vec::new();
        match &self.0 {
            Content::Hashes {
                number,
                length,
                wrap,
            } => write_hashes(*number, wrap.digits_of_hash(*length), &mut digits),
            Content::Repeated {
                digest,
                length,
                wrap,
            } => write_repeated(*digest, wrap.digits_of_hash(*length), &mut digits),
            Content::Padded { .. } | Content::Bytes(_) => self.write_to(&mut digits),
        }
        digits
    }

    /// Whether both were made in the same way, and so are equal.
    pub(crate) fn is_same_making(&self, other: &Self) -> bool {
        use Content::{Hashes, Padded, Repeated};
        // Some types pad what stands around the digits, so equal bytes do not mean equal digits.
        self.digits_len() == other.digits_len()
            && self.wrap() == other.wrap()
            && match (&self.0, &other.0) {
                (Hashes { number: one, .. }, Hashes { number: two, .. }) => one == two,
                (Repeated { digest: one, .. }, Repeated { digest: two, .. }) => one == two,
                (Padded { letter: one, .. }, Padded { letter: two, .. }) => one == two,
                _ => false,
            }
    }

    /// Bytes that it is made with, of a type around digits those of the digits.
    const fn digits_len(&self) -> u32 {
        match &self.0 {
            Content::Hashes { length, .. }
            | Content::Repeated { length, .. }
            | Content::Padded { length, .. } => *length,
            #[allow(clippy::cast_possible_truncation)] // a value has less than 1 GB
            Content::Bytes(bytes) => bytes.len() as u32,
        }
    }

    /// Bytes of the string.
    #[must_use]
    pub const fn len(&self) -> u32 {
        match &self.0 {
            Content::Hashes { length, wrap, .. } | Content::Repeated { length, wrap, .. } => {
                wrap.payload_bytes(*length)
            }
            Content::Padded { length, .. } => *length,
            #[allow(clippy::cast_possible_truncation)] // a value has less than 1 GB
            Content::Bytes(bytes) => bytes.len() as u32,
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes themselves.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() as usize);
        self.write_to(&mut bytes);
        bytes
    }

    /// Adds the bytes to a buffer.
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Content::Hashes {
                number,
                length,
                wrap: Wrap::None,
            } => write_hashes(*number, *length, out),
            Content::Repeated {
                digest,
                length,
                wrap: Wrap::None,
            } => write_repeated(*digest, *length, out),
            Content::Repeated {
                digest,
                wrap: Wrap::Uuid,
                ..
            } => out.extend_from_slice(digest),
            Content::Hashes { wrap, .. } | Content::Repeated { wrap, .. } => {
                wrap.write_to(&self.inside(), out);
            }
            Content::Padded { letter, length } => {
                if *length > 0 {
                    out.push(*letter);
                    out.extend(std::iter::repeat_n(b' ', *length as usize - 1));
                }
            }
            Content::Bytes(bytes) => out.extend_from_slice(bytes),
        }
    }
}

/// md5('NUMBER:0') || md5('NUMBER:1') || ..., so many digits.
fn write_hashes(number: i64, length: u32, out: &mut Vec<u8>) {
    let end = out.len() + length as usize;
    if out.len() == end {
        return;
    }
    let mut hashed = format!("{number}:").into_bytes();
    let before = hashed.len();
    let mut chunk = 0_u32;
    while out.len() < end {
        match u8::try_from(chunk) {
            Ok(digit @ 0..=9) => hashed.push(b'0' + digit),
            _ => hashed.extend_from_slice(chunk.to_string().as_bytes()),
        }
        let digits = md5::hex(md5::digest(&hashed));
        let wanted = (end - out.len()).min(digits.len());
        out.extend_from_slice(&digits[..wanted]);
        hashed.truncate(before);
        chunk += 1;
    }
}

/// A hash's digits again and again, so many.
fn write_repeated(digest: [u8; 16], length: u32, out: &mut Vec<u8>) {
    let end = out.len() + length as usize;
    let digits = md5::hex(digest);
    while out.len() < end {
        let wanted = (end - out.len()).min(digits.len());
        out.extend_from_slice(&digits[..wanted]);
    }
}

/// Without blanks at the end. Source: `bcTruelen`, src/backend/utils/adt/varchar.c.
pub(crate) fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != b' ');
    &bytes[..end.map_or(0, |last| last + 1)]
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        if self.len() != other.len() {
            return false;
        }
        self.is_same_making(other) || self.to_bytes() == other.to_bytes()
    }
}

impl Eq for Text {}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &Text) -> String {
        String::from_utf8(of.to_bytes()).unwrap()
    }

    /// Loaded strings are hashes of number and chunk, changed ones the old one's hash repeated.
    #[test]
    fn made_of_hashes() {
        let loaded = Text::hashes(1, 40);
        let one = md5::hex(md5::digest(b"1:0"));
        let two = md5::hex(md5::digest(b"1:1"));
        let both = [&one[..], &two[..8]].concat();
        assert_eq!(loaded.to_bytes(), both);
        let changed = loaded.hashed_again(70, false);
        let digits = md5::hex(md5::digest(&both));
        assert_eq!(&changed.to_bytes()[32..64], &digits);
        assert_eq!(changed.len(), 70);
    }

    /// Arrays of strings whose lengths differ by less than the padding are no equal ones.
    #[test]
    fn padding_hides_no_digits() {
        let [one, two] = [9, 10].map(|length| Text::wrapped_hashes(7, length, Wrap::Texts));
        assert_eq!(one.len(), two.len());
        assert!(!one.is_same_making(&two));
        assert_ne!(one, two);
    }

    /// A bpchar is hashed without its blanks.
    #[test]
    fn blanks_are_not_hashed() {
        let padded = Text::padded(b'q', 10);
        assert_eq!(text(&padded), "q         ");
        assert_eq!(padded, Text::new("q         "));
        assert_eq!(
            padded.hashed_again(10, true),
            Text::new("q").hashed_again(10, false)
        );
    }
}
