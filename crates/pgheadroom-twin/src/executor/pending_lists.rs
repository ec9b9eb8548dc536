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

use crate::executor::{Database, SessionId, TableId};
use crate::gin::Surroundings;
use crate::transaction::Transactions;

impl Database {
    /// From now on sessions add to lists and clean them beside others (`misses_page` as
    /// `GinIndex::clean_beside` has it).
    pub(crate) fn clean_lists_beside(&mut self, misses_page: f64) {
        for table in &mut self.tables {
            for definition in &mut table.indexes.definitions {
                definition.gin.server.cleans_beside = true;
            }
            for gin in &mut table.indexes.gins {
                gin.index.clean_beside(misses_page);
                self.sessions.clean_beside = true;
            }
        }
    }

    /// How many entries the session's statement moves that has just been carried out, at first.
    pub(crate) fn begun_cleaning(&mut self, session: SessionId) -> u64 {
        let mut moved = 0;
        if !self.sessions.clean_beside {
            return moved;
        }
        for (number, table) in self.tables.iter_mut().enumerate() {
            for (position, gin) in table.indexes.gins.iter_mut().enumerate() {
                if let Some(first) = gin.index.begun_cleaning() {
                    moved += first;
                    let one = (session, TableId(number), position);
                    self.sessions.cleaning.push(one);
                }
            }
        }
        moved
    }

    /// The session's statement would end, and has moved what it said: how many entries it moves
    /// next; 0 where it is over.
    pub(crate) fn go_on_cleaning(&mut self, session: SessionId) -> u64 {
        let mut moved = 0;
        if self.sessions.clean_beside {
            let tables = self.tables.iter_mut();
            let gins = tables.flat_map(|table| table.indexes.gins.iter_mut());
            gins.for_each(|gin| gin.index.end_statement(session));
        }
        if self.sessions.cleaning.is_empty() {
            return moved;
        }
        let procs = &self.procs;
        let around = &mut Surroundings {
            wal: &mut self.wal,
            is_removable: &|xid| procs.is_removable(xid),
            session,
        };
        let tables = &mut self.tables;
        self.sessions.cleaning.retain(|&(whose, table, position)| {
            if whose != session {
                return true;
            }
            // Who has rewritten the index, or vacuumed the table, has ended it.
            let gin = tables[table.0].indexes.gins.get_mut(position);
            let next = gin.and_then(|gin| gin.index.go_on_cleaning(around));
            moved += next.unwrap_or(0);
            next.is_some()
        });
        moved
    }

    /// The session's transaction ends.
    pub(crate) fn end_cleaning(&mut self, session: SessionId) {
        self.begun_cleaning(session);
        while self.go_on_cleaning(session) > 0 {}
    }
}
