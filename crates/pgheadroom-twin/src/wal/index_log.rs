//! What an index's changes are in the log.

use pgheadroom_layout::BlockNumber;

use crate::btree::{Record, Sink};
use crate::checkpoint::ForkId;
use crate::wal::{RecordType, Wal};

/// An index's way to the log.
#[derive(Debug)]
pub(crate) struct IndexLog<'a, 'w> {
    pub wal: &'a std::cell::RefCell<&'w mut Wal>,
    pub main: ForkId,
    pub fsm: ForkId,
}

impl Sink for IndexLog<'_, '_> {
    fn record(&mut self, record: &Record) {
        let mut wal = self.wal.borrow_mut();
        let bytes = record.bytes(|block| {
            if block.will_init {
                wal.init(self.main, block.block)
            } else {
                wal.change(self.main, block.block, block.hole_bytes)
            }
        });
        wal.record(RecordType::Btree(record.kind), bytes);
    }

    fn hint(&mut self, block: BlockNumber, hole_bytes: u32) {
        self.wal.borrow_mut().hint(self.main, block, hole_bytes);
    }

    fn fsm_hint(&mut self, fsm_block: BlockNumber) {
        self.wal.borrow_mut().hint(self.fsm, fsm_block, 0);
    }
}
