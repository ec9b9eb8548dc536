//! One operation of a workload, carried out on the database.

use crate::executor::{Action, Assignments, Database, Row, StatementError, TableId};
use crate::value::Value;
use crate::workload::{Access, CmdType, Operation};

/// Carries out one operation; how many rows it inserted or found.
///
/// # Errors
/// Those of the statement.
pub fn perform(db: &mut Database, operation: &Operation) -> Result<u64, StatementError> {
    match operation {
        Operation::Insert { .. } | Operation::Upsert { .. } => insert_from(db, operation, 0),
        Operation::Find {
            table,
            by,
            low,
            high,
            cmd_type,
            ..
        } => find(db, *table, *by, (*low, *high), cmd_type),
        Operation::Head {
            table,
            head,
            limit,
            cmd_type,
            ..
        } => counted(db, cmd_type, |db, action| {
            db.by_head(*table, head, *limit, action)
        }),
        Operation::FindByPrefix {
            table,
            index,
            low,
            high,
            cmd_type,
        } => counted(db, cmd_type, |db, action| {
            db.by_index(*table, *index, low, high, action)
        }),
        Operation::ReadEach { table, index, keys } => {
            let read = |&key: &i64| db.by_key(*table, *index, (key, key), &Action::Read);
            keys.iter().map(read).sum()
        }
        Operation::Refused { reason, .. } => Err(reason.clone().into()),
    }
}

/// Goes on with an operation of the active session that had to wait; how many rows it inserted or
/// found in all.
///
/// # Errors
/// Those of the statement, which may have to wait again.
///
/// # Panics
/// When the session does not wait with such an operation.
pub fn resume(db: &mut Database, operation: &Operation) -> Result<u64, StatementError> {
    match operation {
        Operation::Insert { rows, .. } => match db.resume_insert(None)? {
            Some(done) => insert_from(db, operation, done),
            None => Ok(rows.len() as u64),
        },
        Operation::Upsert {
            index, rows, sets, ..
        } => {
            let assignments = Assignments { columns: sets };
            match db.resume_insert(Some((*index, rows, &assignments)))? {
                Some(done) => insert_from(db, operation, done),
                None => Ok(rows.len() as u64),
            }
        }
        Operation::Find {
            table,
            by,
            low,
            high,
            cmd_type,
            ..
        } => {
            let ends = match by {
                Access::Index(_) | Access::Bitmap(_) => None,
                Access::SeqScan(key) => Some((*key, ends_of(db, *table, *key, (*low, *high))?)),
            };
            counted(db, cmd_type, |db, action| {
                db.resume_scan(action, |row| {
                    let (key, (first, last)) = ends.as_ref().expect("a scan of the table");
                    is_within(row, *key, (first, last))
                })
            })
        }
        Operation::Head {
            table,
            head,
            limit,
            cmd_type,
            ..
        } => counted(db, cmd_type, |db, action| {
            db.resume_head(*table, head, *limit, action)
        }),
        Operation::FindByPrefix { cmd_type, .. } => counted(db, cmd_type, |db, action| {
            db.resume_scan(action, |_| unreachable!("a scan by key"))
        }),
        Operation::ReadEach { .. } => unreachable!("who reads does not wait"),
        Operation::Refused { .. } => unreachable!("it never began"),
    }
}

/// The rows of an INSERT, but for the first ones, and its end.
fn insert_from(
    db: &mut Database,
    operation: &Operation,
    first: usize,
) -> Result<u64, StatementError> {
    let (Operation::Insert { table, rows } | Operation::Upsert { table, rows, .. }) = operation
    else {
        unreachable!("an INSERT");
    };
    for (number, values) in (1..).zip(rows).skip(first) {
        let done = match operation {
            Operation::Upsert { index, sets, .. } => {
                db.upsert(*table, *index, values, &Assignments { columns: sets })
            }
            _ => db.insert(*table, values),
        };
        if done.is_err() {
            db.note_rows_done(number);
        }
        done?;
    }
    db.end_or_wait(*table)?;
    Ok(rows.len() as u64)
}

/// Carries out a statement, whose updates are counted as such.
fn counted(
    db: &mut Database,
    cmd_type: &CmdType,
    statement: impl FnOnce(&mut Database, &Action<'_>) -> Result<u64, StatementError>,
) -> Result<u64, StatementError> {
    db.wal_mut()
        .count_updates(matches!(cmd_type, CmdType::Update(_)));
    let done = statement(db, &action_of(cmd_type));
    db.wal_mut().count_updates(false);
    done
}

/// What stands for the first and the last key of a statement in their column.
fn ends_of(
    db: &Database,
    table: TableId,
    column: usize,
    (low, high): (i64, i64),
) -> Result<(Value, Value), StatementError> {
    let first = db.key_value(table, column, low)?;
    let last = db.key_value(table, column, high)?;
    Ok((first, last))
}

fn is_within(row: Row<'_>, key: usize, ends: (&Value, &Value)) -> bool {
    match ends {
        (&Value::Integer(low), &Value::Integer(high)) => {
            let value = row.integer(key);
            value.is_some_and(|value| (low..=high).contains(&value))
        }
        (low, high) if low == high => row.value(key) == *low,
        (Value::Text(low), Value::Text(high)) => match row.value(key) {
            Value::Text(text) => {
                (low.order_bytes()..=high.order_bytes()).contains(&text.order_bytes())
            }
            _ => false,
        },
        _ => unreachable!("both ends are of one type"),
    }
}

fn find(
    db: &mut Database,
    table: TableId,
    by: Access,
    (low, high): (i64, i64),
    cmd_type: &CmdType,
) -> Result<u64, StatementError> {
    counted(db, cmd_type, |db, action| match by {
        Access::Index(index) => db.by_key(table, index, (low, high), action),
        Access::Bitmap(index) => db.by_bitmap(table, index, (low, high), action),
        Access::SeqScan(key) => {
            let (first, last) = ends_of(db, table, key, (low, high))?;
            let wanted = |row: Row<'_>| is_within(row, key, (&first, &last));
            db.by_seq_scan(table, wanted, action)
        }
    })
}

fn action_of(cmd_type: &CmdType) -> Action<'_> {
    match cmd_type {
        CmdType::Read => Action::Read,
        CmdType::Lock(mode, policy) => Action::Lock(*mode, *policy),
        CmdType::Delete => Action::Delete,
        CmdType::Update(columns) => Action::Update(Assignments { columns }),
    }
}
