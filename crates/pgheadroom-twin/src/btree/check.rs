//! Invariants of a tree, apart from the code that keeps them.
//!
//! Verified: every page's items fit and are in order of key and TID; high keys bound their page
//! and the pages below; sibling links agree in both directions; every live page but the root has
//! one downlink, and levels are complete; posting lists are long enough and sorted; no TID occurs
//! twice for a key. Not verified: which entries there should be, and that splits are good ones.

use std::cmp::Ordering;

use pgheadroom_layout::BlockNumber;

use crate::btree::Btree;
use crate::btree::item::posting_bytes;
use crate::btree::page::{BtreePage, NO_BLOCK};
use crate::page::Tid;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The page.
    pub block: BlockNumber,
    /// What does not hold.
    pub what: &'static str,
}

fn require(holds: bool, block: BlockNumber, what: &'static str) -> Result<(), Violation> {
    if holds {
        Ok(())
    } else {
        Err(Violation { block, what })
    }
}

/// All entries in the order of the leaves.
#[must_use]
pub fn entries(tree: &Btree) -> Vec<(Vec<i64>, Tid)> {
    let mut entries = Vec::new();
    let mut next = tree.leftmost(0);
    while let Some(block) = next {
        let page = tree.page(block);
        for position in page.first_data()..page.len() {
            let key = page.key(position);
            let tids = page.item(position).tids();
            entries.extend(tids.into_iter().map(|tid| (key.to_vec(), tid)));
        }
        next = page.siblings().1;
    }
    entries
}

/// Looks for the first invariant that does not hold.
///
/// # Errors
/// That invariant.
pub fn tree(tree: &Btree) -> Result<(), Violation> {
    let Some(root) = tree.meta.root else {
        return require(tree.pages.is_empty(), NO_BLOCK, "pages without a root");
    };
    require(tree.page(root).is_root, root, "the root does not know it")?;
    let mut expected = vec![root];
    for level in (0..=tree.meta.level).rev() {
        let on_level = level_pages(tree, expected[0])?;
        let linked_only: Vec<BlockNumber> = on_level
            .iter()
            .copied()
            .filter(|&block| !tree.page(block).is_ignored())
            .collect();
        require(
            linked_only == expected,
            expected[0],
            "downlinks and links differ",
        )?;
        let mut children = Vec::new();
        for &block in &linked_only {
            let page = tree.page(block);
            require(page.level == level, block, "page on the wrong level")?;
            check_page(block, page)?;
            if level > 0 {
                children.extend(check_children(tree, block)?);
            }
        }
        expected = children;
    }
    let all = entries(tree);
    let ascends = all.windows(2).all(|pair| pair[0] < pair[1]);
    require(ascends, root, "entries out of order across pages")
}

/// The pages of a level by right links, which left links must mirror.
fn level_pages(tree: &Btree, first: BlockNumber) -> Result<Vec<BlockNumber>, Violation> {
    let mut pages = Vec::new();
    let (mut block, mut previous) = (first, NO_BLOCK);
    while block != NO_BLOCK {
        let page = tree.page(block);
        require(page.prev == previous, block, "left link of another page")?;
        require(pages.len() < tree.pages.len(), block, "links in a circle")?;
        pages.push(block);
        previous = block;
        block = page.next;
    }
    Ok(pages)
}

fn check_page(block: BlockNumber, page: &BtreePage) -> Result<(), Violation> {
    let bytes: u32 = page.items().map(super::Item::bytes).sum();
    require(bytes == page.item_bytes(), block, "sum of the items' bytes")?;
    require(
        page.exact_free_space() <= 8152,
        block,
        "items outside the page",
    )?;
    for position in page.first_data()..page.len() {
        let item = page.item(position);
        require(item.bytes().is_multiple_of(8), block, "unaligned item")?;
        if let Some(tids) = item.posting() {
            require(tids.len() > 1, block, "posting list of one TID")?;
            let ascends = tids.windows(2).all(|pair| pair[0] < pair[1]);
            require(ascends, block, "posting list out of order")?;
            let expected = u32::from(posting_bytes(item.base_bytes(), tids.len()));
            require(item.bytes() == expected, block, "length of a posting list")?;
        }
        if page.is_leaf() {
            require(item.tid().is_some(), block, "leaf entry without TID")?;
        }
    }
    check_order(block, page)
}

/// Items ascend, and none is above the high key.
fn check_order(block: BlockNumber, page: &BtreePage) -> Result<(), Violation> {
    let first = page.first_data() + usize::from(!page.is_leaf());
    let order = |one: usize, other: usize| {
        let keys = page.key(one).cmp(page.key(other));
        keys.then(page.item(one).last_tid().cmp(&page.item(other).tid()))
    };
    for position in first + 1..page.len() {
        let holds = order(position - 1, position) == Ordering::Less;
        require(holds, block, "items out of order")?;
    }
    if !page.is_rightmost() && page.len() > first {
        let last = page.len() - 1;
        // A high key on the leaf level may be the very TID of the last entry.
        let bounded = order(last, 0) != Ordering::Greater;
        require(bounded, block, "item above the high key")?;
    }
    Ok(())
}

/// The pages below, whose high keys must be the separators.
fn check_children(tree: &Btree, block: BlockNumber) -> Result<Vec<BlockNumber>, Violation> {
    let page = tree.page(block);
    let mut children = Vec::new();
    for position in page.first_data()..page.len() {
        let child = page.item(position).child();
        children.push(child);
        // The right neighbour's separator, or this page's own high key.
        let next = if position + 1 < page.len() {
            position + 1
        } else if page.is_rightmost() {
            require(
                tree.page(child).is_rightmost(),
                child,
                "page beyond the rightmost",
            )?;
            continue;
        } else {
            0
        };
        let below = tree.page(child);
        require(!below.is_rightmost(), child, "rightmost page in the middle")?;
        let same = below.key(0) == page.key(next) && below.item(0).tid() == page.item(next).tid();
        require(same, child, "high key is not the separator above")?;
    }
    Ok(children)
}
