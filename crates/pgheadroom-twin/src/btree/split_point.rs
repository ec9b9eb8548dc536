//! Where a page is split.
//!
//! All legal points are listed, sorted by how evenly they share the free space, and the cheapest
//! high key among the best few wins. Ported as it is, 16-bit arithmetic and order of ties
//! included, because every later insertion depends on the outcome.
//!
//! Source: src/backend/access/nbtree/nbtsplitloc.c (REL_18_STABLE; same since 13).

use pgheadroom_layout::btree::{BTREE_NONLEAF_FILLFACTOR, USABLE_BYTES};
use pgheadroom_layout::page::SIZE_OF_ITEM_ID;

use crate::btree::key::keep_natts;
use crate::btree::page::BtreePage;
use crate::btree::qsort::qsort;
use crate::page::Tid;

mod strategy;

/// Room for a heap TID, aligned, that a high key may need.
const TID_ROOM: i32 = 8;
/// Size of the key-less first item of an inner page, line pointer included.
const MINUS_INFINITY_ITEM: i32 = 12;
/// Fillfactor of the left page when a page holds a single value.
///
/// Source: `BTREE_SINGLEVAL_FILLFACTOR`, src/include/access/nbtree.h.
const SINGLE_VALUE_FILLFACTOR: f64 = 96.0;
/// Widest tuples, line pointer included, for which ascending insertion in the middle is assumed.
const ORDINAL_TUPLE_BYTES: i32 = 28;
/// Share of a leaf's bytes by which a split may deviate from the best one.
///
/// Source: `LEAF_SPLIT_DISTANCE`, nbtsplitloc.c.
const LEAF_SPLIT_DISTANCE: f64 = 0.050;
/// The same for inner pages. Source: `INTERNAL_SPLIT_DISTANCE`, nbtsplitloc.c.
const INTERNAL_SPLIT_DISTANCE: f64 = 0.075;

/// The entry for which there is no room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewItem<'a> {
    pub position: usize,
    /// Aligned, without its line pointer.
    pub bytes: u32,
    pub key: &'a [i64],
    pub tid: Option<Tid>,
}

/// How a page is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SplitPoint {
    /// Position, on the page as it was, of the first item of the right page.
    pub first_right: usize,
    /// Whether the new item goes to the left page, where both are possible.
    pub new_on_left: bool,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    delta: i16,
    left_free: i16,
    right_free: i16,
    point: SplitPoint,
}

/// Weights the left page's free space: `Some(0.9)` leaves it 90 % full.
type Multiplier = Option<f64>;

struct Search<'a> {
    page: &'a BtreePage,
    new: NewItem<'a>,
    new_bytes: i32,
    left_space: i32,
    right_space: i32,
    old_total: i32,
    min_first_right: i32,
    candidates: Vec<Candidate>,
    interval: usize,
}

/// Chooses the point at which a page without room for a new item is split.
///
/// `fillfactor` is that of leaves, in percent.
///
/// Source: `_bt_findsplitloc`, nbtsplitloc.c. Differs: no.
pub(crate) fn find(page: &BtreePage, new: NewItem<'_>, fillfactor: u32) -> SplitPoint {
    let mut search = Search::new(page, new);
    search.list_candidates();
    let leaf_multiplier = f64::from(fillfactor) / 100.0;
    let multiplier = if !page.is_leaf() {
        page.is_rightmost()
            .then_some(f64::from(BTREE_NONLEAF_FILLFACTOR) / 100.0)
    } else if page.is_rightmost() {
        Some(leaf_multiplier)
    } else {
        match search.after_new_item(leaf_multiplier) {
            AfterNewItem::No => None,
            AfterNewItem::Fillfactor => Some(leaf_multiplier),
            AfterNewItem::Exactly => {
                let wanted = SplitPoint {
                    first_right: new.position,
                    new_on_left: true,
                };
                let legal = search.candidates.iter().any(|one| one.point == wanted);
                if legal {
                    return wanted;
                }
                None
            }
        }
    };
    search.choose(multiplier)
}

/// Whether insertions look as if each came just after the one before, for one leading value.
enum AfterNewItem {
    No,
    Fillfactor,
    Exactly,
}

fn signed(bytes: u32) -> i32 {
    i32::try_from(bytes).expect("bytes of one page")
}

#[allow(clippy::cast_possible_truncation)] // as PostgreSQL, which keeps free space in int16
const fn short(value: i32) -> i16 {
    value as i16
}

impl<'a> Search<'a> {
    fn new(page: &'a BtreePage, new: NewItem<'a>) -> Self {
        let left_space = signed(USABLE_BYTES);
        let mut right_space = left_space;
        if !page.is_rightmost() {
            right_space -= item_bytes(page, 0);
        }
        Self {
            page,
            new,
            new_bytes: signed(new.bytes + SIZE_OF_ITEM_ID),
            left_space,
            right_space,
            old_total: right_space - signed(page.exact_free_space()),
            min_first_right: i32::MAX,
            candidates: Vec::with_capacity(page.len() + 1),
            interval: 0,
        }
    }

