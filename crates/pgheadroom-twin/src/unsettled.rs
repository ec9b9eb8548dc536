//! Which tuples of a page pruning has to look at: those that were touched since it last did.
//!
//! PostgreSQL looks at every tuple of a page each time. What it finds out about a *settled* tuple
//! is always the same: its inserter is known to have committed, nobody removed it, so it stays
//! and nothing about it is noted. So only chains with an unsettled member can change, and a page
//! of 80 rows of which one was updated is pruned by looking at that one. Leaves out nothing: there
//! is a bit for every line pointer that a page can have.

use pgheadroom_layout::OffsetNumber;
use pgheadroom_layout::page::MAX_HEAP_TUPLES_PER_PAGE;

/// Words of a bit for each line pointer.
const WORDS: usize = 5;

const _: () = assert!(WORDS * 64 >= MAX_HEAP_TUPLES_PER_PAGE as usize);

/// Line pointers, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsettled {
    words: [u64; WORDS],
}

impl Unsettled {
    /// No tuple.
    pub const NONE: Self = Self { words: [0; WORDS] };

    /// All line pointers of a page that has so many.
    pub fn up_to(count: usize) -> Self {
        let word = |number: usize| match count.saturating_sub(64 * number) {
            0 => 0,
            left => u64::MAX >> (64 - left.min(64)),
        };
        Self {
            words: std::array::from_fn(word),
        }
    }

    /// Whether no tuple counts.
    pub fn is_none(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// Notes a line pointer.
    #[inline]
    pub fn add(&mut self, offset: OffsetNumber) {
        let (word, bit) = word_and_bit(offset);
        self.words[word] |= bit;
    }

    /// The line pointers that are noted, in order.
    pub fn listed(&self) -> impl Iterator<Item = OffsetNumber> + Clone + use<> {
        let mut words = self.words;
        let mut word = 0;
        std::iter::from_fn(move || {
            while words[word] == 0 {
                if word + 1 == WORDS {
                    return None;
                }
                word += 1;
            }
            let bit = words[word].trailing_zeros();
            words[word] &= words[word] - 1;
            let position = 64 * word + bit as usize;
            #[allow(clippy::cast_possible_truncation)] // below 320
            Some(OffsetNumber(position as u16 + 1))
        })
    }
}

/// The word and the bit of a line pointer.
#[inline]
fn word_and_bit(offset: OffsetNumber) -> (usize, u64) {
    let position = usize::from(offset.0) - 1;
    (position / 64, 1 << (position % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tuple is noted once, and all are listed in order.
    #[test]
    fn noted_and_listed() {
        let mut touched = Unsettled::NONE;
        assert!(touched.is_none() && touched.listed().next().is_none());
        for offset in [64, 3, 291, 3, 1, 65, 320] {
            touched.add(OffsetNumber(offset));
        }
        let listed: Vec<u16> = touched.listed().map(|at| at.0).collect();
        assert_eq!(listed, [1, 3, 64, 65, 291, 320]);
    }

    /// Those up to a number are each of them.
    #[test]
    fn all_of_a_page() {
        for count in [0, 1, 63, 64, 65, 291, 320_u16] {
            let listed: Vec<u16> = Unsettled::up_to(count.into())
                .listed()
                .map(|at| at.0)
                .collect();
            assert_eq!(listed, (1..=count).collect::<Vec<_>>());
        }
    }
}
