//! The fast path of the commonest statement: an UPDATE that finds its row by key, and whose new
//! version differs in fixed columns alone.
//!
//! ```text
//! key -> row -> cached TID of its newest version -> prune page, if due -> HOT update [-> COMMIT]
//! ```
//!
//! A transaction that is nothing else keeps nothing for a rollback: of the only session
//! ([`Database::update_alone`]), or of one of several, whose COMMIT comes later
//! ([`Database::begin_update_alone`]). Any other ([`Database::update_in_transaction`]) keeps the
//! old values.
//!
//! What it does is what `Database::by_index` and `Database::commit` do, record by record; what it
//! does not is to ask again what is known. It takes only what it can prove to be simple before it
//! changes anything, and leaves the rest to them:
//!
//! - The TID was cached by an index scan that found this row alone under its key, and no entry of
//!   that key or row was added since (`cached_tids.rs`): the scan would find the same.
//! - The version there is the row's newest, committed and seen by the statement's snapshot, and
//!   nobody has locked it.
//! - The columns assigned are fixed (`new_values.rs`).
//! - No other version comes before it in its chain, once the page is pruned.
//!
//! `tests/fast_path.rs` plays random workloads with and without it.

use crate::counters::TableXactStatus;
use crate::executor::table::Table;
use crate::executor::{Assignment, Database, SessionId, TableId};
use crate::page::Tid;
use crate::procarray::{ProcArray, Snapshot};
use crate::transaction::{Transactions, Xid};
use crate::wal::Wal;

/// A row that a statement by key is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(in crate::executor) table: u32,
    pub(in crate::executor) row: u32,
}

/// What a transaction that is one update has done.
const ONE_UPDATE: TableXactStatus = TableXactStatus {
    inserted: 0,
    updated: 1,
    deleted: 0,
};