    fn list_candidates(&mut self) {
        let mut left = 0;
        for position in self.page.first_data()..self.page.len() {
            let bytes = item_bytes(self.page, position);
            if position <= self.new.position {
                self.record(position, false, left, bytes);
            }
            if position >= self.new.position {
                self.record(position, true, left, bytes);
            }
            left += bytes;
        }
        assert_eq!(left, self.old_total, "bytes of the data items");
        if self.new.position >= self.page.len() {
            self.record(self.new.position, false, left, 0);
        }
        assert!(!self.candidates.is_empty(), "a page can be split");
    }

    /// Adds a point if both halves fit their pages.
    ///
    /// Source: `_bt_recsplitloc`, nbtsplitloc.c.
    fn record(&mut self, first_right: usize, new_on_left: bool, old_left: i32, bytes: i32) {
        let new_is_first_right = first_right == self.new.position && !new_on_left;
        let (first_right_bytes, posting) = if new_is_first_right {
            (self.new_bytes, 0)
        } else {
            (bytes, self.posting_bytes(first_right, bytes))
        };
        let mut left_free = self.left_space - old_left;
        let mut right_free = self.right_space - (self.old_total - old_left);
        // The first item of the right page becomes the left page's high key.
        left_free -= first_right_bytes;
        if self.page.is_leaf() {
            left_free -= TID_ROOM - posting;
        } else {
            right_free += first_right_bytes - MINUS_INFINITY_ITEM;
        }
        if new_on_left {
            left_free -= self.new_bytes;
        } else {
            right_free -= self.new_bytes;
        }
        if left_free < 0 || right_free < 0 {
            return;
        }
        self.min_first_right = self.min_first_right.min(first_right_bytes);
        self.candidates.push(Candidate {
            delta: 0,
            left_free: short(left_free),
            right_free: short(right_free),
            point: SplitPoint {
                first_right,
                new_on_left,
            },
        });
    }

    /// Bytes of the TIDs that truncation takes off a posting list which becomes a high key.
    fn posting_bytes(&self, position: usize, bytes: i32) -> i32 {
        if !self.page.is_leaf() || bytes <= 64 {
            return 0;
        }
        let item = self.page.item(position);
        signed(item.bytes() - u32::from(item.base_bytes()))
    }

    /// Source: `_bt_deltasortsplits` and `_bt_splitcmp`, nbtsplitloc.c.
    fn sort(&mut self, multiplier: Multiplier) {
        for candidate in &mut self.candidates {
            let (left, right) = (candidate.left_free, candidate.right_free);
            #[allow(clippy::cast_possible_truncation)] // toward zero, as C does
            let delta = match multiplier {
                Some(share) => (share * f64::from(left) - (1.0 - share) * f64::from(right)) as i16,
                None => left - right,
            };
            candidate.delta = delta.abs();
        }
        qsort(&mut self.candidates, &|one, other| {
            one.delta.cmp(&other.delta)
        });
    }

    /// Source: `_bt_afternewitemoff`, nbtsplitloc.c.
    fn after_new_item(&self, leaf_multiplier: f64) -> AfterNewItem {
        let columns = self.new.key.len();
        let data_items = self.page.len() - self.page.first_data();
        let is_first = self.new.position == self.page.first_data();
        if columns == 1 || is_first {
            return AfterNewItem::No;
        }
        let one_width = self.new_bytes == self.min_first_right
            && self.new_bytes * signed_count(data_items) == self.old_total;
        if !one_width || self.new_bytes > ORDINAL_TUPLE_BYTES {
            return AfterNewItem::No;
        }
        let shares_first_column = |position: usize| {
            let keep = keep_natts(self.page.key(position), self.new.key);
            keep > 1 && keep <= columns
        };
        if self.new.position >= self.page.len() {
            return if shares_first_column(self.page.len() - 1) {
                AfterNewItem::Fillfactor
            } else {
                AfterNewItem::No
            };
        }
        let previous = self.page.item(self.new.position - 1);
        if previous.is_posting()
            || !adjacent(previous.tid(), self.new.tid)
            || !shares_first_column(self.new.position - 1)
        {
            return AfterNewItem::No;
        }
        let offset = f64::from(signed_count(self.new.position + 1));
        if offset / f64::from(signed_count(self.page.len() + 1)) > leaf_multiplier {
            AfterNewItem::Fillfactor
        } else {
            AfterNewItem::Exactly
        }
    }
}

/// Whether two rows probably were inserted one after the other.
///
/// Source: `_bt_adjacenthtid`, nbtsplitloc.c.
fn adjacent(low: Option<Tid>, high: Option<Tid>) -> bool {
    let (Some(low), Some(high)) = (low, high) else {
        return false;
    };
    low.shares_page(high) || (low.block.0 + 1 == high.block.0 && high.offset.0 == 1)
}

fn item_bytes(page: &BtreePage, position: usize) -> i32 {
    signed(page.item(position).bytes() + SIZE_OF_ITEM_ID)
}

fn signed_count(count: usize) -> i32 {
    i32::try_from(count).expect("items of one page")
}
