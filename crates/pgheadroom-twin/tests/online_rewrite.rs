//! A rewrite beside clients: what they changed meanwhile is caught up, and pruned on the way.

use crate::common::table as fixture;

use fixture::{ABALANCE, Shape, add};

/// Changes are applied in transactions of their own, whose snapshots see the earlier ones as ended:
/// the new table prunes what they leave, and is not twice as long.
///
/// What happened: without snapshots nothing was pruned while changes were caught up, and a table of
/// 77 pages got 141.
#[test]
fn what_is_caught_up_is_pruned() {
    let shape = Shape {
        version: "18.4",
        rows: 4000,
        fillfactor: 80,
        filler: 64,
        full_page_writes: false,
        indexes_abalance: false,
    };
    let mut fixture = shape.loaded();
    let loaded = fixture.db.table(fixture.t).heap().page_count();
    let rewrite = fixture.db.begin_online_rewrite(fixture.t).unwrap();
    for round in 0..5 {
        for aid in 1..=4000 {
            fixture.update_one(1 + (aid * 7 + round) % 4000, &[add(ABALANCE, 1)]);
        }
    }
    let done = fixture.db.end_online_rewrite(rewrite).unwrap();
    let new = done.heap_pages[1];
    assert!(new < loaded + loaded / 4, "{loaded} pages, {new} after");
}
