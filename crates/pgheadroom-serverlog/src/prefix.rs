//! `log_line_prefix`: what stands before the severity of a line of a stderr log.
//!
//! Source: `log_status_format`, src/backend/utils/error/elog.c (REL_18_STABLE).

use crate::time;

/// One part of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    /// `%m` or `%t`.
    Time,
    /// `%n`.
    Epoch,
    /// `%d`.
    Database,
    /// Any other escape: text that ends where the next part begins.
    Text,
}

/// A `log_line_prefix`, ready to be compared with lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prefix {
    parts: Vec<Part>,
}

/// Where the parts of a line's prefix lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Matched<'a> {
    /// The text of `%m` or `%t`.
    pub time: Option<&'a [u8]>,
    /// The text of `%n`.
    pub epoch: Option<&'a [u8]>,
    /// The text of `%d`.
    pub database: Option<&'a [u8]>,
    /// What follows the prefix.
    pub rest: &'a [u8],
}

/// More steps than any real line takes; a hostile one is left.
const STEPS_MAX: usize = 4_000;

/// What a search for the parts of a line looks for, and how long it may go on.
struct Search<'w> {
    ends: fn(&[u8]) -> bool,
    wanted: Option<&'w [u8]>,
    steps: usize,
}

impl Prefix {
    /// Read the setting as the server does; unknown escapes are nothing, as there.
    #[must_use]
    pub fn parse(setting: &[u8]) -> Self {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut bytes = setting.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                literal.push(byte);
                continue;
            }
            while bytes
                .next_if(|b| *b == b'-' || b.is_ascii_digit())
                .is_some()
            {}
            let part = match bytes.next() {
                Some(b'%') => {
                    literal.push(b'%');
                    continue;
                }
                // What follows %q is written by sessions, and only those are of interest.
                Some(b'q') | None => continue,
                Some(b'm' | b't') => Part::Time,
                Some(b'n') => Part::Epoch,
                Some(b'd') => Part::Database,
                Some(
                    b'a' | b'u' | b'r' | b'h' | b'L' | b'b' | b'p' | b'P' | b'i' | b'e' | b'c'
                    | b'l' | b's' | b'v' | b'x' | b'Q',
                ) => Part::Text,
                Some(_) => continue,
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(part);
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Self { parts }
    }

    /// Whether lines say when they were written.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Time | Part::Epoch))
    }

    /// Whether lines say of which database they are.
    #[must_use]
    pub fn has_database(&self) -> bool {
        self.parts.contains(&Part::Database)
    }

    /// Compare with a line's start, up to a severity that `ends` accepts.
    ///
    /// An application's name may hold what the prefix has between its parts, and a line can then
    /// be read in several ways: one in which the database is `wanted` is believed first.
    #[must_use]
    pub fn matched<'a>(
        &self,
        line: &'a [u8],
        wanted: Option<&[u8]>,
        ends: fn(&[u8]) -> bool,
    ) -> Option<Matched<'a>> {
        let any = |wanted| {
            let mut search = Search {
                ends,
                wanted,
                steps: STEPS_MAX,
            };
            self.from(0, line, Matched::default(), &mut search)
        };
        wanted.and_then(|_| any(wanted)).or_else(|| any(None))
    }

    fn from<'a>(
        &self,
        number: usize,
        line: &'a [u8],
        found: Matched<'a>,
        search: &mut Search<'_>,
    ) -> Option<Matched<'a>> {
        search.steps = search.steps.checked_sub(1)?;
        let Some(part) = self.parts.get(number) else {
            return (search.ends)(line).then_some(Matched {
                rest: line,
                ..found
            });
        };
        match part {
            Part::Literal(text) => {
                let line = line.strip_prefix(text.as_slice())?;
                self.from(number + 1, line, found, search)
            }
            Part::Time => {
                let padding = line.iter().take_while(|b| **b == b' ').count();
                let length = time::stamp_length(&line[padding..])?;
                let (stamp, line) = line[padding..].split_at(length);
                let found = Matched {
                    time: Some(stamp),
                    ..found
                };
                self.from(
                    number + 1,
                    trimmed(line, self.parts.get(number + 1)),
                    found,
                    search,
                )
            }
            Part::Epoch | Part::Database | Part::Text => {
                for length in Lengths::new(line, self.parts.get(number + 1)) {
                    let text = line[..length].trim_ascii();
                    if *part == Part::Database && search.wanted.is_some_and(|name| name != text) {
                        continue;
                    }
                    let found = match part {
                        Part::Epoch => Matched {
                            epoch: Some(text),
                            ..found
                        },
                        Part::Database => Matched {
                            database: Some(text),
                            ..found
                        },
                        _ => found,
                    };
                    if let Some(matched) = self.from(number + 1, &line[length..], found, search) {
                        return Some(matched);
                    }
                    if search.steps == 0 {
                        return None;
                    }
                }
                None
            }
        }
    }
}

