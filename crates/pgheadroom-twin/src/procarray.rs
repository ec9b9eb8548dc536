//! The process array: who runs which transaction, in which snapshot, and what nobody needs.
//!
//! ```text
//! backend   xid    xmin    GlobalVis: maybe_needed .. definitely_needed
//! 0         7      -             5                    7        between two statements
//! 1         9      7             6                    7        in a statement
//! 2         -      -             9                    9        idle
//! removable for backend 1 is what precedes maybe_needed; up to definitely_needed it looks again,
//! if its snapshot's xmin has moved since it did so last
//! ```
//!
//! One backend is active: it is the one that asks. A transaction is in progress while some backend
//! has its number. Left out: replication slots, prepared transactions, wraparound.
//!
//! Source: `GetSnapshotData`, `ComputeXidHorizons`, `GlobalVisTestShouldUpdate`,
//! `GlobalVisUpdateApply` and `GlobalVisTestIsRemovableFullXid`,
//! src/backend/storage/ipc/procarray.c; `SnapshotResetXmin`, src/backend/utils/time/snapmgr.c
//! (REL_15_STABLE, REL_18_STABLE).

use std::cell::Cell;

use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::checkpoint::ForkId;
use crate::heap::Extensions;
use crate::multixact::Multixacts;
use crate::object_ids::ObjectIds;
use crate::transaction::Xid;

mod cursor;
mod ends;
mod horizons;
mod parts;
mod pins;
mod row_locks;
mod transactions;
mod view;

pub use horizons::KnownHorizons;

use horizons::GlobalVis;
use parts::Part;
pub(crate) use row_locks::NewXmax;
pub(crate) use view::{Ended, SinceThen, Snapshot};

/// The first transaction of the twin; lower ones are PostgreSQL's own.
///
/// Source: `FirstNormalTransactionId`, src/include/access/transam.h.
pub const FIRST_NORMAL_XID: Xid = Xid(3);

/// Above every transaction's number.
const NO_XID: Xid = Xid(u32::MAX);

/// No page; forks are few.
const NO_SLOT: u64 = u64::MAX;

/// A page in eight bytes.
#[inline]
fn packed(slot: Option<(ForkId, BlockNumber)>) -> u64 {
    slot.map_or(NO_SLOT, |(fork, block)| {
        (fork.0 as u64) << 32 | u64::from(block.0)
    })
}

/// A backend that does nothing but hold a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeldSnapshot(u32);

/// How long a session's snapshot lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Isolation {
    /// One for each statement.
    #[default]
    ReadCommitted,
    /// The first statement's, to the end of the transaction.
    RepeatableRead,
}

/// Which transactions a statement sees as ended.
///
/// Source: `SnapshotData`, src/include/utils/snapshot.h; `XidInMVCCSnapshot`, snapmgr.c.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct SnapshotData {
    /// No transaction with a lower number is running, the backend's own left out.
    xmin: Xid,
    /// Numbers from here on are running.
    xmax: Xid,
    /// Those before it that are running, ascending: the backend's own too, as long as its
    /// transaction has no parts, any of which may be undone by itself.
    running: Vec<Xid>,
}

/// A session's entry.
#[derive(Debug, Clone, Default)]
struct Backend {
    xid: Option<Xid>,
    /// How many of its transactions have ended, each of which may have had locks.
    ended: u64,
    /// The multixact that was next when it got that number (`OldestMemberMXactId`).
    multixact_then: Xid,
    /// Parts of its transaction in progress, and the numbers of those that were released.
    parts: Vec<Part>,
    released: Vec<Xid>,
    /// The oldest transaction that one of its snapshots does not see as ended (`MyProc->xmin`).
    xmin: Option<Xid>,
    isolation: Isolation,
    snapshot: SnapshotData,
    global_vis: Cell<GlobalVis>,
    /// The page of the last row that the running statement found, or that an open portal keeps.
    slot: Option<(ForkId, BlockNumber)>,
    /// The page of the last entry that an index scan of the running statement fetched, or the last
    /// one of its bitmap, where a portal that stays open keeps it pinned.
    fetched: Option<(ForkId, BlockNumber)>,
    /// The snapshot of its cursor, while it is not the one that statements see by, with its xmin.
    cursor: Option<(SnapshotData, Option<Xid>)>,
    /// The page of the row that the cursor stands on, or of its scan's end where that is kept.
    cursor_slot: Option<(ForkId, BlockNumber)>,
    /// Other pages that it has pinned while another backend is active.
    pins: Vec<(ForkId, BlockNumber)>,
}

