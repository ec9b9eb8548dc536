//! The heap against figures recorded on PostgreSQL servers.
//!
//! Origin of the figures: initdb defaults, autovacuum and `full_page_writes` off, one session,
//! shared buffers larger than the data; 13.16, 15.18, 16.14 and 18.4. Pages are
//! `pg_relation_size / 8192`; records and bytes are counted per WAL record type. Every page is
//! checked for its invariants at the end.

use pgheadroom_layout::wal_record::{
    self, Page, SharedBytes, heap_insert, heap_multi_insert, heap_prune, heap_vacuum_cleanup,
};
use pgheadroom_layout::{Behaviour, BlockNumber, HeapFillfactor, PgVersion};
use pgheadroom_twin::heap::{BulkInsert, InsertTargetBlock, Mode};
use pgheadroom_twin::prune::PruneResult;
use pgheadroom_twin::transaction::SingleSession;
use pgheadroom_twin::{Heap, LinePointer, Tid, Xid, check};

const CHANGE: Page = Page::Change;

fn behaviour(version: &str) -> Behaviour {
    version.parse::<PgVersion>().unwrap().behaviour()
}

fn ignore(_: BlockNumber) {}

fn session(current: u32) -> SingleSession {
    SingleSession {
        current: Xid(current),
        held_xmin: None,
    }
}

fn check_all(heap: &Heap) {
    for (block, page) in (0..).zip(heap.pages()) {
        if let Err(violation) = check::page(BlockNumber(block), page) {
            panic!("{violation}");
        }
    }
}

/// Records and their bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Records(u32, u64);

impl Records {
    fn add(&mut self, bytes: u32) {
        self.0 += 1;
        self.1 += u64::from(bytes);
    }
}

/// A table loaded by INSERT ... SELECT and vacuumed; where each row is.
fn loaded(version: &str, fillfactor: i64, rows: u32, tuple_bytes: u16) -> (Heap, Vec<Tid>) {
    let fillfactor = HeapFillfactor::new(fillfactor).unwrap();
    let mut heap = Heap::new(behaviour(version), fillfactor);
    let mut target = InsertTargetBlock::default();
    let tids = (0..rows)
        .map(|row| {
            heap.insert(
                &mut target,
                Mode::Row,
                row,
                tuple_bytes,
                Xid(3),
                &mut ignore,
            )
            .unwrap()
            .tid
        })
        .collect();
    heap.vacuum(&session(4), &mut ignore);
    (heap, tids)
}

/// `s <- (s * 1103515245 + 12345) mod 2^31`, of which the upper bits are used.
struct Lcg(u64);

impl Lcg {
    fn next(&mut self, below: u32) -> u32 {
        self.0 = (self.0 * 1_103_515_245 + 12_345) % (1 << 31);
        u32::try_from(self.0 / 65_536 % u64::from(below)).unwrap()
    }
}

/// COPY of 10000 rows of (int, char(64)): the over-extension from 16 on stays behind.
#[test]
fn copy_over_extends_from_16_on() {
    for (version, fillfactor, pages, used) in [
        ("13.16", 100, 124, 124),
        ("15.18", 100, 124, 124),
        ("16.14", 100, 160, 124),
        ("18.4", 100, 160, 124),
        ("13.16", 70, 176, 176),
        ("15.18", 70, 176, 176),
        ("16.14", 70, 196, 176),
        ("18.4", 70, 196, 176),
    ] {
        let mut heap = Heap::new(behaviour(version), HeapFillfactor::new(fillfactor).unwrap());
        let mut target = InsertTargetBlock::default();
        let mut bulk = BulkInsert::default();
        let (mut joined, mut whole) = (Records::default(), Records::default());
        let (mut batch, mut batch_bytes) = (Vec::new(), 0);
        for row in 1..=10_000_u32 {
            batch.push((row, 93_u16));
            batch_bytes += row.to_string().len() + 1 + 64;
            if batch.len() < 1000 && batch_bytes <= 65_535 && row < 10_000 {
                continue;
            }
            for page in heap
                .insert_batch(&mut target, &mut bulk, &batch, Xid(3), &mut ignore)
                .unwrap()
            {
                let init = page[0].initialises_page;
                let tuples = page.iter().map(|_| 93);
                let bytes = heap_multi_insert(tuples, init, CHANGE, None);
                if init { &mut whole } else { &mut joined }.add(bytes);
            }
            batch.clear();
            batch_bytes = 0;
        }
        let in_use = heap.pages().iter().filter(|page| !page.is_new()).count();
        assert_eq!(
            (heap.page_count(), in_use),
            (pages, used),
            "{version} {fillfactor}"
        );
        let expected = if fillfactor == 100 {
            (Records(10, 31_930), Records(124, 755_422))
        } else {
            (Records(10, 15_850), Records(176, 773_648))
        };
        assert_eq!((joined, whole), expected, "{version} {fillfactor}");
        check_all(&heap);
    }
}

