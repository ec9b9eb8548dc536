//! A session that cleans a GIN's pending list while others go on.
//!
//! ```text
//! session 0   |=INSERT, the list is full: moves entries =====================|  list pages deleted
//! session 1   |=INSERT=|..|=INSERT=|..|=INSERT=|    to new pages of the list
//! ```
//!
//! The statement that comes to the limit takes as long as entries are moved, and keeps its
//! snapshot. Who comes to the limit meanwhile does not wait for it.
//!
//! Source: `ginHeapTupleFastInsert` and `ginInsertCleanup`, src/backend/access/gin/ginfast.c
//! (REL_15_STABLE, REL_18_STABLE).

use crate::executor::{Database, SessionId};
use crate::gin::{GinIndex, Surroundings};
use crate::transaction::Transactions;

impl Database {
    /// From now on sessions share the pending lists (`GinSettings::beside`, which indexes that are
    /// built later take over).
    pub(crate) fn share_pending_lists(&mut self, misses_page: u32) {
        for table in &mut self.tables {
            for definition in &mut table.indexes.definitions {
                definition.gin.server.beside = Some(misses_page);
            }
        }
        let lists = self.gins().map(|gin| gin.share_list(misses_page)).count();
        self.sessions.share_lists = lists > 0;
    }

    /// How many entries the session's statement moves that has just been carried out, at first.
    pub(crate) fn begun_cleaning(&mut self, session: SessionId) -> u64 {
        if !self.sessions.share_lists {
            return 0;
        }
        self.gins().map(|gin| gin.begun_cleaning(session)).sum()
    }

    /// The session's statement would end, and has moved what it said: how many entries it moves
    /// next; 0 where it is over.
    pub(crate) fn go_on_cleaning(&mut self, session: SessionId) -> u64 {
        if !self.sessions.share_lists {
            return 0;
        }
        let procs = &self.procs;
        let around = &mut Surroundings {
            wal: &mut self.wal,
            is_removable: &|xid| procs.is_removable(xid),
            session,
        };
        let mut moved = 0;
        for table in &mut self.tables {
            for gin in &mut table.indexes.gins {
                gin.index.end_statement(session);
                moved += gin.index.go_on_cleaning(around);
            }
        }
        moved
    }

    /// The session's transaction ends.
    pub(crate) fn end_cleaning(&mut self, session: SessionId) {
        self.begun_cleaning(session);
        while self.go_on_cleaning(session) > 0 {}
    }

    fn gins(&mut self) -> impl Iterator<Item = &mut GinIndex> {
        let tables = self.tables.iter_mut();
        tables.flat_map(|table| table.indexes.gins.iter_mut().map(|gin| &mut gin.index))
    }
}
