//! Hash indexes: buckets of codes, pages behind full ones, and the metapage that counts them.
//!
//! ```text
//! metapage -- where buckets are, how many entries there are, which overflow pages are free
//! bucket   -- primary page -> overflow page -> ...
//! bitmap   -- overflow pages in use
//! ```
//!
//! A new entry goes to the first page of its bucket's chain that has room. When there are more
//! entries than `ffactor` a bucket, the next bucket is split off the one that it belongs to.
//!
//! Source: src/backend/access/hash (REL_15_STABLE, REL_18_STABLE). Left out: scans, which nobody
//! does here and which would mark dead entries, and what others' pins keep from being split.

mod meta;
mod overflow;
mod page;
mod split;
mod texts;
mod vacuum;

use std::ops::Range;

use pgheadroom_layout::Behaviour;
use pgheadroom_layout::wal_record::{
    Page, hash_init_bitmap_page, hash_init_meta_page, hash_insert,
};

use crate::checkpoint::ForkId;
use crate::hash_index::meta::{META_HOLE_BYTES, Meta};
use crate::hash_index::page::{BucketPage, EMPTY_HOLE_BYTES};
use crate::page::Tid;
use crate::wal::{ForkLog, HashRecord, RecordType, Wal};

/// Block of the metapage. Source: `HASH_METAPAGE`, src/include/access/hash.h.
const META_BLOCK: u32 = 0;

/// A hash index.
#[derive(Debug)]
pub(crate) struct HashIndex {
    behaviour: Behaviour,
    log: ForkLog,
    meta: Meta,
    /// By block; those that are no bucket's are empty.
    pages: Vec<BucketPage>,
}

impl HashIndex {
    /// An index of so many entries to come.
    ///
    /// Source: `_hash_init`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
    pub fn new(
        behaviour: Behaviour,
        fillfactor: u32,
        entries: u64,
        logs: bool,
        wal: &mut Wal,
    ) -> Self {
        let mut index = Self {
            behaviour,
            log: ForkLog {
                fork: wal.add_fork(),
                is_on: logs,
            },
            meta: Meta::new(fillfactor, entries),
            pages: Vec::new(),
        };
        let buckets = index.meta.bucket_count();
        index.extend_to(buckets + 1);
        let size = hash_init_meta_page(index.log.init(META_BLOCK, wal));
        index.record(HashRecord::InitMetaPage, size, wal);
        for bucket in 0..buckets {
            let block = index.meta.block_of(bucket);
            index.page_mut(block).bucket = Some(bucket);
            index.log.whole_page(block, EMPTY_HOLE_BYTES, wal);
        }
        let map = index.log.init(buckets + 1, wal);
        let size = hash_init_bitmap_page(map, index.change_meta(wal));
        index.record(HashRecord::InitBitmapPage, size, wal);
        index
    }

    /// From now on everything is logged.
    pub const fn begin_logging(&mut self) {
        self.log.is_on = true;
    }

    /// Its fork.
    pub const fn main(&self) -> ForkId {
        self.log.fork
    }

    /// Pages of its fork.
    pub fn page_count(&self) -> u32 {
        u32::try_from(self.pages.len()).expect("blocks of a fork")
    }

    /// Pages that nobody has written yet.
    pub fn new_blocks(&self) -> Range<u32> {
        self.meta.new_blocks()
    }

    /// A new entry.
    ///
    /// Source: `_hash_doinsert`, src/backend/access/hash/hashinsert.c (REL_18_STABLE).
    pub fn insert(&mut self, code: u32, tid: Tid, wal: &mut Wal) {
        let mut block = self.meta.block_of(self.meta.bucket_of(code));
        while !self.page(block).has_room(1) {
            block = match self.page(block).next {
                Some(next) => next,
                None => self.add_overflow(block, wal),
            };
        }
        self.page_mut(block).add(code, tid);
        self.meta.entries += 1;
        let page = self.change(block, wal);
        let size = hash_insert(page, self.change_meta(wal));
        self.record(HashRecord::Insert, size, wal);
        if self.meta.wants_bucket() {
            self.expand(wal);
        }
    }

    fn page(&self, block: u32) -> &BucketPage {
        &self.pages[block as usize]
    }

    fn page_mut(&mut self, block: u32) -> &mut BucketPage {
        &mut self.pages[block as usize]
    }

    /// The fork has a page at this block, and those before it.
    fn extend_to(&mut self, block: u32) {
        let pages = block as usize + 1;
        if self.pages.len() < pages {
            self.pages.resize_with(pages, BucketPage::default);
        }
    }

    fn change(&self, block: u32, wal: &mut Wal) -> Page {
        self.log.change(block, self.page(block).hole_bytes(), wal)
    }

    fn change_meta(&self, wal: &mut Wal) -> Page {
        self.log.change(META_BLOCK, META_HOLE_BYTES, wal)
    }

    /// The bucket's first page, where the record is of another one.
    fn named_beside(&self, bucket: u32, page: u32, wal: &mut Wal) -> Option<Page> {
        (bucket != page).then(|| self.log.name(bucket, wal))
    }

    fn record(&self, kind: HashRecord, bytes: u32, wal: &mut Wal) {
        self.log.record(RecordType::Hash(kind), bytes, wal);
    }
}
