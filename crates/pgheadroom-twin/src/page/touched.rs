//! What a page has besides its items once tuples were touched that pruning left alone: which ones
//! are unsettled, and the links of those with a deleter, a locker or a next version.
//!
//! It is memory of its own, which most pages of a large table do without. A page that is being
//! filled has none either: all its tuples are unsettled.

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::page::state::Flag;
use crate::page::{HeapPage, Tid, index_of, offset_of};
use crate::transaction::Xid;
use crate::unsettled::Unsettled;

/// The rest of a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub xmax: Xid,
    pub next: Tid,
}

impl Link {
    const NONE: Self = Self {
        xmax: Xid::INVALID,
        next: Tid {
            block: BlockNumber(0),
            offset: OffsetNumber(0),
        },
    };
}

/// What few pages have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touched {
    /// Tuples that are not known to be settled.
    pub unsettled: Unsettled,
    /// By position, shorter than the items or empty where none has one.
    pub links: Vec<Link>,
}

impl HeapPage {
    /// The link of a tuple that has one.
    #[inline]
    pub(super) fn link(&self, offset: OffsetNumber) -> Link {
        let touched = self.touched.as_ref().expect("a page with links");
        touched.links[index_of(offset)]
    }

    /// Puts the link of a tuple.
    pub(super) fn set_link(&mut self, offset: OffsetNumber, link: Link) {
        let (position, count) = (index_of(offset), self.items.len());
        let links = &mut self.touched_mut().links;
        if links.len() <= position {
            links.resize(count, Link::NONE);
        }
        links[position] = link;
    }

    fn touched_mut(&mut self) -> &mut Touched {
        if self.touched.is_none() {
            let unsettled = self.touched_tuples();
            self.touched = Some(Box::new(Touched {
                unsettled,
                links: Vec::new(),
            }));
        }
        self.touched.as_mut().expect("it was made")
    }

    /// The tuples that were touched since pruning looked at all.
    pub(super) fn touched_tuples(&self) -> Unsettled {
        match &self.touched {
            Some(touched) => touched.unsettled,
            None if self.state.has(Flag::HasUnsettled) => Unsettled::up_to(self.items.len()),
            None => Unsettled::NONE,
        }
    }

    /// Notes that a tuple was touched.
    #[inline]
    pub(super) fn unsettle(&mut self, offset: OffsetNumber) {
        if let Some(touched) = &mut self.touched {
            touched.unsettled.add(offset);
        } else if !self.state.has(Flag::HasUnsettled) && self.items.len() > 1 {
            self.touched_mut().unsettled.add(offset);
        }
        self.state.set(Flag::HasUnsettled, true);
    }

    /// Notes that the tuples from this position on are new.
    pub(super) fn unsettle_from(&mut self, position: usize) {
        if position == 0 && self.touched.is_none() {
            self.state.set(Flag::HasUnsettled, !self.items.is_empty());
            return;
        }
        for position in position..self.items.len() {
            self.unsettle(offset_of(position));
        }
    }

    /// These are the tuples that are left to look at.
    pub(super) fn leave_unsettled(&mut self, left: Unsettled) {
        self.state.set(Flag::HasUnsettled, !left.is_none());
        if !left.is_none() {
            self.touched_mut().unsettled = left;
        } else if let Some(touched) = &mut self.touched {
            if touched.links.is_empty() {
                self.touched = None;
            } else {
                touched.unsettled = left;
            }
        }
    }
}
