//! The page where a row belongs by its key, as the extension `clustered_heap` chooses it.
//!
//! ```text
//! behind all others, as the row before it -----> as heap: append
//! leaf of the key: .. (12,3) (12,7) | new | (13,1) (800,5) (940,2) ..
//!                              |
//!         1. previous key's page: 12
//!         2. if full: 940, else of the others the highest with room by the free space map: 800
//!         3. if all are full: an empty page, which is one of the leaf's from then on
//! ```
//!
//! So there is about one page that is partly filled for each leaf, and nothing to keep.
//! Of two rows with one key either may be the previous one: the last entry counts. Where one key
//! goes on from the leaf before, the empty page has to lie above the first entry's, by which the
//! row's entry comes to this leaf.
//!
//! A version of a row that no longer fits beside the one before is placed in the same way.
//!
//! Source: `place_row` and `place_version`, extension/clustered_heap/place.c. Differs: a row that
//! is compressed or moved out is as long as it will be stored, which the extension has to guess.

mod room;

use pgheadroom_layout::BlockNumber;
use pgheadroom_twin::btree::{BtreePage, Item};
use pgheadroom_twin::executor::{Model, NewRow, StatementError, Table};
use pgheadroom_twin::wal::Wal;

use crate::clustered::room::Seeking;

/// The engine: it begins as a heap whose rows lie in whatever order they have.
#[derive(Debug, Clone, Copy)]
pub struct Clustered;

/// A table whose rows are put beside the previous key of a B-tree.
#[derive(Debug)]
struct ByIndex {
    /// The B-tree, by its position among the table's.
    index: usize,
    /// Whether the last row came behind all others.
    is_appending: bool,
}

/// Where a row may go by its key, as the extension's `Place`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// Page of the previous key on the leaf, or of the next one if it is the first.
    neighbour: BlockNumber,
    /// No key is larger.
    is_at_end: bool,
    /// Of a key that the leaf begins with: the page that an entry's has to be above of.
    above: Option<BlockNumber>,
    /// The other pages of the leaf's rows, from the highest down, each once.
    others: Vec<BlockNumber>,
}

impl Model for Clustered {
    fn sentence(&self) -> Option<&'static str> {
        Some(
            "the engine clustered is a model of the extension clustered_heap: new rows, and \
             versions that leave their page, go to the page of the previous key, all else is heap",
        )
    }

    /// A table without a B-tree over whole columns stays a heap.
    fn of_table(&self, table: &Table, _: &mut Wal) -> Option<Box<dyn Model>> {
        let index = table.ordering()?;
        Some(Box::new(ByIndex {
            index,
            is_appending: false,
        }))
    }
}

impl Model for ByIndex {
    fn page_for(&mut self, mut new: NewRow<'_>) -> Result<Option<BlockNumber>, StatementError> {
        if let Some(old) = new.replaced
            && room::stays(&mut new, old.block)?
        {
            return Ok(None);
        }
        let leaf = new.table.leaf_for(self.index, new.row)?;
        let Some(place) =
            leaf.and_then(|(leaf, position, begins)| place_of_key(leaf, position, begins))
        else {
            return Ok(None);
        };
        let goes_on_behind = place.is_at_end && self.is_appending;
        self.is_appending = place.is_at_end;
        if goes_on_behind {
            return Ok(None);
        }
        let mut seeking = Seeking::of(new)?;
        if seeking.takes(place.neighbour)? {
            return Ok(Some(place.neighbour));
        }
        if let Some(block) = seeking.highest_with_room(&place.others)? {
            return Ok(Some(block));
        }
        Ok(Some(seeking.page_for_latecomers(place.above)?))
    }
}

/// The place of a new key, which belongs at this position of a leaf that may begin with an equal
/// one; none on an empty leaf.
///
/// Source: `place_of_key`, extension/clustered_heap/leaf.c.
fn place_of_key(leaf: &BtreePage, position: usize, begins_with_it: bool) -> Option<Place> {
    let first = leaf.first_data();
    if first == leaf.len() {
        return None;
    }
    let before = if position > first {
        position - 1
    } else {
        first
    };
    let neighbour = leaf.item(before).last_tid().expect("an item of a leaf");
    let neighbour = neighbour.block;
    let begin = leaf.item(first).tid().expect("an item of a leaf");
    let items = leaf.data().map(|(_, item)| item);
    let blocks = items.flat_map(Item::each_tid).map(|tid| tid.block);
    let mut others: Vec<_> = blocks.filter(|&block| block != neighbour).collect();
    others.sort_unstable_by(|one, two| two.cmp(one));
    others.dedup();
    Some(Place {
        neighbour,
        is_at_end: leaf.is_rightmost() && position == leaf.len(),
        above: begins_with_it.then_some(begin.block),
        others,
    })
}
