//! Transactions of one session, and what snapshots held elsewhere keep alive.
//!
//! ```text
//! xids:   3 committed | 4 aborted | 5 committed | 6 running       next: 7
//! removable is what precedes the running transaction and every held snapshot's xmin
//! ```
//!
//! Source: `GetSnapshotData` and `GlobalVisTestIsRemovableXid`,
//! src/backend/storage/ipc/procarray.c (REL_18_STABLE). Leaves out other writing sessions,
//! subtransactions and wraparound.

use std::collections::BTreeMap;

use pgheadroom_layout::BlockNumber;

use crate::checkpoint::ForkId;
use crate::transaction::{Outcome, Transactions, Xid};

/// The first transaction of the twin; lower ones are PostgreSQL's own.
///
/// Source: `FirstNormalTransactionId`, src/include/access/transam.h.
pub const FIRST_NORMAL_XID: Xid = Xid(3);

/// A snapshot that another session holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeldSnapshot(u32);

/// Which transactions have ended, how, and who may still see what they left.
#[derive(Debug, Clone)]
pub struct Horizon {
    next: Xid,
    current: Option<Xid>,
    aborted: Vec<Xid>,
    held: Vec<(HeldSnapshot, Xid)>,
    held_count: u32,
    /// The smallest xmin among held snapshots; the highest number without any.
    oldest_held: Xid,
    /// Transactions of other sessions that are done here and still run for the others, and when
    /// they end.
    running: BTreeMap<Xid, f64>,
    /// The time of the session that works.
    clock: f64,
    /// Pages that other sessions keep pinned, and until when.
    pins: Vec<(ForkId, BlockNumber, f64)>,
    /// The page of the last row that the running statement found.
    slot: Option<(ForkId, BlockNumber)>,
}

impl Default for Horizon {
    fn default() -> Self {
        Self {
            next: FIRST_NORMAL_XID,
            current: None,
            aborted: Vec::new(),
            held: Vec::new(),
            held_count: 0,
            oldest_held: Xid(u32::MAX),
            running: BTreeMap::new(),
            clock: 0.0,
            pins: Vec::new(),
            slot: None,
        }
    }
}

impl Horizon {
    /// The running transaction's number, assigned by its first change.
    ///
    /// # Panics
    /// After 4,294,967,000 transactions.
    pub fn assign(&mut self) -> Xid {
        if let Some(xid) = self.current {
            return xid;
        }
        let xid = self.next;
        assert!(xid.0 < u32::MAX - 1, "transaction numbers are used up");
        self.next = Xid(xid.0 + 1);
        self.current = Some(xid);
        xid
    }

    /// The running transaction's number, if it has changed anything.
    #[must_use]
    pub const fn current(&self) -> Option<Xid> {
        self.current
    }

    /// The next number to be assigned.
    #[must_use]
    pub const fn next_xid(&self) -> Xid {
        self.next
    }

    /// Ends the transaction; its number, if it had one.
    pub fn commit(&mut self) -> Option<Xid> {
        self.current.take()
    }

    /// The next transaction has begun, changed something, and ended.
    ///
    /// # Panics
    /// As [`Horizon::assign`].
    #[inline]
    pub(crate) fn commit_next(&mut self) {
        let xid = self.next;
        assert!(xid.0 < u32::MAX - 1, "transaction numbers are used up");
        self.next = Xid(xid.0 + 1);
    }

    /// Ends the transaction; what it did has not happened.
    pub fn abort(&mut self) -> Option<Xid> {
        let xid = self.current.take()?;
        self.aborted.push(xid); // in order, since numbers ascend
        Some(xid)
    }

    /// The oldest transaction that a snapshot taken now, outside one, does not see as ended.
    #[must_use]
    pub fn xmin(&self) -> Xid {
        let oldest = self.running.keys().next().copied();
        oldest.unwrap_or(self.next).min(self.next)
    }

    /// The time of the session that works; waits move it on.
    #[must_use]
    pub const fn clock(&self) -> f64 {
        self.clock
    }

    /// Sets the time of the session that works.
    pub const fn set_clock(&mut self, time: f64) {
        self.clock = time;
    }

    /// A transaction that was carried out whole runs on for other sessions until this time.
    pub fn run_on(&mut self, xid: Xid, until: f64) {
        self.running.insert(xid, until);
    }

    /// That transaction has ended for them too.
    pub fn end(&mut self, xid: Xid) {
        self.running.remove(&xid);
    }

    /// Whether a transaction of another session, which is done here, still runs for this one.
    #[must_use]
    pub fn runs_elsewhere(&self, xid: Xid) -> bool {
        let until = self.running.get(&xid).copied();
        until.is_some_and(|until| until > self.clock)
    }

    /// Waits for the end of a transaction of another session; false when it has ended already.
    pub fn wait_for(&mut self, xid: Xid) -> bool {
        let until = self.running.get(&xid).copied();
        let until = until.filter(|&until| until > self.clock);
        if let Some(until) = until {
            self.clock = until;
        }
        until.is_some()
    }

