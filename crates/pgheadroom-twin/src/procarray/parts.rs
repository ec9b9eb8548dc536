//! Subtransactions: parts of a transaction, from a savepoint on, that are undone by themselves.
//!
//! ```text
//! BEGIN  7 | SAVEPOINT a  8 | SAVEPOINT b  9 | RELEASE b | ROLLBACK TO a: 8 and 9 are aborted
//! ```
//!
//! A part has a number once it changes something, and those around it have then had theirs.
//!
//! Source: `AssignTransactionId`, `CommitSubTransaction` and `AbortSubTransaction`,
//! src/backend/access/transam/xact.c (REL_18_STABLE). Left out: the ASSIGNMENT record of a
//! transaction of more than 64 parts.

use crate::procarray::{Backend, ProcArray};
use crate::transaction::Xid;

/// A part in progress.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    xid: Option<Xid>,
    /// Numbers of parts of its own that were released.
    released: Vec<Xid>,
}

impl Backend {
    /// The numbers of its transaction's parts, the released ones included.
    pub fn part_xids(&self) -> impl Iterator<Item = Xid> + '_ {
        let open = self.parts.iter();
        let open = open.flat_map(|part| part.xid.iter().chain(&part.released));
        self.released.iter().chain(open).copied()
    }

    /// Whether this is the number of its transaction, or of a part.
    #[inline]
    pub fn owns(&self, xid: Xid) -> bool {
        self.xid == Some(xid) || (self.has_parts() && self.part_xids().any(|own| own == xid))
    }

    #[inline]
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty() || !self.released.is_empty()
    }
}

impl ProcArray {
    /// SAVEPOINT: the active transaction's next part begins.
    pub(crate) fn begin_part(&mut self) {
        self.mine.parts.push(Part::default());
    }

    /// Parts of the active transaction in progress.
    pub(crate) fn parts(&self) -> usize {
        self.mine.parts.len()
    }

    /// RELEASE SAVEPOINT: what the innermost part did is its surroundings'.
    ///
    /// # Panics
    /// Outside a part.
    pub(crate) fn release_part(&mut self) {
        let part = self.mine.parts.pop().expect("a part");
        let around = match self.mine.parts.last_mut() {
            Some(around) => &mut around.released,
            None => &mut self.mine.released,
        };
        around.extend(part.released);
        around.extend(part.xid);
    }

    /// What the innermost part did has not happened; its number and those of the parts released in
    /// it.
    ///
    /// # Panics
    /// Outside a part.
    pub(crate) fn abort_part(&mut self) -> Vec<Xid> {
        let part = self.mine.parts.pop().expect("a part");
        let mut xids = part.released;
        xids.extend(part.xid);
        for &xid in &xids {
            self.end_running(xid);
        }
        self.note_aborted(&xids);
        xids
    }

    /// The transaction's parts end with it; their numbers.
    pub(crate) fn end_parts(&mut self, is_commit: bool) -> Vec<Xid> {
        if !self.mine.has_parts() {
            return Vec::new();
        }
        let xids: Vec<Xid> = self.mine.part_xids().collect();
        self.mine.parts.clear();
        self.mine.released.clear();
        for &xid in &xids {
            self.end_running(xid);
        }
        if !is_commit {
            self.note_aborted(&xids);
        }
        xids
    }

    /// The innermost part's number, and before it those of the parts around it.
    #[cold]
    pub(super) fn assign_part(&mut self) -> Xid {
        for part in 0..self.mine.parts.len() {
            if self.mine.parts[part].xid.is_none() {
                let xid = self.new_xid();
                self.mine.parts[part].xid = Some(xid);
            }
        }
        let innermost = self.mine.parts.last().and_then(|part| part.xid);
        innermost.expect("a part with a number")
    }
}
