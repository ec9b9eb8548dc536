//! Sizes of records against the goldens.

use super::*;
use crate::version::{Behaviour, PgVersion};
use proptest::prelude::*;

const CHANGE: Page = Page::Change;

fn behaviour(major: u16) -> Behaviour {
    PgVersion::new(major, 4).unwrap().behaviour()
}

/// The physics' table of sizes, row by row.
#[test]
fn table_of_sizes() {
    assert_eq!(heap_insert(104, CHANGE, None), 135);
    assert_eq!(heap_insert(28, CHANGE, None), 59);
    assert_eq!(heap_update_cross_page(104, CHANGE, CHANGE, [None; 2]), 154);
    assert_eq!(heap_update_cross_page(168, CHANGE, CHANGE, [None; 2]), 218);
    assert_eq!(heap_delete(CHANGE, None), 54);
    assert_eq!(heap_lock(CHANGE, None), 54);
    assert_eq!(heap_confirm(CHANGE), 48);
    assert_eq!(heap_visible(CHANGE, CHANGE), 59);
    assert_eq!(btree_insert_leaf(16, CHANGE), 64);
    assert_eq!(btree_insert_post(16, CHANGE), 66);
    assert_eq!(btree_insert_upper(16, CHANGE, CHANGE), 72);
    for (major, first, split) in [(13, 102, 134), (14, 90, 122), (18, 90, 122)] {
        assert_eq!(btree_first_root(&behaviour(major)), first);
        assert_eq!(btree_new_root(&behaviour(major), 16, CHANGE), split);
    }
    let one = LeafDeletion {
        deleted: 1,
        ..LeafDeletion::default()
    };
    assert_eq!(btree_vacuum(one, CHANGE), 52);
    assert_eq!(btree_mark_page_halfdead(CHANGE), 74);
    assert_eq!(btree_unlink_page(None, CHANGE), 90);
    assert_eq!(btree_unlink_page(Some(CHANGE), CHANGE), 98);
    assert_eq!(btree_meta_cleanup(&behaviour(18)), 72);
    assert_eq!(fpi_for_hint(CHANGE), 44);
    assert_eq!(fpi_for_hint(Page::Image(Image::plain(0))), 8241);
}

/// Prune, cleanup and freeze records differ in every format.
#[test]
fn cleaning_records_by_version() {
    let dead = PageCleaning {
        dead: 1,
        has_conflict_horizon: true,
        ..PageCleaning::default()
    };
    let freeze = PageCleaning {
        frozen: 75,
        freeze_plans: 1,
        has_conflict_horizon: true,
        ..PageCleaning::default()
    };
    for (major, prune, cleanup, freeze_only) in [
        (13, 56, 56, Some(952)),
        (14, 56, 50, Some(952)),
        (15, 56, 50, Some(952)),
        (16, 57, 50, Some(215)),
        (17, 56, 52, None),
        (18, 56, 52, None),
    ] {
        let behaviour = behaviour(major);
        assert_eq!(heap_prune(&behaviour, dead, CHANGE), prune, "{major}");
        assert_eq!(
            heap_vacuum_cleanup(&behaviour, 1, CHANGE),
            cleanup,
            "{major}"
        );
        assert_eq!(
            heap_freeze(&behaviour, 75, 1, CHANGE),
            freeze_only,
            "{major}"
        );
    }
    assert_eq!(heap_prune(&behaviour(18), freeze, CHANGE), 218);
}

/// Same-page updates: one changed low byte 71, two 72, none 68 bytes.
#[test]
fn shared_bytes_of_an_increment() {
    let update = |shared| heap_update_same_page(104, 24, shared, CHANGE, None);
    let mut old = [7_u8; 80];
    let mut new = old;
    assert_eq!(update(SharedBytes::between(&old, &new)), 68);
    new[76] ^= 1;
    assert_eq!(update(SharedBytes::between(&old, &new)), 71);
    new[77] ^= 1;
    assert_eq!(update(SharedBytes::between(&old, &new)), 72);
    // bid + 1 and two low bytes of the balance: the physics' 144 bytes.
    old[4] ^= 1;
    assert_eq!(update(SharedBytes::between(&old, &new)), 144);
}

