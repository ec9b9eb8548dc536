//! Statements that find their rows by a scan, and go on after a wait where they were.

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;

use crate::executor::Scanned;
use crate::executor::fetch::{Fetched, HeapAccess};
use crate::executor::parked::{ByCachedTid, IndexScan, Parked, SeqScan};
use crate::executor::table::Table;
use crate::executor::{Action, Database, Row, StatementError, TableId};
use crate::page::Tid;

impl Database {
    /// A statement that finds rows by keys from `low` to `high` of an index; number of rows.
    ///
    /// # Errors
    /// [`StatementError`]: after [`StatementError::Waits`] it goes on by
    /// [`Database::resume_scan`], else the transaction has to be rolled back.
    ///
    /// Source: `IndexNext`, src/backend/executor/nodeIndexscan.c; `heapam_index_fetch_tuple`,
    /// src/backend/access/heap/heapam_handler.c; `ConditionalLockBufferForCleanup`,
    /// src/backend/storage/buffer/bufmgr.c (REL_18_STABLE).
    pub fn by_index(
        &mut self,
        table: TableId,
        index: usize,
        low: &[i64],
        high: &[i64],
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        if let (&[key], &[last]) = (low, high)
            && key == last
        {
            if let Action::Update(sets) = action
                && self.update_in_transaction((table, index), key, sets.columns)
            {
                return Ok(1);
            }
            if let Some(done) = self.by_cached_tid((table, index), key, action) {
                return done;
            }
        }
        let mut scan = self.begin_index_scan(table, index, low);
        let done = self.advance_index_scan(&mut scan, (low, high), action);
        self.park(done, || {
            scan.keys = [low.to_vec(), high.to_vec()];
            Parked::Index(Box::new(scan))
        })
    }

    /// The same for one key, whose row's TID is cached: the scan would find one entry, which leads
    /// to the root of the chain that the version there is in. `None` when that is not so, or the
    /// statement sees no version; nothing was done then that a scan would not do first.
    fn by_cached_tid(
        &mut self,
        (table, index): (TableId, usize),
        key: i64,
        action: &Action<'_>,
    ) -> Option<Result<u64, StatementError>> {
        let of = &self.tables[table.0];
        let index = of.btree_position(index);
        let row = of.indexes.cached_tids.row_of(index, key)?;
        let cached = of
            .values
            .rows
            .tid(row)
            .filter(|_| self.may_use_fast_path())?;
        let root = of.heap.root_of(cached, row, &self.procs)?;
        let statement = self.begin_statement_on(table);
        let of = &mut self.tables[table.0];
        let wal = RefCell::new(&mut self.wal);
        let mut heap = HeapAccess::new(of.heap_parts(), &self.procs, &wal, None);
        heap.prune_opt_for(root.block, matches!(action, Action::Read));
        let tid = if heap.is_own_simple_update(cached) {
            cached
        } else if let Fetched::Found(tid) = heap.fetch(root, statement) {
            tid
        } else {
            return None;
        };
        self.procs.note_fetched(of.forks.main, tid.block);
        let at = ByCachedTid {
            table,
            index,
            key,
            statement,
            tid,
            has_waited: false,
        };
        Some(self.take_by_cached_tid(at, action))
    }

    /// Does what the statement does to the row whose TID was cached, at once or after a wait for
    /// who holds it.
    #[inline]
    pub(super) fn take_by_cached_tid(
        &mut self,
        mut at: ByCachedTid,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let ByCachedTid { key, tid, .. } = at;
        let of = &mut self.tables[at.table.0];
        self.procs.note_slot(of.forks.main, tid.block);
        let still_wanted = |of: &mut Table, row| of.has_key(at.index, row, (&[key], &[key]));
        let (procs, wal) = (&mut self.procs, &mut self.wal);
        let done = match of.take(tid, action, still_wanted, (procs, wal, at.statement)) {
            Ok(taken) => {
                let newest = taken.and_then(|taken| of.newest(taken));
                // A TID that is cached still says that no entry was added.
                if let Some((row, tid)) = newest
                    && (!at.has_waited || of.values.rows.tid(row).is_some())
                {
                    let rows = &mut of.values.rows;
                    of.indexes.cached_tids.note(rows, (at.index, key), row, tid);
                }
                let found = u64::from(taken.is_some());
                self.end_statement(at.table).map(|()| found)
            }
            Err(error) => Err(error),
        };
        self.park(done, || {
            at.has_waited = true;
            Parked::ByCachedTid(at)
        })
    }

