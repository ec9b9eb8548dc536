//! Tests of the free space map.

use super::*;
use proptest::prelude::*;

fn ignore(_: BlockNumber) {}

/// Rounded down when recorded, up when needed; so up to 62 bytes of real room are not found.
#[test]
fn categories() {
    assert_eq!(available_category(8160), 255);
    assert_eq!(available_category(8159), 254);
    assert_eq!(available_category(63), 1);
    assert_eq!(needed_category(0), 1);
    assert_eq!(needed_category(33), 2);
    assert_eq!(needed_category(8160), 255);
}

/// The fork of N heap pages has 3 + (N - 1) / 4069 pages; golden G1's figures.
#[test]
fn fork_sizes() {
    for (heap_pages, fork_pages) in [
        (1, 3),
        (4069, 3),
        (4070, 4),
        (13_334, 6),
        (16_667, 7),
        (21_277, 8),
        (27_028, 9),
    ] {
        let mut map = FreeSpaceMap::default();
        assert_eq!(map.page_count(), 0);
        map.record(BlockNumber(heap_pages - 1), 100, &mut ignore);
        assert_eq!(map.page_count(), fork_pages, "{heap_pages}");
    }
    // The 4070th page of the lowest level lies behind a second page of the middle one.
    let far = Address {
        level: 0,
        number: SLOTS_PER_PAGE,
    };
    assert_eq!(far.physical(), SLOTS_PER_PAGE + 3);
}

/// What is recorded is found only after the upper levels know it.
#[test]
fn increases_are_hidden_until_vacuum() {
    let mut map = FreeSpaceMap::default();
    assert_eq!(map.get(100, &mut ignore), None);
    map.record(BlockNumber(7), 4000, &mut ignore);
    assert_eq!(map.get(100, &mut ignore), None);
    map.vacuum(BlockNumber(0), None, &mut ignore);
    assert_eq!(map.get(100, &mut ignore), Some(BlockNumber(7)));
}

/// A failed search corrects the levels above: the three pages that the seed experiment dirties.
#[test]
fn failed_search_corrects_upwards() {
    let mut map = FreeSpaceMap::default();
    map.record(BlockNumber(1333), 2756, &mut ignore);
    map.vacuum(BlockNumber(0), None, &mut ignore);
    let mut dirty = Vec::new();
    let mut log = |block: BlockNumber| dirty.push(block.0);
    assert_eq!(
        map.record_and_get(BlockNumber(1333), 92, 104, &mut log),
        None
    );
    assert_eq!(dirty, [2, 1, 0]);
    dirty.clear();
    let mut log = |block: BlockNumber| dirty.push(block.0);
    assert_eq!(
        map.record_and_get(BlockNumber(1334), 60, 104, &mut log),
        None
    );
    assert_eq!(dirty, [2]);
}

/// Searches advance, so that sessions spread over the table, and wrap around.
#[test]
fn searches_advance_and_wrap() {
    let mut map = FreeSpaceMap::default();
    for block in [3, 9, 4068] {
        map.record(BlockNumber(block), 1000, &mut ignore);
    }
    map.vacuum(BlockNumber(0), None, &mut ignore);
    let found: Vec<_> = (0..4)
        .map(|_| map.get(500, &mut ignore).unwrap().0)
        .collect();
    assert_eq!(found, [3, 9, 4068, 3]);
    map.vacuum(BlockNumber(0), None, &mut ignore);
    assert_eq!(map.get(500, &mut ignore), Some(BlockNumber(3)));
}

/// A vacuum of a range leaves what lies outside it alone.
#[test]
fn vacuum_of_a_range() {
    let mut map = FreeSpaceMap::default();
    map.record(BlockNumber(1), 1000, &mut ignore);
    map.record(BlockNumber(5000), 1000, &mut ignore);
    map.vacuum(BlockNumber(4999), Some(BlockNumber(5001)), &mut ignore);
    assert_eq!(map.get(500, &mut ignore), Some(BlockNumber(5000)));
    map.vacuum(BlockNumber(10), Some(BlockNumber(10)), &mut ignore);
    map.record(BlockNumber(5000), 0, &mut ignore);
    assert_eq!(map.get(500, &mut ignore), None);
}

proptest! {
    /// Every node is the larger of its children, and a search finds a slot iff there is one,
    /// the first to the right of `next`.
    #[test]
    fn page_against_a_plain_list(
        writes in proptest::collection::vec((0..SLOTS_PER_PAGE, 0_u8..=255), 1..60),
        next in 0..SLOTS_PER_PAGE + 1,
        category in 1_u8..=255,
    ) {
        let mut page = FsmPage::zeroed();
        let mut plain = vec![0_u8; SLOTS_PER_PAGE];
        for (slot, value) in writes {
            let changed = plain[slot] != value;
            plain[slot] = value;
            prop_assert_eq!(page.set_slot(slot, value), changed);
        }
        for node in 0..NON_LEAF_NODES {
            let larger = page.child_or_zero(2 * node + 1).max(page.child_or_zero(2 * node + 2));
            prop_assert_eq!(page.nodes[node], larger);
        }
        page.next = next;
        let start = if next < SLOTS_PER_PAGE { next } else { 0 };
        let expected = (start..SLOTS_PER_PAGE).chain(0..start).find(|&s| plain[s] >= category);
        prop_assert_eq!(page.search(category, true), expected);
    }

    /// The map against a plain list: what is found has room, and after a vacuum something is found
    /// whenever there is any, on tables of several pages of the map and after they were cut.
    #[test]
    fn map_against_a_plain_list(
        steps in proptest::collection::vec((0..4_u8, 0..3 * 4069_u32, 0..8160_u32), 1..60),
    ) {
        let mut map = FreeSpaceMap::default();
        let mut plain = vec![0_u8; 3 * SLOTS_PER_PAGE];
        let mut is_current = true;
        for (what, block, bytes) in steps {
            let found = match what {
                0 | 1 => {
                    map.record(BlockNumber(block), bytes, &mut ignore);
                    plain[block as usize] = available_category(bytes);
                    is_current = false;
                    None
                }
                2 => {
                    map.truncate(block);
                    plain[block as usize..].fill(0);
                    map.vacuum(BlockNumber(block), None, &mut ignore);
                    None
                }
                _ => {
                    if bytes % 2 == 0 {
                        map.vacuum(BlockNumber(0), None, &mut ignore);
                        is_current = true;
                    }
                    let found = map.get(bytes, &mut ignore);
                    let largest = plain.iter().max().copied().unwrap_or(0);
                    let there_is_room = largest >= needed_category(bytes);
                    prop_assert!(!is_current || found.is_some() == there_is_room);
                    found
                }
            };
            if let Some(found) = found {
                prop_assert!(plain[found.0 as usize] >= needed_category(bytes));
            }
            prop_assert_eq!(map.recorded(BlockNumber(block)), plain[block as usize]);
        }
    }
}
