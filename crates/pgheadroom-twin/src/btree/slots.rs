//! How a page keeps its entries: 8 bytes each beside the key where they are of one size.
//!
//! ```text
//! | block 4 | offset number 2 | dead 1 bit, number of the rest 15 bits |
//!                               0: a leaf tuple of the page's usual form
//!                               else: its form, the page below and its posting list stand apart
//! ```
//!
//! Nearly all entries of a leaf are tuples of one form: their sizes stand once. Read as a number,
//! the first six bytes are in the order of TIDs.

use std::ops::Range;

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::btree::item::{Form, Head, Item, OwnedItem, PostingList};
use crate::btree::key::ShapeId;
use crate::memory::{Pieces, prefetch};
use crate::page::Tid;

/// An entry, or what of it is on every page.
type Slot = u64;

const DEAD: Slot = 1 << 15;
const REST: Slot = DEAD - 1;
/// Bits below the TID.
const TID_SHIFT: u32 = 16;

/// TIDs in a cache line.
const TIDS_PER_LINE: usize = 64 / size_of::<Tid>();

/// No form, until the first leaf tuple comes.
const NO_FORM: Form = Form {
    shape: ShapeId(0),
    bytes: 0,
    kept_columns: 0,
};

/// What an entry has besides its TID, where that is not as usual.
#[derive(Debug, Clone)]
struct Rest {
    form: Form,
    /// The page below; of a place that nobody uses the number of the next such.
    child: u32,
    posting: Option<Box<PostingList>>,
}

const _: () = assert!(size_of::<Rest>() == 24);

/// The entries of a page, without their keys.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    rests: Vec<Rest>,
    /// The usual form.
    form: Form,
    /// Number of the first of the rests that nobody uses; 0: none.
    unused: u16,
}

