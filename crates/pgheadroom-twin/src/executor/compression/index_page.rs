//! The bytes of a B-tree page, so far as they are known.
//!
//! Keys have the bytes of their values; INCLUDE columns have digits that do not repeat, the second
//! half of a uuid bytes. Tuples lie in the order of their keys, as a split leaves them.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::decode::LpFlags;
use pgheadroom_layout::flags::{
    BT_IS_POSTING, BT_PIVOT_HEAP_TID_ATTR, BTP_LEAF, BTP_ROOT, INDEX_ALT_TID_MASK, INDEX_NULL_MASK,
    INDEX_VAR_MASK,
};
use pgheadroom_layout::index_tuple::{
    SIZE_OF_INDEX_ATTRIBUTE_BITMAP, SIZE_OF_INDEX_TUPLE_HEADER, TOAST_INDEX_TARGET,
};

use super::{Header, PageBytes, tid};
use crate::btree::{BtreePage, Item, NULL_FIRST, NULL_LAST, has_null};
use crate::executor::index::{Index, Part};
use crate::page::Tid;
use crate::row::Texts;
use crate::row::kind::Kind;
use crate::text::Text;

/// A B-tree page without its hole; `texts` are those of its table.
pub(super) fn index_page(
    index: &Index,
    texts: &Texts,
    block: BlockNumber,
    has_checksum: bool,
) -> Vec<u8> {
    let page = index.tree.page(block);
    let mut bytes = PageBytes::with_special(&special(page));
    for (position, item) in page.items().enumerate() {
        let flags = if item.is_dead() {
            LpFlags::Dead
        } else {
            LpFlags::Normal
        };
        bytes.add(
            index_tuple(index, texts, page, position),
            flags,
            item.bytes(),
        );
    }
    bytes.put_together(Header {
        has_checksum, // of the build, which wrote the page past the buffers
        ..Header::default()
    })
}

/// Source: `BTPageOpaqueData`, src/include/access/nbtree.h.
fn special(page: &BtreePage) -> Vec<u8> {
    let (prev, next) = page.siblings();
    let block = |sibling: Option<BlockNumber>| sibling.map_or([0; 4], |of| of.0.to_le_bytes());
    let flags = u16::from(page.is_leaf()) * BTP_LEAF + u16::from(page.is_root()) * BTP_ROOT;
    let numbers = [block(prev), block(next), page.level().to_le_bytes()];
    let mut bytes = numbers.concat();
    bytes.extend(u32::from(flags).to_le_bytes());
    bytes
}

fn index_tuple(index: &Index, texts: &Texts, page: &BtreePage, position: usize) -> Vec<u8> {
    let item = page.item(position);
    let is_pivot = !page.is_leaf() || position < page.first_data();
    let kept = if is_pivot {
        usize::from(item.kept_columns())
    } else {
        index.keys.len()
    };
    let key = &page.key(position)[..kept];
    let info = u16::try_from(item.bytes()).unwrap_or(0)
        | (u16::from(is_pivot || item.is_posting()) * INDEX_ALT_TID_MASK)
        | (u16::from(index.keys[..kept].iter().any(|part| part.width.is_none())) * INDEX_VAR_MASK)
        | (u16::from(has_null(key)) * INDEX_NULL_MASK);
    let mut bytes = own_tid(item, is_pivot).to_vec();
    bytes.extend(info.to_le_bytes());
    write_key(&index.keys, key, texts, &mut bytes);
    let base_bytes = usize::from(item.base_bytes());
    if index.has_includes() && !is_pivot {
        let seed = item
            .tid()
            .map_or(0, |at| u64::from(at.block.0) << 16 | u64::from(at.offset.0));
        write_digits(seed, base_bytes, &mut bytes);
    }
    bytes.resize(base_bytes, 0);
    if is_pivot {
        if let Some(at) = item.tid() {
            bytes.truncate(base_bytes - tid(at).len());
            bytes.extend(tid(at));
        }
    } else if item.is_posting() {
        bytes.extend(item.each_tid().flat_map(tid));
    }
    bytes.resize(item.bytes() as usize, 0);
    bytes
}

