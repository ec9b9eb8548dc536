//! One text for statements that differ in literals, parameters, comments and blanks alone.

use std::fmt::Write as _;

use crate::SqlError;
use crate::lexer::{Kind, Lexer, Options};
use crate::split::{Part, Problem, split};

/// The statements of a text, each without its literals.
///
/// Constants and parameters become `$1`, `$2`, ... as PostgreSQL's grammar finds them; in a
/// statement that it does not accept, and in DDL, literals become `''`. Comments go, blanks
/// are one.
///
/// # Errors
///
/// [`SqlError::Cut`]: a literal, name or comment does not end.
pub fn normalized(text: &str, options: Options) -> Result<Vec<String>, SqlError> {
    let parts = split(text, options);
    if parts.iter().any(|part| part.problem == Some(Problem::Cut)) {
        return Err(SqlError::Cut);
    }
    let is_statement = |part: &&Part| {
        !matches!(
            part.problem,
            Some(Problem::Command(_) | Problem::Skipped | Problem::Connects(_))
        )
    };
    Ok(parts
        .iter()
        .filter(is_statement)
        .map(|part| one(&part.text, options))
        .collect())
}

/// Up to this length the grammar finds the constants; lists of values are longer.
const NORMALIZED_BYTES_MAX: usize = 1024 * 1024;

fn one(text: &str, options: Options) -> String {
    let plain = if options.variables {
        without_variables(text, options)
    } else {
        None
    };
    let text = plain.as_deref().unwrap_or(text);
    by_grammar(text).unwrap_or_else(|| {
        let made = canonical(text);
        // What stopped the grammar may have stood in a literal: a NUL, or a megabyte.
        by_grammar(&made).unwrap_or(made)
    })
}

fn by_grammar(text: &str) -> Option<String> {
    if text.len() > NORMALIZED_BYTES_MAX {
        return None;
    }
    pg_query::normalize(text)
        .ok()
        .map(|found| canonical(&found))
}

/// Variables as parameters; None if there is none.
fn without_variables(text: &str, options: Options) -> Option<String> {
    let mut made = String::with_capacity(text.len());
    let mut found = false;
    for piece in Lexer::new(text, options) {
        if piece.kind == Kind::Variable {
            found = true;
            made.push_str("$1");
        } else {
            made.push_str(&text[piece.begin..piece.end]);
        }
    }
    found.then_some(made)
}

/// Parameters numbered as they stand, literals empty, blanks one.
fn canonical(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut parameters = 0_u32;
    let mut wanted = false;
    for piece in Lexer::new(text, Options::default()) {
        if matches!(piece.kind, Kind::Blank | Kind::Comment) {
            wanted = !made.is_empty();
            continue;
        }
        if std::mem::take(&mut wanted) {
            made.push(' ');
        }
        match piece.kind {
            Kind::Parameter => {
                parameters += 1;
                // Writing into a String cannot fail.
                let _ = write!(made, "${parameters}");
            }
            Kind::Literal | Kind::Cut => made.push_str("''"),
            _ => made.push_str(&text[piece.begin..piece.end]),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> String {
        let mut found = normalized(text, Options::default()).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn equal_statements_have_one_text_however_their_values_come() {
        let wanted = "UPDATE t SET a = $1, b = b + $2 WHERE id = $3";
        for text in [
            "UPDATE t SET a = 's3cret', b = b + 7 WHERE id = 5",
            "UPDATE t SET a = $1, b = b + $2 WHERE id = $3",
            "UPDATE t SET a = $2, b = b + 1\n\tWHERE id = $1 -- s3cret",
            "UPDATE t SET a = E'\\'', b = b + $9 /* x */ WHERE id = -5",
        ] {
            assert_eq!(only(text), wanted, "{text}");
        }
    }

    #[test]
    fn no_literal_is_left_where_the_grammar_finds_none() {
        for text in [
            "PLEASE update t SET a = 's3cret'",
            "COMMENT ON TABLE t IS 's3cret'",
            "DO $x$ s3cret $x$",
            "ALTER ROLE x PASSWORD 's3cret'",
            "SELECT interval 's3cret'",
        ] {
            assert!(!only(text).contains("s3cret"), "{}", only(text));
        }
        assert_eq!(
            normalized("UPDATE t SET a = 'x", Options::default()),
            Err(SqlError::Cut)
        );
    }

    #[test]
    fn what_is_normal_stays_so_where_a_literal_stopped_the_grammar() {
        let long = format!("SELECT '{}'", "x".repeat(NORMALIZED_BYTES_MAX));
        for text in ["SELECT 'x \0 'x", long.as_str()] {
            let found = only(text);
            assert!(found.starts_with("SELECT $1"), "{}", &found[..20]);
            assert_eq!(only(&found), found);
        }
    }

    #[test]
    fn variables_of_pgbench_are_parameters() {
        let options = Options {
            commands: true,
            variables: true,
        };
        let found = normalized(
            "\\set a 1\nUPDATE t SET a = a + :d WHERE b::text = :x;",
            options,
        );
        assert_eq!(
            found.unwrap(),
            ["UPDATE t SET a = a + $1 WHERE b::text = $2"]
        );
    }
}
