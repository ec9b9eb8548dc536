//! Multixacts: one number in `xmax` for several transactions that lock a row, one of which may have
//! replaced it.
//!
//! ```text
//! 7 locks FOR KEY SHARE            xmax = 7, lock only
//! 8 updates a column beside it     xmax = multixact { 7 key share, 8 no key update }
//! 9 locks the new version as well  xmax = multixact { 7 key share, 9 key share }
//! ```
//!
//! The numbers are a part of [`Xid`]'s that no transaction has, and grow with time as theirs do.
//! Left out: that they wrap around.
//!
//! Source: src/backend/access/transam/multixact.c; `compute_new_xmax_infomask`,
//! src/backend/access/heap/heapam.c (REL_15_STABLE, REL_18_STABLE).

use pgheadroom_layout::page::BLCKSZ;
use pgheadroom_layout::version::Behaviour;

use crate::lock_options::LockTupleMode;
use crate::transaction::Xid;

/// Members on a page of the file that has them.
///
/// Source: `MULTIXACT_MEMBERS_PER_PAGE`, multixact.c: 409 groups of 4.
const MEMBERS_PER_PAGE: u64 = 409 * 4;
/// What a member does with the row.
///
/// Source: `MultiXactStatus`, src/include/access/multixact.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It locks.
    Locks(LockTupleMode),
    /// It has replaced or removed it, in this mode.
    Changes(LockTupleMode),
}

impl Status {
    /// How strong it is.
    #[must_use]
    pub const fn mode(self) -> LockTupleMode {
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
    number: u64,
    /// Place of the first member; the place before the very first stays empty.
    first: u64,
}

impl Created {
    /// Whether a page of members is begun.
    ///
    /// Source: `ExtendMultiXactMember`, src/backend/access/transam/multixact.c (REL_18_STABLE).
    #[must_use]
    pub fn begins_members_page(self, behaviour: &Behaviour) -> bool {
        let initdb_made_one = behaviour.multixact_offset_bytes == 8;
        let from = if self.first == 1 && !initdb_made_one {
            0
        } else {
            self.first
        };
        (from..self.first + u64::from(self.members)).any(|place| place % MEMBERS_PER_PAGE == 0)
    }

    /// Whether a page of offsets is begun.
    #[must_use]
    pub fn begins_offsets_page(self, behaviour: &Behaviour) -> bool {
        // `MULTIXACT_OFFSETS_PER_PAGE`, multixact.c.
        let offsets_per_page = u64::from(BLCKSZ / behaviour.multixact_offset_bytes);
        self.number.is_multiple_of(offsets_per_page)
    }
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

    /// The number that the next one gets.
    pub fn next(&self) -> Xid {
        let position = u32::try_from(self.members.len()).expect("few multixacts");
        Xid(Xid::FIRST_MULTIXACT.0 + position)
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
        let number = self.next();
        let first = self.members_written + 1; // the first place stays empty
        self.members_written += members.len() as u64;
        let created = Created {
            members: u32::try_from(members.len()).expect("few members"),
            number: self.members.len() as u64 + 1,
            first,
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
    use pgheadroom_layout::PgVersion;

    fn sharer(xid: u32) -> Member {
        Member {
            xid: Xid(xid),
            status: Status::Locks(LockTupleMode::Share),
        }
    }

    /// A backend makes equal ones once a transaction; the first of all begins a page of members.
    #[test]
    fn equal_ones_are_made_once() {
        let mut all = Multixacts::default();
        let (first, created) = all.create(0, vec![sharer(9), sharer(7)]);
        let begins_page = |created: Option<Created>, version: &str| {
            let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
            created.unwrap().begins_members_page(&behaviour)
        };
        assert!(begins_page(created, "18.4") && !begins_page(created, "19rc1"));
        assert_eq!(all.members(first), [sharer(7), sharer(9)]);
        assert_eq!(all.create(0, vec![sharer(7), sharer(9)]), (first, None));
        let (other, created) = all.create(1, vec![sharer(7), sharer(9)]);
        assert!(other != first && !begins_page(created, "18.4"));
        all.end_transaction(0);
        assert_ne!(all.create(0, vec![sharer(7), sharer(9)]).0, first);
    }

    /// Its updater is the member that has changed the row.
    #[test]
    fn updaters_are_members() {
        let mut all = Multixacts::default();
        let updater = Member {
            xid: Xid(8),
            status: Status::Changes(LockTupleMode::NoKeyUpdate),
        };
        let (changed, _) = all.create(0, vec![sharer(7), updater]);
        let (locked, _) = all.create(0, vec![sharer(7), sharer(9)]);
        assert_eq!(
            (all.updater(changed), all.updater(locked)),
            (Some(Xid(8)), None)
        );
    }
}
