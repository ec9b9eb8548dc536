//! Splitting a page, and telling its parent.

use pgheadroom_layout::BlockNumber;

use crate::btree::insert::Insertion;
use crate::btree::item::{Item, OwnedItem};
use crate::btree::key::{MINUS_INFINITY, keep_natts};
use crate::btree::page::{BtreePage, NO_BLOCK};
use crate::btree::record::{Record, RecordKind, Sink};
use crate::btree::search::{Stack, StackEntry};
use crate::btree::split_point::{self, NewItem, SplitPoint};
use crate::btree::{Btree, Table};

/// Bytes of a pivot tuple without any key. Source: `sizeof(IndexTupleData)`.
const KEYLESS_PIVOT_BYTES: u16 = 8;
/// Bytes of a heap TID appended to a pivot, aligned.
const PIVOT_TID_BYTES: u16 = 8;

/// A high key or downlink with its key.
pub(super) struct Pivot {
    pub item: OwnedItem,
    pub key: Vec<i64>,
}

/// The two pages that a split fills.
struct Halves {
    left: BtreePage,
    right: BtreePage,
    /// First item of an inner page.
    keyless: Pivot,
}

impl Halves {
    /// Adds a data item behind those that are there.
    fn add_item(&mut self, to_left: bool, item: OwnedItem, key: &[i64]) {
        if to_left {
            self.left.push(item, key);
        } else if self.right.is_leaf() || !self.right.is_empty() {
            self.right.push(item, key);
        } else {
            let mut first = self.keyless.item.clone();
            first.set_child(item.as_ref().child());
            self.right.push(first, &self.keyless.key);
        }
    }
}

