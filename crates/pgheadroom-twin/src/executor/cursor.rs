//! Cursors: a query that stands still between two FETCHes, on a page that it has pinned.
//!
//! Source: `PerformCursorOpen`, src/backend/commands/portalcmds.c; `PortalRunFetch`,
//! src/backend/tcop/pquery.c (REL_18_STABLE). Left out: scrolling back, and cursors that outlive
//! their transaction.

use crate::executor::parked::{IndexScan, SeqScan};
use crate::executor::{Action, Database, Row, SessionId, StatementError, TableId};

/// How a cursor's query finds its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorScan {
    /// By the index at this position.
    Index(usize),
    /// By the values of this column, in a sequential scan.
    Seq(usize),
}

/// A query, as far as it has come.
#[derive(Debug)]
pub(super) struct Cursor {
    pub session: SessionId,
    state: State,
    low: i64,
    high: i64,
}

#[derive(Debug)]
enum State {
    Index(IndexScan),
    Seq(SeqScan, usize),
}

impl Database {
    /// DECLARE CURSOR FOR SELECT, of the rows with keys from `low` to `high`.
    pub fn open_cursor(&mut self, table: TableId, by: CursorScan, low: i64, high: i64) {
        let state = match by {
            CursorScan::Index(index) => State::Index(self.begin_index_scan(table, index, &[low])),
            CursorScan::Seq(column) => State::Seq(self.begin_seq_scan(table), column),
        };
        self.procs.keep_snapshot();
        let session = self.session();
        self.sessions.cursors.push(Cursor {
            session,
            state,
            low,
            high,
        });
    }

    /// FETCH from the active session's cursor; how many rows there were.
    ///
    /// # Errors
    /// Those of the query.
    ///
    /// # Panics
    /// When no cursor is open.
    pub fn fetch(&mut self, rows: u64) -> Result<u64, StatementError> {
        let session = self.session();
        let mut cursors = self.sessions.cursors.iter();
        let position = cursors.position(|cursor| cursor.session == session);
        let position = position.expect("a cursor");
        let mut cursor = self.sessions.cursors.swap_remove(position);
        self.procs.end_statement(false);
        self.procs.swap_snapshot();
        let (low, high) = (cursor.low, cursor.high);
        let (before, done) = match &mut cursor.state {
            State::Index(scan) => {
                let before = scan.found_rows;
                scan.limit = before + rows;
                let keys: (&[i64], &[i64]) = (&[low], &[high]);
                (before, self.advance_index_scan(scan, keys, &Action::Read))
            }
            State::Seq(scan, column) => {
                let before = scan.found_rows;
                scan.limit = before + rows;
                let column = *column;
                let wanted = |row: Row<'_>| {
                    row.integer(column)
                        .is_some_and(|key| (low..=high).contains(&key))
                };
                (before, self.go_through(scan, &wanted, &Action::Read))
            }
        };
        self.procs.swap_snapshot();
        let found = done.map(|found| found - before);
        self.procs.pin_of_cursor(found == Ok(rows));
        self.sessions.cursors.push(cursor);
        found
    }

    /// CLOSE of the active session's cursor, or its end with the transaction.
    pub fn close_cursor(&mut self) {
        let session = self.session();
        self.sessions
            .cursors
            .retain(|cursor| cursor.session != session);
        for table in &mut self.tables {
            table.session.pin_ahead = None;
        }
        self.procs.drop_snapshot();
    }
}
