//! What no index may have in its expressions and predicate: functions that are not immutable.
//!
//! Only what is sure by names and by the types of columns: an expression that is let through may
//! still be refused by a server (operators such as `timestamptz + interval`, one's own functions).

use serde_json::Value;

use crate::SqlError;
use crate::columns::{strings, value_of, visit};
use crate::functions::{Volatility, volatility};

/// Of these names some functions are immutable and some are not (15 to 19).
const VARIED: &[&str] = &[
    "age",
    "date",
    "date_add",
    "date_part",
    "date_subtract",
    "date_trunc",
    "extract",
    "generate_series",
    "in_range",
    "json_to_tsvector",
    "jsonb_to_tsvector",
    "length",
    "numeric",
    "overlaps",
    "phraseto_tsquery",
    "plainto_tsquery",
    "quote_literal",
    "quote_nullable",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "timezone",
    "to_timestamp",
    "to_tsquery",
    "to_tsvector",
    "ts_headline",
    "ts_parse",
    "ts_rewrite",
    "ts_token_type",
    "websearch_to_tsquery",
];
/// With one argument they ask `default_text_search_config`.
const BY_CONFIGURATION: &[&str] = &[
    "phraseto_tsquery",
    "plainto_tsquery",
    "to_tsquery",
    "to_tsvector",
    "websearch_to_tsquery",
];
/// Of a timestamptz alone, or with what is asked of it before, they go by `TimeZone`.
const BY_ZONE: &[(&str, usize)] = &[
    ("age", 1),
    ("date", 1),
    ("date_part", 2),
    ("date_trunc", 2),
    ("extract", 2),
    ("time", 1),
    ("timestamp", 1),
    ("timetz", 1),
];
/// Casts that go by `TimeZone` or `DateStyle`.
const CASTS: &[(&str, &[&str])] = &[
    (
        "timestamptz",
        &["date", "time", "timestamp", "timetz", "text", "varchar"],
    ),
    ("timestamp", &["timestamptz", "text", "varchar"]),
    ("date", &["timestamptz", "text", "varchar"]),
];

/// What of an expression an index may not have; `None` where nothing is known against it.
///
/// `columns` are names and types, as PostgreSQL's catalogue calls these.
///
/// Source: `CheckMutability` in indexcmds.c (`contain_mutable_functions_after_planning` from 17
/// on); volatilities of `pg_proc` and `pg_cast`.
///
/// # Errors
///
/// Of the parser; [`SqlError::NotOne`] for what is no expression.
pub fn not_immutable(text: &str, columns: &[(String, String)]) -> Result<Option<String>, SqlError> {
    let columns = columns.to_vec();
    value_of(text, move |value| {
        let mut found = None;
        // The tree's types all serialise.
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        visit(&value, &mut |kind, body| {
            let here = match kind {
                "FuncCall" => called(body, &columns),
                "TypeCast" => cast(body, &columns),
                "SqlvalueFunction" => Some("a value of the moment or the session".to_owned()),
                _ => None,
            };
            found = found.take().or(here);
        });
        Ok(found)
    })
}

fn called(body: &Value, columns: &[(String, String)]) -> Option<String> {
    let names: Vec<&str> = strings(&body["funcname"]).collect();
    let name = match names.as_slice() {
        [name] | ["pg_catalog", name] => *name,
        _ => return None,
    };
    let arguments = body["args"].as_array().map_or(&[][..], Vec::as_slice);
    let is_mutable = if VARIED.contains(&name) {
        let by_zone = BY_ZONE.contains(&(name, arguments.len()))
            && type_of(&arguments.last()?["node"], columns) == Some("timestamptz");
        by_zone || BY_CONFIGURATION.contains(&name) && arguments.len() == 1
    } else {
        volatility(name).is_some_and(|found| found > Volatility::Immutable)
    };
    is_mutable.then(|| format!("{name}()"))
}

fn cast(body: &Value, columns: &[(String, String)]) -> Option<String> {
    let from = type_of(&body["arg"]["node"], columns)?;
    let names: Vec<&str> = strings(&body["type_name"]["names"]).collect();
    let to = *names.last()?;
    let (_, refused) = CASTS.iter().find(|(one, _)| *one == from)?;
    refused
        .contains(&to)
        .then(|| format!("a cast from {from} to {to}"))
}

/// The type of a column that stands there alone.
fn type_of<'a>(node: &Value, columns: &'a [(String, String)]) -> Option<&'a str> {
    let name = strings(&node["ColumnRef"]["fields"]).last()?;
    let (_, column_type) = columns.iter().find(|(column, _)| column == name)?;
    Some(column_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<String> {
        let columns = [("w", "timestamptz"), ("p", "timestamp"), ("s", "text")];
        let columns = columns.map(|(name, kind)| (name.to_owned(), kind.to_owned()));
        not_immutable(text, &columns).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// `tests/postgres/test_stated_live.py` asks servers for the same.
    #[test]
    fn what_is_sure_to_be_refused_is_found_wherever_it_stands() {
        for (text, expected) in [
            ("lower(concat(s, 'x'))", "concat()"),
            ("pg_catalog.now()", "now()"),
            ("date_trunc('day', w)", "date_trunc()"),
            (
                "CASE WHEN extract(year from t.w) > 2 THEN 1 END",
                "extract()",
            ),
            ("w::date", "a cast from timestamptz to date"),
            ("p::text || s", "a cast from timestamp to text"),
            ("to_tsvector(s)", "to_tsvector()"),
            (
                "w < CURRENT_TIMESTAMP",
                "a value of the moment or the session",
            ),
        ] {
            assert_eq!(of(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn variants_that_are_immutable_are_let_through() {
        for text in [
            "date_trunc('day', p)",
            "date_trunc('day', w, 'UTC')",
            "(w AT TIME ZONE 'UTC')::date",
            "date(p)",
            "p::date",
            "to_tsvector('simple', s)",
            "w > '2000-01-01'::timestamptz",
            "mine.concat(s)",
            "frobnicate(s)",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
