//! What a page keeps of a line pointer and its tuple: 16 bytes, four to a cache line.
//!
//! ```text
//! | row or redirect's target 4 | xmin 4 | lp_len 2 | root 2 | flags 2 | - 2 |
//! ```
//!
//! Nearly all tuples of a page have neither deleter nor locker and are their own next version; what
//! the others have besides is a [`Link`], beside (`touched`), which most pages do without.

use pgheadroom_layout::OffsetNumber;

use crate::page::{HeapPage, LinePointer, Tuple, XmaxHint, XminHint};
use crate::transaction::Xid;

mod items;

/// Which kind of line pointer it is: 0 unused.
const KIND: u16 = 3;
const REDIRECT: u16 = 1;
const DEAD: u16 = 2;
const NORMAL: u16 = 3;
const HAS_LINK: u16 = 1 << 2;
const IS_HEAP_ONLY: u16 = 1 << 3;
const IS_UPDATED: u16 = 1 << 4;
const IS_HOT_UPDATED: u16 = 1 << 5;
const IS_LOCKED_ONLY: u16 = 1 << 6;
const XMIN_SET: u16 = 1 << 7;
const XMIN_FROZEN: u16 = 1 << 8;
const XMAX_UNSET: u16 = 1 << 9;
const XMAX_KEY_SHARE: u16 = 1 << 10;
/// With `XMAX_UNSET` a row lock FOR NO KEY UPDATE; one FOR SHARE has both bits before.
const XMAX_NO_KEY: u16 = 1 << 11;
const HINTS: u16 = XMIN_SET | XMIN_FROZEN | XMAX_UNSET | XMAX_KEY_SHARE | XMAX_NO_KEY;

/// A line pointer with the most of its tuple.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Packed {
    row: u32,
    pub xmin: Xid,
    pub lp_len: u16,
    pub root: OffsetNumber,
    flags: u16,
}

const _: () = assert!(size_of::<Packed>() == 16);

impl PartialEq for Packed {
    /// How far walks have come says nothing about the page.
    fn eq(&self, other: &Self) -> bool {
        let of = |one: &Self| match one.flags & KIND {
            REDIRECT => Self {
                xmin: Xid::INVALID,
                lp_len: 0,
                ..*one
            },
            _ => *one,
        };
        let (one, other) = (of(self), of(other));
        (one.row, one.xmin, one.lp_len, one.root, one.flags)
            == (other.row, other.xmin, other.lp_len, other.root, other.flags)
    }
}

impl Eq for Packed {}

/// A tuple that nobody has deleted, locked or replaced, and whose inserter's end is noted: what it
/// is to whom depends on that transaction alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plain {
    pub xmin: Xid,
    pub is_frozen: bool,
}

/// What a walk along a chain asks of a version that another one has replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub xmin: Xid,
    pub xmax: Xid,
    /// The version that replaced it, on the same page.
    pub next: OffsetNumber,
    pub is_heap_only: bool,
}

/// How far a walk has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Walked {
    pub at: OffsetNumber,
    pub newest: Xid,
    pub made_by: Xid,
}

impl Packed {
    pub const UNUSED: Self = Self {
        row: 0,
        xmin: Xid::INVALID,
        lp_len: 0,
        root: OffsetNumber(0),
        flags: 0,
    };

    /// A tuple as INSERT makes it.
    pub const fn new(row: u32, xmin: Xid, lp_len: u16) -> Self {
        Self {
            row,
            xmin,
            lp_len,
            flags: NORMAL,
            ..Self::UNUSED
        }
    }

    /// A redirect. It has no `lp_len` and no `xmin`: in their place is how far walks along its
    /// chain have come, and the newest transaction that removed a version on the way.
    pub const fn redirect(target: OffsetNumber) -> Self {
        Self {
            row: target.0 as u32,
            flags: REDIRECT,
            ..Self::UNUSED
        }
    }

