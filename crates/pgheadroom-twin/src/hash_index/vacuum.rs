//! What VACUUM and a split remove.

use pgheadroom_layout::wal_record::{hash_delete, hash_split_cleanup, hash_update_meta_page};

use crate::hash_index::HashIndex;
use crate::page::Tid;
use crate::wal::{HashRecord, Wal};

impl HashIndex {
    /// Removes the entries of dead row versions.
    ///
    /// Source: `hashbulkdelete`, src/backend/access/hash/hash.c (REL_18_STABLE).
    pub fn bulk_delete(&mut self, is_dead: impl Fn(Tid) -> bool, wal: &mut Wal) {
        let mut left = 0;
        for bucket in 0..self.meta.bucket_count() {
            left += self.clean_bucket(self.meta.block_of(bucket), Some(&is_dead), wal);
        }
        self.meta.entries = left;
        let size = hash_update_meta_page(self.change_meta(wal));
        self.record(HashRecord::UpdateMetaPage, size, wal);
    }

    /// Removes a bucket's dead entries, or after a split those that went to the new one; how many
    /// are left.
    ///
    /// Source: `hashbucketcleanup`, src/backend/access/hash/hash.c (REL_18_STABLE).
    pub(super) fn clean_bucket(
        &mut self,
        bucket: u32,
        is_dead: Option<&dyn Fn(Tid) -> bool>,
        wal: &mut Wal,
    ) -> u64 {
        let mut left = 0;
        let mut is_changed = false;
        let mut next = Some(bucket);
        while let Some(block) = next {
            let meta = &self.meta;
            let page = &mut self.pages[block as usize];
            let before = page.entries.len();
            page.entries.retain(|(code, tid)| match is_dead {
                Some(is_dead) => !is_dead(*tid),
                None => meta.block_of(meta.bucket_of(*code)) == bucket,
            });
            let removed = before - page.entries.len();
            left += page.entries.len() as u64;
            next = page.next;
            if removed > 0 {
                is_changed = true;
                let first = self.named_beside(bucket, block, wal);
                let removed = u32::try_from(removed).expect("entries of a page");
                let size = hash_delete(first, self.change(block, wal), removed);
                self.record(HashRecord::Delete, size, wal);
            }
        }
        if is_dead.is_none() {
            let size = hash_split_cleanup(self.change(bucket, wal));
            self.record(HashRecord::SplitCleanup, size, wal);
        }
        if is_changed {
            self.squeeze(bucket, wal);
        }
        left
    }
}
