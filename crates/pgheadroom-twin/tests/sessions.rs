//! Sessions side by side: what each sees, who waits for whom, and what follows.

use crate::common::table as fixture;

use std::cell::RefCell;

use fixture::{ABALANCE, AID, Fixture, Shape};
use pgheadroom_twin::executor::{
    Action, Assignment, Assignments, Change, Head, SessionId, StatementError,
};
use pgheadroom_twin::procarray::Isolation;
use pgheadroom_twin::value::{Text, Value};
use pgheadroom_twin::wal::RecordType;

const FIRST: SessionId = SessionId(0);
const ADD_ONE: [Assignment<'static>; 1] = [Assignment {
    column: ABALANCE,
    change: Change::Add(1),
}];

fn loaded() -> (Fixture, SessionId) {
    with_rows(20, 100)
}

fn with_rows(rows: i64, fillfactor: i64) -> (Fixture, SessionId) {
    let shape = Shape {
        version: "18.4",
        rows,
        fillfactor,
        filler: 64,
        full_page_writes: false,
        indexes_abalance: false,
    };
    let mut fixture = shape.loaded();
    let second = fixture.db.open_session();
    (fixture, second)
}

impl Fixture {
    fn add_one(&mut self, key: i64) -> Result<u64, StatementError> {
        let action = Action::Update(Assignments { columns: &ADD_ONE });
        self.db.by_index(self.t, 0, &[key], &[key], &action)
    }

    fn go_on_adding(&mut self) -> Result<u64, StatementError> {
        let action = Action::Update(Assignments { columns: &ADD_ONE });
        self.db.resume_scan(&action, |_| true)
    }

    fn insert_key(&mut self, key: i64) -> Result<(), StatementError> {
        let filler = Value::Text(Text::padded(b' ', 64));
        self.db
            .insert(self.t, &[key.into(), 1.into(), filler, 0.into()])
    }

    /// The newest value of a row, by whatever version the active session sees of it.
    fn balance(&mut self, key: i64) -> Option<i64> {
        let seen = RefCell::new(None);
        let wanted = |row: pgheadroom_twin::executor::Row<'_>| {
            if row.integer(AID) == Some(key) {
                *seen.borrow_mut() = row.integer(ABALANCE);
            }
            false
        };
        self.db.by_seq_scan(self.t, wanted, &Action::Read).unwrap();
        seen.into_inner()
    }

    fn records(&self, of: RecordType) -> u64 {
        let mut counted = self.db.wal().counted_by_type();
        counted
            .find(|(record, _)| *record == of)
            .map_or(0, |(_, totals)| totals.wal_records)
    }
}

fn is_wait<T>(done: &Result<T, StatementError>) -> bool {
    matches!(done, Err(StatementError::Waits(_)))
}

/// Who wants a row that another session has changed waits for its end, then locks the newest
/// version and changes that: one LOCK record more than two updates need.
#[test]
fn the_second_updater_waits_and_updates_the_newest_version() {
    let (mut fixture, second) = loaded();
    assert_eq!(fixture.add_one(5), Ok(1));
    fixture.db.switch_to(second);
    let waits = fixture.add_one(5);
    assert!(is_wait(&waits), "{waits:?}");
    assert_eq!(fixture.db.waits_for(second), Some(FIRST));
    assert_eq!(fixture.records(RecordType::HeapLock), 0);
    fixture.db.switch_to(FIRST);
    assert_eq!(fixture.db.commit(), [second]);
    fixture.db.switch_to(second);
    assert_eq!(fixture.go_on_adding(), Ok(1));
    assert_eq!(fixture.db.commit(), []);
    assert_eq!(fixture.balance(5), Some(2));
    assert_eq!(fixture.records(RecordType::HeapLock), 1);
    assert_eq!(fixture.records(RecordType::HeapHotUpdate), 2);
    fixture.check();
}