impl Backend {
    /// Its statement is over; see [`ProcArray::end_statement`].
    #[inline]
    fn end_statement(&mut self, keeps_portal: bool) {
        let fetched = self.fetched.take();
        self.slot = fetched.filter(|_| keeps_portal);
        if self.isolation == Isolation::ReadCommitted && !keeps_portal {
            self.xmin = self.cursor.as_ref().and_then(|&(_, xmin)| xmin);
        }
    }

    /// Whether it has other pages pinned than that of its row.
    fn has_more_pins(&self) -> bool {
        self.cursor_slot.is_some() || !self.pins.is_empty()
    }

    /// The smaller one of its xid and its xmin; the highest number without any.
    fn oldest(&self) -> Xid {
        let (xid, xmin) = (self.xid.unwrap_or(NO_XID), self.xmin.unwrap_or(NO_XID));
        xid.min(xmin)
    }
}

/// All backends, and how transactions have ended.
#[derive(Debug, Clone)]
pub struct ProcArray {
    next: Xid,
    /// Numbers of transactions that were rolled back; ascending.
    aborted: Vec<Xid>,
    /// The active backend.
    mine: Box<Backend>,
    active: usize,
    /// By session; the active one's entry is an empty one. Each apart, so that another one is soon
    /// active.
    #[allow(clippy::vec_box)]
    others: Vec<Box<Backend>>,
    /// By session: the smaller one of its xid and its xmin, the highest number without any, as for
    /// the active one. Close together, as all are asked at once.
    oldest: Vec<Xid>,
    /// By session: the page of its row, as [`packed`] has it; none of the active one.
    slots: Vec<u64>,
    /// How many of the others have more pages pinned than those.
    with_more_pins: usize,
    /// Numbers of transactions and their parts in progress, the active session's included;
    /// ascending.
    running: Vec<Xid>,
    /// All transactions with lower numbers have committed, as far as was looked at.
    all_committed_before: Xid,
    held: Vec<(HeldSnapshot, Xid)>,
    held_count: u32,
    multixacts: Multixacts,
    /// See [`pgheadroom_layout::Behaviour::index_scans_keep_pin`].
    index_scans_keep_pin: bool,
    /// OIDs that are given out.
    pub(crate) object_ids: ObjectIds,
    /// When sessions extend tables, where they may wait for each other then.
    extensions: Option<Box<Extensions>>,
}

impl Default for ProcArray {
    fn default() -> Self {
        Self {
            next: FIRST_NORMAL_XID,
            aborted: Vec::new(),
            mine: Box::default(),
            active: 0,
            others: vec![Box::default()],
            oldest: vec![NO_XID],
            slots: vec![NO_SLOT],
            with_more_pins: 0,
            running: Vec::new(),
            all_committed_before: Xid::INVALID,
            held: Vec::new(),
            held_count: 0,
            multixacts: Multixacts::default(),
            index_scans_keep_pin: false,
            object_ids: ObjectIds::default(),
            extensions: None,
        }
    }
}

/// Backends.
impl ProcArray {
    /// Without backends and transactions, of servers that behave so.
    pub(crate) fn new(behaviour: &Behaviour) -> Self {
        Self {
            index_scans_keep_pin: behaviour.index_scans_keep_pin,
            ..Self::default()
        }
    }

