//! Its pages as a server's are decoded, and the text that they are told in.

use pgheadroom_layout::decode::btree::HeapTid;
use pgheadroom_layout::decode::gin::{GinPage, LeafEntry, Linked, Metapage, Posting, PostingList};
use pgheadroom_layout::places::gin_text;

use crate::gin::page::{Content, Item, Rows};
use crate::gin::{GinIndex, Key};
use crate::page::Tid;

const fn heap_tid(tid: Tid) -> HeapTid {
    HeapTid {
        block: tid.block,
        offset: tid.offset,
    }
}

fn heap_tids(tids: &[Tid]) -> Vec<HeapTid> {
    tids.iter().copied().map(heap_tid).collect()
}

/// Bytes of an item of a page.
fn short(bytes: u32) -> u16 {
    u16::try_from(bytes).expect("within a page")
}

impl GinIndex {
    /// The text of each page, in order.
    pub fn texts(&self) -> Vec<String> {
        let blocks = 0..self.page_count();
        blocks
            .map(|block| gin_text(block, &self.decoded(block)))
            .collect()
    }

    /// Of a page with entries, the keys of its items.
    pub fn keys_of(&self, block: u32) -> Vec<&Key> {
        match &self.page(block).content {
            Content::Leaf(entries) => entries.items.iter().map(|entry| &entry.key).collect(),
            Content::Inner(entries) => entries.items.iter().map(|entry| &entry.key).collect(),
            Content::PendingList(pending) => pending.tuples.iter().map(|(key, _)| key).collect(),
            _ => Vec::new(),
        }
    }

    /// A page.
    pub fn decoded(&self, block: u32) -> GinPage {
        let page = self.page(block);
        let next = page.next;
        match &page.content {
            Content::Meta => GinPage::Meta(Metapage {
                head: self.meta.head,
                tail: self.meta.tail,
                tail_free_size: self.meta.tail_free_size,
                pending_pages: self.meta.pending_pages,
                pending_heap_tuples: self.meta.pending_heap_tuples,
                pages: self.meta.pages,
                entries: self.meta.entries,
            }),
            Content::Deleted { .. } => GinPage::Deleted,
            Content::Leaf(entries) => {
                let items = entries.items.iter().map(|entry| LeafEntry {
                    bytes: short(entry.bytes()),
                    posting: match &entry.rows {
                        Rows::List(tids) => Posting::List(heap_tids(tids)),
                        Rows::Tree(root) => Posting::Tree(*root),
                    },
                });
                let items = items.collect();
                GinPage::EntryLeaf(Linked { next, items })
            }
            Content::Inner(entries) => {
                let items = entries.items.iter();
                let items = items.map(|entry| (short(entry.bytes()), entry.child));
                let items = items.collect();
                GinPage::EntryInner(Linked { next, items })
            }
            Content::DataLeaf { lists, bound } => {
                let items = lists.iter().map(|list| PostingList {
                    bytes: list.bytes as usize,
                    tids: heap_tids(&list.tids),
                });
                let items = items.collect();
                GinPage::DataLeaf(Linked { next, items }, heap_tid(*bound))
            }
            Content::DataInner { items, bound } => {
                let items = items.iter().map(|(child, key)| (*child, heap_tid(*key)));
                let items = items.collect();
                GinPage::DataInner(Linked { next, items }, heap_tid(*bound))
            }
            Content::PendingList(pending) => {
                let tuples = pending.tuples.iter();
                let items = tuples.map(|(key, tid)| (short(key.tuple_bytes()), heap_tid(*tid)));
                let items = items.collect();
                GinPage::List(Linked { next, items }, pending.rows)
            }
        }
    }
}