/// After a rollback the waiting session takes the old version, which nobody locks.
#[test]
fn after_a_rollback_the_old_version_is_taken() {
    let (mut fixture, second) = loaded();
    fixture.add_one(5).unwrap();
    fixture.db.switch_to(second);
    fixture.add_one(6).unwrap();
    assert!(is_wait(&fixture.add_one(5)));
    fixture.db.switch_to(FIRST);
    assert_eq!(fixture.db.rollback(), [second]);
    fixture.db.switch_to(second);
    assert_eq!(fixture.go_on_adding(), Ok(1));
    fixture.db.commit();
    assert_eq!((fixture.balance(5), fixture.balance(6)), (Some(1), Some(1)));
    assert_eq!(fixture.records(RecordType::HeapLock), 0);
    fixture.check();
}

/// A row that was deleted meanwhile is passed over.
#[test]
fn a_deleted_row_is_passed_over() {
    let (mut fixture, second) = loaded();
    let (t, delete) = (fixture.t, Action::Delete);
    assert_eq!(fixture.db.by_index(t, 0, &[5], &[5], &delete), Ok(1));
    fixture.db.switch_to(second);
    let action = Action::Update(Assignments { columns: &ADD_ONE });
    let done = fixture.db.by_index(t, 0, &[4], &[6], &action);
    assert!(is_wait(&done));
    fixture.db.switch_to(FIRST);
    fixture.db.commit();
    fixture.db.switch_to(second);
    assert_eq!(fixture.go_on_adding(), Ok(2), "rows 4 and 6");
    fixture.db.commit();
    let seen = [4, 5, 6].map(|key| fixture.balance(key));
    assert_eq!(seen, [Some(1), None, Some(1)]);
    fixture.check();
}

/// The condition is looked at again: a row that does not fulfil it any more is locked and left.
#[test]
fn the_condition_is_looked_at_again() {
    let (mut fixture, second) = loaded();
    let moved = [Assignment {
        column: AID,
        change: Change::Add(100),
    }];
    let action = Action::Update(Assignments { columns: &moved });
    assert_eq!(
        fixture.db.by_index(fixture.t, 0, &[5], &[5], &action),
        Ok(1)
    );
    fixture.db.switch_to(second);
    assert!(is_wait(&fixture.add_one(5)));
    fixture.db.switch_to(FIRST);
    fixture.db.commit();
    fixture.db.switch_to(second);
    assert_eq!(fixture.go_on_adding(), Ok(0));
    fixture.db.commit();
    assert_eq!(fixture.balance(105), Some(0));
    assert_eq!(fixture.records(RecordType::HeapLock), 1);
    fixture.check();
}

/// A repeatable read transaction fails where a read committed one goes on.
#[test]
fn repeatable_read_fails_to_serialize() {
    let (mut fixture, second) = loaded();
    fixture.db.switch_to(second);
    fixture.db.set_isolation(Isolation::RepeatableRead);
    assert_eq!(fixture.balance(5), Some(0));
    fixture.db.switch_to(FIRST);
    fixture.add_one(5).unwrap();
    fixture.db.commit();
    fixture.db.switch_to(second);
    assert_eq!(fixture.add_one(5), Err(StatementError::Serialization));
    fixture.db.rollback();
    assert_eq!(fixture.add_one(5), Ok(1), "a new snapshot");
    fixture.db.commit();
    fixture.check();
}

/// An uncommitted row is invisible to others, and a second one with its key waits: it fails after a
/// commit, and is taken after a rollback.
#[test]
fn a_key_in_doubt_is_waited_for() {
    for commits in [true, false] {
        let (mut fixture, second) = loaded();
        fixture.insert_key(50).unwrap();
        fixture.db.switch_to(second);
        assert_eq!(fixture.balance(50), None);
        assert!(is_wait(&fixture.insert_key(50)));
        fixture.db.switch_to(FIRST);
        let woken = if commits {
            fixture.db.commit()
        } else {
            fixture.db.rollback()
        };
        assert_eq!(woken, [second]);
        fixture.db.switch_to(second);
        let done = fixture.db.resume_insert(None).map(|_| ());
        if commits {
            assert_eq!(done, Err(StatementError::Unique { key: 50 }));
            fixture.db.rollback();
        } else {
            assert_eq!(done, Ok(()));
            fixture.db.commit();
        }
        assert_eq!(fixture.balance(50), Some(0));
        fixture.check();
    }
}

