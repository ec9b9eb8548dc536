//! Repeated single-row updates: pages, counters and each WAL record type, as recorded.
//!
//! Origin of the figures: initdb defaults (checksums on in 18), autovacuum off, one session, shared
//! buffers larger than the data, jit and parallel workers off;
//! pg_waldump between two positions; 15.18, 16.14, 17.11, 18.4 and 18.6.

use crate::common::table;

use pgheadroom_twin::btree::RecordKind;
use pgheadroom_twin::executor::{Assignment, Change};
use pgheadroom_twin::value::Value;
use pgheadroom_twin::wal::RecordType;
use table::{ABALANCE, AID, Shape};

/// A recorded run of repeated single-row updates.
struct Churned {
    version: &'static str,
    rows: i64,
    count: u32,
    fillfactor: i64,
    filler: u16,
    pages: (u32, u32),
    /// Records and bytes; HOT updates by bytes alone, their number is `count - locks`.
    hot_bytes: u64,
    locks: u64,
    updates: [(u64, u64); 2],
    prunes: (u64, u64),
    hints: u64,
}

/// Repeated single-row updates by the primary key: pruning, moves, and their records.
#[test]
fn random_single_row_updates() {
    let first = Churned {
        version: "18.4",
        rows: 7500,
        count: 20_000,
        fillfactor: 100,
        filler: 64,
        pages: (105, 23),
        hot_bytes: 1_395_576,
        locks: 344,
        updates: [(339, 52_206), (5, 770)],
        prunes: (19_837, 1_200_844),
        hints: 1,
    };
    let second = Churned {
        fillfactor: 90,
        pages: (111, 23),
        hot_bytes: 1_420_000,
        locks: 0,
        updates: [(0, 0), (0, 0)],
        prunes: (19_838, 1_202_494),
        hints: 0,
        ..first
    };
    let third = Churned {
        fillfactor: 80,
        pages: (125, 23),
        prunes: (19_875, 1_204_582),
        ..second
    };
    let fourth = Churned {
        filler: 128,
        pages: (167, 23),
        hot_bytes: 1_396_783,
        locks: 327,
        updates: [(320, 69_760), (7, 1526)],
        prunes: (19_784, 1_197_418),
        hints: 3,
        ..first
    };
    let fifth = Churned {
        rows: 3000,
        pages: (67, 11),
        hot_bytes: 1_410_841,
        locks: 129,
        updates: [(126, 27_468), (3, 654)],
        prunes: (19_538, 1_201_006),
        ..fourth
    };
    let sixth = Churned {
        rows: 20_000,
        count: 10_000,
        filler: 64,
        pages: (274, 57),
        hot_bytes: 674_074,
        locks: 506,
        updates: [(499, 76_846), (7, 1078)],
        prunes: (9723, 571_080),
        ..fourth
    };
    let on = |run: &Churned, version, prune_bytes| Churned {
        version,
        prunes: (run.prunes.0, prune_bytes),
        hints: if version.starts_with("18") {
            run.hints
        } else {
            0
        },
        ..*run
    };
    for run in [
        on(&first, "15.18", 1_175_452),
        on(&first, "16.14", 1_195_289),
        Churned {
            updates: [(339, 52_990), (5, 786)],
            ..on(&first, "18.6", 1_200_844)
        },
        Churned {
            updates: [(339, 52_990), (5, 786)],
            ..on(&first, "17.11", 1_200_844)
        },
        on(&second, "15.18", 1_176_614),
        on(&third, "15.18", 1_178_666),
        on(&third, "16.14", 1_198_541),
        Churned {
            hot_bytes: 1_421_000,
            ..on(&third, "18.6", 1_204_582)
        },
        on(&fourth, "15.18", 1_172_218),
        on(&fifth, "15.18", 1_168_028),
        on(&sixth, "15.18", 567_022),
        first,
        second,
        third,
        fourth,
        fifth,
        sixth,
    ] {
        run.compare();
    }
}