    /// One more backend; its number.
    pub(crate) fn add(&mut self) -> usize {
        self.others.push(Box::default());
        self.oldest.push(NO_XID);
        self.slots.push(NO_SLOT);
        self.others.len() - 1
    }

    /// How many there are, those left out that only hold a snapshot.
    #[must_use]
    pub(crate) fn backends(&self) -> usize {
        self.others.len()
    }

    /// The active backend.
    #[must_use]
    pub(crate) const fn active(&self) -> usize {
        self.active
    }

    /// Another backend is active, while this one has these pages pinned besides its row's.
    pub(crate) fn switch_to(&mut self, backend: usize, pins: Vec<(ForkId, BlockNumber)>) {
        self.mine.pins = pins;
        self.oldest[self.active] = self.mine.oldest();
        self.slots[self.active] = packed(self.mine.slot);
        self.with_more_pins += usize::from(self.mine.has_more_pins());
        std::mem::swap(&mut self.mine, &mut self.others[self.active]);
        std::mem::swap(&mut self.mine, &mut self.others[backend]);
        self.active = backend;
        self.oldest[backend] = NO_XID;
        self.slots[backend] = NO_SLOT;
        self.with_more_pins -= usize::from(self.mine.has_more_pins());
    }

    /// The backend that runs a transaction, if it is another one than the active.
    #[must_use]
    pub(crate) fn backend_of(&self, xid: Xid) -> Option<usize> {
        self.others.iter().position(|other| other.owns(xid))
    }

    /// How long the active backend's snapshots last, from its next transaction on.
    pub(crate) const fn set_isolation(&mut self, isolation: Isolation) {
        self.mine.isolation = isolation;
    }

    /// The same.
    #[must_use]
    pub(crate) const fn isolation(&self) -> Isolation {
        self.mine.isolation
    }

    /// The smallest xmin and xid of all but the active backend; the highest number without any.
    fn oldest_other(&self) -> Xid {
        let held = self.held.iter().map(|&(_, xmin)| xmin);
        let others = self.oldest.iter().copied();
        held.chain(others).fold(NO_XID, Xid::min)
    }

    /// Whether a backend other than the active one takes part: with a transaction, a snapshot, or
    /// a page that it has pinned; or the active one is in a transaction.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.mine.xid.is_some() || self.others.len() > 1
    }
}

/// Waits for extension locks.
impl ProcArray {
    /// Backends may wait for them from now on.
    pub(crate) fn contend_for_extensions(&mut self, extensions: Extensions) {
        self.extensions = Some(Box::new(extensions));
    }

    /// Nobody waits any more.
    pub(crate) fn end_extensions(&mut self) {
        self.extensions = None;
    }

    /// When the active backend is about to extend a table, if it may wait for that.
    #[inline]
    pub(crate) fn extensions(&mut self) -> Option<&mut Extensions> {
        let active = self.active;
        self.extensions.as_mut().map(|all| all.of(active))
    }
}

/// Transactions.
impl ProcArray {
    /// The active transaction's number, assigned by its first change.
    ///
    /// # Panics
    /// After 2,147,483,648 transactions.
    #[inline]
    pub fn assign(&mut self) -> Xid {
        let top = match self.mine.xid {
            Some(top) => top,
            None => {
                self.mine.multixact_then = self.next_multixact();
                self.new_xid()
            }
        };
        self.mine.xid = Some(top);
        if self.mine.parts.is_empty() {
            return top;
        }
        self.assign_part()
    }

    fn new_xid(&mut self) -> Xid {
        let xid = self.next;
        assert!(!xid.is_multixact(), "transaction numbers are used up");
        self.next = Xid(xid.0 + 1);
        self.running.push(xid);
        xid
    }

    /// The active transaction's number, if it has changed anything.
    #[must_use]
    #[inline]
    pub const fn current(&self) -> Option<Xid> {
        self.mine.xid
    }

    /// The next number to be assigned.
    #[must_use]
    pub const fn next_xid(&self) -> Xid {
        self.next
    }

