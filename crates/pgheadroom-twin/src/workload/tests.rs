//! Laws of a profile's keys, whatever its numbers.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use crate::profile::{Monitor, ProfileSpec, load};
use crate::workload::{CmdType, Operation, ProfileWorkload, Workload};

/// A table of as many rows for each client, an insert and a delete of the oldest.
fn profile(clients: u32, own_rows: i64, rows: (i64, i64), seed: u64) -> ProfileSpec {
    let width = json!({"min": rows.0, "max": rows.1});
    let operation = |kind: &str| {
        let mut made = json!({"table": "t", "kind": kind, "weight": 1, "abort_frac": 0,
            "rows_per_statement": width});
        if kind == "delete" {
            made["pick"] = json!({"distribution": "oldest"});
            made["find"] = json!("index");
        }
        made
    };
    let text = json!({
        "schema_version": 1,
        "server": {"version": "18.4", "shared_buffers": "1GB", "full_page_writes": false,
            "wal_level": "replica", "wal_compression": "off", "wal_log_hints": false,
            "autovacuum": false, "settings": {}},
        "table": [{"name": "t", "rows": own_rows * i64::from(clients), "fillfactor": 100,
            "reloptions": {},
            "columns": [{"name": "k", "type": "int4", "values": {"kind": "serial"},
                "null_frac": 0}],
            "indexes": [{"name": "t_pkey", "columns": ["k"], "unique": true,
                "method": "btree"}]}],
        "operation": [operation("insert"), operation("delete")],
        "run": {"operations": 40 * clients, "clients": clients, "seed": seed},
    });
    ProfileSpec::from_json(&text.to_string()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No two inserts share a key, of whatever client. A client deletes in ascending order and
    /// leaves out none of its own keys, which are each `clients`th; a statement has as many rows
    /// as the profile allows. One row by one it goes on with the places of its own inserts.
    #[test]
    fn keys_are_neither_shared_nor_left_out(
        clients in 1_u32..5,
        own_rows in 1_i64..60,
        low in 1_i64..8,
        more in 0_i64..9,
        seed in any::<u32>(),
    ) {
        let spec = profile(clients, own_rows, (low, low + more), seed.into());
        let mut db = load::database(&spec.server, "18.4".parse().unwrap());
        let loaded = load::load_tables(&mut db, &spec.table, &Monitor::default()).unwrap();
        let mut workload = ProfileWorkload::new(&spec, &loaded, 40).unwrap();
        let (rows, step) = (own_rows * i64::from(clients), i64::from(clients));
        let mut inserted = BTreeSet::new();
        let mut next_oldest: Vec<i64> = (1..=step).collect();
        let mut places: Vec<Vec<i64>> = vec![Vec::new(); clients as usize];
        let mut last_inserted = vec![0; clients as usize];
        let mut operations = Vec::new();
        for turn in 0..40 * clients as usize {
            let client = turn % clients as usize;
            workload.next_transaction(client, &mut operations).unwrap();
            match &operations[0] {
                Operation::Insert { rows: made, .. } => {
                    let width = i64::try_from(made.len()).unwrap();
                    prop_assert!((low..=low + more).contains(&width));
                    let first = made[0][0].integer().unwrap();
                    places[client].extend(first..first + low + more);
                    for row in made {
                        let key = row[0].integer().unwrap();
                        last_inserted[client] = key;
                        prop_assert!(key > rows);
                        prop_assert!(inserted.insert(key), "{key} twice");
                    }
                }
                Operation::Find { low: first, high, cmd_type: CmdType::Delete, .. } => {
                    prop_assert!((low..=low + more).contains(&(high - first + 1)));
                    let oldest = &mut next_oldest[client];
                    let mut beyond = places[client].iter().copied();
                    let beyond = beyond.next().filter(|&key| key <= last_inserted[client]);
                    if let (true, Some(key)) = (*oldest > rows && low + more == 1, beyond) {
                        prop_assert_eq!((*first, *high), (key, key));
                        places[client].remove(0);
                    } else if *oldest > rows {
                        prop_assert!(*high < 1, "nothing is left");
                    } else {
                        prop_assert_eq!(*first, *oldest);
                        while *oldest <= *high {
                            *oldest += step;
                        }
                    }
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
