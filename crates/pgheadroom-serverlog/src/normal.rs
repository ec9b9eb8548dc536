//! Statements without their literals, so that equal ones are one.
//!
//! Strings and parameters become `''`, numbers `0`, comments and line breaks a space; a list of
//! constants in `IN (...)` or `ARRAY[...]` becomes its first, rows of `VALUES` that look alike one
//! row. What is left is still SQL of the same shape, for a parser to read. This is a scanner, not
//! a parser: source of the token forms: src/backend/parser/scan.l.

/// Longer ones are of no use to the parser behind, and would fill memory.
const STATEMENT_BYTES_MAX: usize = 200_000;

/// Why a text is no statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// A string, name or comment does not end.
    Cut,
    /// Too long, even without its literals.
    TooLong,
}

/// Split a text at its semicolons and put the literals of each statement away.
///
/// # Errors
/// [`Unread`]: nothing of the text is given then.
pub fn statements(text: &[u8]) -> Result<Vec<Vec<u8>>, Unread> {
    let mut normal = Normal::default();
    let mut place = 0;
    while place < text.len() {
        place = normal.token(text, place)?;
        if normal.out.len() > STATEMENT_BYTES_MAX {
            return Err(Unread::TooLong);
        }
    }
    normal.end();
    Ok(normal.done)
}

#[derive(Default)]
struct Normal {
    done: Vec<Vec<u8>>,
    out: Vec<u8>,
    space: bool,
    /// What opens a list of constants, and where its text begins; none or two are never open.
    list: Option<(u8, usize)>,
    /// Depth of brackets, and of the row of VALUES that is open.
    depth: usize,
    row: Option<(usize, usize)>,
    /// The last whole row of VALUES, as a range of `out`.
    previous_row: Option<(usize, usize)>,
    /// The last token was the word IN, ARRAY, VALUES, or a comma after a row.
    last: Last,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    In,
    Array,
    Values,
    CommaAfterRow,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

impl Normal {
    /// Take one token at `place`; gives where the next begins.
    fn token(&mut self, text: &[u8], place: usize) -> Result<usize, Unread> {
        let byte = text[place];
        let next = text.get(place + 1).copied();
        match byte {
            _ if is_space(byte) => {
                self.space = true;
                Ok(place + 1)
            }
            b'-' if next == Some(b'-') => {
                self.space = true;
                Ok(memchr::memchr(b'\n', &text[place..]).map_or(text.len(), |at| place + at))
            }
            b'/' if next == Some(b'*') => {
                self.space = true;
                comment_end(text, place + 2)
            }
            b'\'' => {
                let end = string_end(text, place + 1, false)?;
                self.constant(b"''");
                Ok(end)
            }
            b'"' => {
                let end = quoted_end(text, place + 1, b'"')?;
                self.put(&text[place..end], Last::Other);
                self.list = None;
                Ok(end)
            }
            b'$' => self.dollar(text, place),
            b'0'..=b'9' => Ok(self.number(text, place)),
            b'.' if next.is_some_and(|b| b.is_ascii_digit()) && !self.ends_operand() => {
                Ok(self.number(text, place))
            }
            b';' => {
                self.end();
                Ok(place + 1)
            }
            _ if is_word(byte) => self.word(text, place),
            _ => {
                self.sign(byte);
                Ok(place + 1)
            }
        }
    }

