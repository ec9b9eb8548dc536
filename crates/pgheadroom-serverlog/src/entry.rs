//! One entry of a csvlog or jsonlog, and the statement in a message.
//!
//! Source: `write_csvlog`, src/backend/utils/error/csvlog.c; `write_jsonlog`, jsonlog.c; the
//! messages: `exec_simple_query`, `exec_execute_message`, `check_log_duration`,
//! `errdetail_execute`, src/backend/tcop/postgres.c (REL_18_STABLE).

use std::borrow::Cow;

/// What is read of an entry; texts as they stand in the file, escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry<'a> {
    /// When it was written.
    pub time: &'a [u8],
    /// Of which database the session was.
    pub database: &'a [u8],
    /// LOG, ERROR, ...
    pub severity: &'a [u8],
    /// The message.
    pub message: &'a [u8],
    /// The detail.
    pub detail: &'a [u8],
}

/// What stands at the start of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<'a> {
    /// An entry, or `None` for bytes that are none; and how many bytes it takes.
    Whole(Option<Entry<'a>>, usize),
    /// The entry does not end in this buffer.
    Partial,
}

/// Columns of a csvlog's row, from 0.
const CSV: [usize; 5] = [0, 2, 11, 13, 14];

/// The row of a csvlog at the start of a buffer.
#[must_use]
pub fn csv_row(buffer: &[u8]) -> Next<'_> {
    let mut found = [&buffer[..0]; 15];
    let (mut place, mut column) = (0, 0);
    loop {
        let (field, end) = match buffer.get(place) {
            Some(b'"') => match quoted_field(buffer, place) {
                Some((field, end)) => (field, end),
                None => return Next::Partial,
            },
            _ => match memchr::memchr2(b',', b'\n', &buffer[place..]) {
                Some(length) => (&buffer[place..place + length], place + length),
                None => return Next::Partial,
            },
        };
        if let Some(slot) = found.get_mut(column) {
            *slot = field;
        }
        column += 1;
        match buffer.get(end) {
            Some(b',') => place = end + 1,
            Some(b'\n') => {
                let [time, database, severity, message, detail] = CSV.map(|number| found[number]);
                let entry = Entry {
                    time,
                    database,
                    severity,
                    message,
                    detail,
                };
                return Next::Whole((column >= 23).then_some(entry), end + 1);
            }
            Some(b'\r') if buffer.get(end + 1) == Some(&b'\n') => place = end + 1,
            // What follows a closing quote is a comma or the end: this is no csvlog.
            Some(_) => {
                let rest = memchr::memchr(b'\n', &buffer[end..]);
                return rest.map_or(Next::Partial, |at| Next::Whole(None, end + at + 1));
            }
            None => return Next::Partial,
        }
    }
}

/// The text between quotes that begin at `place`, and where the field ends.
fn quoted_field(buffer: &[u8], place: usize) -> Option<(&[u8], usize)> {
    let mut end = place + 1;
    loop {
        end += memchr::memchr(b'"', &buffer[end..])? + 1;
        // At the buffer's end a second quote may still come.
        match buffer.get(end)? {
            b'"' => end += 1,
            _ => return Some((&buffer[place + 1..end - 1], end)),
        }
    }
}

/// The line of a jsonlog at the start of a buffer.
#[must_use]
pub fn json_line(buffer: &[u8]) -> Next<'_> {
    match memchr::memchr(b'\n', buffer) {
        Some(length) => Next::Whole(json_object(&buffer[..length]), length + 1),
        None => Next::Partial,
    }
}

