//! Who is in a transaction that has locked a table keeps its end from being cut off.

use crate::common::table as fixture;

use fixture::{ABALANCE, Fixture, Shape};
use pgheadroom_twin::clock::Pace;
use pgheadroom_twin::executor::{
    Action, Assignment, Assignments, Change, Relation, SessionId, VacuumStep,
};
use pgheadroom_twin::profile::{Monitor, ProfileSpec};
use pgheadroom_twin::run::{Conditions, Timing, play};
use pgheadroom_twin::vacuum::VacuumOptions;

const FIRST: SessionId = SessionId(0);
const ROWS: i64 = 600;
/// So many tries follow the first (`VACUUM_TRUNCATE_LOCK_TIMEOUT` in its intervals).
const RETRIES: usize = 100;

/// A table whose end is empty, and a second session, which vacuums and is active.
fn with_empty_end() -> (Fixture, SessionId) {
    with_fillfactor(100)
}

fn with_fillfactor(fillfactor: i64) -> (Fixture, SessionId) {
    let shape = Shape {
        version: "18.4",
        rows: ROWS,
        fillfactor,
        filler: 64,
        full_page_writes: false,
        indexes_abalance: false,
    };
    let mut fixture = shape.loaded();
    let deleted = fixture
        .db
        .by_index(fixture.t, 0, &[200], &[ROWS], &Action::Delete);
    assert_eq!(deleted, Ok(401));
    fixture.db.commit();
    let second = fixture.db.open_session();
    fixture.db.switch_to(second);
    (fixture, second)
}

impl Fixture {
    fn pages(&self) -> u32 {
        self.db.table(self.t).heap().page_count()
    }

    /// The first session reads a row, and goes on with its transaction.
    fn first_reads(&mut self, then: SessionId) {
        self.db.switch_to(FIRST);
        assert_eq!(
            self.db.by_index(self.t, 0, &[5], &[5], &Action::Read),
            Ok(1)
        );
        self.db.close_statement(false);
        self.db.switch_to(then);
    }

    fn first_commits(&mut self, then: SessionId) {
        self.db.switch_to(FIRST);
        self.db.commit();
        self.db.switch_to(then);
    }
}

/// A reader in a transaction keeps the end, which the next VACUUM cuts off.
#[test]
fn a_transaction_keeps_the_end() {
    let (mut fixture, second) = with_empty_end();
    let pages = fixture.pages();
    fixture.first_reads(second);
    let kept = fixture.db.vacuum_as(fixture.t, VacuumOptions::default());
    let kept = kept.unwrap();
    assert!(!kept.took_lock, "no lock, and no record of one");
    assert_eq!((kept.truncated, fixture.pages()), (None, pages));
    fixture.first_commits(second);
    let cut = fixture.db.vacuum_as(fixture.t, VacuumOptions::default());
    let after = fixture.pages();
    assert_eq!(cut.unwrap().truncated, Some((pages, after)));
    assert!(after < pages / 2, "{after} of {pages}");
    fixture.check();
}

/// Who has updated a row keeps the end, and has nothing locked when the transaction has ended.
#[test]
fn an_update_keeps_the_end_until_it_commits() {
    for ends in [false, true] {
        let (mut fixture, second) = with_fillfactor(80);
        let pages = fixture.pages();
        let add = [Assignment {
            column: ABALANCE,
            change: Change::Add(1),
        }];
        let update = Action::Update(Assignments { columns: &add });
        fixture.db.switch_to(FIRST);
        let done = fixture.db.by_index(fixture.t, 0, &[5], &[5], &update);
        assert_eq!(done, Ok(1));
        if ends {
            fixture.db.commit();
        }
        fixture.db.switch_to(second);
        fixture.db.vacuum(fixture.t).unwrap();
        assert_eq!(fixture.pages() < pages, ends);
    }
}

