//! The seed experiment as one statement: what it dirties and logs, against recorded figures.
//!
//! Origin of the figures: initdb defaults (checksums on in 18), autovacuum off, one session, shared
//! buffers larger than the data, jit and parallel workers off;
//! `EXPLAIN (ANALYZE, BUFFERS, WAL)` on 15.18, 17.11, 18.4 and 18.6.

use crate::common::{is_long, table};

use pgheadroom_twin::btree::RecordKind;
use pgheadroom_twin::executor::{Action, Assignments, Row};
use pgheadroom_twin::wal::RecordType;
use table::{ABALANCE, AID, BID, Fixture, Shape, add};

/// One row in a thousand is updated by a sequential scan.
#[test]
fn seed_experiment() {
    for (version, scale, filler, fillfactor, bid, pages, index, fsm, dirtied, records, bytes) in [
        (
            "18.4",
            1,
            64,
            100,
            0,
            (1334, 1335),
            276,
            3,
            206,
            303,
            27_332,
        ),
        ("18.4", 1, 64, 80, 0, (1667, 1667), 276, 3, 101, 100, 7200),
        (
            "18.4",
            10,
            64,
            100,
            0,
            (13_334, 13_347),
            2745,
            6,
            2018,
            3003,
            272_132,
        ),
        (
            "18.4",
            10,
            64,
            80,
            0,
            (16_667, 16_667),
            2745,
            7,
            1001,
            1000,
            72_000,
        ),
        (
            "18.4",
            10,
            64,
            80,
            1,
            (16_667, 16_667),
            2745,
            7,
            1001,
            1000,
            144_000,
        ),
        (
            "18.4",
            10,
            128,
            100,
            0,
            (21_277, 21_298),
            2745,
            8,
            2026,
            3003,
            336_132,
        ),
        (
            "18.4",
            10,
            128,
            80,
            0,
            (27_028, 27_028),
            2745,
            9,
            1001,
            1000,
            72_000,
        ),
        (
            "18.4",
            10,
            128,
            80,
            1,
            (27_028, 27_028),
            2745,
            9,
            1001,
            1000,
            208_000,
        ),
        (
            "15.18",
            10,
            64,
            100,
            0,
            (13_334, 13_347),
            2745,
            6,
            2018,
            3000,
            272_000,
        ),
        (
            "15.18",
            10,
            128,
            100,
            0,
            (21_277, 21_298),
            2745,
            8,
            2026,
            3000,
            336_000,
        ),
        (
            "15.18",
            10,
            64,
            80,
            0,
            (16_667, 16_667),
            2745,
            7,
            1001,
            1000,
            72_000,
        ),
        (
            "15.18",
            10,
            64,
            80,
            1,
            (16_667, 16_667),
            2745,
            7,
            1001,
            1000,
            144_000,
        ),
        (
            "15.18",
            10,
            128,
            80,
            0,
            (27_028, 27_028),
            2745,
            9,
            1001,
            1000,
            72_000,
        ),
        (
            "15.18",
            10,
            128,
            80,
            1,
            (27_028, 27_028),
            2745,
            9,
            1001,
            1000,
            208_000,
        ),
        (
            "18.6",
            10,
            64,
            100,
            0,
            (13_334, 13_347),
            2745,
            6,
            2018,
            3003,
            280_132,
        ),
        (
            "18.6",
            10,
            64,
            80,
            0,
            (16_667, 16_667),
            2745,
            7,
            1001,
            1000,
            80_000,
        ),
        (
            "18.6",
            10,
            64,
            80,
            1,
            (16_667, 16_667),
            2745,
            7,
            1001,
            1000,
            152_000,
        ),
        (
            "18.6",
            10,
            128,
            100,
            0,
            (21_277, 21_298),
            2745,
            8,
            2026,
            3003,
            344_132,
        ),
        (
            "17.11",
            10,
            64,
            100,
            0,
            (13_334, 13_347),
            2745,
            6,
            2018,
            3000,
            280_000,
        ),
        (
            "17.11",
            10,
            64,
            80,
            0,
            (16_667, 16_667),
            2745,
            7,
            1001,
            1000,
            80_000,
        ),
    ] {
        let usual = matches!(
            (version, filler, fillfactor, bid),
            ("18.4", 64, 80, 1) | ("15.18" | "17.11", 64, _, 0) | ("18.6", 128, 100, 0)
        );
        // A million rows each time.
        if scale > 1 && !usual && !is_long() {
            continue;
        }
        let what = format!("{version} {scale} {filler}/{fillfactor}/{bid}");
        let mut fixture = seed_table(version, scale, filler, fillfactor, false);
        assert_eq!(fixture.heap_pages(), pages.0, "{what}");
        let before = fixture.db.wal().pages().dirtied();
        update_one_in_a_thousand(&mut fixture, scale, bid);
        let totals = fixture.db.wal().relation_totals();
        assert_eq!(fixture.heap_pages(), pages.1, "{what}");
        assert_eq!(fixture.index_pages(), [index], "{what}");
        let table = fixture.db.table(fixture.t);
        assert_eq!(table.heap().fsm().page_count(), fsm, "{what}");
        let changed = fixture.db.wal().pages().dirtied() - before;
        assert_eq!(changed, dirtied, "{what}");
        assert_eq!(
            (totals.wal_records, totals.wal_bytes),
            (records, bytes),
            "{what}"
        );
        fixture.check();
    }
}

fn seed_table(version: &str, scale: i64, filler: u16, fillfactor: i64, images: bool) -> Fixture {
    Shape {
        version,
        rows: scale * 100_000,
        fillfactor,
        filler,
        full_page_writes: images,
        indexes_abalance: false,
    }
    .loaded()
}

fn update_one_in_a_thousand(fixture: &mut Fixture, scale: i64, bid: i64) {
    let action = Action::Update(Assignments {
        columns: &[add(BID, bid), add(ABALANCE, 4660)],
    });
    let wanted = |row: Row<'_>| row.integer(AID).unwrap() % 1000 == 1;
    let found = fixture.db.by_seq_scan(fixture.t, wanted, &action);
    assert_eq!(found, Ok(scale.unsigned_abs() * 100));
    fixture.db.commit();
}

/// The same right after a checkpoint with full-page images.
#[test]
fn seed_experiment_with_images() {
    for (version, fillfactor, records, images, bytes) in [
        ("18.4", 100, 303, 204, 1_606_474),
        ("18.4", 80, 100, 100, 667_700),
        ("15.18", 100, 300, 201, 1_581_751),
        ("15.18", 80, 100, 100, 667_700),
        ("18.6", 80, 100, 101, 676_697),
        ("18.6", 100, 303, 205, 1_615_471),
    ] {
        let mut fixture = seed_table(version, 1, 64, fillfactor, true);
        update_one_in_a_thousand(&mut fixture, 1, 0);
        let totals = fixture.db.wal().relation_totals();
        let counted = (totals.wal_records, totals.wal_fpi, totals.wal_bytes);
        assert_eq!(counted, (records, images, bytes), "{version} {fillfactor}");
        if version == "18.4" && fillfactor == 100 {
            assert_eq!(fixture.of(RecordType::HeapLock), (100, 818_300));
            let leaf = RecordType::Btree(RecordKind::InsertLeaf);
            assert_eq!(fixture.of(leaf), (100, 745_300));
            assert_eq!(fixture.of(RecordType::FpiForHint), (3, 24_723));
        }
    }
}
