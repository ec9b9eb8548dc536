//! Updates in place, and the undo log that keeps what they overwrite.
//!
//! ```text
//! heap page:  [row, newest values]        undo log: |header page| .. |rec rec rec r|ec rec .. |
//!                    |  in place                                     8,168 bytes a page, records
//!                    +--> record: old and new values of the changed columns       may span pages
//! ```
//!
//! A model of Redrock Postgres, of which the source document (PostgreSQL update performance, 6 May
//! 2026) has six figures: 10,000 rows on as many pages, updated by one statement. Five constants,
//! each with a meaning, were fitted to the three with a filler of 64 characters; the three with 128
//! are predicted (`tests/undo.rs`). The fit: 78, 77 and 86 undo pages hold 10,000 records of one,
//! one and two columns of 4 bytes, so 63 and 70 bytes each; WAL less 10,000 times 145, 145 and 155
//! bytes leaves 92, 101 and 98 bytes for each page taken.
//!
//! Beyond that statement the rules are those that its figures and the design of zheap suggest: an
//! update of an indexed column, of a row that grows beyond its page's room, or of one with values
//! out of line, makes a new version as in a heap, with an entry in every index; inserts and deletes
//! are the heap's with an undo record beside. Nothing is HOT. Left out: reuse of undo pages,
//! transaction slots on pages, what readers of old snapshots pay, and what rolling back costs.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::page::{BLCKSZ, MAX_HEAP_TUPLE_SIZE, SIZE_OF_PAGE_HEADER};
use pgheadroom_layout::wal_record::{Page, fpi_for_hint};
use pgheadroom_twin::checkpoint::ForkId;
use pgheadroom_twin::executor::Table;
use pgheadroom_twin::executor::{InPlace, Model};
use pgheadroom_twin::wal::{ModelRecord, RecordType, Wal};

/// Bytes of an undo record beside the values it keeps: transaction, place, way to the one before.
pub const UNDO_RECORD_BYTES: u32 = 56;
/// Bytes that a column adds to an undo record beside its old value: its number and length.
pub const UNDO_COLUMN_BYTES: u32 = 3;
/// Bytes of an update's WAL record beside values: its header, the heap page's and the undo page's
/// references, the undo record's fixed part, the place of the row.
pub const WAL_UPDATE_BYTES: u32 = 135;
/// Bytes that a value adds to that record beside itself, the old one and the new one alike.
pub const WAL_VALUE_BYTES: u32 = 1;
/// Bytes of the WAL record that takes another undo page.
pub const WAL_UNDO_PAGE_BYTES: u32 = 97;

/// Bytes of an undo page that records fill.
const PAGE_BYTES: u64 = (BLCKSZ - SIZE_OF_PAGE_HEADER) as u64;
/// A reference to a page of another relation: header, relation, block number.
///
/// Source: `XLogRecordBlockHeader`, src/include/access/xlogrecord.h (REL_18_STABLE).
const BLOCK_REFERENCE_BYTES: u32 = 20;
/// The page that says where the log begins and ends; undo pages follow it.
const HEADER_PAGE: BlockNumber = BlockNumber(0);

/// The engine.
#[derive(Debug, Clone, Copy)]
pub struct Undo;

impl Model for Undo {
    fn sentence(&self) -> Option<&'static str> {
        Some(
            "the engine undo is a model: five constants fitted to three of six published \
             figures of one statement; undo pages are not used again within a run",
        )
    }

    fn of_table(&self, _: &Table, wal: &mut Wal) -> Option<Box<dyn Model>> {
        Some(Box::new(UndoLog::new(wal)))
    }
}

