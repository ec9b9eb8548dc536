//! Prefetching into the processor's cache what transactions that will come need; changes nothing.

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::btree::prefetch::LeafPart;
use crate::executor::Target;
use crate::executor::table::Table;
use crate::executor::{Assignment, Database, TableId};
use crate::memory::{Pieces, prefetch};
use crate::page::Tid;
use crate::row::NULL_SLOT;

/// Bytes that a transaction pays for being moved into huge pages: a simple update, and one that
/// looks up entries of indexes.
const BYTES_PER_UPDATE: usize = 64;
const BYTES_PER_LOOKUP: usize = 256;

/// What a transaction that will come needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// Its row's TID and values.
    Row,
    /// The header of its page.
    Page,
    /// The items that pruning the page and updating the row will touch.
    Items,
    /// The pages of all versions of a key, of which only the leaf is known so far.
    Pages,
    /// Leaves of other indexes that a new version needs an entry on.
    Leaves,
    /// Their first and last entries.
    Ends,
    /// Those versions, and the posting lists on those leaves that a new entry may fall into.
    Versions,
    /// The ends of these lists.
    Tids,
}

/// Where a statement by key will search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafTarget {
    table: TableId,
    index: usize,
    key: i64,
    leaf: BlockNumber,
    /// Where entries of the key lead to, once that was looked up.
    versions: [Option<Tid>; VERSIONS],
    /// Where on the leaf the key's first entry is, once that was looked up.
    position: usize,
    /// Of an update that needs new entries: where those of other indexes most likely go.
    beside: [Option<Beside>; BESIDE],
}

/// An entry that another index most likely gets.
#[derive(Debug, Clone, Copy)]
struct Beside {
    index: usize,
    key: i64,
    tid: Tid,
    leaf: BlockNumber,
    /// Where on the leaf, once that was looked up.
    position: usize,
}

/// Of how many other indexes leaves are prefetched.
const BESIDE: usize = 2;

/// How many versions of a key are prefetched.
const VERSIONS: usize = 4;

impl Database {
    /// Puts the tables' memory into huge pages, if so many transactions are worth that; that of
    /// indexes too where most transactions use them.
    ///
    /// Measured: moving a KB takes 4 us, and an update in a large table then takes 60 ns less.
    pub(crate) fn gather_memory(&self, transactions: u64) {
        let mut pieces = Pieces::default();
        let uses_trees = self.fast_updates < transactions / 2;
        for table in &self.tables {
            table.values.rows.pieces(&mut pieces);
            pieces.add(table.heap.pages());
            for page in table.heap.pages() {
                page.pieces(&mut pieces);
            }
            if uses_trees {
                for index in &table.indexes.btrees {
                    index.tree.pieces(&mut pieces);
                }
            }
        }
        let bytes_each = if uses_trees {
            BYTES_PER_LOOKUP
        } else {
            BYTES_PER_UPDATE
        };
        if transactions >= (pieces.bytes() / bytes_each) as u64 {
            pieces.gather();
        }
    }

    /// Where a statement by this key of an index will search, if it is the only column; prefetches
    /// that leaf's header.
    pub(crate) fn prefetch_leaf(
        &self,
        table: TableId,
        index: usize,
        key: i64,
    ) -> Option<LeafTarget> {
        let of = &self.tables[table.0];
        if of.has_key_numbers(index) {
            return None;
        }
        let index = of.btree_position(index);
        let leaf = of.indexes.btrees[index].tree.prefetch_leaf(key, None)?;
        if let Some(row) = of.indexes.cached_tids.row_of(index, key) {
            of.values.rows.prefetch_row(row);
        }
        Some(LeafTarget {
            table,
            index,
            key,
            leaf,
            versions: [None; VERSIONS],
            position: 0,
            beside: [None; BESIDE],
        })
    }

