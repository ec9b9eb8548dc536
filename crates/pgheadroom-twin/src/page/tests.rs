//! Tests of one page.

use super::*;
use pgheadroom_layout::PgVersion;

pub(crate) fn tuple(lp_len: u16) -> Tuple {
    Tuple::new(0, lp_len, Xid(3))
}

/// A page takes as many rows as the layout says, and the room is what is left.
#[test]
fn fills_as_the_layout_says() {
    let mut page = HeapPage::empty();
    assert_eq!(page.heap_free_space(), 8164);
    for _ in 0..75 {
        assert!(page.heap_free_space() >= 104);
        page.add(BlockNumber(0), tuple(101));
    }
    assert_eq!(page.pd_lower(), 24 + 300);
    assert_eq!(page.heap_free_space(), 8168 - 75 * 108 - 4);
}

/// 291 line pointers are the limit even when bytes are left; a free one lifts it only while
/// the hint says so.
#[test]
fn line_pointers_run_out() {
    let behaviour = PgVersion::new(18, 4).unwrap().behaviour();
    let mut page = HeapPage::empty();
    for _ in 0..291 {
        page.add(BlockNumber(0), tuple(24));
    }
    assert_eq!(page.heap_free_space(), 0);
    let gone = [(OffsetNumber(7), LinePointer::Unused)];
    page.apply_prune(&behaviour, gone.into_iter());
    assert_eq!(page.heap_free_space(), 8168 - 291 * 4 - 290 * 24 - 4);
    assert_eq!(page.add(BlockNumber(0), tuple(24)), OffsetNumber(7));
    assert_eq!(page.heap_free_space(), 0);
}

/// Trailing line pointers: 13 keeps them, 14 frees them in VACUUM, 15 when pruning too.
#[test]
fn trailing_line_pointers() {
    for (major, after_prune, after_vacuum) in [(13, 3, 3), (14, 3, 1), (15, 2, 1)] {
        let behaviour = PgVersion::new(major, 4).unwrap().behaviour();
        let mut page = HeapPage::empty();
        for _ in 0..3 {
            page.add(BlockNumber(0), tuple(100));
        }
        let changes = [
            (OffsetNumber(2), LinePointer::Dead),
            (OffsetNumber(3), LinePointer::Unused),
        ];
        page.apply_prune(&behaviour, changes.into_iter());
        assert_eq!(page.item_count(), after_prune, "{major}");
        assert_eq!(page.pd_upper(), 8192 - 104);
        page.reclaim_dead(&behaviour, &[OffsetNumber(2)]);
        assert_eq!(page.item_count(), after_vacuum, "{major}");
    }
}

/// How far a walk has come stays with the redirect, as long as it is that one, and makes no other
/// page of it. Who replaced a version on the way need not be older than whoever did so next.
#[test]
fn a_walk_goes_on_where_the_last_one_was() {
    let mut page = HeapPage::empty();
    let [root, first, second, last] = [1, 2, 3, 4].map(OffsetNumber);
    let chain = [(first, 3), (second, 12), (last, 10)];
    page.add(BlockNumber(0), tuple(100));
    for (offset, made_by) in chain {
        let mut version = Tuple::new(0, 100, Xid(made_by));
        version.is_heap_only = true;
        version.root = root;
        assert_eq!(page.add(BlockNumber(0), version), offset);
    }
    assert_eq!(page.walked_to(root), None);
    page.note_walk(root, last, Xid(12));
    assert_eq!(
        page.walked_to(root),
        None,
        "a tuple says where it goes on itself"
    );
    let behaviour = PgVersion::new(18, 4).unwrap().behaviour();
    page.apply_prune(
        &behaviour,
        [(root, LinePointer::Redirect(first))].into_iter(),
    );
    let before = page.clone();
    page.note_walk(root, last, Xid(12));
    let walked = page.walked_to(root).expect("a walk");
    assert_eq!(
        (walked.at, walked.newest, walked.made_by),
        (last, Xid(12), Xid(10))
    );
    assert_eq!((page.item(root), &page), (before.item(root), &before));
    page.apply_prune(
        &behaviour,
        [(root, LinePointer::Redirect(last))].into_iter(),
    );
    assert_eq!(page.walked_to(root), None);
}
