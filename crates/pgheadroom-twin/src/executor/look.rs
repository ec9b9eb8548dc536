//! What transactions that will come need, asked for ahead of time.

use pgheadroom_layout::BlockNumber;

use crate::btree::search::LeafPart;
use crate::executor::steady::Target;
use crate::executor::{Database, TableId};
use crate::memory::{Pieces, prefetch};
use crate::page::Tid;

/// Bytes that a transaction pays for being moved into huge pages: a simple update, and one that
/// looks up entries of indexes.
const BYTES_PER_UPDATE: usize = 64;
const BYTES_PER_LOOKUP: usize = 256;

/// What a transaction that will come needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookAhead {
    /// Its row's place and values.
    Row,
    /// The header of its page.
    Page,
    /// The items that pruning the page and updating the row will touch.
    Items,
    /// The pages of all versions of a key, of which only the leaf is known so far.
    Pages,
    /// Those versions.
    Versions,
}

/// Where a statement by key will look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafTarget {
    table: TableId,
    index: usize,
    key: i64,
    leaf: BlockNumber,
    /// Where entries of the key lead to, once that was looked up.
    versions: [Option<Tid>; VERSIONS],
}

/// How many versions of a key are asked for.
const VERSIONS: usize = 4;

impl Database {
    /// Puts the tables' memory into huge pages, if so many transactions are worth that; that of
    /// indexes too where most transactions use them.
    ///
    /// Measured: moving a KB takes 4 us, and an update in a large table then takes 60 ns less.
    pub(crate) fn gather_memory(&self, transactions: u64) {
        let mut pieces = Pieces::default();
        let uses_trees = self.short_ways < transactions / 2;
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

    /// Where a statement by this key of an index will look, if it is the only column; asks for
    /// that leaf's header.
    pub(crate) fn look_for_leaf(
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
        let leaf = of.indexes.btrees[index].tree.look_for_leaf(key)?;
        if let Some(row) = of.indexes.places.row_of(index, key) {
            of.values.rows.look_ahead(row);
            of.values.changed_by.get(row as usize).map(prefetch);
        }
        Some(LeafTarget {
            table,
            index,
            key,
            leaf,
            versions: [None; VERSIONS],
        })
    }

    /// Asks for more of that leaf.
    pub(crate) fn look_at_leaf(&self, leaf: &mut LeafTarget, what: LookAhead) {
        let table = &self.tables[leaf.table.0];
        let tree = &table.indexes.btrees[leaf.index].tree;
        let pages = table.heap.pages();
        let page = |tid: Tid| pages.get(tid.block.0 as usize);
        match what {
            LookAhead::Row => {}
            LookAhead::Page => tree.look_at_leaf(leaf.leaf, leaf.key, LeafPart::Ends),
            LookAhead::Items => tree.look_at_leaf(leaf.leaf, leaf.key, LeafPart::Middle),
            LookAhead::Pages => {
                let mut places = leaf.versions.iter_mut();
                tree.each_ahead(leaf.leaf, leaf.key, |tid| {
                    if let (Some(page), Some(place)) = (page(tid), places.next()) {
                        page.look_at_header();
                        *place = Some(tid);
                    }
                });
            }
            LookAhead::Versions => {
                for tid in leaf.versions.into_iter().flatten() {
                    if let Some(page) = page(tid) {
                        page.look_at_version(tid.offset);
                    }
                }
            }
        }
    }

    /// Asks for the memory of an update that will come; changes nothing.
    #[inline(always)]
    pub(crate) fn look_ahead(&self, target: Target, what: LookAhead) {
        let table = &self.tables[target.table as usize];
        if what == LookAhead::Row {
            table.values.rows.look_ahead(target.row);
            return;
        }
        let place = table.values.rows.tid(target.row);
        let page = place.and_then(|tid| {
            let page = table.heap.pages().get(tid.block.0 as usize)?;
            Some((page, tid.offset))
        });
        match page {
            Some((page, offset)) if what == LookAhead::Items => page.look_at_items(offset),
            Some((page, _)) => prefetch(page),
            None => {}
        }
    }
}
