//! What was changed in a table since somebody began to copy it.

use crate::value::Value;

/// A change to a row, with its values afterwards.
#[derive(Debug, Clone)]
pub(super) enum ConcurrentChange {
    Insert(u32, Vec<Value>),
    Update(u32, Vec<Value>),
    Delete(u32),
}

/// Changes since a copy began; those of the running transaction come after `committed`.
#[derive(Debug, Default)]
pub(super) struct ConcurrentChanges {
    /// Those of transactions that have committed, in the order of their commits.
    pub changes: Vec<ConcurrentChange>,
}

impl ConcurrentChanges {
    /// A transaction that has noted these changes ends.
    pub fn end_transaction(&mut self, noted: &mut Vec<ConcurrentChange>, is_commit: bool) {
        if is_commit {
            self.changes.append(noted);
        } else {
            noted.clear();
        }
    }
}
