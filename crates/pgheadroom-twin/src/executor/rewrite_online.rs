//! A rewrite beside clients that go on, as pg_repack, pg_squeeze and REPACK (CONCURRENTLY) do it.
//!
//! ```text
//! begin   a snapshot is held; what it sees is what is copied; changes are noted from now on
//! step    the next rows, in the old table's order, are inserted into the new one
//! end     the snapshot goes, indexes are built, noted changes are applied, the files are swapped
//! ```
//!
//! A model: the tools differ in how they note changes (triggers and a log table, or logical
//! decoding), whose own WAL is left out; the time that building indexes and applying takes is none
//! here, so that nothing changes meanwhile. Changes are applied one statement each, in
//! transactions of [`APPLIED_AT_ONCE`].

use pgheadroom_layout::BlockNumber;

use crate::executor::SessionId;
use crate::executor::concurrent_changes::{ConcurrentChange, ConcurrentChanges};
use crate::executor::rewrite::Rewritten;
use crate::executor::table::{Table, TableDefinition};
use crate::executor::{
    Assignment, Assignments, Change, Database, Relation, Row, StatementError, TableId,
};
use crate::page::{LinePointer, Tid, offset_of};
use crate::procarray::{HeldSnapshot, ProcArray};
use crate::prune::TupleState;
use crate::value::Value;
use crate::wal::{Totals, Wal};

/// Noted changes that are applied in one transaction.
///
/// Source: `APPLY_COUNT_DEFAULT` of pg_repack 1.5.
const APPLIED_AT_ONCE: usize = 1000;

/// How many online rewrites are in progress: meanwhile every update has to be noted, so none takes
/// the fast path.
#[derive(Debug, Default)]
pub(super) struct InProgress {
    count: u32,
    used_fast_path: bool,
}

impl InProgress {
    pub const fn is_any(&self) -> bool {
        self.count > 0
    }

    fn begin(&mut self, uses_fast_path: &mut bool) {
        if self.count == 0 {
            self.used_fast_path = std::mem::take(uses_fast_path);
        }
        self.count += 1;
    }

    fn end(&mut self, uses_fast_path: &mut bool) {
        self.count -= 1;
        if self.count == 0 {
            *uses_fast_path = self.used_fast_path;
        }
    }
}

/// An online rewrite in progress.
#[derive(Debug)]
pub struct OnlineRewrite {
    table: TableId,
    snapshot: HeldSnapshot,
    new: Box<Table>,
    /// Rows to copy, in the order of the old table's pages.
    rows: Vec<u32>,
    copied: usize,
    done: Rewritten,
}