    /// Whether a transaction of another backend is in progress.
    #[must_use]
    #[inline]
    pub fn runs_elsewhere(&self, xid: Xid) -> bool {
        self.running.contains(&xid) && !self.mine.owns(xid)
    }
}

/// Snapshots and what they keep.
impl ProcArray {
    /// The oldest transaction in progress; the next one's number without any.
    ///
    /// Source: `xmin` in `GetSnapshotData`, procarray.c.
    #[must_use]
    #[inline]
    pub fn xmin(&self) -> Xid {
        self.running.first().copied().unwrap_or(self.next)
    }

    /// The xmin of the active backend's snapshot (`TransactionXmin`, snapmgr.c).
    pub(crate) const fn transaction_xmin(&self) -> Xid {
        self.mine.snapshot.xmin
    }

    /// The active backend begins a statement: whatever portal it still has open is dropped.
    #[inline]
    pub fn begin_statement(&mut self) {
        self.end_statement(false);
        self.take_snapshot();
    }

    /// The active backend takes a snapshot, unless its transaction goes on with the one it has.
    ///
    /// Source: `GetTransactionSnapshot`, snapmgr.c; `GetSnapshotData`, procarray.c.
    #[inline]
    pub(crate) fn take_snapshot(&mut self) {
        let keeps = self.mine.isolation == Isolation::RepeatableRead && self.mine.xmin.is_some();
        if keeps {
            return;
        }
        let xmin = self.xmin();
        self.all_committed_before = self.aborted.first().map_or(xmin, |&xid| xid.min(xmin));
        let mine = &mut *self.mine;
        mine.snapshot.running.clone_from(&self.running);
        if mine.has_parts() {
            let mut running = std::mem::take(&mut mine.snapshot.running);
            running.retain(|&xid| !mine.owns(xid));
            mine.snapshot.running = running;
        }
        let mut others = mine.snapshot.running.iter().copied();
        let first = others.find(|&xid| mine.xid != Some(xid));
        mine.snapshot.xmin = first.unwrap_or(self.next);
        mine.snapshot.xmax = self.next;
        self.mine.xmin.get_or_insert(xmin);
        let vis = self.mine.global_vis.get_mut();
        vis.definitely_needed = vis.definitely_needed.max(xmin);
        vis.recent_xmin = xmin;
    }

    /// The statement is over. After a SELECT the client's portal may stay open, and the snapshot
    /// with it, until its next statement or the end of the transaction.
    ///
    /// Source: `SnapshotResetXmin`, snapmgr.c; `exec_bind_message`, src/backend/tcop/postgres.c:
    /// the unnamed portal of the extended protocol is dropped by the next one.
    #[inline]
    pub(crate) fn end_statement(&mut self, keeps_portal: bool) {
        self.mine.end_statement(keeps_portal);
    }

    /// The same of any backend, which need not be active for that.
    pub(crate) fn end_statement_of(&mut self, backend: usize, keeps_portal: bool) {
        if backend == self.active {
            self.end_statement(keeps_portal);
            return;
        }
        let other = &mut self.others[backend];
        other.end_statement(keeps_portal);
        self.oldest[backend] = other.oldest();
        self.slots[backend] = packed(other.slot);
    }

    /// Another session takes a snapshot now and keeps it.
    pub fn hold(&mut self) -> HeldSnapshot {
        let name = HeldSnapshot(self.held_count);
        self.held_count = self.held_count.wrapping_add(1);
        let xmin = self.xmin();
        self.held.push((name, xmin));
        name
    }

    /// That session ends its transaction.
    ///
    /// # Panics
    /// When the snapshot is not held.
    pub fn release(&mut self, snapshot: HeldSnapshot) {
        let position = self.held.iter().position(|&(name, _)| name == snapshot);
        self.held
            .swap_remove(position.expect("the snapshot is held"));
    }
}

#[cfg(test)]
mod tests;
