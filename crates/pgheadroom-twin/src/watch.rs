//! A page's life: every event on one page of a table, in order, and the page after it.
//!
//! ```text
//! transaction 17: update of 4 leaves to (1334,1)     4 is replaced, the page is marked full
//! transaction 23: pruned: 4 dead; 104 bytes freed
//! ```
//!
//! For people who want to see what the numbers are made of. Memory is bounded: the first and the
//! last events are kept, what was between them is counted. Nothing is noted where nobody watches.

use std::collections::VecDeque;

use pgheadroom_layout::{BlockNumber, OffsetNumber};
use serde::Serialize;

use crate::page::{HeapPage, LinePointer, Tid, Tuple, offset_of};
use crate::prune::PrunePlan;

/// Events kept from the beginning, and as many from the end; enough to see a pattern and how it
/// ended, and under 1 MB with 291 line pointers each.
const KEPT_EVENTS: usize = 250;

/// Where a tuple of another page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ItemPointer {
    /// The page.
    pub block: u32,
    /// The line pointer.
    pub item: u16,
}

impl From<Tid> for ItemPointer {
    fn from(tid: Tid) -> Self {
        Self {
            block: tid.block.0,
            item: tid.offset.0,
        }
    }
}

/// What happened to the page. Items are line pointers by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    /// Watching began: the page as it was.
    Start,
    /// A row was inserted.
    Insert {
        /// Its line pointer.
        item: u16,
    },
    /// An update put the new version beside the old one; the indexes learnt nothing.
    HotUpdate {
        /// The old version.
        old: u16,
        /// The new one.
        new: u16,
    },
    /// The same with a new entry in every index.
    ColdUpdate {
        /// The old version.
        old: u16,
        /// The new one.
        new: u16,
    },
    /// An update found no room and put the new version elsewhere; the page is marked full.
    UpdateLeft {
        /// The old version.
        old: u16,
        /// Where the new one is.
        to: ItemPointer,
    },
    /// An update of another page put its new version here.
    UpdateArrived {
        /// The new version.
        new: u16,
        /// Where the old one is.
        from: ItemPointer,
    },
    /// A row was deleted.
    Delete {
        /// Its line pointer.
        item: u16,
    },
    /// A row was locked.
    Lock {
        /// Its line pointer.
        item: u16,
    },
    /// A reader, or VACUUM's first pass, removed dead versions.
    Pruned {
        /// Roots and where they lead now.
        redirected: Vec<(u16, u16)>,
        /// Line pointers that are dead now.
        dead: Vec<u16>,
        /// Line pointers that are unused now.
        unused: Vec<u16>,
        /// Bytes of tuples that went.
        freed_bytes: u32,
        /// Whether VACUUM did it.
        by_vacuum: bool,
    },
    /// A look at the page found nothing to remove; the mark that it is full went.
    LookedAt,
    /// VACUUM froze tuples.
    Frozen {
        /// How many are frozen now.
        frozen_tuples: u32,
    },
    /// VACUUM's second pass freed dead line pointers.
    Reclaimed {
        /// Line pointers that were dead.
        items: Vec<u16>,
    },
    /// VACUUM noted that everyone sees everything.
    MadeVisible {
        /// Whether besides all is frozen.
        all_frozen: bool,
    },
    /// A change took that back.
    NoLongerVisible,
    /// VACUUM cut the page off.
    CutOff,
}

/// A line pointer and what it points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Item {
    /// Free.
    Unused,
    /// Leads to another.
    Redirect {
        /// That other.
        to: u16,
    },
    /// Kept for index entries.
    Dead,
    /// A tuple.
    Normal {
        /// Which row it is a version of.
        row: u32,
        /// Its length.
        bytes: u16,
        /// The next version on this page.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<u16>,
        /// Whether no index entry points here.
        heap_only: bool,
        /// Whether it was replaced or deleted, for all we know when it happened.
        replaced: bool,
    },
}

/// A page at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageState {
    /// Line pointers in order.
    pub items: Vec<Item>,
    /// Tuples by line pointer, from the page's end downwards.
    pub storage: Vec<u16>,
    /// End of the line pointers.
    pub lower: u32,
    /// Start of the tuples.
    pub upper: u32,
    /// Bytes that a new tuple may use.
    pub free_bytes: u32,
    /// Whether an update found no room.
    pub is_full: bool,
    /// Whether everyone sees everything.
    pub all_visible: bool,
}

/// An event, when it happened, and the page after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Counted from 1 over all events of the page.
    pub number: u64,
    /// The transaction, counted from 1 over the run; 0 before it.
    pub transaction: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The page after it.
    pub page: PageState,
}

