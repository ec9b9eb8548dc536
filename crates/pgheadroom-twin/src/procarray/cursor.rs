//! What a cursor keeps between two FETCHes: its snapshot, and the page of its row.

use crate::procarray::ProcArray;

impl ProcArray {
    /// The running statement opens a cursor, whose snapshot stays until it is closed.
    pub(crate) fn keep_snapshot(&mut self) {
        self.mine.cursor = Some((self.mine.snapshot.clone(), self.mine.xmin));
    }

    /// FETCH sees by the cursor's snapshot; called again at its end.
    pub(crate) fn swap_snapshot(&mut self) {
        self.mine.cursor_slot = None;
        if let Some((snapshot, _)) = &mut self.mine.cursor {
            std::mem::swap(snapshot, &mut self.mine.snapshot);
        }
    }

    /// FETCH is over: its row's page stays pinned; without a row, that of an ended scan where scans
    /// keep it.
    pub(crate) fn pin_of_cursor(&mut self, has_row: bool) {
        let (slot, fetched) = (self.mine.slot.take(), self.mine.fetched.take());
        self.mine.cursor_slot = if has_row { slot } else { fetched };
    }

    /// The cursor is closed.
    pub(crate) fn drop_snapshot(&mut self) {
        self.mine.cursor = None;
        self.mine.cursor_slot = None;
        self.end_statement(false);
    }
}
