//! The bytes of a hash index's page, so far as they are known.
//!
//! Tuples lie in the order of their row versions, as a build leaves them, or of their codes, as a
//! split does; their line pointers in that of their codes.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::decode::LpFlags;
use pgheadroom_layout::decode::hash::{BucketPage, HashPage, Metapage};
use pgheadroom_layout::hash_index::{
    BITMAP_BYTES, BITMAP_SHIFT, HASH_ENTRY_BYTES, HASHO_PAGE_ID, LH_BITMAP_PAGE, LH_BUCKET_PAGE,
    LH_META_PAGE, LH_OVERFLOW_PAGE, SIZE_OF_HASH_META_PAGE,
};

use super::{Header, PageBytes};
use crate::hash_index::HashIndex;

/// Source: `HASH_MAGIC` and `HASH_VERSION`, src/include/access/hash.h.
const MAGIC: [u32; 2] = [0x0644_0640, 4];
/// Bytes of the bitmap that would fit on a page, those of a page of it, and its bits as a power
/// of 2.
#[allow(clippy::cast_possible_truncation)] // small numbers
const BITMAP: [u16; 3] = [8152, BITMAP_BYTES as u16, BITMAP_SHIFT as u16];
/// Source: `INDEX_MOVED_BY_SPLIT_MASK`, src/include/access/hash.h.
const MOVED_BY_SPLIT: u16 = 0x2000;
const NONE: u32 = u32::MAX;

/// A page without its hole.
pub(super) fn hash_page(index: &HashIndex, block: BlockNumber) -> Vec<u8> {
    match index.decoded(block.0) {
        HashPage::Unused => of_contents(&[], [NONE; 3], 0),
        HashPage::Meta(meta) => of_contents(&metapage(&meta), [NONE; 3], LH_META_PAGE),
        HashPage::Bitmap(free) => {
            let mut words = vec![0xFF; BITMAP_BYTES as usize];
            for bit in free {
                words[(bit / 8) as usize] &= !(1_u8 << (bit % 8));
            }
            of_contents(&words, [NONE; 3], LH_BITMAP_PAGE)
        }
        HashPage::Bucket(page) => bucket(&page, index.is_of_split(block.0)),
    }
}

/// Source: `HashPageOpaqueData`, src/include/access/hash.h.
fn special(blocks: [u32; 3], flags: u16) -> Vec<u8> {
    let blocks = blocks.iter().flat_map(|block| block.to_le_bytes());
    let rest = [flags, HASHO_PAGE_ID].map(u16::to_le_bytes).concat();
    blocks.chain(rest).collect()
}

fn of_contents(contents: &[u8], blocks: [u32; 3], flags: u16) -> Vec<u8> {
    let mut page = PageBytes::with_special(&special(blocks, flags));
    page.items = contents.to_vec();
    page.put_together(Header::default())
}

/// Its numbers; where overflow pages lie, which is little, is left out.
fn metapage(meta: &Metapage) -> Vec<u8> {
    let mut bytes = MAGIC.map(u32::to_le_bytes).concat();
    #[allow(clippy::cast_precision_loss)] // as the server keeps it
    bytes.extend((meta.ntuples as f64).to_le_bytes());
    bytes.extend(meta.ffactor.to_le_bytes());
    bytes.extend(BITMAP.map(u16::to_le_bytes).concat());
    let numbers = [
        meta.maxbucket,
        meta.highmask,
        meta.lowmask,
        meta.ovflpoint,
        meta.firstfree,
    ];
    bytes.extend(numbers.map(u32::to_le_bytes).concat());
    bytes.resize(SIZE_OF_HASH_META_PAGE as usize, 0);
    bytes
}

fn bucket(page: &BucketPage, is_of_split: bool) -> Vec<u8> {
    let flags = if page.previous.is_some() {
        LH_OVERFLOW_PAGE
    } else {
        LH_BUCKET_PAGE
    };
    let blocks = [
        page.previous.unwrap_or(NONE),
        page.next.unwrap_or(NONE),
        page.bucket,
    ];
    let mut bytes = PageBytes::with_special(&special(blocks, flags));
    let mut order: Vec<usize> = (0..page.entries.len()).collect();
    if !is_of_split {
        order.sort_unstable_by_key(|at| page.entries[*at].1);
    }
    let info = if is_of_split { MOVED_BY_SPLIT } else { 0 } + 16;
    let mut offsets = vec![0; page.entries.len()];
    for at in order {
        let (code, row) = page.entries[at];
        let block = row.block.0;
        let mut tuple = Vec::with_capacity(HASH_ENTRY_BYTES as usize);
        #[allow(clippy::cast_possible_truncation)] // the halves of a block's number
        for half in [(block >> 16) as u16, block as u16, row.offset.0, info] {
            tuple.extend(half.to_le_bytes());
        }
        tuple.extend(code.to_le_bytes());
        tuple.resize(HASH_ENTRY_BYTES as usize, 0);
        bytes.upper -= HASH_ENTRY_BYTES;
        offsets[at] = bytes.upper;
        bytes.tuples.push(tuple);
    }
    for offset in offsets {
        bytes.point(offset, LpFlags::Normal, HASH_ENTRY_BYTES);
    }
    bytes.put_together(Header::default())
}