impl Model for UndoLog {
    fn record_name(&self, record: ModelRecord) -> &'static str {
        match record {
            ModelRecord::Change => "Undo/UPDATE",
            ModelRecord::Page => "Undo/NEW_PAGE",
        }
    }

    /// Of a row that is inserted nothing is kept, of another the version that was.
    fn beside(&mut self, replaced_bytes: Option<u16>, wal: &mut Wal) -> u32 {
        let values = replaced_bytes.into_iter().map(u32::from);
        let carried = self.append(undo_record_bytes(values), wal);
        carried.bytes + carried.image_bytes
    }

    fn has_hot_updates(&self) -> bool {
        false
    }

    /// Done wherever the page has room: the row stays, and its old values go to the log.
    fn in_place(&mut self, change: InPlace<'_>) -> bool {
        let InPlace {
            table,
            tid,
            tuple_bytes,
            values,
            wal,
        } = change;
        if u32::from(tuple_bytes) > MAX_HEAP_TUPLE_SIZE || !table.resize(tid, tuple_bytes) {
            return false;
        }
        let old = values.iter().map(|&(old, _)| old);
        let carried = self.append(undo_record_bytes(old), wal);
        let page = table.change_page(tid.block, wal);
        let values = values.iter().copied();
        let bytes = wal_update_bytes(values) + image_bytes(page) + carried.image_bytes;
        wal.record(RecordType::OfModel(ModelRecord::Change), bytes);
        true
    }

    /// With the header's.
    fn pages(&self) -> u32 {
        self.open.0 + 1
    }
}

/// The undo pages of a table: a log that only grows. One page is open when it begins.
#[derive(Debug)]
struct UndoLog {
    fork: ForkId,
    bytes: u64,
    /// The last page that was taken, and whether it is that of the beginning.
    open: BlockNumber,
}

/// What a record of the heap's WAL carries for undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Carried {
    /// Bytes of images of undo pages.
    image_bytes: u32,
    /// Bytes of the reference and the undo record.
    bytes: u32,
}

impl UndoLog {
    /// An empty log; its pages are one more fork of the table that is open in the WAL.
    fn new(wal: &mut Wal) -> Self {
        Self {
            fork: wal.add_fork(),
            bytes: 0,
            open: BlockNumber(1),
        }
    }

    /// Appends an undo record of this length; what the record that is about to be written carries
    /// of it. Taking a page writes a record of its own first.
    fn append(&mut self, record_bytes: u32, wal: &mut Wal) -> Carried {
        let first = self.page_at(self.bytes);
        self.bytes += u64::from(record_bytes);
        let last = self.page_at(self.bytes - 1);
        while self.open.0 < last.0 {
            self.open.0 += 1;
            wal.init(self.fork, self.open);
            let header = wal.change(self.fork, HEADER_PAGE, 0);
            let bytes = WAL_UNDO_PAGE_BYTES + image_bytes(header);
            wal.record(RecordType::OfModel(ModelRecord::Page), bytes);
        }
        let mut images = 0;
        for block in first.0..=last.0 {
            let hole = if block == last.0 { self.hole() } else { 0 };
            images += image_bytes(wal.change(self.fork, BlockNumber(block), hole));
        }
        Carried {
            image_bytes: images,
            bytes: BLOCK_REFERENCE_BYTES + record_bytes,
        }
    }

    fn page_at(&self, byte: u64) -> BlockNumber {
        let page = 1 + byte / PAGE_BYTES;
        BlockNumber(u32::try_from(page).expect("fewer than 2^32 undo pages"))
    }

    /// Bytes of the open page that no record fills yet.
    fn hole(&self) -> u32 {
        let filled = self.bytes % PAGE_BYTES;
        u32::try_from((PAGE_BYTES - filled) % PAGE_BYTES).expect("less than a page")
    }
}

/// Bytes that a page's image adds to a record; 0 without one.
const fn image_bytes(page: Page) -> u32 {
    fpi_for_hint(page) - fpi_for_hint(Page::Change)
}

/// Length of the undo record of values of these lengths.
fn undo_record_bytes(values: impl Iterator<Item = u32>) -> u32 {
    UNDO_RECORD_BYTES + values.map(|bytes| bytes + UNDO_COLUMN_BYTES).sum::<u32>()
}

/// Length of the WAL record of an update in place, without images; of each changed column the
/// lengths of its old and its new value.
fn wal_update_bytes(values: impl Iterator<Item = (u32, u32)>) -> u32 {
    let values = values.map(|(old, new)| old + new + 2 * WAL_VALUE_BYTES);
    WAL_UPDATE_BYTES + values.sum::<u32>()
}
