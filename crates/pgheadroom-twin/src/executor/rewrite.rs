//! VACUUM FULL, CLUSTER, TRUNCATE: a table gets new files, and its indexes are built anew.
//!
//! ```text
//! VACUUM FULL  old pages in order     \
//! CLUSTER      rows in an index's order > new heap (logged page by page) -> every index built
//! TRUNCATE     nothing                /                                   -> old files dropped
//! ```
//!
//! Nobody else works on the table meanwhile. CLUSTER reads the table and sorts, which leaves the
//! old pages alone; a scan of the index would prune them. Of the records only those of the table's
//! pages are counted: not the catalogue's, nor the COMMIT, whose length depends on them.
//!
//! Source: `cluster_rel`, `rebuild_relation` and `finish_heap_swap`,
//! src/backend/commands/cluster.c; `heapam_relation_copy_for_cluster`,
//! src/backend/access/heap/heapam_handler.c; `ExecuteTruncateGuts`,
//! src/backend/commands/tablecmds.c (REL_15_STABLE, REL_18_STABLE).

use pgheadroom_layout::page::BLCKSZ;
use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::btree::{Built, METAPAGE_HOLE};
use crate::checkpoint::ForkId;
use crate::executor::change::page_bytes;
use crate::executor::index::Index;
use crate::executor::index_definition::{IndexDefinition, IndexMethod};
use crate::executor::table::{Table, Toast};
use crate::executor::toast::Writer;
use crate::executor::{Database, Relation, StatementError, TableId};
use crate::heap::Rewrite;
use crate::object_ids::{OIDS_OF_TABLE, OIDS_OF_TOAST_TABLE};
use crate::page::{LinePointer, Tid};
use crate::procarray::ProcArray;
use crate::prune::TupleState;
use crate::wal::{Totals, Wal};

/// What a rewrite did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewritten {
    /// Pages of the table before and after.
    pub heap_pages: [u32; 2],
    /// Pages of its indexes before and after.
    pub index_pages: [u32; 2],
    /// Row versions that were copied.
    pub versions: u64,
    /// Of them, those that only older snapshots see.
    pub recently_dead: u64,
    /// Records that name pages of the table, its TOAST table and its indexes.
    pub wal: Totals,
}

/// What of a table comes into its new files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    /// All rows as they lie: VACUUM FULL.
    AsTheyLie,
    /// All rows in the order of the B-tree at this place: CLUSTER.
    InOrder(usize),
    /// Nothing: TRUNCATE.
    Nothing,
}

impl Database {
    /// VACUUM FULL.
    ///
    /// # Errors
    /// [`StatementError::Unsupported`] on engines other than heap, and for values out of line with
    /// `wal_level = minimal`.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn rewrite(&mut self, table: TableId) -> Result<Rewritten, StatementError> {
        self.rewrite_as(table, Keeps::AsTheyLie)
    }

    /// The same of what `keeps` says.
    pub(super) fn rewrite_as(
        &mut self,
        table: TableId,
        keeps: Keeps,
    ) -> Result<Rewritten, StatementError> {
        assert!(self.procs.current().is_none(), "a rewrite in a transaction");
        self.settle_images();
        self.statement += 1;
        let before = self.wal.of_table(table.0);
        self.wal.open_table(table.0);
        self.procs.begin_statement();
        self.procs.compute_horizons();
        self.procs.assign();
        let of = &mut self.tables[table.0];
        self.procs.object_ids.skip(of.oids_of_rewrite(keeps));
        of.class.old_pages = 0; // they go with the file
        let done = of.rewrite(keeps, (&mut self.procs, &mut self.wal, self.statement));
        self.procs.commit();
        let mut done = done?;
        self.settle_images();
        done.wal = self.wal.of_table(table.0);
        done.wal.subtract(before);
        for is_toast in [false, true] {
            self.forget_target_blocks_of(Relation { table, is_toast });
        }
        Ok(done)
    }
}

