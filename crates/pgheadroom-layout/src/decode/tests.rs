use proptest::prelude::*;

use super::btree::{BtreePage, ItemKind};
use super::gin::GinPage;
use super::hash::HashPage;
use super::heap::{HeapItem, HeapPage};
use super::map::{FsmPage, decode_vm_page};
use super::*;
use crate::gin::unpacked;
use crate::{OffsetNumber, places};

/// A page with these line pointers as (off, flags, len), its items already in place.
fn page(lower: u16, upper: u16, special: u16, words: &[(u32, u32, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    for (at, value) in [(12, lower), (14, upper), (16, special), (18, 8196)] {
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    for (n, (off, flags, len)) in words.iter().enumerate() {
        let word = off | flags << 15 | len << 17;
        bytes[24 + 4 * n..28 + 4 * n].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The fields of a page written by hand, from every kind of line pointer.
#[test]
fn heap_page_by_hand() {
    let ids = [(8160, 1, 28), (1, 2, 0), (0, 3, 0), (0, 0, 0)];
    let mut bytes = page(40, 8160, 8192, &ids);
    bytes[10] = 3;
    bytes[20] = 77;
    let tuple = &mut bytes[8160..];
    tuple[0] = 9; // xmin
    tuple[4] = 77; // xmax
    tuple[14] = 2; // block 2
    tuple[16] = 5; // offset 5
    tuple[18..20].copy_from_slice(&0x4003_u16.to_le_bytes());
    tuple[20..22].copy_from_slice(&0x0300_u16.to_le_bytes());
    tuple[22] = 24;
    let decoded = HeapPage::decode(0, &bytes).unwrap();
    let HeapItem::Normal(tuple) = decoded.items[0] else {
        panic!("a tuple");
    };
    assert_eq!((tuple.natts(), tuple.xmin, tuple.xmax), (3, 9, 77));
    assert!(tuple.is_hot_updated() && tuple.is_frozen() && !tuple.is_heap_only());
    assert!(!tuple.is_xmin_invalid() && !tuple.is_locked_only());
    assert_eq!(decoded.items[1], HeapItem::Redirect(OffsetNumber(1)));
    assert_eq!(decoded.items[2..], [HeapItem::Dead, HeapItem::Unused]);
    let text = places::heap_texts(&[places::HeapPage::from(&decoded)]).concat();
    assert_eq!(
        text,
        "page 0 lower=40 upper=8160 flags=free-lines,full prune=1\n \
         1 normal len=28 xmin=0 xmax=1 ctid=(2,5) frozen,hot-updated\n \
         2 redirect 1\n 3 dead\n 4 unused\n"
    );
}

/// A page of zeros is one that was never initialised, of every kind.
#[test]
fn pages_of_zeros() {
    let zeros = vec![0; PAGE];
    assert_eq!(HeapPage::decode(7, &zeros).unwrap().header, None);
    assert_eq!(BtreePage::decode(7, &zeros), Ok(BtreePage::New));
    assert_eq!(FsmPage::decode(7, &zeros).unwrap().slots().len(), 4069);
    assert_eq!(decode_vm_page(7, &zeros).unwrap().len(), 32_672);
}

/// Bits of the visibility map: two for a page, the lowest first.
#[test]
fn visibility_bits() {
    let mut bytes = page(24, 8192, 8192, &[]);
    bytes[24] = 0b0011_0100;
    let bits = decode_vm_page(0, &bytes).unwrap();
    assert_eq!(places::vm_text(0, &bits), "page 0 1-1:visible 2-2:frozen\n");
}

/// A posting list, a plain tuple and the high key of a leaf.
#[test]
fn leaf_by_hand() {
    let ids = [(8160, 1, 16), (8136, 3, 24), (8120, 1, 16)];
    let mut bytes = page(36, 8120, 8176, &ids);
    bytes[8176 + 4] = 9; // btpo_next
    bytes[8176 + 12] = 1; // leaf
    bytes[8160..8168].copy_from_slice(&[0, 0, 0, 0, 1, 0, 16, 0x20]); // one column kept
    bytes[8136..8144].copy_from_slice(&[0, 0, 12, 0, 2, 0x20, 24, 0x20]); // two TIDs at 12
    bytes[8148..8154].copy_from_slice(&[0, 0, 3, 0, 1, 0]);
    bytes[8154 + 2] = 4;
    bytes[8154 + 4] = 2;
    bytes[8120..8128].copy_from_slice(&[0, 0, 5, 0, 6, 0, 16, 0]);
    let decoded = BtreePage::decode(3, &bytes).unwrap();
    let text = places::btree_text(3, &places::BtreePage::of_decoded(&decoded, 1));
    assert_eq!(
        text,
        "page 3 level=0 flags=- prev=0 next=9 free=8084\n \
         1 len=16 high natts=1 tid=-\n 2 len=24 (3,1)(4,2) dead\n 3 len=16 (5,6)\n"
    );
    let BtreePage::Tree(tree) = decoded else {
        panic!("a page of the tree");
    };
    assert!(matches!(tree.items[1].kind, ItemKind::Posting(_)));
}

/// The error names page, byte, what was found and what was expected.
#[test]
fn errors_name_the_place() {
    let error = HeapPage::decode(5, &[0; 100]).unwrap_err();
    assert_eq!(error.to_string(), "page 5: 100 bytes, expected 8192");
    let bytes = page(28, 8000, 8192, &[(7999, 1, 50)]);
    let error = HeapPage::decode(5, &bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "page 5, byte 24: lp_off is 7999, expected a multiple of 8 from pd_upper, 8000"
    );
    let bytes = page(28, 8168, 8192, &[(8168, 1, 60)]);
    let error = HeapPage::decode(6, &bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "page 6, byte 24: lp_len is 60, expected 23 to 24"
    );
}

/// A file that ends within a page is refused; whole pages are numbered from 0.
#[test]
fn files_have_whole_pages() {
    let numbers: Vec<u32> = pages_of(&[0; 3 * PAGE]).unwrap().map(|(n, _)| n).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert!(pages_of(&[0; PAGE + 1]).is_err());
}

/// Decodes by every reader; none may panic.
fn decode_all(bytes: &[u8]) {
    let _ = HeapPage::decode(1, bytes).map(|page| places::HeapPage::from(&page));
    let _ = BtreePage::decode(1, bytes).map(|page| places::BtreePage::of_decoded(&page, 1));
    let _ = GinPage::decode(1, bytes).map(|page| places::gin_text(1, &page));
    let _ = HashPage::decode(1, bytes).map(|page| places::hash_text(1, &page));
    let _ = FsmPage::decode(1, bytes);
    let _ = decode_vm_page(1, bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Arbitrary bytes behind an arbitrary but plausible header never panic.
    #[test]
    fn foreign_bytes_never_panic(
        seed in any::<u64>(),
        lower in 20_u16..400,
        upper in 0_u16..=8193,
        special in prop::sample::select(vec![0_u16, 100, 8160, 8176, 8184, 8192, 9000]),
        flags in any::<u16>(),
        // Of entries (0, 2), a posting tree (1, 131), the metapage and the pending list.
        gin_flags in prop::sample::select(vec![0_u16, 2, 1, 131, 8, 16]),
    ) {
        let mut state = seed | 1;
        let mut bytes: Vec<u8> = (0..PAGE).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        }).collect();
        decode_all(&bytes);
        let header = page(lower & !3, upper, special, &[]);
        bytes[12..20].copy_from_slice(&header[12..20]);
        decode_all(&bytes);
        // Line pointers that lead somewhere, so that items are read as well.
        for n in 0..usize::from(lower / 4) {
            let at = 24 + 4 * n;
            let off = (u32::from(upper) + 8 * u32::from(bytes[at])) & 0x7FF8;
            let word = off | (u32::from(bytes[at + 1]) & 3) << 15 | u32::from(bytes[at + 2]) << 17;
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[8176 + 12..8176 + 14].copy_from_slice(&flags.to_le_bytes());
        decode_all(&bytes);
        bytes[8184 + 6..8192].copy_from_slice(&gin_flags.to_le_bytes());
        decode_all(&bytes);
    }

    /// Arbitrary bytes are a packed list within them, or none.
    #[test]
    fn foreign_posting_lists(
        mut bytes in prop::collection::vec(any::<u8>(), 0..60),
        length in 0_u8..60,
    ) {
        if let Some(found) = bytes.get_mut(6..8) {
            found.copy_from_slice(&[length, 0]);
        }
        if let Some((tids, end)) = unpacked(&bytes) {
            prop_assert!(!tids.is_empty() && end <= bytes.len());
        }
    }
}
