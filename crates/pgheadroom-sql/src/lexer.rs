//! Where literals, comments and statements begin and end, by the rules of psql's own lexer.
//!
//! Apart from the grammar's scanner, which gives nothing at all once a literal does not end and
//! knows neither psql's commands nor its variables. A test compares both on texts that parse.
//!
//! Source: `src/bin/psql`'s psqlscan.l (in `src/fe_utils`), REL_18_STABLE.
//! Differs: a backslash command ends the statement before it, as `\g` does.

/// What a piece of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Blanks and line breaks.
    Blank,
    /// `-- ...` without its line break, or `/* ... */`.
    Comment,
    /// `'...'` in any of its forms, or `$tag$...$tag$`, with its prefix.
    Literal,
    /// `"..."`.
    Name,
    /// A keyword or a name without quotes.
    Word,
    /// `1`, `.5`, `1e9`, `0x1F`.
    Number,
    /// `$1`.
    Parameter,
    /// `:name`, `:'name'`, `:"name"`, `:{?name}`: a variable of psql or pgbench.
    Variable,
    /// `;`, also as `\;`.
    Semicolon,
    /// A command of psql, from its backslash to the end of the line.
    Meta,
    /// Any other character.
    Other,
    /// A literal, name or comment that does not end.
    Cut,
}

/// A piece of a text: bytes from `begin` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: Kind,
    /// Its first byte.
    pub begin: usize,
    /// The byte after it.
    pub end: usize,
}

/// What a text may hold besides SQL.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Backslash commands of psql and pgbench.
    pub commands: bool,
    /// Variables, `:name`.
    pub variables: bool,
}

/// The pieces of a text, which together are the text.
pub struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    place: usize,
    options: Options,
}

