//! Tests of one page.

use super::*;
use crate::hint;
use crate::prune::{self, DeadRoots};
use crate::transaction::SingleSession;
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

/// A page that is being filled needs no memory to have all its tuples noted; a settled one notes
/// those that are touched.
#[test]
fn touched_tuples_are_noted() {
    let listed = |page: &HeapPage| {
        let unsettled = page.unsettled().listed();
        unsettled.map(|offset| offset.0).collect::<Vec<_>>()
    };
    let mut page = HeapPage::empty();
    for _ in 0..5 {
        page.add(BlockNumber(0), tuple(100));
    }
    assert_eq!(listed(&page), [1, 2, 3, 4, 5]);
    assert!(page.touched.is_none());
    let horizon = SingleSession {
        current: Xid(99),
        held_xmin: None,
    };
    hint::note_unsettled(&mut page, &horizon);
    page.set_prune_hints(Xid::INVALID);
    assert!(listed(&page).is_empty() && page.touched.is_none());
    drop(page.tuple_mut(OffsetNumber(4)));
    page.add(BlockNumber(0), tuple(100));
    assert_eq!(listed(&page), [4, 6]);
    hint::note_unsettled(&mut page, &horizon);
    page.set_prune_hints(Xid::INVALID);
    assert!(listed(&page).is_empty() && page.touched.is_none());
}

/// A HOT update that is only noted is to everybody what it is when it is written out, whatever the
/// page was before: rows that were locked, updated and pruned.
#[test]
fn a_noted_update_is_what_it_is_written_out() {
    let behaviour = PgVersion::new(18, 4).unwrap().behaviour();
    let mut page = HeapPage::empty();
    let rows: Vec<_> = (0..4)
        .map(|_| page.add(BlockNumber(7), tuple(100)))
        .collect();
    let mut newest = rows;
    let mut at_once = 0;
    for step in 0..60_u32 {
        let row = step as usize * 7 % 4;
        let (old, xid) = (newest[row], Xid(10 + step));
        if step % 5 == 0 {
            let mut locked = page.tuple_mut(old);
            (locked.xmax, locked.is_locked_only) = (xid, true);
            locked.xmax_hint = XmaxHint::UnsetKeyShare;
        }
        newest[row] = page.hot_update(old, xid, 100 + 8 * (step % 3) as u16);
        assert!(page.deferred().is_some());
        let mut written = page.clone();
        written.write_out_deferred();
        assert!(written.deferred().is_none());
        assert_eq!(page.items(), written.items(), "{step}");
        assert_eq!(page.unsettled(), written.unsettled());
        assert_eq!(page.pd_upper(), written.pd_upper());
        for offset in page.offsets() {
            let of = |page: &HeapPage| {
                let row = page.row(offset);
                let of_row = row.map(|row| {
                    let root = page.root_of(offset, row);
                    (
                        page.newest(offset),
                        root,
                        page.lp_len(offset),
                        page.row_and_root(offset),
                    )
                });
                let flags = [page.is_dead(offset), page.is_redirect(offset)];
                (
                    of_row,
                    page.plain(offset),
                    page.replaced(offset),
                    flags,
                    page.is_heap_only(offset),
                )
            };
            assert_eq!(of(&page), of(&written), "{step} {offset:?}");
        }
        if step % 3 != 1 {
            let horizon = SingleSession {
                current: Xid(99),
                held_xmin: None,
            };
            let prune = |page: &mut HeapPage| {
                hint::note_unsettled(page, &horizon);
                prune::plan(page, &behaviour, DeadRoots::Stay, &horizon).apply(page, &behaviour);
            };
            let settled = page.prune_deferred(&behaviour);
            at_once += u32::from(settled.is_some());
            prune(&mut written);
            match settled {
                Some(settled) => page.leave_freed(settled),
                None => prune(&mut page),
            }
            assert_eq!(page.items(), written.items(), "{step}");
            let of = |page: &HeapPage| {
                let room = (
                    page.pd_upper(),
                    page.heap_free_space(),
                    page.has_free_lines(),
                );
                (room, page.prune_xid(), page.is_full(), page.unsettled())
            };
            assert_eq!(of(&page), of(&written), "{step}");
        }
    }
    assert!((10..50).contains(&at_once), "{at_once}");
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