/// Golden G2: what full-page images make of the seed's records at scale 1.
#[test]
fn images_of_the_seed() {
    let hot = Page::Image(Image::plain(1848 - 268));
    let shared = SharedBytes::default();
    assert_eq!(heap_update_same_page(104, 24, shared, hot, None), 6677);
    let vm = Some(Page::Image(Image::plain(0)));
    assert_eq!(heap_update_same_page(104, 24, shared, hot, vm), 14882);
    assert_eq!(
        heap_update_same_page(104, 24, shared, hot, Some(CHANGE)),
        6685
    );
    assert_eq!(
        heap_lock(Page::Image(Image::plain(8192 - 8124)), None),
        8183
    );
    let leaf = Page::Image(Image::plain(8192 - 7400));
    assert_eq!(btree_insert_leaf(16, leaf), 7453);
}

/// Golden G7: 10000 rows by COPY at fillfactor 100, 393 of them on pages already begun.
#[test]
fn copied_rows() {
    let tuples = |count: usize| std::iter::repeat_n(93, count);
    let whole_page = heap_multi_insert(tuples(81), true, CHANGE, None);
    assert_eq!(whole_page, 49 + 78 * 81);
    let joined = heap_multi_insert(tuples(39), false, CHANGE, None);
    assert_eq!(joined, 49 + 80 * 39);
    // 124 new pages with 9607 rows, 10 continuations with 393 rows.
    assert_eq!(124 * 49 + 78 * 9607, 755_422);
    assert_eq!(10 * 49 + 80 * 393, 31_930);
}

/// 17.11 and 18.6 add 8 bytes for each visibility map page.
#[test]
fn visibility_map_blocks() {
    assert_eq!(heap_delete(CHANGE, Some(CHANGE)), 62);
    let one = [Some(CHANGE), None];
    assert_eq!(heap_update_cross_page(104, CHANGE, CHANGE, one), 162);
}

/// Golden G3: a unique index on 60000 ints in one record a page, or 32.
#[test]
fn index_build_of_sixty_thousand_rows() {
    // 163 leaves of 366 items and a high key, a last one, a root, the metapage.
    let images = |leaf_lower: u32| Image::plain(8192 - leaf_lower);
    let mut pages = vec![images(24 + 16 + 367 * 20); 163];
    let last = 60_000 - 163 * 366;
    pages.push(images(24 + 16 + last * 20));
    pages.push(images(24 + 16 + 12 + 163 * 20));
    let metapage = BLCKSZ - (1_221_354 - 165 * 49 - pages_bytes(&pages) - 49);
    pages.push(Image::plain(metapage));
    assert_eq!(index_build(&behaviour(16), &pages), (166, 1_221_354));
    assert_eq!(index_build(&behaviour(18), &pages), (6, 1_215_594));
}

fn pages_bytes(images: &[Image]) -> u32 {
    images.iter().map(|image| image.stored_bytes()).sum()
}

proptest! {
    /// What is shared is really equal, and prefix and suffix never overlap.
    #[test]
    fn shared_bytes_are_equal(
        old in proptest::collection::vec(0_u8..3, 0..40),
        new in proptest::collection::vec(0_u8..3, 0..40),
    ) {
        let shared = SharedBytes::between(&old, &new);
        let (prefix, suffix) = (shared.prefix as usize, shared.suffix as usize);
        prop_assert!(prefix + suffix <= old.len().min(new.len()));
        prop_assert_eq!(&old[..prefix], &new[..prefix]);
        prop_assert_eq!(&old[old.len() - suffix..], &new[new.len() - suffix..]);
        prop_assert!(prefix == 0 || prefix >= 3);
        prop_assert!(suffix == 0 || suffix >= 3);
    }
}
