//! COMMIT and ROLLBACK.

use crate::executor::{Database, SessionId};

impl Database {
    /// COMMIT, or the end of a statement outside a transaction.
    ///
    /// Source: `RecordTransactionCommit`, src/backend/access/transam/xact.c (REL_18_STABLE): no
    /// record without a transaction number.
    ///
    /// The sessions that waited for this one's end and may go on, in the order of their waits.
    pub fn commit(&mut self) -> Vec<SessionId> {
        self.settle_images();
        let mut parts = self.procs.end_parts(true);
        let top = self.procs.commit();
        if top.is_some() {
            self.wal.record_commit_of(parts.len());
        }
        for table in &mut self.tables {
            table.end_transaction(true);
        }
        if !self.sessions.cursors.is_empty() {
            self.close_cursor();
        }
        if parts.is_empty() {
            return self.woken_by(top.as_slice());
        }
        parts.extend(top);
        self.woken_by(&parts)
    }

    /// ROLLBACK.
    ///
    /// As [`Database::commit`]; a statement that waits is given up.
    ///
    /// Source: `RecordTransactionAbort`, src/backend/access/transam/xact.c (REL_18_STABLE).
    pub fn rollback(&mut self) -> Vec<SessionId> {
        self.give_up();
        let mut ended = self.procs.end_parts(false);
        if let Some(xid) = self.procs.abort() {
            self.wal.record_abort_of(ended.len());
            if !self.sessions.parked.is_empty() {
                ended.push(xid);
            }
        }
        for table in &mut self.tables {
            table.end_transaction(false);
        }
        if !self.sessions.cursors.is_empty() {
            self.close_cursor();
        }
        self.woken_by(&ended)
    }
}