/// What happened to a page during a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageLife {
    /// The page.
    pub block: u32,
    /// Events in order; if some were left out, between `first_count` and the rest.
    pub events: Vec<Event>,
    /// How many events precede the gap.
    pub first_count: usize,
    /// Events left out.
    pub left_out: u64,
    /// Bytes that pruning keeps free at least, the fillfactor's reserve included: below, a reader
    /// prunes.
    pub prune_below_bytes: u32,
}

/// A watched page.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    block: BlockNumber,
    transaction: u64,
    count: u64,
    first: Vec<Event>,
    last: VecDeque<Event>,
    storage: Vec<u16>,
    prune_below_bytes: u32,
}

impl Watch {
    /// Begins with the page as it is, which need not exist yet.
    pub fn new(block: BlockNumber, page: Option<&HeapPage>, prune_below_bytes: u32) -> Self {
        let mut watch = Self {
            block,
            transaction: 0,
            count: 0,
            first: Vec::new(),
            last: VecDeque::new(),
            storage: Vec::new(),
            prune_below_bytes,
        };
        watch.add(EventKind::Start, page);
        watch
    }

    /// The page that is watched.
    pub const fn block(&self) -> BlockNumber {
        self.block
    }

    /// Says when it is now, for events to come.
    pub const fn note_moment(&mut self, transaction: u64) {
        self.transaction = transaction;
    }

    /// What happened so far.
    pub fn life(&self) -> PageLife {
        let kept = self.first.len() + self.last.len();
        PageLife {
            block: self.block.0,
            events: self.first.iter().chain(&self.last).cloned().collect(),
            first_count: self.first.len(),
            left_out: self.count - kept as u64,
            prune_below_bytes: self.prune_below_bytes,
        }
    }

    /// An event, and the page after it.
    pub fn add(&mut self, kind: EventKind, page: Option<&HeapPage>) {
        self.count += 1;
        let event = Event {
            number: self.count,
            transaction: self.transaction,
            kind,
            page: self.state_of(page),
        };
        if self.first.len() < KEPT_EVENTS {
            self.first.push(event);
            return;
        }
        if self.last.len() == KEPT_EVENTS {
            self.last.pop_front();
        }
        self.last.push_back(event);
    }

    fn state_of(&mut self, page: Option<&HeapPage>) -> PageState {
        let absent = HeapPage::never_initialised();
        let page = page.unwrap_or(&absent);
        let items: Vec<Item> = (1..)
            .zip(page.items())
            .map(|(number, item)| item_of(number, &item, self.block))
            .collect();
        let is_tuple = |number: u16| {
            matches!(
                items.get(usize::from(number) - 1),
                Some(Item::Normal { .. })
            )
        };
        // Pruning packs tuples together without changing their order; new ones come last.
        self.storage.retain(|&number| is_tuple(number));
        for position in 0..items.len() {
            let number = offset_of(position).0;
            if is_tuple(number) && !self.storage.contains(&number) {
                self.storage.push(number);
            }
        }
        PageState {
            items,
            storage: self.storage.clone(),
            lower: page.pd_lower(),
            upper: page.pd_upper(),
            free_bytes: if page.is_new() {
                0
            } else {
                page.heap_free_space()
            },
            is_full: page.is_full(),
            all_visible: page.is_all_visible(),
        }
    }
}

fn item_of(number: u16, item: &LinePointer, block: BlockNumber) -> Item {
    let here = Tid {
        block,
        offset: OffsetNumber(number),
    };
    match item {
        LinePointer::Unused => Item::Unused,
        LinePointer::Dead => Item::Dead,
        LinePointer::Redirect(target) => Item::Redirect { to: target.0 },
        LinePointer::Normal(tuple) => Item::Normal {
            row: tuple.row,
            bytes: tuple.lp_len,
            next: next_here(tuple, here),
            heap_only: tuple.is_heap_only,
            replaced: tuple.xmax.is_valid() && !tuple.is_locked_only,
        },
    }
}

fn next_here(tuple: &Tuple, here: Tid) -> Option<u16> {
    let goes_on = tuple.next.shares_page(here) && tuple.next != here && tuple.xmax.is_valid();
    goes_on.then_some(tuple.next.offset.0)
}

/// What a prune plan says, for an event.
pub(crate) fn pruned(plan: &PrunePlan, freed_bytes: u32, by_vacuum: bool) -> EventKind {
    let numbers = |offsets: &[OffsetNumber]| offsets.iter().map(|offset| offset.0).collect();
    let redirected = plan.redirected.iter();
    EventKind::Pruned {
        redirected: redirected.map(|(root, to)| (root.0, to.0)).collect(),
        dead: numbers(&plan.now_dead),
        unused: numbers(&plan.now_unused),
        freed_bytes,
        by_vacuum,
    }
}
