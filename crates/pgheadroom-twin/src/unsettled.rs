//! Which tuples of a page pruning has to look at: those that were touched since it last did.
//!
//! PostgreSQL looks at every tuple of a page each time. What it finds out about a *settled* tuple
//! is always the same: its inserter is known to have committed, nobody removed it, so it stays
//! and nothing about it is noted. So only chains with an unsettled member can change, and a page
//! of 80 rows of which one was updated is pruned by looking at that one. Leaves out nothing:
//! when too many tuples were touched to remember, all are looked at.

use pgheadroom_layout::OffsetNumber;

/// Line pointers to remember; more are rarely touched between two prunings. 16 bytes in all.
const CAPACITY: usize = 7;

/// Line pointers whose tuples are not known to be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Unsettled {
    /// How many; above the capacity when all tuples count. The first, for most only ask for it.
    len: u16,
    offsets: [u16; CAPACITY],
}

impl Unsettled {
    /// No tuple.
    pub const NONE: Self = Self {
        offsets: [0; CAPACITY],
        len: 0,
    };

    /// All tuples of the page.
    pub const ALL: Self = Self {
        offsets: [0; CAPACITY],
        len: u16::MAX,
    };

    /// Whether no tuple counts.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.len == 0
    }

    /// The line pointers to look at; none when that is all of them.
    pub fn listed(&self) -> Option<impl Iterator<Item = OffsetNumber> + Clone + use<>> {
        let (offsets, len) = (self.offsets, usize::from(self.len));
        (len <= CAPACITY).then(|| offsets.into_iter().take(len).map(OffsetNumber))
    }

    /// Notes that a tuple was touched.
    pub fn add(&mut self, offset: OffsetNumber) {
        let len = usize::from(self.len);
        if len > CAPACITY || self.offsets[..len].contains(&offset.0) {
            return;
        }
        if len == CAPACITY {
            *self = Self::ALL;
        } else {
            self.offsets[len] = offset.0;
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tuple is remembered once; too many mean all.
    #[test]
    fn too_many_mean_all() {
        let mut touched = Unsettled::NONE;
        for offset in [3, 5, 3, 1, 2, 4, 6, 7] {
            touched.add(OffsetNumber(offset));
        }
        let listed: Vec<u16> = touched.listed().expect("seven").map(|at| at.0).collect();
        assert_eq!(listed, [3, 5, 1, 2, 4, 6, 7]);
        touched.add(OffsetNumber(8));
        assert!(touched.listed().is_none());
        touched.add(OffsetNumber(9));
        assert!(touched.listed().is_none());
    }
}
