//! Sessions: each has a backend, its transaction, and what it remembers of tables.
//!
//! ```text
//! let other = db.open_session();      session 0 is there from the beginning
//! db.switch_to(other);                whatever follows is done by that session
//! db.by_index(...)?                   in its own transaction, snapshot and backend
//! db.close_statement(false);          between two statements it holds no snapshot
//! let woken = db.commit();            the sessions that waited for it, in the order of their waits
//! ```
//!
//! One session is active at a time; what each knows of a table the table has (`session_table`). A
//! statement that has to wait for another session returns [`StatementError::Waits`], and goes on
//! later (`wait`; `run::perform` and `run::resume` do so with the operations of profiles).
//!
//! [`StatementError::Waits`]: crate::executor::StatementError::Waits

use crate::checkpoint::ForkId;
use crate::executor::cursor::Cursor;
use crate::executor::parked::Waiting;
use crate::executor::table::Table;
use crate::executor::{Database, Relation, TableId};
use crate::procarray::Isolation;
use pgheadroom_layout::BlockNumber;

/// A session of a [`Database`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionId(pub usize);

/// What sessions do besides what each table knows of it.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Statements that wait, with their sessions, in the order in which they began to.
    pub parked: Vec<Waiting>,
    /// Cursors that are open.
    pub cursors: Vec<Cursor>,
    /// Whether there are pending lists of GINs, which sessions share.
    pub share_lists: bool,
    /// What sequential scans have read since somebody asked.
    pub scanned: Scanned,
    /// Whether they stop when that is a part, for others to do something meanwhile.
    pub scan_in_parts: bool,
    /// Whether queues' heads and upserts come to their rows some time after they have begun.
    pub asks_on_arrival: bool,
}

/// A part of a sequential scan, if it is read in parts: some half of the time of an UPDATE by key
/// (`run/work.rs`).
const PART_PAGES: u64 = 30;
const PART_ROWS: u64 = 250;

/// What sequential scans have read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scanned {
    pub pages: u64,
    /// Row versions that the snapshot saw.
    pub rows: u64,
}

impl Scanned {
    /// Whether it is as much as a scan reads before others do something.
    pub(super) const fn is_part(self) -> bool {
        self.pages >= PART_PAGES || self.rows >= PART_ROWS
    }
}

impl Database {
    /// One more session, which does nothing yet.
    pub fn open_session(&mut self) -> SessionId {
        SessionId(self.procs.add())
    }

    /// So many sessions are there, the first ones included; none has been active that is new.
    pub(crate) fn open_sessions(&mut self, count: usize) {
        while self.procs.backends() < count {
            self.open_session();
        }
    }

    /// Sequential scans stop with [`StatementError::Scans`] after each part of their table.
    ///
    /// [`StatementError::Scans`]: crate::executor::StatementError::Scans
    pub const fn scan_in_parts(&mut self) {
        self.sessions.scan_in_parts = true;
    }

    /// Queues' heads and upserts come to their rows some time after they have begun, until when
    /// they stop: with [`StatementError::OnItsWay`] and [`StatementError::Fetches`].
    ///
    /// [`StatementError::OnItsWay`]: crate::executor::StatementError::OnItsWay
    /// [`StatementError::Fetches`]: crate::executor::StatementError::Fetches
    pub const fn ask_on_arrival(&mut self) {
        self.sessions.asks_on_arrival = true;
    }

    /// What sequential scans have read since this was asked last.
    pub(crate) fn take_scanned(&mut self) -> Scanned {
        std::mem::take(&mut self.sessions.scanned)
    }