/// Step by step a VACUUM asks a hundred times more, gets the lock as soon as it is free, and gives
/// up after that.
#[test]
fn a_vacuum_tries_again() {
    for frees_after in [0, 1, RETRIES - 1, RETRIES, RETRIES + 1] {
        let (mut fixture, second) = with_empty_end();
        let pages = fixture.pages();
        fixture.first_reads(second);
        let relation = Relation {
            table: fixture.t,
            is_toast: false,
        };
        let mut running = fixture.db.begin_vacuum(relation, VacuumOptions::BY_ITSELF);
        let mut tries = 0;
        let done = loop {
            if tries == frees_after {
                fixture.first_commits(second);
            }
            match fixture.db.vacuum_step(&mut running).unwrap() {
                VacuumStep::Locked => tries += 1,
                VacuumStep::Done(done) => break done,
                VacuumStep::Pages(_) | VacuumStep::IndexPages(_) => {}
            }
        };
        assert_eq!(tries, frees_after.min(RETRIES));
        let is_cut = frees_after <= RETRIES;
        assert_eq!(done.took_lock, is_cut, "{frees_after}");
        assert_eq!(fixture.pages() < pages, is_cut, "{frees_after}");
    }
}

/// A table whose end has rows is not asked for: nobody waits for its lock.
#[test]
fn nobody_waits_where_nothing_is_cut_off() {
    let (mut fixture, second) = with_empty_end();
    fixture.db.vacuum(fixture.t).unwrap();
    fixture.first_reads(second);
    let relation = Relation {
        table: fixture.t,
        is_toast: false,
    };
    let mut running = fixture.db.begin_vacuum(relation, VacuumOptions::BY_ITSELF);
    loop {
        match fixture.db.vacuum_step(&mut running).unwrap() {
            VacuumStep::Locked => panic!("nothing is to be cut off"),
            VacuumStep::Done(_) => break,
            VacuumStep::Pages(_) | VacuumStep::IndexPages(_) => {}
        }
    }
}

/// Clients empty one table, and go on looking for rows of it and of another one: 32 in transactions
/// of both statements, or four in such of one.
fn profile(are_blocks: bool) -> ProfileSpec {
    let text = r#"{"schema_version": 1,
        "server": {"version": "18.4", "shared_buffers": "64MB", "full_page_writes": false,
            "wal_level": "replica", "wal_compression": "off", "wal_log_hints": false,
            "autovacuum": false, "settings": {}},
        "table": [TABLES],
        "operation": [
            {"table": "t", "kind": "delete", "weight": 1, "rows_per_statement": 1,
             "abort_frac": 0, "pick": {"distribution": "oldest"}, "find": "index" BLOCK},
            {"table": "o", "kind": "select", "weight": 1, "rows_per_statement": 1,
             "abort_frac": 0, "pick": {"distribution": "uniform"}, "find": "index" BLOCK}],
        "run": {"operations": 16000, "clients": CLIENTS, "seed": 1,
            "maintenance": [{"do": "vacuum", "table": "t", "at_frac": 0.2}]}}"#;
    let table = r#"{"name": "NAME", "rows": 320, "fillfactor": 100, "reloptions": {},
        "columns": [
            {"name": "id", "type": "int4", "values": {"kind": "serial"}, "null_frac": 0},
            {"name": "filler", "type": "bpchar(200)", "values": {"kind": "constant"},
             "null_frac": 0}],
        "indexes": [{"name": "NAME_pkey", "columns": ["id"], "unique": true,
            "method": "btree"}]}"#;
    let tables = ["t", "o"].map(|name| table.replace("NAME", name)).join(",");
    let block = if are_blocks {
        r#", "transaction": "x""#
    } else {
        ""
    };
    let clients = if are_blocks { "32" } else { "4" };
    let text = text.replace("CLIENTS", clients);
    let text = text.replace("TABLES", &tables).replace("BLOCK", block);
    ProfileSpec::from_json(&text).unwrap()
}

