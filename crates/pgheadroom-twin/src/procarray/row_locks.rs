//! Who holds a row, and what its `xmax` becomes when one more does.

use std::ops::Deref;

use crate::lock_options::LockTupleMode;
use crate::multixact::{Created, Member, Multixacts, Status};
use crate::page::{Tid, Tuple, XmaxHint};
use crate::procarray::ProcArray;
use crate::transaction::{Outcome, Transactions, Xid};

/// What a tuple's `xmax` becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewXmax {
    pub xmax: Xid,
    pub is_locked_only: bool,
    /// How strong the lock is.
    pub mode: LockTupleMode,
}

/// Who holds a tuple: by its plain `xmax`, or a multixact's members.
enum Holders<'a> {
    One([Member; 1]),
    Several(&'a [Member]),
}

impl Deref for Holders<'_> {
    type Target = [Member];

    fn deref(&self) -> &[Member] {
        match self {
            Holders::One(one) => one,
            Holders::Several(several) => several,
        }
    }
}

/// How strongly a tuple's plain `xmax` holds it. Differs: a change of key columns counts as one of
/// other columns for those who come later.
fn mode_of(tuple: &Tuple, tid: Tid) -> LockTupleMode {
    if !tuple.is_locked_only {
        return if tuple.next == tid {
            LockTupleMode::Update
        } else {
            LockTupleMode::NoKeyUpdate
        };
    }
    match tuple.xmax_hint {
        XmaxHint::UnsetKeyShare => LockTupleMode::KeyShare,
        XmaxHint::UnsetShare => LockTupleMode::Share,
        XmaxHint::UnsetNoKeyUpdate => LockTupleMode::NoKeyUpdate,
        XmaxHint::Unset | XmaxHint::Set => LockTupleMode::Update,
    }
}

/// Source: `get_mxact_status_for_lock`, src/backend/access/heap/heapam.c (REL_18_STABLE).
const fn status(mode: LockTupleMode, changes: bool) -> Status {
    if changes {
        Status::Changes(mode)
    } else {
        Status::Locks(mode)
    }
}

impl ProcArray {
    /// The multixacts.
    pub(crate) const fn multixacts(&self) -> &Multixacts {
        &self.multixacts
    }

    /// The number of the next multixact.
    #[must_use]
    pub fn next_multixact(&self) -> Xid {
        self.multixacts.next()
    }

    /// No older multixact has a member that is in progress.
    ///
    /// Source: `GetOldestMultiXactId`, src/backend/access/transam/multixact.c (REL_18_STABLE).
    /// Differs: there a transaction counts from its first lock or change of a row on, here from its
    /// number on, which an insertion gets too; and one that has read a multixact counts there.
    #[must_use]
    pub fn oldest_multixact(&self) -> Xid {
        let others = self.others.iter().map(Box::as_ref);
        let backends = others.chain(std::iter::once(self.mine.as_ref()));
        backends
            .filter(|backend| backend.xid.is_some())
            .map(|backend| backend.multixact_then)
            .fold(self.next_multixact(), Xid::min)
    }

