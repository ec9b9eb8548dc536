//! The statements of a text, each with its place; and what stands there and is none.

use crate::command::{Meaning, meaning};
use crate::lexer::{Kind, Lexer, Options, Piece};

/// A statement of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its line in the text, from 1.
    pub line: usize,
    /// Its first byte.
    pub begin: usize,
    /// The byte after it, without semicolon.
    pub end: usize,
    /// The statement with a blank for each comment, trimmed.
    pub text: String,
    /// What it is, where it is no statement that can be read.
    pub problem: Option<Problem>,
}

/// Why a part of a text is no statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A literal, name or comment does not end.
    Cut,
    /// A command of psql that changes what is run, by its name.
    Command(String),
    /// A command of psql that runs nothing, which is left out.
    Skipped,
    /// Another connection: the database's name where one is given.
    Connects(Option<String>),
    /// It has a variable of psql or pgbench.
    Variable,
}

/// The statements of a text.
///
/// A semicolon inside brackets ends none in CREATE RULE, nor does one inside BEGIN ATOMIC ... END
/// in CREATE FUNCTION and CREATE PROCEDURE; elsewhere it does, so that one statement with a bracket
/// too many does not take the rest with it.
///
/// With psql's commands rows of COPY ... FROM STDIN that stand in the text, up to `\.`, belong to
/// their statement and are passed over. A command that sends nothing ends no statement.
pub fn split(text: &str, options: Options) -> Vec<Part> {
    let mut splitter = Splitter::new(text);
    let mut lexer = Lexer::new(text, options);
    while let Some(piece) = lexer.next() {
        splitter.take(piece);
        if splitter.has_rows && options.commands {
            splitter.pass(&mut lexer);
        }
        splitter.has_rows = false;
    }
    splitter.finish();
    splitter.parts
}

struct Splitter<'a> {
    text: &'a str,
    parts: Vec<Part>,
    made: String,
    begin: Option<usize>,
    line: usize,
    end: usize,
    problem: Option<Problem>,
    nesting: Nesting,
    /// The statement that has just ended reads rows that stand behind it.
    has_rows: bool,
    /// Lines before `counted` bytes.
    lines: usize,
    counted: usize,
}