/// Waiting sessions go on in the order in which they came, each behind the one before.
#[test]
fn waiting_sessions_keep_their_order() {
    let (mut fixture, second) = loaded();
    let third = fixture.db.open_session();
    fixture.add_one(5).unwrap();
    for waiting in [third, second] {
        fixture.db.switch_to(waiting);
        assert!(is_wait(&fixture.add_one(5)));
    }
    fixture.db.switch_to(FIRST);
    assert_eq!(fixture.db.commit(), [third, second]);
    fixture.db.switch_to(third);
    assert_eq!(fixture.go_on_adding(), Ok(1));
    fixture.db.switch_to(second);
    assert!(is_wait(&fixture.go_on_adding()));
    assert_eq!(fixture.db.waits_for(second), Some(third));
    fixture.db.switch_to(third);
    assert_eq!(fixture.db.commit(), [second]);
    fixture.db.switch_to(second);
    assert_eq!(fixture.go_on_adding(), Ok(1));
    fixture.db.commit();
    assert_eq!(fixture.balance(5), Some(3));
    fixture.check();
}

/// Who waits for the version of its snapshot stands in its line. Who has been woken and comes to
/// one that is being replaced again waits for that transaction alone, beside the line of those that
/// found it at once: after a rollback all may go on.
#[test]
fn a_line_is_a_versions() {
    let (mut fixture, second) = loaded();
    let [third, fourth, fifth] = [(); 3].map(|()| fixture.db.open_session());
    fixture.add_one(5).unwrap();
    for waiting in [second, third] {
        fixture.db.switch_to(waiting);
        assert!(is_wait(&fixture.add_one(5)));
    }
    assert_eq!(fixture.db.waits_for(third), Some(second));
    fixture.db.switch_to(FIRST);
    assert_eq!(fixture.db.commit(), [second, third]);
    fixture.db.switch_to(second);
    assert_eq!(fixture.go_on_adding(), Ok(1));
    for waiting in [fourth, fifth] {
        fixture.db.switch_to(waiting);
        assert!(is_wait(&fixture.add_one(5)));
    }
    fixture.db.switch_to(third);
    assert!(is_wait(&fixture.go_on_adding()));
    assert_eq!(fixture.db.waits_for(third), Some(second));
    assert_eq!(fixture.db.waits_for(fourth), Some(second));
    assert_eq!(fixture.db.waits_for(fifth), Some(fourth));
    fixture.db.switch_to(second);
    assert_eq!(fixture.db.rollback(), [fourth, fifth, third]);
    for (next, locks) in [(fourth, 1), (third, 2), (fifth, 3)] {
        fixture.db.switch_to(next);
        assert_eq!(fixture.go_on_adding(), Ok(1));
        fixture.db.commit();
        assert_eq!(fixture.records(RecordType::HeapLock), locks);
    }
    assert_eq!(fixture.balance(5), Some(4));
    fixture.check();
}

