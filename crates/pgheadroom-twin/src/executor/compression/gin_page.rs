//! The bytes of a GIN index's page, so far as they are known.
//!
//! Tuples lie in the order of their keys, as a split leaves them; strings that an entry compresses
//! are as they are.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::decode::LpFlags;
use pgheadroom_layout::decode::btree::HeapTid;
use pgheadroom_layout::decode::gin::{GinPage, Linked, Metapage, Posting};
use pgheadroom_layout::gin::{
    GIN_COMPRESSED, GIN_CURRENT_VERSION, GIN_DATA, GIN_DELETED, GIN_LEAF, GIN_LIST,
    GIN_LIST_FULLROW, GIN_META, GIN_TREE_POSTING, item_pointer, list_bytes,
};
use pgheadroom_layout::page::BLCKSZ;

use super::{Header, PageBytes};
use crate::gin::{GinIndex, Key};

const NONE: u32 = u32::MAX;
/// Marks the offset of a packed list. Source: `GIN_ITUP_COMPRESSED`, src/include/access/ginblock.h.
const ITUP_COMPRESSED: u32 = 1 << 31;
const HEADER_BYTES: usize = 8;

/// A page without its hole.
pub(super) fn gin_page(index: &GinIndex, block: BlockNumber) -> Vec<u8> {
    let keys = index.keys_of(block.0);
    match index.decoded(block.0) {
        GinPage::New => vec![0; BLCKSZ as usize],
        // It is registered as a page without a hole.
        GinPage::Deleted => {
            let mut page = of_contents(&[], (None, 0), GIN_DATA | GIN_LEAF | GIN_DELETED);
            page.resize(BLCKSZ as usize, 0);
            page
        }
        GinPage::Meta(meta) => of_contents(&metapage(&meta), (None, 0), GIN_META),
        GinPage::EntryLeaf(Linked { next, items }) => {
            let items = items.iter().zip(keys).map(|(item, key)| {
                let tids: Vec<_> = match &item.posting {
                    Posting::List(tids) => tids.iter().map(|tid| (tid.block, tid.offset)).collect(),
                    Posting::Tree(_) => Vec::new(),
                };
                let own = match item.posting {
                    Posting::Tree(root) => (root, GIN_TREE_POSTING),
                    Posting::List(_) => (
                        key.head_bytes() | ITUP_COMPRESSED,
                        u16::try_from(tids.len()).unwrap_or(u16::MAX),
                    ),
                };
                (own, key, list_bytes(&tids), item.bytes)
            });
            of_tuples(items, (next, 0), GIN_LEAF)
        }
        GinPage::EntryInner(Linked { next, items }) => {
            let items = items.iter().zip(keys);
            let items = items.map(|(&(bytes, child), key)| ((child, 0), key, Vec::new(), bytes));
            of_tuples(items, (next, 0), 0)
        }
        GinPage::List(Linked { next, items }, rows) => {
            let items = items
                .iter()
                .zip(keys)
                .map(|(&(bytes, tid), key)| ((tid.block.0, tid.offset.0), key, Vec::new(), bytes));
            of_tuples(items, (next, rows), GIN_LIST | GIN_LIST_FULLROW)
        }
        GinPage::DataLeaf(Linked { next, items }, bound) => {
            let lists = items.iter().flat_map(|list| {
                let tids = list.tids.iter().map(|tid| (tid.block, tid.offset));
                list_bytes(&tids.collect::<Vec<_>>())
            });
            let contents: Vec<u8> = right_bound(bound).into_iter().chain(lists).collect();
            of_contents(&contents, (next, 0), GIN_DATA | GIN_LEAF | GIN_COMPRESSED)
        }
        GinPage::DataInner(Linked { next, items }, bound) => {
            let mut contents = right_bound(bound);
            for (child, key) in &items {
                contents.extend(&pointer(*child, 0)[..4]);
                contents.extend(pointer(key.block.0, key.offset.0));
            }
            let count = u16::try_from(items.len()).unwrap_or(0);
            of_contents(&contents, (next, count), GIN_DATA)
        }
    }
}

fn pointer(block: u32, offset: u16) -> [u8; 6] {
    item_pointer(BlockNumber(block), pgheadroom_layout::OffsetNumber(offset))
}

fn right_bound(bound: HeapTid) -> Vec<u8> {
    let mut bytes = item_pointer(bound.block, bound.offset).to_vec();
    bytes.resize(HEADER_BYTES, 0);
    bytes
}

/// Source: `GinPageOpaqueData`, src/include/access/ginblock.h.
fn special((next, count): (Option<u32>, u16), flags: u16) -> Vec<u8> {
    let mut bytes = next.unwrap_or(NONE).to_le_bytes().to_vec();
    bytes.extend(count.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes
}

fn of_contents(contents: &[u8], links: (Option<u32>, u16), flags: u16) -> Vec<u8> {
    let mut page = PageBytes::with_special(&special(links, flags));
    page.items = contents.to_vec();
    page.put_together(Header::default())
}

/// Each with what its header has in the place of a TID, its key, its list and its length.
fn of_tuples<'a>(
    tuples: impl Iterator<Item = ((u32, u16), &'a Key, Vec<u8>, u16)>,
    links: (Option<u32>, u16),
    flags: u16,
) -> Vec<u8> {
    let mut page = PageBytes::with_special(&special(links, flags));
    for ((block, offset), key, list, length) in tuples {
        let mut bytes = pointer(block, offset).to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.extend(key.stored_bytes());
        bytes.resize(key.head_bytes() as usize, 0);
        bytes.extend(list);
        bytes.resize(length.into(), 0);
        page.add(bytes, LpFlags::Normal, length.into());
    }
    page.put_together(Header::default())
}

fn metapage(meta: &Metapage) -> Vec<u8> {
    let block = |block: Option<u32>| block.unwrap_or(NONE);
    let words = [
        block(meta.head),
        block(meta.tail),
        meta.tail_free_size,
        meta.pending_pages,
    ];
    let mut bytes = words.map(u32::to_le_bytes).concat();
    bytes.extend(meta.pending_heap_tuples.to_le_bytes());
    bytes.extend(meta.pages.map(u32::to_le_bytes).concat());
    bytes.resize(40, 0);
    bytes.extend(meta.entries.to_le_bytes());
    bytes.extend(GIN_CURRENT_VERSION.to_le_bytes());
    bytes.resize(56, 0);
    bytes
}
