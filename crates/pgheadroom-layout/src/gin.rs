//! GIN indexes: constants of their pages, and how posting lists are packed.
//!
//! ```text
//! posting list   first TID (6) | bytes (2) | differences, 7 bits a byte | padding to 2
//! code of a TID  block << 11 | offset; a difference of two has 1 to 7 bytes
//! ```
//!
//! Source: src/include/access/ginblock.h; src/backend/access/gin/ginpostinglist.c
//! (REL_15_STABLE, REL_18_STABLE).

use crate::align::MAXIMUM_ALIGNOF;
use crate::page::{BLCKSZ, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER};
use crate::{BlockNumber, OffsetNumber};

/// Bytes at the end of each page. Source: `GinPageOpaqueData`.
pub const SIZE_OF_GIN_PAGE_OPAQUE: u32 = 8;
/// Bytes of the metapage's data. Source: `GinMetaPageData`.
pub const SIZE_OF_GIN_META_PAGE: u32 = 56;
/// `ginVersion` of indexes of 9.4 and later. Source: `GIN_CURRENT_VERSION`.
pub const GIN_CURRENT_VERSION: u32 = 2;
/// `flags`: of a posting tree.
pub const GIN_DATA: u16 = 1;
/// `flags`: a leaf.
pub const GIN_LEAF: u16 = 1 << 1;
/// `flags`: free, or to become so.
pub const GIN_DELETED: u16 = 1 << 2;
/// `flags`: the metapage.
pub const GIN_META: u16 = 1 << 3;
/// `flags`: of the pending list.
pub const GIN_LIST: u16 = 1 << 4;
/// `flags`: a page of the pending list at which a row ends.
pub const GIN_LIST_FULLROW: u16 = 1 << 5;
/// `flags`: a leaf of a posting tree with packed lists, as all are from 9.4 on.
pub const GIN_COMPRESSED: u16 = 1 << 7;
/// Block of the entry tree's root. Source: `GIN_ROOT_BLKNO`.
pub const GIN_ROOT_BLKNO: u32 = 1;
/// What a leaf entry has for the number of its TIDs if they are in a posting tree.
pub const GIN_TREE_POSTING: u16 = 0xffff;
/// Most bytes of an entry. Source: `GinMaxItemSize`.
pub const GIN_MAX_ITEM_SIZE: u32 = (BLCKSZ
    - (SIZE_OF_PAGE_HEADER + 3 * SIZE_OF_ITEM_ID).next_multiple_of(MAXIMUM_ALIGNOF)
    - SIZE_OF_GIN_PAGE_OPAQUE)
    / 3
    / MAXIMUM_ALIGNOF
    * MAXIMUM_ALIGNOF;
/// Bytes before a posting tree page's data: its right bound, aligned.
pub const SIZE_OF_RIGHT_BOUND: u32 = 8;
/// Bytes of data that a posting tree's page has room for. Source: `GinDataPageMaxDataSize`.
pub const GIN_DATA_PAGE_MAX_DATA_SIZE: u32 =
    BLCKSZ - SIZE_OF_PAGE_HEADER - SIZE_OF_RIGHT_BOUND - SIZE_OF_GIN_PAGE_OPAQUE;
/// Bytes of items that a page of entries or of the pending list has room for.
/// Source: `GinListPageSize`.
pub const GIN_LIST_PAGE_SIZE: u32 = BLCKSZ - SIZE_OF_PAGE_HEADER - SIZE_OF_GIN_PAGE_OPAQUE;
/// Bytes of an item of an inner page of a posting tree. Source: `PostingItem`.
pub const SIZE_OF_POSTING_ITEM: u32 = 10;
/// Most, wanted and fewest bytes of a list on a posting tree's leaf.
///
/// Source: `GinPostingListSegmentMaxSize` and the like, src/backend/access/gin/gindatapage.c.
pub const SEGMENT_MAX_SIZE: u32 = 384;
/// See [`SEGMENT_MAX_SIZE`].
pub const SEGMENT_TARGET_SIZE: u32 = 256;
/// See [`SEGMENT_MAX_SIZE`].
pub const SEGMENT_MIN_SIZE: u32 = 128;
/// Bytes of a TID. Source: `ItemPointerData`, src/include/storage/itemptr.h.
pub const SIZE_OF_ITEM_POINTER: u32 = 6;

/// Bytes of a posting list before its differences. Source: `GinPostingList`.
const LIST_HEAD: u32 = 8;
/// Source: `MaxHeapTuplesPerPageBits`.
const OFFSET_BITS: u32 = 11;

/// The number of a TID whose differences are stored.
///
/// Source: `itemptr_to_uint64`.
#[must_use]
pub const fn code(block: BlockNumber, offset: OffsetNumber) -> u64 {
    (block.0 as u64) << OFFSET_BITS | offset.0 as u64
}

/// Bytes of a difference. Source: `encode_varbyte`.
const fn varbyte_bytes(difference: u64) -> u32 {
    let bits = u64::BITS - difference.leading_zeros();
    let bytes = bits.div_ceil(7);
    if bytes == 0 { 1 } else { bytes }
}