/// Two sessions that wait for each other are a deadlock; the one that began to wait first gives
/// way, and the other goes on.
#[test]
fn a_deadlock_is_found_and_resolved() {
    let (mut fixture, second) = loaded();
    fixture.add_one(5).unwrap();
    fixture.db.switch_to(second);
    fixture.add_one(6).unwrap();
    assert!(is_wait(&fixture.add_one(5)));
    assert_eq!(fixture.db.deadlock_of(second), []);
    fixture.db.switch_to(FIRST);
    assert!(is_wait(&fixture.add_one(6)));
    assert_eq!(fixture.db.deadlock_of(FIRST), [second, FIRST]);
    fixture.db.switch_to(second);
    assert_eq!(fixture.db.rollback(), [FIRST]);
    fixture.db.switch_to(FIRST);
    assert_eq!(fixture.go_on_adding(), Ok(1));
    fixture.db.commit();
    assert_eq!((fixture.balance(5), fixture.balance(6)), (Some(1), Some(1)));
    fixture.check();
}

/// A rollback takes back its own session's changes and counts only those.
#[test]
fn a_rollback_is_of_one_session() {
    let (mut fixture, second) = loaded();
    fixture.add_one(1).unwrap();
    fixture.db.switch_to(second);
    fixture.add_one(2).unwrap();
    fixture.db.switch_to(FIRST);
    fixture.db.rollback();
    assert_eq!(
        fixture.db.table(fixture.t).counters().n_mod_since_analyze,
        0
    );
    fixture.db.switch_to(second);
    fixture.db.commit();
    assert_eq!((fixture.balance(1), fixture.balance(2)), (Some(0), Some(1)));
    assert_eq!(
        fixture.db.table(fixture.t).counters().n_mod_since_analyze,
        1
    );
    fixture.check();
}

/// A transaction holds the horizon by its number, and by its snapshot only while a statement runs
/// or a portal is open.
#[test]
fn a_read_committed_snapshot_ends_with_its_statement() {
    for keeps_portal in [false, true] {
        let (mut fixture, second) = loaded();
        fixture.db.switch_to(second);
        fixture.balance(1);
        fixture.db.close_statement(keeps_portal);
        fixture.db.switch_to(FIRST);
        for _ in 0..3 {
            fixture.add_one(7).unwrap();
            fixture.db.commit();
        }
        let oldest = fixture.db.procs().oldest_xmin();
        let next = fixture.db.procs().next_xid();
        assert_eq!(oldest == next, !keeps_portal, "{oldest:?} and {next:?}");
    }
}

/// Who has vacuumed holds nobody's rows afterwards.
#[test]
fn a_vacuum_leaves_no_snapshot() {
    let (mut fixture, second) = loaded();
    fixture.db.switch_to(second);
    fixture.db.vacuum(fixture.t).unwrap();
    fixture.db.switch_to(FIRST);
    assert_eq!(fixture.add_one(1), Ok(1));
    fixture.db.commit();
    let procs = fixture.db.procs();
    assert_eq!(procs.oldest_xmin(), procs.next_xid());
}

/// An UPDATE by a sequential scan, which goes on until it has come to its end or waits.
fn add_one_by_scan(fixture: &mut Fixture, last: i64) -> (Result<u64, StatementError>, u32) {
    let wanted = |row: pgheadroom_twin::executor::Row<'_>| {
        row.integer(AID).is_some_and(|key| key % 300 == last % 300)
    };
    let action = Action::Update(Assignments { columns: &ADD_ONE });
    let mut done = fixture.db.by_seq_scan(fixture.t, wanted, &action);
    let mut parts = 1;
    while matches!(done, Err(StatementError::Scans)) {
        fixture.db.switch_to(FIRST);
        fixture.db.switch_to(SessionId(1));
        done = fixture.db.resume_scan(&action, wanted);
        parts += 1;
    }
    (done, parts)
}

