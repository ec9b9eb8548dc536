//! Splitting a page of either tree, and the records of insertions.

use pgheadroom_layout::wal_record::{GinInserted, gin_insert, gin_split};

use crate::gin::page::{Content, Downlink, Entries, NO_BOUND, Page};
use crate::gin::{GinIndex, Surroundings};
use crate::wal::{GinRecord, Wal};

/// A page on the way from the root, and the place of the next one on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub block: u32,
    pub at: usize,
}

impl GinIndex {
    /// Something came to a page; on an inner page it makes the split of `child` known.
    ///
    /// Source: `ginPlaceToPage`, src/backend/access/gin/ginbtree.c (REL_18_STABLE).
    pub(super) fn log_insert(
        &self,
        block: u32,
        inserted: GinInserted,
        child: Option<u32>,
        wal: &mut Wal,
    ) {
        let page = self.change(block, wal);
        let child = child.map(|child| self.change(child, wal));
        self.record(GinRecord::Insert, gin_insert(page, inserted, child), wal);
    }

    /// A page becomes two; the number of the right one, or nothing where it was the root, which
    /// leads to both then.
    ///
    /// Source: `ginPlaceToPage`, src/backend/access/gin/ginbtree.c (REL_18_STABLE).
    pub(super) fn split(
        &mut self,
        (block, is_root): (u32, bool),
        (left, right): (Content, Content),
        child: Option<u32>,
        around: &mut Surroundings<'_>,
    ) -> Option<u32> {
        let right_block = self.new_page(around);
        let next = self.page(block).next;
        let wal = &mut *around.wal;
        if !is_root {
            *self.page_mut(right_block) = Page {
                content: right,
                next,
            };
            *self.page_mut(block) = Page {
                content: left,
                next: Some(right_block),
            };
            let pages = (self.whole(block, wal), self.whole(right_block, wal));
            let child = child.map(|child| self.change(child, wal));
            let bytes = gin_split(pages.0, pages.1, None, child);
            self.record(GinRecord::Split, bytes, wal);
            return Some(right_block);
        }
        let left_block = self.new_page(around);
        let wal = &mut *around.wal;
        let root = root_over((&left, left_block), (&right, right_block));
        *self.page_mut(right_block) = Page::alone(right);
        *self.page_mut(left_block) = Page {
            content: left,
            next: Some(right_block),
        };
        *self.page_mut(block) = Page::alone(root);
        let pages = [left_block, right_block, block].map(|block| self.whole(block, wal));
        let child = child.map(|child| self.change(child, wal));
        let bytes = gin_split(pages[0], pages[1], Some(pages[2]), child);
        self.record(GinRecord::Split, bytes, wal);
        None
    }
}

/// A root that leads to these two pages.
///
/// Source: `ginEntryFillRoot`, ginentrypage.c; `ginDataFillRoot`, gindatapage.c (REL_18_STABLE).
fn root_over(
    (left, left_block): (&Content, u32),
    (right, right_block): (&Content, u32),
) -> Content {
    let bound = |content: &Content| match content {
        Content::DataLeaf { bound, .. } | Content::DataInner { bound, .. } => Some(*bound),
        _ => None,
    };
    if let (Some(left), Some(right)) = (bound(left), bound(right)) {
        return Content::DataInner {
            items: vec![(left_block, left), (right_block, right)],
            bound: NO_BOUND,
        };
    }
    Content::Inner(Entries::of(vec![
        downlink(left, left_block),
        downlink(right, right_block),
    ]))
}

/// What leads to a page of the entry tree: its last key.
///
/// Source: `GinFormInteriorTuple`, src/backend/access/gin/ginentrypage.c (REL_18_STABLE).
pub(super) fn downlink(content: &Content, child: u32) -> Downlink {
    let key = match content {
        Content::Leaf(entries) => entries.items.last().map(|entry| &entry.key),
        Content::Inner(entries) => entries.items.last().map(|entry| &entry.key),
        _ => None,
    };
    Downlink {
        key: key.expect("a page with entries").clone(),
        child,
    }
}