    /// Prefetches more of that leaf, and of others that an update with this SET clause needs.
    pub(crate) fn prefetch_search(
        &self,
        leaf: &mut LeafTarget,
        sets: &[Assignment<'_>],
        what: Prefetch,
    ) {
        let table = &self.tables[leaf.table.0];
        let tree = &table.indexes.btrees[leaf.index].tree;
        let pages = table.heap.pages();
        let page = |tid: Tid| pages.get(tid.block.0 as usize);
        match what {
            Prefetch::Row => {}
            Prefetch::Page => tree.prefetch_leaf_part(leaf.leaf, leaf.key, LeafPart::Ends),
            Prefetch::Items => tree.prefetch_leaf_part(leaf.leaf, leaf.key, LeafPart::Middle),
            Prefetch::Pages => {
                let mut versions = leaf.versions.iter_mut();
                leaf.position = tree.prefetch_heap_tids(leaf.leaf, leaf.key, |tid| {
                    if let (Some(page), Some(version)) = (page(tid), versions.next()) {
                        page.prefetch_header();
                        *version = Some(tid);
                    }
                });
            }
            Prefetch::Leaves => table.prefetch_other_leaves(leaf, sets),
            Prefetch::Ends => {
                for page in leaf.versions.into_iter().flatten().filter_map(page) {
                    page.prefetch_touched();
                }
                table.prefetch_other_leaf_parts(leaf, LeafPart::Ends);
            }
            Prefetch::Versions => {
                for tid in leaf.versions.into_iter().flatten() {
                    if let Some(page) = page(tid) {
                        page.prefetch_tuple(tid.offset);
                        page.prefetch_link(tid.offset);
                        page.prefetch_unsettled();
                    }
                }
                tree.prefetch_posting_lists(leaf.leaf, leaf.position, leaf.key);
                table.prefetch_other_leaf_parts(leaf, LeafPart::List);
            }
            Prefetch::Tids => table.prefetch_other_leaf_parts(leaf, LeafPart::Tids),
        }
    }

    /// The transaction whose leaves were prefetched comes next: searches may well end there.
    pub(crate) fn expect_leaves(&mut self, leaf: &LeafTarget) {
        let indexes = &mut self.tables[leaf.table.0].indexes.btrees;
        let tree = &mut indexes[leaf.index].tree;
        tree.expect_at(leaf.leaf, leaf.position);
        for beside in leaf.beside.iter().flatten() {
            let tree = &mut indexes[beside.index].tree;
            tree.expect_at(beside.leaf, beside.position);
        }
    }

    /// Prefetches the memory of a row that a statement by key will be about.
    #[inline(always)]
    pub(crate) fn prefetch_target(&self, target: Target, what: Prefetch) {
        let table = &self.tables[target.table as usize];
        if what == Prefetch::Row {
            table.values.rows.prefetch_row(target.row);
            return;
        }
        let cached = table.values.rows.tid(target.row);
        let page = cached.and_then(|tid| {
            let page = table.heap.pages().get(tid.block.0 as usize)?;
            Some((page, tid.offset))
        });
        match page {
            Some((page, offset)) if what == Prefetch::Items => page.prefetch_items(offset),
            Some((page, _)) => prefetch(page),
            None => {}
        }
    }
}

impl Table {
    /// Prefetches the leaves where other indexes get entries, should the row's next version lie on
    /// the page of the last one, or where that has no line pointer left on the page that took a
    /// tuple last; of an update that is no HOT one.
    fn prefetch_other_leaves(&self, leaf: &mut LeafTarget, sets: &[Assignment<'_>]) {
        let blocks_hot = |one: &Assignment<'_>| self.indexes.blocks_hot[one.column];
        if self.indexes.btrees.len() < 2 || !sets.iter().any(blocks_hot) {
            return;
        }
        let Some(row) = self.indexes.cached_tids.row_of(leaf.index, leaf.key) else {
            return;
        };
        let last = || leaf.versions.iter().flatten().last().copied();
        let Some(version) = self.values.rows.tid(row).or_else(last) else {
            return;
        };
        let Some(page) = self.heap.pages().get(version.block.0 as usize) else {
            return;
        };
        let block = if page.has_line_pointer() {
            version.block
        } else {
            self.session.target.0.unwrap_or(version.block)
        };
        let tid = Tid {
            block,
            offset: OffsetNumber(0), // before all of the page
        };
        let mut besides = leaf.beside.iter_mut();
        for (index, other) in self.indexes.btrees.iter().enumerate() {
            let Some((column, _)) = other.slots_as_keys().filter(|_| index != leaf.index) else {
                continue;
            };
            let slot = self.values.rows.slot(row, column);
            let set = sets.iter().find(|one| one.column == column);
            let key = match set {
                Some(one) => self
                    .values
                    .row_type
                    .grown(column, slot, &one.change)
                    .flatten(),
                None => Some(slot).filter(|&slot| slot != NULL_SLOT),
            };
            if let Some(key) = key
                && let Some(leaf) = other.tree.prefetch_leaf(key, Some(tid))
                && let Some(beside) = besides.next()
            {
                *beside = Some(Beside {
                    index,
                    key,
                    tid,
                    leaf,
                    position: 0,
                });
            }
        }
    }

    fn prefetch_other_leaf_parts(&self, leaf: &mut LeafTarget, part: LeafPart) {
        for beside in leaf.beside.iter_mut().flatten() {
            let tree = &self.indexes.btrees[beside.index].tree;
            let at = (beside.leaf, &mut beside.position);
            tree.prefetch_insert_location(at, (beside.key, beside.tid), part);
        }
    }
}