/// The seed experiment at scale 1: one row in a thousand is updated, in the order of the table.
#[test]
fn seed_experiment() {
    for (fillfactor, before, after, hot) in [(100, 1334, 1335, 0), (80, 1667, 1667, 100)] {
        let (mut heap, tids) = loaded("18.4", fillfactor, 100_000, 104);
        assert_eq!((heap.page_count(), heap.fsm().page_count()), (before, 3));
        let mut target = InsertTargetBlock::default();
        let mut fsm_pages = std::collections::BTreeSet::new();
        let (mut hot_updates, mut locks) = (0, 0);
        for &tid in tids.iter().step_by(1000) {
            heap.prune_opt(tid.block, &session(5));
            let mut log = |block: BlockNumber| {
                fsm_pages.insert(block.0);
            };
            let done = heap
                .update(&mut target, tid, 104, true, false, Xid(5), &mut log)
                .unwrap();
            hot_updates += u32::from(done.is_hot);
            locks += u32::from(done.lock.is_some());
            assert!(done.cleared_old_visibility);
            // The mark that makes the next reader prune the page whatever room it has.
            assert_eq!(
                heap.pages()[tid.block.0 as usize].is_full(),
                done.is_newpage
            );
        }
        assert_eq!(
            (heap.page_count(), hot_updates, locks),
            (after, hot, 100 - hot)
        );
        let dirtied = if fillfactor == 100 { 3 } else { 0 };
        assert_eq!(fsm_pages.len(), dirtied, "{fillfactor}");
        check_all(&heap);
    }
}

/// Repeated single-row updates with room on every page: all HOT, no growth, and each prune record.
#[test]
fn random_updates_with_room_stay_on_their_pages() {
    for (version, fillfactor, pages, prunes) in [
        ("18.4", 90, 111, Records(19_838, 1_202_494)),
        ("15.18", 90, 111, Records(19_838, 1_176_614)),
        ("18.4", 80, 125, Records(19_875, 1_204_582)),
        ("15.18", 80, 125, Records(19_875, 1_178_666)),
        ("16.14", 80, 125, Records(19_875, 1_198_541)),
    ] {
        let (mut heap, mut tids) = loaded(version, fillfactor, 7500, 104);
        let mut target = InsertTargetBlock::default();
        let mut random = Lcg(42);
        let (mut pruned, mut updated) = (Records::default(), Records::default());
        for xid in 10..20_010 {
            let row = random.next(7500) as usize;
            let tid = tids[row];
            if heap.prune_opt(tid.block, &session(xid)) == PruneResult::Pruned {
                let plan = heap.last_prune();
                pruned.add(heap_prune(heap.behaviour(), plan.cleaning(), CHANGE));
            }
            let done = heap
                .update(&mut target, tid, 104, true, false, Xid(xid), &mut ignore)
                .unwrap();
            assert!(done.is_hot);
            let shared = SharedBytes {
                prefix: 76,
                suffix: 3,
            };
            updated.add(wal_record::heap_update_same_page(
                104, 24, shared, CHANGE, None,
            ));
            tids[row] = done.new.tid;
        }
        assert_eq!(heap.page_count(), pages);
        assert_eq!(pruned, prunes, "{version} {fillfactor}");
        assert_eq!(updated, Records(20_000, 1_420_000));
        check_all(&heap);
    }
}

/// Every row updated four times by sequential scans at fillfactor 50 without VACUUM.
#[test]
fn full_table_updates_with_room() {
    let (mut heap, mut tids) = loaded("15.18", 50, 7500, 104);
    let mut target = InsertTargetBlock::default();
    let (mut pruned, mut hot) = (Records::default(), 0);
    for xid in 10..14 {
        let mut by_block = vec![Vec::new(); heap.page_count() as usize];
        for (row, tid) in tids.iter().enumerate() {
            by_block[tid.block.0 as usize].push(row);
        }
        for (block, mut rows) in (0..).zip(by_block) {
            if heap.prune_opt(BlockNumber(block), &session(xid)) == PruneResult::Pruned {
                let plan = heap.last_prune();
                pruned.add(heap_prune(heap.behaviour(), plan.cleaning(), CHANGE));
            }
            rows.sort_unstable_by_key(|&row| tids[row]); // a scan meets them in this order
            for row in rows {
                let done = heap
                    .update(
                        &mut target,
                        tids[row],
                        104,
                        true,
                        false,
                        Xid(xid),
                        &mut ignore,
                    )
                    .unwrap();
                hot += u32::from(done.is_hot);
                tids[row] = done.new.tid;
            }
        }
        assert_eq!(heap.page_count(), 203);
    }
    assert_eq!((hot, pruned), (30_000, Records(609, 152_886)));
    check_all(&heap);
}

