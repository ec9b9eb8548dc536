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

use pgheadroom_layout::BlockNumber;
use pgheadroom_twin::btree::{BtreePage, Item};
use pgheadroom_twin::executor::{Model, NewRow};
use pgheadroom_twin::executor::{StatementError, Table};
use pgheadroom_twin::wal::Wal;

/// The engine: it begins as a heap whose rows lie in whatever order they have.
#[derive(Debug, Clone, Copy)]
pub struct Clustered;

/// A table whose rows are put beside the previous key of this B-tree, by its position among them.
#[derive(Debug)]
struct ByIndex(usize);

/// Where a row may go by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbourhood {
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

impl Model for Clustered {
    fn sentence(&self) -> Option<&'static str> {
        Some(
            "the engine clustered is a model of a table access method: inserts go to the page \
             of the previous key, all else is heap",
        )
    }

    /// A table without a B-tree over whole columns stays a heap.
    fn of_table(&self, table: &Table, _: &mut Wal) -> Option<Box<dyn Model>> {
        let index = table.ordering()?;
        Some(Box::new(ByIndex(index)))
    }
}

impl Model for ByIndex {
    fn page_for(&mut self, new: NewRow<'_>) -> Result<Option<BlockNumber>, StatementError> {
        let NewRow {
            table,
            row,
            tuple_bytes,
            procs,
            wal,
        } = new;
        let leaf = table.leaf_for(self.0, row)?;
        let place = leaf.map(|(leaf, position)| neighbourhood(leaf, position));
        let Some(Neighbourhood::Between { nearest, highest }) = place else {
            return Ok(None);
        };
        for block in [nearest, highest] {
            if table.takes_row(block, tuple_bytes)? {
                return Ok(Some(block));
            }
            table.look_at(block, procs, wal); // which prunes it, if it is full
            if table.takes_row(block, tuple_bytes)? {
                return Ok(Some(block));
            }
        }
        Ok(Some(table.empty_page(tuple_bytes, wal)?))
    }
}

/// The neighbourhood of a new key, which belongs at this position of a leaf.
fn neighbourhood(leaf: &BtreePage, position: usize) -> Neighbourhood {
    let first = leaf.first_data();
    if first == leaf.len() || (leaf.is_rightmost() && position == leaf.len()) {
        return Neighbourhood::Beyond;
    }
    let nearest = if position > first {
        leaf.item(position - 1).last_tid()
    } else {
        leaf.item(position).tid()
    };
    Neighbourhood::Between {
        nearest: nearest.expect("an item of a leaf").block,
        highest: highest(leaf),
    }
}

fn highest(leaf: &BtreePage) -> BlockNumber {
    let items = leaf.data().map(|(_, item)| item);
    let blocks = items.flat_map(Item::each_tid).map(|tid| tid.block);
    blocks.max().expect("a leaf with items")
}