    /// A heap-only version as an update makes it.
    pub const fn heap_only(row: u32, xmin: Xid, lp_len: u16, root: OffsetNumber) -> Self {
        Self {
            row,
            xmin,
            lp_len,
            root,
            flags: NORMAL | IS_HEAP_ONLY | IS_UPDATED,
        }
    }

    /// A heap-only version whose inserter is noted as committed, which nobody has changed.
    pub const fn settled_heap_only(row: u32, xmin: Xid, lp_len: u16, root: OffsetNumber) -> Self {
        Self {
            row,
            xmin,
            lp_len,
            root,
            flags: NORMAL | IS_HEAP_ONLY | IS_UPDATED | XMIN_SET,
        }
    }

    pub const fn is_unused(&self) -> bool {
        self.flags & KIND == 0
    }

    /// Whether it is a tuple that nobody has deleted, locked or replaced, and whose inserter's end
    /// is noted; its row then.
    pub const fn settled_row(&self) -> Option<u32> {
        let asked = KIND | HAS_LINK | XMAX_UNSET | XMAX_KEY_SHARE;
        let is_settled = self.flags & asked == NORMAL && self.flags & (XMIN_SET | XMIN_FROZEN) != 0;
        if is_settled { Some(self.row) } else { None }
    }

    /// Whether it is a tuple that a HOT update has replaced, and nothing is left to be noted of it.
    const fn is_replaced(&self) -> bool {
        let unnoted = XMAX_UNSET | XMAX_KEY_SHARE | IS_LOCKED_ONLY;
        let asked = KIND | HAS_LINK | IS_HOT_UPDATED | unnoted;
        let is_updated = self.flags & asked == NORMAL | HAS_LINK | IS_HOT_UPDATED;
        is_updated && self.flags & (XMIN_SET | XMIN_FROZEN) != 0
    }

    /// The row of a tuple; none of another line pointer.
    pub const fn row(&self) -> Option<u32> {
        if self.flags & KIND == NORMAL {
            Some(self.row)
        } else {
            None
        }
    }

    pub const fn is_heap_only(&self) -> bool {
        self.flags & IS_HEAP_ONLY != 0
    }

    /// Whether it is a tuple like this one in all but row and length, and nothing has happened to
    /// either but that the inserter's end may be noted.
    pub fn is_new_like(&self, other: &Self) -> bool {
        let is_new = self.flags & !(XMIN_SET | XMIN_FROZEN) == NORMAL;
        is_new && self.flags == other.flags && self.xmin == other.xmin
    }

    pub fn set_hints(&mut self, xmin: XminHint, xmax: XmaxHint) {
        self.flags = (self.flags & !HINTS) | hints(xmin, xmax);
    }
}

fn hints(xmin: XminHint, xmax: XmaxHint) -> u16 {
    let xmin = match xmin {
        XminHint::Unset => 0,
        XminHint::Set => XMIN_SET,
        XminHint::Frozen => XMIN_FROZEN,
    };
    xmin | match xmax {
        XmaxHint::Set => 0,
        XmaxHint::Unset => XMAX_UNSET,
        XmaxHint::UnsetKeyShare => XMAX_KEY_SHARE,
        XmaxHint::UnsetShare => XMAX_UNSET | XMAX_KEY_SHARE,
        XmaxHint::UnsetNoKeyUpdate => XMAX_UNSET | XMAX_NO_KEY,
    }
}

/// A tuple that is being changed; it is put back when this goes.
pub struct TupleMut<'a> {
    pub(super) page: &'a mut HeapPage,
    pub(super) offset: OffsetNumber,
    pub(super) tuple: Tuple,
}

impl std::ops::Deref for TupleMut<'_> {
    type Target = Tuple;

    fn deref(&self) -> &Tuple {
        &self.tuple
    }
}

impl std::ops::DerefMut for TupleMut<'_> {
    fn deref_mut(&mut self) -> &mut Tuple {
        &mut self.tuple
    }
}

impl Drop for TupleMut<'_> {
    fn drop(&mut self) {
        self.page.put(self.offset, LinePointer::Normal(self.tuple));
    }
}