    fn word(&mut self, text: &[u8], place: usize) -> Result<usize, Unread> {
        let end = place + text[place..].iter().take_while(|b| is_word(**b)).count();
        let word = &text[place..end];
        let quote = text.get(end) == Some(&b'\'');
        if quote && word.len() == 1 && matches!(word[0] | 0x20, b'e' | b'b' | b'x' | b'n') {
            let end = string_end(text, end + 1, word[0] | 0x20 == b'e')?;
            self.constant(b"''");
            return Ok(end);
        }
        if word.eq_ignore_ascii_case(b"u") && text.get(end) == Some(&b'&') {
            match text.get(end + 1) {
                Some(b'\'') => {
                    let end = string_end(text, end + 2, false)?;
                    self.constant(b"''");
                    return Ok(end);
                }
                Some(b'"') => {
                    let end = quoted_end(text, end + 2, b'"')?;
                    self.put(&text[place..end], Last::Other);
                    self.list = None;
                    return Ok(end);
                }
                _ => {}
            }
        }
        let last = match word.len() {
            2 if word.eq_ignore_ascii_case(b"in") => Last::In,
            5 if word.eq_ignore_ascii_case(b"array") => Last::Array,
            6 if word.eq_ignore_ascii_case(b"values") => Last::Values,
            _ => Last::Other,
        };
        self.put(word, last);
        self.list = None;
        Ok(end)
    }

    /// `$1`, `$tag$...$tag$`, or a lone sign.
    fn dollar(&mut self, text: &[u8], place: usize) -> Result<usize, Unread> {
        let digits = text[place + 1..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        if digits > 0 {
            self.constant(b"''");
            return Ok(place + 1 + digits);
        }
        let tag = text[place + 1..]
            .iter()
            .take_while(|b| is_word(**b) && **b != b'$')
            .count();
        if text.get(place + 1 + tag) != Some(&b'$') {
            self.sign(b'$');
            return Ok(place + 1);
        }
        let begins = place + tag + 2;
        let found = memchr::memmem::find(&text[begins..], &text[place..begins]);
        let at = found.ok_or(Unread::Cut)?;
        self.constant(b"''");
        Ok(begins + at + tag + 2)
    }

    fn number(&mut self, text: &[u8], place: usize) -> usize {
        let mut end = place;
        while end < text.len() {
            let byte = text[end];
            let exponent = matches!(byte, b'+' | b'-')
                && end > place
                && text[end - 1] | 0x20 == b'e'
                && !text[place..end].contains(&b'x')
                && text.get(end + 1).is_some_and(u8::is_ascii_digit);
            if !(byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || exponent) {
                break;
            }
            end += 1;
        }
        self.drop_sign();
        self.constant(b"0");
        end
    }

    /// A number's own signs go with it: -5 and 5 are one statement.
    fn drop_sign(&mut self) {
        while !self.space && self.out.last().is_some_and(|b| matches!(b, b'-' | b'+')) {
            let before = self.out[..self.out.len() - 1].trim_ascii_end();
            let is_own = before.last().is_some_and(|b| b"(,=<>+-*/%[:|".contains(b));
            if !is_own {
                return;
            }
            self.space = before.len() < self.out.len() - 1;
            self.out.truncate(before.len());
        }
    }

    fn constant(&mut self, text: &[u8]) {
        // Two strings side by side, or one behind `u&`, would read as one token.
        let joins = self.out.ends_with(b"'") || self.out.ends_with(b"&");
        self.space |= joins && text.starts_with(b"'");
        let list = self.list;
        self.put(text, Last::Other);
        self.list = list;
    }

    fn sign(&mut self, byte: u8) {
        let (last, list) = (self.last, self.list);
        match byte {
            b'(' | b'[' => {
                self.open(byte, last);
            }
            b')' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if let Some((_, begins)) = list.filter(|(opening, _)| closes(*opening, byte)) {
                    self.first_only(begins);
                }
                self.list = None;
                self.put(&[byte], Last::Other);
                if self.row.is_some_and(|(depth, _)| depth == self.depth) {
                    self.close_row();
                }
            }
            b',' => {
                let after_row = self.row.is_none()
                    && self
                        .previous_row
                        .is_some_and(|(_, end)| end == self.out.len());
                self.put(
                    b",",
                    if after_row {
                        Last::CommaAfterRow
                    } else {
                        Last::Other
                    },
                );
                self.list = list;
            }
            _ => {
                self.put(&[byte], Last::Other);
                // A sign in a list is its number's.
                self.list = list.filter(|_| matches!(byte, b'-' | b'+'));
            }
        }
    }