/// What the tuple's header has in the place of a TID.
///
/// Source: `BTreeTupleSetNAtts` and `BTreeTupleSetPosting`, src/include/access/nbtree.h.
fn own_tid(item: Item<'_>, is_pivot: bool) -> [u8; 6] {
    let (block, offset) = if is_pivot {
        let has_tid = u16::from(item.tid().is_some()) * BT_PIVOT_HEAP_TID_ATTR;
        (item.child().0, u16::from(item.kept_columns()) | has_tid)
    } else if item.is_posting() {
        let count = u16::try_from(item.tid_count()).unwrap_or(0);
        (u32::from(item.base_bytes()), count | BT_IS_POSTING)
    } else {
        return item.tid().map_or([0; 6], tid);
    };
    tid(Tid {
        block: BlockNumber(block),
        offset: pgheadroom_layout::OffsetNumber(offset),
    })
}

/// The bitmap of NULLs and the values, behind the header.
///
/// Source: `index_form_tuple`, src/backend/access/common/indextuple.c (REL_18_STABLE).
fn write_key(parts: &[Part], key: &[i64], texts: &Texts, out: &mut Vec<u8>) {
    let is_null = |code: i64| code == NULL_FIRST || code == NULL_LAST;
    if has_null(key) {
        let bits = key.iter().rev();
        let bitmap = bits.fold(0_u32, |bits, &code| bits << 1 | u32::from(!is_null(code)));
        out.extend(bitmap.to_le_bytes());
        let header = SIZE_OF_INDEX_TUPLE_HEADER + SIZE_OF_INDEX_ATTRIBUTE_BITMAP;
        out.resize(maxalign(header) as usize, 0);
    }
    for (part, &code) in parts.iter().zip(key) {
        if !is_null(code) {
            part.write(code, texts, out);
        }
    }
}

impl Part {
    /// The value of a code, its length header included.
    fn write(&self, code: i64, texts: &Texts, out: &mut Vec<u8>) {
        let align =
            |out: &mut Vec<u8>| out.resize(out.len().next_multiple_of(self.align as usize), 0);
        let payload = self.payload(self.directed(code));
        if let Some(width) = self.width {
            align(out);
            let end = out.len() + width as usize;
            out.extend(payload);
            out.resize(end, 0);
            return;
        }
        let length = u32::try_from(payload.len()).unwrap_or(0);
        let is_long = length + 4 > TOAST_INDEX_TARGET;
        let text = is_long.then(|| Text::from_bytes(&payload));
        let shrunk = text.and_then(|text| Some((self.compressed(&text, texts)?, text)));
        if let Some((shrunk, text)) = shrunk {
            align(out);
            let stored = u32::try_from(shrunk.len()).unwrap_or(0) + 8;
            out.extend((stored << 2 | 2).to_le_bytes());
            out.extend(
                texts
                    .compression_header(&text, self.compression)
                    .to_le_bytes(),
            );
            out.extend(shrunk);
        } else if let Some(short) = u8::try_from(length + 1).ok().filter(|&short| short <= 0x7f) {
            out.push(short << 1 | 1);
            out.extend(payload);
        } else {
            align(out);
            out.extend(((length + 4) << 2).to_le_bytes());
            out.extend(payload);
        }
    }

    /// The value's bytes; of strings those that it is ordered by, with the blanks of a bpchar.
    fn payload(&self, code: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(order) = &self.order {
            bytes.extend_from_slice(order.text_of(code).unwrap_or_default());
            if let Kind::Padded {
                length: Some(length),
            } = self.kind
            {
                bytes.resize(bytes.len().max(length as usize), b' ');
            }
        } else if self.kind.is_kept() {
            // A uuid: its code is its first half.
            bytes.extend((code.cast_unsigned() ^ 1 << 63).to_be_bytes());
            write_random(
                code.cast_unsigned(),
                self.width.unwrap_or(0) as usize,
                &mut bytes,
            );
        } else {
            let slot = self.plain_code(code);
            self.kind.write_number(self.width, slot, &mut bytes);
        }
        bytes
    }
}

/// Digits that do not repeat, up to so many bytes.
fn write_digits(seed: u64, end: usize, out: &mut Vec<u8>) {
    let begin = out.len();
    write_random(seed, end, out);
    for byte in &mut out[begin..] {
        *byte = b"0123456789abcdef"[usize::from(*byte >> 4)];
    }
}

/// The same with bytes of any value.
fn write_random(seed: u64, end: usize, out: &mut Vec<u8>) {
    let mut state = seed;
    while out.len() < end {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        out.push(state.to_be_bytes()[0]);
    }
}
