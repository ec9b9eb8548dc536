//! Which pages owe images, and what each kind of record adds up to.

use std::collections::{BTreeMap, HashSet};

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::{Image, Page, fpi_for_hint};
use pgheadroom_twin::btree::{Record, Sink};

/// Counts records as a server writes them: a page's first change since the checkpoint carries its
/// image, and with checksums the first hint does.
#[derive(Default)]
pub struct Account {
    full_page_writes: bool,
    checksums: bool,
    touched: HashSet<BlockNumber>,
    fsm_touched: HashSet<BlockNumber>,
    pub records: BTreeMap<String, (i64, i64)>,
}

impl Account {
    pub fn new(full_page_writes: bool, checksums: bool) -> Self {
        Self {
            full_page_writes,
            checksums,
            ..Self::default()
        }
    }

    pub fn checkpoint(&mut self) {
        self.touched.clear();
        self.fsm_touched.clear();
        self.records.clear();
    }

    fn count(&mut self, name: &str, bytes: u32) {
        let (records, sum) = self.records.entry(name.into()).or_default();
        *records += 1;
        *sum += i64::from(bytes);
    }

    fn hint_record(&mut self, name: &str, hole_bytes: u32) {
        let page = if self.full_page_writes {
            Page::Image(Image::plain(hole_bytes))
        } else {
            Page::Change
        };
        self.count(name, fpi_for_hint(page));
    }
}

impl Sink for Account {
    fn record(&mut self, record: &Record) {
        let bytes = record.bytes(|block| {
            let owes = self.touched.insert(block.block) && self.full_page_writes;
            if owes && !block.will_init {
                Page::Image(block.image())
            } else {
                Page::Change
            }
        });
        self.count(record.kind.name(), bytes);
    }

    fn hint(&mut self, block: BlockNumber, hole_bytes: u32) {
        if self.checksums && self.touched.insert(block) {
            self.hint_record("FPI_FOR_HINT", hole_bytes);
        }
    }

    fn fsm_hint(&mut self, fsm_block: BlockNumber) {
        if self.checksums && self.fsm_touched.insert(fsm_block) {
            self.hint_record("FPI_FOR_HINT fsm", 0);
        }
    }
}