    /// Who holds a tuple, those that have ended included.
    fn holders(&self, tuple: &Tuple, tid: Tid) -> Holders<'_> {
        if !tuple.xmax.is_valid() {
            return Holders::Several(&[]);
        }
        if tuple.xmax.is_multixact() {
            return Holders::Several(self.multixacts.members(tuple.xmax));
        }
        let status = status(mode_of(tuple, tid), !tuple.is_locked_only);
        let xid = tuple.xmax;
        Holders::One([Member { xid, status }])
    }

    /// Whether the active transaction holds a tuple as strongly already.
    ///
    /// Source: `heap_lock_tuple`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(crate) fn has_locked(&self, tuple: &Tuple, tid: Tid, mode: LockTupleMode) -> bool {
        if !tuple.xmax.is_valid() || self.mine.xid.is_none() {
            return false;
        }
        self.holders(tuple, tid).iter().any(|one| {
            self.is_current(one.xid) && !one.status.is_change() && one.status.mode() >= mode
        })
    }

    /// The first transaction of others that has to end before the active one may have a tuple in
    /// this mode.
    ///
    /// Source: `DoesMultiXactIdConflict`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(crate) fn blocker(&self, tuple: &Tuple, tid: Tid, mode: LockTupleMode) -> Option<Xid> {
        let holders = self.holders(tuple, tid);
        let blocks = |one: &&Member| {
            one.status.mode().conflicts_with(mode)
                && !self.is_current(one.xid)
                && self.outcome(one.xid) == Outcome::InProgress
        };
        holders.iter().find(blocks).map(|one| one.xid)
    }

    /// Whether somebody has changed a tuple, or holds it, who keeps others from this mode for good
    /// or for now.
    ///
    /// Source: `test_lockmode_for_conflict`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(crate) fn conflicts(&self, tuple: &Tuple, tid: Tid, mode: LockTupleMode) -> bool {
        self.holders(tuple, tid).iter().any(|one| {
            let stays = match self.outcome(one.xid) {
                Outcome::InProgress => !self.is_current(one.xid),
                Outcome::Committed => one.status.is_change(),
                Outcome::Aborted => false,
            };
            stays && one.status.mode().conflicts_with(mode)
        })
    }

    /// What a tuple's `xmax` is when the active transaction locks or changes it besides those who
    /// hold it; with what the log says of a new multixact.
    ///
    /// Source: `compute_new_xmax_infomask`, src/backend/access/heap/heapam.c, and
    /// `MultiXactIdExpand`, src/backend/access/transam/multixact.c (REL_18_STABLE).
    pub(crate) fn new_xmax(
        &mut self,
        tuple: &Tuple,
        tid: Tid,
        mode: LockTupleMode,
        changes: bool,
    ) -> (NewXmax, Option<Created>) {
        let xid = self.assign();
        let alone = |mode| NewXmax {
            xmax: xid,
            is_locked_only: !changes,
            mode,
        };
        let holders = self.holders(tuple, tid);
        if let Holders::One([own]) = holders
            && own.xid == xid
        {
            return (alone(mode.max(own.status.mode())), None);
        }
        let is_kept = |one: &Member| match self.outcome(one.xid) {
            Outcome::InProgress => true,
            Outcome::Committed => one.status.is_change(),
            Outcome::Aborted => false,
        };
        if !holders.iter().any(is_kept) {
            return (alone(mode), None);
        }
        let added = Member {
            xid,
            status: status(mode, changes),
        };
        if holders.contains(&added) {
            return (self.shared(tuple.xmax, mode), None);
        }
        let mut members: Vec<Member> = holders.iter().copied().filter(is_kept).collect();
        members.push(added);
        let (number, created) = self.multixacts.create(self.active, members);
        (self.shared(number, mode), created)
    }

    fn shared(&self, multixact: Xid, mode: LockTupleMode) -> NewXmax {
        NewXmax {
            xmax: multixact,
            is_locked_only: self.multixacts.updater(multixact).is_none(),
            mode,
        }
    }

    /// What the `xmax` of the version that replaces a tuple begins with: those who hold the row
    /// besides.
    ///
    /// Source: `xmax_new_tuple` in `heap_update`, src/backend/access/heap/heapam.c
    /// (REL_18_STABLE).
    pub(crate) fn xmax_carried_over(&self, tuple: &Tuple) -> Option<NewXmax> {
        if !tuple.xmax.is_valid() || !self.is_held(tuple.xmax) {
            return None;
        }
        if tuple.xmax.is_multixact() {
            return Some(self.shared(tuple.xmax, LockTupleMode::KeyShare));
        }
        Some(NewXmax {
            xmax: tuple.xmax,
            is_locked_only: true,
            mode: LockTupleMode::KeyShare,
        })
    }

    /// Whether a transaction that has to do with this `xmax` is in progress.
    ///
    /// Source: `MultiXactIdIsRunning`, src/backend/access/transam/multixact.c (REL_18_STABLE).
    fn is_held(&self, xmax: Xid) -> bool {
        if xmax.is_multixact() {
            let mut members = self.multixacts.members(xmax).iter();
            return members.any(|one| self.outcome(one.xid) == Outcome::InProgress);
        }
        self.outcome(xmax) == Outcome::InProgress
    }

    /// How a multixact stands: as its updater; without one it is in progress while a member is.
    #[cold]
    pub(super) fn outcome_of_multixact(&self, multixact: Xid) -> Outcome {
        match self.multixacts.updater(multixact) {
            Some(updater) => self.outcome(updater),
            None if self.is_held(multixact) => Outcome::InProgress,
            None => Outcome::Aborted,
        }
    }

    /// Whether nobody needs a multixact any more: its updater's change, or every member's lock.
    #[cold]
    pub(super) fn is_multixact_removable(&self, multixact: Xid) -> bool {
        if let Some(updater) = self.multixacts.updater(multixact) {
            return self.is_removable(updater);
        }
        let mut members = self.multixacts.members(multixact).iter();
        members.all(|one| self.is_removable(one.xid))
    }
}
