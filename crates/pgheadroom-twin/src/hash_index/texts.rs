//! Its pages as a server's are decoded, and the text that they are told in.

use pgheadroom_layout::decode::btree::HeapTid;
use pgheadroom_layout::decode::hash::{BucketPage, HashPage};
use pgheadroom_layout::places::hash_text;

use crate::hash_index::{HashIndex, META_BLOCK};

impl HashIndex {
    /// The text of each page, in order.
    pub fn texts(&self) -> Vec<String> {
        let blocks = 0..self.page_count();
        blocks
            .map(|block| hash_text(block, &self.decoded(block)))
            .collect()
    }

    /// Whether a page's first entries came from another bucket.
    pub fn is_of_split(&self, block: u32) -> bool {
        self.page(block).is_of_split
    }

    /// A page.
    pub fn decoded(&self, block: u32) -> HashPage {
        if block == META_BLOCK {
            return HashPage::Meta(self.meta.page());
        }
        if let Some(free) = self.meta.free_bits_of(block) {
            return HashPage::Bitmap(free);
        }
        let page = self.page(block);
        let Some(bucket) = page.bucket else {
            return HashPage::Unused;
        };
        let entries = page.entries.iter().map(|(code, tid)| {
            let tid = HeapTid {
                block: tid.block,
                offset: tid.offset,
            };
            (*code, tid)
        });
        HashPage::Bucket(BucketPage {
            bucket,
            previous: page.previous,
            next: page.next,
            entries: entries.collect(),
        })
    }
}
