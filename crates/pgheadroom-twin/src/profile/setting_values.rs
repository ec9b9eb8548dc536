//! Which values a server takes for a setting or a storage parameter, and what they are.
//!
//! `setting_values.txt` has them by version, as servers said.

use crate::profile::settings::{SETTINGS, is_same};

/// The table, with a part for settings and one for storage parameters.
const VALUES: &str = include_str!("setting_values.txt");

/// The oldest version that was asked; older ones are taken to be like it.
const OLDEST_ASKED: u16 = 15;

/// Units, with what they are of the smallest: bytes, or microseconds.
///
/// Source: `memory_unit_conversion_table` and `time_unit_conversion_table`,
/// src/backend/utils/misc/guc.c (REL_18_STABLE).
const UNITS: [(&str, f64, bool); 12] = [
    ("B", 1.0, true),
    ("kB", 1024.0, true),
    ("8kB", 8192.0, true),
    ("MB", 1_048_576.0, true),
    ("GB", 1_073_741_824.0, true),
    ("TB", 1_099_511_627_776.0, true),
    ("us", 1.0, false),
    ("ms", 1e3, false),
    ("s", 1e6, false),
    ("min", 6e7, false),
    ("h", 3.6e9, false),
    ("d", 8.64e10, false),
];

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// This version has no such name.
    Missing,
    /// It takes other values.
    Value(String),
}

/// What a value may be.
#[derive(Debug, Clone, Copy)]
enum Values {
    Number {
        is_whole: bool,
        unit: &'static str,
        least: f64,
        greatest: f64,
    },
    Bool,
    Words(&'static str),
    /// Whatever the server's own check says.
    Text,
}

/// Whether a server of this major version takes the value, in one of the tables of names.
///
/// # Errors
/// What is wrong with it.
pub fn check(table: &'static str, name: &str, value: &str, major: u16) -> Result<(), Wrong> {
    let values = values(table, name, Some(major.max(OLDEST_ASKED))).ok_or(Wrong::Missing)?;
    let wrong = |expected: String| Err(Wrong::Value(expected));
    match values {
        Values::Number {
            is_whole,
            unit,
            least,
            greatest,
        } => {
            let found = parse(value, is_whole, unit);
            if found.is_some_and(|number| (least..=greatest).contains(&number)) {
                return Ok(());
            }
            let number = if is_whole {
                "a whole number"
            } else {
                "a number"
            };
            let unit = match unit {
                "-" => String::new(),
                unit => format!(" (of {unit}, or with another unit)"),
            };
            let greatest = if greatest < f64::from(u32::MAX) {
                format!(" to {greatest}")
            } else {
                String::new()
            };
            wrong(format!("{number} from {least}{greatest}{unit}"))
        }
        Values::Bool if !is_bool(value) => wrong("on or off".to_owned()),
        Values::Words(words) => {
            // Where on and off are words, their other spellings are too.
            let is_known = |word: &str| is_same(value.trim(), word);
            if words.split('|').any(is_known) {
                return Ok(());
            }
            wrong(format!("one of {}", words.replace('|', ", ")))
        }
        Values::Bool | Values::Text => Ok(()),
    }
}

/// The number that a value of a setting is, in the setting's own unit; `None` for what no server
/// would take.
#[must_use]
pub fn number(name: &str, value: &str) -> Option<f64> {
    match values(SETTINGS, name, None)? {
        Values::Number { is_whole, unit, .. } => parse(value, is_whole, unit),
        _ => None,
    }
}

/// The same of a whole number that is none below 0, which stands for another setting's.
#[must_use]
pub fn whole(name: &str, value: &str) -> Option<u32> {
    let number = number(name, value).filter(|number| (0.0..=f64::from(u32::MAX)).contains(number));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is in the range"
    )]
    number.map(|number| number as u32)
}

/// Of a version, or of the oldest that has the name.
fn values(table: &'static str, name: &str, major: Option<u16>) -> Option<Values> {
    let (settings, parameters) = VALUES.split_once("== storage parameters\n")?;
    let part = if table == SETTINGS {
        settings
    } else {
        parameters
    };
    part.lines().find_map(|line| {
        let mut words = line.split(' ');
        (words.next()? == name).then_some(())?;
        let mut kind = words.next()?;
        if let Some((first, last)) = kind.split_once('-') {
            let first: u16 = first.parse().ok()?;
            let last: u16 = last.parse().unwrap_or(u16::MAX);
            if major.is_some_and(|major| !(first..=last).contains(&major)) {
                return None;
            }
            kind = words.next()?;
        }
        Some(match kind {
            "int" | "real" => Values::Number {
                is_whole: kind == "int",
                unit: words.next()?,
                least: words.next()?.parse().ok()?,
                greatest: words.next()?.parse().ok()?,
            },
            "bool" => Values::Bool,
            "enum" => Values::Words(line.split_once("enum ")?.1),
            _ => Values::Text,
        })
    })
}