impl Slots {
    pub const fn new() -> Self {
        Self {
            slots: Vec::new(),
            rests: Vec::new(),
            form: NO_FORM,
            unused: 0,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn reserve_exact(&mut self, count: usize) {
        self.slots.reserve_exact(count);
    }

    #[inline]
    pub fn get(&self, position: usize) -> Item<'_> {
        let slot = self.slots[position];
        let rest = number_of(slot).map(|at| &self.rests[at]);
        #[allow(clippy::cast_possible_truncation)] // as they were put together
        Item {
            head: Head {
                block: (slot >> 32) as u32,
                offset: (slot >> TID_SHIFT) as u16,
                is_dead: slot & DEAD != 0,
                form: rest.map_or(self.form, |rest| rest.form),
                child: rest.map_or(0, |rest| rest.child),
            },
            posting: rest.and_then(|rest| rest.posting.as_deref()),
        }
    }

    /// The TIDs of a posting list; none of another entry.
    #[inline]
    pub fn posting(&self, position: usize) -> Option<&[Tid]> {
        self.list(position).map(PostingList::tids)
    }

    /// The TIDs of a leaf tuple as numbers in their order, one after the other.
    #[inline]
    pub fn each_tid_number(&self, position: usize, mut take: impl FnMut(u64)) {
        match self.posting(position) {
            None => take(self.slots[position] >> TID_SHIFT),
            Some(tids) => tids.iter().for_each(|&tid| take(tid_number(tid))),
        }
    }

    /// The TID as a number in the order of TIDs; 0 for none, that of a posting list's first one.
    #[inline]
    pub fn tid_number(&self, position: usize) -> i64 {
        (self.slots[position] >> TID_SHIFT).cast_signed()
    }

    #[inline]
    pub fn is_dead(&self, position: usize) -> bool {
        self.slots[position] & DEAD != 0
    }

    pub fn any_dead(&self) -> bool {
        self.slots.iter().any(|slot| slot & DEAD != 0)
    }

    pub fn mark_dead(&mut self, position: usize) {
        self.slots[position] |= DEAD;
    }

    pub fn set_child(&mut self, position: usize, child: u32) {
        let mut item = self.get(position).to_owned();
        item.head.child = child;
        self.replace(position, item);
    }

    #[inline]
    pub fn push(&mut self, item: OwnedItem, is_high_key: bool) {
        let slot = self.slot(item, is_high_key);
        self.slots.push(slot);
    }

    /// Adds a leaf tuple behind all others, if there are entries and this is their usual form.
    #[inline]
    pub fn push_usual(&mut self, tid: Tid, form: Form) -> bool {
        if self.slots.is_empty() || self.form != form {
            return false;
        }
        self.slots.push(slot_of(tid.block.0, tid.offset.0));
        true
    }

    #[inline]
    pub fn insert(&mut self, position: usize, item: OwnedItem, is_high_key: bool) {
        let slot = self.slot(item, is_high_key);
        self.slots.insert(position, slot);
    }

    pub fn replace(&mut self, position: usize, item: OwnedItem) {
        self.forget_rest(self.slots[position]);
        self.slots[position] = self.slot(item, true);
    }

    pub fn remove(&mut self, position: usize) -> OwnedItem {
        let item = self.get(position).to_owned();
        self.forget_rest(self.slots[position]);
        self.slots.remove(position);
        item
    }

    /// The entries move to lower positions, as those before them were removed.
    pub fn move_down(&mut self, from: Range<usize>, to: usize) {
        self.slots.copy_within(from, to);
    }

    /// The entry at this position will be overwritten or cut off.
    pub fn discard(&mut self, position: usize) {
        self.forget_rest(self.slots[position]);
    }

    /// Cuts off those behind so many, which were moved or discarded.
    pub fn truncate(&mut self, len: usize) {
        self.slots.truncate(len);
    }

    /// The posting list at a position.
    pub fn posting_mut(&mut self, position: usize) -> &mut PostingList {
        let at = number_of(self.slots[position]).expect("a posting list");
        self.rests[at]
            .posting
            .as_deref_mut()
            .expect("a posting list")
    }

    /// The memory of the entries.
    pub fn pieces(&self, pieces: &mut Pieces) {
        pieces.add(&self.slots);
    }

    /// Prefetches the first and the last entry.
    pub fn prefetch_ends(&self) {
        for ends in [self.slots.first(), self.slots.last()] {
            ends.into_iter().for_each(prefetch);
        }
        for ends in [self.rests.first(), self.rests.last()] {
            ends.into_iter().for_each(prefetch);
        }
    }

    /// Prefetches the posting list at a position, if there is one.
    pub fn prefetch_posting_list(&self, position: usize) {
        if position < self.len()
            && let Some(list) = self.list(position)
        {
            prefetch(list);
        }
    }

    /// Prefetches the TIDs of the posting list at a position, if there is one.
    pub fn prefetch_posting_tids(&self, position: usize) {
        let is_there = position < self.len();
        let tids = is_there.then(|| self.posting(position)).flatten();
        let tids = tids.unwrap_or_default();
        tids.iter().step_by(TIDS_PER_LINE).for_each(prefetch);
        tids.last().into_iter().for_each(prefetch);
    }

    #[inline]
    fn list(&self, position: usize) -> Option<&PostingList> {
        let rest = &self.rests[number_of(self.slots[position])?];
        rest.posting.as_deref()
    }

    /// Prefetches all entries from this position on.
    pub fn prefetch_from(&self, position: usize) {
        let rest = self.slots.iter().skip(position);
        rest.step_by(8).for_each(prefetch);
        self.slots.last().into_iter().for_each(prefetch);
    }

    #[inline]
    fn slot(&mut self, item: OwnedItem, is_high_key: bool) -> Slot {
        let OwnedItem { head, posting } = item;
        let tid = slot_of(head.block, head.offset);
        let dead = if head.is_dead { DEAD } else { 0 };
        let is_plain = head.child == 0 && head.offset != 0 && posting.is_none();
        if is_plain && self.form.bytes == 0 && !is_high_key {
            self.form = head.form;
        }
        if is_plain && self.form == head.form {
            return tid | dead;
        }
        let rest = Rest {
            form: head.form,
            child: head.child,
            posting,
        };
        tid | dead | Slot::from(self.keep(rest))
    }

    fn keep(&mut self, rest: Rest) -> u16 {
        let Some(at) = self.unused.checked_sub(1) else {
            self.rests.push(rest);
            return u16::try_from(self.rests.len()).expect("items of one page");
        };
        let place = &mut self.rests[usize::from(at)];
        let next = std::mem::replace(place, rest).child;
        let used = self.unused;
        self.unused = u16::try_from(next).expect("items of one page");
        used
    }

    fn forget_rest(&mut self, slot: Slot) {
        if let Some(at) = number_of(slot) {
            let place = &mut self.rests[at];
            place.posting = None;
            place.child = u32::from(self.unused);
            self.unused = u16::try_from(at + 1).expect("items of one page");
        }
    }
}

/// A TID as a number in the order of TIDs.
#[inline]
pub(super) fn tid_number(tid: Tid) -> u64 {
    slot_of(tid.block.0, tid.offset.0) >> TID_SHIFT
}

/// The TID of such a number.
#[inline]
#[allow(clippy::cast_possible_truncation)] // as they were put together
pub(super) const fn tid_of(number: u64) -> Tid {
    Tid {
        block: BlockNumber((number >> 16) as u32),
        offset: OffsetNumber(number as u16),
    }
}

#[inline]
fn slot_of(block: u32, offset: u16) -> Slot {
    Slot::from(block) << 32 | Slot::from(offset) << TID_SHIFT
}

/// Where an entry's rest is, if it has one.
#[inline]
#[allow(clippy::cast_possible_truncation)] // 15 bits
const fn number_of(slot: Slot) -> Option<usize> {
    ((slot & REST) as usize).checked_sub(1)
}

impl PartialEq for Slots {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|at| self.get(at) == other.get(at))
    }
}

impl Eq for Slots {}
