//! What is written to the WAL: records, bytes and images by kind.
//!
//! An action says which pages it registers and gets back what the record carries of each; then it
//! hands in the record's size. Sizes themselves are `pgheadroom_layout::wal_record`.

use std::collections::BTreeMap;

use pgheadroom_layout::wal_record::{
    COMMIT, COMMIT_LOGICAL, Image, Page, fpi_for_hint, multixact_create, multixact_zero_page,
    subtransactions,
};
use pgheadroom_layout::{Behaviour, BlockNumber};

use crate::btree::{Record, RecordKind, Sink};
use crate::checkpoint::{ForkId, PageStates};
use crate::multixact::Created;

mod build;
mod compression;
mod forced;
mod fork_log;
mod record_type;

pub use compression::Doubt;
pub(crate) use compression::Uncompressed;
pub(crate) use fork_log::ForkLog;
pub use record_type::{GinRecord, HashRecord, ModelRecord, RecordType};

/// Records of a table by type, in the order of [`RecordType::index`].
type Sums = [Totals; RecordType::PLACES];

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
    const NONE: Self = Self {
        wal_records: 0,
        wal_bytes: 0,
        wal_fpi: 0,
        wal_fpi_bytes: 0,
    };

    pub(crate) const fn subtract(&mut self, other: Self) {
        self.wal_records -= other.wal_records;
        self.wal_bytes -= other.wal_bytes;
        self.wal_fpi -= other.wal_fpi;
        self.wal_fpi_bytes -= other.wal_fpi_bytes;
    }

    pub(crate) const fn add(&mut self, other: Self) {
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
    /// `wal_level = logical`: new tuples are logged whole, beside an image too.
    ///
    /// Source: `RelationIsLogicallyLogged`, src/include/utils/rel.h (REL_18_STABLE).
    pub is_logical: bool,
}

/// The log, as sums.
#[derive(Debug, Clone)]
pub struct Wal {
    settings: WalSettings,
    pages: PageStates,
    /// Of what belongs to no table, then of each table.
    sums: Vec<Sums>,
    /// By fork.
    owners: Vec<Owner>,
    /// Images that are to be compressed; none without compression.
    uncompressed: Option<Vec<Uncompressed>>,
    /// Images that a server may store the other way; indexed as `sums`.
    doubts: Vec<Doubt>,
    /// Whose forks are being added.
    opened: Owner,
    /// With `wal_level = minimal`: new relations with fewer pages are logged at commit.
    logged_below_pages: Option<u32>,
    /// Whether the session has noticed the last checkpoint, which its next record makes it do.
    knows_redo: bool,
    /// Images of the record that is being put together, and whose pages it names.
    images: Totals,
    named: Owner,
    /// Whether a statement is under way that updates rows.
    updates: bool,
    /// What such statements have logged, images apart; indexed as `sums`.
    update_bytes: Vec<u64>,
    /// Whether a table is unlogged; indexed as `sums`.
    unlogged: Vec<bool>,
}

/// The table that a record belongs to, by its position; ends of transactions have none.
type Owner = Option<usize>;

impl Wal {
    const NO_SUMS: Sums = [Totals::NONE; RecordType::PLACES];

    /// An empty log.
    #[must_use]
    pub fn new(settings: WalSettings) -> Self {
        Self {
            settings,
            pages: PageStates::default(),
            sums: vec![Self::NO_SUMS],
            owners: Vec::new(),
            uncompressed: None,
            doubts: vec![Doubt::default()],
            opened: None,
            logged_below_pages: None,
            knows_redo: false,
            images: Totals::default(),
            named: None,
            updates: false,
            update_bytes: vec![0],
            unlogged: vec![false],
        }
    }

    /// The pages it has seen.
    #[must_use]
    pub const fn pages(&self) -> &PageStates {
        &self.pages
    }

    /// Whether tuples are logged for logical decoding.
    #[must_use]
    pub const fn is_logical(&self) -> bool {
        self.settings.is_logical
    }

