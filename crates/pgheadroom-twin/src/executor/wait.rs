//! Waiting for other sessions: who holds a row, which statements wait, and what follows.
//!
//! ```text
//! let found = db.by_index(...);          Err(Waits(xid)): the session waits for that transaction
//! db.switch_to(holder); db.commit();     the sessions that may go on, in the order of their waits
//! db.switch_to(waiting); db.resume_scan(...);
//! ```
//!
//! A statement that waits is kept as far as it has come, with its snapshot and its pins, and goes
//! on where it was. What it finds then decides: a version whose deleter has failed is taken as it
//! is; of one that was replaced the newest is locked and looked at again; of one that is gone
//! nothing is left to do.
//!
//! Source: `heap_update`, `heap_delete` and `heap_lock_tuple`, src/backend/access/heap/heapam.c;
//! `heapam_tuple_lock`, heapam_handler.c; `ExecUpdate` and `ExecDelete` after `TM_Updated`,
//! src/backend/executor/nodeModifyTable.c; `_bt_doinsert`, src/backend/access/nbtree/nbtinsert.c;
//! `ProcSleep` and `DeadLockCheck`, src/backend/storage/lmgr/ (REL_18_STABLE).

use crate::executor::parked::{Parked, Waiting};
use crate::executor::session_table::Entries;
use crate::executor::table::Table;
use crate::executor::{Action, Assignments, Database, Row, SessionId, StatementError, TableId};
use crate::lock_options::LockTupleMode;
use crate::page::{Tid, Tuple};
use crate::procarray::{Isolation, ProcArray, Snapshot};
use crate::transaction::{Outcome, Transactions, Xid};
use crate::value::Value;
use crate::wal::Wal;

impl Database {
    /// Keeps a statement that has to wait, or stops for others to do something.
    pub(super) fn park<T>(
        &mut self,
        done: Result<T, StatementError>,
        statement: impl FnOnce() -> Parked,
    ) -> Result<T, StatementError> {
        let xid = match done {
            Err(StatementError::Waits(xid)) => Some(xid),
            Err(
                StatementError::Scans | StatementError::OnItsWay | StatementError::Fetches { .. },
            ) => Some(Xid::INVALID),
            _ => None,
        };
        if let Some(xid) = xid {
            let statement = statement();
            let version = statement.table().and_then(|table| {
                let at = self.tables[table.0].session.in_line_at.take()?;
                Some((table, at))
            });
            self.sessions.parked.push(Waiting {
                session: self.session(),
                xid,
                version,
                statement,
                rows_done: 0,
            });
        }
        done
    }

    fn unpark(&mut self) -> Option<Waiting> {
        let session = self.session();
        let mut parked = self.sessions.parked.iter();
        let position = parked.position(|waiting| waiting.session == session)?;
        Some(self.sessions.parked.remove(position))
    }

    /// The active session's queue's statement that is on its way to its rows, if it is such a one.
    pub(super) fn unpark_head_query(&mut self) -> Option<u32> {
        let session = self.session();
        let mut parked = self.sessions.parked.iter();
        let position = parked.position(|waiting| waiting.session == session)?;
        let Parked::HeadQuery(statement) = self.sessions.parked[position].statement else {
            return None;
        };
        self.sessions.parked.remove(position);
        Some(statement)
    }

    /// The active session's statement has gone on and waits at the same version again: it keeps the
    /// tuple's lock, or its turn in the line of those who wait for that.
    ///
    /// Source: `heap_acquire_tuplock`, src/backend/access/heap/heapam.c (REL_18_STABLE), whose lock
    /// is kept while the version is looked at again.
    fn keep_tuple_lock(&mut self, position: usize, version: Option<(TableId, Tid)>) {
        let Some(waiting) = self.sessions.parked.pop() else {
            return;
        };
        let keeps = version.is_some() && waiting.version == version;
        let position = if keeps {
            position
        } else {
            self.sessions.parked.len()
        };
        self.sessions.parked.insert(position, waiting);
    }

    /// The active session's statement is given up, with what it had still to do.
    pub(super) fn give_up(&mut self) {
        self.unpark();
        for table in &mut self.tables {
            table.give_up();
        }
    }

