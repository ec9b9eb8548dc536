//! The statements of a text, each with its place; and what stands there and is none.

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
    /// A command of psql, by its name.
    Command(String),
    /// It has a variable of psql or pgbench.
    Variable,
}

/// The statements of a text.
///
/// A semicolon inside brackets ends none in CREATE RULE, nor does one inside BEGIN ATOMIC ... END
/// in CREATE FUNCTION and CREATE PROCEDURE; elsewhere it does, so that one statement with a bracket
/// too many does not take the rest with it.
pub fn split(text: &str, options: Options) -> Vec<Part> {
    let mut splitter = Splitter::new(text);
    for piece in Lexer::new(text, options) {
        splitter.take(piece);
    }
    splitter.finish();
    splitter.parts
}

struct Splitter<'a> {
    text: &'a str,
    parts: Vec<Part>,
    made: String,
    begin: Option<usize>,
    end: usize,
    problem: Option<Problem>,
    nesting: Nesting,
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
            end: 0,
            problem: None,
            nesting: Nesting::default(),
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
            Kind::Meta => {
                self.finish();
                let name = spelled.split_whitespace().next().unwrap_or(spelled);
                self.problem = Some(Problem::Command(name.to_owned()));
                self.add(piece, spelled);
                self.finish();
            }
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

    fn add(&mut self, piece: Piece, spelled: &str) {
        if self.begin.is_none() {
            self.begin = Some(piece.begin);
            self.made.clear();
        }
        self.end = piece.end;
        self.made.push_str(spelled);
    }

    fn finish(&mut self) {
        if let Some(begin) = self.begin.take() {
            let passed = &self.text.as_bytes()[self.counted..begin];
            self.lines += passed.iter().filter(|byte| **byte == b'\n').count();
            self.counted = begin;
            self.parts.push(Part {
                line: self.lines + 1,
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

    #[test]
    fn commands_and_what_does_not_end_are_named() {
        let options = Options {
            commands: true,
            variables: true,
        };
        let found = split("SELECT 1 \\gexec\n\\i x.sql\nSELECT :a;SELECT 'b", options);
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
