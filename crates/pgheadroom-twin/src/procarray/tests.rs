//! Horizons, snapshots and pins of a few backends.

use super::*;
use crate::transaction::{Outcome, Transactions};

/// A snapshot held elsewhere stops the horizon where it was taken, until it is released and a
/// snapshot with another xmin makes the backend look again.
#[test]
fn held_snapshots_stop_the_horizon_and_it_lags() {
    let mut procs = ProcArray::default();
    procs.begin_statement();
    let first = procs.assign();
    assert_eq!(procs.assign(), first);
    assert!(!procs.is_removable(first));
    procs.commit();
    procs.begin_statement();
    assert!(procs.is_removable(first));
    let held = procs.hold();
    procs.begin_statement();
    let second = procs.assign();
    procs.commit();
    procs.begin_statement();
    assert!(procs.is_removable(first) && !procs.is_removable(second));
    procs.release(held);
    procs.begin_statement();
    assert!(!procs.is_removable(second), "no xmin has moved since");
    procs.assign();
    procs.commit();
    procs.begin_statement();
    assert!(procs.is_removable(second));
}

/// Another backend's transaction is in progress until it ends, and holds the horizon by its
/// number when its snapshot is gone.
#[test]
fn other_backends_hold_the_horizon() {
    let mut procs = ProcArray::default();
    let other = procs.add();
    procs.begin_statement();
    let first = procs.assign();
    procs.end_statement(false);
    procs.switch_to(other, Vec::new());
    assert_eq!(procs.outcome(first), Outcome::InProgress);
    assert!(!procs.is_current(first) && procs.runs_elsewhere(first));
    assert_eq!(procs.backend_of(first), Some(0));
    procs.begin_statement();
    let second = procs.assign();
    procs.commit();
    procs.begin_statement();
    assert!(!procs.is_removable(second));
    procs.end_statement(false);
    procs.switch_to(0, Vec::new());
    procs.commit();
    procs.switch_to(other, Vec::new());
    procs.begin_statement();
    assert!(procs.is_removable(second));
    assert_eq!(procs.outcome(first), Outcome::Committed);
}

/// A snapshot does not see what ends after it was taken; the next statement's does, unless the
/// transaction keeps its first one.
#[test]
fn snapshots_last_as_long_as_the_isolation_says() {
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let mut procs = ProcArray::default();
        let other = procs.add();
        let running = procs.assign();
        procs.switch_to(other, Vec::new());
        procs.set_isolation(isolation);
        procs.begin_statement();
        assert_eq!(Snapshot(&procs).outcome(running), Outcome::InProgress);
        procs.end_statement(false);
        procs.switch_to(0, Vec::new());
        procs.commit();
        procs.switch_to(other, Vec::new());
        let lasts = Snapshot(&procs).outcome(running);
        assert_eq!(lasts, Outcome::InProgress, "taken before it ended");
        procs.begin_statement();
        let expected = match isolation {
            Isolation::ReadCommitted => Outcome::Committed,
            Isolation::RepeatableRead => Outcome::InProgress,
        };
        assert_eq!(Snapshot(&procs).outcome(running), expected);
    }
}

/// Aborted transactions stay aborted, in whatever order they end; one without changes has no
/// number.
#[test]
fn aborts_are_remembered() {
    let mut procs = ProcArray::default();
    assert_eq!(procs.abort(), None);
    let other = procs.add();
    let first = procs.assign();
    procs.switch_to(other, Vec::new());
    let second = procs.assign();
    procs.abort();
    procs.switch_to(0, Vec::new());
    assert_eq!(procs.outcome(first), Outcome::InProgress);
    procs.abort();
    let third = procs.assign();
    procs.commit();
    assert_eq!(procs.outcome(first), Outcome::Aborted);
    assert_eq!(procs.outcome(second), Outcome::Aborted);
    assert_eq!(procs.outcome(third), Outcome::Committed);
}

/// A page that another backend has pinned, by its scan or otherwise, cannot be pruned.
#[test]
fn pins_of_other_backends_are_seen() {
    let mut wal = crate::wal::Wal::new(crate::wal::WalSettings {
        full_page_writes: false,
        hints_are_logged: false,
        is_logical: false,
    });
    wal.open_table(0);
    let fork = wal.add_fork();
    let mut procs = ProcArray::default();
    let other = procs.add();
    procs.begin_statement();
    procs.note_slot(fork, BlockNumber(4));
    assert!(!procs.is_pinned(fork, BlockNumber(4)), "its own pin");
    procs.switch_to(other, vec![(fork, BlockNumber(7))]);
    let pinned = [4, 5, 7].map(|block| procs.is_pinned(fork, BlockNumber(block)));
    assert_eq!(pinned, [true, false, true]);
    procs.switch_to(0, Vec::new());
    procs.end_statement(false);
    procs.switch_to(other, Vec::new());
    assert!(!procs.is_pinned(fork, BlockNumber(4)));
}

/// A procedure's call holds the horizon by its snapshot, between its statements too and before it
/// has a number, and no longer than its transaction.
#[test]
fn a_call_holds_the_horizon() {
    let mut procs = ProcArray::default();
    let other = procs.add();
    procs.begin_statement();
    procs.keep_snapshot();
    procs.switch_to(other, Vec::new());
    procs.begin_statement();
    let xid = procs.assign();
    procs.commit();
    procs.switch_to(0, Vec::new());
    procs.begin_statement();
    assert_eq!(procs.outcome(xid), Outcome::Committed);
    procs.end_statement(false);
    assert_eq!(procs.oldest_xmin(), xid);
    procs.commit();
    procs.begin_statement();
    assert!(procs.oldest_xmin() > xid);
}