    /// Whether checksums or `wal_log_hints` are on.
    #[must_use]
    pub const fn hints_are_logged(&self) -> bool {
        self.settings.hints_are_logged
    }

    /// Forks added from now on belong to the table at this position.
    pub fn open_table(&mut self, table: usize) {
        self.opened = Some(table);
        if self.sums.len() < table + 2 {
            self.sums.resize(table + 2, Self::NO_SUMS);
            self.update_bytes.resize(table + 2, 0);
            self.doubts.resize(table + 2, Doubt::default());
            self.unlogged.resize(table + 2, false);
        }
    }

    /// The table that was opened last is unlogged: no record of it, its indexes and its TOAST
    /// table is written, and no image for hints.
    ///
    /// Source: `RelationNeedsWAL`, src/include/utils/rel.h, and `MarkBufferDirtyHint`,
    /// src/backend/storage/buffer/bufmgr.c (REL_15_STABLE, REL_18_STABLE).
    pub fn set_unlogged(&mut self) {
        let place = self.opened.map_or(0, |table| table + 1);
        self.unlogged[place] = true;
    }

    /// Whether this fork belongs to an unlogged table.
    pub(crate) fn is_unlogged(&self, fork: ForkId) -> bool {
        self.unlogged[self.owners[fork.0].map_or(0, |table| table + 1)]
    }

    /// A new, empty fork.
    pub fn add_fork(&mut self) -> ForkId {
        self.owners.push(self.opened);
        self.pages.add_fork()
    }

    /// All pages are written; the next change of each owes an image.
    pub fn checkpoint(&mut self) {
        self.pages.checkpoint();
        self.knows_redo = false;
    }

    /// A checkpoint begins: as [`Wal::checkpoint`], but pages stay dirty until they are written;
    /// those that it will write.
    pub fn begin_checkpoint(&mut self) -> Vec<(ForkId, BlockNumber)> {
        self.knows_redo = false;
        self.pages.move_redo()
    }

    /// A checkpoint writes a page.
    pub fn write(&mut self, fork: ForkId, block: BlockNumber) {
        self.pages.write(fork, block);
    }

    /// Pages of this table's forks, and those of its indexes, that a record has named since the
    /// last call.
    pub fn end_slice(&mut self, table: usize) -> usize {
        if self.unlogged[table + 1] {
            return 0;
        }
        let pages = &mut self.pages;
        let owners = self.owners.iter().enumerate();
        let own = owners.filter(|&(_, &owner)| owner == Some(table));
        own.map(|(fork, _)| pages.end_slice(ForkId(fork))).sum()
    }

    /// Begins to count anew.
    pub fn reset_totals(&mut self) {
        self.sums.fill(Self::NO_SUMS);
        self.update_bytes.fill(0);
        self.doubts.fill(Doubt::default());
        if let Some(images) = &mut self.uncompressed {
            images.clear();
        }
        self.pages.start_window();
    }

    /// Records of one type.
    #[must_use]
    pub fn of(&self, record: RecordType) -> Totals {
        self.sum(|_, of| of == record)
    }

    /// All types that occurred, in order.
    pub fn by_type(&self) -> impl Iterator<Item = (RecordType, Totals)> + use<> {
        let mut by_type: BTreeMap<RecordType, Totals> = BTreeMap::new();
        for (_, record, totals) in self.counted() {
            by_type.entry(record).or_default().add(totals);
        }
        by_type.into_iter()
    }

