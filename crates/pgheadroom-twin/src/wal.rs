//! What is written to the WAL: records, bytes and images by kind.
//!
//! An action says which pages it registers and gets back what the record carries of each; then it
//! hands in the record's size. Sizes themselves are `pgheadroom_layout::wal_record`.

use std::collections::BTreeMap;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::version::HeapCleaningRecords;
use pgheadroom_layout::wal_record::{Image, Page, fpi_for_hint};

use crate::btree::{Record, RecordKind, Sink};
use crate::checkpoint::{ForkId, PageStates};

/// Kind of a record, as `pg_waldump` and `pg_get_wal_stats(per_record)` tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the names below say it
pub enum RecordType {
    HeapInsert,
    HeapInsertInit,
    HeapMultiInsert,
    HeapMultiInsertInit,
    HeapUpdate,
    HeapUpdateInit,
    HeapHotUpdate,
    HeapDelete,
    HeapLock,
    HeapConfirm,
    HeapPrune,
    HeapPruneVacuum,
    HeapVacuum,
    HeapVisible,
    Btree(RecordKind),
    FpiForHint,
    Commit,
    Abort,
}

impl RecordType {
    /// Resource manager and record type, as this version's `pg_waldump` spells them.
    ///
    /// Source: `heap_identify` and `heap2_identify`, src/backend/access/rmgrdesc/heapdesc.c
    /// (REL_15_STABLE, REL_18_STABLE).
    #[must_use]
    pub fn name(self, cleaning: HeapCleaningRecords) -> String {
        let heap = match self {
            Self::HeapInsert => "Heap/INSERT",
            Self::HeapInsertInit => "Heap/INSERT+INIT",
            Self::HeapMultiInsert => "Heap2/MULTI_INSERT",
            Self::HeapMultiInsertInit => "Heap2/MULTI_INSERT+INIT",
            Self::HeapUpdate => "Heap/UPDATE",
            Self::HeapUpdateInit => "Heap/UPDATE+INIT",
            Self::HeapHotUpdate => "Heap/HOT_UPDATE",
            Self::HeapDelete => "Heap/DELETE",
            Self::HeapLock => "Heap/LOCK",
            Self::HeapConfirm => "Heap/HEAP_CONFIRM",
            Self::HeapPrune => match cleaning {
                HeapCleaningRecords::Clean => "Heap2/CLEAN",
                HeapCleaningRecords::Prune | HeapCleaningRecords::PrunePlans => "Heap2/PRUNE",
                HeapCleaningRecords::Combined => "Heap2/PRUNE_ON_ACCESS",
            },
            Self::HeapPruneVacuum => match cleaning {
                HeapCleaningRecords::Clean => "Heap2/CLEAN",
                HeapCleaningRecords::Prune | HeapCleaningRecords::PrunePlans => "Heap2/PRUNE",
                HeapCleaningRecords::Combined => "Heap2/PRUNE_VACUUM_SCAN",
            },
            Self::HeapVacuum => match cleaning {
                HeapCleaningRecords::Clean => "Heap2/CLEAN",
                HeapCleaningRecords::Prune | HeapCleaningRecords::PrunePlans => "Heap2/VACUUM",
                HeapCleaningRecords::Combined => "Heap2/PRUNE_VACUUM_CLEANUP",
            },
            Self::HeapVisible => "Heap2/VISIBLE",
            Self::Btree(kind) => return format!("Btree/{}", kind.name()),
            Self::FpiForHint => "XLOG/FPI_FOR_HINT",
            Self::Commit => "Transaction/COMMIT",
            Self::Abort => "Transaction/ABORT",
        };
        heap.to_owned()
    }
}

/// Number and size of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Totals {
    /// Records.
    pub wal_records: u64,
    /// Their length, images included (`xl_tot_len`).
    pub wal_bytes: u64,
    /// Full-page images among them.
    pub wal_fpi: u64,
    /// Bytes of the images.
    pub wal_fpi_bytes: u64,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.wal_records += other.wal_records;
        self.wal_bytes += other.wal_bytes;
        self.wal_fpi += other.wal_fpi;
        self.wal_fpi_bytes += other.wal_fpi_bytes;
    }
}

/// Settings that decide what is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WalSettings {
    /// `full_page_writes`.
    pub full_page_writes: bool,
    /// `data_checksums` or `wal_log_hints`: hints too are logged once after each checkpoint.
    ///
    /// Source: `XLogHintBitIsNeeded`, src/include/access/xlog.h (REL_18_STABLE).
    pub hints_are_logged: bool,
}