impl<'a> Splitter<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            parts: Vec::new(),
            made: String::new(),
            begin: None,
            line: 0,
            end: 0,
            problem: None,
            nesting: Nesting::default(),
            has_rows: false,
            lines: 0,
            counted: 0,
        }
    }

    fn take(&mut self, piece: Piece) {
        let spelled = &self.text[piece.begin..piece.end];
        match piece.kind {
            Kind::Comment => self.made.push(' '),
            Kind::Blank => self.made.push_str(spelled),
            Kind::Semicolon if !self.nesting.is_open() => self.finish(),
            Kind::Meta => self.command(piece, spelled),
            Kind::Cut => {
                self.problem = Some(Problem::Cut);
                self.add(piece, spelled);
            }
            kind => {
                if kind == Kind::Variable && self.problem.is_none() {
                    self.problem = Some(Problem::Variable);
                }
                self.nesting.follow(kind, spelled);
                self.add(piece, spelled);
            }
        }
    }

    fn command(&mut self, piece: Piece, spelled: &str) {
        let problem = match meaning(spelled) {
            Meaning::Copies(statement) => {
                self.finish();
                for one in Lexer::new(&statement, Options::default()) {
                    self.nesting
                        .follow(one.kind, &statement[one.begin..one.end]);
                }
                self.add(piece, &statement);
                self.finish();
                return;
            }
            Meaning::Quiet => Problem::Skipped,
            Meaning::Sends => {
                self.finish();
                Problem::Skipped
            }
            Meaning::Connects(name) => {
                self.finish();
                Problem::Connects(name)
            }
            Meaning::Other(name) => {
                self.finish();
                Problem::Command(name)
            }
        };
        let line = self.line_of(piece.begin);
        self.made.push(' ');
        self.parts.push(Part {
            line,
            begin: piece.begin,
            end: piece.end,
            text: spelled.trim().to_owned(),
            problem: Some(problem),
        });
    }

    /// The rows of a COPY, from the next line on. What else stands on its own line is read as SQL,
    /// and where that is more than blanks and a comment the rows are, too: so they are named.
    fn pass(&mut self, lexer: &mut Lexer<'_>) {
        let line_end = |from: usize| {
            self.text[from..]
                .find('\n')
                .map_or(self.text.len(), |found| from + found + 1)
        };
        let begin = line_end(lexer.place());
        let rest = self.text[lexer.place()..begin].trim();
        if !(rest.is_empty() || rest.starts_with("--")) {
            return;
        }
        let mut place = begin;
        while place < self.text.len() {
            let end = line_end(place);
            if self.text[place..end].trim_end_matches(['\n', '\r']) == "\\." {
                lexer.go_to(end);
                return;
            }
            place = end;
        }
        // psql reads on to the end of the file: what stands there may be rows, or may be meant to
        // be statements.
        if let Some(part) = self.parts.last_mut() {
            part.problem = Some(Problem::Cut);
        }
        lexer.go_to(self.text.len());
    }

    fn line_of(&mut self, place: usize) -> usize {
        let passed = &self.text.as_bytes()[self.counted..place];
        self.lines += passed.iter().filter(|byte| **byte == b'\n').count();
        self.counted = place;
        self.lines + 1
    }

    fn add(&mut self, piece: Piece, spelled: &str) {
        if self.begin.is_none() {
            self.begin = Some(piece.begin);
            self.line = self.line_of(piece.begin);
            self.made.clear();
        }
        self.end = piece.end;
        self.made.push_str(spelled);
    }

    fn finish(&mut self) {
        if let Some(begin) = self.begin.take() {
            self.has_rows = self.nesting.has_rows;
            self.parts.push(Part {
                line: self.line,
                begin,
                end: self.end,
                text: self.made.trim().to_owned(),
                problem: self.problem.take(),
            });
        }
        self.made.clear();
        self.problem = None;
        self.nesting = Nesting::default();
    }
}