    fn open(&mut self, byte: u8, last: Last) {
        let is_list = matches!((byte, last), (b'(', Last::In) | (b'[', Last::Array));
        let is_row = byte == b'(' && matches!(last, Last::Values | Last::CommaAfterRow);
        self.put(&[byte], Last::Other);
        self.list = is_list.then_some((byte, self.out.len()));
        if is_row {
            if last == Last::Values {
                self.previous_row = None;
            }
            self.row = Some((self.depth, self.out.len() - 1));
        }
        self.depth += 1;
    }

    /// Keep the first constant of the list that begins here.
    fn first_only(&mut self, begins: usize) {
        if let Some(comma) = memchr::memchr(b',', &self.out[begins..]) {
            let first = self.out[..begins + comma].trim_ascii_end().len();
            self.out.truncate(first.max(begins));
        }
        self.space = false;
    }

    /// A row that reads like the one before goes, with the comma between them.
    fn close_row(&mut self) {
        let Some((_, begins)) = self.row.take() else {
            return;
        };
        let ends = self.out.len();
        match self.previous_row {
            Some((from, to)) if self.out[from..to] == self.out[begins..ends] => {
                self.out.truncate(to);
            }
            _ => self.previous_row = Some((begins, ends)),
        }
    }

    /// Whether a dot here belongs to what stands before it: no number begins in `t.1` or `..1`.
    fn ends_operand(&self) -> bool {
        let ends = |b: &u8| is_word(*b) || matches!(b, b'"' | b')' | b']' | b'.');
        !self.space && self.out.last().is_some_and(ends)
    }

    fn put(&mut self, text: &[u8], last: Last) {
        if self.space && !self.out.is_empty() {
            self.out.push(b' ');
        }
        self.space = false;
        self.out.extend_from_slice(text);
        self.last = last;
    }

