//! An ALTER TABLE of which a subcommand is not known, read one subcommand after another.

use crate::facts::Fact;
use crate::lexer::{Kind, Lexer, Options};

/// The problem shows that much of a subcommand.
const SHOWN_CHARACTERS: usize = 60;

/// Facts of the subcommands that parse, problems for the others; None if none parses.
pub(super) fn facts_of(text: &str) -> Option<Vec<Fact>> {
    let (head, commands) = cut(text)?;
    let (mut found, mut parsed) = (Vec::new(), 0);
    for command in commands {
        match super::whole(&format!("{head} {command}")) {
            Ok(facts) => {
                parsed += 1;
                found.extend(facts);
            }
            Err(error) => {
                let words: Vec<&str> = command.split_whitespace().collect();
                let shown: String = words.join(" ").chars().take(SHOWN_CHARACTERS).collect();
                found.push(Fact::Problem {
                    text: format!("{shown}: {error}"),
                });
            }
        }
    }
    (parsed > 0).then_some(found)
}

/// `ALTER TABLE [IF EXISTS] [ONLY] name` and the subcommands behind it, where there are several.
fn cut(text: &str) -> Option<(&str, Vec<&str>)> {
    let mut pieces = Lexer::new(text, Options::default())
        .filter(|piece| !matches!(piece.kind, Kind::Blank | Kind::Comment))
        .peekable();
    for wanted in ["alter", "table"] {
        let piece = pieces.next()?;
        if !text[piece.begin..piece.end].eq_ignore_ascii_case(wanted) {
            return None;
        }
    }
    let mut end = 0;
    let mut named = false;
    while let Some(piece) = pieces.peek() {
        let word = &text[piece.begin..piece.end];
        let is_prefix = ["if", "exists", "only"]
            .iter()
            .any(|one| word.eq_ignore_ascii_case(one));
        match piece.kind {
            Kind::Word if is_prefix && !named => {}
            Kind::Word | Kind::Name if !named => named = true,
            Kind::Other if word == "." => named = false,
            Kind::Other if word == "*" => {}
            _ => break,
        }
        end = piece.end;
        pieces.next();
    }
    let head = &text[..end];
    let (mut commands, mut depth, mut begin) = (Vec::new(), 0_usize, end);
    for piece in pieces {
        match &text[piece.begin..piece.end] {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                commands.push(&text[begin..piece.begin]);
                begin = piece.end;
            }
            _ => {}
        }
    }
    commands.push(&text[begin..]);
    (commands.len() > 1).then_some((head, commands))
}