impl Btree {
    /// The smallest pivot that separates two neighbours of a leaf level.
    ///
    /// Source: `_bt_truncate`, src/backend/access/nbtree/nbtutils.c (REL_18_STABLE). Differs: no.
    pub(super) fn truncate(
        &self,
        last_left: (Item<'_>, &[i64]),
        first_right: (Item<'_>, &[i64]),
    ) -> Pivot {
        let columns = self.definition.key_columns;
        let shape = first_right.0.shape();
        let sizes = self.shapes.get(shape);
        let keep = keep_natts(last_left.1, first_right.1);
        let mut key = first_right.1.to_vec();
        let item = if keep <= usize::from(columns) {
            key[keep..].fill(MINUS_INFINITY);
            let kept = u8::try_from(keep).expect("at most 32 columns");
            OwnedItem::pivot(NO_BLOCK, None, shape, sizes.kept_bytes(keep), kept)
        } else {
            let bytes = sizes.kept_bytes(keep - 1) + PIVOT_TID_BYTES;
            OwnedItem::pivot(NO_BLOCK, last_left.0.last_tid(), shape, bytes, columns)
        };
        Pivot { item, key }
    }

    /// The first item of an inner page, whose key is never looked at.
    pub(super) fn keyless_pivot(&self, child: BlockNumber, like: Item<'_>) -> Pivot {
        Pivot {
            item: OwnedItem::pivot(child, None, like.shape(), KEYLESS_PIVOT_BYTES, 0),
            key: vec![MINUS_INFINITY; usize::from(self.definition.key_columns)],
        }
    }

    /// Splits a page around a new item and gives the new page its downlink.
    pub(super) fn split_and_link(
        &mut self,
        insertion: Insertion,
        key: &[i64],
        stack: Stack,
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) {
        let left = insertion.block;
        let page = self.page(left);
        let was_root = page.is_root;
        let was_only = page.prev == NO_BLOCK && page.is_rightmost();
        let right = self.split(insertion, key, table, sink);
        if was_root {
            self.new_level(left, right, table, sink);
        } else {
            self.insert_downlink(left, right, was_only, stack, table, sink);
        }
    }

    /// Source: `_bt_split`, src/backend/access/nbtree/nbtinsert.c (REL_18_STABLE). Differs: no.
    fn split(
        &mut self,
        insertion: Insertion,
        key: &[i64],
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) -> BlockNumber {
        let block = insertion.block;
        let new = NewItem {
            position: insertion.position,
            bytes: insertion.item.bytes(),
            key,
            tid: insertion.item.as_ref().tid(),
        };
        let fillfactor = self.definition.fillfactor.percent();
        let point = split_point::find(self.page(block), new, fillfactor);
        let high_key = self.left_high_key(&insertion, key, point);
        let (level, next) = (self.page(block).level, self.page(block).next);
        let right = self.allocate(level, table, sink);
        let mut left_bytes = high_key.item.bytes();
        let posting_is_left =
            insertion.posting_offset.is_some() && insertion.position - 1 < point.first_right;
        if point.new_on_left || posting_is_left {
            left_bytes += insertion.item.bytes();
        }
        let child = insertion.child;
        self.distribute(insertion, key, point, high_key, right);
        if next != NO_BLOCK {
            self.page_mut(next).prev = right;
        }
        let kind = if point.new_on_left {
            RecordKind::SplitL
        } else {
            RecordKind::SplitR
        };
        let mut record = Record::new(kind, 10)
            .change(block, self.page(block), left_bytes)
            .init(right, self.page(right), self.page(right).item_bytes());
        if next != NO_BLOCK {
            record = record.change(next, self.page(next), 0);
        }
        if let Some(child) = child {
            record = record.change(child, self.page(child), 0);
        }
        self.log(sink, &record);
        right
    }

    fn left_high_key(&self, insertion: &Insertion, key: &[i64], point: SplitPoint) -> Pivot {
        let page = self.page(insertion.block);
        let new_is_next = insertion.position == point.first_right;
        let new = (insertion.item.as_ref(), key);
        let old = |position: usize| (page.item(position), page.key(position));
        let first_right = if new_is_next && !point.new_on_left {
            new
        } else {
            old(point.first_right)
        };
        if !page.is_leaf() {
            return Pivot {
                item: first_right.0.to_owned(),
                key: first_right.1.to_vec(),
            };
        }
        let last_left = if new_is_next && point.new_on_left {
            new
        } else {
            old(point.first_right - 1)
        };
        self.truncate(last_left, first_right)
    }

    /// Moves the items of a page, and the new one, to the left and the right page.
    fn distribute(
        &mut self,
        insertion: Insertion,
        key: &[i64],
        point: SplitPoint,
        high_key: Pivot,
        right_block: BlockNumber,
    ) {
        let block = insertion.block;
        let columns = key.len();
        let keyless = self.keyless_pivot(NO_BLOCK, insertion.item.as_ref());
        let page = self.page_mut(block);
        let first_data = page.first_data();
        let (items, keys) = page.take_items();
        let mut halves = Halves {
            left: BtreePage::new(page.level, columns),
            right: BtreePage::new(page.level, columns),
            keyless,
        };
        halves.left.prev = page.prev;
        halves.left.next = right_block;
        halves.left.push(high_key.item, &high_key.key);
        halves.right.prev = block;
        halves.right.next = page.next;
        let count = items.len();
        let mut new = Some(insertion.item);
        for position in 0..count {
            let item = items.get(position).to_owned();
            let old_key = &keys[position * columns..(position + 1) * columns];
            if position < first_data {
                halves.right.push(item, old_key);
                continue;
            }
            if position == insertion.position {
                halves.add_item(point.new_on_left, new.take().expect("one new item"), key);
            }
            halves.add_item(position < point.first_right, item, old_key);
        }
        if insertion.position >= count {
            halves.add_item(false, new.take().expect("one new item"), key);
        }
        let Halves { left, right, .. } = halves;
        self.pages[block.0 as usize - 1] = left;
        self.pages[right_block.0 as usize - 1] = right;
    }

    /// Gives a new right page its downlink, next to that of the left page.
    ///
    /// Source: `_bt_insert_parent`, src/backend/access/nbtree/nbtinsert.c (REL_18_STABLE).
    fn insert_downlink(
        &mut self,
        left: BlockNumber,
        right: BlockNumber,
        was_only: bool,
        mut stack: Stack,
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) {
        let page = self.page(left);
        let level = page.level;
        let key = page.key(0).to_vec();
        let mut item = page.item(0).to_owned();
        item.set_child(right);
        // Above the fast root nothing was on the stack: there the only page is the leftmost.
        let hint = stack.pop().unwrap_or_else(|| StackEntry {
            block: self
                .leftmost(level + 1)
                .expect("a page above a page that is no root"),
            position: 0,
        });
        let parent = self.refind(hint, left);
        let insertion = Insertion {
            block: parent.block,
            position: parent.position + 1,
            item,
            child: Some(left),
            posting_offset: None,
            child_was_only: was_only,
        };
        self.insert_on_page(insertion, &key, stack, table, sink);
    }

    /// Puts a new root above a root that was split.
    ///
    /// Source: `_bt_newlevel`, src/backend/access/nbtree/nbtinsert.c (REL_18_STABLE); `_bt_newroot`
    /// before 17.
    fn new_level(
        &mut self,
        left: BlockNumber,
        right: BlockNumber,
        table: &mut impl Table,
        sink: &mut impl Sink,
    ) {
        let page = self.page(left);
        let level = page.level + 1;
        let right_key = page.key(0).to_vec();
        let mut right_item = page.item(0).to_owned();
        right_item.set_child(right);
        let left_item = self.keyless_pivot(left, right_item.as_ref());
        let root = self.allocate(level, table, sink);
        let page = self.page_mut(root);
        page.is_root = true;
        page.push(left_item.item, &left_item.key);
        page.push(right_item, &right_key);
        self.meta.root = Some(root);
        self.meta.level = level;
        self.meta.fast_root = Some(root);
        self.meta.fast_level = level;
        let record = Record::new(RecordKind::NewRoot, 8)
            .init(root, self.page(root), self.page(root).item_bytes())
            .change(left, self.page(left), 0)
            .metapage(self.behaviour.btree_metadata_bytes);
        self.log(sink, &record);
    }
}
