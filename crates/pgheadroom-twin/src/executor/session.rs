//! Sessions: what each remembers between its transactions.
//!
//! One works at a time; the pages where the others inserted last wait here.

use crate::executor::{Database, Relation};
use crate::heap::InsertTargetBlock;

/// Which session works, and what the others remember.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    current: usize,
    /// By session and table, of the table and of its TOAST table; those of the current one are out
    /// of date.
    targets: Vec<Vec<[InsertTargetBlock; 2]>>,
}

impl Database {
    /// The session of this number works from now on; numbers begin at 0.
    ///
    /// # Panics
    /// Inside a transaction.
    ///
    /// Source: `smgr_targblock` in `SMgrRelationData`, src/include/storage/smgr.h (REL_18_STABLE):
    /// every session has its own.
    pub fn use_session(&mut self, session: usize) {
        assert!(
            self.horizon.current().is_none(),
            "sessions change between transactions"
        );
        if session == self.sessions.current {
            return;
        }
        let count = self.tables.len();
        let targets = &mut self.sessions.targets;
        let needed = session.max(self.sessions.current) + 1;
        if targets.len() < needed {
            targets.resize(needed, Vec::new());
        }
        for kept in [session, self.sessions.current] {
            targets[kept].resize(count, Default::default());
        }
        for (number, table) in self.tables.iter_mut().enumerate() {
            targets[self.sessions.current][number] = table.target_blocks();
            table.set_target_blocks(targets[session][number]);
        }
        self.sessions.current = session;
    }

    /// New sessions, or ones that were told of a change to the tables' catalogue entries: the
    /// pages where they inserted last are forgotten.
    pub fn forget_target_blocks(&mut self) {
        self.sessions.targets.clear();
        for table in &mut self.tables {
            table.set_target_blocks(Default::default());
        }
    }
    /// Every session was told of a change to this relation's catalogue entry.
    ///
    /// # Panics
    /// When there is no such relation.
    pub fn forget_target_blocks_of(&mut self, relation: Relation) {
        let which = usize::from(relation.is_toast);
        let number = relation.table.0;
        for session in &mut self.sessions.targets {
            if let Some(targets) = session.get_mut(number) {
                targets[which] = InsertTargetBlock::default();
            }
        }
        let table = &mut self.tables[number];
        let mut targets = table.target_blocks();
        targets[which] = InsertTargetBlock::default();
        table.set_target_blocks(targets);
    }
}
