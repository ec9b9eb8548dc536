//! A tree of rows that have one key.

use pgheadroom_layout::gin::{
    GIN_DATA_PAGE_MAX_DATA_SIZE, SEGMENT_MAX_SIZE, SIZE_OF_POSTING_ITEM, packed,
};
use pgheadroom_layout::wal_record::{GinInserted, gin_create_posting_tree};

use crate::gin::page::{Content, List, NO_BOUND, Page, codes};
use crate::gin::place::Step;
use crate::gin::posting_leaf::Placed;
use crate::gin::{GinIndex, Surroundings};
use crate::page::Tid;
use crate::wal::GinRecord;

/// Items that an inner page has room for.
const ITEMS_MAX: usize = (GIN_DATA_PAGE_MAX_DATA_SIZE / SIZE_OF_POSTING_ITEM) as usize;

impl GinIndex {
    /// A new tree of these rows, in their order; its root.
    ///
    /// Source: `createPostingTree`, src/backend/access/gin/gindatapage.c (REL_18_STABLE).
    pub(super) fn create_posting_tree(
        &mut self,
        tids: &[Tid],
        around: &mut Surroundings<'_>,
    ) -> u32 {
        let mut lists = Vec::new();
        let (mut done, mut bytes) = (0, 0);
        while done < tids.len() {
            let (count, size) = packed(codes(&tids[done..]), SEGMENT_MAX_SIZE);
            if bytes + size > GIN_DATA_PAGE_MAX_DATA_SIZE {
                break;
            }
            lists.push(List {
                tids: tids[done..done + count].to_vec(),
                bytes: size,
            });
            bytes += size;
            done += count;
        }
        let root = self.new_page(around);
        *self.page_mut(root) = Page::alone(Content::DataLeaf {
            lists,
            bound: NO_BOUND,
        });
        let page = self.log.init(root, around.wal);
        let size = gin_create_posting_tree(page, bytes);
        self.record(GinRecord::CreatePtree, size, around.wal);
        self.insert_into_tree(root, &tids[done..], around);
        root
    }

    /// Adds rows, in their order.
    ///
    /// Source: `ginInsertItemPointers`, src/backend/access/gin/gindatapage.c (REL_18_STABLE).
    pub(super) fn insert_into_tree(
        &mut self,
        root: u32,
        tids: &[Tid],
        around: &mut Surroundings<'_>,
    ) {
        let mut left = tids;
        while let Some(&first) = left.first() {
            let path = self.path_to_row(root, first);
            let done = self.place_rows(path, left, around);
            left = &left[done..];
        }
    }

    /// Source: `ginFindLeafPage`, ginbtree.c; `dataLocateItem`, gindatapage.c (REL_18_STABLE).
    fn path_to_row(&self, root: u32, tid: Tid) -> Vec<Step> {
        let mut path = Vec::with_capacity(3);
        let mut block = root;
        while let Content::DataInner { items, .. } = &self.page(block).content {
            let last = items.len() - 1;
            let at = items[..last].partition_point(|(_, bound)| *bound < tid);
            path.push(Step { block, at });
            block = items[at].0;
        }
        path.push(Step { block, at: 0 });
        path
    }

    /// Puts as many of these rows as belong and fit there on a leaf, or on two.
    ///
    /// Source: `ginInsertValue` and `ginFinishSplit`, src/backend/access/gin/ginbtree.c
    /// (REL_18_STABLE).
    fn place_rows(
        &mut self,
        mut path: Vec<Step>,
        tids: &[Tid],
        around: &mut Surroundings<'_>,
    ) -> usize {
        let Step { block, .. } = path.pop().expect("a leaf");
        let is_build = !self.log.is_on;
        let (count, placed) = self.page_mut(block).place_on_leaf(tids, is_build);
        match placed {
            Placed::Nothing => {}
            Placed::Here(changes) => {
                let inserted = GinInserted::Lists(changes);
                self.log_insert(block, inserted, None, around.wal);
            }
            Placed::OnTwo(left, right) => {
                let is_root = path.is_empty();
                if let Some(right) = self.split((block, is_root), (left, right), None, around) {
                    self.finish_split_of_tree(path, (block, right), around);
                }
            }
        }
        count
    }

    fn finish_split_of_tree(
        &mut self,
        mut path: Vec<Step>,
        (mut child, mut right): (u32, u32),
        around: &mut Surroundings<'_>,
    ) {
        while let Some(Step { block, at }) = path.pop() {
            let child_bound = match &self.page(child).content {
                Content::DataLeaf { bound, .. } | Content::DataInner { bound, .. } => *bound,
                other => unreachable!("no page of a posting tree: {other:?}"),
            };
            let is_last = self.page(block).next.is_none();
            let is_build = !self.log.is_on;
            let Content::DataInner { items, bound } = &mut self.page_mut(block).content else {
                unreachable!("an inner page of a posting tree");
            };
            let has_room = items.len() < ITEMS_MAX;
            items[at].0 = right;
            items.insert(at, (child, child_bound));
            if has_room {
                return self.log_insert(block, GinInserted::PostingItem, Some(child), around.wal);
            }
            // Source: `dataSplitPageInternal`, src/backend/access/gin/gindatapage.c.
            let on_left = if is_build && is_last {
                ITEMS_MAX
            } else {
                items.len() / 2
            };
            let rest = items.split_off(on_left);
            let left = Content::DataInner {
                bound: items[on_left - 1].1,
                items: std::mem::take(items),
            };
            let rest = Content::DataInner {
                items: rest,
                bound: *bound,
            };
            let is_root = path.is_empty();
            let Some(new) = self.split((block, is_root), (left, rest), Some(child), around) else {
                return;
            };
            (child, right) = (block, new);
        }
    }
}
