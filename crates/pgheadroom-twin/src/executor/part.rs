//! Savepoints: parts of a transaction, which are undone by themselves.

use crate::executor::session_table::Mark;
use crate::executor::table::Table;
use crate::executor::{Database, SessionId};

impl Database {
    /// SAVEPOINT.
    pub fn begin_part(&mut self) {
        self.procs.begin_part();
        for table in &mut self.tables {
            table.mark_part();
        }
    }

    /// RELEASE SAVEPOINT, and of those in it: `parts` are left.
    pub fn release_to(&mut self, parts: usize) {
        while self.procs.parts() > parts {
            self.procs.release_part();
            for table in &mut self.tables {
                table.forget_mark();
            }
        }
    }

    /// ROLLBACK TO SAVEPOINT: of `parts` before it nothing is undone, and it begins anew; the
    /// sessions that waited for what is undone, in the order of their waits.
    ///
    /// Source: `RecordTransactionAbort` of a subtransaction, src/backend/access/transam/xact.c
    /// (REL_18_STABLE).
    pub fn rollback_to(&mut self, parts: usize) -> Vec<SessionId> {
        self.give_up();
        let mut ended = Vec::new();
        while self.procs.parts() > parts {
            let xids = self.procs.abort_part();
            if !xids.is_empty() {
                self.wal.record_abort_of(xids.len() - 1);
            }
            ended.extend(xids);
            for table in &mut self.tables {
                table.undo_part();
            }
        }
        self.begin_part();
        self.woken_by(&ended)
    }
}

impl Table {
    pub(super) fn mark_part(&mut self) {
        let mark = Mark {
            rows: self.session.undo.len(),
            texts: self.session.undo_texts.len(),
            locked_by: self.session.locked_by,
        };
        self.session.marks.push(mark);
        if let Some(toast) = &mut self.toast {
            toast.table.mark_part();
        }
    }

    fn forget_mark(&mut self) {
        self.session.marks.pop();
        if let Some(toast) = &mut self.toast {
            toast.table.forget_mark();
        }
    }

    /// The values that the innermost part replaced are back, and the lock is free if it took that.
    ///
    /// Source: `ResourceOwnerRelease` of locks in `AbortSubTransaction`,
    /// src/backend/access/transam/xact.c (REL_18_STABLE).
    pub(super) fn undo_part(&mut self) {
        let mark = self.session.marks.pop().expect("a part");
        self.session.locked_by = mark.locked_by;
        for (_, new) in self.session.undo_texts.drain(mark.texts..) {
            self.values.texts.remove(new);
        }
        self.undo_rows(mark.rows);
        if let Some(toast) = &mut self.toast {
            toast.table.undo_part();
        }
    }
}
