//! What becomes of a setting or a storage parameter in a profile: two tables of exact names.
//!
//! `settings.txt` and `storage_parameters.txt` list every name of the versions that are known; a
//! test of the package compares them with servers.

use std::collections::BTreeMap;

use crate::executor::{Ages, FreezeAges, StorageParameters};
use crate::vacuum::eager::fails_per_region;

/// The table of settings.
pub const SETTINGS: &str = include_str!("settings.txt");
/// The table of storage parameters.
pub const STORAGE_PARAMETERS: &str = include_str!("storage_parameters.txt");

/// The reason where a heading holds for other values alone.
const OTHER_VALUE: &str = "what this value does to pages is not modelled";

/// What becomes of a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// The twin plays it.
    Modelled,
    /// It changes nothing that the twin predicts.
    NoEffect,
    /// Nobody plays it, with the reason.
    Refused(&'static str),
    /// No version that is known has it.
    Unknown,
}

impl Becomes {
    /// Of this name with this value, in one of the tables.
    #[must_use]
    pub fn of(table: &'static str, name: &str, value: &str) -> Self {
        let Some((heading, limit)) = lines(table)
            .find_map(|(heading, listed, limit)| (listed == name).then_some((heading, limit)))
        else {
            return Self::Unknown;
        };
        if !limit.is_none_or(|limit| limit.holds_for(value)) {
            return Self::Refused(OTHER_VALUE);
        }
        match heading {
            "modelled" => Self::Modelled,
            "no effect on pages" => Self::NoEffect,
            other => Self::Refused(other.strip_prefix("refused: ").unwrap_or(other)),
        }
    }
}

/// Which values a heading holds for.
#[derive(Debug, Clone, Copy)]
enum Limit {
    From(i64),
    Is(&'static str),
}

impl Limit {
    fn holds_for(self, value: &str) -> bool {
        match self {
            Self::From(least) => value
                .trim()
                .parse::<i64>()
                .is_ok_and(|number| number >= least),
            Self::Is(wanted) => wanted.split(' ').any(|one| is_same(value.trim(), one)),
        }
    }
}

/// As settings are compared: booleans in any spelling.
pub(super) fn is_same(value: &str, wanted: &str) -> bool {
    let truth = |text: &str| match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    };
    value.eq_ignore_ascii_case(wanted) || (truth(value).is_some() && truth(value) == truth(wanted))
}

/// Storage parameters as they are played, of the table or, with the prefix `toast.`, of its TOAST
/// table.
#[must_use]
pub fn parameters(reloptions: &BTreeMap<String, String>, prefix: &str) -> StorageParameters {
    let given = |name: &str| reloptions.get(&format!("{prefix}{name}"));
    let known = StorageParameters::default();
    let ages = |kind: &str| {
        let age = |which: &str| {
            let value = given(&format!("autovacuum_{kind}freeze_{which}_age"));
            value.and_then(|value| value.trim().parse().ok())
        };
        Ages {
            min: age("min"),
            table: age("table"),
            max: age("max"),
            failsafe: None, // no table has one of its own
        }
    };
    let rate = given("vacuum_max_eager_freeze_failure_rate");
    let rate = rate.and_then(|value| value.trim().parse::<f64>().ok());
    let target = given("toast_tuple_target").and_then(|value| value.trim().parse().ok());
    let workers = given("autovacuum_parallel_workers");
    StorageParameters {
        truncates: !given("vacuum_truncate").is_some_and(|value| is_same(value.trim(), "off")),
        toast_target: target.unwrap_or(known.toast_target),
        eager_fails: rate.map(fails_per_region),
        autovacuum_workers: workers.and_then(|value| value.trim().parse().ok()),
        freeze: FreezeAges {
            xid: ages(""),
            multixact: ages("multixact_"),
        },
    }
}