/// The log, as sums.
#[derive(Debug, Clone)]
pub struct Wal {
    settings: WalSettings,
    pages: PageStates,
    by_type: BTreeMap<RecordType, Totals>,
    /// Images of the record that is being put together.
    images: Totals,
}

impl Wal {
    /// An empty log.
    #[must_use]
    pub fn new(settings: WalSettings) -> Self {
        Self {
            settings,
            pages: PageStates::default(),
            by_type: BTreeMap::new(),
            images: Totals::default(),
        }
    }

    /// The pages it has seen.
    #[must_use]
    pub const fn pages(&self) -> &PageStates {
        &self.pages
    }

    /// Whether checksums or `wal_log_hints` are on.
    #[must_use]
    pub const fn hints_are_logged(&self) -> bool {
        self.settings.hints_are_logged
    }

    /// A new, empty fork.
    pub fn add_fork(&mut self) -> ForkId {
        self.pages.add_fork()
    }

    /// All pages are written; the next change of each owes an image.
    pub fn checkpoint(&mut self) {
        self.pages.checkpoint();
    }

    /// Begins to count anew.
    pub fn reset_totals(&mut self) {
        self.by_type.clear();
    }

    /// Records of one type.
    #[must_use]
    pub fn of(&self, record: RecordType) -> Totals {
        self.by_type.get(&record).copied().unwrap_or_default()
    }

    /// All types that occurred.
    pub fn by_type(&self) -> impl Iterator<Item = (RecordType, Totals)> {
        self.by_type
            .iter()
            .map(|(&record, &totals)| (record, totals))
    }

    /// All records.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for (_, totals) in self.by_type() {
            sum.add(totals);
        }
        sum
    }

    /// All records that belong to tables and indexes: all but the ends of transactions.
    #[must_use]
    pub fn relation_totals(&self) -> Totals {
        let mut sum = Totals::default();
        for (record, totals) in self.by_type() {
            if !matches!(record, RecordType::Commit | RecordType::Abort) {
                sum.add(totals);
            }
        }
        sum
    }

    /// A page that the next record registers changed; what the record carries of it. `hole_bytes`
    /// is the page's hole after the change, 0 for maps.
    ///
    /// Source: `XLogRecordAssemble`, src/backend/access/transam/xloginsert.c (REL_18_STABLE).
    pub fn change(&mut self, fork: ForkId, block: BlockNumber, hole_bytes: u32) -> Page {
        let owes = self.settings.full_page_writes && self.pages.owes_image(fork, block);
        self.pages.log(fork, block);
        if !owes {
            return Page::Change;
        }
        let image = Image::plain(hole_bytes);
        self.images.wal_fpi += 1;
        self.images.wal_fpi_bytes += u64::from(image.stored_bytes());
        Page::Image(image)
    }

    /// A page that the next record makes anew: no image (`REGBUF_WILL_INIT`).
    pub fn init(&mut self, fork: ForkId, block: BlockNumber) -> Page {
        self.pages.log(fork, block);
        Page::Change
    }

    /// A page changed beside a record that does not name it.
    pub fn change_unlogged(&mut self, fork: ForkId, block: BlockNumber) {
        self.pages.change(fork, block);
    }

    /// Writes the record whose pages were announced.
    pub fn record(&mut self, record: RecordType, bytes: u32) {
        let mut totals = std::mem::take(&mut self.images);
        totals.wal_records = 1;
        totals.wal_bytes = u64::from(bytes);
        self.by_type.entry(record).or_default().add(totals);
    }

    /// A hint changed on a page: hint bits, dead index entries, free space.
    ///
    /// Source: `MarkBufferDirtyHint`, src/backend/storage/buffer/bufmgr.c, and
    /// `XLogSaveBufferForHint`, src/backend/access/transam/xloginsert.c (REL_18_STABLE).
    pub fn hint(&mut self, fork: ForkId, block: BlockNumber, hole_bytes: u32) {
        if self.pages.is_dirty(fork, block) {
            return;
        }
        if self.settings.hints_are_logged && self.pages.owes_image(fork, block) {
            let page = self.change(fork, block, hole_bytes);
            self.record(RecordType::FpiForHint, fpi_for_hint(page));
        } else {
            self.pages.change(fork, block);
        }
    }
}

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