/// A flat object of strings, numbers and words.
fn json_object(line: &[u8]) -> Option<Entry<'_>> {
    let mut entry = Entry::default();
    let mut rest = line.trim_ascii().strip_prefix(b"{")?.trim_ascii_start();
    loop {
        let (key, after) = json_string(rest)?;
        rest = after
            .trim_ascii_start()
            .strip_prefix(b":")?
            .trim_ascii_start();
        let value;
        if rest.first() == Some(&b'"') {
            (value, rest) = json_string(rest)?;
        } else {
            let length = memchr::memchr2(b',', b'}', rest)?;
            value = rest[..length].trim_ascii();
            rest = &rest[length..];
        }
        match key {
            b"timestamp" => entry.time = value,
            b"dbname" => entry.database = value,
            b"error_severity" => entry.severity = value,
            b"message" => entry.message = value,
            b"detail" => entry.detail = value,
            _ => {}
        }
        rest = rest.trim_ascii_start();
        match rest.split_first()? {
            (b',', after) => rest = after.trim_ascii_start(),
            (b'}', _) => return Some(entry),
            _ => return None,
        }
    }
}

/// The inside of the string at the start of a text, and what follows it.
fn json_string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut place = 1;
    if text.first() != Some(&b'"') {
        return None;
    }
    loop {
        place += memchr::memchr2(b'"', b'\\', text.get(place..)?)? + 1;
        if text[place - 1] == b'"' {
            return Some((&text[1..place - 1], &text[place..]));
        }
        place += 1;
    }
}

/// Doubled quotes made single.
#[must_use]
pub fn csv_text(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'"', raw).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut made = Vec::with_capacity(raw.len());
    let mut skip = false;
    for byte in raw {
        skip = *byte == b'"' && !skip && !made.is_empty() && made.last() == Some(&b'"');
        if !skip {
            made.push(*byte);
        }
    }
    Cow::Owned(made)
}

/// Escapes of a JSON string resolved, as `escape_json` made them.
#[must_use]
pub fn json_text(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', raw).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut made = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        made.extend_from_slice(&rest[..at]);
        let escaped = rest.get(at + 1).copied().unwrap_or(b'\\');
        rest = rest.get(at + 2..).unwrap_or_default();
        match escaped {
            b'n' => made.push(b'\n'),
            b't' => made.push(b'\t'),
            b'r' => made.push(b'\r'),
            b'b' => made.push(8),
            b'f' => made.push(12),
            b'u' => rest = unicode(rest, &mut made),
            other => made.push(other),
        }
    }
    made.extend_from_slice(rest);
    Cow::Owned(made)
}

/// `XXXX` after a backslash and u, and a second half of a pair; gives what follows.
fn unicode<'a>(rest: &'a [u8], made: &mut Vec<u8>) -> &'a [u8] {
    let half = |text: Option<&[u8]>| {
        let text = std::str::from_utf8(text?).ok()?;
        u16::from_str_radix(text, 16).ok()
    };
    let Some(first) = half(rest.get(..4)) else {
        return rest;
    };
    let pair = rest.get(4..6) == Some(b"\\u");
    let second = if pair { half(rest.get(6..10)) } else { None };
    let (units, used) = match second {
        Some(second) if (0xd800..0xdc00).contains(&first) => (vec![first, second], 10),
        _ => (vec![first], 4),
    };
    made.extend_from_slice(String::from_utf16_lossy(&units).as_bytes());
    &rest[used..]
}

/// Whether a message, escaped or not, may hold an executed statement.
#[must_use]
pub fn may_hold_statement(message: &[u8]) -> bool {
    matches!(message.first(), Some(b's' | b'e' | b'd'))
        && [&b"statement: "[..], b"execute ", b"duration: "]
            .iter()
            .any(|head| message.starts_with(head))
}

/// The executed statement in a message.
///
/// Parse and bind lines of the extended protocol stand beside their execute line, and a fetch of
/// more rows of the same execution is none of its own: they hold no statement.
#[must_use]
pub fn statement(message: &[u8]) -> Option<&[u8]> {
    let mut rest = message;
    if let Some(after) = rest.strip_prefix(b"duration: ") {
        let digits = after
            .iter()
            .take_while(|b| b.is_ascii_digit() || **b == b'.')
            .count();
        rest = after[digits..].strip_prefix(b" ms  ")?;
    }
    if let Some(statement) = rest.strip_prefix(b"statement: ") {
        return Some(statement);
    }
    let rest = rest.strip_prefix(b"execute ")?;
    if rest.starts_with(b"fetch from ") {
        return None;
    }
    memchr::memmem::find(rest, b": ").map(|at| &rest[at + 2..])
}

