//! One operation of a workload, carried out on the database.

use crate::executor::{Action, Assignments, Database, Row, StatementError, TableId};
use crate::workload::{Access, Deed, Operation};

/// Carries out one operation; how many rows it inserted or found.
///
/// # Errors
/// Those of the statement.
pub fn perform(db: &mut Database, operation: &Operation) -> Result<u64, StatementError> {
    match operation {
        Operation::Insert { table, rows } => {
            for values in rows {
                db.insert(*table, values)?;
            }
            db.end_statement(*table)?;
            Ok(rows.len() as u64)
        }
        Operation::Find {
            table,
            by,
            low,
            high,
            deed,
            ..
        } => find(db, *table, *by, (*low, *high), deed),
        Operation::Head {
            table,
            head,
            limit,
            deed,
            ..
        } => {
            let action = action_of(deed);
            db.wal_mut().count_updates(matches!(deed, Deed::Update(_)));
            let done = db.by_head(*table, head, *limit, &action);
            db.wal_mut().count_updates(false);
            done
        }
        Operation::Upsert {
            table,
            index,
            rows,
            sets,
        } => {
            for values in rows {
                let assignments = Assignments { columns: sets };
                db.upsert(*table, *index, values, &assignments)?;
            }
            db.end_statement(*table)?;
            Ok(rows.len() as u64)
        }
        Operation::Refused { reason, .. } => Err(reason.clone().into()),
    }
}

fn find(
    db: &mut Database,
    table: TableId,
    by: Access,
    (low, high): (i64, i64),
    deed: &Deed,
) -> Result<u64, StatementError> {
    let action = action_of(deed);
    db.wal_mut().count_updates(matches!(deed, Deed::Update(_)));
    let done = match by {
        Access::Index(index) => db.by_index(table, index, &[low], &[high], &action),
        Access::SeqScan(key) => {
            let wanted = |row: Row<'_>| {
                let value = row.integer(key);
                value.is_some_and(|value| (low..=high).contains(&value))
            };
            db.by_seq_scan(table, wanted, &action)
        }
    };
    db.wal_mut().count_updates(false);
    done
}

fn action_of(deed: &Deed) -> Action<'_> {
    match deed {
        Deed::Read => Action::Read,
        Deed::Lock => Action::Lock,
        Deed::Delete => Action::Delete,
        Deed::Update(columns) => Action::Update(Assignments { columns }),
    }
}
