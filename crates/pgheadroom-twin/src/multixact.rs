//! Multixacts: one number in `xmax` for several transactions that lock a row, one of which may have
//! replaced it.
//!
//! ```text
//! 7 locks FOR KEY SHARE            xmax = 7, lock only
//! 8 updates a column beside it     xmax = multixact { 7 key share, 8 no key update }
//! 9 locks the new version as well  xmax = multixact { 7 key share, 9 key share }
//! ```
//!
//! The numbers are a part of [`Xid`]'s that no transaction has. Left out: wraparound and what
//! VACUUM makes of old ones, but that it takes away those that nobody needs.
//!
//! Source: src/backend/access/transam/multixact.c; `compute_new_xmax_infomask`,
//! src/backend/access/heap/heapam.c (REL_15_STABLE, REL_18_STABLE).

use crate::heap::RowLock;
use crate::transaction::Xid;

/// Members on a page of the file that has them.
///
/// Source: `MULTIXACT_MEMBERS_PER_PAGE`, multixact.c: 409 groups of 4.
const MEMBERS_PER_PAGE: u64 = 409 * 4;
/// Multixacts on a page of the file that says where their members begin.
///
/// Source: `MULTIXACT_OFFSETS_PER_PAGE`, multixact.c.
const OFFSETS_PER_PAGE: u32 = 8192 / 4;

/// What a member does with the row.
///
/// Source: `MultiXactStatus`, src/include/access/multixact.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It locks.
    Locks(RowLock),
    /// It has replaced or removed it, in this mode.
    Changes(RowLock),
}

impl Status {
    /// How strong it is.
    #[must_use]
    pub const fn mode(self) -> RowLock {
        match self {
            Self::Locks(mode) | Self::Changes(mode) => mode,
        }
    }

    /// Whether it is a change.
    #[must_use]
    pub const fn is_change(self) -> bool {
        matches!(self, Self::Changes(_))
    }
}

/// A transaction of a multixact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Which.
    pub xid: Xid,
    /// What it does.
    pub status: Status,
}

/// What the log says of a new multixact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// Its members.
    pub members: u32,
    /// Whether a page of members is begun.
    pub begins_members_page: bool,
    /// Whether a page of offsets is begun.
    pub begins_offsets_page: bool,
}

/// All multixacts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Multixacts {
    /// By number.
    members: Vec<Vec<Member>>,
    members_written: u64,
    /// Those that a backend has made in its transaction, which it does not make again.
    ///
    /// Source: `mXactCacheGetBySet` and `AtEOXact_MultiXact`, multixact.c.
    known: Vec<(usize, Xid)>,
}

impl Multixacts {
    /// Members in the order of their numbers.
    ///
    /// # Panics
    /// When it is not the number of a multixact.
    pub fn members(&self, multixact: Xid) -> &[Member] {
        &self.members[(multixact.0 - Xid::FIRST_MULTIXACT.0) as usize]
    }

    /// The transaction that has replaced or removed the row.
    pub fn updater(&self, multixact: Xid) -> Option<Xid> {
        let mut members = self.members(multixact).iter();
        let member = members.find(|member| member.status.is_change());
        member.map(|member| member.xid)
    }

    /// A multixact of these members, and what the log says if it is a new one.
    ///
    /// Source: `MultiXactIdCreateFromMembers` and `GetNewMultiXactId`, multixact.c.
    pub fn create(&mut self, backend: usize, mut members: Vec<Member>) -> (Xid, Option<Created>) {
        members.sort_unstable();
        let known = self.known.iter();
        let mut known =
            known.filter(|(of, number)| *of == backend && self.members(*number) == members);
        if let Some(&(_, number)) = known.next() {
            return (number, None);
        }
        let position = u32::try_from(self.members.len()).expect("few multixacts");
        let number = Xid(Xid::FIRST_MULTIXACT.0 + position);
        let first = if self.members_written == 0 {
            self.members_written = 1; // the first place stays empty
            0
        } else {
            self.members_written
        };
        self.members_written += members.len() as u64;
        let created = Created {
            members: u32::try_from(members.len()).expect("few members"),
            begins_members_page: (first..self.members_written)
                .any(|place| place % MEMBERS_PER_PAGE == 0),
            begins_offsets_page: (position + 1) % OFFSETS_PER_PAGE == 0,
        };
        self.members.push(members);
        self.known.push((backend, number));
        (number, Some(created))
    }

    /// A backend's transaction has ended.
    pub fn end_transaction(&mut self, backend: usize) {
        if !self.known.is_empty() {
            self.known.retain(|&(of, _)| of != backend);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharer(xid: u32) -> Member {
        Member {
            xid: Xid(xid),
            status: Status::Locks(RowLock::Share),
        }
    }

    /// A backend makes equal ones once a transaction; the first of all begins a page of members.
    #[test]
    fn equal_ones_are_made_once() {
        let mut all = Multixacts::default();
        let (first, created) = all.create(0, vec![sharer(9), sharer(7)]);
        assert!(created.is_some_and(|created| created.begins_members_page));
        assert_eq!(all.members(first), [sharer(7), sharer(9)]);
        assert_eq!(all.create(0, vec![sharer(7), sharer(9)]), (first, None));
        let (other, created) = all.create(1, vec![sharer(7), sharer(9)]);
        assert!(other != first && created.is_some_and(|created| !created.begins_members_page));
        all.end_transaction(0);
        assert_ne!(all.create(0, vec![sharer(7), sharer(9)]).0, first);
    }

    /// Its updater is the member that has changed the row.
    #[test]
    fn updaters_are_members() {
        let mut all = Multixacts::default();
        let updater = Member {
            xid: Xid(8),
            status: Status::Changes(RowLock::NoKeyUpdate),
        };
        let (changed, _) = all.create(0, vec![sharer(7), updater]);
        let (locked, _) = all.create(0, vec![sharer(7), sharer(9)]);
        assert_eq!(
            (all.updater(changed), all.updater(locked)),
            (Some(Xid(8)), None)
        );
    }
}
