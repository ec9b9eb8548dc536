//! The page where a row belongs by its key: beside the previous key, else on the page that took
//! what did not fit there.
//!
//! ```text
//! key beyond all others ----------------------> as heap: append
//! leaf of the key: .. (12,3) (12,7) | new | (13,1) (940,2) ..
//!                              |                      |
//!                 previous key's page: 12    highest block: 940, the region's overflow page
//!                 if full -------------------> 940; if full -> an empty page, which becomes the
//!                                              overflow page because its rows appear on this leaf
//! ```
//!
//! So there is at most about one page that is partly filled for each leaf, and nothing to keep.
//! Of two rows with one key either may be the previous one: the last entry counts.

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::btree::Btree;
use crate::btree::key::SearchKey;
use crate::btree::page::BtreePage;
use crate::btree::search::{Tie, lower_bound};
use crate::page::Tid;

/// Behind every row version with the same key.
const LAST_TID: Tid = Tid {
    block: BlockNumber(u32::MAX),
    offset: OffsetNumber(u16::MAX),
};

/// Where a row may go by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neighbourhood {
    /// No key is larger: the row is appended as in a heap.
    Beyond,
    /// The heap pages of its neighbours.
    Between {
        /// That of the previous key on the leaf, or of the next one if it is the first.
        nearest: BlockNumber,
        /// The highest block on the leaf.
        highest: BlockNumber,
    },
}

/// The neighbourhood of a new key.
pub(crate) fn neighbourhood(tree: &Btree, key: &[i64]) -> Neighbourhood {
    let search = SearchKey {
        values: key,
        tid: Some(LAST_TID),
    };
    let Some((leaf, _)) = tree.descend(search, Tie::PivotIsEqual) else {
        return Neighbourhood::Beyond;
    };
    let page = tree.page(leaf);
    let (first, position) = (
        page.first_data(),
        lower_bound(search, page, Tie::PivotIsEqual),
    );
    if first == page.len() || (page.is_rightmost() && position == page.len()) {
        return Neighbourhood::Beyond;
    }
    let nearest = if position > first {
        page.item(position - 1).last_tid()
    } else {
        page.item(position).tid()
    };
    Neighbourhood::Between {
        nearest: nearest.expect("an item of a leaf").block,
        highest: highest(page),
    }
}

fn highest(leaf: &BtreePage) -> BlockNumber {
    let items = &leaf.items()[leaf.first_data()..];
    let blocks = items.iter().map(|item| match item.posting() {
        Some(tids) => tids.iter().map(|tid| tid.block).max(),
        None => item.tid().map(|tid| tid.block),
    });
    blocks.flatten().max().expect("a leaf with items")
}