/// How many of these TIDs, by their ascending codes, a list of so many bytes has, and its bytes.
///
/// Source: `ginCompressPostingList` and `SizeOfGinPostingList`.
#[must_use]
pub fn packed(codes: impl Iterator<Item = u64>, max_bytes: u32) -> (usize, u32) {
    let room = max_bytes / 2 * 2 - LIST_HEAD;
    let mut codes = codes.into_iter();
    let Some(mut previous) = codes.next() else {
        return (0, 0);
    };
    let (mut count, mut used) = (1, 0);
    for code in codes {
        let bytes = varbyte_bytes(code - previous);
        if used + bytes > room {
            break;
        }
        used += bytes;
        count += 1;
        previous = code;
    }
    (count, LIST_HEAD + used.next_multiple_of(2))
}

/// The list itself.
#[must_use]
pub fn list_bytes(tids: &[(BlockNumber, OffsetNumber)]) -> Vec<u8> {
    let Some(&(block, offset)) = tids.first() else {
        return Vec::new();
    };
    let mut differences = Vec::new();
    for pair in tids.windows(2) {
        let [one, two] = [pair[0], pair[1]].map(|(block, offset)| code(block, offset));
        let mut left = two - one;
        while left > 0x7F {
            differences.push(0x80 | (left & 0x7F) as u8);
            left >>= 7;
        }
        #[allow(clippy::cast_possible_truncation)] // 7 bits
        differences.push(left as u8);
    }
    let mut bytes = item_pointer(block, offset).to_vec();
    bytes.extend(
        u16::try_from(differences.len())
            .unwrap_or(u16::MAX)
            .to_le_bytes(),
    );
    bytes.extend(differences);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes
}

/// A TID as it is stored: the block's high half first.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // the halves of a block's number
pub fn item_pointer(block: BlockNumber, offset: OffsetNumber) -> [u8; 6] {
    let halves = [(block.0 >> 16) as u16, block.0 as u16, offset.0];
    let bytes = halves.map(u16::to_le_bytes).concat();
    bytes.try_into().expect("three halves")
}

/// Reads a list that begins here: its TIDs and its bytes; `None` when it does not fit in.
#[must_use]
pub fn unpacked(bytes: &[u8]) -> Option<(Vec<(BlockNumber, OffsetNumber)>, usize)> {
    let half = |at: usize| Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let block = u32::from(half(0)?) << 16 | u32::from(half(2)?);
    let offset = half(4)?;
    let length = usize::from(half(6)?);
    let head = LIST_HEAD as usize;
    let mut tids = vec![(BlockNumber(block), OffsetNumber(offset))];
    let mut last = code(BlockNumber(block), OffsetNumber(offset));
    let (mut difference, mut shift) = (0_u64, 0_u32);
    for &byte in bytes.get(head..head + length)? {
        if shift > 42 {
            return None;
        }
        difference |= u64::from(byte & 0x7F) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            last = last.checked_add(difference)?;
            let block = u32::try_from(last >> OFFSET_BITS).ok()?;
            let offset = u16::try_from(last & ((1 << OFFSET_BITS) - 1)).ok()?;
            tids.push((BlockNumber(block), OffsetNumber(offset)));
            (difference, shift) = (0, 0);
        }
    }
    let end = head + length.next_multiple_of(2);
    (shift == 0 && end <= bytes.len()).then_some((tids, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tids(codes: &[(u32, u16)]) -> Vec<(BlockNumber, OffsetNumber)> {
        let one = |&(block, offset): &(u32, u16)| (BlockNumber(block), OffsetNumber(offset));
        codes.iter().map(one).collect()
    }

    /// What is packed has the size that is foreseen, and is read back.
    #[test]
    fn lists_are_as_long_as_foreseen() {
        for step in [1_u32, 7, 300, 70_000, 4_000_000] {
            let all = (0..200_u16).map(|at| (u32::from(at) * step / 7, at + 1));
            let all = tids(&all.collect::<Vec<_>>());
            let codes = || all.iter().map(|&(block, offset)| code(block, offset));
            for most in [40, 385, 2712] {
                let (count, bytes) = packed(codes(), most);
                let list = list_bytes(&all[..count]);
                assert_eq!(list.len(), bytes as usize, "{step} {most}");
                assert!(bytes <= most && count <= all.len());
                assert_eq!(unpacked(&list), Some((all[..count].to_vec(), list.len())));
            }
        }
    }

    /// A list that ends in the middle, or of too long a difference, is none.
    #[test]
    fn broken_lists() {
        let list = list_bytes(&tids(&[(0, 1), (9, 9)]));
        assert_eq!(unpacked(&list[..list.len() - 2]), None);
        assert_eq!(unpacked(&[0, 0, 0, 0, 1, 0, 1, 0, 0x80, 0]), None);
        let long = [
            0, 0, 0, 0, 1, 0, 8, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        ];
        assert_eq!(unpacked(&long), None);
    }

    /// Sizes that PostgreSQL's macros have at 8 kB.
    #[test]
    fn sizes() {
        assert_eq!(GIN_MAX_ITEM_SIZE, 2712);
        assert_eq!(GIN_DATA_PAGE_MAX_DATA_SIZE, 8152);
        assert_eq!(GIN_LIST_PAGE_SIZE, 8160);
    }
}