/// A padded time is followed by blanks that are its own, unless the prefix goes on with one.
fn trimmed<'a>(line: &'a [u8], next: Option<&Part>) -> &'a [u8] {
    match next {
        Some(Part::Literal(text)) if line.starts_with(text) => line,
        Some(Part::Literal(_)) => line.trim_ascii_start(),
        _ => line,
    }
}

/// How long a text of unknown length may be: up to each place where the next part may begin.
struct Lengths<'a> {
    line: &'a [u8],
    literal: Option<&'a [u8]>,
    next: Option<usize>,
}

impl<'a> Lengths<'a> {
    fn new(line: &'a [u8], next: Option<&'a Part>) -> Self {
        let literal = match next {
            Some(Part::Literal(text)) => Some(text.as_slice()),
            _ => None,
        };
        let mut made = Self {
            line,
            literal,
            next: None,
        };
        made.next = made.at(0);
        made
    }

    fn at(&self, from: usize) -> Option<usize> {
        match self.literal {
            Some(text) => memchr::memmem::find(self.line.get(from..)?, text).map(|at| from + at),
            None => (from <= self.line.len()).then_some(from),
        }
    }
}

impl Iterator for Lengths<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let found = self.next?;
        self.next = self.at(found + 1);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_log(rest: &[u8]) -> bool {
        rest.starts_with(b"LOG:  ")
    }

    fn database<'a>(setting: &str, line: &'a str) -> Option<&'a str> {
        let prefix = Prefix::parse(setting.as_bytes());
        let found = prefix.matched(line.as_bytes(), Some(b"shop"), is_log)?;
        found
            .database
            .map(|text| std::str::from_utf8(text).unwrap())
    }

    /// Debian's default, pgBadger's, and what people make of them.
    #[test]
    fn prefixes_that_are_in_use() {
        for (setting, line, expected) in [
            (
                "%m [%p] %q%u@%d ",
                "2026-11-22 15:54:20.123 UTC [17] me@shop LOG:  x",
                "shop",
            ),
            (
                "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
                "2026-11-22 15:54:20 UTC [17]: [3-1] user=me,db=shop,app=psql,client=::1 LOG:  x",
                "shop",
            ),
            (
                "%t:%r:%u@%d:[%p]:",
                "2026-11-22 15:54:20 UTC:10.0.0.1(99):me@shop:[17]:LOG:  x",
                "shop",
            ),
            (
                "%-10d|%m|",
                "shop      |2026-11-22 15:54:20.123 +03|LOG:  x",
                "shop",
            ),
            ("%n %d %%", "1795362860.123 shop %LOG:  x", "shop"),
            ("%a %d: ", "an app: with LOG:  in it shop: LOG:  x", "shop"),
        ] {
            assert_eq!(database(setting, line), Some(expected), "{setting}");
        }
    }

    /// A background process stops at %q; a line of another prefix is not taken for one of this.
    #[test]
    fn lines_without_the_prefix() {
        let debian = "%m [%p] %q%u@%d ";
        assert_eq!(
            database(debian, "2026-11-22 15:54:20.123 UTC [17] LOG:  x"),
            None
        );
        assert_eq!(database(debian, "nohup: ignoring input LOG:  x"), None);
        assert!(!Prefix::parse(b"[%p] ").has_time());
        assert!(Prefix::parse(b"%-25m ").has_time());
        assert!(!Prefix::parse(b"%m %%d").has_database());
    }

    /// Many texts without a sign between them could be split in any way: the search ends.
    #[test]
    fn a_hostile_prefix_ends() {
        let prefix = Prefix::parse(b"%a%a%a%a%a%a%a%d");
        let line = [b'x'; 5_000];
        assert_eq!(prefix.matched(&line, None, is_log), None);
    }
}