    /// The sessions that wait for one of these transactions, in the order of their waits.
    pub(super) fn woken_by(&self, ended: &[Xid]) -> Vec<SessionId> {
        let parked = self.sessions.parked.iter();
        let woken = parked.filter(|waiting| ended.contains(&waiting.xid));
        woken.map(|waiting| waiting.session).collect()
    }

    /// The session that a session waits for.
    #[must_use]
    pub fn waits_for(&self, session: SessionId) -> Option<SessionId> {
        let mut parked = self.sessions.parked.iter();
        let waiting = parked.clone().find(|waiting| waiting.session == session)?;
        if !waiting.xid.is_valid() {
            return None; // it scans, or is on its way
        }
        let is_before = |other: &&Waiting| other.session != session;
        let mut before = parked.by_ref().take_while(is_before);
        if let (Some(other), true) = (
            before.find(|other| other.version == waiting.version),
            waiting.version.is_some(),
        ) {
            return Some(other.session); // first in the version's line
        }
        if self.procs.is_current(waiting.xid) {
            return Some(self.session());
        }
        self.procs.backend_of(waiting.xid).map(SessionId)
    }

    /// The sessions that wait for each other in a circle which this one is in, in the order in
    /// which they began to: the first one's `deadlock_timeout` is over first, if all have the same,
    /// so that its transaction is the one to be rolled back.
    ///
    /// Source: `DeadLockCheck`, src/backend/storage/lmgr/deadlock.c, which the timer of the one
    /// that waits calls once (`CheckDeadLockAlert`, proc.c).
    #[must_use]
    pub fn deadlock_of(&self, session: SessionId) -> Vec<SessionId> {
        let chain = || std::iter::successors(Some(session), |&one| self.waits_for(one));
        // A chain that is longer than there are sessions goes round in others' circle.
        let sessions = self.sessions.parked.len();
        let Some(length) = chain()
            .skip(1)
            .take(sessions)
            .position(|one| one == session)
        else {
            return Vec::new();
        };
        let circle: Vec<SessionId> = chain().take(length + 1).collect();
        let parked = self.sessions.parked.iter();
        let waiting = parked.map(|waiting| waiting.session);
        waiting.filter(|one| circle.contains(one)).collect()
    }

    /// A statement of the active session waits with the row of this number, from 1.
    pub(crate) fn note_rows_done(&mut self, rows: usize) {
        let session = self.session();
        let mut parked = self.sessions.parked.iter_mut();
        if let Some(waiting) = parked.find(|waiting| waiting.session == session) {
            waiting.rows_done = rows;
        }
    }

    /// A statement of the active session ends, which may have to wait once more.
    ///
    /// # Errors
    /// As [`Database::end_statement`].
    pub(crate) fn end_or_wait(&mut self, table: TableId) -> Result<(), StatementError> {
        let done = self.end_statement(table);
        self.park(done, || Parked::End(table))
    }