impl<'a> Lexer<'a> {
    /// From the text's beginning.
    pub fn new(text: &'a str, options: Options) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            place: 0,
            options,
        }
    }

    /// The byte after the last piece.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Leave out what stands before a place, which begins a character.
    pub fn go_to(&mut self, place: usize) {
        assert!(
            place >= self.place && self.text.is_char_boundary(place),
            "a place that is still to come"
        );
        self.place = place;
    }

    fn at(&self, place: usize) -> u8 {
        self.bytes.get(place).copied().unwrap_or(0)
    }

    fn while_at(&self, mut place: usize, is: impl Fn(u8) -> bool) -> usize {
        while place < self.bytes.len() && is(self.bytes[place]) {
            place += 1;
        }
        place
    }

    fn line_end(&self, begin: usize) -> usize {
        self.while_at(begin, |byte| byte != b'\n' && byte != b'\r')
    }

    /// After a comment `/* */`, which nests; None if it does not end.
    fn comment_end(&self, begin: usize) -> Option<usize> {
        let (mut depth, mut place) = (0_usize, begin);
        while place + 1 < self.bytes.len() {
            match (self.bytes[place], self.bytes[place + 1]) {
                (b'/', b'*') => (depth, place) = (depth + 1, place + 2),
                (b'*', b'/') => {
                    (depth, place) = (depth - 1, place + 2);
                    if depth == 0 {
                        return Some(place);
                    }
                }
                _ => place += 1,
            }
        }
        None
    }

    /// After the quote that ends what begins behind the first one; None if there is none.
    fn quote_end(&self, first: usize, quote: u8, escapes: bool) -> Option<usize> {
        let mut place = first + 1;
        while place < self.bytes.len() {
            let byte = self.bytes[place];
            if byte == b'\\' && escapes {
                place += 2;
            } else if byte != quote {
                place += 1;
            } else if self.at(place + 1) == quote {
                place += 2;
            } else {
                return Some(place + 1);
            }
        }
        None
    }

    /// After a string with its continuations: a line break between two quotes joins them.
    fn string_end(&self, first: usize, escapes: bool) -> Option<usize> {
        let mut end = self.quote_end(first, b'\'', escapes)?;
        loop {
            let mut place = end;
            let mut broken = false;
            loop {
                let next = self.while_at(place, is_blank);
                broken |= self.bytes[place..next]
                    .iter()
                    .any(|byte| matches!(byte, b'\n' | b'\r'));
                if broken && self.at(next) == b'-' && self.at(next + 1) == b'-' {
                    place = self.line_end(next);
                } else {
                    place = next;
                    break;
                }
            }
            if !broken || self.at(place) != b'\'' {
                return Some(end);
            }
            end = self.quote_end(place, b'\'', escapes)?;
        }
    }

    /// After a dollar-quoted string, Err if it does not end; None if none begins here.
    fn dollar_end(&self, begin: usize) -> Option<Result<usize, ()>> {
        let mut end = begin + 1;
        if is_word_start(self.at(end)) {
            end = self.while_at(end, |byte| is_word(byte) && byte != b'$');
        }
        if self.at(end) != b'$' {
            return None;
        }
        let tag = &self.text[begin..=end];
        let inside = end + 1;
        Some(
            self.text[inside..]
                .find(tag)
                .map(|found| inside + found + tag.len())
                .ok_or(()),
        )
    }

    fn number_end(&self, begin: usize) -> usize {
        let digits = |place| self.while_at(place, |byte| byte.is_ascii_digit() || byte == b'_');
        if self.at(begin) == b'0'
            && matches!(self.at(begin + 1), b'x' | b'X' | b'o' | b'O' | b'b' | b'B')
        {
            return self.while_at(begin + 2, |byte| byte.is_ascii_hexdigit() || byte == b'_');
        }
        let mut end = digits(begin);
        if self.at(end) == b'.' && self.at(end + 1) != b'.' {
            end = digits(end + 1);
        }
        if matches!(self.at(end), b'e' | b'E') {
            let sign = usize::from(matches!(self.at(end + 1), b'+' | b'-'));
            if self.at(end + 1 + sign).is_ascii_digit() {
                end = digits(end + 1 + sign);
            }
        }
        end
    }

    fn variable_end(&self, begin: usize) -> Option<usize> {
        let next = self.at(begin + 1);
        if is_word_start(next) {
            return Some(self.while_at(begin + 1, |byte| is_word(byte) && byte != b'$'));
        }
        let (open, close) = match next {
            b'\'' => (begin + 2, b'\''),
            b'"' => (begin + 2, b'"'),
            b'{' if self.at(begin + 2) == b'?' => (begin + 3, b'}'),
            _ => return None,
        };
        let end = self.while_at(open, |byte| is_word(byte) && byte != b'$');
        (end > open && self.at(end) == close).then_some(end + 1)
    }

    fn colon(&self, begin: usize) -> (Kind, usize) {
        if matches!(self.at(begin + 1), b':' | b'=') {
            return (Kind::Other, begin + 2);
        }
        match self.variable_end(begin).filter(|_| self.options.variables) {
            Some(end) => (Kind::Variable, end),
            None => (Kind::Other, begin + 1),
        }
    }

    /// A word, or the literal or name whose prefix it is.
    fn word(&self, begin: usize) -> (Kind, Option<usize>) {
        let end = self.while_at(begin, is_word);
        let unicode =
            end == begin + 1 && matches!(self.bytes[begin], b'u' | b'U') && self.at(end) == b'&';
        if unicode && self.at(end + 1) == b'\'' {
            return (Kind::Literal, self.string_end(end + 1, false));
        }
        if unicode && self.at(end + 1) == b'"' {
            return (Kind::Name, self.quote_end(end + 1, b'"', false));
        }
        if end == begin + 1 && self.at(end) == b'\'' {
            match self.bytes[begin] {
                b'e' | b'E' => return (Kind::Literal, self.string_end(end, true)),
                b'b' | b'B' | b'x' | b'X' | b'n' | b'N' => {
                    return (Kind::Literal, self.string_end(end, false));
                }
                _ => {}
            }
        }
        (Kind::Word, Some(end))
    }

    fn other_end(&self, begin: usize) -> usize {
        // Whole characters, so that pieces are text.
        self.while_at(begin + 1, |byte| (byte & 0xC0) == 0x80)
    }

    fn piece(&self, begin: usize) -> (Kind, Option<usize>) {
        let (byte, next) = (self.bytes[begin], self.at(begin + 1));
        match byte {
            _ if is_blank(byte) => (Kind::Blank, Some(self.while_at(begin, is_blank))),
            b'-' if next == b'-' => (Kind::Comment, Some(self.line_end(begin))),
            b'/' if next == b'*' => (Kind::Comment, self.comment_end(begin)),
            b'\'' => (Kind::Literal, self.string_end(begin, false)),
            b'"' => (Kind::Name, self.quote_end(begin, b'"', false)),
            b'$' if next.is_ascii_digit() => (
                Kind::Parameter,
                Some(self.while_at(begin + 1, |b| b.is_ascii_digit())),
            ),
            b'$' => match self.dollar_end(begin) {
                None => (Kind::Other, Some(begin + 1)),
                Some(end) => (Kind::Literal, end.ok()),
            },
            b';' => (Kind::Semicolon, Some(begin + 1)),
            b'\\' if next == b';' => (Kind::Semicolon, Some(begin + 2)),
            b'\\' if self.options.commands && next != b':' => {
                (Kind::Meta, Some(self.line_end(begin)))
            }
            b':' => {
                let (kind, end) = self.colon(begin);
                (kind, Some(end))
            }
            b'0'..=b'9' => (Kind::Number, Some(self.number_end(begin))),
            b'.' if next == b'.' => (Kind::Other, Some(begin + 2)), // 1..10, of PL/pgSQL
            b'.' if next.is_ascii_digit() => (Kind::Number, Some(self.number_end(begin))),
            _ if is_word_start(byte) => self.word(begin),
            _ => (Kind::Other, Some(self.other_end(begin))),
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let begin = self.place;
        if begin >= self.bytes.len() {
            return None;
        }
        let (kind, end) = self.piece(begin);
        let (kind, end) = end.map_or((Kind::Cut, self.bytes.len()), |end| (kind, end));
        self.place = end.min(self.bytes.len());
        Some(Piece {
            kind,
            begin,
            end: self.place,
        })
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_word(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str, options: Options) -> Vec<(Kind, &str)> {
        Lexer::new(text, options)
            .filter(|piece| piece.kind != Kind::Blank)
            .map(|piece| (piece.kind, &text[piece.begin..piece.end]))
            .collect()
    }

    #[test]
    fn each_form_of_a_literal_ends_where_postgresql_ends_it() {
        for text in [
            "'a''b'",
            "E'a\\'b'",
            "e'\\\\'",
            "U&'d\\0061'",
            "x'1F'",
            "B'01'",
            "n'x'",
            "$$a'b$$",
            "$x$ $y$ ; $x$",
            "'a'\n 'b'",
            "'a' -- no\n",
            "E'a'\n-- between\n'\\''",
            "$é$x$é$",
        ] {
            let found = kinds(text, Options::default());
            assert_eq!(found[0].0, Kind::Literal, "{text}");
            if !text.contains("no") {
                assert_eq!(found, [(Kind::Literal, text)]);
            }
        }
        assert_eq!(kinds("'a' 'b'", Options::default()).len(), 2);
        assert_eq!(kinds("a$b$c", Options::default()), [(Kind::Word, "a$b$c")]);
        assert_eq!(kinds("/* a /* b */ ; */", Options::default()).len(), 1);
    }

    #[test]
    fn what_does_not_end_is_cut_and_is_the_last_piece() {
        for text in [
            "a 'b; c",
            "a \"b",
            "a /* b /* */",
            "a $x$ b $y$",
            "E'\\'",
            "U&'",
        ] {
            assert_eq!(
                kinds(text, Options::default()).last().map(|p| p.0),
                Some(Kind::Cut)
            );
        }
    }

    #[test]
    fn variables_and_commands_stand_only_where_psql_reads_them() {
        let both = Options {
            commands: true,
            variables: true,
        };
        let found = kinds("a = :x + b::int + c[1:2] \\gset y\n:'z'", both);
        let special: Vec<_> = found
            .iter()
            .filter(|p| matches!(p.0, Kind::Variable | Kind::Meta))
            .collect();
        assert_eq!(
            special,
            [
                &(Kind::Variable, ":x"),
                &(Kind::Meta, "\\gset y"),
                &(Kind::Variable, ":'z'")
            ]
        );
        assert!(
            kinds("a[1:b] \\ c", Options::default())
                .iter()
                .all(|p| !matches!(p.0, Kind::Variable | Kind::Meta))
        );
    }

    #[test]
    fn numbers_are_one_piece() {
        for text in ["1", "1.5", ".5", "1e9", "1.e+3", "0x1F", "1_000"] {
            assert_eq!(kinds(text, Options::default()), [(Kind::Number, text)]);
        }
        let found = kinds("1..10", Options::default());
        assert_eq!(
            found,
            [
                (Kind::Number, "1"),
                (Kind::Other, ".."),
                (Kind::Number, "10")
            ]
        );
    }
}
