//! Keys of a GIN that PostgreSQL refuses.

use pgheadroom_twin::profile::{Monitor, ProfileSpec};
use pgheadroom_twin::run::{Conditions, play};

/// What a run says with so many rows of `text[]` of one element and so many bytes.
fn said(rows: u32, bytes: u32, fastupdate: bool) -> Option<String> {
    let text = format!(
        r#"{{"schema_version": 1, "server": {{"version": "18.4", "shared_buffers": "1GB",
        "full_page_writes": true, "wal_level": "replica", "wal_compression": "off",
        "wal_log_hints": false, "autovacuum": false, "settings": {{}}}},
        "table": [{{"name": "t", "rows": {rows}, "fillfactor": 100, "reloptions": {{}},
        "columns": [
            {{"name": "id", "type": "int4", "values": {{"kind": "serial"}}, "null_frac": 0}},
            {{"name": "a", "type": "text[]", "null_frac": 0,
              "width": {{"min_bytes": {bytes}, "max_bytes": {bytes}}},
              "values": {{"kind": "random", "ndistinct": 9000}}}}],
        "indexes": [
            {{"name": "t_pkey", "columns": ["id"], "unique": true, "method": "btree"}},
            {{"name": "t_a", "columns": ["a"], "unique": false, "method": "gin",
              "fastupdate": {fastupdate}}}]}}],
        "operation": [{{"table": "t", "weight": 1, "rows_per_statement": 1, "abort_frac": 0,
            "kind": "insert"}}],
        "run": {{"operations": 10, "clients": 1, "seed": 3}}}}"#
    );
    let spec = ProfileSpec::from_json(&text).unwrap();
    let version = "18.4".parse().unwrap();
    let played = play(&spec, version, &Conditions::default(), &Monitor::default());
    played.err().map(|error| error.to_string())
}

/// CREATE INDEX on 18.4 says of one of 3,320 bytes: index row size 3336 exceeds maximum 2712.
#[test]
fn too_wide_keys_are_refused() {
    for rows in [0, 10] {
        for fastupdate in [true, false] {
            assert_eq!(said(rows, 2600, fastupdate), None);
            for bytes in [2800, 3346, 90_000] {
                let error = said(rows, bytes, fastupdate).expect("a refusal");
                assert!(error.contains("too wide for a GIN"), "{error}");
            }
        }
    }
}
