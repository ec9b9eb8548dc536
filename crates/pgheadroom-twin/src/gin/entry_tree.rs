//! The tree of keys.

use pgheadroom_layout::wal_record::GinInserted;

use crate::gin::key::Key;
use crate::gin::page::{Content, Entries, Item, Leaf, Rows};
use crate::gin::place::{Step, downlink};
use crate::gin::posting_leaf::merged;
use crate::gin::{GinIndex, ROOT, Surroundings};
use crate::page::Tid;

impl GinIndex {
    /// Adds rows, in their order, to a key.
    ///
    /// Source: `ginEntryInsert`, src/backend/access/gin/gininsert.c (REL_18_STABLE).
    pub(super) fn insert_rows(&mut self, key: &Key, tids: &[Tid], around: &mut Surroundings<'_>) {
        let mut path = self.path_to(key);
        let leaf = path.last_mut().expect("a leaf");
        let found = self
            .leaf(leaf.block)
            .items
            .binary_search_by(|entry| entry.key.cmp(key));
        leaf.at = found.unwrap_or_else(|at| at);
        let old = found.ok().map(|at| &self.leaf(leaf.block).items[at].rows);
        let entry = match old {
            Some(&Rows::Tree(root)) => return self.insert_into_tree(root, tids, around),
            Some(Rows::List(old)) => {
                let old = old.clone();
                Leaf::with_list(key, &merged(tids, &old)).unwrap_or_else(|| {
                    let root = self.create_posting_tree(&old, around);
                    self.insert_into_tree(root, tids, around);
                    Leaf::with_tree(key, root)
                })
            }
            None => Leaf::with_list(key, tids).unwrap_or_else(|| {
                let root = self.create_posting_tree(tids, around);
                Leaf::with_tree(key, root)
            }),
        };
        self.place_entry(path, entry, found.is_ok(), around);
    }

    /// Pages from the root to the leaf where a key belongs.
    ///
    /// Source: `ginFindLeafPage`, ginbtree.c; `entryLocateEntry`, ginentrypage.c (REL_18_STABLE).
    fn path_to(&self, key: &Key) -> Vec<Step> {
        let mut path = Vec::with_capacity(3);
        let mut block = ROOT;
        while let Content::Inner(entries) = &self.page(block).content {
            // The last one leads to all that is greater.
            let last = entries.items.len() - 1;
            let at = entries.items[..last].partition_point(|entry| entry.key < *key);
            path.push(Step { block, at });
            block = entries.items[at].child;
        }
        path.push(Step { block, at: 0 });
        path
    }

    pub(super) fn leaf(&self, block: u32) -> &Entries<Leaf> {
        match &self.page(block).content {
            Content::Leaf(entries) => entries,
            other => unreachable!("no leaf of entries: {other:?}"),
        }
    }

    /// Source: `ginInsertValue` and `ginFinishSplit`, src/backend/access/gin/ginbtree.c;
    /// `entryBeginPlaceToPage`, ginentrypage.c (REL_18_STABLE).
    fn place_entry(
        &mut self,
        mut path: Vec<Step>,
        entry: Leaf,
        replaces: bool,
        around: &mut Surroundings<'_>,
    ) {
        let Step { block, at } = path.pop().expect("a leaf");
        let Content::Leaf(entries) = &mut self.page_mut(block).content else {
            unreachable!("a leaf of entries");
        };
        let bytes = entry.bytes();
        if entries.has_room(bytes, replaces.then_some(at)) {
            if replaces {
                entries.replace(at, entry);
            } else {
                entries.insert(at, entry);
            }
            return self.log_insert(block, GinInserted::Entry(bytes), None, around.wal);
        }
        let mut items = std::mem::take(entries).items;
        if replaces {
            items[at] = entry;
        } else {
            items.insert(at, entry);
        }
        let (left, right) = Entries::halves(items);
        let halves = (Content::Leaf(left), Content::Leaf(right));
        let is_root = path.is_empty();
        if let Some(right) = self.split((block, is_root), halves, None, around) {
            self.finish_split(path, (block, right), around);
        }
    }

    /// Tells the parent of a split, and its parent of the parent's.
    fn finish_split(
        &mut self,
        mut path: Vec<Step>,
        (mut child, mut right): (u32, u32),
        around: &mut Surroundings<'_>,
    ) {
        while let Some(Step { block, at }) = path.pop() {
            let item = downlink(&self.page(child).content, child);
            let Content::Inner(entries) = &mut self.page_mut(block).content else {
                unreachable!("an inner page of entries");
            };
            entries.items[at].child = right;
            let bytes = item.bytes();
            if entries.has_room(bytes, None) {
                entries.insert(at, item);
                return self.log_insert(block, GinInserted::Entry(bytes), Some(child), around.wal);
            }
            let mut items = std::mem::take(entries).items;
            items.insert(at, item);
            let (left, rest) = Entries::halves(items);
            let halves = (Content::Inner(left), Content::Inner(rest));
            let is_root = path.is_empty();
            let Some(new) = self.split((block, is_root), halves, Some(child), around) else {
                return;
            };
            (child, right) = (block, new);
        }
    }
}
