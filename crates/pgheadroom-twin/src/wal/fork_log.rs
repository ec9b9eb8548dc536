//! The way of an index's main fork to the log, which begins when the index is built.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::Page;

use crate::checkpoint::ForkId;
use crate::wal::{RecordType, Wal};

/// A fork whose pages are logged, or are not yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForkLog {
    pub fork: ForkId,
    /// Whether what is done is logged: not while a table is loaded.
    pub is_on: bool,
}

impl ForkLog {
    /// As [`Wal::change`].
    pub fn change(self, block: u32, hole_bytes: u32, wal: &mut Wal) -> Page {
        self.page(|| wal.change(self.fork, BlockNumber(block), hole_bytes))
    }

    /// As [`Wal::change_reset`].
    pub fn change_reset(self, block: u32, hole_bytes: u32, wal: &mut Wal) -> Page {
        self.page(|| wal.change_reset(self.fork, BlockNumber(block), hole_bytes))
    }

    /// As [`Wal::force_image`].
    pub fn force_image(self, block: u32, hole_bytes: u32, wal: &mut Wal) -> Page {
        self.page(|| wal.force_image(self.fork, BlockNumber(block), hole_bytes))
    }

    /// As [`Wal::init`].
    pub fn init(self, block: u32, wal: &mut Wal) -> Page {
        self.page(|| wal.init(self.fork, BlockNumber(block)))
    }

    /// As [`Wal::name`].
    pub fn name(self, block: u32, wal: &mut Wal) -> Page {
        self.page(|| wal.name(self.fork, BlockNumber(block)))
    }

    fn page(self, in_record: impl FnOnce() -> Page) -> Page {
        if self.is_on {
            in_record()
        } else {
            Page::Change
        }
    }

    /// As [`Wal::whole_page`].
    pub fn whole_page(self, block: u32, hole_bytes: u32, wal: &mut Wal) {
        if self.is_on {
            wal.whole_page(self.fork, BlockNumber(block), hole_bytes);
        }
    }

    /// As [`Wal::record`].
    pub fn record(self, record: RecordType, bytes: u32, wal: &mut Wal) {
        if self.is_on {
            wal.record(record, bytes);
        }
    }
}