/// Delete, VACUUM and reuse of the room through the free space map, with rows of random length.
#[test]
fn vacuumed_room_is_reused() {
    let text = |chars: u32| u16::try_from(28 + chars + if chars <= 126 { 1 } else { 4 }).unwrap();
    // A value longer than 126 bytes is aligned to 4, where an int4 ends anyway.
    let mut heap = Heap::new(behaviour("18.4"), HeapFillfactor::new(100).unwrap());
    let mut rows: Vec<(u32, Tid)> = Vec::new();
    let (mut joined, mut first, mut deleted) = (Records::default(), Records::default(), 0);
    let (mut pruned, mut cleaned, mut visible) = (Records::default(), Records::default(), 0);
    let mut xid = 10;
    for (round, (low, high)) in [(1, 6000), (6001, 8000), (8001, 10_000)]
        .into_iter()
        .enumerate()
    {
        let mut random = Lcg(round as u64 + 1);
        let mut target = InsertTargetBlock::default(); // forgotten at VACUUM
        for id in low..=high {
            let bytes = text(20 + random.next(381));
            let done = heap
                .insert(&mut target, Mode::Row, id, bytes, Xid(xid), &mut ignore)
                .unwrap();
            let record = heap_insert(u32::from(bytes), CHANGE, None);
            if done.initialises_page {
                &mut first
            } else {
                &mut joined
            }
            .add(record);
            rows.push((id, done.tid));
        }
        xid += 1;
        if round == 2 {
            break;
        }
        let remainder = u32::try_from(round).unwrap();
        rows.retain(|&(id, tid)| {
            let goes = (id + remainder) % 3 == 0;
            if goes {
                heap.delete(tid, Xid(xid));
                deleted += 1;
            }
            !goes
        });
        xid += 1;
        let done = heap.vacuum(&session(xid), &mut ignore);
        for &(_, cleaning) in &done.pruned {
            pruned.add(heap_prune(heap.behaviour(), cleaning, CHANGE));
        }
        for &(_, unused) in &done.cleaned {
            cleaned.add(heap_vacuum_cleanup(heap.behaviour(), unused, CHANGE));
        }
        visible += done.made_visible.len();
        check_all(&heap);
    }
    assert_eq!((heap.page_count(), heap.fsm().page_count()), (186, 3));
    assert_eq!(
        (joined, first),
        (Records(9814, 2_656_859), Records(186, 65_685))
    );
    assert_eq!(
        (deleted, pruned, cleaned),
        (4667, Records(371, 29_368), Records(371, 27_884))
    );
    assert_eq!(visible, 371);
    let live = heap
        .pages()
        .iter()
        .flat_map(|page| page.items())
        .filter(|item| matches!(item, LinePointer::Normal(_)));
    assert_eq!((live.count(), rows.len()), (5333, 5333));
    check_all(&heap);
}

/// VACUUM leaves the indexes alone while under 2 % of the pages have dead line pointers.
#[test]
fn few_dead_pages_do_not_reach_the_indexes() {
    let (mut heap, tids) = loaded("18.4", 100, 7500, 104);
    let mut target = InsertTargetBlock::default();
    let mut update_and_vacuum = |row: usize, xid: u32| {
        let moved = heap
            .update(
                &mut target,
                tids[row],
                104,
                true,
                false,
                Xid(xid),
                &mut ignore,
            )
            .unwrap();
        assert!(moved.is_newpage && moved.lock.is_some());
        target = InsertTargetBlock::default();
        (
            heap.vacuum(&session(xid + 1), &mut ignore),
            heap.page_count(),
        )
    };
    let (first, pages) = update_and_vacuum(0, 10);
    assert!(first.bypassed_indexes && first.cleaned.is_empty());
    assert_eq!(pages, 101);
    let (second, _) = update_and_vacuum(75, 12);
    assert!(!second.bypassed_indexes);
    assert_eq!(second.cleaned, [(BlockNumber(0), 1), (BlockNumber(1), 1)]);
    assert_eq!(heap.pages()[0].items()[0], LinePointer::Unused);
}