impl Database {
    /// Begins to rewrite a table beside its clients.
    ///
    /// # Errors
    /// [`StatementError::Unsupported`] on engines other than heap.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn begin_online_rewrite(
        &mut self,
        table: TableId,
    ) -> Result<OnlineRewrite, StatementError> {
        assert!(self.procs.current().is_none(), "between transactions");
        self.statement += 1;
        let old = &mut self.tables[table.0];
        if old.model.is_some() {
            return Err(StatementError::Unsupported(
                "a rewrite on another engine than heap".to_owned(),
            ));
        }
        self.wal.open_table(table.0);
        let mut new = Box::new(old.empty_copy(&mut self.wal)?);
        new.switch_to(SessionId(self.procs.active()));
        old.concurrent_changes = Some(ConcurrentChanges::default());
        let rows = old.live_rows(&self.procs);
        let done = Rewritten {
            heap_pages: [old.heap.page_count(), 0],
            index_pages: [old.index_pages().iter().sum(), 0],
            versions: rows.len() as u64,
            ..Rewritten::default()
        };
        self.copies_online.begin(&mut self.uses_fast_path);
        Ok(OnlineRewrite {
            table,
            snapshot: self.procs.hold(),
            new,
            rows,
            copied: 0,
            done,
        })
    }

    /// Copies rows until this share of them is copied.
    ///
    /// # Errors
    /// [`StatementError`] when the new table cannot hold a row.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn copy_online(
        &mut self,
        rewrite: &mut OnlineRewrite,
        share: f64,
    ) -> Result<(), StatementError> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let until = (rewrite.rows.len() as f64 * share.clamp(0.0, 1.0)).round() as usize;
        if until <= rewrite.copied {
            return Ok(());
        }
        let before = self.wal.of_table(rewrite.table.0);
        self.begin_statement();
        for &row in &rewrite.rows[rewrite.copied..until] {
            let (procs, wal) = (&mut self.procs, &mut self.wal);
            rewrite.new.insert(row, procs, wal, self.statement)?;
        }
        rewrite.copied = until;
        rewrite.new.end_transaction(true);
        self.procs.commit();
        self.count_rewrite(rewrite, before);
        Ok(())
    }

    /// Copies what is left, catches up, and puts the new table in the place of the old one.
    ///
    /// # Errors
    /// [`StatementError`] when the new table cannot hold a row.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn end_online_rewrite(
        &mut self,
        mut rewrite: OnlineRewrite,
    ) -> Result<Rewritten, StatementError> {
        self.copy_online(&mut rewrite, 1.0)?;
        let before = self.wal.of_table(rewrite.table.0);
        self.procs.release(rewrite.snapshot);
        self.wal.open_table(rewrite.table.0);
        let old = &mut self.tables[rewrite.table.0];
        let notes = old.concurrent_changes.take().expect("changes are noted");
        rewrite.new.build_indexes_of(old, &mut self.wal)?;
        let mut tids = rewrite.new.tids_of_rows();
        for batch in notes.changes.chunks(APPLIED_AT_ONCE) {
            for change in batch {
                self.begin_statement();
                let (procs, wal) = (&mut self.procs, &mut self.wal);
                let new = &mut rewrite.new;
                new.apply_concurrent_change(change, &mut tids, procs, wal, self.statement)?;
            }
            rewrite.new.end_transaction(true);
            self.procs.commit();
        }
        self.swap(&mut rewrite);
        if self.wal.compresses_images() {
            self.tables[rewrite.table.0].keep_for_images();
        }
        self.settle_images();
        self.count_rewrite(&mut rewrite, before);
        self.copies_online.end(&mut self.uses_fast_path);
        let table = &self.tables[rewrite.table.0];
        rewrite.done.heap_pages[1] = table.heap.page_count();
        rewrite.done.index_pages[1] = table.index_pages().iter().sum();
        Ok(rewrite.done)
    }

    fn swap(&mut self, rewrite: &mut OnlineRewrite) {
        let (table, session) = (rewrite.table, self.session());
        let old = &mut self.tables[table.0];
        std::mem::swap(old, &mut *rewrite.new);
        let (new, old) = (&mut self.tables[table.0], &rewrite.new);
        new.switch_to(session);
        new.scratch.without_fast_path = old.scratch.without_fast_path;
        new.counters = old.counters;
        for fork in old.forks() {
            self.wal.drop_fork(fork);
        }
        if let (Some(new), Some(old)) = (&mut new.toast, &old.toast) {
            new.table.counters = old.table.counters;
            for fork in old.table.forks() {
                self.wal.drop_fork(fork);
            }
        }
        for is_toast in [false, true] {
            self.forget_target_blocks_of(Relation { table, is_toast });
        }
    }

    fn count_rewrite(&self, rewrite: &mut OnlineRewrite, before: Totals) {
        let mut done = self.wal.of_table(rewrite.table.0);
        done.subtract(before);
        rewrite.done.wal.add(done);
    }
}

impl Table {
    /// A table like this one without pages and indexes. Its rows have the same numbers and values.
    fn empty_copy(&self, wal: &mut Wal) -> Result<Self, StatementError> {
        let definition = TableDefinition {
            columns: self.columns().to_vec(),
            indexes: Vec::new(),
            fillfactor: self.heap.fillfactor(),
        };
        let mut new = Self::new(*self.heap.behaviour(), definition, wal)?;
        for row in 0..self.values.count() {
            new.values.add(&self.values_of(row))?;
        }
        Ok(new)
    }

    /// All values of a row's newest version.
    pub(super) fn values_of(&self, row: u32) -> Vec<Value> {
        let view = self.row_view(row);
        let columns = 0..self.columns().len();
        columns.map(|column| view.value(column)).collect()
    }

    /// Notes a change, while somebody copies the table.
    pub(super) fn note_change(&mut self, change: impl FnOnce(&Self) -> ConcurrentChange) {
        if self.concurrent_changes.is_some() {
            let change = change(self);
            self.session.changes.push(change);
        }
    }

