//! Logs as servers write them, fed in pieces of any size.

use pgheadroom_serverlog::scan::Scan;
use pgheadroom_serverlog::time::Zones;
use pgheadroom_serverlog::{Format, Found, Prefix, Selection, normal};
use proptest::prelude::*;

const STDERR: &str = "\
2026-11-22 15:54:20.100 UTC [9] LOG:  checkpoint starting: time
2026-11-22 15:54:20.200 UTC [17] me@shop LOG:  statement: UPDATE t
\tSET a = 'x;
\ty' WHERE id = 1
2026-11-22 15:54:20.300 UTC [17] me@shop LOG:  duration: 0.1 ms  parse s: UPDATE t SET b = $1
2026-11-22 15:54:20.300 UTC [17] me@shop LOG:  duration: 0.2 ms  execute s: UPDATE t SET b = $1
2026-11-22 15:54:20.300 UTC [17] me@shop DETAIL:  parameters: $1 = 'LOG:  statement: no'
2026-11-22 15:54:20.400 UTC [17] me@shop LOG:  statement: PREPARE p AS UPDATE t SET c = $1
2026-11-22 15:54:20.400 UTC [17] me@shop LOG:  statement: EXECUTE p(1)
2026-11-22 15:54:20.400 UTC [17] me@shop DETAIL:  prepare: PREPARE p AS UPDATE t
\tSET c = $1
2026-11-22 15:54:20.500 UTC [18] me@other LOG:  statement: UPDATE t SET d = 1
2026-11-22 15:54:29.000 UTC [17] me@shop LOG:  statement: UPDATE t SET e = 1
2026-11-22 15:54:21.000 UTC [17] me@shop LOG:  statement: UPDATE t SET a = 'cut
sh: a line of another program
2026-11-22 15:54:21.000 UTC [17] me@shop LOG:  statement: UPDATE t SET f = 1";

fn selection() -> Selection {
    Selection {
        database: Some(b"shop".to_vec()),
        // 15:54:20.150 to 15:54:22
        interval_ms: Some((1_795_362_860_150, 1_795_362_862_000)),
        zones: Zones::default(),
    }
}

fn stderr() -> Format {
    Format::Stderr(Prefix::parse(b"%m [%p] %q%u@%d "))
}

fn scanned(format: Format, pieces: &[&[u8]]) -> Found {
    let mut scan = Scan::new(format, selection());
    for piece in pieces {
        scan.feed(piece);
    }
    scan.end_file();
    scan.found()
}

fn texts(found: &Found) -> Vec<(&str, u64)> {
    found
        .counts
        .iter()
        .map(|(t, n)| (std::str::from_utf8(t).unwrap(), *n))
        .collect()
}

/// What is counted: of this database, of this interval, executed, and whole.
#[test]
fn a_stderr_log_is_selected() {
    let found = scanned(stderr(), &[STDERR.as_bytes()]);
    assert_eq!(
        texts(&found),
        [
            ("PREPARE p AS UPDATE t SET c = ''", 1),
            ("UPDATE t SET a = '' WHERE id = 0", 1),
            ("UPDATE t SET b = ''", 1),
            ("UPDATE t SET f = 0", 1),
        ]
    );
    assert_eq!((found.executed, found.selected), (8, 6));
    assert_eq!((found.elsewhere, found.outside, found.cut), (1, 1, 1));
    assert_eq!(
        (found.unprefixed, found.unreadable, found.untimed),
        (0, 0, 0)
    );
}

/// A log of another prefix gives nothing, and says so.
#[test]
fn lines_of_another_prefix_are_counted() {
    let format = Format::Stderr(Prefix::parse(b"%t:%u@%d:"));
    let found = scanned(format, &[STDERR.as_bytes()]);
    assert_eq!((found.executed, found.counts.len()), (0, 0));
    assert!(found.unprefixed >= 6);
}

/// Without a time in the prefix the position in the file alone selects.
#[test]
fn statements_without_a_time_are_taken_and_counted() {
    let format = Format::Stderr(Prefix::parse(b"[%p] %d "));
    let found = scanned(format, &[b"[1] shop LOG:  statement: UPDATE t SET a = 1\n"]);
    assert_eq!((found.selected, found.untimed), (1, 1));
}

type Form = fn(&str) -> String;

fn csv_of(statement: &str) -> String {
    let message = format!("statement: {statement}").replace('"', "\"\"");
    format!(
        "2026-11-22 15:54:20.200 UTC,\"me\",\"shop\",17,\"[local]\",6.11,1,\"UPDATE\",\
         2026-11-22 15:54:19 UTC,3/4,0,LOG,00000,\"{message}\",,,,,,,,,\"psql\",\
         \"client backend\",,0\n"
    )
}

fn json_of(statement: &str) -> String {
    let escaped = statement
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!(
        "{{\"timestamp\":\"2026-11-22 15:54:20.200 UTC\",\"user\":\"me\",\"dbname\":\"shop\",\
         \"pid\":17,\"error_severity\":\"LOG\",\"message\":\"statement: {escaped}\"}}\n"
    )
}

fn stderr_of(statement: &str) -> String {
    let message = statement.replace('\n', "\n\t");
    format!("2026-11-22 15:54:20.200 UTC [17] me@shop LOG:  statement: {message}\n")
}

/// Bytes at random, and tokens at random: chance alone never writes `IN (1, 2)`.
fn statement_like() -> impl Strategy<Value = String> {
    const TOKENS: [&str; 26] = [
        "IN", "ARRAY", "VALUES", "(", ")", "[", "]", ",", "1", ".5", "'a'", "$1", "$$x$$", "-",
        "+", "=", ".", ";", " ", "e", "u&", "\"q\"", "t", "*", "/*c*/", "--c\n",
    ];
    prop_oneof![
        "[a-zA-Z0-9_'\"$.,;:&()\\[\\] \n*/=+-]{0,60}",
        prop::collection::vec(prop::sample::select(&TOKENS[..]), 0..16)
            .prop_map(|tokens| tokens.concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

    /// Where a piece ends is chance: it must not matter, in any format, for any statement.
    #[test]
    fn pieces_do_not_matter(
        statements in prop::collection::vec("[a-z\"'\\\\;,\n\t{}() -]{0,30}", 1..6),
        size in 1_usize..200,
    ) {
        let forms: [(Format, Form); 3] =
            [(Format::Csv, csv_of), (Format::Json, json_of), (stderr(), stderr_of)];
        let mut all = Vec::new();
        for (format, form) in forms {
            let log: String = statements.iter().map(|text| form(text)).collect();
            let whole = scanned(format.clone(), &[log.as_bytes()]);
            let pieces: Vec<&[u8]> = log.as_bytes().chunks(size).collect();
            prop_assert_eq!(&scanned(format, &pieces), &whole);
            prop_assert_eq!(whole.selected, statements.len() as u64);
            all.push(whole.counts);
        }
        prop_assert_eq!(&all[0], &all[1], "csvlog and jsonlog");
        prop_assert_eq!(&all[0], &all[2], "csvlog and stderr");
    }

    /// Foreign bytes never panic, in any format.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for format in [Format::Csv, Format::Json, stderr()] {
            scanned(format, &[&bytes, b"\n", &bytes]);
        }
        let _ = normal::statements(&bytes);
    }

    /// What was put away stays away: a second time changes nothing.
    #[test]
    fn normal_statements_are_their_own(text in statement_like()) {
        if let Ok(found) = normal::statements(text.as_bytes()) {
            for statement in found {
                let again = normal::statements(&statement);
                prop_assert_eq!(again, Ok(vec![statement]));
            }
        }
    }
}
