//! REINDEX: indexes of a table that has lived are built anew.
//!
//! ```text
//! page in order -> roots of its chains -> versions that somebody sees, by their roots -> sort
//!   -> new file, logged page by page -> old file dropped
//! ```
//!
//! The scan prunes nothing; it leaves hints, as whoever looks at a version does.
//!
//! Source: `reindex_index` and `reindex_relation`, src/backend/catalog/index.c;
//! `heapam_index_build_range_scan`, src/backend/access/heap/heapam_handler.c (REL_15_STABLE,
//! REL_18_STABLE).

use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::btree::METAPAGE_HOLE;
use crate::executor::index::Index;
use crate::executor::index_definition::IndexMethod;
use crate::executor::rewrite::holes;
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::executor::{Database, Relation, StatementError, TableId};
use crate::heap::Heap;
use crate::page::{LinePointer, Tid, Tuple, index_of, offset_of};
use crate::procarray::ProcArray;
use crate::prune::TupleState;
use crate::transaction::{Transactions, Xid};
use crate::wal::Wal;

impl Database {
    /// REINDEX of the index at this position, or of all of a table's and its TOAST table's.
    ///
    /// # Errors
    /// [`StatementError`] when an entry cannot be made.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn reindex(&mut self, table: TableId, index: Option<usize>) -> Result<(), StatementError> {
        assert!(self.procs.current().is_none(), "REINDEX in a transaction");
        self.settle_images();
        self.statement += 1;
        self.wal.open_table(table.0);
        self.procs.begin_statement();
        self.procs.compute_horizons();
        self.procs.assign();
        let of = &mut self.tables[table.0];
        self.procs.object_ids.skip(of.oids_of_reindex(index));
        let mut done = of.reindex(index, &mut self.procs, &mut self.wal);
        if index.is_none() && done.is_ok() {
            done = of.reindex_toast(&mut self.procs, &mut self.wal);
        }
        self.procs.commit();
        done?;
        self.settle_images();
        // What has no index that was built tells nobody (`index_update_stats`).
        let is_built = [self.tables[table.0].has_indexes(), index.is_none()];
        for (is_toast, is_built) in [false, true].into_iter().zip(is_built) {
            if is_built {
                self.forget_target_blocks_of(Relation { table, is_toast });
            }
        }
        Ok(())
    }
}

impl Table {
    fn reindex(
        &mut self,
        index: Option<usize>,
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let found = indexed_versions(&self.heap, procs);
        let mut rows = found.clone();
        rows.sort_unstable_by_key(|&(_, tid)| tid);
        let positions = 0..self.indexes.definitions.len();
        for position in positions.filter(|position| index.is_none_or(|one| one == *position)) {
            self.note_all_hints(procs, wal);
            let definition = self.indexes.definitions[position].clone();
            let mut to = Writer {
                procs,
                wal,
                statement: 0, // nothing is stored
            };
            self.read_for_build(&definition, &found, &mut to)?;
            if let Some(btree) = self.indexes.btree_positions[position] {
                self.reindex_btree(position, btree, &rows, wal)?;
            } else if self.indexes.definitions[position].method == IndexMethod::Hash {
                self.reindex_hash(position, &found, wal)?;
            } else if self.indexes.definitions[position].method == IndexMethod::Gin {
                self.reindex_gin(position, &rows, wal)?;
            }
            self.note_indexed(procs);
        }
        Ok(())
    }

    /// Numbers of files that a REINDEX of the index at this position takes, or of all.
    ///
    /// Source: `reindex_index`, src/backend/catalog/index.c (REL_18_STABLE).
    fn oids_of_reindex(&self, index: Option<usize>) -> u32 {
        let all = self.indexes.definitions.len() + usize::from(self.needs_toast_table());
        u32::try_from(index.map_or(all, |_| 1)).expect("few indexes")
    }

    /// The index of its TOAST table, if the server has one.
    fn reindex_toast(
        &mut self,
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        if !self.needs_toast_table() {
            return Ok(());
        }
        if let Some(toast) = &mut self.toast {
            return toast.table.reindex(None, procs, wal);
        }
        // No value of the table's ever gets there: the index is empty.
        let fork = wal.add_fork();
        wal.write_fork(fork, &[METAPAGE_HOLE], self.heap.behaviour());
        wal.end_new_fork(fork, 1);
        Ok(())
    }