    /// Rows that a new snapshot sees, in the order of pages and line pointers.
    fn live_rows(&self, procs: &ProcArray) -> Vec<u32> {
        let mut rows = Vec::new();
        for item in self.heap.pages().iter().flat_map(|page| page.items()) {
            if let LinePointer::Normal(tuple) = item
                && TupleState::of(&tuple, procs) == TupleState::Live
            {
                rows.push(tuple.row);
            }
        }
        rows
    }

    /// The TID of the only version of each row, by row.
    fn tids_of_rows(&self) -> Vec<Option<Tid>> {
        let mut tids = vec![None; self.values.count() as usize];
        for (block, page) in (0..).map(BlockNumber).zip(self.heap.pages()) {
            for (position, item) in page.items().into_iter().enumerate() {
                if let LinePointer::Normal(tuple) = item {
                    let offset = offset_of(position);
                    tids[tuple.row as usize] = Some(Tid { block, offset });
                }
            }
        }
        tids
    }

    fn apply_concurrent_change(
        &mut self,
        change: &ConcurrentChange,
        tids: &mut Vec<Option<Tid>>,
        procs: &mut ProcArray,
        wal: &mut Wal,
        statement: u32,
    ) -> Result<(), StatementError> {
        match change {
            ConcurrentChange::Insert(row, values) => {
                let nothing = vec![Value::Null; values.len()];
                while self.values.count() as usize <= *row as usize {
                    // Also for rows that were rolled back in the old table, or committed later.
                    self.values.add(&nothing)?;
                }
                self.values.set(*row, values)?;
                tids.resize(self.values.count() as usize, None);
                tids[*row as usize] = Some(self.insert(*row, procs, wal, statement)?);
            }
            ConcurrentChange::Update(row, values) => {
                let old = tids[*row as usize].expect("a row that was copied");
                self.prune_opt(old.block, procs, wal);
                let computed: Vec<_> = values
                    .iter()
                    .map(|value| move |_: Row<'_>| value.clone())
                    .collect();
                let columns: Vec<Assignment<'_>> = computed
                    .iter()
                    .enumerate()
                    .map(|(column, value)| Assignment {
                        column,
                        change: Change::Computed(value),
                    })
                    .collect();
                let assignments = Assignments { columns: &columns };
                self.update(old, &assignments, procs, wal, statement)?;
                let page = &self.heap.pages()[old.block.0 as usize];
                let replaced = page.tuple(old.offset).expect("the version just replaced");
                tids[*row as usize] = Some(replaced.next);
            }
            ConcurrentChange::Delete(row) => {
                let old = tids[*row as usize].take().expect("a row that was copied");
                self.prune_opt(old.block, procs, wal);
                self.delete(old, procs, wal, statement);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::{Action, Assignment, Assignments, Change, ColumnDefinition};
    use crate::executor::{IndexDefinition, SessionId};
    use crate::wal::WalSettings;
    use pgheadroom_layout::{HeapFillfactor, PgVersion};

    /// Whoever is active stays so in the table that takes the old one's place: what it does there
    /// is its own, and is undone with its transaction.
    #[test]
    fn the_active_session_stays_active() {
        let behaviour = PgVersion::new(18, 4).unwrap().behaviour();
        let settings = WalSettings {
            full_page_writes: true,
            hints_are_logged: true,
            is_logical: false,
        };
        let mut db = Database::new(behaviour, settings);
        let column = |name| ColumnDefinition::new(name, "int4").unwrap();
        let table = db
            .create_table(TableDefinition {
                columns: vec![column("k"), column("v")],
                indexes: vec![IndexDefinition::on_columns(vec![0], true)],
                fillfactor: HeapFillfactor::new(90).unwrap(),
            })
            .unwrap();
        for key in 1..=40_i64 {
            db.insert(table, &[key.into(), (key * 10).into()]).unwrap();
        }
        db.commit();
        let second = db.open_session();
        let rewrite = db.begin_online_rewrite(table).unwrap();
        db.switch_to(second);
        db.end_online_rewrite(rewrite).unwrap();
        let sets = [Assignment {
            column: 1,
            change: Change::Add(1),
        }];
        let action = Action::Update(Assignments { columns: &sets });
        assert_eq!(db.by_index(table, 0, &[5], &[5], &action), Ok(1));
        db.switch_to(SessionId(0));
        db.switch_to(second);
        db.rollback();
        let values = &db.tables[table.0].values;
        assert_eq!(values.rows.slot(4, 1), 50, "rolled back");
    }
}
