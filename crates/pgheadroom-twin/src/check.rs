//! Invariants of pages, apart from the code that keeps them.
//!
//! Verified: line pointers and storage fit and do not overlap; redirects lead to heap-only tuples
//! of the same page and no two to the same; roots are not heap-only; chains stay on the page and
//! fit `xmin` to `xmax`; hints are not missing where PostgreSQL relies on them; the visibility map
//! claims no more than the page does.
//! Not verified: what snapshots see, index entries, and what the free space map says, which is a
//! hint.

use std::fmt;

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::{BLCKSZ, MAX_HEAP_TUPLES_PER_PAGE};
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::page::{HeapPage, LinePointer, Tid, Tuple, XmaxHint, XminHint};
use crate::transaction::{Outcome, SingleSession, Transactions, Xid};
use crate::vm::Visibility;

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

/// Looks for the first invariant of a page that does not hold, where no transaction has failed.
///
/// # Errors
/// That invariant.
pub fn page(block: BlockNumber, page: &HeapPage) -> Result<(), Violation> {
    let nobody_failed = SingleSession {
        current: Xid(u32::MAX),
        held_xmin: None,
    };
    page_after(block, page, &nobody_failed)
}

/// The same for any outcome of transactions.
///
/// # Errors
/// That invariant.
pub fn page_after(
    block: BlockNumber,
    page: &HeapPage,
    transactions: &impl Transactions,
) -> Result<(), Violation> {
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
            LinePointer::Normal(tuple) => {
                tuple_problem(page, Tid { block, offset }, tuple, transactions)
            }
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

fn tuples(page: &HeapPage) -> impl Iterator<Item = (usize, Tuple)> {
    page.items()
        .into_iter()
        .enumerate()
        .filter_map(|(position, item)| match item {
            LinePointer::Normal(tuple) => Some((position, tuple)),
            _ => None,
        })
}

fn tuple_problem(
    page: &HeapPage,
    tid: Tid,
    tuple: &Tuple,
    transactions: &impl Transactions,
) -> Option<&'static str> {
    if !tuple.xmin.is_valid() {
        return Some("tuple without inserter");
    }
    let replaced = tuple.xmax.is_valid() && !tuple.is_locked_only;
    let failed = |xid| transactions.outcome(xid) == Outcome::Aborted;
    if !replaced && tuple.is_hot_updated {
        return Some("tuple with a next version that nobody made");
    }
    if tuple.is_hot_updated && !tuple.next.shares_page(tid) {
        return Some("HOT chain leaves the page");
    }
    if !tuple.xmax.is_valid() && tuple.xmax_hint != XmaxHint::Set {
        return Some("nobody to be noted as deleter or locker");
    }
    if page.is_all_visible() && failed(tuple.xmin) {
        return Some("tuple of a failed transaction on an all-visible page");
    }
    if page.is_all_visible() && tuple.xmin_hint == XminHint::Unset {
        return Some("inserter not noted on an all-visible page");
    }
    let is_gone = replaced && !failed(tuple.xmax);
    if is_gone && page.is_all_visible() {
        return Some("deleted tuple on an all-visible page");
    }
    if is_gone && !failed(tuple.xmin) && !page.prune_xid().is_valid() {
        return Some("deleted tuple on a page that claims to have nothing to prune");
    }
    if is_gone && tuple.xmin_hint == XminHint::Frozen && failed(tuple.xmin) {
        return Some("frozen tuple of a failed transaction");
    }
    None
}

/// Looks for the first disagreement between a page and its bits in the visibility map.
///
/// # Errors
/// That disagreement.
pub fn visibility(block: BlockNumber, page: &HeapPage, bits: Visibility) -> Result<(), Violation> {
    let problem = |what| Violation {
        block,
        offset: None,
        what,
    };
    if bits.all_visible && !page.is_all_visible() {
        return Err(problem("bit without the page's flag"));
    }
    if bits.all_visible && page.items().contains(&LinePointer::Dead) {
        return Err(problem("dead line pointer on an all-visible page"));
    }
    if bits.all_frozen && tuples(page).any(|(_, tuple)| !tuple.is_frozen()) {
        return Err(problem("tuple to be frozen on an all-frozen page"));
    }
    Ok(())
}