impl Churned {
    fn compare(&self) {
        let (version, fillfactor, rows) = (self.version, self.fillfactor, self.rows);
        let what = format!("{version} {rows} {fillfactor} {}", self.filler);
        let mut fixture = Shape {
            version,
            rows,
            fillfactor,
            filler: self.filler,
            full_page_writes: false,
            indexes_abalance: false,
        }
        .loaded();
        fixture.churn(self.count, rows, 42);
        let counters = *fixture.db.table(fixture.t).counters();
        let count = u64::from(self.count);
        assert_eq!(counters.n_tup_upd, count, "{what}");
        assert_eq!(counters.n_tup_newpage_upd, self.locks, "{what}");
        assert_eq!(counters.n_tup_hot_upd, count - self.locks, "{what}");
        let pages = (fixture.heap_pages(), fixture.index_pages()[0]);
        assert_eq!(pages, self.pages, "{what}");
        let locks = self.locks;
        fixture.expect(
            &what,
            &[
                (RecordType::HeapHotUpdate, count - locks, self.hot_bytes),
                (RecordType::HeapLock, locks, 54 * locks),
                (RecordType::HeapUpdate, self.updates[0].0, self.updates[0].1),
                (
                    RecordType::HeapUpdateInit,
                    self.updates[1].0,
                    self.updates[1].1,
                ),
                (RecordType::Btree(RecordKind::InsertLeaf), locks, 64 * locks),
                (RecordType::HeapPrune, self.prunes.0, self.prunes.1),
                (RecordType::FpiForHint, self.hints, 44 * self.hints),
            ],
        );
        assert_eq!(fixture.of(RecordType::Commit), (count, 34 * count));
        fixture.check();
    }
}

/// Updates that change an indexed column: two entries each, and the indexes clean themselves.
#[test]
fn changed_keys() {
    use RecordKind::{Dedup, Delete, InsertLeaf, InsertPost, InsertUpper, SplitL, SplitR};
    for (version, delete_bytes, update_bytes, prune_bytes, hints) in [
        ("18.4", 77_484, 1_663_037, 1_076_980, 1),
        ("18.6", 77_484, 1_663_437, 1_076_980, 1),
        ("17.11", 77_484, 1_663_437, 1_076_980, 0),
        ("16.14", 77_484, 1_663_037, 1_096_187, 0),
        ("15.18", 76_766, 1_663_037, 1_076_980, 0),
    ] {
        let mut fixture = Shape {
            version,
            rows: 3000,
            fillfactor: 80,
            filler: 64,
            full_page_writes: false,
            indexes_abalance: true,
        }
        .loaded();
        let mut random = table::Lcg(42);
        for _ in 0..20_000 {
            let aid = 1 + random.next() % 3000;
            let change = Change::Computed(&|row| {
                let number = |column| row.integer(column).unwrap();
                Value::Integer((number(ABALANCE) * 31 + 17 + number(AID)) % 30_011)
            });
            let column = ABALANCE;
            fixture.update_one(aid, &[Assignment { column, change }]);
        }
        let counters = *fixture.db.table(fixture.t).counters();
        assert_eq!(
            (counters.n_tup_hot_upd, counters.n_tup_newpage_upd),
            (0, 2817)
        );
        assert_eq!(
            (fixture.heap_pages(), fixture.index_pages()),
            (99, vec![19, 64])
        );
        fixture.expect(
            version,
            &[
                (RecordType::Btree(Dedup), 177, 18_696),
                (RecordType::Btree(Delete), 718, delete_bytes),
                (RecordType::Btree(InsertLeaf), 39_897, 2_553_408),
                (RecordType::Btree(InsertPost), 36, 2376),
                (RecordType::Btree(InsertUpper), 67, 4824),
                (RecordType::Btree(SplitL), 31, 101_112),
                (RecordType::Btree(SplitR), 36, 120_720),
                (RecordType::HeapLock, 2817, 152_118),
                (RecordType::HeapUpdate, 19_951, update_bytes),
                (RecordType::HeapUpdateInit, 49, 7546),
                (RecordType::HeapPrune, 19_207, prune_bytes),
                (RecordType::FpiForHint, hints, 44 * hints),
            ],
        );
        fixture.check();
    }
}