/// Bytes of a size as PostgreSQL spells it.
///
/// Source: `memory_unit_conversion_table`, src/backend/utils/misc/guc.c (REL_18_STABLE).
#[must_use]
pub fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|sign: char| !sign.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match text[digits..].trim() {
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The names of a table, in its order.
pub fn names(table: &'static str) -> impl Iterator<Item = &'static str> {
    lines(table).map(|(_, name, _)| name)
}

/// The table's lines: heading, name, and which values the heading holds for.
fn lines(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str, Option<Limit>)> {
    let mut heading = "";
    table.lines().filter_map(move |line| {
        if let Some(next) = line.strip_prefix("== ") {
            heading = next;
            return None;
        }
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let from = rest
            .strip_prefix("from ")
            .and_then(|number| number.parse().ok());
        let is = rest.strip_prefix("= ").map(Limit::Is);
        Some((heading, name, from.map(Limit::From).or(is)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn becomes(name: &str, value: &str) -> Becomes {
        Becomes::of(SETTINGS, name, value)
    }

    /// Names are exact: what only begins like another is something else.
    #[test]
    fn exact_names() {
        assert_eq!(
            becomes("autovacuum_vacuum_threshold", "50"),
            Becomes::Modelled
        );
        assert_eq!(becomes("autovacuum_freeze_min_age", "50"), Becomes::Unknown);
        assert_eq!(becomes("seq_page_cost", "1"), Becomes::NoEffect);
        assert_eq!(becomes("vacuum_freeze_min_age", "0"), Becomes::Modelled);
        assert_eq!(
            becomes("autovacuum_freeze_score_weight", "0"),
            Becomes::Modelled
        );
    }

    /// A heading may hold for some values alone.
    #[test]
    fn values() {
        let age = "vacuum_defer_cleanup_age";
        assert_eq!(becomes(age, "0"), Becomes::NoEffect);
        assert_eq!(becomes(age, "100000"), Becomes::Refused(OTHER_VALUE));
        for (method, found) in [
            ("lz4", Becomes::Modelled),
            ("PGLZ", Becomes::Modelled),
            ("zstd", Becomes::Refused(OTHER_VALUE)),
        ] {
            assert_eq!(becomes("default_toast_compression", method), found);
        }
        assert_eq!(becomes("vacuum_truncate", "true"), Becomes::NoEffect);
        assert_eq!(
            becomes("vacuum_truncate", "off"),
            Becomes::Refused(OTHER_VALUE)
        );
    }

    /// Without a number of its own a table has as many parallel workers as its indexes are worth.
    #[test]
    fn parallel_workers() {
        for (text, workers) in [("-1", None), ("0", Some(0)), (" 3", Some(3))] {
            let given = [("autovacuum_parallel_workers".to_owned(), text.to_owned())];
            let own = parameters(&BTreeMap::from(given), "");
            assert_eq!(own.autovacuum_workers, workers);
        }
    }

    /// Ages of freezing are a table's own, and its TOAST table's by their prefix.
    #[test]
    fn ages_of_freezing() {
        let given = [
            ("autovacuum_freeze_min_age", "70"),
            ("toast.autovacuum_freeze_table_age", " 900"),
            ("toast.autovacuum_multixact_freeze_max_age", "10000"),
        ];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let given = BTreeMap::from(given);
        let [own, toast] = ["", "toast."].map(|prefix| parameters(&given, prefix).freeze);
        assert_eq!((own.xid.min, own.xid.table), (Some(70), None));
        assert_eq!((toast.xid.min, toast.xid.table), (None, Some(900)));
        assert_eq!(
            (own.multixact.max, toast.multixact.max),
            (None, Some(10_000))
        );
    }

    /// No name stands twice, and every line is under a heading that means something.
    #[test]
    fn well_formed() {
        for table in [SETTINGS, STORAGE_PARAMETERS] {
            let mut names: Vec<&str> = lines(table).map(|(_, name, _)| name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
            for (heading, name, _) in lines(table) {
                let is_known = matches!(heading, "modelled" | "no effect on pages")
                    || heading.starts_with("refused: ");
                assert!(is_known, "{heading}: {name}");
            }
        }
    }

    /// Sizes as in postgresql.conf; a bare number has no unit and is refused.
    #[test]
    fn sizes() {
        assert_eq!(bytes_of("128MB"), Some(128 << 20));
        assert_eq!(bytes_of("1 GB"), Some(1 << 30));
        assert_eq!(bytes_of("16384"), None);
        assert_eq!(bytes_of("1mb"), None);
    }
}
