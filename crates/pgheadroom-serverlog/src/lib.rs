//! Executed statements out of PostgreSQL's server log: found, selected and counted.
//!
//! A log has gigabytes and few different statements. [`Scan`] is fed a log's bytes in pieces of
//! any size, takes out what `log_statement` and `log_min_duration_statement` wrote of one database
//! and one interval, puts literals away and counts. What a line says is taken as bytes: a server
//! writes statements in the encoding of their database. No input or output; foreign bytes never
//! panic, and memory is bounded.
//!
//! Formats: `csvlog`, `jsonlog` ([`entry`]) and `stderr` with any `log_line_prefix`
//! ([`prefix`], [`stderr`]). The server's side: `src/backend/utils/error/`, `elog.c` and beside it.

pub mod entry;
pub mod normal;
pub mod prefix;
pub mod scan;
pub mod stderr;
pub mod time;

pub use prefix::Prefix;
pub use scan::{Format, Found, Scan, Selection};
