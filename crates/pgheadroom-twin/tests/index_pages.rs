//! When pages that VACUUM has deleted from a B-tree can be used again.

use pgheadroom_layout::{HeapFillfactor, PgVersion};
use pgheadroom_twin::executor::{
    Action, ColumnDefinition, Database, IndexDefinition, Relation, TableDefinition, TableId,
    VacuumStep,
};
use pgheadroom_twin::vacuum::VacuumOptions;
use pgheadroom_twin::value::Value;
use pgheadroom_twin::wal::WalSettings;

const ROWS: i64 = 4000;

fn insert(db: &mut Database, table: TableId, keys: impl Iterator<Item = i64>) {
    for key in keys {
        db.insert(table, &[Value::Integer(key)]).unwrap();
        db.commit();
    }
}

/// Index pages after half of the rows were deleted and vacuumed away, and as many came back behind
/// the others; `writes` says behind which steps of the pass over the index a transaction ran.
fn pages_after(writes: impl Fn(usize) -> bool) -> u32 {
    let version: PgVersion = "18.4".parse().unwrap();
    let settings = WalSettings {
        full_page_writes: false,
        hints_are_logged: false,
        is_logical: false,
    };
    let mut db = Database::new(version.behaviour(), settings);
    let table = db
        .create_table(TableDefinition {
            columns: vec![ColumnDefinition::new("id", "int4").unwrap()],
            indexes: vec![IndexDefinition::on_columns(vec![0], true)],
            fillfactor: HeapFillfactor::new(100).unwrap(),
        })
        .unwrap();
    insert(&mut db, table, 1..=ROWS);
    let half = [ROWS / 2];
    db.by_index(table, 0, &[1], &half, &Action::Delete).unwrap();
    db.commit();
    let relation = Relation {
        table,
        is_toast: false,
    };
    let mut running = db.begin_vacuum(relation, VacuumOptions::default());
    let (mut steps, mut next) = (0, ROWS + 1);
    loop {
        match db.vacuum_step(&mut running).unwrap() {
            VacuumStep::IndexPages(pages) if pages > 0 => {
                if writes(steps) {
                    insert(&mut db, table, std::iter::once(next));
                    next += 1;
                }
                steps += 1;
            }
            VacuumStep::Pages(_) | VacuumStep::IndexPages(_) | VacuumStep::Locked => {}
            VacuumStep::Done(_) => break,
        }
    }
    insert(&mut db, table, next..=ROWS + ROWS / 2);
    db.table(table).index_pages()[0]
}

/// The horizon is looked at again when the pass ends: pages behind whose deletion a transaction
/// ran are free at once, the others wait for the next VACUUM.
///
/// Source: `_bt_pendingfsm_finalize`, src/backend/access/nbtree/nbtpage.c (REL_18_STABLE).
#[test]
fn deleted_pages_are_free_once_transactions_have_gone_on() {
    let (busy, idle) = (pages_after(|_| true), pages_after(|_| false));
    assert_eq!(idle, 1 + 1 + 17, "metapage, root, leaves of 6000 rows");
    assert!(busy + 4 <= idle, "{busy} and {idle} pages");
    let early = pages_after(|step| step < 3);
    assert!(
        busy < early && early < idle,
        "{busy}, {early} and {idle} pages"
    );
}