impl Table {
    /// OIDs that a command takes which gives the table other files: of a table that is made beside
    /// it, or of the files, which are numbered as objects are.
    ///
    /// Source: `make_new_heap` and `finish_heap_swap`, src/backend/commands/cluster.c;
    /// `ExecuteTruncateGuts`, src/backend/commands/tablecmds.c; `RelationSetNewRelfilenumber`,
    /// src/backend/utils/cache/relcache.c (REL_18_STABLE).
    fn oids_of_rewrite(&self, keeps: Keeps) -> u32 {
        let indexes = u32::try_from(self.indexes.definitions.len()).expect("few indexes");
        let toast = if self.needs_toast_table() {
            OIDS_OF_TOAST_TABLE
        } else {
            0
        };
        let table = if keeps == Keeps::Nothing {
            1
        } else {
            OIDS_OF_TABLE
        };
        table + toast + indexes
    }

    fn rewrite(
        &mut self,
        keeps: Keeps,
        (procs, wal, statement): (&mut ProcArray, &mut Wal, u32),
    ) -> Result<Rewritten, StatementError> {
        if self.model.is_some() {
            return Err(StatementError::Unsupported(
                "a rewrite on another engine than heap".to_owned(),
            ));
        }
        let has_forms = keeps != Keeps::Nothing && self.values.texts.has_forms();
        if wal.skips_new_relations() && has_forms {
            return Err(StatementError::Unsupported(
                "a rewrite of compressed values or values out of line with wal_level = minimal"
                    .to_owned(),
            ));
        }
        let behaviour = *self.heap.behaviour();
        let mut done = Rewritten {
            heap_pages: [self.heap.page_count(), 0],
            index_pages: [self.index_pages().iter().sum(), 0],
            ..Rewritten::default()
        };
        let order = match keeps {
            Keeps::AsTheyLie => self.as_they_lie(),
            Keeps::InOrder(btree) => self.in_order_of(btree, procs)?,
            Keeps::Nothing => Vec::new(),
        };
        if keeps != Keeps::Nothing {
            self.note_all_hints(procs, wal);
        }
        let mut old_toast = self.begin_toast(behaviour, wal)?;
        let mut to = Writer {
            procs,
            wal,
            statement,
        };
        let rewrite = self.copy_versions(order, old_toast.as_mut(), &mut to)?;
        (done.versions, done.recently_dead) = (rewrite.copied, rewrite.recently_dead);
        self.heap = rewrite.end();
        self.values.replaced.clear();
        self.begin_ages(to.procs.oldest_xmin(), to.procs);
        for fork in old_toast.iter().flat_map(|toast| toast.table.forks()) {
            wal.drop_fork(fork);
        }
        self.forks.main = wal.replace_fork(self.forks.main);
        self.forks.fsm = wal.replace_fork(self.forks.fsm);
        self.forks.vm = wal.replace_fork(self.forks.vm);
        let holes: Vec<u32> = self
            .heap
            .pages()
            .iter()
            .map(|page| page.exact_free_space())
            .collect();
        wal.write_fork(self.forks.main, &holes, &behaviour);
        let pages = self.heap.page_count();
        if keeps == Keeps::Nothing {
            self.note_truncated();
        } else {
            self.note_copied(done.versions);
        }
        self.build_indexes_anew(behaviour, &done, wal)?;
        wal.end_new_fork(self.forks.main, pages);
        if let Some(toast) = &mut self.toast {
            toast.table.class.skips_fsm = false;
        }
        done.heap_pages[1] = pages;
        done.index_pages[1] = self.index_pages().iter().sum();
        Ok(done)
    }

    /// Whoever copies a version looks at its transactions first.
    ///
    /// Source: `HeapTupleSatisfiesVacuum` in `heapam_relation_copy_for_cluster`.
    pub(super) fn note_all_hints(&mut self, procs: &ProcArray, wal: &mut Wal) {
        for block in (0..self.heap.page_count()).map(BlockNumber) {
            if self.heap.note_hints(block, procs) {
                let hole = self.heap.pages()[block.0 as usize].exact_free_space();
                wal.hint(self.forks.main, block, hole);
            }
        }
    }