    /// A statement begins with an index scan.
    pub(super) fn begin_index_scan(
        &mut self,
        table: TableId,
        index: usize,
        low: &[i64],
    ) -> IndexScan {
        let statement = self.begin_statement_on(table);
        let of = &mut self.tables[table.0];
        let index = of.btree_position(index);
        let tree = &mut of.indexes.btrees[index].tree;
        let next = tree.scan_start(low);
        next.into_iter().for_each(|leaf| tree.expect_leaf(leaf));
        IndexScan {
            table,
            index,
            statement,
            found_rows: 0,
            entry_count: 0,
            has_stopped: false,
            only: None,
            next,
            last_block: None,
            slot_block: None,
            dead: std::mem::take(&mut of.scratch.dead_entries),
            stopped: None,
            limit: u64::MAX,
            keys: [Vec::new(), Vec::new()],
        }
    }

    pub(super) fn resume_index_scan(
        &mut self,
        mut scan: Box<IndexScan>,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let keys = std::mem::take(&mut scan.keys);
        let done = self.advance_index_scan(&mut scan, (&keys[0], &keys[1]), action);
        self.park(done, || {
            scan.keys = keys;
            Parked::Index(scan)
        })
    }

    pub(super) fn advance_index_scan(
        &mut self,
        scan: &mut IndexScan,
        (low, high): (&[i64], &[i64]),
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let (index, statement) = (scan.index, scan.statement);
        let is_read_only = matches!(action, Action::Read);
        let table = &mut self.tables[scan.table.0];
        scan.has_stopped |= scan.stopped.is_some();
        loop {
            let (scanned, first, mut held) = match (scan.stopped.take(), scan.next) {
                (Some((scanned, position, tid)), _) => (scanned, position, tid),
                (None, Some(leaf)) => {
                    let scanned = table.indexes.btrees[index].tree.scan_page(leaf, low, high);
                    scan.dead.clear();
                    scan.entry_count += scanned.entries.len();
                    (scanned, 0, None)
                }
                (None, None) => break,
            };
            for position in first..scanned.entries.len() {
                let (offset, tid) = scanned.entries[position];
                let found = if let Some(found) = held.take() {
                    found
                } else {
                    let wal = RefCell::new(&mut self.wal);
                    let mut heap = HeapAccess::new(table.heap_parts(), &self.procs, &wal, None);
                    let is_other = scan.last_block.replace(tid.block) != Some(tid.block);
                    let is_slot = scan.slot_block == Some(tid.block);
                    if is_other && !is_slot {
                        heap.prune_opt_for(tid.block, is_read_only);
                    }
                    match heap.fetch(tid, statement) {
                        Fetched::Found(found) => found,
                        Fetched::AllDead => {
                            scan.dead.push((offset, tid));
                            continue;
                        }
                        Fetched::Invisible => continue,
                    }
                };
                scan.slot_block = Some(found.block);
                self.procs.note_slot(table.forks.main, found.block);
                let still_wanted = |of: &mut Table, row| of.has_key(index, row, (low, high));
                let (procs, wal) = (&mut self.procs, &mut self.wal);
                match table.take(found, action, still_wanted, (procs, wal, statement)) {
                    Ok(Some(taken)) => {
                        scan.found_rows += 1;
                        scan.only = table.newest(taken);
                        if scan.found_rows == scan.limit {
                            scan.stopped = Some((scanned, position + 1, None));
                            return Ok(scan.found_rows);
                        }
                    }
                    Ok(None) => {}
                    Err(error) => {
                        if matches!(error, StatementError::Waits(_)) {
                            scan.stopped = Some((scanned, position, Some(found)));
                        }
                        return Err(error);
                    }
                }
            }
            table.indexes.btrees[index].kill(&scanned, &scan.dead, &mut self.wal);
            scan.next = scanned.next;
        }
        if let Some(block) = scan.last_block {
            self.procs.note_fetched(table.forks.main, block);
        }
        if scan.dead.capacity() > 0 {
            table.scratch.dead_entries = std::mem::take(&mut scan.dead);
        }
        if let ([key], Some((row, tid))) = (low, scan.only)
            && low == high
        {
            // A TID that is cached still says that no entry was added.
            let is_alone = if scan.has_stopped {
                table.values.rows.tid(row).is_some()
            } else {
                scan.entry_count == 1
            };
            if is_alone {
                table
                    .indexes
                    .cached_tids
                    .note(&mut table.values.rows, (index, *key), row, tid);
            }
        }
        self.end_statement(scan.table)?;
        Ok(scan.found_rows)
    }