/// Whether a semicolon stands inside a statement. Source: psqlscan.l, `identifier_count` and
/// `begin_depth`.
#[derive(Default)]
struct Nesting {
    words: usize,
    is_create: bool,
    object: Option<Object>,
    after_begin: bool,
    depth: usize,
    is_copy: bool,
    after_from: bool,
    /// It is COPY ... FROM STDIN.
    has_rows: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Object {
    Rule,
    Routine,
}

impl Nesting {
    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn follow(&mut self, kind: Kind, spelled: &str) {
        if kind == Kind::Other {
            if self.object == Some(Object::Rule) {
                match spelled {
                    "(" => self.depth += 1,
                    ")" => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
            return;
        }
        if kind != Kind::Word {
            return;
        }
        self.words += 1;
        let is = |word: &str| spelled.eq_ignore_ascii_case(word);
        if self.words == 1 {
            self.is_create = is("create");
            self.is_copy = is("copy");
        } else if self.words <= 4 && self.is_create && self.object.is_none() {
            if is("rule") {
                self.object = Some(Object::Rule);
            } else if is("function") || is("procedure") {
                self.object = Some(Object::Routine);
            } else if !is("or") && !is("replace") {
                self.is_create = false;
            }
        } else if self.object == Some(Object::Routine) {
            if self.depth == 0 {
                if self.after_begin && is("atomic") {
                    self.depth = 1;
                }
            } else if is("case") || is("begin") {
                self.depth += 1;
            } else if is("end") {
                self.depth -= 1;
            }
        }
        self.after_begin = is("begin");
        self.has_rows |= self.is_copy && self.after_from && is("stdin");
        self.after_from = is("from");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        split(text, Options::default())
            .into_iter()
            .map(|part| part.text)
            .collect()
    }

    #[test]
    fn semicolons_inside_a_statement_do_not_end_it() {
        for text in [
            "CREATE RULE r AS ON UPDATE TO t DO ALSO (DELETE FROM u; DELETE FROM v)",
            "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 \
             END; SELECT 2; END",
            "SELECT ';', \";\", $$;$$, $a$;$a$, E'\\';' /* ; */",
        ] {
            assert_eq!(texts(&format!("{text} ; SELECT 1")).len(), 2, "{text}");
        }
        assert_eq!(
            texts("BEGIN; SELECT (; SELECT 1; END"),
            ["BEGIN", "SELECT (", "SELECT 1", "END"]
        );
    }

    #[test]
    fn places_are_those_in_the_text() {
        let text = "-- ü\nSELECT 1;\n\n /* x */ SELECT /* y */ 'ü' ; ;\n";
        let found = split(text, Options::default());
        let places: Vec<_> = found
            .iter()
            .map(|p| (p.line, &text[p.begin..p.end]))
            .collect();
        assert_eq!(places, [(2, "SELECT 1"), (4, "SELECT /* y */ 'ü'")]);
        assert_eq!(found[1].text, "SELECT   'ü'");
    }

    const PSQL: Options = Options {
        commands: true,
        variables: true,
    };

    #[test]
    fn rows_of_a_copy_belong_to_it() {
        let text = "COPY t (a) FROM stdin;\n1\t'x;\nDROP TABLE t;\n\\N\n\\.\n\nSELECT 1;\n\
                    \\copy u from STDIN csv\n\"a\n\\.\nSELECT 2;\nCOPY t TO stdout;SELECT 3;\n\
                    COPY t FROM STDIN \\g\n4\n\\.\nSELECT 4";
        let found: Vec<_> = split(text, PSQL)
            .into_iter()
            .filter(|part| part.problem.is_none())
            .map(|part| (part.line, part.text))
            .collect();
        let expected = [
            (1, "COPY t (a) FROM stdin"),
            (7, "SELECT 1"),
            (8, "COPY u from STDIN csv"),
            (11, "SELECT 2"),
            (12, "COPY t TO stdout"),
            (12, "SELECT 3"),
            (13, "COPY t FROM STDIN"),
            (16, "SELECT 4"),
        ];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
        for open in [
            "COPY t FROM stdin;\n1\nDROP TABLE t;",
            "COPY t FROM stdin; SELECT 1;\nx'",
        ] {
            let found = split(open, PSQL);
            assert!(
                found.iter().any(|part| part.problem == Some(Problem::Cut)),
                "{open}"
            );
        }
        assert_eq!(texts("COPY t FROM stdin;\nSELECT 1").len(), 2); // in a log nothing follows
    }

    #[test]
    fn a_command_that_sends_nothing_ends_no_statement() {
        let found = split(
            "SELECT\n\\timing\n1;\n\\echo ;\nSELECT 2\\g x\n\\c shop",
            PSQL,
        );
        let found: Vec<_> = found
            .into_iter()
            .map(|part| (part.line, part.text, part.problem))
            .collect();
        let skipped = || Some(Problem::Skipped);
        let expected = [
            (2, "\\timing", skipped()),
            (1, "SELECT\n \n1", None),
            (4, "\\echo ;", skipped()),
            (5, "SELECT 2", None),
            (5, "\\g x", skipped()),
            (
                6,
                "\\c shop",
                Some(Problem::Connects(Some("shop".to_owned()))),
            ),
        ];
        assert_eq!(
            found,
            expected.map(|(line, text, why)| (line, text.to_owned(), why))
        );
    }

    #[test]
    fn commands_and_what_does_not_end_are_named() {
        let found = split("SELECT 1 \\gexec\n\\i x.sql\nSELECT :a;SELECT 'b", PSQL);
        let problems: Vec<_> = found.into_iter().map(|part| part.problem).collect();
        assert_eq!(
            problems,
            [
                None,
                Some(Problem::Command("\\gexec".to_owned())),
                Some(Problem::Command("\\i".to_owned())),
                Some(Problem::Variable),
                Some(Problem::Cut),
            ]
        );
    }
}
