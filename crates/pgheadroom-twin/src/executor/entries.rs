//! Index entries of new row versions, and rows that are in the way of them.

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::version::IndexUnchangedHint;

use crate::btree::{Entry, UniqueCheck};
use crate::executor::brin::Brin;
use crate::executor::fetch::HeapAccess;
use crate::executor::index::Index;
use crate::executor::session_table::Entries;
use crate::executor::table::Table;
use crate::executor::toast::Writer;
use crate::executor::{Assignments, SessionId, StatementError};
use crate::gin::Surroundings;
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::transaction::Transactions;
use crate::wal::Wal;

impl Table {
    /// An entry for a new row version in every index.
    ///
    /// `assigned` are an UPDATE's columns. Source: `ExecInsertIndexTuples` and
    /// `index_unchanged_by_update`, src/backend/executor/execIndexing.c (REL_15_STABLE,
    /// REL_18_STABLE).
    pub(super) fn insert_entries(
        &mut self,
        mut entries: Entries,
        assigned: Option<&Assignments<'_>>,
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        if !self.has_indexes() {
            return Ok(());
        }
        let statement = self.session.changed.statement();
        let mut to = Writer {
            procs,
            wal,
            statement,
        };
        let Entries {
            tid,
            row,
            pinned,
            check,
            ..
        } = entries;
        let mut indexes = std::mem::take(&mut self.indexes.btrees);
        let mut result = Ok(());
        for index in &mut indexes[entries.next..] {
            if !std::mem::take(&mut entries.has_values) {
                result = self.read_for_index(row, index.sources(), Some(statement), &mut to);
            }
            if result.is_ok() {
                let wal = RefCell::new(&mut *to.wal);
                let how = (assigned, check, pinned);
                result = self.insert_entry(index, (tid, row), how, to.procs, &wal);
            }
            if result.is_err() {
                break;
            }
            entries.next += 1;
        }
        self.indexes.btrees = indexes;
        if matches!(result, Err(StatementError::Waits(_))) {
            entries.has_values = true;
            self.session.entries = Some(entries);
        }
        result?;
        self.insert_into_hashes(tid, row, &mut to)?;
        self.insert_into_gins(tid, row, &mut to)?;
        self.inform_brins(tid, row, &mut to)
    }

    /// An entry for a new row version in every hash index.
    fn insert_into_hashes(
        &mut self,
        tid: Tid,
        row: u32,
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        let mut hashes = std::mem::take(&mut self.indexes.hashes);
        let mut result = Ok(());
        for hash in &mut hashes {
            let code = self
                .read_for_index(row, hash.sources(), Some(to.statement), to)
                .and_then(|()| hash.code(self.row_view(row)));
            match code {
                Ok(Some(code)) => hash.index.insert(code, tid, to.wal),
                Ok(None) => {}
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.indexes.hashes = hashes;
        result
    }

    /// A new row version's keys in every GIN.
    fn insert_into_gins(
        &mut self,
        tid: Tid,
        row: u32,
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        let mut gins = std::mem::take(&mut self.indexes.gins);
        let mut result = Ok(());
        for gin in &mut gins {
            let keys = self
                .read_for_index(row, gin.keys.sources(), Some(to.statement), to)
                .and_then(|()| gin.keys.of(self.row_view(row)));
            let procs = &*to.procs;
            let around = &mut Surroundings {
                wal: to.wal,
                is_removable: &|xid| procs.is_removable(xid),
                session: SessionId(procs.active()),
            };
            match keys {
                Ok(keys) => gin.index.insert(keys, tid, around),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.indexes.gins = gins;
        result
    }

    /// Sessions forget where they put the last summary.
    pub(super) fn forget_index_targets(&mut self) {
        self.indexes.brins.iter_mut().for_each(Brin::forget_target);
    }

    /// A new row version in every BRIN index.
    pub(super) fn inform_brins(
        &mut self,
        tid: Tid,
        row: u32,
        to: &mut Writer<'_>,
    ) -> Result<(), StatementError> {
        let mut brins = std::mem::take(&mut self.indexes.brins);
        let mut result = Ok(());
        for brin in &mut brins {
            let statement = self.session.changed.statement();
            result = self
                .read_for_index(row, brin.sources_at(tid), Some(statement), to)
                .and_then(|()| brin.insert(self.row_view(row), tid, statement, to.wal));
            if result.is_err() {
                break;
            }
        }
        self.indexes.brins = brins;
        result
    }

    fn insert_entry(
        &mut self,
        index: &mut Index,
        (tid, row): (Tid, u32),
        (assigned, check, pinned): (Option<&Assignments<'_>>, UniqueCheck, Option<BlockNumber>),
        procs: &ProcArray,
        wal: &RefCell<&mut Wal>,
    ) -> Result<(), StatementError> {
        let statement = self.session.changed.statement();
        let Some(found) = index.entry_of(self.row_view(row), Some(statement))? else {
            return Ok(());
        };
        let hint = self.heap.behaviour().index_unchanged_hint;
        let is_unchanged = assigned.is_some_and(|assigned| match hint {
            IndexUnchangedHint::None => false,
            IndexUnchangedHint::AlwaysTrue => true,
            IndexUnchangedHint::Real => index.is_unchanged_by(assigned),
        });
        let key = found.key.values()[0];
        self.indexes
            .cached_tids
            .forget(&mut self.values.rows, (index.main, key), row);
        let entry = Entry {
            key: found.key.values(),
            shape: found.shape,
            tid,
        };
        let mut log = index.log(wal);
        let mut heap = HeapAccess::new(self.heap_parts(), procs, wal, pinned);
        let inserted = index
            .tree
            .insert(entry, check, is_unchanged, &mut heap, &mut log);
        let is_only = inserted.map_err(|violation| match violation.in_progress {
            Some(xid) => StatementError::Waits(xid),
            None => StatementError::Unique { key },
        })?;
        if assigned.is_none() {
            let tid = is_only.then_some(tid);
            self.indexes
                .cached_tids
                .learn(&mut self.values.rows, (index.main, key), row, tid);
        }
        Ok(())
    }
}