impl Database {
    /// The row of an UPDATE by key, if its statement is a simple one; whether the row is simple
    /// too is seen when it is updated.
    #[inline]
    pub(crate) fn target_of(
        &self,
        table: TableId,
        index: usize,
        key: i64,
        sets: &[Assignment<'_>],
    ) -> Option<Target> {
        let of = &self.tables[table.0];
        if of.model.is_some() || !of.sets_fixed(sets) {
            return None;
        }
        self.row_by_key(table, index, key)
    }

    /// The row that a statement by key is about, if that is known without the index.
    #[inline]
    pub(crate) fn row_by_key(&self, table: TableId, index: usize, key: i64) -> Option<Target> {
        let of = &self.tables[table.0];
        let row = of
            .indexes
            .cached_tids
            .row_of(of.btree_position(index), key)?;
        let table = u32::try_from(table.0).ok()?;
        Some(Target { table, row })
    }

    /// Does a transaction of one UPDATE by key and commits it, if it is simple; false when it is
    /// not, and nothing was done then that the slow path would not do first.
    ///
    /// It is [`Database::begin_update_alone`] and [`Database::end_update_alone`] where there is
    /// nobody else: as these two calls, an update would take 13 % more instructions (1,873 for
    /// 1,662), and one client make 13 % fewer a second.
    ///
    /// Source: as [`Database::by_index`] and [`Database::commit`].
    #[inline]
    pub(crate) fn update_alone(&mut self, target: Target, sets: &[Assignment<'_>]) -> bool {
        if !self.uses_fast_path || self.procs.is_shared() {
            return false;
        }
        self.procs.take_snapshot();
        let table = &mut self.tables[target.table as usize];
        let Some(tid) = table.values.rows.tid(target.row) else {
            return false;
        };
        self.wal.count_updates(true);
        let (xid, procs) = (self.procs.next_xid(), &self.procs);
        let version = (target.row, tid);
        let is_done = table.update_fast::<false>(version, sets, xid, procs, procs, &mut self.wal);
        self.wal.count_updates(false);
        if !is_done {
            return false;
        }
        self.statement += 1;
        self.fast_updates += 1;
        self.procs.commit_next();
        self.wal.record_commit();
        table.counters.end_transaction(ONE_UPDATE, true);
        true
    }

    /// Begins a transaction of the active session, beside others, that is nothing but one UPDATE by
    /// key, and does that; false when it is not simple, and nothing was done then that the slow
    /// path would not do first. [`Database::end_update_alone`] has to follow.
    ///
    /// Source: as [`Database::by_index`].
    #[inline]
    pub(crate) fn begin_update_alone(&mut self, target: Target, sets: &[Assignment<'_>]) -> bool {
        if !self.uses_fast_path || !self.sessions.cursors.is_empty() {
            return false;
        }
        self.wal.count_updates(true);
        let is_done = self.update_beside::<false>(target, sets);
        self.wal.count_updates(false);
        is_done
    }

    /// The session's statement is over, and with it its transaction, which commits: its number, and
    /// the sessions that waited for it, in the order of their waits. It need not be the active one.
    ///
    /// Source: as [`Database::close_statement`] and [`Database::commit`], of a transaction that
    /// [`Database::begin_update_alone`] began.
    pub(crate) fn end_update_alone(
        &mut self,
        session: SessionId,
        table: TableId,
    ) -> (Xid, Vec<SessionId>) {
        self.settle_images();
        let xid = self.procs.commit_of(session.0);
        self.wal.record_commit();
        self.tables[table.0]
            .counters
            .end_transaction(ONE_UPDATE, true);
        if self.sessions.parked.is_empty() {
            return (xid, Vec::new());
        }
        (xid, self.woken_by(&[xid]))
    }

    /// Does an UPDATE by key, if it is simple, in a transaction that has or will have others, or
    /// beside other sessions; false when it is not, and nothing was done then that the slow path
    /// would not do first.
    ///
    /// Source: as [`Database::by_index`].
    pub(in crate::executor) fn update_in_transaction(
        &mut self,
        (table, index): (TableId, usize),
        key: i64,
        sets: &[Assignment<'_>],
    ) -> bool {
        // A part's changes are undone by themselves; beside a cursor only the slow path was tried.
        let is_plain = self.procs.parts() == 0 && self.sessions.cursors.is_empty();
        if !self.may_use_fast_path() || !is_plain {
            return false;
        }
        let Some(target) = self.target_of(table, index, key, sets) else {
            return false;
        };
        self.update_beside::<true>(target, sets)
    }

    /// One UPDATE of a transaction beside other sessions, or that has or will have others; as
    /// [`Table::update_fast`].
    #[inline(always)]
    fn update_beside<const MAY_ROLL_BACK: bool>(
        &mut self,
        target: Target,
        sets: &[Assignment<'_>],
    ) -> bool {
        let of = &self.tables[target.table as usize];
        let is_held = of.session.trigger_slot.is_some() || of.session.head_pin.is_some();
        let Some(tid) = of.values.rows.tid(target.row).filter(|_| !is_held) else {
            return false;
        };
        self.begin_statement();
        let procs = &self.procs;
        let xid = procs.current().unwrap_or(procs.next_xid());
        let of = &mut self.tables[target.table as usize];
        of.session.locked_by = procs.lxid();
        let snapshot = Snapshot(procs);
        let wal = &mut self.wal;
        let version = (target.row, tid);
        if !of.update_fast::<MAY_ROLL_BACK>(version, sets, xid, &snapshot, procs, wal) {
            return false;
        }
        self.procs.note_slot(of.forks.main, tid.block);
        let assigned = self.procs.assign();
        assert_eq!(assigned, xid, "the transaction's number");
        self.fast_updates += 1;
        true
    }

    /// Whether updates of the tables that are there may take the fast path, or that of fixed
    /// columns, which changes no result; they do.
    pub fn use_fast_path(&mut self, uses: bool) {
        self.uses_fast_path = uses;
        for table in &mut self.tables {
            table.scratch.without_fast_path = !uses;
        }
    }

    pub(in crate::executor) const fn may_use_fast_path(&self) -> bool {
        self.uses_fast_path
    }

    /// How many transactions took it.
    #[must_use]
    pub const fn fast_updates(&self) -> u64 {
        self.fast_updates
    }
}

impl Table {
    /// The statement without its COMMIT, which sees rows as `view` does; whether it was done.
    /// `MAY_ROLL_BACK` says that old values are kept for a rollback, and that the session counts
    /// the update among what its transaction has done.
    #[inline(always)]
    fn update_fast<const MAY_ROLL_BACK: bool>(
        &mut self,
        (row, tid): (u32, Tid),
        sets: &[Assignment<'_>],
        xid: Xid,
        view: &impl Transactions,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> bool {
        if self.values.texts.has_forms() || self.heap.is_any_watched() {
            return false;
        }
        if self.values.replaced.is_kept()
            && self.heap.pages()[tid.block.0 as usize].is_all_visible()
        {
            return false; // `update_fixed` keeps the version
        }
        if self.heap.live_row(tid, view) != Some(row) {
            return false;
        }
        let Some(values) = self.fixed_values(row, sets) else {
            return false;
        };
        let settled = self.prune_before_update(tid.block, procs, wal);
        let Some(done) = self.heap.simple_hot_update(tid, xid, settled) else {
            return false;
        };
        let measured = values.measured(done.lp_len.into());
        let how = (tid.block, true, done.cleared_visibility);
        let shared = || values.shared(done.lp_len.into());
        self.log_update_same_page(how, measured, shared, 0, wal);
        self.count_update(tid.block, true, false);
        if MAY_ROLL_BACK {
            self.session.trans.updated += 1;
            self.keep_old_slots(row);
        }
        self.values.rows.set_tid(row, done.new);
        self.store_fixed(row, sets, &values);
        true
    }
}
