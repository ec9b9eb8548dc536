//! The bytes of a hash index's page, so far as they are known.
//!
//! Tuples lie in the order of their row versions, as a build leaves them, or of their codes, as a
//! split does; their line pointers in that of their codes.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::decode::LpFlags;
use pgheadroom_layout::decode::hash::{BucketPage, HashPage, Metapage};

use super::{Header, PageBytes};
use crate::hash_index::HashIndex;

/// Source: `HASH_MAGIC` and `HASH_VERSION`, src/include/access/hash.h.
const MAGIC: [u32; 2] = [0x0644_0640, 4];
/// Bytes of the bitmap that fit on a page, those of a page of it, and its bits as a power of 2.
const BITMAP: [u16; 3] = [8152, 4096, 15];
/// Bytes of the metapage's data and where its arrays begin in it.
const META_BYTES: usize = 4544;
const MAP_BYTES: u32 = 4096;
const ENTRY_BYTES: u32 = 16;
const PAGE_ID: u16 = 0xFF80;
/// Source: `INDEX_MOVED_BY_SPLIT_MASK`, src/include/access/hash.h.
const MOVED_BY_SPLIT: u16 = 0x2000;
const NONE: u32 = u32::MAX;

/// Flags of a page. Source: `LH_OVERFLOW_PAGE` and those that follow, src/include/access/hash.h.
const OVERFLOW: u16 = 1;
const BUCKET: u16 = 2;
const MAP: u16 = 4;
const META: u16 = 8;

/// A page without its hole.
pub(super) fn hash_page(index: &HashIndex, block: BlockNumber) -> Vec<u8> {
    match index.decoded(block.0) {
        HashPage::Unused => of_contents(&[], [NONE; 3], 0),
        HashPage::Meta(meta) => of_contents(&metapage(&meta), [NONE; 3], META),
        HashPage::Bitmap(free) => {
            let mut words = vec![0xFF; MAP_BYTES as usize];
            for bit in free {
                words[(bit / 8) as usize] &= !(1_u8 << (bit % 8));
            }
            of_contents(&words, [NONE; 3], MAP)
        }
        HashPage::Bucket(page) => bucket(&page, index.is_of_split(block.0)),
    }
}

/// Source: `HashPageOpaqueData`, src/include/access/hash.h.
fn special(blocks: [u32; 3], flags: u16) -> Vec<u8> {
    let blocks = blocks.iter().flat_map(|block| block.to_le_bytes());
    let rest = [flags, PAGE_ID].map(u16::to_le_bytes).concat();
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
    bytes.resize(META_BYTES, 0);
    bytes
}

fn bucket(page: &BucketPage, is_of_split: bool) -> Vec<u8> {
    let flags = if page.previous.is_some() {
        OVERFLOW
    } else {
        BUCKET
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
        let mut tuple = Vec::with_capacity(ENTRY_BYTES as usize);
        #[allow(clippy::cast_possible_truncation)] // the halves of a block's number
        for half in [(block >> 16) as u16, block as u16, row.offset.0, info] {
            tuple.extend(half.to_le_bytes());
        }
        tuple.extend(code.to_le_bytes());
        tuple.resize(ENTRY_BYTES as usize, 0);
        bytes.upper -= ENTRY_BYTES;
        offsets[at] = bytes.upper;
        bytes.tuples.push(tuple);
    }
    for offset in offsets {
        bytes.point(offset, LpFlags::Normal, ENTRY_BYTES);
    }
    bytes.put_together(Header::default())
}
