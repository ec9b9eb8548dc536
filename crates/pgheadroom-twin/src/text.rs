//! Strings of rows, kept as what they were made of.
//!
//! A profile's strings are hashes of a number, or the hash of the string before repeated. Kept so,
//! a string takes 24 bytes however long it is, and its bytes are made when somebody compares them.

use crate::md5;

/// A string.
#[derive(Debug, Clone)]
pub struct Text(Content);

#[derive(Debug, Clone)]
enum Content {
    /// md5('NUMBER:0') || md5('NUMBER:1') || ..., cut.
    Hashes { number: i64, length: u32 },
    /// A hash's digits again and again, cut.
    Repeated { digest: [u8; 16], length: u32 },
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
        Self(Content::Hashes { number, length })
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
        let digest = md5::digest(bytes);
        Self(Content::Repeated { digest, length })
    }

    /// Whether both were made in the same way, and so are equal.
    pub(crate) fn is_same_making(&self, other: &Self) -> bool {
        use Content::{Hashes, Padded, Repeated};
        self.len() == other.len()
            && match (&self.0, &other.0) {
                (Hashes { number: one, .. }, Hashes { number: two, .. }) => one == two,
                (Repeated { digest: one, .. }, Repeated { digest: two, .. }) => one == two,
                (Padded { letter: one, .. }, Padded { letter: two, .. }) => one == two,
                _ => false,
            }
    }

    /// Bytes of the string.
    #[must_use]
    pub const fn len(&self) -> u32 {
        match &self.0 {
            Content::Hashes { length, .. }
            | Content::Repeated { length, .. }
            | Content::Padded { length, .. } => *length,
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
            Content::Hashes { number, length } => {
                let end = out.len() + *length as usize;
                let mut chunk = 0;
                while out.len() < end {
                    let digits = md5::hex(md5::digest(format!("{number}:{chunk}").as_bytes()));
                    let wanted = (end - out.len()).min(digits.len());
                    out.extend_from_slice(&digits[..wanted]);
                    chunk += 1;
                }
            }
            Content::Repeated { digest, length } => {
                let end = out.len() + *length as usize;
                let digits = md5::hex(*digest);
                while out.len() < end {
                    let wanted = (end - out.len()).min(digits.len());
                    out.extend_from_slice(&digits[..wanted]);
                }
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
