//! The short way of the commonest statement: an UPDATE that finds its row by key and changes it in
//! place.
//!
//! ```text
//! key -> row -> cached TID of its newest version -> prune page, if due -> HOT update [-> COMMIT]
//! ```
//!
//! A transaction that is nothing else needs no way back: of the only session
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
//! - The columns assigned have a fixed width and place and are in no index.
//! - No other version comes before it in its chain, once the page is pruned.
//!
//! `tests/steady_path.rs` plays random workloads with and without it.

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::{Page, heap_update_same_page};

use crate::executor::fetch::{HeapAccess, Updates, simple_prune_bytes};
use crate::executor::table::Table;
use crate::executor::{Assignment, Database, SessionId, TableId};
use crate::page::{HotUpdated, Settled, Tid};
use crate::procarray::{ProcArray, Snapshot};
use crate::row::{Differing, Measured};
use crate::transaction::{Transactions, Xid};
use crate::wal::{RecordType, Wal};

/// A row that a statement by key is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(super) table: u32,
    pub(super) row: u32,
}

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
        let stays = |one: &Assignment<'_>| of.indexes.stays_in_place[one.column];
        let is_simple = of.model.is_none() && sets.len() <= MOST_SETS && sets.iter().all(stays);
        if !is_simple {
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
    /// not, and nothing was done then that the long way would not do first.
    ///
    /// Source: as [`Database::by_index`] and [`Database::commit`].
    #[inline]
    pub(crate) fn update_alone(&mut self, target: Target, sets: &[Assignment<'_>]) -> bool {
        if !self.takes_short_way || self.procs.is_shared() {
            return false;
        }
        self.procs.take_snapshot();
        let table = &mut self.tables[target.table as usize];
        let Some(tid) = table.values.rows.tid(target.row) else {
            return false;
        };
        self.wal.count_updates(true);
        let (xid, procs) = (self.procs.next_xid(), &self.procs);
        let place = (target.row, tid);
        let is_done = table.update_simply::<false>(place, sets, xid, procs, procs, &mut self.wal);
        self.wal.count_updates(false);
        if !is_done {
            return false;
        }
        self.statement += 1;
        self.short_ways += 1;
        self.procs.commit_next();
        self.wal.record_commit();
        table.counters.hot_update();
        table.counters.end_update();
        true
    }

    /// Begins a transaction of the active session, beside others, that is nothing but one UPDATE by
    /// key, and does that; false when it is not simple, and nothing was done then that the long way
    /// would not do first. [`Database::end_update_alone`] has to follow.
    ///
    /// Source: as [`Database::by_index`].
    #[inline]
    pub(crate) fn begin_update_alone(&mut self, target: Target, sets: &[Assignment<'_>]) -> bool {
        if !self.takes_short_way || !self.sessions.cursors.is_empty() {
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
        self.tables[table.0].counters.end_update();
        if self.sessions.parked.is_empty() {
            return (xid, Vec::new());
        }
        (xid, self.woken_by(&[xid]))
    }

    /// Does an UPDATE by key, if it is simple, in a transaction that has or will have others, or
    /// beside other sessions; false when it is not, and nothing was done then that the long way
    /// would not do first.
    ///
    /// Source: as [`Database::by_index`].
    pub(super) fn update_in_transaction(
        &mut self,
        (table, index): (TableId, usize),
        key: i64,
        sets: &[Assignment<'_>],
    ) -> bool {
        // A part's changes are undone by themselves; beside a cursor only the long way was tried.
        let is_plain = self.procs.parts() == 0 && self.sessions.cursors.is_empty();
        if !self.may_take_short_way() || !is_plain {
            return false;
        }
        let Some(target) = self.target_of(table, index, key, sets) else {
            return false;
        };
        self.update_beside::<true>(target, sets)
    }

    /// One UPDATE of a transaction beside other sessions, or that has or will have others.
    /// `IS_UNDONE` says that a rollback may follow, for which the old values are kept, and that the
    /// session counts it as to be reported.
    #[inline(always)]
    fn update_beside<const IS_UNDONE: bool>(
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
        let snapshot = Snapshot(procs);
        let wal = &mut self.wal;
        let place = (target.row, tid);
        if !of.update_simply::<IS_UNDONE>(place, sets, xid, &snapshot, procs, wal) {
            return false;
        }
        of.counters.hot_update();
        if IS_UNDONE {
            of.session.pending.updated += 1;
        }
        self.procs.note_slot(of.forks.main, tid.block);
        let assigned = self.procs.assign();
        assert_eq!(assigned, xid, "the transaction's number");
        self.short_ways += 1;
        true
    }

    /// Whether updates of the tables that are there may take the short way, or that of fixed
    /// columns, which changes no result; they do.
    pub fn take_short_way(&mut self, takes: bool) {
        self.takes_short_way = takes;
        for table in &mut self.tables {
            table.scratch.takes_long_way = !takes;
        }
    }

    pub(super) const fn may_take_short_way(&self) -> bool {
        self.takes_short_way
    }

    /// How many transactions took it.
    #[must_use]
    pub const fn short_ways(&self) -> u64 {
        self.short_ways
    }
}

/// Most columns of a SET clause that takes the short way.
pub(super) const MOST_SETS: usize = 4;

/// What an update makes of a row.
#[derive(Debug)]
pub(super) struct Changed {
    /// New slots, in the order of the SET clause.
    pub new: [i64; MOST_SETS],
    pub hoff: u32,
    pub differing: Differing,
}

impl Table {
    /// The statement without its COMMIT, which sees rows as `view` does. `IS_UNDONE` says that a
    /// rollback may follow, for which the old values are kept.
    #[inline(always)]
    fn update_simply<const IS_UNDONE: bool>(
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
        if self.heap.live_row(tid, view) != Some(row) {
            return false;
        }
        let Some(changed) = self.change_in_place(row, sets) else {
            return false;
        };
        let settled = self.prune_before_update(tid.block, procs, wal);
        // Where replaced versions are kept, the long way keeps them.
        let keeps_replaced = self.values.replaced.is_kept();
        let page = self.heap.page_mut(tid.block);
        let was_visible = page.is_all_visible();
        let done = if was_visible && keeps_replaced {
            None
        } else {
            page.simple_hot_update(tid.offset, xid, settled)
        };
        let Some(HotUpdated {
            new: offset,
            lp_len,
        }) = done
        else {
            page.leave_freed(settled);
            return false;
        };
        if was_visible {
            page.set_all_visible(false);
        }
        let block = tid.block;
        let new = Tid { block, offset };
        let clears_map = was_visible && self.heap.vm_mut().clear(block);
        self.log_in_place(block, lp_len, &changed, clears_map, wal);
        if block.0 < self.class.old_pages {
            self.counters.on_old_page(true);
        }
        if IS_UNDONE {
            self.keep_old_slots(row);
        }
        self.values.rows.set_tid(row, new);
        for (set, &slot) in sets.iter().zip(&changed.new) {
            self.values.rows.set(row, set.column, slot);
        }
        true
    }

    /// As `HeapAccess::prune_opt`, for an update of the page that follows at once, and takes the
    /// line pointer that is left open.
    #[inline(always)]
    fn prune_before_update(
        &mut self,
        block: BlockNumber,
        procs: &ProcArray,
        wal: &mut Wal,
    ) -> Settled {
        if !self.heap.is_worth_pruning(block, procs) {
            return Settled::NOTHING;
        }
        let (main, prune_bytes) = (self.forks.main, self.scratch.prune_bytes);
        let is_pinned = procs.is_shared() && procs.is_pinned(main, block);
        let updates = Updates {
            procs,
            main,
            prune_bytes,
        };
        if !is_pinned
            && let Some(settled) = updates.prune(&mut self.heap, &mut self.counters, wal, block)
        {
            return settled;
        }
        let wal = RefCell::new(wal);
        HeapAccess::new(self.heap_parts(), procs, &wal, None).prune_opt(block);
        Settled::NOTHING
    }

    /// The row's new values; `None` when there is an error to tell, or NULLs shift what changes.
    #[inline(always)]
    pub(super) fn change_in_place(&mut self, row: u32, sets: &[Assignment<'_>]) -> Option<Changed> {
        let rows = &self.values.rows;
        let has_nulls = rows.has_nulls();
        let row_type = &self.values.row_type;
        let hoff = row_type.hoff_of(has_nulls && rows.kept(row).has_nulls());
        let mut changed = Changed {
            new: [0; MOST_SETS],
            hoff,
            differing: Differing::NOTHING,
        };
        for (set, new) in sets.iter().zip(&mut changed.new) {
            let (column, old) = (set.column, rows.slot(row, set.column));
            *new = self.values.row_type.changed_slot(
                column,
                old,
                &set.change,
                &mut self.values.texts,
            )?;
            if *new != old {
                if has_nulls && rows.kept(row).any_null_to(column) {
                    return None;
                }
                let layout = &self.values.row_type.columns[column];
                changed.differing.add(layout, old, *new);
            }
        }
        Some(changed)
    }

    /// Logs the update.
    #[inline(always)]
    fn log_in_place(
        &self,
        block: BlockNumber,
        lp_len: u16,
        changed: &Changed,
        clears_map: bool,
        wal: &mut Wal,
    ) {
        let (hoff, tuple_bytes) = (changed.hoff, u32::from(lp_len));
        let shared = || changed.differing.shared(tuple_bytes - hoff);
        if !clears_map && wal.is_logged(self.forks.main, block) && !wal.is_logical() {
            let bytes = heap_update_same_page(tuple_bytes, hoff, shared(), Page::Change, None);
            wal.record_again(self.forks.main, RecordType::HeapHotUpdate, bytes);
        } else {
            let measured = Measured { tuple_bytes, hoff };
            self.log_update_same_page((block, true, clears_map), measured, shared, 0, wal);
        }
    }

    /// Which columns an update may change without another way than in place, and what its record
    /// of pruning takes.
    pub(super) fn learn_columns(&mut self) {
        self.scratch.prune_bytes = simple_prune_bytes(self.heap.behaviour());
        let columns = self.values.row_type.columns.iter().enumerate();
        let stays = columns.map(|(column, layout)| {
            let is_indexed = self.indexes.blocks_hot[column] || self.indexes.is_summarized[column];
            let is_simple = !is_indexed && !self.foreign_keys.has(column);
            layout.width.is_some() && layout.offset.is_some() && is_simple
        });
        self.indexes.stays_in_place = stays.collect();
    }
}
