//! The laboratory's TPC-C-derived workload with one user against servers: pages as loaded, then
//! counters and pages of every table, and records by type.
//!
//! Origin: `golden/expected/*/tprocc.json`, written by `tools/record_tprocc_golden.py` on 16.14 and
//! 18.4.

use crate::common;

use pgheadroom_twin::profile::{Monitor, ProfileError};
use pgheadroom_twin::tprocc::{TproccSpec, play};

/// One warehouse, not aged.
fn spec(version: &str, clients: u32, transactions: u64) -> TproccSpec {
    let text = r#"{"server": {"version": "VERSION", "shared_buffers": "1GB",
        "full_page_writes": true, "wal_level": "replica", "wal_compression": "off",
        "wal_log_hints": false, "autovacuum": false},
        "warehouses": 1, "fillfactor": {}, "at_home": false,
        "age": {"clients": 1, "transactions": 0, "seed": 1},
        "window": {"clients": CLIENTS, "transactions": COUNT, "seed": 2}}"#;
    let text = text.replace("VERSION", version);
    let text = text.replace("CLIENTS", &clients.to_string());
    TproccSpec::from_json(&text.replace("COUNT", &transactions.to_string())).unwrap()
}

/// Every counter and every size is the server's, and so is the number of records of each type but
/// for a few: which of several dead entries is marked first is not always the same.
#[test]
fn one_user_does_what_the_servers_did() {
    for version in ["16.14", "18.4"] {
        let text = common::golden(&format!("expected/{version}"), "tprocc.json");
        let spec = spec(version, 1, 1000);
        let version = version.parse().unwrap();
        let (outcome, loaded) = play(&spec, version, 0, &[], &Monitor::default()).unwrap();
        let names = common::names(&text, "tables");
        for (name, pages) in names.iter().zip(common::table(&text, "loaded")) {
            assert_eq!(i64::from(loaded[name]), pages.iter().sum::<i64>(), "{name}");
        }
        let found = outcome.tables.iter().map(|table| {
            let of = table.counters;
            let counters = [
                of.n_tup_ins,
                of.n_tup_upd,
                of.n_tup_del,
                of.n_tup_hot_upd,
                of.n_tup_newpage_upd,
            ];
            counters
                .map(|number| i64::try_from(number).unwrap())
                .to_vec()
        });
        assert_eq!(found.collect::<Vec<_>>(), common::table(&text, "counters"));
        let pages = outcome.tables.iter();
        let pages = pages.map(|table| {
            [table.heap_pages, table.index_pages]
                .map(i64::from)
                .to_vec()
        });
        assert_eq!(pages.collect::<Vec<_>>(), common::table(&text, "pages"));
        let expected = common::names(&text, "wal_names");
        let (mut bytes, mut expected_bytes) = (0, 0);
        for (name, totals) in expected.iter().zip(common::table(&text, "wal")) {
            let found = outcome.by_record.iter().find(|(known, _)| known == name);
            let found = found.map_or_else(Default::default, |(_, totals)| *totals);
            let records = i64::try_from(found.wal_records).unwrap();
            assert!(
                (records - totals[0]).abs() <= 3,
                "{name}: {records}, not {}",
                totals[0]
            );
            bytes += i64::try_from(found.wal_bytes - found.wal_fpi_bytes).unwrap();
            expected_bytes += totals[1];
        }
        assert!(
            (bytes - expected_bytes).abs() * 1000 < expected_bytes,
            "{bytes} bytes, not {expected_bytes}"
        );
    }
}

/// Several users come to an end whatever the order of their statements, wait for each other
/// without a circle, and find every order that they deliver.
#[test]
fn several_users_never_wait_in_a_circle() {
    let spec = spec("18.4", 6, 200);
    let [one, other] = [0, 1].map(|seed| {
        let version = "18.4".parse().unwrap();
        let (outcome, _) = play(&spec, version, seed, &[], &Monitor::default()).unwrap();
        assert_eq!(
            (outcome.transactions, outcome.failed_transactions),
            (1200, 0)
        );
        let of = |name: &str| {
            let table = outcome.tables.iter().find(|table| table.name == name);
            table.unwrap().counters
        };
        assert_eq!(of("new_order").n_tup_del, of("orders").n_tup_upd);
        assert!(of("orders").n_tup_upd > 300);
        outcome
    });
    assert_ne!(one, other, "the order of statements counts");
}

/// What is no such workload is refused.
#[test]
fn what_cannot_be_played_is_refused() {
    let refused = |text: &str| {
        let spec = TproccSpec::from_json(text);
        assert!(
            matches!(spec, Err(ProfileError::NotAProfile { .. })),
            "{spec:?}"
        );
    };
    refused("{}");
    let text = r#"{"server": {"version": "18.4", "shared_buffers": "1GB",
        "full_page_writes": true, "wal_level": "replica", "wal_compression": "off",
        "wal_log_hints": false, "autovacuum": false}, "warehouses": 0, "fillfactor": {},
        "at_home": false, "age": {"clients": 1, "transactions": 0, "seed": 1},
        "window": {"clients": 1, "transactions": 1, "seed": 1}}"#;
    refused(text);
    let spec = spec("18.4", 1, 0);
    let played = play(&spec, "18.4".parse().unwrap(), 0, &[], &Monitor::default());
    assert!(played.is_err(), "nothing to play");
}
