//! Alignment: how PostgreSQL rounds offsets and lengths.
//!
//! First step of every other module here. Models a 64-bit build (`MAXIMUM_ALIGNOF` 8), the only
//! kind that PostgreSQL's own packages ship today; 32-bit builds are left out.

/// Largest alignment that any type needs; tuples start and end on a multiple of it.
///
/// Source: `MAXIMUM_ALIGNOF`, src/include/pg_config.h of a 64-bit build.
pub const MAXIMUM_ALIGNOF: u32 = 8;

/// Alignment of a type, `pg_type.typalign`.
///
/// Source: `TYPALIGN_*`, src/include/catalog/pg_type.h (REL_18_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alignment {
    /// `c`: any byte.
    Char,
    /// `s`: 2 bytes.
    Short,
    /// `i`: 4 bytes.
    Int,
    /// `d`: 8 bytes.
    Double,
}

impl Alignment {
    /// The alignment in bytes: 1, 2, 4 or 8.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Char => 1,
            Self::Short => 2,
            Self::Int => 4,
            Self::Double => 8,
        }
    }

    /// The letter in `pg_type.typalign`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Char => 'c',
            Self::Short => 's',
            Self::Int => 'i',
            Self::Double => 'd',
        }
    }

    /// `offset` rounded up to this alignment.
    #[must_use]
    pub const fn align(self, offset: u64) -> u64 {
        offset.next_multiple_of(self.bytes() as u64)
    }
}

/// `length` rounded up to a multiple of 8.
///
/// Source: `MAXALIGN`, src/include/c.h (REL_18_STABLE).
#[must_use]
pub const fn maxalign(length: u32) -> u32 {
    length.next_multiple_of(MAXIMUM_ALIGNOF)
}

/// `length` rounded down to a multiple of 8.
///
/// Source: `MAXALIGN_DOWN`, src/include/c.h (REL_18_STABLE).
#[must_use]
pub const fn maxalign_down(length: u32) -> u32 {
    length - length % MAXIMUM_ALIGNOF
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every alignment divides the largest one, so a tuple start satisfies all of them.
    #[test]
    fn alignments_nest() {
        for alignment in [
            Alignment::Char,
            Alignment::Short,
            Alignment::Int,
            Alignment::Double,
        ] {
            assert_eq!(MAXIMUM_ALIGNOF % alignment.bytes(), 0);
        }
    }

    proptest! {
        /// Rounding up gives the nearest multiple that is not smaller; rounding down mirrors it.
        #[test]
        fn maxalign_is_the_nearest_multiple(length in 0_u32..1 << 30) {
            let up = maxalign(length);
            let down = maxalign_down(length);
            prop_assert_eq!(up % 8, 0);
            prop_assert_eq!(down % 8, 0);
            prop_assert!(up >= length && up - length < 8);
            prop_assert!(down <= length && length - down < 8);
        }
    }
}
