//! Held snapshots, whole-table updates and COPY, against recorded figures.
//!
//! Origin of the figures: initdb defaults (checksums on in 18), autovacuum off, one session, shared
//! buffers larger than the data, jit and parallel workers off;
//! pg_waldump between two positions; 13.16, 15.18, 16.14, 18.4 and 18.6.

use crate::common::table;

use pgheadroom_layout::{HeapFillfactor, PgVersion};
use pgheadroom_twin::btree::RecordKind::{Dedup, Delete, InsertLeaf, InsertUpper, SplitL, SplitR};
use pgheadroom_twin::executor::{
    Action, Assignments, ColumnDefinition, CopyRow, Database, Row, TableDefinition,
};
use pgheadroom_twin::value::{Text, Value};
use pgheadroom_twin::wal::{RecordType, WalSettings};
use table::{ABALANCE, AID, Shape, add};

/// A snapshot held elsewhere: nothing is pruned, the table grows; then it stays as large.
#[test]
fn held_snapshot() {
    for (version, hot_bytes, update_bytes, prune_bytes, hints) in [
        ("18.4", 81_721, 583_968, 304_652, 3),
        ("15.18", 81_721, 583_968, 298_492, 0),
    ] {
        let mut fixture = Shape {
            version,
            rows: 7500,
            fillfactor: 90,
            filler: 64,
            full_page_writes: false,
            indexes_abalance: false,
        }
        .loaded();
        let held = fixture.db.procs_mut().hold();
        fixture.churn(5000, 7500, 42);
        assert_eq!(
            (fixture.heap_pages(), fixture.index_pages()),
            (168, vec![43])
        );
        let counters = *fixture.db.table(fixture.t).counters();
        assert_eq!(
            (counters.n_tup_hot_upd, counters.n_tup_newpage_upd),
            (1151, 3849)
        );
        fixture.expect(
            version,
            &[
                (RecordType::HeapHotUpdate, 1151, hot_bytes),
                (RecordType::HeapLock, 3849, 207_846),
                (RecordType::HeapUpdate, 3792, update_bytes),
                (RecordType::HeapUpdateInit, 57, 8778),
                (RecordType::Btree(InsertLeaf), 3829, 245_056),
                (RecordType::Btree(Dedup), 67, 7236),
                (RecordType::Btree(InsertUpper), 20, 1440),
                (RecordType::Btree(SplitL), 11, 38_072),
                (RecordType::Btree(SplitR), 9, 31_024),
                (RecordType::FpiForHint, hints, 44 * hints),
            ],
        );
        fixture.db.procs_mut().release(held);
        fixture.db.forget_target_blocks();
        fixture.db.wal_mut().reset_totals();
        fixture.churn(20_000, 7500, 43);
        assert_eq!(
            (fixture.heap_pages(), fixture.index_pages()),
            (168, vec![43])
        );
        let counters = *fixture.db.table(fixture.t).counters();
        assert_eq!(
            (counters.n_tup_hot_upd, counters.n_tup_newpage_upd),
            (21_151, 3849)
        );
        fixture.expect(
            version,
            &[
                (RecordType::HeapHotUpdate, 20_000, 1_420_000),
                (RecordType::HeapPrune, 3780, prune_bytes),
            ],
        );
        fixture.check();
    }
}

/// The same at fillfactor 80 and longer.
#[test]
fn held_snapshot_with_more_room() {
    let mut fixture = Shape {
        version: "15.18",
        rows: 7500,
        fillfactor: 80,
        filler: 64,
        full_page_writes: false,
        indexes_abalance: false,
    }
    .loaded();
    let held = fixture.db.procs_mut().hold();
    fixture.churn(8000, 7500, 42);
    let counters = *fixture.db.table(fixture.t).counters();
    assert_eq!(
        (counters.n_tup_hot_upd, counters.n_tup_newpage_upd),
        (2953, 5047)
    );
    fixture.db.procs_mut().release(held);
    fixture.db.forget_target_blocks();
    fixture.db.wal_mut().reset_totals();
    fixture.churn(20_000, 7500, 43);
    assert_eq!(
        (fixture.heap_pages(), fixture.index_pages()),
        (210, vec![43])
    );
    assert_eq!(fixture.of(RecordType::HeapPrune), (5593, 401_082));
    let counters = *fixture.db.table(fixture.t).counters();
    assert_eq!(counters.n_tup_hot_upd, 22_953);
}

fn update_all(fixture: &mut table::Fixture) {
    let action = Action::Update(Assignments {
        columns: &[add(ABALANCE, 1)],
    });
    let found = fixture.db.by_seq_scan(fixture.t, |_| true, &action);
    assert_eq!(found, Ok(7500));
    fixture.db.commit();
}