    /// A statement that reads the whole table and acts on the rows that `wanted` accepts.
    ///
    /// # Errors
    /// As [`Database::by_index`].
    ///
    /// Source: `heap_prepare_pagescan`, src/backend/access/heap/heapam.c (REL_18_STABLE;
    /// `heapgetpage` before).
    pub fn by_seq_scan(
        &mut self,
        table: TableId,
        wanted: impl Fn(Row<'_>) -> bool,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let scan = self.begin_seq_scan(table);
        self.advance_seq_scan(scan, wanted, action)
    }

    /// A statement begins with a sequential scan.
    pub(super) fn begin_seq_scan(&mut self, table: TableId) -> SeqScan {
        SeqScan {
            table,
            statement: self.begin_statement_on(table),
            found_rows: 0,
            block: 0,
            pages: self.tables[table.0].heap.page_count(),
            visible: None,
            part: Scanned::default(),
            limit: u64::MAX,
        }
    }

    pub(super) fn advance_seq_scan(
        &mut self,
        mut scan: SeqScan,
        wanted: impl Fn(Row<'_>) -> bool,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let done = self.go_through(&mut scan, &wanted, action);
        self.park(done, || Parked::Seq(Box::new(scan)))
    }

    pub(super) fn go_through(
        &mut self,
        scan: &mut SeqScan,
        wanted: &impl Fn(Row<'_>) -> bool,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let statement = scan.statement;
        let is_read_only = matches!(action, Action::Read);
        let table = &mut self.tables[scan.table.0];
        let mut visible: Vec<Tid> = Vec::new();
        while scan.block < scan.pages.min(table.heap.page_count()) {
            let first = if let Some((waiting, done)) = scan.visible.take() {
                visible = waiting;
                done
            } else if self.sessions.scan_in_parts && scan.part.is_part() {
                scan.part = Scanned::default();
                return Err(StatementError::Scans);
            } else {
                visible.clear();
                table.session.pin_ahead = None;
                let wal = RefCell::new(&mut self.wal);
                let mut heap = HeapAccess::new(table.heap_parts(), &self.procs, &wal, None);
                heap.prune_opt_for(BlockNumber(scan.block), is_read_only);
                heap.visible_tuples(BlockNumber(scan.block), statement, &mut visible);
                for scanned in [&mut self.sessions.scanned, &mut scan.part] {
                    scanned.pages += 1;
                    scanned.rows += visible.len() as u64;
                }
                if self.behaviour.seq_scans_stream && scan.block + 1 < scan.pages {
                    table.session.pin_ahead = Some(BlockNumber(scan.block + 1));
                }
                0
            };
            for position in first..visible.len() {
                let tid = visible[position];
                if !wanted(table.row_view(table.row_at(tid))) {
                    continue;
                }
                self.procs.note_slot(table.forks.main, tid.block);
                let still_wanted = |of: &mut Table, row| Ok(wanted(of.row_view(row)));
                let (procs, wal) = (&mut self.procs, &mut self.wal);
                let taken = table.take(tid, action, still_wanted, (procs, wal, statement));
                if matches!(taken, Err(StatementError::Waits(_))) {
                    scan.visible = Some((std::mem::take(&mut visible), position));
                }
                scan.found_rows += u64::from(taken?.is_some());
                if scan.found_rows == scan.limit {
                    scan.visible = Some((visible, position + 1));
                    return Ok(scan.found_rows);
                }
            }
            scan.block += 1;
        }
        self.end_statement(scan.table)?;
        Ok(scan.found_rows)
    }
}
