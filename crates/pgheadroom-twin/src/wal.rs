//! What is written to the WAL: records, bytes and images by kind.
//!
//! An action says which pages it registers and gets back what the record carries of each; then it
//! hands in the record's size. Sizes themselves are `pgheadroom_layout::wal_record`.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::{Image, Page, fpi_for_hint};

use crate::checkpoint::{ForkId, PageStates};

mod build;
mod compression;
mod counts;
mod forced;
mod fork_log;
mod index_log;
mod record_type;
mod transactions;

pub use compression::Doubt;
pub(crate) use compression::Uncompressed;
pub(crate) use fork_log::ForkLog;
pub(crate) use index_log::IndexLog;
pub use record_type::{GinRecord, HashRecord, ModelRecord, RecordType};

/// Records of a table by type, in the order of [`RecordType::index`].
type Sums = [Totals; RecordType::COUNT];

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
    const NO_SUMS: Sums = [Totals::NONE; RecordType::COUNT];

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