    /// An empty TOAST table, if the server has one; the old one.
    fn begin_toast(
        &mut self,
        behaviour: Behaviour,
        wal: &mut Wal,
    ) -> Result<Option<Toast>, StatementError> {
        let mut replaced = None;
        let mut index = None;
        if let Some(toast) = &mut self.toast {
            let new = toast.renewed(behaviour, wal)?;
            let mut old = std::mem::replace(&mut **toast, new);
            toast.table.session = old.table.session.take_over();
            index = Some(toast.table.indexes.btrees[0].main);
            replaced = Some(old);
        }
        if self.needs_toast_table() {
            let fork = index.unwrap_or_else(|| wal.add_fork());
            wal.write_fork(fork, &[METAPAGE_HOLE], &behaviour);
            wal.end_new_fork(fork, 1);
        }
        Ok(replaced)
    }

    /// Where versions are, page by page.
    fn as_they_lie(&self) -> Vec<Tid> {
        let pages = (0..).map(BlockNumber).zip(self.heap.pages());
        let tids = pages.flat_map(|(block, page)| {
            let items = page.each_item();
            let tuples = items.filter(|(_, item)| matches!(item, LinePointer::Normal(_)));
            tuples.map(move |(offset, _)| Tid { block, offset })
        });
        tids.collect()
    }

    /// Where versions that somebody sees are, in the order of the B-tree at this place.
    ///
    /// Source: `tuplesort_begin_cluster` in `heapam_relation_copy_for_cluster`. Differs: of rows
    /// that are equal in the index the server's sort decides, so they are refused; versions of one
    /// row that differ there are put where the newest one is.
    fn in_order_of(&mut self, btree: usize, procs: &ProcArray) -> Result<Vec<Tid>, StatementError> {
        let mut rows = Vec::new();
        for tid in self.as_they_lie() {
            let tuple = self.heap.pages()[tid.block.0 as usize].tuple(tid.offset);
            let tuple = tuple.expect("it lies there");
            if TupleState::of(&tuple, procs) != TupleState::Dead {
                rows.push((tuple.row, tid));
            }
        }
        let mut index = self.indexes.btrees.remove(btree);
        let entries = self.entries_of(&mut index, rows.iter().copied());
        self.indexes.btrees.insert(btree, index);
        let entries = entries?;
        let mut before: Option<(&[i64], Tid)> = None;
        let mut order = Vec::with_capacity(rows.len());
        for entry in entries.in_order() {
            let is_equal = before.is_some_and(|(key, _)| key == entry.key);
            if is_equal && before.map(|(_, tid)| self.row_at(tid)) != Some(self.row_at(entry.tid)) {
                return Err(StatementError::Unsupported(
                    "CLUSTER by an index in which rows are equal, whose order is that of the \
                     server's sort: take an index that tells all rows apart"
                        .to_owned(),
                ));
            }
            before = Some((entry.key, entry.tid));
            order.push(entry.tid);
        }
        Ok(order)
    }

    fn copy_versions(
        &mut self,
        order: Vec<Tid>,
        mut old_toast: Option<&mut Toast>,
        to: &mut Writer<'_>,
    ) -> Result<Rewrite, StatementError> {
        let mut rewrite = Rewrite::new(&self.heap, to.procs.oldest_xmin());
        for tid in order {
            let tuple = self.heap.pages()[tid.block.0 as usize].tuple(tid.offset);
            let tuple = tuple.expect("it lies there");
            let mut tuple_bytes = tuple.lp_len;
            let is_live = TupleState::of(&tuple, to.procs) == TupleState::Live;
            if let Some(old) = old_toast.as_mut().filter(|_| is_live)
                && self.values.texts.has_forms()
            {
                self.store_anew(tuple.row, old, to)?;
                let slots = &self.values.slots(tuple.row);
                tuple_bytes = page_bytes(self.values.row_type.measure(slots, &self.values.texts))?;
            }
            rewrite.add(tid, &tuple, tuple_bytes, to.procs);
        }
        Ok(rewrite)
    }