    /// The active session's INSERT goes on with the row that it waits with: how many of its rows
    /// are in the table then, or none when it is over.
    ///
    /// # Errors
    /// Those of the statement; it may wait again.
    ///
    /// # Panics
    /// When no such statement waits.
    pub fn resume_insert(
        &mut self,
        conflict: Option<(usize, &[Vec<Value>], &Assignments<'_>)>,
    ) -> Result<Option<usize>, StatementError> {
        let waiting = self.unpark().expect("a statement that waits");
        let rows_done = waiting.rows_done;
        let done = match waiting.statement {
            Parked::End(table) => {
                self.end_or_wait(table)?;
                return Ok(None);
            }
            Parked::Insert(id) => {
                let table = &mut self.tables[id.0];
                let done = table.resume_entries(None, &mut self.procs, &mut self.wal);
                let done = done.map(|row| table.queue_checks(row));
                self.park(done, || Parked::Insert(id))
            }
            Parked::Upsert(table, statement) => {
                let (index, rows, sets) = conflict.expect("ON CONFLICT");
                self.begin_upsert((table, index), &rows[rows_done - 1], sets, statement)
            }
            Parked::Fetch(table, statement, scanned) => {
                let (index, rows, sets) = conflict.expect("ON CONFLICT");
                let values = &rows[rows_done - 1];
                self.go_on_with_upsert((table, index), values, sets, (statement, scanned))
            }
            other => panic!("an INSERT waits, not {other:?}"),
        };
        if done.is_err() {
            self.note_rows_done(rows_done);
        }
        done.map(|()| Some(rows_done))
    }

    /// The active session's SELECT, UPDATE or DELETE goes on, with the same action and condition;
    /// number of rows.
    ///
    /// # Errors
    /// Those of the statement; it may wait again.
    ///
    /// # Panics
    /// When no such statement waits.
    pub fn resume_scan(
        &mut self,
        action: &Action<'_>,
        wanted: impl Fn(Row<'_>) -> bool,
    ) -> Result<u64, StatementError> {
        let session = self.session();
        let mut parked = self.sessions.parked.iter();
        let position = parked.position(|waiting| waiting.session == session);
        let position = position.expect("a statement that waits");
        let waiting = self.sessions.parked.remove(position);
        let version = waiting.version;
        let done = match waiting.statement {
            Parked::Index(scan) => self.resume_index_scan(scan, action),
            Parked::ByCachedTid(at) => self.take_by_cached_tid(at, action),
            Parked::Seq(scan) => self.advance_seq_scan(*scan, wanted, action),
            Parked::Bitmap(scan) => self.advance_bitmap_scan(scan, action),
            Parked::Head(table, end) => self.end_head(table, end),
            other => panic!("a scan waits, not {other:?}"),
        };
        if matches!(done, Err(StatementError::Waits(_))) {
            self.keep_tuple_lock(position, version);
        }
        done
    }
}

/// Whether a transaction that has committed has updated or deleted a version.
fn is_replaced(tuple: &Tuple, procs: &ProcArray) -> bool {
    let is_removed = tuple.xmax.is_valid() && !tuple.is_locked_only;
    is_removed && procs.outcome(tuple.xmax) == Outcome::Committed
}

/// The transaction of another session that has to end before this version, at this TID, can be
/// locked.
fn holder_of(tuple: &Tuple, tid: Tid, mode: LockTupleMode, procs: &ProcArray) -> Option<Xid> {
    if procs.runs_elsewhere(tuple.xmin) {
        return Some(tuple.xmin);
    }
    procs.blocker(tuple, tid, mode)
}

impl Table {
    /// What the active session's statement still had to do is not done.
    fn give_up(&mut self) {
        let session = &mut self.session;
        session.entries = None;
        session.queued.clear();
        session.trigger_slot = None;
        session.awaited = None;
        session.in_line_at = None;
        session.head_pin = None;
        session.pin_ahead = None;
        if let Some(toast) = &mut self.toast {
            toast.table.give_up();
        }
    }

    /// Who holds a row is not waited for, and the row passed over.
    pub(super) fn wait_for_nobody(&mut self) {
        self.session.awaited = None;
        self.session.in_line_at = None;
    }

    /// The transaction of another session that has to end before this version can be locked.
    pub(super) fn holder(&self, tid: Tid, mode: LockTupleMode, procs: &ProcArray) -> Option<Xid> {
        holder_of(&self.tuple_at(tid), tid, mode, procs)
    }

    /// How strongly a statement locks its rows.
    pub(super) fn lock_mode(&self, action: &Action<'_>) -> LockTupleMode {
        match action {
            Action::Lock(mode, _) => *mode,
            Action::Update(assignments) => self.update_mode(assignments),
            Action::Delete | Action::Read => LockTupleMode::Update,
        }
    }

    /// How strongly an UPDATE locks its rows.
    ///
    /// Source: `ExecUpdateLockMode`, src/backend/executor/execMain.c.
    pub(super) fn update_mode(&self, assignments: &Assignments<'_>) -> LockTupleMode {
        let mut unique = self.indexes.btrees.iter();
        if unique.any(|index| index.is_key() && !index.is_unchanged_by(assignments)) {
            LockTupleMode::Update
        } else {
            LockTupleMode::NoKeyUpdate
        }
    }

    /// The version that a statement changes or locks, of a row that its snapshot shows at this
    /// TID: the same, or the newest one, which is locked then if the row still is wanted; none
    /// when it is not, or deleted.
    ///
    /// # Errors
    /// [`StatementError::Waits`] while another session holds it; [`StatementError::Serialization`].
    pub(super) fn held_version(
        &mut self,
        tid: Tid,
        action: &Action<'_>,
        still_wanted: impl FnOnce(&mut Self, u32) -> Result<bool, StatementError>,
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) -> Result<Option<Tid>, StatementError> {
        let page = &self.heap.pages()[tid.block.0 as usize];
        if page.is_settled(tid.offset) {
            return Ok(Some(tid));
        }
        let tuple = self.tuple_at(tid);
        let is_free = !tuple.xmax.is_valid() || procs.is_current(tuple.xmax);
        if is_free || matches!(action, Action::Read) {
            return Ok(Some(tid));
        }
        if matches!(action, Action::Update(_) | Action::Delete) {
            procs.assign(); // before it waits: the number holds the horizon for others meanwhile
        }
        let mode = self.lock_mode(action);
        self.note_hints(tid, procs, wal);
        self.session.in_line_at = None;
        if let Some(xid) = holder_of(&tuple, tid, mode, procs) {
            self.session.awaited = Some(tid);
            self.session.in_line_at = Some(tid);
            return Err(StatementError::Waits(xid));
        }
        let has_waited = self.session.awaited.take() == Some(tid);
        if has_waited && matches!(action, Action::Lock(..)) && !tuple.is_locked_only {
            // A statement that locks, and no other, does so with what has come of the version too.
            self.lock_updated(&tuple, mode, procs, wal);
        }
        if !is_replaced(&tuple, procs) {
            return Ok(Some(tid));
        }
        if procs.isolation() == Isolation::RepeatableRead {
            return Err(StatementError::Serialization);
        }
        let (mut at, mut version) = (tid, tuple);
        while is_replaced(&version, procs) {
            let page = &self.heap.pages()[version.next.block.0 as usize];
            let next = page.tuple(version.next.offset);
            let next =
                next.filter(|next| version.next != at && next.xmin == procs.updater(version.xmax));
            let Some(next) = next else {
                return Ok(None);
            };
            (at, version) = (version.next, next);
            if let Some(xid) = holder_of(&version, at, mode, procs) {
                // Of one that is being replaced its end is waited for without the tuple's lock.
                self.session.in_line_at = version.is_locked_only.then_some(at);
                return Err(StatementError::Waits(xid));
            }
        }
        self.lock(at, mode, procs, wal);
        let row = self.row_at(at);
        Ok(still_wanted(self, row)?.then_some(at))
    }

    /// Whether ON CONFLICT DO UPDATE may go on with the version that it has locked: of a repeatable
    /// read transaction its snapshot has to see it.
    ///
    /// Source: `ExecCheckTupleVisible`, src/backend/executor/nodeModifyTable.c (REL_18_STABLE).
    pub(super) fn may_update_conflict(&self, tid: Tid, procs: &ProcArray) -> bool {
        let xmin = self.tuple_at(tid).xmin;
        procs.isolation() == Isolation::ReadCommitted
            || procs.is_current(xmin)
            || Snapshot(procs).outcome(xmin) == Outcome::Committed
    }

    /// Whether a row's newest version has a key from `low` to `high` of this index.
    pub(super) fn has_key(
        &mut self,
        index: usize,
        row: u32,
        (low, high): (&[i64], &[i64]),
    ) -> Result<bool, StatementError> {
        let entry = self.entry_of(index, row)?;
        Ok(entry.is_some_and(|entry| {
            let key = entry.key.values();
            &key[..low.len()] >= low && &key[..high.len()] <= high
        }))
    }

    /// The new version gets the index entries that it lacks; its row.
    pub(super) fn resume_entries(
        &mut self,
        assigned: Option<&Assignments<'_>>,
        procs: &mut ProcArray,
        wal: &mut Wal,
    ) -> Result<u32, StatementError> {
        let entries: Entries = self.session.entries.take().expect("entries to add");
        self.insert_entries(entries, assigned, procs, wal)?;
        if let Some(old) = entries.pinned {
            self.hold_trigger_slot(old);
        }
        Ok(entries.row)
    }
}
