//! The measures of order on tables whose order is known.

use std::collections::BTreeSet;

use pgheadroom_layout::{HeapFillfactor, PgVersion};
use pgheadroom_twin::executor::{
    Action, ColumnDefinition, Database, IndexDefinition, TableDefinition, TableId,
};
use pgheadroom_twin::order::{KeyOrder, RANGE_KEYS, order_of};
use pgheadroom_twin::value::{Text, Value};
use pgheadroom_twin::wal::WalSettings;

/// Rows of 376 bytes, 21 a page, in the order of these keys.
fn loaded(keys: impl Iterator<Item = i64>) -> (Database, TableId) {
    let version: PgVersion = "18.4".parse().unwrap();
    let settings = WalSettings {
        full_page_writes: false,
        hints_are_logged: false,
        is_logical: false,
    };
    let mut db = Database::new(version.behaviour(), settings);
    let column = |name, kind| ColumnDefinition::new(name, kind).unwrap();
    let table = db
        .create_table(TableDefinition {
            columns: vec![column("k", "int4"), column("d", "bpchar(340)")],
            indexes: vec![IndexDefinition::on_columns(vec![0], false)],
            fillfactor: HeapFillfactor::new(100).unwrap(),
        })
        .unwrap();
    let d = Value::Text(Text::padded(b' ', 340));
    for key in keys {
        db.insert(table, &[key.into(), d.clone()]).unwrap();
    }
    db.commit();
    (db, table)
}

/// In order, in reverse, and two halves in turn: what correlation says, and what a range reads.
#[test]
fn known_orders() {
    let rows = 4200;
    let (db, table) = loaded(1..=rows);
    let order = order_of(&db, table).unwrap();
    assert_eq!(order.correlation, Some(1.0));
    // 1,000 rows fill 47.6 pages and reach into a part of another.
    let in_order = order.pages_per_range;
    assert!((48.0..=49.0).contains(&in_order), "{order:?}");

    let (db, table) = loaded((1..=rows).rev());
    let reverse = order_of(&db, table).unwrap();
    assert!((reverse.correlation.unwrap() + 1.0).abs() < 1e-12);
    assert!((48.0..=49.0).contains(&reverse.pages_per_range));

    // Odd keys first, even keys after them: a range lies in two places, and each half is in order.
    let (db, table) = loaded((1..=rows).step_by(2).chain((2..=rows).step_by(2)));
    let halves = order_of(&db, table).unwrap();
    assert!(
        (48.0..=50.0).contains(&halves.pages_per_range),
        "500 rows in each half"
    );
    let correlation = halves.correlation.unwrap();
    assert!((correlation - 0.5).abs() < 0.01, "{correlation}");

    // Each key 97 places further than the one before, against a count by hand: 21 rows a page.
    let keys: Vec<i64> = (0..rows).map(|n| n * 97 % rows + 1).collect();
    let (db, table) = loaded(keys.iter().copied());
    let scattered = order_of(&db, table).unwrap();
    let pages = (0..rows / RANGE_KEYS).map(|range| {
        let range = range * RANGE_KEYS + 1..=(range + 1) * RANGE_KEYS;
        let placed = keys.iter().enumerate();
        let of_range = placed.filter(|(_, key)| range.contains(key));
        let pages: BTreeSet<usize> = of_range.map(|(place, _)| place / 21).collect();
        pages.len()
    });
    let by_hand = f64::from(u32::try_from(pages.sum::<usize>()).unwrap()) / 4.0;
    assert_eq!(scattered.pages_per_range, by_hand);
    assert!(by_hand > 2.0 * in_order, "far from in order");
    assert!(scattered.correlation.unwrap().abs() < 0.1);
}

/// Only rows that are there count: deleted ones do not, and versions of one row count once.
#[test]
fn live_rows_only() {
    let (mut db, table) = loaded(1..=2100);
    let found = db.by_index(table, 0, &[1], &[1050], &Action::Delete);
    assert_eq!(found, Ok(1050));
    db.commit();
    let rows = KeyOrder::of(&db, table, 0);
    assert_eq!(rows.rows(), 1050);
    assert_eq!((rows.pages_in(1, 1050), rows.pages_in(1051, 2100)), (0, 50));
    db.by_index(table, 0, &[1051], &[1200], &Action::Delete)
        .unwrap();
    db.rollback();
    assert_eq!(KeyOrder::of(&db, table, 0).rows(), 1050, "rolled back");
    // Fewer keys than a range: it is over all of them.
    assert_eq!(rows.pages_per_range(RANGE_KEYS * 10), Some(50.0));
}

/// No rows, no order; one row has no correlation.
#[test]
fn nothing_to_measure() {
    let (db, table) = loaded(std::iter::empty());
    assert_eq!(order_of(&db, table), None);
    let (db, table) = loaded(std::iter::once(7));
    let order = order_of(&db, table).unwrap();
    assert_eq!((order.pages_per_range, order.correlation), (1.0, None));
}