/// The statement behind `EXECUTE name`: the server gives it in the detail.
#[must_use]
pub fn prepared(detail: &[u8]) -> Option<&[u8]> {
    detail.strip_prefix(b"prepare: ")
}

/// Whether a statement begins with that word.
#[must_use]
pub fn begins_with(statement: &[u8], word: &[u8]) -> bool {
    let text = statement.trim_ascii_start();
    text.len() > word.len()
        && text[..word.len()].eq_ignore_ascii_case(word)
        && text[word.len()].is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages are those of a server; what a client sees twice is counted once.
    #[test]
    fn executed_statements() {
        for (message, expected) in [
            ("statement: UPDATE t", Some("UPDATE t")),
            ("duration: 0.123 ms  statement: UPDATE t", Some("UPDATE t")),
            ("execute <unnamed>: UPDATE t", Some("UPDATE t")),
            (
                "duration: 1.5 ms  execute S_1/C_2: UPDATE t",
                Some("UPDATE t"),
            ),
            ("execute fetch from S_1/C_2: UPDATE t", None),
            ("duration: 1.5 ms  parse <unnamed>: UPDATE t", None),
            ("duration: 1.5 ms  bind <unnamed>: UPDATE t", None),
            ("duration: 1.5 ms", None),
            ("duration: 1.5 ms  plan:\nQuery Text: UPDATE t", None),
            ("checkpoint starting: time", None),
        ] {
            assert_eq!(
                statement(message.as_bytes()),
                expected.map(str::as_bytes),
                "{message}"
            );
        }
    }

    /// Rows that end inside a quote, or just behind one, are not whole yet.
    #[test]
    fn a_row_of_a_csvlog() {
        let row = b"2026-11-22 15:54:20.123 UTC,\"me\",\"a,\"\"b\",1,\"\",x,1,\"\",,,0,LOG,00000,\
            \"statement: SELECT \"\"c\"\"\n, 1\",\"prepare: x\",,,,,,,,\"psql\"\nrest";
        let end = row.len() - 4;
        for length in 0..end {
            assert_eq!(csv_row(&row[..length]), Next::Partial, "{length}");
        }
        let Next::Whole(Some(entry), used) = csv_row(row) else {
            panic!("a whole row");
        };
        assert_eq!(used, end);
        assert_eq!(csv_text(entry.database), &b"a,\"b"[..]);
        assert_eq!(
            csv_text(entry.message),
            &b"statement: SELECT \"c\"\n, 1"[..]
        );
        assert_eq!(
            (entry.severity, entry.detail),
            (&b"LOG"[..], &b"prepare: x"[..])
        );
        assert_eq!(csv_row(b"a line of stderr, say\n"), Next::Whole(None, 22));
    }

    /// Quotes in pairs, however many.
    #[test]
    fn quotes_of_a_csvlog() {
        assert_eq!(csv_text(b"\"\"\"\"a\"\""), &b"\"\"a\""[..]);
    }

    /// Escapes as the server writes them; what is no object is no entry.
    #[test]
    fn a_line_of_a_jsonlog() {
        let line =
            b"{\"timestamp\":\"t\",\"pid\":1,\"dbname\":\"d\\\"\",\"error_severity\":\"LOG\",\
            \"message\":\"statement: a\\n\\tb \\u00e9\\ud83d\\ude00\",\"query_id\":0}\n";
        let Next::Whole(Some(entry), _) = json_line(line) else {
            panic!("a whole line");
        };
        assert_eq!(json_text(entry.database), &b"d\""[..]);
        assert_eq!(
            json_text(entry.message),
            "statement: a\n\tb \u{e9}\u{1f600}".as_bytes()
        );
        assert_eq!(json_line(b"{\"a\":\"b"), Next::Partial);
        for broken in [
            &b"{\"a\":\"b\n"[..],
            b"nothing\n",
            b"{\n",
            b"{\"a\"}\n",
            b"{\"a\":\n",
        ] {
            assert_eq!(json_line(broken), Next::Whole(None, broken.len()));
        }
    }
}