/// Full-table updates without VACUUM: the table grows by as many pages each time.
#[test]
fn whole_table_updates() {
    let shape = Shape {
        version: "18.4",
        rows: 7500,
        fillfactor: 100,
        filler: 64,
        full_page_writes: false,
        indexes_abalance: false,
    };
    let mut fixture = shape.loaded();
    for pages in [(200, 43), (300, 43), (400, 43), (500, 51)] {
        update_all(&mut fixture);
        assert_eq!((fixture.heap_pages(), fixture.index_pages()[0]), pages);
    }
    fixture.expect(
        "18.4",
        &[
            (RecordType::HeapLock, 30_000, 1_620_000),
            (RecordType::HeapUpdate, 29_600, 4_558_400),
            (RecordType::HeapUpdateInit, 400, 61_600),
            (RecordType::Btree(InsertLeaf), 29_972, 1_918_208),
            (RecordType::Btree(Dedup), 495, 91_172),
            (RecordType::Btree(Delete), 177, 89_521),
            (RecordType::Btree(InsertUpper), 28, 2016),
            (RecordType::Btree(SplitL), 20, 67_680),
            (RecordType::Btree(SplitR), 8, 30_000),
            (RecordType::HeapPrune, 300, 61_200),
            (RecordType::FpiForHint, 1, 44),
        ],
    );
    fixture.check();
    let mut fixture = Shape {
        version: "15.18",
        fillfactor: 50,
        ..shape
    }
    .loaded();
    for _ in 0..4 {
        update_all(&mut fixture);
        assert_eq!((fixture.heap_pages(), fixture.index_pages()[0]), (203, 23));
    }
    fixture.expect(
        "15.18",
        &[
            (RecordType::HeapHotUpdate, 30_000, 2_130_000),
            (RecordType::HeapPrune, 609, 152_886),
        ],
    );
    let mut fixture = Shape {
        version: "13.16",
        fillfactor: 90,
        ..shape
    }
    .loaded();
    for pages in [210, 298, 378, 448, 512, 570] {
        update_all(&mut fixture);
        assert_eq!(
            (fixture.heap_pages(), fixture.index_pages()[0]),
            (pages, 43)
        );
    }
    assert_eq!(fixture.of(RecordType::HeapHotUpdate), (13_806, 980_226));
    assert_eq!(fixture.of(RecordType::HeapLock).0, 31_194);
    assert_eq!(fixture.of(RecordType::Btree(Delete)), (771, 86_398));
    assert_eq!(fixture.of(RecordType::Btree(Dedup)), (60, 6880));
    assert_eq!(fixture.of(RecordType::HeapPrune), (453, 92_056));
}

/// COPY of 10000 rows of (int, char(64)) into a table without indexes.
#[test]
fn copy() {
    for (version, fillfactor, pages) in [
        ("13.16", 100, 124),
        ("15.18", 100, 124),
        ("16.14", 100, 160),
        ("18.4", 100, 160),
        ("13.16", 70, 176),
        ("15.18", 70, 176),
        ("16.14", 70, 196),
        ("18.4", 70, 196),
    ] {
        let behaviour = version.parse::<PgVersion>().unwrap().behaviour();
        let mut db = Database::new(
            behaviour,
            WalSettings {
                full_page_writes: false,
                hints_are_logged: behaviour.checksums_by_default,
                is_logical: false,
            },
        );
        let column = |name, type_name| ColumnDefinition::new(name, type_name).unwrap();
        let t = db
            .create_table(TableDefinition {
                columns: vec![column("id", "int4"), column("f", "bpchar(64)")],
                indexes: Vec::new(),
                fillfactor: HeapFillfactor::new(fillfactor).unwrap(),
            })
            .unwrap();
        let filler = Value::Text(Text::padded(b' ', 64));
        let keys: Vec<[Value; 2]> = (1..=10_000_i64)
            .map(|id| [id.into(), filler.clone()])
            .collect();
        let rows = (1..=10_000_i64).zip(&keys).map(|(id, values)| CopyRow {
            values,
            line_bytes: u32::try_from(id.to_string().len()).unwrap() + 1 + 64,
        });
        assert_eq!(db.copy(t, rows), Ok(10_000));
        db.commit();
        assert_eq!(
            db.table(t).heap().page_count(),
            pages,
            "{version} {fillfactor}"
        );
        let of = |record| {
            let totals = db.wal().of(record);
            (totals.wal_records, totals.wal_bytes)
        };
        let (joined, init) = if fillfactor == 100 {
            ((10, 31_930), (124, 755_422))
        } else {
            ((10, 15_850), (176, 773_648))
        };
        assert_eq!(
            of(RecordType::HeapMultiInsert),
            joined,
            "{version} {fillfactor}"
        );
        assert_eq!(
            of(RecordType::HeapMultiInsertInit),
            init,
            "{version} {fillfactor}"
        );
        let hints = if version == "18.4" { (3, 132) } else { (0, 0) };
        assert_eq!(of(RecordType::FpiForHint), hints, "{version} {fillfactor}");
    }
}

/// One row of each page leaves it; VACUUM cleans heap and index, and pages are visible again.
#[test]
fn vacuum_after_updates() {
    for (version, cleaned) in [("18.4", 5200), ("15.18", 5000)] {
        let mut fixture = Shape {
            version,
            rows: 7500,
            fillfactor: 100,
            filler: 64,
            full_page_writes: false,
            indexes_abalance: false,
        }
        .loaded();
        let action = Action::Update(Assignments {
            columns: &[add(ABALANCE, 1)],
        });
        let wanted = |row: Row<'_>| row.integer(AID).unwrap() % 75 == 1;
        let found = fixture.db.by_seq_scan(fixture.t, wanted, &action);
        assert_eq!(found, Ok(100));
        fixture.db.commit();
        assert_eq!(fixture.of(RecordType::HeapLock), (100, 5400));
        assert_eq!(fixture.of(RecordType::HeapUpdate), (98, 15_092));
        assert_eq!(fixture.of(RecordType::HeapUpdateInit), (2, 308));
        assert_eq!(fixture.of(RecordType::Btree(InsertLeaf)), (100, 6400));
        fixture.db.vacuum(fixture.t).unwrap();
        assert_eq!(
            fixture.of(RecordType::HeapPruneVacuum),
            (100, 5600),
            "{version}"
        );
        assert_eq!(
            fixture.of(RecordType::HeapVacuum),
            (100, cleaned),
            "{version}"
        );
        let entries = RecordType::Btree(pgheadroom_twin::btree::RecordKind::Vacuum);
        assert_eq!(fixture.of(entries), (21, 1250), "{version}");
        assert_eq!(
            fixture.of(RecordType::HeapVisible),
            (102, 6018),
            "{version}"
        );
        fixture.check();
    }
}