    fn end(&mut self) {
        let out = std::mem::take(&mut self.out);
        let done = std::mem::take(&mut self.done);
        *self = Self {
            done,
            ..Self::default()
        };
        if !out.is_empty() {
            self.done.push(out);
        }
    }
}

fn closes(opening: u8, closing: u8) -> bool {
    matches!((opening, closing), (b'(', b')') | (b'[', b']'))
}

/// Comments in `/* */` nest in PostgreSQL.
fn comment_end(text: &[u8], mut place: usize) -> Result<usize, Unread> {
    let mut depth = 1_usize;
    while let Some(at) = memchr::memchr2(b'*', b'/', &text[place..]) {
        place += at + 1;
        match (text[place - 1], text.get(place)) {
            (b'*', Some(b'/')) => {
                depth -= 1;
                place += 1;
                if depth == 0 {
                    return Ok(place);
                }
            }
            (b'/', Some(b'*')) => {
                depth += 1;
                place += 1;
            }
            _ => {}
        }
    }
    Err(Unread::Cut)
}

/// Where a string ends whose text begins at `place`; in `E'...'` a backslash takes the next byte.
fn string_end(text: &[u8], mut place: usize, escapes: bool) -> Result<usize, Unread> {
    if !escapes {
        return quoted_end(text, place, b'\'');
    }
    while let Some(at) = memchr::memchr2(b'\'', b'\\', &text[place..]) {
        place += at + 1;
        if text[place - 1] == b'\\' || text.get(place) == Some(&b'\'') {
            place = (place + 1).min(text.len());
        } else {
            return Ok(place);
        }
    }
    Err(Unread::Cut)
}

/// The same of a string or name in which the quote is doubled.
fn quoted_end(text: &[u8], mut place: usize, quote: u8) -> Result<usize, Unread> {
    while let Some(at) = memchr::memchr(quote, &text[place..]) {
        place += at + 1;
        if text.get(place) != Some(&quote) {
            return Ok(place);
        }
        place += 1;
    }
    Err(Unread::Cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> String {
        let found = statements(text.as_bytes()).unwrap();
        assert_eq!(found.len(), 1, "{text}");
        String::from_utf8(found[0].clone()).unwrap()
    }

    /// Literals must not reach a profile; what is left is SQL of the same shape.
    #[test]
    fn literals_are_put_away() {
        for (text, expected) in [
            (
                "UPDATE t SET a='s3cret' WHERE b=17 -- s3cret",
                "UPDATE t SET a='' WHERE b=0",
            ),
            (
                "UPDATE t SET a=$1\n\tWHERE b=$23",
                "UPDATE t SET a='' WHERE b=''",
            ),
            (
                "SELECT E'it\\'s; ', U&'x', b'01', $x$ ; ' $x$",
                "SELECT '', '', '', ''",
            ),
            (
                "SELECT 1.5e-3, .5, 0x1F, 1_000, a1, t.c, e",
                "SELECT 0, 0, 0, 0, a1, t.c, e",
            ),
            (
                "SELECT 'it''s' /* a /* nested ; */ ' */ + 1",
                "SELECT '' + 0",
            ),
            (
                "UPDATE \"T;1\" SET \"a\"\"b\" = -5",
                "UPDATE \"T;1\" SET \"a\"\"b\" = 0",
            ),
            (
                "UPDATE t SET a = b + -2, c = d-2 WHERE e -3 < 1",
                "UPDATE t SET a = b + 0, c = d-0 WHERE e -0 < 0",
            ),
            (
                "SELECT a[1:2], x::numeric(10,2)",
                "SELECT a[0:0], x::numeric(0,0)",
            ),
            (
                "SELECT price FROM p WHERE name IN (SELECT 1)",
                "SELECT price FROM p WHERE name IN (SELECT 0)",
            ),
        ] {
            assert_eq!(one(text), expected);
        }
    }

    /// ORMs write lists of any length: they are one statement, not a thousand.
    #[test]
    fn lists_of_constants_are_one() {
        for (text, expected) in [
            (
                "DELETE FROM t WHERE id IN (1, 2,3)",
                "DELETE FROM t WHERE id IN (0)",
            ),
            (
                "DELETE FROM t WHERE id in ($1, 'x')",
                "DELETE FROM t WHERE id in ('')",
            ),
            (
                "SELECT * FROM t WHERE id = ANY (ARRAY[1, 2])",
                "SELECT * FROM t WHERE id = ANY (ARRAY[0])",
            ),
            (
                "DELETE FROM t WHERE id IN (1, a)",
                "DELETE FROM t WHERE id IN (0, a)",
            ),
            (
                "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, now())",
                "INSERT INTO t VALUES (0, ''), (0, now())",
            ),
            (
                "UPDATE t SET (a, b) = (1, 2) WHERE f(1, 2)",
                "UPDATE t SET (a, b) = (0, 0) WHERE f(0, 0)",
            ),
        ] {
            assert_eq!(one(text), expected);
        }
    }

    /// A simple query may hold several statements; blank ones are none.
    #[test]
    fn several_statements_are_told_apart() {
        let found = statements(b"BEGIN; ;UPDATE t SET a = 1; \n; COMMIT").unwrap();
        assert_eq!(found, [&b"BEGIN"[..], b"UPDATE t SET a = 0", b"COMMIT"]);
    }

    /// A text that was cut off is no statement: half an assignment list says something false.
    #[test]
    fn what_does_not_end_is_cut() {
        for text in [
            "UPDATE t SET a = 'x",
            "SELECT \"a",
            "SELECT $a$ x",
            "SELECT 1 /* x",
            "SELECT E'\\",
        ] {
            assert_eq!(statements(text.as_bytes()), Err(Unread::Cut), "{text}");
        }
    }
}