/// Pages of the emptied table at the end of a run that takes so many seconds.
fn pages_left(are_blocks: bool, duration_s: f64, interleaving: u64) -> u32 {
    let conditions = Conditions {
        interleaving,
        events: Some(Vec::new()),
        duration_s: Some(duration_s),
        ..Conditions::default()
    };
    let version = "18.4".parse().unwrap();
    let spec = profile(are_blocks);
    let (_, outcome) = play(&spec, version, &conditions, &Monitor::default()).unwrap();
    outcome.tables[0].heap_pages
}

/// Beside 32 clients that are in transactions half of the time a VACUUM gives up after five
/// seconds, as 18.4 did in each of three; a run that ends before that has its table cut off, and
/// so has one of four clients whose transactions are single statements.
#[test]
fn clients_in_transactions_keep_the_end() {
    for interleaving in 0..4 {
        let kept = pages_left(true, 20.0, interleaving);
        assert!(kept >= 10, "{kept} pages, machine {interleaving}");
        assert_eq!(pages_left(true, 1.0, interleaving), 0);
        assert_eq!(pages_left(false, 20.0, interleaving), 0);
    }
}

/// The same of autovacuum's worker on the simulated clock, which comes when the rows have gone.
#[test]
fn clients_in_transactions_keep_the_end_from_autovacuum() {
    for (are_blocks, is_kept) in [(true, true), (false, false)] {
        for interleaving in 0..4 {
            let mut spec = profile(are_blocks);
            spec.run.maintenance.clear();
            spec.server.autovacuum = true;
            spec.server.autovacuum_naptime_s = Some(2.0);
            let conditions = Conditions {
                interleaving,
                timing: Some(Timing {
                    pace: Pace::Even { per_s: 800.0 },
                    windows: 0,
                    drives_server: true,
                }),
                ..Conditions::default()
            };
            let version = "18.4".parse().unwrap();
            let (_, outcome) = play(&spec, version, &conditions, &Monitor::default()).unwrap();
            let done = outcome.happened.expect("a clock").maintained;
            let of_t = done
                .iter()
                .find(|one| one.is_vacuum && one.relation.table.0 == 0);
            let of_t = of_t.expect("autovacuum");
            let took_s = of_t.ended_s.expect("it has ended") - of_t.began_s;
            assert_eq!(took_s > 5.0, is_kept, "{took_s} s, machine {interleaving}");
            let pages = outcome.tables[0].heap_pages;
            assert_eq!(
                pages >= 10,
                is_kept,
                "{pages} pages, machine {interleaving}"
            );
        }
    }
}

/// A TRUNCATE of the other table that is due at 6 s comes when the VACUUM has given up that waits
/// for its lock from 4 to 9 s: both are commands of one session. Readers find nothing from then on.
/// Where a server is known to have come to it at 6 s, its VACUUM had got its lock before that, for
/// it gives up after 5 s.
#[test]
fn a_command_waits_behind_a_vacuum() {
    for (are_blocks, is_maintenance_measured, from) in
        [(true, false, 9.0), (true, true, 6.0), (false, false, 6.0)]
    {
        let mut spec = profile(are_blocks);
        let truncate = r#"{"do": "truncate", "table": "o", "at_frac": 0.3}"#;
        let truncate = serde_json::from_str(truncate).unwrap();
        spec.run.maintenance.push(truncate);
        let conditions = Conditions {
            events: Some(Vec::new()),
            duration_s: Some(20.0),
            is_maintenance_measured,
            ..Conditions::default()
        };
        let version = "18.4".parse().unwrap();
        let (_, outcome) = play(&spec, version, &conditions, &Monitor::default()).unwrap();
        let read = outcome.turns[1];
        let without = read.without_row as f64 / read.turns as f64;
        let began_s = 20.0 * (1.0 - without);
        assert!((began_s - from).abs() < 1.0, "{began_s} s");
        let is_kept = outcome.tables[0].heap_pages >= 10;
        assert_eq!(is_kept, are_blocks && !is_maintenance_measured);
    }
}