    /// The running statement has found a row on this page, which it keeps pinned until it ends or
    /// finds the next one.
    ///
    /// Source: `IndexNext`, src/backend/executor/nodeIndexscan.c: the scan's slot holds the pin.
    pub(crate) const fn note_slot(&mut self, fork: ForkId, block: BlockNumber) {
        self.slot = Some((fork, block));
    }

    /// The statement is over for this session; for the others it keeps its row's page pinned
    /// until this time.
    pub(crate) fn pin_slot(&mut self, until: f64) {
        if let Some((fork, block)) = self.slot.take() {
            self.pins.push((fork, block, until));
        }
    }

    /// Forgets pins that ended before this time, which no session will go back behind.
    pub(crate) fn drop_pins(&mut self, before: f64) {
        self.pins.retain(|&(.., until)| until > before);
    }

    /// Whether another session has the page pinned, so that nobody can prune it.
    ///
    /// Source: `ConditionalLockBufferForCleanup`, src/backend/storage/buffer/bufmgr.c
    /// (REL_18_STABLE).
    pub(crate) fn is_pinned(&self, fork: ForkId, block: BlockNumber) -> bool {
        let mut pins = self.pins.iter();
        pins.any(|&(of, page, until)| (of, page) == (fork, block) && until > self.clock)
    }

    /// Whether a transaction is in progress, here or for other sessions.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.current.is_some() || !self.running.is_empty() || !self.pins.is_empty()
    }

    /// Another session takes a snapshot now and keeps it.
    pub fn hold(&mut self) -> HeldSnapshot {
        self.hold_at(self.current.unwrap_or(self.next))
    }

    /// Another session keeps a snapshot that does not see this transaction and later ones as
    /// ended.
    pub fn hold_at(&mut self, xmin: Xid) -> HeldSnapshot {
        let name = HeldSnapshot(self.held_count);
        self.held_count = self.held_count.wrapping_add(1);
        self.held.push((name, xmin));
        self.oldest_held = self.oldest_held.min(xmin);
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
        let oldest = self.held.iter().map(|&(_, xmin)| xmin).min();
        self.oldest_held = oldest.unwrap_or(Xid(u32::MAX));
    }

    /// Older transactions than this are seen as ended by every snapshot.
    #[must_use]
    pub fn oldest_xmin(&self) -> Xid {
        self.current.unwrap_or(self.next).min(self.oldest_held)
    }
}

impl Transactions for Horizon {
    fn outcome(&self, xid: Xid) -> Outcome {
        if Some(xid) == self.current || xid >= self.next {
            Outcome::InProgress
        } else if !self.aborted.is_empty() && self.aborted.binary_search(&xid).is_ok() {
            Outcome::Aborted
        } else {
            Outcome::Committed
        }
    }

    fn is_current(&self, xid: Xid) -> bool {
        Some(xid) == self.current
    }

    fn is_removable(&self, xid: Xid) -> bool {
        xid < self.oldest_xmin()
    }
}

/// The view of a VACUUM in progress: it knows how transactions have ended by now, and removes
/// only what nobody could see any more when it began.
///
/// Source: `OldestXmin` in `vacuum_get_cutoffs`, src/backend/commands/vacuum.c (REL_18_STABLE).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SinceThen<'a> {
    pub horizon: &'a Horizon,
    pub oldest_xmin: Xid,
}

impl Transactions for SinceThen<'_> {
    fn outcome(&self, xid: Xid) -> Outcome {
        self.horizon.outcome(xid)
    }

    fn is_current(&self, xid: Xid) -> bool {
        self.horizon.is_current(xid)
    }

    fn is_removable(&self, xid: Xid) -> bool {
        xid < self.oldest_xmin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot held elsewhere stops the horizon where it was taken, until it is released.
    #[test]
    fn held_snapshots_stop_the_horizon() {
        let mut horizon = Horizon::default();
        let first = horizon.assign();
        assert_eq!(horizon.assign(), first);
        assert!(!horizon.is_removable(first));
        horizon.commit();
        assert!(horizon.is_removable(first));
        let held = horizon.hold();
        let second = horizon.assign();
        horizon.commit();
        assert!(horizon.is_removable(first) && !horizon.is_removable(second));
        horizon.release(held);
        assert!(horizon.is_removable(second));
    }

    /// An aborted transaction stays aborted; a transaction without changes has no number.
    #[test]
    fn aborts_are_remembered() {
        let mut horizon = Horizon::default();
        assert_eq!(horizon.abort(), None);
        let failed = horizon.assign();
        assert_eq!(horizon.outcome(failed), Outcome::InProgress);
        horizon.abort();
        let next = horizon.assign();
        horizon.commit();
        assert_eq!(horizon.outcome(failed), Outcome::Aborted);
        assert_eq!(horizon.outcome(next), Outcome::Committed);
    }
}
