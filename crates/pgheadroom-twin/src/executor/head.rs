//! Rows at the head of a queue: an UPDATE or DELETE of what a query has found and locked.
//!
//! ```text
//! key = (SELECT key ... ORDER BY the index LIMIT 1 FOR UPDATE SKIP LOCKED)
//!
//! first leaf of the index -> entry by entry: visit its page, walk the chain -> wanted: LOCK record
//! -> by key: visit pages, change the row -> triggers -> dead entries of the query's last leaf
//! ```
//!
//! The query stops at the last row that it wants; its scan stays open until the statement ends, so
//! that row's page stays pinned, and entries that it found dead on the leaf where it stopped are
//! marked last. Those that others have left at the head are met by everybody who comes until
//! somebody marks them.
//!
//! Source: `ExecLockRows`, src/backend/executor/nodeLockRows.c; `ExecLimit`, nodeLimit.c;
//! `ExecSetParamPlan`, nodeSubplan.c; `ExecEndPlan`, execMain.c; `index_getnext_tid`,
//! src/backend/access/index/indexam.c; `_bt_advance_array_keys`,
//! src/backend/access/nbtree/nbtutils.c (REL_15_STABLE, REL_18_STABLE).

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;

use crate::executor::fetch::{Fetched, HeapAccess};
use crate::executor::parked::{EndOfHead, Parked, Stopped};
use crate::executor::table::Table;
use crate::executor::{Action, Database, StatementError, TableId};
use crate::expression::Expression;
use crate::lock_options::{LockTupleMode, LockWaitPolicy};
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::wal::Wal;

/// Which rows a queue's head has.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The index whose order it is, by its position.
    pub index: usize,
    /// The value of its first column, where the query asks for one.
    pub bound: Option<i64>,
    /// What else a row has to fulfil.
    pub filter: Option<Expression>,
    /// The index by which the rows are changed, by its position; its first column is the key.
    pub key_index: usize,
}

