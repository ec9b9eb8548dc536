//! What a page is, in two bytes of its header.
//!
//! ```text
//! | unused line pointers 10 bits | simple | unsettled | new | all-visible | full | free lines |
//! ```

use pgheadroom_layout::page::MAX_HEAP_TUPLES_PER_PAGE;

/// Flags, a bit each, and above them the number of line pointers that are unused.
#[derive(Debug, Clone, Copy)]
pub(super) struct State(u16);

impl PartialEq for State {
    /// What is known of a deferred update says nothing about the page.
    fn eq(&self, other: &Self) -> bool {
        let of = |state: &Self| state.0 & !(Flag::IsSimple as u16);
        of(self) == of(other)
    }
}

impl Eq for State {}

/// A flag of a page.
#[derive(Debug, Clone, Copy)]
#[repr(u16)]
pub(super) enum Flag {
    HasFreeLines = 1,
    IsFull = 1 << 1,
    IsAllVisible = 1 << 2,
    IsNew = 1 << 3,
    /// Whether any tuple is unsettled.
    HasUnsettled = 1 << 4,
    /// Whether the deferred update's old version was settled, and the first one behind its root.
    IsSimple = 1 << 5,
}

const COUNT_SHIFT: u32 = 6;
const FLAGS: u16 = (1 << COUNT_SHIFT) - 1;

const _: () = assert!(MAX_HEAP_TUPLES_PER_PAGE < 1 << (16 - COUNT_SHIFT));

impl State {
    /// A page of zeros.
    pub const NEW: Self = Self(Flag::IsNew as u16);

    #[inline(always)]
    pub const fn has(self, flag: Flag) -> bool {
        self.0 & flag as u16 != 0
    }

    #[inline(always)]
    pub const fn set(&mut self, flag: Flag, is_set: bool) {
        self.0 = if is_set {
            self.0 | flag as u16
        } else {
            self.0 & !(flag as u16)
        };
    }

    /// How many line pointers are unused.
    #[inline(always)]
    pub const fn unused(self) -> u16 {
        self.0 >> COUNT_SHIFT
    }

    #[inline(always)]
    pub const fn set_unused(&mut self, count: u16) {
        self.0 = self.0 & FLAGS | count << COUNT_SHIFT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags and the count leave each other alone.
    #[test]
    fn flags_and_a_count() {
        let mut state = State::NEW;
        state.set_unused(291);
        state.set(Flag::IsFull, true);
        state.set(Flag::IsNew, false);
        assert_eq!(state.unused(), 291);
        state.set_unused(0);
        let flags = [Flag::IsFull, Flag::IsNew, Flag::HasFreeLines].map(|flag| state.has(flag));
        assert_eq!((state.unused(), flags), (0, [true, false, false]));
    }
}