    /// The session that whatever follows is done by.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        SessionId(self.procs.active())
    }

    /// Whatever follows is done by this session.
    ///
    /// # Panics
    /// When there is no such session.
    pub fn switch_to(&mut self, session: SessionId) {
        let before = self.session();
        if session == before {
            return;
        }
        let mut pins = Vec::new();
        for table in &mut self.tables {
            if table.session.has_pinned() {
                pins.extend(table.pins());
            }
            table.switch_to(session);
        }
        self.procs.switch_to(session.0, pins);
    }

    /// The active session's statement is over: its row's page is not pinned any more, and a read
    /// committed transaction has no snapshot until the next one, unless a portal stays open that
    /// keeps it, as after a prepared SELECT (from 19 on the page too).
    pub fn close_statement(&mut self, keeps_portal: bool) {
        self.procs.end_statement(keeps_portal);
    }

    /// The same of any session, which need not be active for that.
    pub(crate) fn close_statement_of(&mut self, session: SessionId, keeps_portal: bool) {
        self.procs.end_statement_of(session.0, keeps_portal);
    }

    /// The active session calls a procedure, whose snapshot stays until its transaction ends; its
    /// statements have their own.
    ///
    /// Source: `PlannedStmtRequiresSnapshot` and `PortalRunUtility`, src/backend/tcop/pquery.c
    /// (REL_15_STABLE, REL_18_STABLE): CALL, as SELECT of a function does.
    pub(crate) fn begin_call(&mut self) {
        self.procs.begin_statement();
        self.procs.keep_snapshot();
    }

    /// A statement of the active session that touches no row that is here: it has a snapshot and
    /// the lock on its table, and gives its transaction a number if it writes.
    pub(crate) fn run_elsewhere(&mut self, table: TableId, writes: bool) {
        self.tables[table.0].session.locked_by = self.procs.lxid();
        self.procs.begin_statement();
        if writes {
            self.procs.assign();
        }
    }

    /// How long the active session's snapshots last, from its next transaction on.
    ///
    /// # Panics
    /// Inside a transaction.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        assert!(self.procs.current().is_none(), "between transactions");
        self.procs.set_isolation(isolation);
    }

    /// New sessions, or ones that were told of a change to the tables' catalogue entries: the
    /// pages where they inserted last are forgotten.
    pub fn forget_target_blocks(&mut self) {
        for number in 0..self.tables.len() {
            self.forget_targets(number, [true; 2]);
            self.tables[number].forget_index_targets();
        }
    }

    /// Every session was told of changes to the catalogue entries of this table and its indexes, as
    /// an ANALYZE makes them: those of other tables go on where they inserted last.
    ///
    /// Source: `vac_update_relstats`, src/backend/commands/vacuum.c, whose change of `pg_class`
    /// invalidates that relation alone (`CacheInvalidateHeapTupleCommon`, inval.c; REL_18_STABLE).
    ///
    /// # Panics
    /// When there is no such table.
    pub fn forget_targets_of_table(&mut self, table: TableId) {
        self.forget_targets(table.0, [true, false]);
        self.tables[table.0].forget_index_targets();
    }

    /// Every session was told of a change to this relation's catalogue entry.
    ///
    /// # Panics
    /// When there is no such relation.
    pub fn forget_target_blocks_of(&mut self, relation: Relation) {
        let which = [!relation.is_toast, relation.is_toast];
        self.forget_targets(relation.table.0, which);
    }

    fn forget_targets(&mut self, table: usize, [of_main, of_toast]: [bool; 2]) {
        let table = &mut self.tables[table];
        if of_main {
            table.session.forget_targets();
        }
        if let Some(toast) = table.toast.as_mut().filter(|_| of_toast) {
            toast.table.session.forget_targets();
        }
    }
}

impl Table {
    /// Another session is active.
    #[inline]
    pub(super) fn switch_to(&mut self, session: SessionId) {
        self.session.switch_to(session.0);
        if let Some(toast) = &mut self.toast {
            toast.table.session.switch_to(session.0);
        }
    }

    /// Pages that the active session's statement has pinned besides its scan's.
    fn pins(&self) -> impl Iterator<Item = (ForkId, BlockNumber)> + use<> {
        let main = self.forks.main;
        let pinned = self.session.pinned().into_iter().flatten();
        pinned.map(move |block| (main, block))
    }
}
