//! What a session knows of a table, and has done to it in its transaction.

use std::ops::{Deref, DerefMut};

use pgheadroom_layout::BlockNumber;

use crate::btree::UniqueCheck;
use crate::counters::TableXactStatus;
use crate::executor::changed_rows::ChangedRows;
use crate::executor::concurrent_changes::ConcurrentChange;
use crate::executor::foreign_key::ForeignKey;
use crate::heap::InsertTargetBlock;
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::transaction::LocalTransactionId;

/// What one session knows of one table, and has done to it in its transaction.
#[derive(Debug, Default)]
pub(super) struct SessionTable {
    /// Its transaction that has locked the table last, as each statement on it does: nobody waits
    /// for these locks but who wants to cut off the table's end.
    pub locked_by: LocalTransactionId,
    /// Where it inserted last.
    ///
    /// Source: `smgr_targblock` in `SMgrRelationData`, src/include/storage/smgr.h (REL_18_STABLE).
    pub target: InsertTargetBlock,
    /// Rows that the last statement changed.
    pub changed: ChangedRows,
    /// What the transaction has done, for the statistics (`PgStat_TableXactStatus`).
    pub trans: TableXactStatus,
    /// Rows that it changed, and their values before.
    pub undo: Vec<u32>,
    pub undo_slots: Vec<i64>,
    /// Strings that it replaced, and what by.
    pub undo_texts: Vec<(i64, i64)>,
    /// How much of that there was when a part of the transaction began.
    pub marks: Vec<Mark>,
    /// Its changes, while somebody copies the table.
    pub changes: Vec<ConcurrentChange>,
    /// Of the running statement: which foreign key, and the value to be looked for.
    pub queued: Vec<(ForeignKey, i64)>,
    /// The page of the version that the running statement replaced last: the trigger's slot has
    /// it pinned until the statement ends.
    pub trigger_slot: Option<BlockNumber>,
    /// The page of the row that the running statement's query of a queue's head has found.
    pub head_pin: Option<BlockNumber>,
    /// The page that the running statement's scan comes to next, which its read stream has pinned.
    pub pin_ahead: Option<BlockNumber>,
    /// The version that a statement waits to lock.
    pub awaited: Option<Tid>,
    /// The version in whose line its statement is to wait.
    pub in_line_at: Option<Tid>,
    /// What a statement that waits still has to add to indexes.
    pub entries: Option<Entries>,
    /// The page on which its last upsert found its row.
    pub upserted: Option<BlockNumber>,
}

impl SessionTable {
    /// Whether the session has done nothing in its transaction that its end is about.
    #[inline]
    pub fn is_idle(&self) -> bool {
        let has_changed = !self.undo.is_empty() | !self.undo_texts.is_empty();
        let has_changed = has_changed | (self.changed.statement() != 0);
        let is_over = !has_changed & self.marks.is_empty() & self.changes.is_empty();
        is_over && self.trans == TableXactStatus::default()
    }

    /// Whether the running statement has such pages pinned as [`SessionTable::pinned`] says.
    #[inline]
    pub fn has_pinned(&self) -> bool {
        self.trigger_slot.is_some() | self.head_pin.is_some() | self.pin_ahead.is_some()
    }

    /// Pages that the running statement has pinned: by a trigger's slot, by a queue's head, and by
    /// its scan's read stream.
    pub fn pinned(&self) -> [Option<BlockNumber>; 3] {
        [self.trigger_slot, self.head_pin, self.pin_ahead]
    }
}

/// What all sessions know of a table; it is the active one's wherever it is used as one.
#[derive(Debug)]
pub(super) struct SessionTables {
    /// By session; those behind have done nothing to the table.
    parts: Vec<SessionTable>,
    active: usize,
}

impl Default for SessionTables {
    fn default() -> Self {
        Self {
            parts: vec![SessionTable::default()],
            active: 0,
        }
    }
}

impl SessionTables {
    /// Another session is active.
    #[inline]
    pub fn switch_to(&mut self, session: usize) {
        if session >= self.parts.len() {
            self.add(session);
        }
        self.active = session;
    }

    #[cold]
    fn add(&mut self, session: usize) {
        self.parts.resize_with(session + 1, SessionTable::default);
    }

    /// Those of a table that takes this one's place, to which the active session has done nothing.
    pub fn take_over(&mut self) -> Self {
        let mut all = std::mem::take(self);
        *all = SessionTable::default();
        all
    }

    /// Whether a session other than the active one is in a transaction that has locked the table.
    pub fn are_locked_beside(&self, procs: &ProcArray) -> bool {
        let mut parts = self.parts.iter().enumerate();
        parts.any(|(session, part)| procs.runs_beside(session, part.locked_by))
    }

    /// Whether a session's last upsert has found its row on this page.
    pub fn has_upserted_at(&self, session: usize, block: BlockNumber) -> bool {
        let part = self.parts.get(session);
        part.is_some_and(|part| part.upserted == Some(block))
    }

    /// Where sessions inserted last is forgotten.
    pub fn forget_targets(&mut self) {
        for part in &mut self.parts {
            part.target = InsertTargetBlock::default();
        }
    }
}

impl Deref for SessionTables {
    type Target = SessionTable;

    #[inline]
    fn deref(&self) -> &SessionTable {
        &self.parts[self.active]
    }
}

impl DerefMut for SessionTables {
    #[inline]
    fn deref_mut(&mut self) -> &mut SessionTable {
        &mut self.parts[self.active]
    }
}

/// How much a session had to undo when a part began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub rows: usize,
    pub texts: usize,
    /// Which transaction had locked the table then: what a part locks is free when it is undone.
    pub locked_by: LocalTransactionId,
}

/// Index entries that a new row version still has to get.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entries {
    pub tid: Tid,
    pub row: u32,
    /// The page of the version before, which the statement has pinned.
    pub pinned: Option<BlockNumber>,
    /// The first index that has none yet.
    pub next: usize,
    /// Whether that one has its values, and only searches for a place anew.
    pub has_values: bool,
    /// What happens where its key is in a unique index already.
    pub check: UniqueCheck,
}