/// A sequential scan in parts does what a whole one does if nobody does anything meanwhile.
#[test]
fn a_scan_in_parts_is_a_scan() {
    let scanned = |in_parts: bool| {
        let (mut fixture, second) = with_rows(3000, 90);
        if in_parts {
            fixture.db.scan_in_parts();
        }
        fixture.db.switch_to(second);
        let (done, parts) = add_one_by_scan(&mut fixture, 7);
        assert_eq!(done, Ok(10));
        assert_eq!(parts > 5, in_parts, "{parts}");
        fixture.db.commit();
        fixture.check();
        let counted = fixture.db.wal().counted_by_type();
        counted
            .map(|(record, totals)| (record, totals.wal_records, totals.wal_bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(scanned(true), scanned(false));
}

/// Who comes to a row that was changed since its scan began locks the newest version, without a
/// wait; and who is between two parts waits for nobody.
#[test]
fn a_scan_meets_what_was_changed_meanwhile() {
    let (mut fixture, second) = with_rows(3000, 90);
    fixture.db.scan_in_parts();
    fixture.db.switch_to(second);
    let wanted = |row: pgheadroom_twin::executor::Row<'_>| row.integer(AID) == Some(2900);
    let action = Action::Update(Assignments { columns: &ADD_ONE });
    let mut done = fixture.db.by_seq_scan(fixture.t, wanted, &action);
    assert_eq!(done, Err(StatementError::Scans));
    assert_eq!(fixture.db.waits_for(second), None);
    fixture.db.switch_to(FIRST);
    fixture.add_one(2900).unwrap();
    assert_eq!(fixture.db.commit(), []);
    fixture.db.switch_to(second);
    while done == Err(StatementError::Scans) {
        done = fixture.db.resume_scan(&action, wanted);
    }
    assert_eq!(done, Ok(1));
    fixture.db.commit();
    assert_eq!(fixture.records(RecordType::HeapLock), 1);
    assert_eq!(fixture.records(RecordType::HeapHotUpdate), 2);
    fixture.check();
}

/// The queue of all rows in the order of their key.
const HEAD: Head = Head {
    index: 0,
    bound: None,
    filter: None,
    key_index: 0,
};

impl Fixture {
    fn delete_head(&mut self) -> Result<u64, StatementError> {
        self.db.by_head(self.t, &HEAD, 1, &Action::Delete)
    }

    /// A head's statement that begins and comes to its rows at once.
    fn head_at_once(&mut self, limit: usize, action: &Action<'_>) -> Result<u64, StatementError> {
        let begun = self.db.by_head(self.t, &HEAD, limit, action);
        assert_eq!(begun, Err(StatementError::OnItsWay));
        self.db.resume_head(self.t, &HEAD, limit, action)
    }

    fn go_on_with_head(&mut self, action: &Action<'_>) -> Result<u64, StatementError> {
        self.db.resume_head(self.t, &HEAD, 1, action)
    }
}

/// SKIP LOCKED asks whether a row is held when it comes to it, with the snapshot of its beginning:
/// of one that was deleted meanwhile nothing is left, one whose holder goes on is passed over, and
/// one whose holder has failed is the head still.
#[test]
fn a_queues_head_is_looked_at_on_arrival() {
    for (ends, gone) in [(Some(true), [1, 2]), (None, [1, 2]), (Some(false), [1, 0])] {
        let (mut fixture, second) = loaded();
        fixture.db.ask_on_arrival();
        let done = fixture.head_at_once(1, &Action::Delete);
        assert_eq!(done, Ok(1), "row 1, which nobody holds");
        fixture.db.switch_to(second);
        assert_eq!(fixture.delete_head(), Err(StatementError::OnItsWay));
        fixture.db.switch_to(FIRST);
        match ends {
            Some(true) => assert!(fixture.db.commit().is_empty(), "nobody waits"),
            Some(false) => assert!(fixture.db.rollback().is_empty(), "nobody waits"),
            None => {}
        }
        fixture.db.switch_to(second);
        assert_eq!(fixture.go_on_with_head(&Action::Delete), Ok(1));
        fixture.db.commit();
        if ends.is_none() {
            fixture.db.switch_to(FIRST);
            fixture.db.commit();
        }
        fixture.db.switch_to(SessionId(0));
        let left = (1..=3).filter(|&key| fixture.balance(key).is_some());
        let left: Vec<i64> = left.collect();
        let expected = (1..=3).filter(|key| !gone.contains(key));
        assert_eq!(left, expected.collect::<Vec<i64>>(), "{ends:?}");
    }
}

/// A row that was updated between the snapshot and the arrival is locked and changed as it is now,
/// once, if it is read committed; a repeatable read transaction fails.
#[test]
fn a_queues_head_that_was_updated_meanwhile() {
    let update = Action::Update(Assignments { columns: &ADD_ONE });
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let (mut fixture, second) = loaded();
        fixture.db.ask_on_arrival();
        let head = &HEAD;
        assert_eq!(fixture.head_at_once(1, &update), Ok(1));
        fixture.db.switch_to(second);
        fixture.db.set_isolation(isolation);
        let done = fixture.db.by_head(fixture.t, head, 1, &update);
        assert_eq!(done, Err(StatementError::OnItsWay));
        fixture.db.switch_to(FIRST);
        fixture.db.commit();
        fixture.db.switch_to(second);
        let locks = fixture.records(RecordType::HeapLock);
        let done = fixture.go_on_with_head(&update);
        if isolation == Isolation::RepeatableRead {
            assert_eq!(done, Err(StatementError::Serialization));
            continue;
        }
        assert_eq!(done, Ok(1));
        assert_eq!(fixture.records(RecordType::HeapLock), locks + 1);
        fixture.db.commit();
        assert_eq!([1, 2].map(|key| fixture.balance(key)), [Some(2), Some(0)]);
    }
}

/// Who has passed over a held row waits for nobody: a scan that stops for others behind it is no
/// first in that version's line.
#[test]
fn who_passes_over_a_row_stands_in_no_line() {
    let (mut fixture, second) = with_rows(1000, 100);
    let third = fixture.db.open_session();
    fixture.db.scan_in_parts();
    assert_eq!(fixture.add_one(1), Ok(1));
    fixture.db.switch_to(second);
    let update = Action::Update(Assignments { columns: &ADD_ONE });
    assert_eq!(fixture.db.by_head(fixture.t, &HEAD, 1, &update), Ok(1));
    let read = fixture.db.by_seq_scan(fixture.t, |_| true, &Action::Read);
    assert_eq!(read, Err(StatementError::Scans));
    fixture.db.switch_to(third);
    assert!(is_wait(&fixture.add_one(1)));
    assert_eq!(fixture.db.waits_for(third), Some(FIRST));
}

/// Of several rows at a queue's head those are changed too that another session has replaced since
/// the snapshot, where one look at a leaf finds all of them (17 on) and where each has its own.
#[test]
fn all_rows_of_a_queues_head_are_changed() {
    for version in ["15.18", "18.4"] {
        let shape = Shape {
            version,
            rows: 20,
            fillfactor: 100,
            filler: 64,
            full_page_writes: false,
            indexes_abalance: false,
        };
        let mut fixture = shape.loaded();
        let second = fixture.db.open_session();
        fixture.db.ask_on_arrival();
        let update = Action::Update(Assignments { columns: &ADD_ONE });
        assert_eq!(fixture.add_one(2), Ok(1));
        assert_eq!(fixture.add_one(3), Ok(1));
        fixture.db.switch_to(second);
        let done = fixture.db.by_head(fixture.t, &HEAD, 3, &update);
        assert_eq!(done, Err(StatementError::OnItsWay));
        fixture.db.switch_to(FIRST);
        fixture.db.commit();
        fixture.db.switch_to(second);
        let done = fixture.db.resume_head(fixture.t, &HEAD, 3, &update);
        assert_eq!(done, Ok(3), "{version}");
        fixture.db.commit();
        let balances = [1, 2, 3, 4].map(|key| fixture.balance(key));
        assert_eq!(balances, [Some(1), Some(2), Some(2), Some(0)], "{version}");
    }
}
