//! Deletion of empty leaves, and of inner pages that had nothing else below them.
//!
//! ```text
//! half-dead:  the parent's downlink to the page now leads to its right sibling, whose own
//!             downlink goes; the empty page keeps only links
//! unlinked:   the siblings no longer link to it; it remembers the next transaction, and is free
//!             once all snapshots are newer
//! ```

use pgheadroom_layout::BlockNumber;

use crate::btree::Btree;
use crate::btree::item::OwnedItem;
use crate::btree::key::{MINUS_INFINITY, SearchKey};
use crate::btree::page::{NO_BLOCK, PageState};
use crate::btree::record::{Record, RecordKind, Sink};
use crate::btree::search::{Stack, StackEntry, Tie};
use crate::btree::vacuum::{BtPendingFsm, Pass};

/// Main data of the two records.
///
/// Source: `SizeOfBtreeMarkPageHalfDead` and `SizeOfBtreeUnlinkPage`, src/include/access/nbtxlog.h
/// (REL_18_STABLE; same since 14).
const MARK_HALFDEAD_BYTES: u32 = 20;
const UNLINK_BYTES: u32 = 36;

/// The page whose downlink goes, and how high the deleted subtree reaches.
struct SubtreeParent {
    entry: StackEntry,
    top_parent: Option<BlockNumber>,
}

impl Btree {
    /// Deletes an empty leaf if that is possible, and right siblings that are empty too.
    ///
    /// Source: `_bt_pagedel`, src/backend/access/nbtree/nbtpage.c (REL_18_STABLE).
    pub(super) fn delete_page(
        &mut self,
        leaf: BlockNumber,
        pass: &mut Pass<'_>,
        sink: &mut impl Sink,
    ) {
        let mut leaf = leaf;
        loop {
            let page = self.page(leaf);
            if page.is_rightmost() || page.is_root || !page.is_empty() {
                return;
            }
            if page.state == PageState::Live && !self.mark_half_dead(leaf, sink) {
                return;
            }
            let mut right_is_empty = false;
            while let PageState::HalfDead { top_parent } = self.page(leaf).state {
                right_is_empty = self.unlink(leaf, top_parent, pass, sink);
            }
            if !right_is_empty {
                return;
            }
            leaf = self.page(leaf).next;
        }
    }

    /// Source: `_bt_mark_page_halfdead`, nbtpage.c (REL_18_STABLE).
    fn mark_half_dead(&mut self, leaf: BlockNumber, sink: &mut impl Sink) -> bool {
        let page = self.page(leaf);
        if matches!(self.page(page.next).state, PageState::HalfDead { .. }) {
            return false;
        }
        let high_key = SearchKey {
            values: page.key(0),
            tid: page.item(0).tid(),
        };
        let (_, stack) = self
            .descend(high_key, Tie::PivotIsEqual)
            .expect("the tree has a root");
        let Some(parent) = self.subtree_parent(leaf, stack) else {
            return false;
        };
        let StackEntry { block, position } = parent.entry;
        let right = self.page(block).item(position + 1).child();
        let page = self.page_mut(block);
        page.slots_mut().set_child(position, right.0);
        page.remove(position + 1);
        let shape = self.page(leaf).item(0).shape();
        let page = self.page_mut(leaf);
        page.state = PageState::HalfDead {
            top_parent: parent.top_parent,
        };
        let columns = page.key(0).len();
        let keyless = OwnedItem::pivot(NO_BLOCK, None, shape, 8, 0);
        page.overwrite(0, keyless, &vec![MINUS_INFINITY; columns]);
        let record = Record::new(RecordKind::MarkPageHalfdead, MARK_HALFDEAD_BYTES)
            .init(leaf, self.page(leaf), 0)
            .change(block, self.page(block), 0);
        self.log(sink, &record);
        true
    }

    /// The lowest ancestor that has a downlink right of the one that goes. Ancestors below it have
    /// no other child and go too. `None` when the page is the last one below its parent.
    ///
    /// Source: `_bt_lock_subtree_parent`, nbtpage.c (REL_18_STABLE).
    fn subtree_parent(&self, leaf: BlockNumber, mut stack: Stack) -> Option<SubtreeParent> {
        let mut child = leaf;
        let mut top_parent = None;
        loop {
            let hint = stack.pop()?;
            let entry = self.refind(hint, child);
            let page = self.page(entry.block);
            if entry.position + 1 < page.len() {
                return Some(SubtreeParent { entry, top_parent });
            }
            if entry.position != page.first_data() || page.is_rightmost() {
                return None;
            }
            child = entry.block;
            top_parent = Some(child);
        }
    }

    /// Takes one page of the deleted subtree out of its level, the topmost first. Whether the page
    /// to the right is empty.
    ///
    /// Source: `_bt_unlink_halfdead_page`, nbtpage.c (REL_18_STABLE).
    fn unlink(
        &mut self,
        leaf: BlockNumber,
        top_parent: Option<BlockNumber>,
        pass: &mut Pass<'_>,
        sink: &mut impl Sink,
    ) -> bool {
        let target = top_parent.unwrap_or(leaf);
        let page = self.page(target);
        let (left, right, level) = (page.prev, page.next, page.level);
        let next_target = (target != leaf)
            .then(|| page.item(page.first_data()).child())
            .filter(|&child| child != leaf);
        let sibling = self.page(right);
        let right_is_empty = sibling.is_empty();
        let is_new_fast_root =
            left == NO_BLOCK && sibling.is_rightmost() && self.meta.fast_level <= level + 1;
        if left != NO_BLOCK {
            self.page_mut(left).next = right;
        }
        self.page_mut(right).prev = left;
        if target != leaf {
            self.page_mut(leaf).state = PageState::HalfDead {
                top_parent: next_target,
            };
        }
        let safe_xid = pass.next_xid;
        let page = self.page_mut(target);
        page.state = PageState::Deleted { safe_xid };
        page.take_items();
        let kind = if is_new_fast_root {
            self.meta.fast_root = Some(right);
            self.meta.fast_level = level;
            RecordKind::UnlinkPageMeta
        } else {
            RecordKind::UnlinkPage
        };
        self.log_unlink(kind, (target, left, right), leaf, sink);
        pass.result.pages_newly_deleted += 1;
        if target <= pass.scanned {
            pass.result.pages_deleted += 1;
        }
        pass.pending_pages.push(BtPendingFsm {
            block: target,
            scanned: pass.scanned,
            safe_xid,
        });
        right_is_empty
    }

    fn log_unlink(
        &mut self,
        kind: RecordKind,
        (target, left, right): (BlockNumber, BlockNumber, BlockNumber),
        leaf: BlockNumber,
        sink: &mut impl Sink,
    ) {
        let mut record = Record::new(kind, UNLINK_BYTES).init(target, self.page(target), 0);
        if left != NO_BLOCK {
            record = record.change(left, self.page(left), 0);
        }
        record = record.change(right, self.page(right), 0);
        if target != leaf {
            record = record.init(leaf, self.page(leaf), 0);
        }
        if kind == RecordKind::UnlinkPageMeta {
            record = record.metapage(self.behaviour.btree_metadata_bytes);
        }
        self.log(sink, &record);
    }
}