    /// All records.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for totals in self.sums.iter().flatten() {
            sum.add(*totals);
        }
        sum
    }

    /// All records that name a page of this table, its indexes or maps.
    #[must_use]
    pub fn of_table(&self, table: usize) -> Totals {
        self.sum(|owner, _| owner == Some(table))
    }

    /// A statement that updates rows begins, or has ended: what it logs is counted by itself.
    #[inline]
    pub(crate) fn count_updates(&mut self, updates: bool) {
        self.updates = updates;
    }

    /// What statements that update rows have logged of this table and its indexes: as
    /// `pg_stat_statements.wal_bytes` has it, without images, and so without the end of the
    /// transaction.
    #[must_use]
    pub fn update_bytes(&self, table: usize) -> u64 {
        self.update_bytes[table + 1]
    }

    /// All records that end transactions.
    #[must_use]
    pub fn of_transactions(&self) -> Totals {
        self.sum(|_, record| matches!(record, RecordType::Commit | RecordType::Abort))
    }

    /// What a proof counts, by type: records that name a page, and those that end transactions;
    /// not the few that name a relation in their main data only.
    pub fn counted_by_type(&self) -> impl Iterator<Item = (RecordType, Totals)> + use<> {
        let reuse = RecordType::Btree(RecordKind::ReusePage);
        self.by_type().filter(move |&(record, _)| record != reuse)
    }

    /// All records that belong to tables and indexes: all but the ends of transactions.
    #[must_use]
    pub fn relation_totals(&self) -> Totals {
        self.sum(|owner, _| owner.is_some())
    }

    /// Pages of this table's forks, and those of its indexes, that a record of the window names.
    #[must_use]
    pub fn named_pages(&self, table: usize) -> usize {
        if self.unlogged[table + 1] {
            return 0;
        }
        let owners = self.owners.iter().enumerate();
        let own = owners.filter(|&(_, &owner)| owner == Some(table));
        own.map(|(fork, _)| self.pages.named_pages(ForkId(fork)))
            .sum()
    }

    /// Types that occurred, by table.
    fn counted(&self) -> impl Iterator<Item = (Owner, RecordType, Totals)> {
        let owners = self.sums.iter().enumerate();
        owners.flat_map(|(number, sums)| {
            let counted = sums.iter().enumerate();
            let counted = counted.filter(|(_, totals)| totals.wal_records > 0);
            counted
                .map(move |(place, totals)| (number.checked_sub(1), RecordType::at(place), *totals))
        })
    }

    fn sum(&self, is_wanted: impl Fn(Owner, RecordType) -> bool) -> Totals {
        let mut sum = Totals::default();
        for (owner, record, totals) in self.counted() {
            if is_wanted(owner, record) {
                sum.add(totals);
            }
        }
        sum
    }

    /// A page that the next record registers changed; what the record carries of it. `hole_bytes`
    /// is the page's hole after the change, 0 for maps.
    ///
    /// Source: `XLogRecordAssemble`, src/backend/access/transam/xloginsert.c (REL_18_STABLE).
    #[inline]
    pub fn change(&mut self, fork: ForkId, block: BlockNumber, hole_bytes: u32) -> Page {
        if self.pages.is_logged(fork, block) {
            self.named = self.owners[fork.0];
            return Page::Change;
        }
        self.change_first(fork, block, hole_bytes)
    }

    /// The same, where that may be the page's first change since a checkpoint.
    fn change_first(&mut self, fork: ForkId, block: BlockNumber, hole_bytes: u32) -> Page {
        let owes = self.settings.full_page_writes && self.pages.owes_image(fork, block);
        self.pages.log(fork, block);
        self.named = self.owners[fork.0];
        if !owes {
            return Page::Change;
        }
        self.image(fork, block, hole_bytes)
    }

    /// The same for a page that gets new tuples, which logical decoding reads from the record even
    /// if the page's image has them.
    ///
    /// Source: `REGBUF_KEEP_DATA` in `heap_insert`, `heap_multi_insert` and `log_heap_update`,
    /// src/backend/access/heap/heapam.c (REL_18_STABLE).
    #[inline]
    pub fn change_with_tuples(&mut self, fork: ForkId, block: BlockNumber, hole: u32) -> Page {
        match self.change(fork, block, hole) {
            Page::Image(image) if self.is_logical() => Page::ImageAndChange(image),
            page => page,
        }
    }

    /// The next record carries this image.
    fn image(&mut self, fork: ForkId, block: BlockNumber, hole_bytes: u32) -> Page {
        let image = Image::plain(hole_bytes);
        self.note_image(fork, block, hole_bytes);
        self.images.wal_fpi += 1;
        self.images.wal_fpi_bytes += u64::from(image.stored_bytes());
        Page::Image(image)
    }

    /// A page that the next record makes anew: no image (`REGBUF_WILL_INIT`).
    pub fn init(&mut self, fork: ForkId, block: BlockNumber) -> Page {
        self.pages.log(fork, block);
        self.named = self.owners[fork.0];
        Page::Change
    }

    /// A page that the next record names and that changes without a new LSN, so that it goes on
    /// to owe its image (`REGBUF_NO_IMAGE`).
    pub fn name(&mut self, fork: ForkId, block: BlockNumber) -> Page {
        self.pages.name(fork, block);
        self.named = self.owners[fork.0];
        Page::Change
    }

    /// A page changed beside a record that does not name it.
    pub fn change_unlogged(&mut self, fork: ForkId, block: BlockNumber) {
        self.pages.change(fork, block);
    }

    /// Writes the record whose pages were announced.
    #[inline]
    pub fn record(&mut self, record: RecordType, bytes: u32) {
        let owner = self.named.take();
        let owner = owner.map_or(0, |table| table + 1);
        if self.unlogged[owner] {
            self.images = Totals::default();
            self.forget_uncounted();
            return;
        }
        self.knows_redo = true;
        let sum = &mut self.sums[owner][record.index()];
        sum.wal_records += 1;
        sum.wal_bytes += u64::from(bytes);
        if self.updates {
            self.update_bytes[owner] += u64::from(bytes) - self.images.wal_fpi_bytes;
        }
        if self.images.wal_fpi > 0 {
            sum.add(std::mem::take(&mut self.images));
            self.count_images(owner, record);
        }
    }

    /// Whether this page carries no image in the next records, and they change nothing about it:
    /// [`Wal::record_again`] is enough for them.
    #[inline]
    pub(crate) fn is_logged(&self, fork: ForkId, block: BlockNumber) -> bool {
        self.pages.is_logged(fork, block)
    }

    /// The same of a record for which nothing else was announced.
    #[inline(always)]
    pub(crate) fn is_logged_alone(&self, fork: ForkId, block: BlockNumber) -> bool {
        let is_alone = self.named.is_none() & (self.images.wal_fpi == 0);
        is_alone && self.is_logged(fork, block)
    }

    /// Whether a page was changed since it was written last.
    pub(crate) fn is_dirty(&self, fork: ForkId, block: BlockNumber) -> bool {
        self.pages.is_dirty(fork, block)
    }

    /// Writes a record of one page of this fork, of which [`Wal::is_logged`] is true.
    #[inline(always)]
    pub(crate) fn record_again(&mut self, fork: ForkId, record: RecordType, bytes: u32) {
        let owner = self.owners[fork.0].map_or(0, |table| table + 1);
        if self.unlogged[owner] {
            return;
        }
        self.knows_redo = true;
        let sum = &mut self.sums[owner][record.index()];
        sum.wal_records += 1;
        sum.wal_bytes += u64::from(bytes);
        if self.updates {
            self.update_bytes[owner] += u64::from(bytes);
        }
    }

    /// The same of so many records of this size in all.
    pub(crate) fn record_all(&mut self, fork: ForkId, record: RecordType, count: u32, bytes: u64) {
        let owner = self.owners[fork.0].map_or(0, |table| table + 1);
        if self.unlogged[owner] {
            return;
        }
        let sum = &mut self.sums[owner][record.index()];
        sum.wal_records += u64::from(count);
        sum.wal_bytes += bytes;
        self.knows_redo |= count > 0;
        if self.updates {
            self.update_bytes[owner] += bytes;
        }
    }

    /// Writes the record of a COMMIT.
    #[inline]
    pub fn record_commit(&mut self) {
        self.record_commit_of(0);
    }

    /// The same of a transaction with so many parts.
    pub(crate) fn record_commit_of(&mut self, parts: usize) {
        let bytes = if self.is_logical() {
            COMMIT_LOGICAL
        } else {
            COMMIT
        };
        let parts = self.bytes_of_parts(parts);
        self.record(RecordType::Commit, bytes + parts);
    }

    /// A transaction, or a part of one, is rolled back, which has so many parts.
    ///
    /// Source: `XactLogAbortRecord`, src/backend/access/transam/xact.c (REL_18_STABLE): the same
    /// shape, without the database's name.
    pub(crate) fn record_abort_of(&mut self, parts: usize) {
        let parts = self.bytes_of_parts(parts);
        self.record(RecordType::Abort, COMMIT + parts);
    }

    fn bytes_of_parts(&self, parts: usize) -> u32 {
        let parts = u32::try_from(parts).expect("few parts");
        subtransactions(parts, self.is_logical())
    }

    /// A multixact was made, if it was.
    ///
    /// Source: `MultiXactIdCreateFromMembers` and `WriteMZeroPageXlogRec`,
    /// src/backend/access/transam/multixact.c (REL_15_STABLE, REL_18_STABLE).
    pub fn record_multixact(&mut self, created: Option<Created>, behaviour: &Behaviour) {
        let Some(created) = created else { return };
        let page_bytes = multixact_zero_page(behaviour.multixact_page_number_bytes);
        if created.begins_offsets_page(behaviour) {
            self.record(RecordType::MultixactZeroOffsets, page_bytes);
        }
        if created.begins_members_page(behaviour) {
            self.record(RecordType::MultixactZeroMembers, page_bytes);
        }
        let bytes = multixact_create(created.members, behaviour.multixact_offset_bytes);
        self.record(RecordType::MultixactCreate, bytes);
    }

    /// A hint changed on a page: hint bits, dead index entries, free space.
    ///
    /// Source: `MarkBufferDirtyHint`, src/backend/storage/buffer/bufmgr.c, and
    /// `XLogSaveBufferForHint`, src/backend/access/transam/xloginsert.c (REL_18_STABLE).
    #[inline]
    pub fn hint(&mut self, fork: ForkId, block: BlockNumber, hole_bytes: u32) {
        if !self.pages.is_dirty(fork, block) {
            self.hint_image(fork, block, hole_bytes);
        }
    }

    /// The same; says whether an image was written.
    pub fn hint_image(&mut self, fork: ForkId, block: BlockNumber, hole_bytes: u32) -> bool {
        if self.pages.is_dirty(fork, block) {
            return false;
        }
        if self.is_unlogged(fork) {
            self.pages.change(fork, block);
            return false;
        }
        self.knows_redo |= self.settings.hints_are_logged;
        if self.settings.hints_are_logged && self.pages.owes_image(fork, block) {
            let page = self.change(fork, block, hole_bytes);
            self.record(RecordType::FpiForHint, fpi_for_hint(page));
            return page != Page::Change;
        }
        self.pages.change(fork, block);
        false
    }

    /// Whether the session believes that a record of this page would carry its image. Until its
    /// first record after a checkpoint it does not know that there was one.
    ///
    /// Source: `XLogCheckBufferNeedsBackup`, src/backend/access/transam/xloginsert.c, and
    /// `GetFullPageWriteInfo`, src/backend/access/transam/xlog.c (REL_17_STABLE).
    #[must_use]
    pub fn owes_image(&self, fork: ForkId, block: BlockNumber) -> bool {
        self.knows_redo && self.settings.full_page_writes && self.pages.owes_image(fork, block)
    }

    /// A page is logged whole, whatever the settings.
    ///
    /// Source: `log_newpage_buffer`, src/backend/access/transam/xloginsert.c (REL_18_STABLE).
    pub fn whole_page(&mut self, fork: ForkId, block: BlockNumber, hole_bytes: u32) {
        self.pages.log(fork, block);
        self.named = self.owners[fork.0];
        let page = self.image(fork, block, hole_bytes);
        self.record(RecordType::Fpi, fpi_for_hint(page));
    }

    /// A fork was cut to so many pages; what follows them is forgotten.
    pub fn truncate(&mut self, fork: ForkId, pages: u32) {
        self.pages.truncate(fork, pages);
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
