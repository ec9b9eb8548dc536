//! A further bucket, to which part of another one's entries go.

use pgheadroom_layout::wal_record::{
    hash_split_allocate_page, hash_split_complete, hash_split_page,
};

use crate::hash_index::HashIndex;
use crate::hash_index::meta::Expansion;
use crate::hash_index::page::{BucketPage, EMPTY_HOLE_BYTES};
use crate::page::Tid;
use crate::wal::{HashRecord, Wal};

impl HashIndex {
    /// Source: `_hash_expandtable`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
    pub(super) fn expand(&mut self, wal: &mut Wal) {
        let new_block = self.meta.block_of(self.meta.bucket_count());
        let added = self.meta.buckets_to_add();
        if added > 0 {
            // `_hash_alloc_buckets`: the last page of a new split point.
            let last = new_block + added - 1;
            self.extend_to(last);
            self.log.whole_page(last, EMPTY_HOLE_BYTES, wal);
        }
        self.extend_to(new_block);
        let Expansion {
            old,
            new,
            new_masks,
            new_split_point,
        } = self.meta.add_bucket();
        let old_block = self.meta.block_of(old);
        debug_assert_eq!(self.meta.block_of(new), new_block);
        *self.page_mut(new_block) = BucketPage {
            bucket: Some(new),
            ..BucketPage::default()
        };
        let before = self.change(old_block, wal);
        let page = self.log.init(new_block, wal);
        let meta = self.change_meta(wal);
        let size = hash_split_allocate_page(before, page, meta, new_masks, new_split_point);
        self.record(HashRecord::SplitAllocatePage, size, wal);
        self.split(old_block, new_block, new, wal);
        self.clean_bucket(old_block, None, wal);
    }

    /// Copies the new bucket's entries to it.
    ///
    /// Source: `_hash_splitbucket`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
    fn split(&mut self, old_block: u32, new_block: u32, new: u32, wal: &mut Wal) {
        let mut waiting: Vec<(u32, Tid)> = Vec::new();
        let mut to = new_block;
        let mut from = Some(old_block);
        while let Some(block) = from {
            for at in 0..self.page(block).entries.len() {
                let entry = self.page(block).entries[at];
                if self.meta.bucket_of(entry.0) != new {
                    continue;
                }
                if !self.page(to).has_room(waiting.len() + 1) {
                    self.fill(to, &mut waiting, wal);
                    to = self.add_overflow(to, wal);
                }
                waiting.push(entry);
            }
            from = self.page(block).next;
        }
        self.fill(to, &mut waiting, wal);
        let old = self.change(old_block, wal);
        let size = hash_split_complete(old, self.change(new_block, wal));
        self.record(HashRecord::SplitComplete, size, wal);
    }

    /// A page of the new bucket gets its entries, and is logged.
    fn fill(&mut self, block: u32, waiting: &mut Vec<(u32, Tid)>, wal: &mut Wal) {
        self.page_mut(block).is_of_split = true;
        for (code, tid) in waiting.drain(..) {
            self.page_mut(block).add(code, tid);
        }
        let hole = self.page(block).hole_bytes();
        let image = self.log.force_image(block, hole, wal);
        self.record(HashRecord::SplitPage, hash_split_page(image), wal);
    }
}