/// A number in the unit of its setting.
///
/// Source: `parse_int`, `parse_real` and `convert_to_base_unit`, src/backend/utils/misc/guc.c
/// (REL_18_STABLE).
fn parse(text: &str, is_whole: bool, unit: &str) -> Option<f64> {
    let text = text.trim();
    let (number, rest) = prefix(text, is_whole)?;
    let own = UNITS.iter().find(|known| known.0 == unit);
    let number = match (rest.trim(), own) {
        ("", _) => number,
        (given, Some(own)) => {
            // A block is a unit of settings, not of people.
            let is_given = |known: &&(&str, f64, bool)| known.0 != "8kB" && known.2 == own.2;
            let mut larger = UNITS.iter().rev().filter(is_given);
            let given = larger.find(|known| known.0 == given)?;
            let smallest = number * given.1;
            // "0.3GB" is 307 MB.
            let rounded = larger.next().map_or(smallest, |smaller| {
                (smallest / smaller.1).round_ties_even() * smaller.1
            });
            rounded / own.1
        }
        _ => return None,
    };
    let number = if is_whole {
        number.round_ties_even()
    } else {
        number
    };
    number.is_finite().then_some(number)
}

/// The number at the beginning, and what follows it: in C's spellings, 0x1F, and 017 of whole ones.
fn prefix(text: &str, is_whole: bool) -> Option<(f64, &str)> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    if text.len() - unsigned.len() > 1 {
        return None;
    }
    let lower = unsigned.to_ascii_lowercase();
    let hexadecimal = lower.strip_prefix("0x");
    if is_whole || hexadecimal.is_some() {
        let (digits, base) = match hexadecimal {
            Some(digits) => (digits, 16),
            None => (&*lower, if lower.starts_with('0') { 8 } else { 10 }),
        };
        let end = digits
            .find(|sign: char| !sign.is_digit(base))
            .unwrap_or(digits.len());
        let is_real = base != 16 && digits[end..].starts_with(['.', 'e']);
        if end > 0 && !is_real {
            let number = i64::from_str_radix(&digits[..end], base).ok()? as f64;
            let rest = &unsigned[unsigned.len() - (digits.len() - end)..];
            return Some((sign * number, rest));
        }
    }
    let is_exponent = |at: usize, sign: char| {
        let before = &unsigned[..at];
        matches!(sign, '+' | '-') && before.ends_with(['e', 'E'])
    };
    let mut end = unsigned
        .char_indices()
        .find(|&(at, sign)| {
            !(sign.is_ascii_digit() || matches!(sign, '.' | 'e' | 'E') || is_exponent(at, sign))
        })
        .map_or(unsigned.len(), |(at, _)| at);
    while end > 0 {
        if let Ok(number) = unsigned[..end].parse::<f64>() {
            return Some((sign * number, &unsigned[end..]));
        }
        end -= 1;
    }
    None
}

/// Source: `parse_bool_with_len`, src/backend/utils/adt/bool.c (REL_18_STABLE).
fn is_bool(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let is_start = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    let words = [
        ("true", 1),
        ("false", 1),
        ("yes", 1),
        ("no", 1),
        ("on", 2),
        ("off", 2),
    ];
    matches!(&*text, "1" | "0") || words.iter().any(|&(word, least)| is_start(word, least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::settings::{STORAGE_PARAMETERS, names};

    fn setting(name: &str, value: &str, major: u16) -> Result<(), Wrong> {
        check(SETTINGS, name, value, major)
    }

    /// The least memory of a VACUUM is another from 17 on.
    #[test]
    fn ranges_are_those_of_the_version() {
        assert_eq!(setting("maintenance_work_mem", "64kB", 17), Ok(()));
        let expected = "a whole number from 1024 to 2147483647 (of kB, or with another unit)";
        assert_eq!(
            setting("maintenance_work_mem", "64kB", 16),
            Err(Wrong::Value(expected.to_owned()))
        );
        assert_eq!(
            setting("autovacuum_vacuum_max_threshold", "5", 17),
            Err(Wrong::Missing)
        );
        assert_eq!(setting("wal_compression", "TRUE", 15), Ok(()));
        assert!(setting("wal_compression", "gzip", 15).is_err());
        assert!(setting("wal_recycle", "maybe", 15).is_err());
        let parameter = |name, value| check(STORAGE_PARAMETERS, name, value, 18);
        assert_eq!(parameter("toast_tuple_target", "128"), Ok(()));
        assert!(parameter("toast_tuple_target", "127").is_err());
        assert!(parameter("vacuum_index_cleanup", "auto").is_ok());
        assert!(parameter("autovacuum_vacuum_scale_factor", "-0.5").is_err());
    }

    /// As `SHOW` of 18.4 has it, in the setting's unit, after `SET` to the text.
    #[test]
    fn numbers_as_a_server_reads_them() {
        for (value, kilobytes) in [
            ("1GB", Some(1_048_576.0)),
            ("1.5MB", Some(1536.0)),
            (" 64 kB", Some(64.0)),
            ("65536", Some(65_536.0)),
            ("0x100", Some(256.0)),
            ("0200", Some(128.0)),
            ("1e3", Some(1000.0)),
            ("100000B", Some(98.0)),
            ("0.3GB", Some(314_368.0)),
            ("30.1MB", Some(30_822.0)),
            ("64kb", None),
            ("64 s", None),
            ("", None),
            ("MB", None),
            ("--64", None),
        ] {
            assert_eq!(number("work_mem", value), kilobytes, "{value}");
        }
        assert_eq!(number("autovacuum_naptime", "2min"), Some(120.0));
        assert_eq!(number("vacuum_cost_delay", "500us"), Some(0.5));
        assert_eq!(number("vacuum_freeze_min_age", "1000.4"), Some(1000.0));
    }

    /// Every name of the tables is known here, in some version.
    #[test]
    fn no_name_is_missing() {
        for table in [SETTINGS, STORAGE_PARAMETERS] {
            for name in names(table) {
                assert!(values(table, name, None).is_some(), "{name}");
            }
        }
    }
}
