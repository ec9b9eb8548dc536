//! Profiles of one client against servers, to the unit: counters, pages, WAL and images by table.
//!
//! Origin: `golden/expected/*/profile-*.json`, written by `tools/record_profile_golden.py`, which
//! plays `golden/profiles/*.toml` on 15.18, 16.14, 18.4 and 19rc1 (one whose columns are compressed
//! by lz4 on 15.18, 17.12, 18.6 and 19rc1, which were built with it), and `found-*.json`: those of
//! `golden/found` on 15.18 or 15.20, 16.14 and 18.4.

use std::path::PathBuf;

use crate::common::is_long;

use pgheadroom_twin::profile::{ColumnCompression, Monitor, ProfileError, ProfileSpec};
use pgheadroom_twin::run::{Conditions, Outcome, TableOutcome, play};
use serde::Deserialize;
use serde_json::Value;

const VERSIONS: [&str; 3] = ["15.18", "16.14", "18.4"];

/// A golden file; the profile is read at once, for the order of its members counts.
#[derive(Deserialize)]
struct Recorded {
    profile: ProfileSpec,
    transactions: u64,
    measured: Value,
}

/// The recorded runs of a version whose names begin so.
fn recorded(version: &str, kind: &str) -> Vec<(String, Recorded)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/expected")
        .join(version);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name.starts_with(kind) {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((name, serde_json::from_str(&text).unwrap()));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn played(spec: &ProfileSpec, version: &str) -> Result<Outcome, ProfileError> {
    let monitor = Monitor::default();
    let version = version.parse().unwrap();
    let (_, outcome) = play(spec, version, &Conditions::default(), &monitor)?;
    assert_eq!(
        monitor.done(),
        monitor.total(),
        "progress ends at the whole"
    );
    Ok(outcome)
}

/// A table's figures under the keys of a proof.
fn figures(table: &TableOutcome) -> [(&'static str, u64); 12] {
    let (counters, wal) = (&table.counters, &table.wal);
    [
        ("n_tup_ins", counters.n_tup_ins),
        ("n_tup_upd", counters.n_tup_upd),
        ("n_tup_del", counters.n_tup_del),
        ("n_tup_hot_upd", counters.n_tup_hot_upd),
        ("n_tup_newpage_upd", counters.n_tup_newpage_upd),
        ("heap_pages", u64::from(table.heap_pages)),
        ("index_pages", u64::from(table.index_pages)),
        ("wal_records", wal.wal_records),
        ("wal_bytes", wal.wal_bytes),
        ("wal_fpi", wal.wal_fpi),
        ("wal_fpi_bytes", wal.wal_fpi_bytes),
        ("pages_modified", table.pages_modified as u64),
    ]
}

/// Whether this server does not count this: such keys are null there, and no others.
///
/// Source: `n_tup_newpage_upd` came with 16 (`pg_stat_get_tuples_newpage_updated`).
fn is_uncounted(version: &str, key: &str) -> bool {
    version.starts_with("15.") && key == "n_tup_newpage_upd"
}

/// A table's figure on a server; `None` where that server does not count it.
fn measured_of(measured: &Value, table: &str, key: &str, version: &str) -> Option<u64> {
    let figures = measured["by_table"].get(table);
    let figures = figures.unwrap_or_else(|| panic!("{version}: table {table} is missing"));
    let found = figures.get(key);
    let found = found.unwrap_or_else(|| panic!("{version}: {key} of {table} is missing"));
    if is_uncounted(version, key) {
        assert!(found.is_null(), "{version}: {key} of {table} is {found}");
        return None;
    }
    let number = found.as_u64();
    Some(number.unwrap_or_else(|| panic!("{version}: {key} of {table} is {found}")))
}

/// Every recorded run of a kind agrees to the unit.
fn agree(version: &str, kind: &str, least: usize) {
    let recorded = recorded(version, kind);
    assert!(recorded.len() >= least, "{version}: {}", recorded.len());
    let turn = ["15.18", "16.14", "19rc1"]
        .iter()
        .position(|each| *each == version);
    for (number, (name, recorded)) in recorded.into_iter().enumerate() {
        let is_anothers = turn.is_some_and(|turn| number % 3 != turn);
        if kind == "profile-" && is_anothers && !is_long() {
            continue;
        }
        let outcome = played(&recorded.profile, version).unwrap_or_else(|e| panic!("{name}: {e}"));
        let measured = &recorded.measured;
        for table in &outcome.tables {
            for (key, found) in figures(table) {
                let Some(expected) = measured_of(measured, &table.name, key, version) else {
                    continue;
                };
                assert_eq!(found, expected, "{version} {name}: {key} of {}", table.name);
            }
        }
        let tables = measured["by_table"].as_object().unwrap().len();
        assert_eq!(outcome.tables.len(), tables, "{version} {name}: tables");
        let sum = |part: fn(&TableOutcome) -> u64| outcome.tables.iter().map(part).sum::<u64>();
        let records = sum(|table| table.wal.wal_records) + outcome.transaction_wal.wal_records;
        let bytes = sum(|table| table.wal.wal_bytes) + outcome.transaction_wal.wal_bytes;
        assert_eq!(measured["wal_records"], records, "{version} {name}");
        assert_eq!(measured["wal_bytes"], bytes, "{version} {name}");
        assert_eq!(recorded.transactions, outcome.transactions, "{name}");
        let by_record = outcome.by_record.iter();
        let by_record: u64 = by_record.map(|(_, totals)| totals.wal_bytes).sum();
        assert_eq!(by_record, bytes, "{version} {name}: sums over types");
    }
}

/// Every profile on every version; in `make test` on 18.4 and one of the others.
#[test]
fn profiles_agree_with_servers() {
    for version in VERSIONS.into_iter().chain(["19rc1"]) {
        agree(version, "profile-", 30);
    }
    agree("15.20", "profile-", 2);
    for version in ["15.18", "17.12", "18.6", "19rc1"] {
        agree(version, "profile-columns-compressed", 1);
    }
    for version in ["17.10", "17.12", "18.6"] {
        agree(version, "profile-ages-", 2);
        agree(version, "profile-pages-", 1);
        agree(version, "profile-updates-full-pages", 1);
    }
}

/// A column's own COMPRESSION is what its values are compressed by: another one is another run.
#[test]
fn the_compression_of_a_column_counts() {
    for (name, recorded) in recorded("18.6", "profile-columns-compressed") {
        let with = played(&recorded.profile, "18.6").unwrap();
        for column in 0..recorded.profile.table[0].columns.len() {
            let mut profile = recorded.profile.clone();
            let own = &mut profile.table[0].columns[column].compression;
            let other = match own {
                Some(ColumnCompression::Lz4) => ColumnCompression::Pglz,
                Some(ColumnCompression::Pglz) => ColumnCompression::Lz4,
                None => continue,
            };
            *own = Some(other);
            let without = played(&profile, "18.6").unwrap();
            assert_ne!(
                figures(&with.tables[0]),
                figures(&without.tables[0]),
                "{name}: column {column}"
            );
        }
    }
}

/// A column's own STORAGE says whether, and after which others, its values are compressed and
/// moved out: its type's is another run.
#[test]
fn the_storage_of_a_column_counts() {
    for (profile, columns) in [
        ("profile-columns-storage", ["d", "f"].as_slice()),
        ("profile-storage-main", &["c", "h"]),
    ] {
        for (name, recorded) in recorded("18.4", profile) {
            let with = played(&recorded.profile, "18.4").unwrap();
            for column in columns {
                let mut profile = recorded.profile.clone();
                let of = &mut profile.table[0];
                let number = of.column(column).unwrap();
                assert!(of.columns[number].storage.take().is_some());
                let without = played(&profile, "18.4").unwrap();
                assert_ne!(
                    figures(&with.tables[0]),
                    figures(&without.tables[0]),
                    "{name}: {column}"
                );
            }
        }
    }
}

/// What random profiles once differed in (`make fuzz`).
#[test]
fn found_profiles_agree_with_servers() {
    for version in ["15.18", "15.20", "16.14", "18.4"] {
        agree(version, "found-", 1);
    }
}

/// A range of one number of rows is that number: it draws nothing.
#[test]
fn a_range_of_one_number_is_that_number() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/expected/18.4/profile-insert-many.json");
    let text = std::fs::read_to_string(path).unwrap();
    let with = |rows: &str| {
        let (before, after) = text.split_once("\"rows_per_statement\": 12").unwrap();
        let text = format!("{before}\"rows_per_statement\": {rows}{after}");
        let recorded: Recorded = serde_json::from_str(&text).unwrap();
        let outcome = played(&recorded.profile, "18.4").unwrap();
        outcome.tables.iter().map(figures).collect::<Vec<_>>()
    };
    assert_eq!(with(r#"{"min": 12, "max": 12}"#), with("12"));
    assert_ne!(with(r#"{"min": 11, "max": 12}"#), with("12"));
}

/// A key that a record lacks, or a null in the place of a number, is no agreement.
#[test]
fn what_is_missing_does_not_agree() {
    let figures = serde_json::json!({"by_table": {"t": {"n_tup_upd": 3, "wal_fpi": null,
        "n_tup_newpage_upd": null}}});
    let of = |version: &str, table: &str, key: &str| {
        let found = || measured_of(&figures, table, key, version);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(found)).ok()
    };
    assert_eq!(of("18.4", "t", "n_tup_upd"), Some(Some(3)));
    assert_eq!(of("15.18", "t", "n_tup_newpage_upd"), Some(None));
    for (version, table, key) in [
        ("18.4", "t", "n_tup_newpage_upd"),
        ("15.18", "t", "wal_fpi"),
        ("18.4", "t", "heap_pages"),
        ("18.4", "u", "n_tup_upd"),
    ] {
        assert_eq!(of(version, table, key), None, "{version} {table} {key}");
    }
}

/// A cancelled run stops, and says that it was cancelled.
#[test]
fn a_run_can_be_stopped() {
    let (_, recorded) = recorded("18.4", "profile-").remove(0);
    let monitor = Monitor::default();
    monitor.cancel();
    let version = "18.4".parse().unwrap();
    let stopped = play(&recorded.profile, version, &Conditions::default(), &monitor);
    assert_eq!(stopped.unwrap_err(), ProfileError::Cancelled);
}

/// With `wal_compression = pglz` only the images' bytes are estimated; they are off by at most 1 %,
/// and what is not an image not at all, but for images at the border of what is stored compressed.
#[test]
fn images_by_pglz_are_estimated() {
    let few: &[&str] = &["15.20", "18.4"];
    let all: &[&str] = &["15.18", "15.20", "16.14", "18.4"];
    for version in if is_long() { all } else { few } {
        let mut recorded = recorded(version, "compressed-");
        recorded.retain(|(_, recorded)| recorded.method() == "pglz");
        assert!(recorded.len() >= 3, "{version}: {}", recorded.len());
        for (name, recorded) in recorded {
            recorded.check_images(version, &name, 0.01);
        }
    }
}

/// The same by lz4 and zstd, on servers that were built with them; long values are compressed by
/// lz4 there, which is exact.
#[test]
fn images_by_lz4_and_zstd_are_estimated() {
    let few: &[&str] = &["15.20", "19rc1"];
    let all: &[&str] = &["15.20", "17.12", "18.6", "19rc1"];
    for version in if is_long() { all } else { few } {
        for (method, most) in [("lz4", 0.0125), ("zstd", 0.0125)] {
            let recorded = recorded(version, &format!("compressed-{method}-"));
            assert_eq!(recorded.len(), 4, "{version} {method}");
            for (name, recorded) in recorded {
                assert_eq!(recorded.method(), method, "{version} {name}");
                recorded.check_images(version, &name, most);
            }
        }
    }
}

impl Recorded {
    fn method(&self) -> String {
        format!("{:?}", self.profile.server.wal_compression).to_lowercase()
    }

    /// Images are off by at most this part of their bytes, and nothing else is.
    fn check_images(&self, version: &str, name: &str, most: f64) {
        let outcome = played(&self.profile, version).unwrap_or_else(|e| panic!("{name}: {e}"));
        let approximations = outcome.approximations.len();
        assert_eq!(approximations, 1, "{name}: said to be an estimate");
        for table in &outcome.tables {
            let known = |key: &str| measured_of(&self.measured, &table.name, key, version);
            for (key, found) in figures(table) {
                let is_estimate = matches!(key, "wal_bytes" | "wal_fpi_bytes");
                if let Some(expected) = known(key).filter(|_| !is_estimate) {
                    assert_eq!(found, expected, "{version} {name}: {key}");
                }
            }
            let known = |key: &str| known(key).unwrap();
            let (bytes, images) = (known("wal_bytes"), known("wal_fpi_bytes"));
            let wal = table.wal;
            let without_images = wal.wal_bytes - wal.wal_fpi_bytes;
            let doubt = table.doubt;
            let off = without_images.abs_diff(bytes - images);
            assert!(off <= doubt.header_bytes, "{version} {name}: {off}");
            let off = wal.wal_fpi_bytes.abs_diff(images);
            #[allow(clippy::cast_precision_loss)] // some MB
            let (share, off) = (
                most * images as f64,
                off.saturating_sub(doubt.image_bytes) as f64,
            );
            assert!(
                off <= share,
                "{version} {name}: {} for {images}",
                wal.wal_fpi_bytes
            );
        }
    }
}

/// What the twin cannot play is refused by its field; a text that is no profile, by its place.
#[test]
fn what_cannot_be_played_is_named() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/expected/18.4");
    let text = std::fs::read_to_string(folder.join("profile-abort-updates.json")).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let play_with = |path: &[&str], value: Value| {
        let mut profile = recorded["profile"].clone();
        let (last, parents) = path.split_last().unwrap();
        let mut at = &mut profile;
        for name in parents {
            at = &mut at[*name];
        }
        at[*last] = value;
        let spec = ProfileSpec::from_json(&profile.to_string());
        let version = "18.4".parse().unwrap();
        spec.and_then(|spec| play(&spec, version, &Conditions::default(), &Monitor::default()))
    };
    let refused = |path: &[&str], value: Value| play_with(path, value).unwrap_err().to_string();
    let frozen = refused(
        &["server", "settings"],
        serde_json::json!({"autovacuum_freeze_score_weight": "0"}),
    );
    assert!(
        frozen.contains("server.settings.autovacuum_freeze_score_weight"),
        "{frozen}"
    );
    for (small, is_refused) in [("256kB", true), ("16376kB", true), ("16MB", false)] {
        let said = play_with(&["server", "shared_buffers"], small.into());
        let named = said.map_err(|said| said.to_string().contains("server.shared_buffers"));
        assert_eq!(
            named.map(|_| ()),
            if is_refused { Err(true) } else { Ok(()) },
            "{small}"
        );
    }
    let unknown = refused(&["run", "speed"], 3.into());
    assert!(unknown.contains("unknown field `speed`"), "{unknown}");
}
