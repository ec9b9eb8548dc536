//! Why a statement is not understood: once for its owner, once for a file that others read.

use thiserror::Error;

use crate::GRAMMAR_MAJOR;

/// Words of PostgreSQL after this grammar's version; they may be named, for nobody's data is said.
const NEWER_WORDS: [&str; 10] = [
    "edge",
    "graph_table",
    "ignore",
    "portion",
    "property",
    "repack",
    "respect",
    "vertex",
    "wait",
    "lsn",
];

/// Why a statement is not understood.
///
/// The message may hold words of the statement; [`SqlError::reason`] never does.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The grammar does not accept it.
    #[error("PostgreSQL {GRAMMAR_MAJOR}'s grammar does not know its syntax: {message}")]
    Syntax {
        /// PostgreSQL's own message.
        message: String,
        /// The word at which it stopped, where that is a keyword of SQL, in capitals.
        keyword: Option<String>,
    },
    /// It ends too early: in the middle of a literal, a name, a comment or a clause.
    #[error("its text is cut off")]
    Cut,
    /// Nested more deeply than PostgreSQL's own limits.
    #[error("it is nested too deeply")]
    TooDeep,
    /// A NUL character, which no text of PostgreSQL has.
    #[error("it holds a NUL character")]
    Nul,
    /// Longer than is read.
    #[error("it is too long ({bytes} bytes; up to {limit} are read)")]
    TooLong {
        /// Of the text.
        bytes: usize,
        /// What is read at most.
        limit: usize,
    },
    /// A variable of psql, whose value is not known.
    #[error("it has a variable of psql, whose value is not known here")]
    Variable,
    /// Several statements, or none, where one is read.
    #[error("{found} statements stand where one is read")]
    NotOne {
        /// Statements that were found.
        found: usize,
    },
    /// The parser's tree is not as it should be.
    #[error("the parser failed: {message}")]
    Internal {
        /// What it said.
        message: String,
    },
}

impl SqlError {
    /// The cause without any word, name or literal of the statement: profiles keep it.
    pub fn reason(&self) -> String {
        match self {
            Self::Syntax {
                keyword: Some(word),
                ..
            } => {
                format!("PostgreSQL {GRAMMAR_MAJOR}'s grammar does not know its syntax (at {word})")
            }
            Self::Syntax { keyword: None, .. } => {
                format!("PostgreSQL {GRAMMAR_MAJOR}'s grammar does not know its syntax")
            }
            Self::TooLong { .. } => "it is too long".to_owned(),
            Self::Internal { .. } => "the parser failed".to_owned(),
            other => other.to_string(),
        }
    }

    /// From the parser's error.
    pub(crate) fn from_parser(error: pg_query::Error) -> Self {
        match error {
            pg_query::Error::Conversion(_) => Self::Nul,
            pg_query::Error::Parse(message)
            | pg_query::Error::Scan(message)
            | pg_query::Error::Split(message) => Self::from_message(message),
            other => Self::Internal {
                message: other.to_string(),
            },
        }
    }

    fn from_message(message: String) -> Self {
        if message.starts_with("stack depth limit exceeded")
            || message.starts_with("memory exhausted")
        {
            Self::TooDeep
        } else if message.starts_with("syntax error at end of input")
            || message.starts_with("unterminated")
        {
            Self::Cut
        } else {
            let keyword = near(&message).filter(|word| is_keyword(word));
            Self::Syntax {
                message,
                keyword: keyword.map(|word| word.to_uppercase()),
            }
        }
    }
}

/// The word that a message quotes at its end.
fn near(message: &str) -> Option<String> {
    let (_, quoted) = message.split_once("at or near \"")?;
    Some(quoted.strip_suffix('"')?.to_lowercase())
}

fn is_keyword(word: &str) -> bool {
    NEWER_WORDS.contains(&word)
        || pg_query::scan_tokens(word)
            .is_ok_and(|tokens| matches!(tokens.as_slice(), [one] if one.keyword_kind != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_hold_no_word_of_the_statement() {
        let found = SqlError::from_message("syntax error at or near \"secret\"".to_owned());
        assert!(!found.reason().contains("secret"));
        assert!(found.to_string().contains("secret"));
    }

    #[test]
    fn keywords_of_sql_are_named_newer_ones_too() {
        for (word, said) in [
            ("portion", "(at PORTION)"),
            ("FOR", "(at FOR)"),
            ("x", "syntax"),
        ] {
            let found = SqlError::from_message(format!("syntax error at or near \"{word}\""));
            assert!(found.reason().ends_with(said), "{}", found.reason());
        }
    }
}
