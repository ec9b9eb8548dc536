//! Statements and DDL by PostgreSQL's own grammar (libpg_query), as plain values.
//!
//! ```text
//! text --lexer--> statements --tree--> parse tree --writes, heads, reads, facts, columns--> values
//!                     `--normal--> one text for equal statements
//! ```
//!
//! [`lexer`] finds where statements begin and end, as psql does, whether or not they parse; the
//! grammar reads each by itself. What it does not know is an error that names the cause, once with
//! the statement's words and once without. No text makes anything here panic or overflow a stack:
//! [`tree`] says how. Names stay as PostgreSQL folds them; nothing is looked up in a catalog.

#![forbid(unsafe_code)]

pub mod columns;
mod command;
mod ddl;
mod error;
pub mod facts;
pub mod functions;
pub mod heads;
pub mod immutable;
pub mod lexer;
pub mod normal;
pub mod reads;
mod spelled;
pub mod split;
mod tree;
pub mod trigger;
pub mod writes;

pub use ddl::facts_of;
pub use error::SqlError;

/// The version of PostgreSQL whose grammar this is, as `server_version_num` counts.
pub const GRAMMAR_VERSION_NUM: i32 = 180_006;

/// The major version of PostgreSQL whose grammar this is.
pub const GRAMMAR_MAJOR: i32 = GRAMMAR_VERSION_NUM / 10_000;