    /// Source: `reindex_relation`, src/backend/catalog/index.c (REL_18_STABLE).
    fn build_indexes_anew(
        &mut self,
        behaviour: Behaviour,
        done: &Rewritten,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let old_indexes = std::mem::take(&mut self.indexes.btrees);
        self.indexes.brins.clear();
        for hash in std::mem::take(&mut self.indexes.hashes) {
            wal.drop_fork(hash.index.main());
        }
        for gin in std::mem::take(&mut self.indexes.gins) {
            for fork in gin.index.forks() {
                wal.drop_fork(fork);
            }
        }
        self.indexes.btree_positions.clear();
        self.indexes.blocks_hot.fill(false);
        self.indexes.is_summarized.fill(false);
        self.indexes.cached_tids.start_over();
        self.forget_tids();
        for definition in self.indexes.definitions.clone() {
            self.build_logged(behaviour, definition, false, wal)?;
            self.note_built(done.versions - done.recently_dead);
        }
        for fork in forks_of(&old_indexes) {
            wal.drop_fork(fork);
        }
        if done.recently_dead > 0 {
            self.forget_tids(); // a row's key may have several entries
        }
        Ok(())
    }

    /// Indexes as another table has them.
    pub(super) fn build_indexes_of(
        &mut self,
        other: &Self,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let behaviour = *self.heap.behaviour();
        self.indexes
            .definitions
            .clone_from(&other.indexes.definitions);
        for definition in self.indexes.definitions.clone() {
            let is_unique = definition.is_unique;
            self.build_logged(behaviour, definition, is_unique, wal)?;
        }
        Ok(())
    }

    /// Builds the next index.
    fn build_logged(
        &mut self,
        behaviour: Behaviour,
        definition: IndexDefinition,
        checks_uniqueness: bool,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        if definition.method == IndexMethod::Unpriced {
            self.note_no_btree(&definition);
            return Ok(());
        }
        if definition.method == IndexMethod::Brin {
            return self.build_brin(behaviour, definition, wal);
        }
        if definition.method == IndexMethod::Hash {
            self.build_hash(behaviour, definition, !wal.skips_new_relations(), wal)?;
            let hash = self.indexes.hashes.last().expect("it was built");
            let (fork, pages) = (hash.index.main(), hash.index.page_count());
            wal.end_new_fork_with_new_pages(fork, pages, &hash.index.new_blocks());
            return Ok(());
        }
        if definition.method == IndexMethod::Gin {
            self.build_gin(behaviour, definition, wal)?;
            self.indexes.gins.last().expect("it was built").log_new(wal);
            return Ok(());
        }
        let built = self.build_btree(behaviour, definition, checks_uniqueness, wal)?;
        let index = self.indexes.btrees.last().expect("it was built");
        wal.write_fork(index.main, &holes(&built), &behaviour);
        wal.end_new_fork(index.main, index.tree.page_count());
        Ok(())
    }

    /// No row is found without a scan any more.
    fn forget_tids(&mut self) {
        for row in 0..self.values.count() {
            self.values.rows.forget_tid(row);
        }
    }

    /// Its forks and those of its indexes.
    pub(super) fn forks(&self) -> Vec<ForkId> {
        let mut forks = vec![self.forks.main, self.forks.fsm, self.forks.vm];
        forks.extend(forks_of(&self.indexes.btrees));
        let hashes = self.indexes.hashes.iter();
        forks.extend(hashes.map(|hash| hash.index.main()));
        let gins = self.indexes.gins.iter();
        forks.extend(gins.flat_map(|gin| gin.index.forks()));
        forks
    }
}

fn forks_of(indexes: &[Index]) -> impl Iterator<Item = ForkId> + '_ {
    indexes.iter().flat_map(|index| [index.main, index.fsm])
}

/// Holes of the pages that a build wrote, in the order of writing.
pub(super) fn holes(built: &Built) -> Vec<u32> {
    let images = built.images.iter();
    images.map(|image| BLCKSZ - image.stored_bytes()).collect()
}
