//! One statement's parse tree, on a stack that holds it.
//!
//! libpg_query limits its own recursion by the stack that it finds, up to 10,000 nested messages.
//! Decoding, walking and dropping that tree in Rust takes about 1 kB of stack a message in the
//! shipped build, so only texts of few tokens, which cannot nest deeply, are read on the caller's
//! stack. The others go to one thread with a stack of its own, which is kept: libpg_query takes a
//! thread-specific key from the process for each thread that calls it, and there are 1,024.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use pg_query::NodeEnum;
use pg_query::protobuf::ParseResult;

use crate::SqlError;

/// Bytes of a statement that are read: PostgreSQL's own limit is 1 GB, lists of values reach it.
pub(crate) const STATEMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A tree has at most about two messages a token: 256 kB of stack in the shipped build.
const SHALLOW_TOKENS: usize = 128;
/// 10,000 messages at 1 kB in the shipped build, more than ten times that in a debug build.
const DEEP_STACK_BYTES: usize = 256 * 1024 * 1024;
/// No warnings about backslashes in plain literals: nobody reads them.
const QUIET: i32 = 64;

/// The statements of a text as the parser gives them.
pub(crate) struct Tree(ParseResult);

impl Tree {
    /// The only statement of the text.
    ///
    /// # Errors
    ///
    /// [`SqlError::NotOne`].
    pub(crate) fn only(&self) -> Result<&NodeEnum, SqlError> {
        match self.0.stmts.as_slice() {
            [one] => {
                one.stmt
                    .as_ref()
                    .and_then(|node| node.node.as_ref())
                    .ok_or(SqlError::Internal {
                        message: "a statement without a body".to_owned(),
                    })
            }
            several => Err(SqlError::NotOne {
                found: several.len(),
            }),
        }
    }
}

/// Parse a text and read something from its tree.
///
/// # Errors
///
/// Of the parser, or of `read`.
pub(crate) fn with_tree<T: Send + 'static>(
    text: &str,
    read: impl FnOnce(&Tree) -> Result<T, SqlError> + Send + 'static,
) -> Result<T, SqlError> {
    if text.len() > STATEMENT_BYTES_MAX {
        return Err(SqlError::TooLong {
            bytes: text.len(),
            limit: STATEMENT_BYTES_MAX,
        });
    }
    if text.contains('\0') {
        return Err(SqlError::Nul);
    }
    let tokens = pg_query::scan_tokens(text).map_err(SqlError::from_parser)?;
    if tokens.len() <= SHALLOW_TOKENS {
        return caught(|| read(&parsed(text)?));
    }
    let text = text.to_owned();
    on_deep_stack(move || caught(|| read(&parsed(&text)?)))
}

fn parsed(text: &str) -> Result<Tree, SqlError> {
    let result = pg_query::parse(text, QUIET).map_err(SqlError::from_parser)?;
    Ok(Tree(result.protobuf))
}

/// The crate between has casts that panic on trees that it does not expect.
fn caught<T>(job: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| {
        Err(SqlError::Internal {
            message: "a statement that it did not expect".to_owned(),
        })
    })
}

type Job = Box<dyn FnOnce() + Send>;

/// The thread with the deep stack, by the process that has it: a fork has none.
static DEEP: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);

fn on_deep_stack<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, SqlError> + Send + 'static,
) -> Result<T, SqlError> {
    let (answer, answers) = channel();
    let job: Job = Box::new(move || {
        // Nobody waits any more only if the asking thread died.
        let _ = answer.send(job());
    });
    let no_room = |_| SqlError::Internal {
        message: "no room for a deep stack".to_owned(),
    };
    deep_thread()
        .map_err(no_room)?
        .send(job)
        .map_err(|_| SqlError::TooDeep)?;
    answers.recv().unwrap_or(Err(SqlError::TooDeep))
}

fn deep_thread() -> std::io::Result<Sender<Job>> {
    let mut kept = DEEP.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let process = std::process::id();
    if let Some((owner, jobs)) = kept.as_ref()
        && *owner == process
    {
        return Ok(jobs.clone());
    }
    let (jobs, queue) = channel::<Job>();
    std::thread::Builder::new()
        .name("pgheadroom-sql".to_owned())
        .stack_size(DEEP_STACK_BYTES)
        .spawn(move || {
            for job in queue {
                job();
            }
        })?;
    *kept = Some((process, jobs.clone()));
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(text: &str) -> Result<(), SqlError> {
        with_tree(text, |tree| tree.only().map(|_| ()))
    }

    #[test]
    fn deep_nesting_is_read_or_refused_but_never_overflows() {
        let deep = |open: &str, close: &str, n: usize| {
            format!("SELECT {}1{}", open.repeat(n), close.repeat(n))
        };
        for n in [40, 200, 2_000, 3_000] {
            assert_eq!(is_read(&deep("(", ")", n)), Ok(()));
            assert_eq!(is_read(&deep("f(", ")", n.min(2_000))), Ok(()));
            assert_eq!(is_read(&deep("", " || x", n)), Ok(()));
        }
        for (open, close) in [
            ("(", ")"),
            ("f(", ")"),
            ("", "+1"),
            ("- ", ""),
            ("", " union select 1"),
        ] {
            let found = is_read(&deep(open, close, 100_000));
            assert!(
                matches!(
                    found,
                    Ok(()) | Err(SqlError::TooDeep | SqlError::Syntax { .. })
                ),
                "{open}: {found:?}"
            );
        }
        assert_eq!(is_read(&deep("(", ")", 100_000)), Err(SqlError::TooDeep));
        assert_eq!(is_read(&deep("", "+1", 100_000)), Err(SqlError::TooDeep));
    }

    #[test]
    fn what_is_no_statement_is_an_error() {
        assert_eq!(is_read("SELECT '\0'"), Err(SqlError::Nul));
        assert_eq!(is_read(""), Err(SqlError::NotOne { found: 0 }));
        assert_eq!(
            is_read("SELECT 1; SELECT 2"),
            Err(SqlError::NotOne { found: 2 })
        );
        assert_eq!(is_read("UPDATE t SET"), Err(SqlError::Cut));
    }
}