    fn reindex_btree(
        &mut self,
        position: usize,
        btree: usize,
        rows: &[(u32, Tid)],
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let behaviour = *self.heap.behaviour();
        let definition = self.indexes.definitions[position].clone();
        let mut index = Index::new(behaviour, definition, &self.values.row_type, wal)?;
        let built = self.fill(&mut index, rows.iter().copied(), false)?;
        wal.write_fork(index.main, &holes(&built), &behaviour);
        wal.end_new_fork(index.main, index.tree.page_count());
        let old = std::mem::replace(&mut self.indexes.btrees[btree], index);
        let new = self.indexes.btrees[btree].main;
        self.indexes.cached_tids.is_built_anew(old.main, new);
        for fork in [old.main, old.fsm] {
            wal.drop_fork(fork);
        }
        Ok(())
    }

    fn reindex_hash(
        &mut self,
        position: usize,
        rows: &[(u32, Tid)],
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let behaviour = *self.heap.behaviour();
        let number = self.number_of_method(position);
        let definition = self.indexes.definitions[position].clone();
        let logs = !wal.skips_new_relations();
        let hash = self.filled_hash(behaviour, definition, rows.iter().copied(), (logs, wal))?;
        let (fork, pages) = (hash.index.main(), hash.index.page_count());
        wal.end_new_fork_with_new_pages(fork, pages, &hash.index.new_blocks());
        let old = std::mem::replace(&mut self.indexes.hashes[number], hash);
        wal.drop_fork(old.index.main());
        Ok(())
    }

    fn reindex_gin(
        &mut self,
        position: usize,
        rows: &[(u32, Tid)],
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let behaviour = *self.heap.behaviour();
        let number = self.number_of_method(position);
        let definition = self.indexes.definitions[position].clone();
        let gin = self.filled_gin(behaviour, definition, rows.iter().copied(), wal)?;
        gin.log_new(wal);
        let old = std::mem::replace(&mut self.indexes.gins[number], gin);
        for fork in old.index.forks() {
            wal.drop_fork(fork);
        }
        Ok(())
    }

    /// Which index of its method the one at this position is.
    fn number_of_method(&self, position: usize) -> usize {
        let definitions = &self.indexes.definitions;
        let method = definitions[position].method;
        let before = definitions[..position].iter();
        before.filter(|one| one.method == method).count()
    }
}

/// Rows of the versions that an index gets, and the roots of their chains, in the order of a scan.
///
/// A version that only older snapshots see has an entry unless a HOT update followed: then the
/// newest one of the chain has it.
///
/// Source: `heap_get_root_tuples`, src/backend/access/heap/pruneheap.c;
/// `heapam_index_build_range_scan`, heapam_handler.c (REL_18_STABLE).
fn indexed_versions(heap: &Heap, transactions: &impl Transactions) -> Vec<(u32, Tid)> {
    let mut found = Vec::new();
    for (block, page) in (0..).map(BlockNumber).zip(heap.pages()) {
        let items = page.items();
        let roots = roots_of(&items);
        for (item, root) in items.iter().zip(roots) {
            let (LinePointer::Normal(tuple), Some(offset)) = (item, root) else {
                continue;
            };
            let has_entry = match TupleState::of(tuple, transactions) {
                TupleState::Dead => false,
                TupleState::RecentlyDead => !tuple.is_hot_updated,
                _ => true,
            };
            if has_entry {
                found.push((tuple.row, Tid { block, offset }));
            }
        }
    }
    found
}

/// By line pointer: the root of the chain that its tuple is in.
fn roots_of(items: &[LinePointer]) -> Vec<Option<OffsetNumber>> {
    let mut roots = vec![None; items.len()];
    for (position, item) in items.iter().enumerate() {
        let root = offset_of(position);
        let mut next = match item {
            LinePointer::Redirect(to) => Some((*to, None)),
            LinePointer::Normal(tuple) if !tuple.is_heap_only => {
                roots[position] = Some(root);
                next_of(tuple)
            }
            _ => None,
        };
        while let Some((offset, made_by)) = next {
            let Some(LinePointer::Normal(tuple)) = items.get(index_of(offset)) else {
                break;
            };
            if made_by.is_some_and(|xid| xid != tuple.xmin) {
                break;
            }
            roots[index_of(offset)] = Some(root);
            next = next_of(tuple);
        }
    }
    roots
}

/// The next heap-only version, and who made it.
fn next_of(tuple: &Tuple) -> Option<(OffsetNumber, Option<Xid>)> {
    let leads = tuple.is_hot_updated && tuple.xmax.is_valid();
    leads.then_some((tuple.next.offset, Some(tuple.xmax)))
}
