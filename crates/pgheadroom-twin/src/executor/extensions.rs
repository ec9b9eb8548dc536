//! Sessions beside each other that extend tables: when they do, and how long they wait.

use pgheadroom_layout::BlockNumber;

use crate::checkpoint::ForkId;
use crate::executor::Database;
use crate::executor::table::Table;
use crate::fsm::Modified;
use crate::heap::{Extensions, Placing};
use crate::procarray::ProcArray;
use crate::wal::Wal;

/// What the heap tells and asks while a statement places a tuple.
pub(super) struct Place<'a> {
    fsm: ForkId,
    wal: &'a mut Wal,
    procs: &'a mut ProcArray,
}

impl<'a> Place<'a> {
    /// In the table whose free space map this is.
    pub fn new(fsm: ForkId, wal: &'a mut Wal, procs: &'a mut ProcArray) -> Self {
        Self { fsm, wal, procs }
    }
}

impl Modified for Place<'_> {
    fn modified(&mut self, fsm_block: BlockNumber) {
        self.wal.hint(self.fsm, fsm_block, 0);
    }
}

impl Placing for Place<'_> {
    fn extensions(&mut self) -> Option<&mut Extensions> {
        self.procs.extensions()
    }
}

impl Database {
    /// Sessions may wait for the locks by which tables grow.
    pub(crate) fn contend_for_extensions(&mut self, extensions: Extensions) {
        self.procs.contend_for_extensions(extensions);
    }

    /// It is now, by the clock of those sessions.
    #[inline]
    pub(crate) fn begin_turn(&mut self, now: f64) {
        if let Some(extensions) = self.procs.extensions() {
            extensions.begin_turn(now);
        }
    }

    /// How much longer the active session's statement takes by its waits for these locks, which has
    /// been carried out, or a part of it.
    #[inline]
    pub(crate) fn end_turn(&mut self) -> f64 {
        let extensions = self.procs.extensions();
        extensions.map_or(0.0, Extensions::end_turn)
    }

    /// All sessions have ended, and nobody waits any more.
    pub(crate) fn end_extensions(&mut self) {
        self.procs.end_extensions();
        for table in &mut self.tables {
            table.tell_map(&mut self.wal);
        }
    }
}

impl Table {
    /// What its sessions have added is in its free space map.
    fn tell_map(&mut self, wal: &mut Wal) {
        let fsm = self.forks.fsm;
        self.heap.tell_map(&mut |block| wal.hint(fsm, block, 0));
        if let Some(toast) = &mut self.toast {
            toast.table.tell_map(wal);
        }
    }
}