impl Table {
    /// Locks a row that the query has found, or the version that has taken its place since the
    /// statement's snapshot: which one, unless others have it (SKIP LOCKED), or the row is wanted
    /// no more.
    ///
    /// # Errors
    /// [`StatementError::Serialization`].
    ///
    /// Source: `ExecLockRows`, src/backend/executor/nodeLockRows.c; `heapam_tuple_lock`,
    /// src/backend/access/heap/heapam_handler.c (REL_18_STABLE).
    fn lock_unless_taken(
        &mut self,
        found: Tid,
        (index, head): (usize, &Head),
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) -> Result<Option<Tid>, StatementError> {
        let action = Action::Lock(LockTupleMode::Update, LockWaitPolicy::Skip);
        let still_wanted = |table: &mut Self, row| {
            let bound = head.bound.as_slice();
            let is_true = |filter: &Expression| filter.is_true(table.row_view(row));
            let is_wanted = head.filter.as_ref().map(is_true).transpose()?;
            Ok(is_wanted.unwrap_or(true) && table.has_key(index, row, (bound, bound))?)
        };
        match self.held_version(found, &action, still_wanted, procs, wal) {
            Ok(Some(held)) => {
                if held == found {
                    self.lock(held, LockTupleMode::Update, procs, wal);
                }
                Ok(Some(held))
            }
            Ok(None) => Ok(None),
            Err(StatementError::Waits(_)) => {
                self.wait_for_nobody();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Database {
    /// A statement that changes at most `limit` rows at the head of a queue; how many it found.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    pub fn by_head(
        &mut self,
        id: TableId,
        head: &Head,
        limit: usize,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let statement = self.begin_statement_on(id);
        if self.sessions.asks_on_arrival {
            return self.park(Err(StatementError::OnItsWay), || {
                Parked::HeadQuery(statement)
            });
        }
        self.change_head(id, head, limit, action, statement)
    }

    /// The active session's statement goes on, with the same arguments: how many rows it found.
    ///
    /// # Errors
    /// As [`Self::by_head`].
    ///
    /// # Panics
    /// When no such statement waits.
    pub fn resume_head(
        &mut self,
        id: TableId,
        head: &Head,
        limit: usize,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        if let Some(statement) = self.unpark_head_query() {
            self.change_head(id, head, limit, action, statement)
        } else {
            self.resume_scan(action, |_| unreachable!("it has its rows"))
        }
    }

    fn change_head(
        &mut self,
        id: TableId,
        head: &Head,
        limit: usize,
        action: &Action<'_>,
        statement: u32,
    ) -> Result<u64, StatementError> {
        let (mut keys, stopped) = self.lock_head(id, head, limit, statement)?;
        keys.sort_unstable();
        let found = self.change_rows(id, head, &keys, action, statement);
        let found = found.map_err(|error| match error {
            StatementError::Waits(_) => StatementError::Unsupported(
                "a queue's head whose new key another session has inserted and not committed"
                    .to_owned(),
            ),
            other => other,
        })?;
        self.end_head(id, EndOfHead { found, stopped })
    }

    /// What is left of a queue's statement when its rows are changed.
    pub(super) fn end_head(&mut self, id: TableId, end: EndOfHead) -> Result<u64, StatementError> {
        if let Err(error) = self.end_statement(id) {
            return self.park(Err(error), || Parked::Head(id, end));
        }
        let table = &mut self.tables[id.0];
        table.session.head_pin = None;
        if let Some((index, scanned, dead)) = end.stopped {
            table.indexes.btrees[index].kill(&scanned, &dead, &mut self.wal);
        }
        Ok(end.found)
    }

    /// The query: its rows are locked; the codes of their keys, and where it stopped.
    fn lock_head(
        &mut self,
        id: TableId,
        head: &Head,
        limit: usize,
        statement: u32,
    ) -> Result<(Vec<i64>, Stopped), StatementError> {
        let table = &mut self.tables[id.0];
        let index = table.btree_position(head.index);
        let bound = head.bound.as_slice();
        let key_index = table.btree_position(head.key_index);
        let mut keys = Vec::new();
        let mut last_block = None;
        // The scan's slot, and that of the row locked last until the next one is looked at.
        let (mut slot, mut locked) = (None, None);
        let mut next = table.indexes.btrees[index].tree.scan_start(bound);
        while let Some(leaf) = next {
            let scanned = table.indexes.btrees[index]
                .tree
                .scan_page(leaf, bound, bound);
            let mut dead = Vec::new();
            for &(offset, tid) in &scanned.entries {
                let wal = RefCell::new(&mut self.wal);
                let mut heap = HeapAccess::new(table.heap_parts(), &self.procs, &wal, None);
                let is_other = last_block.replace(tid.block) != Some(tid.block);
                if is_other && ![slot, locked].contains(&Some(tid.block)) {
                    heap.prune_opt(tid.block);
                }
                let found = match heap.fetch(tid, statement) {
                    Fetched::Found(found) => found,
                    Fetched::AllDead => {
                        dead.push((offset, tid));
                        continue;
                    }
                    Fetched::Invisible => continue,
                };
                slot = Some(found.block);
                let row = table.row_view(table.row_at(found));
                let is_wanted = head.filter.as_ref().map(|filter| filter.is_true(row));
                if !is_wanted.transpose()?.unwrap_or(true) {
                    continue;
                }
                locked = None;
                let (procs, wal) = (&mut self.procs, &mut self.wal);
                let Some(held) = table.lock_unless_taken(found, (index, head), procs, wal)? else {
                    continue;
                };
                locked = Some(held.block);
                let row = table.row_at(held);
                keys.push(table.key_code(key_index, row)?);
                if keys.len() == limit {
                    table.session.head_pin = locked;
                    return Ok((keys, Some((index, scanned, dead))));
                }
            }
            table.indexes.btrees[index].kill(&scanned, &dead, &mut self.wal);
            next = scanned.next;
        }
        Ok((keys, None))
    }

    /// Changes the rows with these keys, ascending, in one index scan.
    fn change_rows(
        &mut self,
        id: TableId,
        head: &Head,
        keys: &[i64],
        action: &Action<'_>,
        statement: u32,
    ) -> Result<u64, StatementError> {
        let by_page = self.behaviour.btree_array_scan_by_page;
        let table = &mut self.tables[id.0];
        let index = table.btree_position(head.key_index);
        let (mut found_rows, mut position) = (0, 0);
        let (mut last_block, mut slot): (Option<BlockNumber>, Option<BlockNumber>) = (None, None);
        let mut next = None;
        while let Some(&key) = keys.get(position) {
            let tree = &table.indexes.btrees[index].tree;
            let Some(leaf) = next.take().or_else(|| tree.scan_start(&[key])) else {
                break;
            };
            let mut scanned = tree.scan_page(leaf, &[key], &[key]);
            while let (true, None, Some(&key)) = (by_page, scanned.next, keys.get(position + 1)) {
                if tree.scan_start(&[key]) != Some(leaf) {
                    break;
                }
                let more = tree.scan_page(leaf, &[key], &[key]);
                scanned.entries.extend(more.entries);
                scanned.next = more.next;
                position += 1;
            }
            let mut dead = Vec::new();
            for &(offset, tid) in &scanned.entries {
                let wal = RefCell::new(&mut self.wal);
                let mut heap = HeapAccess::new(table.heap_parts(), &self.procs, &wal, None);
                let is_other = last_block.replace(tid.block) != Some(tid.block);
                if is_other && slot != Some(tid.block) {
                    heap.prune_opt(tid.block);
                }
                match heap.fetch(tid, statement) {
                    Fetched::Found(found) => {
                        slot = Some(found.block);
                        self.procs.note_slot(table.forks.main, found.block);
                        // Of a page that is read for several keys each is looked for again.
                        let still_wanted = |table: &mut Table, row| {
                            Ok(keys.contains(&table.key_code(index, row)?))
                        };
                        let by = (&mut self.procs, &mut self.wal, statement);
                        let taken = table.take(found, action, still_wanted, by)?;
                        found_rows += u64::from(taken.is_some());
                    }
                    Fetched::AllDead => dead.push((offset, tid)),
                    Fetched::Invisible => {}
                }
            }
            table.indexes.btrees[index].kill(&scanned, &dead, &mut self.wal);
            next = scanned.next;
            position += usize::from(next.is_none());
        }
        Ok(found_rows)
    }
}
